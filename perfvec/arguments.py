"""Kernel arguments as recipes: what to pass, written so that it regenerates byte for byte.

An argument is written as one string, on the command line, in suite files and in stored launches alike:

    buffer:DTYPE:COUNT[:INITIALISER][~SEED]     a buffer in global or constant memory
    DTYPE:VALUE[,VALUE...]                      a scalar, or a vector such as float32x4:1,2,3,4
    local:DTYPE:COUNT                           local memory
    image2d:FORMAT:WxH[:INITIALISER][~SEED]     an image; image3d, image1d_array ... take as many sizes as they need
    sampler:ADDRESSING:FILTER[:normalized]      a sampler, such as sampler:clamp_to_edge:linear

`DTYPE` is a NumPy name (float32, int32, uint8 ...) with an optional vector width (float32x4). `INITIALISER` is one of
the functions of `perfvec.initialisers.INITIALISERS`, such as `uniform(-1,1)`; it fills the raw channels of an image.
`FORMAT` is a format of `perfvec.image_format`, such as rgba_unorm_int8.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from perfvec.errors import LaunchError
from perfvec.image_format import ImageFormat
from perfvec.initialisers import INITIALISERS, PERIODIC, RANDOM_PERIOD, Initialiser

if TYPE_CHECKING:
    from numpy.typing import NDArray

DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
)  # fmt: skip
VECTOR_WIDTHS = (1, 2, 3, 4, 8, 16)
MAX_BUFFER_BYTES = 1 << 35


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """The element type of a buffer or scalar: a NumPy scalar type times a vector width."""

    scalar: str
    width: int = 1

    def __post_init__(self) -> None:
        if self.scalar not in DTYPES:
            raise LaunchError(f"unknown type {self.scalar!r}; allowed: {', '.join(DTYPES)}, each with x2 to x16")
        if self.width not in VECTOR_WIDTHS:
            raise LaunchError(f"vector width {self.width} is not one of {VECTOR_WIDTHS}")

    @property
    def num_lanes_stored(self) -> int:
        """Scalars that one element takes in memory: OpenCL stores 3-vectors as 4."""
        return 4 if self.width == 3 else self.width

    @property
    def num_bytes(self) -> int:
        """Bytes that one element takes in memory."""
        return np.dtype(self.scalar).itemsize * self.num_lanes_stored

    def __str__(self) -> str:
        return self.scalar if self.width == 1 else f"{self.scalar}x{self.width}"

    @classmethod
    def parse(cls, text: str) -> ElementType:
        """Read `float32` or `float32x4`.

        Raises:
            LaunchError: The text is neither.
        """
        match = re.fullmatch(r"([a-z]+\d+)(?:x(\d+))?", text.strip())
        if match is None:
            raise LaunchError(f"unknown type {text!r}; write a NumPy name such as float32, or float32x4 for a vector")
        return cls(scalar=match[1], width=int(match[2] or 1))


# ---- arguments --------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BufferArg:
    """A buffer in global or constant memory, by recipe or by given bytes.

    `data` (little-endian bytes, `num_bytes` long) wins over the initialiser where it is given.
    """

    element: ElementType
    count: int
    initialiser: Initialiser
    seed: int = 0
    data: bytes | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise LaunchError(f"a buffer needs at least one element, found count {self.count}")
        if self.num_bytes > MAX_BUFFER_BYTES:
            raise LaunchError(f"a buffer of {self.num_bytes} bytes is over the limit of {MAX_BUFFER_BYTES}")
        if self.data is not None and len(self.data) != self.num_bytes:
            raise LaunchError(f"a buffer of {self.num_bytes} bytes was given {len(self.data)} bytes of data")

    @property
    def num_bytes(self) -> int:
        """Size in bytes."""
        return self.count * self.element.num_bytes

    def one_period(self) -> BufferArg:
        """The part of the buffer that has to be generated: the rest of the contents repeats it."""
        lanes = self.element.num_lanes_stored
        repeats = self.data is None and self.initialiser.name in PERIODIC and self.count * lanes > RANDOM_PERIOD
        return replace(self, count=RANDOM_PERIOD // lanes) if repeats else self

    def array(self) -> NDArray[np.generic]:
        """Make the contents: a fresh, writable array of scalars, shape `(count * stored lanes,)`."""
        dtype = np.dtype(self.element.scalar)
        if self.data is not None:
            return np.frombuffer(self.data, dtype).copy()
        fill, _, _ = INITIALISERS[self.initialiser.name]
        rng = np.random.Generator(np.random.PCG64(self.seed))
        values = fill(rng, self.count * self.element.num_lanes_stored, dtype, *self.initialiser.parameters)
        return np.ascontiguousarray(values)

    def __str__(self) -> str:
        return f"buffer:{self.element}:{self.count}:{self.initialiser}~{self.seed}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArg:
    """A scalar or vector passed by value."""

    element: ElementType
    values: tuple[float | int, ...]

    def __post_init__(self) -> None:
        if len(self.values) != self.element.width:
            raise LaunchError(f"{self.element} takes {self.element.width} values, found {len(self.values)}")
        dtype = np.dtype(self.element.scalar)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            for value in self.values:
                if int(value) != value or not info.min <= value <= info.max:
                    raise LaunchError(
                        f"{value} is not a {self.element}: allowed are whole numbers {info.min} to {info.max}"
                    )

    def array(self) -> NDArray[np.generic]:
        """The value as stored in memory, shape `(stored lanes,)`; a 3-vector is padded to 4."""
        stored = np.zeros(self.element.num_lanes_stored, np.dtype(self.element.scalar))
        stored[: len(self.values)] = self.values
        return stored

    def __str__(self) -> str:
        is_integer = np.dtype(self.element.scalar).kind in "iu"
        return f"{self.element}:{','.join(str(int(v)) if is_integer else f'{v:.17g}' for v in self.values)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArg:
    """Local memory passed as an argument."""

    element: ElementType
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise LaunchError(f"local memory needs at least one element, found count {self.count}")

    @property
    def num_bytes(self) -> int:
        """Size in bytes."""
        return self.count * self.element.num_bytes

    def __str__(self) -> str:
        return f"local:{self.element}:{self.count}"


# By kind of image: how many sizes it has; the last one of an array counts its layers.
IMAGE_KINDS = {
    "image1d": 1, "image1d_array": 2, "image1d_buffer": 1, "image2d": 2, "image2d_array": 3, "image3d": 3,
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImageArg:
    """An image.

    Attributes:
        kind: OpenCL's word, a key of `IMAGE_KINDS`.
        format: Its texels.
        size: Width, height and depth as far as it has them, then layers.
        contents: Its texels in order, without padding; one element a texel.
    """

    kind: str
    format: ImageFormat
    size: tuple[int, ...]
    contents: BufferArg

    def __post_init__(self) -> None:
        if len(self.size) != IMAGE_KINDS[self.kind] or min(self.size) < 1:
            raise LaunchError(
                f"{self.kind} takes {IMAGE_KINDS[self.kind]} sizes of at least 1, such as 64x32; found {self.size}"
            )
        element = texel_element(self.format)
        if (self.contents.element, self.contents.count) != (element, math.prod(self.size)):
            raise LaunchError(
                f"{self.kind} of {math.prod(self.size)} texels {element} was given {self.contents.count} of "
                f"{self.contents.element}"
            )

    def __str__(self) -> str:
        _, _, recipe = str(self.contents).removeprefix("buffer:").split(":", 2)
        return f"{self.kind}:{self.format}:{'x'.join(map(str, self.size))}:{recipe}"


def texel_element(image_format: ImageFormat) -> ElementType:
    """The type that stands for a texel in an image's contents."""
    return ElementType(scalar=image_format.scalar, width=image_format.num_scalars)


ADDRESSING_MODES = {"none": 0, "clamp_to_edge": 2, "clamp": 4, "repeat": 6, "mirrored_repeat": 8}
FILTER_MODES = {"nearest": 0x10, "linear": 0x20}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerArg:
    """A sampler, in OpenCL's words."""

    addressing: str
    filter: str
    is_normalized: bool = False

    def __post_init__(self) -> None:
        if self.addressing not in ADDRESSING_MODES or self.filter not in FILTER_MODES:
            raise LaunchError(
                f"{self} is no sampler; addressing is one of {', '.join(ADDRESSING_MODES)}, the filter "
                f"{' or '.join(FILTER_MODES)}"
            )

    @property
    def value(self) -> int:
        """The bits that stand for it in OpenCL C: those of the constants `CLK_...`."""
        return ADDRESSING_MODES[self.addressing] | FILTER_MODES[self.filter] | self.is_normalized

    def __str__(self) -> str:
        return f"sampler:{self.addressing}:{self.filter}" + ":normalized" * self.is_normalized


Argument: TypeAlias = BufferArg | ScalarArg | LocalArg | ImageArg | SamplerArg


def contents_of(arg: Argument) -> BufferArg | None:
    """The bytes in global memory behind an argument: a buffer itself, or what an image holds."""
    if isinstance(arg, ImageArg):
        return arg.contents
    return arg if isinstance(arg, BufferArg) else None


def with_data(arg: Argument, data: bytes) -> Argument:
    """A buffer or image with other contents.

    Raises:
        LaunchError: They are of another size, or the argument is neither.
    """
    if isinstance(arg, ImageArg):
        return replace(arg, contents=replace(arg.contents, data=data))
    if isinstance(arg, BufferArg):
        return replace(arg, data=data)
    raise LaunchError(f"{arg} holds no data")


def default_initialiser(element: ElementType, count: int) -> Initialiser:
    """What a buffer holds unless told: floats uniform in [0, 1), integers uniform in [0, count) as far as they go."""
    dtype = np.dtype(element.scalar)
    if dtype.kind == "f":
        return Initialiser(name="uniform", parameters=(0.0, 1.0))
    return Initialiser(name="indices", parameters=(float(min(count, int(np.iinfo(dtype).max))),))


def parse_argument(text: str, *, position: int = 0) -> Argument:
    """Read an argument from its string form (see the module's text).

    Args:
        text: The argument as written.
        position: Its place in the argument list, from 0; the default seed of a buffer.

    Raises:
        LaunchError: The text does not follow the form, or a type, count, value or initialiser is not allowed.
    """
    kind, _, rest = text.strip().partition(":")
    if kind in _PARSERS:
        return _PARSERS[kind](rest, text, position)
    if kind in IMAGE_KINDS:
        return _parse_image(kind, rest, text, position)
    element = ElementType.parse(kind)
    if not rest:
        raise LaunchError(f"argument {text!r} has no value; write for example {element}:1")
    is_integer = np.dtype(element.scalar).kind in "iu"
    numbers = [_scalar(part, text, is_integer) for part in rest.split(",")]
    if len(numbers) == 1 and element.width > 1:
        numbers *= element.width
    return ScalarArg(element=element, values=tuple(numbers))


def _parse_buffer(rest: str, text: str, position: int) -> BufferArg:
    body, _, seed_text = rest.partition("~")
    dtype, _, tail = body.partition(":")
    count_text, _, init_text = tail.partition(":")
    element, count = ElementType.parse(dtype), _count(count_text, text)
    initialiser = Initialiser.parse(init_text) if init_text.strip() else default_initialiser(element, count)
    seed = _count(seed_text, text) if seed_text else position
    return BufferArg(element=element, count=count, initialiser=initialiser, seed=seed)


def _parse_local(rest: str, text: str, position: int) -> LocalArg:
    del position
    dtype, _, count = rest.partition(":")
    return LocalArg(element=ElementType.parse(dtype), count=_count(count, text))


def _parse_image(kind: str, rest: str, text: str, position: int) -> ImageArg:
    format_text, _, tail = rest.partition(":")
    image_format = ImageFormat.parse(format_text)
    sizes = re.split("[:~]", tail)[0]
    size = tuple(_count(part, text) for part in sizes.split("x"))
    recipe = f"{texel_element(image_format)}:{math.prod(size)}{tail.removeprefix(sizes)}"
    return ImageArg(kind=kind, format=image_format, size=size, contents=_parse_buffer(recipe, text, position))


def _parse_sampler(rest: str, text: str, position: int) -> SamplerArg:
    del position
    addressing, *more = rest.split(":")
    if len(more) not in (1, 2) or more[1:] not in ([], ["normalized"]):
        raise LaunchError(f"argument {text!r} should be sampler:ADDRESSING:FILTER, with :normalized where it is")
    return SamplerArg(addressing=addressing, filter=more[0], is_normalized=len(more) == 2)


_PARSERS: dict[str, Callable[[str, str, int], Argument]] = {
    "buffer": _parse_buffer,
    "local": _parse_local,
    "sampler": _parse_sampler,
}


def _count(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise LaunchError(
            f"{text!r} in argument {where!r} is not a whole number; the forms are buffer:DTYPE:COUNT[:INITIALISER]"
            "[~SEED], DTYPE:VALUE, local:DTYPE:COUNT and image2d:FORMAT:WxH[:INITIALISER][~SEED]"
        ) from error


def _scalar(text: str, where: str, is_integer: bool) -> float | int:
    try:
        return int(text, 0) if is_integer else float(text)
    except ValueError as error:
        wanted = "a whole number" if is_integer else "a number"
        raise LaunchError(f"{text!r} in argument {where!r} is not {wanted}") from error
