"""printf of OpenCL C 1.2: what a call leaves in the record, and the text that comes of it.

In native code a call stores the number of its place in the kernel and its arguments as they are; formats are read
afterwards. What a kernel may print is bounded: the record's bytes here, and the text's in `printed`.

Source:
    OpenCL 1.2 specification, section 6.12.13; checked against PoCL by tests/program/test_printf.py.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from perfvec.program.driver import word
from perfvec.program.ir import Instruction, call_arguments, pointer_space, vector_parts
from perfvec.program.writer import Place, PrintfSite, Writer

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORD_BYTES = 1 << 20
MOST_TEXT = 1 << 20  # characters
_MOST_WIDTH = 4095  # what C asks of a conversion
_HEADER_BYTES = 8
_CONSTANT = 2
_KINDS = {"half": "e", "float": "f", "double": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q"}  # struct's letters

_DIRECTIVE = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<dot>\.?)(?P<precision>(?<=\.)\d*|)(?:v(?P<vector>\d+))?"
    r"(?P<length>hh|hl|h|l)?(?P<conversion>[a-zA-Z])"
)
_INTEGER, _FLOAT = "diouxX", "aAeEfFgG"
_ALLOWED = (
    "allowed are %%, and % with flags -+ #0, a width, a precision, v2 v3 v4 v8 v16, hh h hl l, and one of d i o u x X "
    "a A e E f F g G c s p"
)
_LENGTH_BITS = {"hh": 8, "h": 16, "": 32, "hl": 32, "l": 64}

ReadText: TypeAlias = "Callable[[int], bytes | None]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One conversion of a format."""

    flags: str
    width: int
    precision: int | None
    vector: int
    length: str
    conversion: str


class _FormatError(ValueError):
    """A format that OpenCL C does not allow, or that its arguments do not fit."""


# ---- formats ----------------------------------------------------------------------------------------------------


def parse_format(text: str) -> list[str | Directive]:
    """Take a format apart into text and conversions.

    Raises:
        ValueError: A conversion is not one of OpenCL C; the message says what is allowed.
    """
    parts: list[str | Directive] = []
    place = 0
    while (at := text.find("%", place)) >= 0:
        parts.append(text[place:at])
        if text.startswith("%%", at):
            parts.append("%")
            place = at + 2
            continue
        match = _DIRECTIVE.match(text, at)
        if match is None:
            raise _FormatError(f"{text[at : at + 12]!r} is no conversion; {_ALLOWED}")
        parts.append(_directive(match))
        place = match.end()
    return [part for part in (*parts, text[place:]) if part]


def _directive(match: re.Match[str]) -> Directive:
    conversion, length, vector = match["conversion"], match["length"] or "", match["vector"]
    bad = (
        conversion not in _INTEGER + _FLOAT + "csp"
        or (vector is not None and (vector not in ("2", "3", "4", "8", "16") or conversion in "csp"))
        or (length == "hl" and vector is None)
        or (length and conversion in "csp")
    )
    if bad:
        raise _FormatError(f"{match[0]!r} is no conversion; {_ALLOWED}")
    width, precision = int(match["width"] or 0), int(match["precision"] or 0)
    if max(width, precision) > _MOST_WIDTH:
        raise _FormatError(f"{match[0]!r} is wider than {_MOST_WIDTH}, which is the most allowed")
    return Directive(
        flags=match["flags"],
        width=width,
        precision=precision if match["dot"] else None,
        vector=int(vector or 1),
        length=length,
        conversion=conversion,
    )


def check_format(parts: Sequence[str | Directive], types: Sequence[str]) -> None:
    """Refuse a format that does not fit its arguments.

    Args:
        parts: The format.
        types: LLVM types of the arguments.

    Raises:
        ValueError: It does not; the message says why.
    """
    directives = [part for part in parts if isinstance(part, Directive)]
    if len(directives) > len(types):
        raise _FormatError(f"it has {len(directives)} conversions; the number of arguments is {len(types)}")
    for directive, type_text in zip(directives, types, strict=False):
        width, scalar = vector_parts(type_text)
        space = pointer_space(type_text)
        name = f"%{f'v{directive.vector}' if directive.vector > 1 else ''}{directive.length}{directive.conversion}"
        kind = "pointer" if space >= 0 else "integer" if scalar.startswith("i") else "float"
        wanted = _wanted(directive.conversion)
        if kind != wanted or width != directive.vector:
            shape = f"vector of {directive.vector}" if directive.vector > 1 else "scalar"
            raise _FormatError(
                f"{name} takes a value of kind {wanted}, {shape}; the argument has LLVM type {type_text}"
            )
        if directive.conversion == "s" and space != _CONSTANT:
            raise _FormatError(f"%s takes a string literal only; the argument has LLVM type {type_text}")


def _wanted(conversion: str) -> str:
    return "float" if conversion in _FLOAT else "pointer" if conversion in "sp" else "integer"


# ---- values -----------------------------------------------------------------------------------------------------


def _pad(directive: Directive, sign: str, body: str, *, may_zero: bool = True) -> str:
    """Bring a number to its width."""
    if "0" in directive.flags and "-" not in directive.flags and may_zero:
        body = body.zfill(directive.width - len(sign))
        return sign + body
    text = sign + body
    return text.ljust(directive.width) if "-" in directive.flags else text.rjust(directive.width)


def _sign(directive: Directive, is_negative: bool) -> str:
    return "-" if is_negative else "+" if "+" in directive.flags else " " if " " in directive.flags else ""


def _integer(directive: Directive, value: int, bits: int) -> str:
    conversion, precision = directive.conversion, directive.precision
    bits = min(bits, bits if directive.vector > 1 and not directive.length else _LENGTH_BITS[directive.length])
    value &= (1 << bits) - 1
    sign, prefix = "", ""
    if conversion in "di":
        value -= (value >> (bits - 1)) << bits
        sign = _sign(directive, value < 0)
    digits = format(abs(value), {"o": "o", "x": "x", "X": "X"}.get(conversion, "d"))
    digits = "" if value == 0 and precision == 0 else digits.rjust(precision or 0, "0")
    if "#" in directive.flags and conversion == "o" and not digits.startswith("0"):
        digits = f"0{digits}"
    if "#" in directive.flags and conversion in "xX" and value:
        prefix = f"0{conversion}"
    return _pad(directive, sign + prefix, digits, may_zero=precision is None)


def _float(directive: Directive, value: float) -> str:
    conversion = directive.conversion
    sign = _sign(directive, math.copysign(1.0, value) < 0 and not math.isnan(value))
    magnitude = abs(value)
    if not math.isfinite(value):
        body = "nan" if math.isnan(value) else "inf"
    elif conversion in "aA":
        body = _hexadecimal(magnitude, directive.precision, "#" in directive.flags)
    else:
        precision = 6 if directive.precision is None else directive.precision
        body = f"%{'#' * ('#' in directive.flags)}.{precision}{conversion.lower()}" % magnitude
    body = body.upper() if conversion.isupper() else body
    if body[:2] in ("0x", "0X"):
        sign, body = sign + body[:2], body[2:]
    return _pad(directive, sign, body, may_zero=math.isfinite(value))


def _hexadecimal(magnitude: float, precision: int | None, has_point: bool) -> str:
    """`%a` of C: the leading digit is 1 for all but zero and subnormal doubles."""
    bits = struct.unpack("<Q", struct.pack("<d", magnitude))[0]
    exponent, digits = bits >> 52, bits & ((1 << 52) - 1) | (bool(bits >> 52) << 52)
    exponent = exponent - 1023 if exponent else -1022 if digits else 0
    if precision is not None and precision < 13:
        shift = 4 * (13 - precision)
        rest, digits = digits & ((1 << shift) - 1), digits >> shift
        digits += rest > 1 << (shift - 1) or (rest == 1 << (shift - 1) and digits & 1)
        digits <<= shift
    text = f"{digits & ((1 << 52) - 1):013x}"
    text = text.rstrip("0") if precision is None else text.ljust(precision, "0")[:precision]
    point = "." if text or has_point else ""
    return f"0x{digits >> 52}{point}{text}p{exponent:+d}"


def _scalar(directive: Directive, value: float | int, bits: int, read_text: ReadText) -> str:
    conversion = directive.conversion
    if conversion in _FLOAT:
        return _float(directive, float(value))
    value = int(value)
    if conversion in _INTEGER:
        return _integer(directive, value, bits)
    if conversion == "c":
        return _pad(directive, "", chr(value & 0xFF), may_zero=False)
    if conversion == "p":
        return _pad(directive, "", f"{value & ((1 << 64) - 1):#x}", may_zero=False)
    text = b"(null)" if value == 0 else read_text(value & ((1 << 64) - 1))
    text = b"(not a string literal)" if text is None else text
    return _pad(directive, "", text.decode("latin-1")[: directive.precision], may_zero=False)


# ---- records ----------------------------------------------------------------------------------------------------

PRINTF_IR = f"""
define internal ptr @pv.printf(ptr %.ctx, i64 %bytes, i32 %site) {{
  %used.p = {word("printf_used")}
  %used = load i64, ptr %used.p
  %cut.p = {word("printf_cut")}
  %cut = load i64, ptr %cut.p
  %buffer.p = {word("printf")}
  %buffer = load ptr, ptr %buffer.p
  %end = add i64 %used, %bytes
  %fits = icmp ule i64 %end, {RECORD_BYTES}
  %was.cut = icmp ne i64 %cut, 0
  %at = select i1 %fits, i64 %used, i64 {RECORD_BYTES}
  %place = getelementptr i8, ptr %buffer, i64 %at
  %room = xor i1 %was.cut, true
  %is.kept = and i1 %fits, %room
  br i1 %is.kept, label %keep, label %drop
keep:
  store i64 %end, ptr %used.p
  store i32 %site, ptr %place, align 1
  ret ptr %place
drop:
  %cut.next = add i64 %cut, 1
  store i64 %cut.next, ptr %cut.p
  %scrap = getelementptr i8, ptr %buffer, i64 {RECORD_BYTES}
  ret ptr %scrap
}}
"""


def record_buffer(sites: Sequence[PrintfSite]) -> NDArray[np.uint8]:
    """Room for the record, and behind it for the largest call that has no place in it."""
    return np.zeros(RECORD_BYTES + max(site.num_bytes for site in sites), np.uint8)


def write_printf(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    """Lines of a call of printf, and its place in the kernel.

    The result is -1 where the format is wrong. Which literal the format is may be known at run time only; then it is
    compared with those that would be.
    """
    del places
    arguments = call_arguments(instruction)
    offset, record = _HEADER_BYTES, writer.fresh("f")
    lines, offsets = [], []
    for number, (type_text, value) in enumerate(arguments):
        stored, name = type_text, writer.substitute(value)
        if pointer_space(type_text) >= 0:
            stored, name = "i64", f"{record}.{number}.i"
            lines.append(f"{name} = ptrtoint {type_text} {writer.substitute(value)} to i64")
        lines += [
            f"{record}.{number} = getelementptr i8, ptr {record}, i64 {offset}",
            f"store {stored} {name}, ptr {record}.{number}, align 1",
        ]
        offsets.append(offset)
        offset += writer.sizes.stored_bytes(stored)
    site = PrintfSite(
        line=instruction.line,
        types=tuple(type_text for type_text, _ in arguments[1:]),
        offsets=tuple(offsets),
        num_bytes=offset,
    )
    head = f"{record} = call ptr @pv.printf(ptr %.ctx, i64 {offset}, i32 {len(writer.printf_sites)})"
    writer.printf_sites.append(site)
    lines = [head, *lines]
    if not instruction.name:
        return lines
    return [*lines, *_result(writer, instruction.name, f"{record}.0.i", site)]


def _result(writer: Writer, name: str, address: str, site: PrintfSite) -> list[str]:
    result, lines = "0", []
    for number, (literal, text) in enumerate(writer.literals.items()):
        if not _complaint(text, site.types):
            continue
        lines += [
            f"{address}.{number} = icmp eq i64 {address}, {literal}",
            f"{address}.{number}.r = select i1 {address}.{number}, i32 -1, i32 {result}",
        ]
        result = f"{address}.{number}.r"
    return [*lines, f"{name} = add i32 0, {result}"]


def _complaint(text: bytes, types: Sequence[str]) -> str:
    """What is wrong with a format; "" if nothing is."""
    try:
        check_format(parse_format(text.decode("latin-1")), types)
    except _FormatError as error:
        return str(error)
    return ""


def string_literals(constants: Mapping[int, str]) -> dict[int, bytes]:
    """The contents of those constants that are strings, up to their first zero.

    Args:
        constants: LLVM initialisers by the address of the constant.
    """
    found = {}
    for address, initialiser in constants.items():
        if match := re.match(r'c"([^"]*)"', initialiser):
            data = re.sub(
                rb"\\([0-9A-Fa-f]{2})", lambda m: bytes.fromhex(m[1].decode()), match[1].encode("latin-1", "replace")
            )
            found[address] = data.split(b"\0")[0]
        elif initialiser == "zeroinitializer":
            found[address] = b""
    return found


def printed(
    record: NDArray[np.uint8], sites: Sequence[PrintfSite], *, num_cut: int, read_text: ReadText, most: int = MOST_TEXT
) -> str:
    """The text that calls of printf come to, in the order of execution.

    Args:
        record: What native code has stored; uint8, shape `(bytes,)`.
        sites: The calls' places in the kernel.
        num_cut: Calls for which the record had no room.
        read_text: The string literal at an address; None if there is none.
        most: Characters after which the rest of the calls is only counted.

    Returns:
        The text; a last line says how many calls are left out, if any are. A wrong format is explained where it is met
        first.
    """
    pieces: list[str] = []
    length = 0
    data, formats = record.tobytes(), _Formats(sites, read_text)
    for site, at in _calls(data, sites):
        if length >= most:
            num_cut += 1
            continue
        pieces.append(formats.text(data, site, at))
        length += len(pieces[-1])
    text = "".join(pieces).encode("latin-1", "replace").decode("utf-8", "replace")
    if not num_cut:
        return text
    line_end = "\n" * (bool(text) and not text.endswith("\n"))
    return f"{text}{line_end}[printf: {num_cut:,} more calls are left out; {length:,} characters are shown]\n"


def _calls(data: bytes, sites: Sequence[PrintfSite]) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(data):
        (site,) = struct.unpack_from("<i", data, at)
        yield site, at
        at += sites[site].num_bytes


@final
class _Formats:
    """Formats as they have been met: by place in the kernel and address."""

    def __init__(self, sites: Sequence[PrintfSite], read_text: ReadText) -> None:
        self._sites, self._read_text = sites, read_text
        self._known: dict[tuple[int, int], list[str | Directive]] = {}

    def text(self, data: bytes, number: int, at: int) -> str:
        """The text of one call."""
        site = self._sites[number]
        (address,) = struct.unpack_from("<Q", data, at + site.offsets[0])
        key = number, address
        if key not in self._known:
            raw = self._read_text(address)
            wrong = "it is no string literal" if raw is None else _complaint(raw, site.types)
            if wrong:
                self._known[key] = []
                return f"[printf at line {site.line} prints nothing and returns -1: {wrong}]\n"
            assert raw is not None
            self._known[key] = parse_format(raw.decode("latin-1"))
        return "".join(self._pieces(self._known[key], data, site, at))

    def _pieces(self, parts: list[str | Directive], data: bytes, site: PrintfSite, at: int) -> Iterator[str]:
        arguments = zip(site.types, site.offsets[1:], strict=True)
        for part in parts:
            if isinstance(part, str):
                yield part
                continue
            type_text, offset = next(arguments)
            width, scalar = vector_parts(type_text)
            letter = _KINDS.get(scalar, "q")
            values = struct.unpack_from(f"<{width}{letter}", data, at + offset)
            bits = 8 * struct.calcsize(letter)
            yield ",".join(_scalar(part, value, bits, self._read_text) for value in values)
