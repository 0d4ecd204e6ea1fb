"""Records the launches that pyopencl's own library makes: what went into each kernel and what the device made of it."""

from __future__ import annotations

import shlex
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from perfvec.arguments import Argument, BufferArg, ElementType, LocalArg, ScalarArg
from perfvec.initialisers import Initialiser
from perfvec.launch import Launch, default_local_size
from perfvec.program.frontend import compile_source, keep_kernel
from perfvec.program.ir import parse_kernel, pointer_space, vector_parts

_SCALARS = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "float": "float32", "double": "float64"}
_MOST_WORK_ITEMS = 256  # of a work-group, as on many GPUs; PoCL's 4096 are more than any has
_BYTE = ElementType(scalar="uint8", width=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLaunch:
    """A launch, and the bytes of its buffers after the device has run it.

    `groups` has the arguments that are one buffer; no launch of ours can say that two are.
    """

    launch: Launch
    after: dict[int, bytes]
    groups: tuple[tuple[int, ...], ...]


@contextmanager
def recorded() -> Iterator[list[RecordedLaunch]]:
    """Record every launch of a kernel by pyopencl in this block."""
    import pyopencl as cl

    launches: list[RecordedLaunch] = []
    passed: dict[tuple[Any, int], Any] = {}
    kernel_class, enqueue = cl._cl.Kernel, cl._cl.enqueue_nd_range_kernel
    originals = {name: getattr(kernel_class, f"_set_arg{name}_multi") for name in ("", "_buf", "_buf_pack")}

    def watched(name: str, step: int) -> Any:
        def set_arguments(kernel: Any, given: Sequence[Any]) -> None:
            for start in range(0, len(given), step):
                index, *rest = given[start : start + step]
                value = struct.pack(rest[0].decode(), rest[1]) if step == 3 else rest[0]
                passed[kernel.int_ptr, index] = value
            originals[name](kernel, given)

        return set_arguments

    def enqueue_and_record(
        queue: Any, kernel: Any, global_size: Any, local_size: Any, offset: Any = None, *rest: Any
    ) -> Any:
        if len(rest) > 1 and rest[1]:  # the global size was given in work-groups
            global_size = tuple(np.multiply(global_size, local_size).tolist())
        queue.finish()
        args = [passed[kernel.int_ptr, index] for index in range(kernel.num_args)]
        before = {index: _read(queue, arg) for index, arg in enumerate(args) if isinstance(arg, cl.MemoryObjectHolder)}
        event = enqueue(queue, kernel, global_size, local_size, offset, *rest[:1])
        queue.finish()
        after = {index: _read(queue, args[index]) for index in before}
        groups: dict[int, list[int]] = {}
        for index in before:
            groups.setdefault(args[index].int_ptr, []).append(index)
        launch = _as_launch(queue.device, kernel, [before.get(index, arg) for index, arg in enumerate(args)])
        sizes = {
            "global_size": tuple(global_size),
            "local_size": tuple(local_size or default_local_size(tuple(global_size))),
            "global_offset": tuple(offset or ()),
        }
        launches.append(RecordedLaunch(launch=launch(**sizes), after=after, groups=tuple(map(tuple, groups.values()))))
        return event

    with pytest.MonkeyPatch.context() as patch:
        for name, step in (("", 2), ("_buf", 2), ("_buf_pack", 3)):
            patch.setattr(kernel_class, f"_set_arg{name}_multi", watched(name, step))
        patch.setattr(cl.Device, "max_work_group_size", property(lambda device: _MOST_WORK_ITEMS))
        patch.setattr(cl._cl, "enqueue_nd_range_kernel", enqueue_and_record)
        patch.setattr(cl, "enqueue_nd_range_kernel", enqueue_and_record)
        yield launches


def _read(queue: Any, memory: Any) -> bytearray:
    import pyopencl as cl

    contents = bytearray(memory.size)
    cl.enqueue_copy(queue, contents, memory)
    return contents


def _as_launch(device: Any, kernel: Any, args: list[Any]) -> Any:
    import pyopencl as cl

    program = kernel.program
    source = program.get_info(cl.program_info.SOURCE)
    options = tuple(shlex.split(program.get_build_info(device, cl.program_build_info.OPTIONS)))
    name = kernel.function_name
    types = _parameter_types(source, options, name)

    def make(**sizes: tuple[int, ...]) -> Launch:
        arguments = tuple(_as_argument(type_text, value) for type_text, value in zip(types, args, strict=True))
        return Launch(source=source, kernel_name=name, args=arguments, build_options=options, **sizes)

    return make


@cache
def _parameter_types(source: str, options: tuple[str, ...], name: str) -> list[str]:
    kernel = parse_kernel(keep_kernel(compile_source(source, options), name).ir, name, is_optimised=True)
    return [parameter.byval or parameter.type for parameter in kernel.parameters]


def _as_argument(type_text: str, value: Any) -> Argument:
    if isinstance(value, bytearray):
        zero = Initialiser(name="constant")
        return BufferArg(element=_BYTE, count=len(value), initialiser=zero, data=bytes(value))
    if pointer_space(type_text) == 3:
        return LocalArg(element=_BYTE, count=value.size)
    raw = value if isinstance(value, bytes) else np.asarray(value).tobytes()
    width, scalar = vector_parts(type_text) if type_text.startswith("<") else (1, type_text)
    known = _SCALARS.get(scalar) or {4: "int32", 8: "int32", 16: "int32"}[len(raw)]  # a struct
    if scalar not in _SCALARS:
        width = len(raw) // 4
    values = np.frombuffer(raw, known)[:width]
    return ScalarArg(element=ElementType(scalar=known, width=width), values=tuple(values.tolist()))
