"""Runs the definitions of built-ins over arrays: JIT of `define_builtins` with one small loop for each built-in."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from perfvec.program.builtins import ValueType, define_builtins, defined_name, demangle

DTYPES: dict[str, Any] = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
}
LETTERS = dict(zip(DTYPES, ("c", "h", "s", "t", "i", "j", "l", "m", "Dh", "f", "d"), strict=True))
INTEGERS = tuple(DTYPES)[:8]
_BY_LLVM = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
_BY_LLVM |= {name: DTYPES[name] for name in ("half", "float", "double")}
_DEFINITION = re.compile(r"^define linkonce_odr (?:signext |zeroext )?(.+?) @([\w.]+)\((.*)\) ", re.MULTILINE)
_TYPE = re.compile(r"<(\d+) x (\w+)>|(\w+)")


def mangle(base: str, *types: str) -> str:
    """A built-in's mangled name from OpenCL type names; a pointer to private memory is written `float4*`."""
    text, seen = f"_Z{len(base)}{base}", []
    for name in types:
        match = re.fullmatch(r"([a-z]+)(\d*)(\*?)", name)
        assert match is not None
        mangled = LETTERS[match[1]]
        if match[2]:
            vector = f"Dv{match[2]}_{mangled}"
            if vector in seen:
                index = seen.index(vector)
                mangled = f"S{index - 1 if index else ''}_"
            else:
                seen.append(vector)
                mangled = vector
        text += "P" * bool(match[3]) + mangled
    return text


def integer_range(name: str) -> tuple[int, int]:
    """Least and greatest value of an OpenCL integer type."""
    info = np.iinfo(DTYPES[name])
    return int(info.min), int(info.max)


def compiled(names: Iterable[str]) -> Compiled:
    """Compile built-ins; the same set is compiled once."""
    return _compiled(tuple(names))


@lru_cache(maxsize=64)
def _compiled(names: tuple[str, ...]) -> Compiled:
    return Compiled(names)


def call(name: str, *arguments: Any) -> Any:
    """Compile one built-in and call it; see `Compiled.call`."""
    return compiled((name,)).call(name, *arguments)


class Compiled:
    """Built-ins in native code, each callable over arrays."""

    def __init__(self, names: tuple[str, ...]) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        text = define_builtins(names)
        definitions = {match[2]: (match[1], match[3]) for match in _DEFINITION.finditer(text)}
        self._types = {
            name: (_split(definitions[defined_name(name)][0]), _parameter_types(definitions[defined_name(name)][1]))
            for name in names
        }
        loops = [_loop(name, definitions[defined_name(name)][0], self._types[name][1]) for name in names]
        module = llvm.parse_assembly("\n".join([text, *loops]))
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
        )
        options = llvm.PipelineTuningOptions(speed_level=2)
        options.loop_vectorization = options.loop_unrolling = options.slp_vectorization = (
            False  # only to compile faster
        )
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a built-in for each row of its arguments.

        Args:
            name: Mangled name.
            arguments: Arrays of shape `(rows,)` or `(rows, width)`; converted to the argument's type.

        Returns:
            Array of results; two arrays where the built-in also stores through a pointer.
        """
        results, parameters = self._types[name]
        wanted = [t for t in demangle(name).arguments if isinstance(t, ValueType)]
        buffers = [
            _padded(np.asarray(a, dtype=DTYPES[t.scalar.name]), width)
            for a, t, (_, width) in zip(arguments, wanted, parameters, strict=True)
        ]
        rows = len(buffers[0])
        outputs = [np.zeros((rows, _stride(width)), dtype=_BY_LLVM[scalar]) for scalar, width in results]
        address = self._engine.get_function_address(f"loop.{name}")
        pointers = [array.ctypes.data for array in (*buffers, *outputs)]
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64)(address)(*pointers, rows)
        trimmed = [
            array[:, 0] if width == 1 else array[:, :width] for array, (_, width) in zip(outputs, results, strict=True)
        ]
        return trimmed[0] if len(trimmed) == 1 else tuple(trimmed)


def _split(text: str) -> list[tuple[str, int]]:
    """LLVM types in a text, as scalar and width."""
    return [(m[2] or m[3], int(m[1] or 1)) for m in _TYPE.finditer(text)]


def _parameter_types(text: str) -> list[tuple[str, int]]:
    return _split(re.sub(r"%a\d+", "", text))


def _stride(width: int) -> int:
    return 4 if width == 3 else width


def _padded(array: Any, width: int) -> Any:
    """Rows as OpenCL stores them: a vector of three takes the room of four."""
    array = array.reshape(-1, width)
    padded = np.zeros((len(array), _stride(width)), dtype=array.dtype)
    padded[:, :width] = array
    return padded


def _llvm(scalar: str, width: int) -> str:
    return scalar if width == 1 else f"<{width} x {scalar}>"


def _row(scalar: str, width: int, base: str, name: str) -> str:
    """Address of the current row."""
    row_bytes = np.dtype(_BY_LLVM[scalar]).itemsize * _stride(width)
    return f"  %{name}.o = mul i64 %row, {row_bytes}\n  %{name} = getelementptr i8, ptr {base}, i64 %{name}.o"


def _loop(name: str, returned: str, parameters: list[tuple[str, int]]) -> str:
    results = _split(returned)
    pointers = [f"ptr %p{index}" for index in range(len(parameters) + len(results))]
    body = []
    for index, (scalar, width) in enumerate(parameters):
        body.append(_row(scalar, width, f"%p{index}", f"in{index}"))
        body.append(f"  %x{index} = load {_llvm(scalar, width)}, ptr %in{index}, align 1")
    arguments = ", ".join(f"{_llvm(scalar, width)} %x{index}" for index, (scalar, width) in enumerate(parameters))
    body.append(f"  %result = call {returned} @{defined_name(name)}({arguments})")
    for index, (scalar, width) in enumerate(results):
        part = "%result"
        if len(results) > 1:
            part = f"%part{index}"
            body.append(f"  {part} = extractvalue {returned} %result, {index}")
        body.append(_row(scalar, width, f"%p{len(parameters) + index}", f"out{index}"))
        body.append(f"  store {_llvm(scalar, width)} {part}, ptr %out{index}, align 1")
    return "\n".join(
        [
            f"define void @loop.{name}({', '.join(pointers)}, i64 %rows) {{",
            "entry:\n  br label %body\nbody:",
            "  %row = phi i64 [ 0, %entry ], [ %next, %body ]",
            *body,
            "  %next = add i64 %row, 1\n  %more = icmp slt i64 %next, %rows",
            "  br i1 %more, label %body, label %exit\nexit:\n  ret void\n}",
        ]
    )


def undefined_symbols(names: Iterable[str], *, triple: str, cpu: str) -> set[str]:
    """What an ELF object made from the definitions expects from its process.

    Args:
        names: Mangled names of built-ins.
        triple: Target of the object; its system must use ELF.
        cpu: LLVM's name of the processor.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    module = llvm.parse_assembly(define_builtins(names))
    module.triple, module.data_layout = triple, str(machine.target_data)
    return _undefined_in_elf(machine.emit_object(module))


def _undefined_in_elf(data: bytes) -> set[str]:
    """Names in the symbol table with no section (ELF-64, little-endian)."""
    header_start = struct.unpack_from("<Q", data, 40)[0]
    size, count = struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, header_start + size * index) for index in range(count)]
    table = next(header for header in headers if header[1] == 2)  # SHT_SYMTAB
    names_at = headers[table[6]][4]
    found = set()
    for place in range(table[4], table[4] + table[5], 24):
        name, _, _, section = struct.unpack_from("<IBBH", data, place)
        if name and not section:
            found.add(data[names_at + name : data.index(b"\0", names_at + name)].decode())
    return found
