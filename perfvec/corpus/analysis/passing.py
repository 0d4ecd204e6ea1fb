"""What to pass for each parameter of a kernel, from what the analysis found, with the reasons."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from perfvec.arguments import (
    IMAGE_KINDS,
    VECTOR_WIDTHS,
    Argument,
    BufferArg,
    ElementType,
    LocalArg,
    SamplerArg,
    ScalarArg,
    default_initialiser,
    parse_argument,
)
from perfvec.corpus.analysis.extents import Extent, Extents
from perfvec.corpus.analysis.ranges import Setting
from perfvec.corpus.analysis.scalars import ScalarReason
from perfvec.corpus.analysis.symbolic import SymbolicKernel
from perfvec.corpus.analysis.wording import number_in_words, scalar_name
from perfvec.errors import UnsupportedError
from perfvec.initialisers import Initialiser
from perfvec.program.accesses import LOCAL
from perfvec.program.ir import Parameter, pointer_space, vector_parts

# OpenCL's names of scalar types, and LLVM's, as NumPy's.
_OPENCL = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "long": "int64", "ulong": "uint64", "half": "float16", "float": "float32", "double": "float64", "bool": "uint8",
    "size_t": "uint64",
}  # fmt: skip
_LLVM = {
    "i1": "uint8", "i8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64", "half": "float16",
    "float": "float32", "double": "float64",
}  # fmt: skip
_INTEGERS = {"float16": "int16", "float32": "int32", "float64": "int64"}  # of the same size
_FORMATS = {"f": "rgba_float", "i": "rgba_signed_int32", "ui": "rgba_unsigned_int32"}
_MOST_TEXELS = 4096  # along an axis
_MOST_IMAGE_TEXELS = 1 << 24
_DEFAULT_TEXELS = 64
_MOST_LOCAL_BYTES = 16 << 10  # of an argument; what is inferred to be larger is not trusted


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InferredArgument:
    """An argument with what it was taken for.

    Attributes:
        name: The parameter's name.
        argument: What to pass.
        role: In a word or two, such as "size" or "input".
        reason: Why, in words.
        min_bytes: The least size that the analysis found for a buffer or local memory; 0 for others and where unknown.
    """

    name: str
    argument: Argument
    role: str
    reason: str
    min_bytes: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What check runs have taught.

    Attributes:
        min_bytes: Least bytes of a buffer or local memory, by argument.
        min_texels: Least size of an image along every axis, by argument.
        data_limits: Greatest number in a buffer, by argument.
        trips_scale: Factor of the iterations of loops that scalars bound.
        size_limit: Greatest value of a scalar that bounds ids; 0 where there is none.
        local_skips: Local sizes that are left out.
        notes: What was repaired, in words.
    """

    min_bytes: Mapping[int, int] = field(default_factory=dict)
    min_texels: Mapping[int, int] = field(default_factory=dict)
    data_limits: Mapping[int, int] = field(default_factory=dict)
    trips_scale: float = 1.0
    size_limit: int = 0
    local_skips: int = 0
    notes: tuple[str, ...] = ()


def element_of(kernel: SymbolicKernel, index: int) -> ElementType:
    """The element type of a buffer or local memory: as declared, or what most accesses move where that is a struct."""
    parameter = kernel.kernel.parameters[index]
    declared = opencl_element(parameter.opencl_type.rstrip("*"))
    is_index = _is_used_as_index(kernel, index)
    if declared is not None and not (is_index and declared.scalar in _INTEGERS):
        return declared
    if declared is not None:
        return ElementType(scalar=_INTEGERS[declared.scalar], width=declared.width)
    moved = Counter(a.scalar for a in kernel.accesses if a.memory.index == index and a.scalar in _LLVM)
    # Integers first: random bits of floating-point numbers would be huge as integers, not the other way round.
    integers = [scalar for scalar in moved if scalar.startswith("i") and is_index]
    scalar = integers[0] if integers else moved.most_common(1)[0][0] if moved else "i8"
    return ElementType(scalar=_LLVM[scalar])


def _is_used_as_index(kernel: SymbolicKernel, index: int) -> bool:
    loads = [pointer for pointer, scalar in kernel.values.loads.values() if scalar.startswith("i")]
    return any(memory.index == index for pointer in loads for memory, _ in pointer)


def opencl_element(text: str) -> ElementType | None:
    """The element type that OpenCL's name stands for; None for structs and the like."""
    match = re.fullmatch(r"(\w+)(?: __attribute__\(\(ext_vector_type\((\d+)\)\)\))?", text)
    if match is None or match[1] not in _OPENCL:
        return None
    return ElementType(scalar=_OPENCL[match[1]], width=int(match[2] or 1))


def data_limits(kernel: SymbolicKernel, repairs: Repairs) -> dict[int, int]:
    """The greatest number that each buffer may hold, by its type and by what check runs have taught."""
    limits = {}
    for index, parameter in enumerate(kernel.kernel.parameters):
        if pointer_space(parameter.type) >= 0 and not parameter.byval and not parameter.opaque:
            dtype = np.dtype(element_of(kernel, index).scalar)
            most = int(np.iinfo(dtype).max) if dtype.kind in "iu" else 1 << 20
            limits[index] = min(most, 1 << 20, repairs.data_limits.get(index, most))
    return limits


@final
class Passing:
    """Makes the arguments of one launch."""

    def __init__(
        self,
        kernel: SymbolicKernel,
        extents: Extents,
        reasons: Mapping[tuple[str, int, int], ScalarReason],
        repairs: Repairs,
    ) -> None:
        self._kernel, self._extents, self._reasons, self._repairs = kernel, extents, reasons, repairs
        self._setting: Setting = extents.setting

    def arguments(self) -> tuple[InferredArgument, ...]:
        """One argument per parameter.

        Raises:
            UnsupportedError: A parameter is a struct of a size that no argument has.
        """
        return tuple(self._argument(index, p) for index, p in enumerate(self._kernel.kernel.parameters))

    def _argument(self, index: int, parameter: Parameter) -> InferredArgument:
        name = parameter.name[1:]
        if parameter.opaque == "sampler":
            return self._sampler(name)
        if parameter.opaque:
            return self._image(index, parameter, name)
        if parameter.byval:
            return self._struct(index, name)
        if pointer_space(parameter.type) >= 0:
            return self._memory(index, name, is_local=pointer_space(parameter.type) == LOCAL)
        return self._scalar(index, parameter, name)

    # ---- scalars ------------------------------------------------------------------------------------------------

    def _scalar(self, index: int, parameter: Parameter, name: str) -> InferredArgument:
        width, llvm = vector_parts(parameter.type)
        declared = opencl_element(parameter.opencl_type)
        element = declared if declared is not None else ElementType(scalar=_LLVM[llvm], width=width)
        values, reasons = [], []
        for lane in range(element.width):
            key = ("scalar", index, lane)
            values.append(self._fitting(self._setting.scalars[key], element))
            reasons.append(self._reasons[key])
        if element.width == 1:
            role, reason = reasons[0].role, reasons[0].reason
        else:
            role = ", ".join(dict.fromkeys(r.role for r in reasons))
            lanes = enumerate(reasons)
            reason = "; ".join(f"{scalar_name(self._kernel, index, lane)}: {r.reason}" for lane, r in lanes)
        argument = ScalarArg(element=element, values=tuple(values))
        return InferredArgument(name=name, argument=argument, role=role, reason=reason)

    @staticmethod
    def _fitting(value: object, element: ElementType) -> float | int:
        dtype = np.dtype(element.scalar)
        number = float(value)  # pyright: ignore[reportArgumentType]
        return number if dtype.kind == "f" else int(min(number, float(np.iinfo(dtype).max)))

    def _struct(self, index: int, name: str) -> InferredArgument:
        """A struct by value: the members that are read have values, the others are zero."""
        num_bytes = self._kernel.values.sizes.bytes_of(self._kernel.kernel.parameters[index].byval)
        element = next(
            (
                e
                for scalar in ("uint32", "uint64", "uint16", "uint8")
                for width in VECTOR_WIDTHS
                if (e := ElementType(scalar=scalar, width=width)).num_bytes == num_bytes and width != 3
            ),
            None,
        )
        if element is None:
            raise UnsupportedError(
                f"argument {name!r} of kernel {self._kernel.kernel.name!r} is a struct of {num_bytes} bytes by value; "
                "arguments have 1, 2, 4, 8 or 16 numbers of up to 8 bytes, so it cannot be passed"
            )
        content = bytearray(num_bytes)
        parts = []
        for (kind, argument, position), value in self._setting.scalars.items():
            if (kind, argument) == ("scalar", index):
                is_whole = value == int(value)
                raw = struct.pack("<i", int(value)) if is_whole else struct.pack("<f", float(value))
                content[position : position + 4] = raw
                reason = self._reasons[kind, argument, position].reason
                parts.append(f"byte {position} is {number_in_words(value)}: {reason}")
        values = np.frombuffer(bytes(content), element.scalar).tolist()
        return InferredArgument(
            name=name,
            argument=ScalarArg(element=element, values=tuple(values)),
            role="struct",
            reason="; ".join(parts) or "a struct of which nothing reaches an address or a bound",
        )

    # ---- buffers and local memory -------------------------------------------------------------------------------

    def _memory(self, index: int, name: str, *, is_local: bool) -> InferredArgument:
        element, extent = element_of(self._kernel, index), self._extents.of_argument(index)
        num_bytes, reason = (self._local_size if is_local else self._size)(index, extent, element)
        known = 0 if extent is None or math.isinf(extent.num_bytes) else int(extent.num_bytes)
        count = max(1, -(-num_bytes // element.num_bytes))
        if is_local:
            argument: Argument = LocalArg(element=element, count=count)
            return InferredArgument(name=name, argument=argument, role="local", reason=reason, min_bytes=known)
        role = self._role(index, extent)
        data = self._extents.roles.get(index)
        if data is not None:
            reason = f"{data.reason}; {reason}"
        argument = BufferArg(
            element=element,
            count=count,
            initialiser=self._initialiser(index, element, count, role),
            seed=index,
        )
        return InferredArgument(name=name, argument=argument, role=role, reason=reason, min_bytes=known)

    def _size(self, index: int, extent: Extent | None, element: ElementType) -> tuple[int, str]:
        repaired = self._repairs.min_bytes.get(index, 0)
        if extent is None:
            return max(repaired, element.num_bytes), "is not accessed in this launch"
        if math.isinf(extent.num_bytes):
            guess = element.num_bytes * math.prod(self._setting.global_size)
            return max(repaired, guess), f"{extent.reason}: how far is not known, an element for each work-item"
        found = max(int(extent.num_bytes), element.num_bytes)
        return max(repaired, found), extent.reason + (": as a check run showed" if repaired > found else "")

    def _local_size(self, index: int, extent: Extent | None, element: ElementType) -> tuple[int, str]:
        """As of a buffer; but what a work-group cannot have is a range that is too wide."""
        num_bytes, reason = self._size(index, extent, element)
        guess = 2 * element.num_bytes * math.prod(self._setting.local_size)
        if num_bytes <= max(guess, _MOST_LOCAL_BYTES) or index in self._repairs.min_bytes:
            return num_bytes, reason
        return guess, f"{extent.reason if extent else ''}: how far is not known, two elements for each work-item"

    def _role(self, index: int, extent: Extent | None) -> str:
        data = self._extents.roles.get(index)
        if data is not None:
            return data.role
        if extent is None:
            return "unused"
        names = {(True, False): "input", (False, True): "output", (True, True): "input and output"}
        return names[extent.is_read, extent.is_written]

    def _initialiser(self, index: int, element: ElementType, count: int, role: str) -> Initialiser:
        if role in ("counter", "output"):
            return Initialiser(name="constant", parameters=(0.0,))
        low, high = (float(end) for end in self._setting.data.get(index, (0, 0)))
        if role == "offsets":
            return Initialiser(name="offsets", parameters=(high,))
        if role == "index" and low == 0 and np.dtype(element.scalar).kind in "iu":
            return Initialiser(name="indices", parameters=(high + 1,))
        if role in ("index", "count"):
            return Initialiser(name="uniform", parameters=(low, high))
        if index in self._repairs.data_limits:
            return Initialiser(name="uniform", parameters=(0.0, float(self._repairs.data_limits[index])))
        return default_initialiser(element, count)

    # ---- images -------------------------------------------------------------------------------------------------

    def _image(self, index: int, parameter: Parameter, name: str) -> InferredArgument:
        kind = re.sub(r"_(ro|wo|rw)$", "", parameter.opaque)
        if kind not in IMAGE_KINDS:
            raise UnsupportedError(
                f"argument {name!r} of kernel {self._kernel.kernel.name!r} is {parameter.opaque}; allowed are "
                f"{', '.join(IMAGE_KINDS)}"
            )
        reached = self._extents.of_image(index, IMAGE_KINDS[kind])
        least = self._repairs.min_texels.get(index, 1)
        sides = [max(least, min(texels, _MOST_TEXELS)) if texels else _DEFAULT_TEXELS for texels in reached]
        while math.prod(sides) > _MOST_IMAGE_TEXELS and max(sides) > least:  # samplers keep reads inside
            sides[sides.index(max(sides))] = max(least, max(sides) // 2)
        size = tuple(sides)
        channel = next((texel.channel for texel in self._kernel.texels if texel.index == index), "f")
        text = f"{kind}:{_FORMATS[channel]}:{'x'.join(map(str, size))}~{index}"
        known = ", ".join(f"{texels or 'unknown'} along axis {axis}" for axis, texels in enumerate(reached))
        return InferredArgument(
            name=name, argument=parse_argument(text), role="image", reason=f"texels that are reached: {known}"
        )

    @staticmethod
    def _sampler(name: str) -> InferredArgument:
        return InferredArgument(
            name=name,
            argument=SamplerArg(addressing="clamp_to_edge", filter="nearest"),
            role="sampler",
            reason="keeps every coordinate inside",
        )
