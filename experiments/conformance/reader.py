"""Reads OpenCL program tests: a program with a configuration, arguments and expected results in a comment of its own.

The format is that of piglit's program tester. The comment stands between `/*!` and `!*/`; it has one `[config]`
section and any number of `[test]` sections of `key: value` lines. `#` begins a comment; a backslash at the end of a
line joins the next one. An argument is `arg_in` (what to pass) or `arg_out` (what it must hold afterwards):

    N TYPE VALUE...                                      passed by value
    N buffer TYPE[COUNT] VALUE... [tolerance X [ulp]]    a buffer
    N image TYPE VALUE... image_type 2d image_width W ...
    N sampler normalized_coords B addressing_mode M filter_mode F

The values of a buffer may also be `repeat VALUE...`, `random` or `NULL`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from perfvec.arguments import ElementType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEADER = re.compile(r"/\*!(.*)!\*/", re.DOTALL)
_SECTION = re.compile(r"\s*\[\s*([\w ]+?)\s*\]\s*")
_ENTRY = re.compile(r"\s*(\w+)\s*:\s*(.*?)\s*")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|\d+)")
_TYPE = re.compile(r"(u?(?:char|short|int|long)|half|float|double)(\d*)")
_BUFFER = re.compile(r"(\w+)\[(\d+)\]")
_SCALARS = {
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


class TestFormatError(Exception):
    """A test does not follow the format."""

    __test__ = False  # for pytest, which collects classes by their names


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far a result may be from what is expected: in units in the last place of that, or in plain numbers."""

    amount: float = 0.0
    is_ulp: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An argument passed by value; `data` has the scalars as stored, a 3-vector padded to 4."""

    index: int
    element: ElementType
    data: NDArray[np.generic]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A buffer or what it must hold; `data` has the scalars as stored; None is a null pointer or local memory."""

    index: int
    element: ElementType
    count: int
    data: NDArray[np.generic] | None
    tolerance: Tolerance = Tolerance()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image or what it must hold: `data` are its channels, texel after texel."""

    index: int
    element: ElementType
    data: NDArray[np.generic]
    kind: str
    width: int
    height: int
    channel_order: str
    channel_type: str
    tolerance: Tolerance = Tolerance()

    @property
    def count(self) -> int:
        """Its texels."""
        return self.width * self.height


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """A sampler, in OpenCL's words without their prefixes: `CLAMP_TO_EDGE`, `NEAREST`."""

    index: int
    is_normalized: bool
    addressing: str
    filter: str


TestArgument: TypeAlias = Value | Buffer | Image | Sampler


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTest:
    """One `[test]` section: a launch and what it must leave behind."""

    name: str = ""
    kernel_name: str = ""
    dimensions: int = 1
    global_size: tuple[int, ...] = (1, 1, 1)
    local_size: tuple[int, ...] | None = (1, 1, 1)
    global_offset: tuple[int, ...] | None = None
    inputs: tuple[TestArgument, ...] = ()
    outputs: tuple[Buffer | Image, ...] = ()
    expects_failure: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFile:
    """A file of tests. One without `[test]` sections tests that the program builds, or does not.

    Attributes:
        source: The program.
        build_options: Passed to the compiler.
        version_min: Least version of OpenCL C, times ten.
        version_max: Greatest version, times ten; 0 if any.
        extensions: Extensions that the device must have.
        device_pattern: Regular expression for the devices that the tests are for; "" for all.
        needs_images: Whether the device must have images.
        expects_build_failure: Whether the compiler must refuse the program.
        tests: The tests.
    """

    source: str
    build_options: str = ""
    version_min: int = 10
    version_max: int = 0
    extensions: tuple[str, ...] = ()
    device_pattern: str = ""
    needs_images: bool = False
    expects_build_failure: bool = False
    tests: tuple[KernelTest, ...] = ()


def read_file(path: Path) -> ProgramFile:
    """Read a file of tests.

    Raises:
        TestFormatError: It does not follow the format.
    """
    try:
        return read_program(path.read_text(encoding="utf-8", errors="replace"))
    except TestFormatError as error:
        raise TestFormatError(f"{path}: {error}") from error


def read_program(source: str) -> ProgramFile:
    """Read the tests in a program's own text.

    Raises:
        TestFormatError: The comment is missing or does not follow the format.
    """
    header = _HEADER.search(source)
    if header is None:
        raise TestFormatError("no configuration between /*! and !*/")
    program, template = ProgramFile(source=source), KernelTest()
    tests: list[KernelTest] = []
    section = ""
    for line in _lines(header[1]):
        if match := _SECTION.fullmatch(line):
            section = match[1]
            if section == "test":
                tests.append(template)
        elif (match := _ENTRY.fullmatch(line)) is None:
            raise TestFormatError(f"neither a section nor `key: value`: {line!r}")
        elif section == "config" and match[1] in _CONFIG:
            program = _CONFIG[match[1]](program, match[2])
        elif section == "config" and match[1] in _TEST:
            template = replace(_TEST[match[1]](template, match[2]), name="")
        elif section == "test" and match[1] in _TEST:
            tests[-1] = _TEST[match[1]](tests[-1], match[2])
        elif (section, match[1]) != ("config", "name"):
            raise TestFormatError(f"key {match[1]!r} is not one of section [{section}]")
    return replace(program, tests=tuple(tests))


def _lines(text: str) -> Iterator[str]:
    """Lines without comments, joined where a backslash says so; an empty line ends even that."""
    pending = ""
    for raw in text.splitlines():
        line = raw.partition("#")[0].rstrip()
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        line = pending + line
        pending = ""
        if line.strip():
            yield line
    if pending.strip():
        yield pending


# ---- keys -------------------------------------------------------------------------------------------------------


def _truth(text: str) -> bool:
    if text not in _TRUTHS:
        raise TestFormatError(f"{text!r} is not one of {', '.join(_TRUTHS)}")
    return _TRUTHS[text]


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(_integer(word) for word in text.split())
    if len(sizes) != 3:
        raise TestFormatError(f"{text!r} should be three numbers")
    return sizes


def _sizes_or_null(text: str) -> tuple[int, ...] | None:
    return None if text in ("NULL", "null") else _sizes(text)


_CONFIG: dict[str, Callable[[ProgramFile, str], ProgramFile]] = {
    "clc_version_min": lambda program, text: replace(program, version_min=_integer(text)),
    "clc_version_max": lambda program, text: replace(program, version_max=_integer(text)),
    "device_regex": lambda program, text: replace(program, device_pattern=text),
    "require_device_extensions": lambda program, text: replace(program, extensions=tuple(text.split())),
    "build_options": lambda program, text: replace(program, build_options=text),
    "expect_build_fail": lambda program, text: replace(program, expects_build_failure=_truth(text)),
    "need_image_support": lambda program, text: replace(program, needs_images=_truth(text)),
}
_TEST: dict[str, Callable[[KernelTest, str], KernelTest]] = {
    "name": lambda test, text: replace(test, name=text),
    "kernel_name": lambda test, text: replace(test, kernel_name=text),
    "expect_test_fail": lambda test, text: replace(test, expects_failure=_truth(text)),
    "dimensions": lambda test, text: replace(test, dimensions=_integer(text)),
    "global_size": lambda test, text: replace(test, global_size=_sizes(text)),
    "local_size": lambda test, text: replace(test, local_size=_sizes_or_null(text)),
    "global_offset": lambda test, text: replace(test, global_offset=_sizes_or_null(text)),
    "arg_in": lambda test, text: replace(test, inputs=(*test.inputs, read_argument(text))),
    "arg_out": lambda test, text: replace(test, outputs=(*test.outputs, _output(text))),
}


# ---- arguments --------------------------------------------------------------------------------------------------


def _output(text: str) -> Buffer | Image:
    argument = read_argument(text)
    if not isinstance(argument, Buffer | Image) or argument.data is None:
        raise TestFormatError(f"{text!r} cannot be a result; buffers and images with values can")
    return argument


def read_argument(text: str) -> TestArgument:
    """Read what follows `arg_in:` or `arg_out:`.

    Raises:
        TestFormatError: It does not follow the format.
    """
    index, *words = text.split()
    if not index.isdigit() or len(words) < 2:
        raise TestFormatError(f"{text!r} is no argument; it should be a number, a type and a value")
    make = _KINDS.get(words[0])
    if make is not None:
        return make(int(index), words[1:])
    element = read_element(words[0])
    return Value(index=int(index), element=element, data=_contents(words[1:], element, 1))


def _buffer(index: int, words: list[str]) -> Buffer:
    match = _BUFFER.fullmatch(words[0])
    if match is None:
        raise TestFormatError(f"{words[0]!r} should be a type and a count, such as float4[8]")
    element, count = read_element(match[1]), int(match[2])
    values, tolerance = _split_tolerance(words[1:])
    if values in (["NULL"], ["null"]):
        return Buffer(index=index, element=element, count=count, data=None)
    data = _contents(values, element, count)
    return Buffer(index=index, element=element, count=count, data=data, tolerance=tolerance)


def _image(index: int, words: list[str]) -> Image:
    words, tolerance = _split_tolerance(words)
    start = words.index("image_type") if "image_type" in words else len(words)
    try:
        facts = dict(zip(words[start::2], words[start + 1 :: 2], strict=True))
        width, height = int(facts["image_width"]), int(facts.get("image_height", 1))
        element = read_element(words[0])
        return Image(
            index=index,
            element=element,
            data=_contents(words[1:start], element, width * height),
            kind=facts["image_type"].lower(),
            width=width,
            height=height,
            channel_order=facts["image_channel_order"].upper(),
            channel_type=facts["image_channel_data_type"].upper(),
            tolerance=tolerance,
        )
    except (KeyError, ValueError) as error:
        raise TestFormatError(f"image argument {index}: {error!r} in {' '.join(words[start:])!r}") from error


def _sampler(index: int, words: list[str]) -> Sampler:
    facts = dict(zip(words[::2], words[1::2], strict=False))
    try:
        return Sampler(
            index=index,
            is_normalized=_truth(facts["normalized_coords"]),
            addressing=facts["addressing_mode"].upper(),
            filter=facts["filter_mode"].upper(),
        )
    except KeyError as error:
        raise TestFormatError(f"sampler argument {index} has no {error}") from error


_KINDS: dict[str, Callable[[int, list[str]], TestArgument]] = {
    "buffer": _buffer,
    "image": _image,
    "sampler": _sampler,
}


def read_element(text: str) -> ElementType:
    """Read an OpenCL C type, such as `uchar16`.

    Raises:
        TestFormatError: It is no type of the format.
    """
    match = _TYPE.fullmatch(text)
    if match is None:
        raise TestFormatError(f"{text!r} is no type that an argument can have")
    sign, name = ("u", match[1][1:]) if match[1].startswith("u") else ("", match[1])
    return ElementType(scalar=sign + _SCALARS[name], width=int(match[2] or 1))


def _split_tolerance(words: list[str]) -> tuple[list[str], Tolerance]:
    if "tolerance" not in words:
        return words, Tolerance()
    place = words.index("tolerance")
    amount, *unit = words[place + 1 :]
    return words[:place], Tolerance(amount=_float(amount), is_ulp=unit == ["ulp"])


def _contents(words: list[str], element: ElementType, count: int) -> NDArray[np.generic]:
    """The scalars of `count` elements as stored; where too few are given, they must be said to repeat."""
    dtype = np.dtype(element.scalar)
    total = count * element.width
    if words in (["random"], ["RANDOM"]):
        return np.random.Generator(np.random.PCG64(0)).integers(0, 256, total * dtype.itemsize, np.uint8).view(dtype)
    repeats = words[0] in ("repeat", "REPEAT")
    numbers = words[1:] if repeats else words
    if not numbers or (len(numbers) != total and not repeats):
        raise TestFormatError(f"{len(numbers)} numbers for {count} of {element}")
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # what is too large for a half is infinite
            values = np.array([_float(word) for word in numbers], np.float64).astype(dtype)
    else:
        mask = (1 << 8 * dtype.itemsize) - 1
        unsigned = np.array([_integer(word) & mask for word in numbers], f"uint{8 * dtype.itemsize}")
        values = unsigned.view(dtype)
    stored = np.zeros((count, element.num_lanes_stored), dtype)
    stored[:, : element.width] = np.resize(values, total).reshape(count, element.width)
    return stored.reshape(-1)


def _integer(text: str) -> int:
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise TestFormatError(f"{text!r} is no whole number")
    digits = match[2]
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    return int(match[1] + digits, 8 if is_octal else 0)


def _float(text: str) -> float:
    try:
        return float.fromhex(text) if re.match(r"[-+]?0[xX]", text) else float(text)
    except ValueError as error:
        raise TestFormatError(f"{text!r} is no number") from error
    except OverflowError:
        return math.inf
