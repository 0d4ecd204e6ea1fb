"""Images: reads through samplers, writes and queries, as native text.

An image's value in the executor is the address of its first texel; a header with its sizes lies before that. Texels
are held alike for all formats (`texels.py`). The record has one access for each read or write, of as many bytes as a
texel of the image's own format has; where a sampler filters, it is that of the lowest texel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from perfvec.program.accesses import GLOBAL, Access
from perfvec.program.builtins import OpaqueType, Scalar, ValueType, demangle
from perfvec.program.builtins.cl_types import FLOAT, INT
from perfvec.program.ir import Instruction, call_arguments
from perfvec.program.texels import HEADER_BYTES, HEADER_WORDS
from perfvec.program.writer import Place, Writer

# Axes of each kind of image; an array's layer is one more coordinate.
_AXES = {"image1d": 1, "image1d_buffer": 1, "image2d": 2, "image3d": 3}
# Functions of cl_khr_fp16 convert what is held.
_TO_HALF, _FROM_HALF = "_Z17convert_half4_rteDv4_f", "_Z14convert_float4Dv4_Dh"
_QUERY = re.compile(r"_Z\d+get_image_(width|height|depth|dim|array_size|channel_order|channel_data_type)\d")
# The header words that answer queries of another name.
_ANSWERS = {"dim": "width", "array_size": "layers"}

# Texels from this number on are none: the bits below tell the coordinates that the program must not read or write.
OUTSIDE = 1 << 34
_TOLD_BITS = 34


@final
@dataclass(frozen=True, slots=True)
class ImageCall:
    """The parts of the name of a read or write.

    Attributes:
        is_write: Whether it writes.
        axes: Axes of the image, 1 to 3.
        has_layers: Whether the coordinate after those of the axes is a layer.
        has_sampler: Whether a sampler is given.
        coordinates: Type of the coordinates.
        texel: Scalar of a texel's channels as they are held: float or int.
        is_half: Whether the program's channels are halves.
    """

    is_write: bool
    axes: int
    has_layers: bool
    has_sampler: bool
    coordinates: ValueType
    texel: Scalar
    is_half: bool

    @property
    def num_coordinates(self) -> int:
        """Coordinates of a texel, the layer among them."""
        return self.axes + self.has_layers

    @property
    def can_filter(self) -> bool:
        """Whether the sampler may ask for a mean of texels."""
        return self.has_sampler and self.coordinates.scalar == FLOAT and self.texel == FLOAT


@lru_cache(maxsize=256)
def image_call(callee: str) -> ImageCall | None:
    """The parts of a read's or write's mangled name; None for any other function, and for images of OpenCL 2.0."""
    match = re.match(r"_Z\d+(read|write)_image(f|h|i|ui)\d", callee)
    if match is None:
        return None
    image, *rest = demangle(callee).arguments
    assert isinstance(image, OpaqueType)
    kind, is_array = re.sub(r"_(ro|wo|rw)$", "", image.name).removesuffix("_array"), "_array" in image.name
    has_sampler = isinstance(rest[0], OpaqueType)
    coordinates = rest[has_sampler]
    if kind not in _AXES or not isinstance(coordinates, ValueType):
        return None
    texel = FLOAT if match[2] in ("f", "h") else INT
    return ImageCall(match[1] == "write", _AXES[kind], is_array, has_sampler, coordinates, texel, match[2] == "h")


def bits_of_coordinate(num_coordinates: int) -> int:
    """Bits in which a coordinate outside is told; it is cut off where it needs more."""
    return min(_TOLD_BITS // num_coordinates, 33)


def coordinates_outside(texel: int, callee: str) -> tuple[int, ...]:
    """The coordinates that the number of a texel from `OUTSIDE` on tells."""
    call = image_call(callee)
    assert call is not None
    bits = bits_of_coordinate(call.num_coordinates)
    told = texel - OUTSIDE
    return tuple((told >> bits * i & (1 << bits) - 1) - (1 << bits - 1) for i in range(call.num_coordinates))


def is_image_call(callee: str) -> bool:
    """Whether `write_image_call` knows the function."""
    return image_call(callee) is not None or _QUERY.match(callee) is not None


def index_name(callee: str) -> str:
    """The function that finds the texel of a read or write."""
    return f"pv.index.{callee}"


def texel_name(callee: str) -> str:
    """The function that reads or writes it."""
    return f"pv.texel.{callee}"


def header_word(name: str) -> int:
    """Where a header word lies, in words from the first texel."""
    return HEADER_WORDS.index(name) - HEADER_BYTES // 4


def texel_access(writer: Writer, instruction: Instruction, texel_bytes: int) -> tuple[Access, list[str]]:
    """The access of a read or write, and the lines that find its texel."""
    call = image_call(instruction.callee)
    assert call is not None
    passed, lines = _passed(writer, instruction)
    index = writer.fresh("t")
    lines.append(f"{index} = call i64 @{index_name(instruction.callee)}({passed})")
    pointer_type, pointer = call_arguments(instruction)[0]
    access = Access(
        pointer=pointer,
        pointer_type=pointer_type,
        space=GLOBAL,
        num_bytes=texel_bytes,
        align=1,
        is_write=call.is_write,
        offset=index,
        offset_bytes=texel_bytes,
    )
    return access, lines


def write_image_call(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    """Lines of a read, write or query."""
    del places
    passed, lines = _passed(writer, instruction)
    name = instruction.name or writer.fresh("r")
    query = _QUERY.match(instruction.callee)
    if query is not None:
        word = header_word(_ANSWERS.get(query[1], query[1]))
        return [
            *lines,
            f"{name}.p = getelementptr i32, {passed}, i64 {word}",
            f"{name} = load {instruction.type}, ptr {name}.p, align 4",
        ]
    call = image_call(instruction.callee)
    assert call is not None
    if call.is_half:
        writer.builtins.add(_FROM_HALF if call.is_write else _TO_HALF)
    if call.is_write:
        type_text, value = call_arguments(instruction)[-1]
        texel = f"{type_text} {writer.substitute(value)}"
        if call.is_half:
            lines.append(f"{name} = call <4 x float> @{_FROM_HALF}({texel})")
            texel = f"<4 x float> {name}"
        return [*lines, f"call void @{texel_name(instruction.callee)}({passed}, {texel})"]
    if call.is_half:
        return [
            *lines,
            f"{name}.wide = call <4 x float> @{texel_name(instruction.callee)}({passed})",
            f"{name} = call {instruction.type} @{_TO_HALF}(<4 x float> {name}.wide)",
        ]
    return [*lines, f"{name} = call {instruction.type} @{texel_name(instruction.callee)}({passed})"]


def _passed(writer: Writer, instruction: Instruction) -> tuple[str, list[str]]:
    """What the function of a call takes: real pointer to the first texel, coordinates, sampler; and lines for it."""
    writer.images.add(instruction.callee)
    (type_text, image), *rest = call_arguments(instruction)
    pointer = writer.fresh("m")
    lines = [f"{pointer} = call ptr @pv.image(ptr %.ctx, {type_text} {writer.substitute(image)})"]
    call = image_call(instruction.callee)
    if call is None:
        return f"ptr {pointer}", lines
    sampler = "0"
    if call.has_sampler:
        (type_text, value), *rest = rest
        sampler = writer.fresh("s")
        lines += [
            f"{sampler}.wide = ptrtoint {type_text} {writer.substitute(value)} to i64",
            f"{sampler} = trunc i64 {sampler}.wide to i32",
        ]
    type_text, value = rest[0]
    return f"ptr {pointer}, {type_text} {writer.substitute(value)}, i32 {sampler}", lines
