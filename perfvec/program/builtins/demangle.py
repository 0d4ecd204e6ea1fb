"""Names of OpenCL built-ins: Itanium mangling, as far as OpenCL C uses it, to base name and argument types.

Grammar: Itanium C++ ABI, section 5.1; vectors `Dv4_f`, `half` `Dh`; address spaces are vendor qualifiers `U3AS1`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, final

from perfvec.errors import UnsupportedError
from perfvec.program.builtins.cl_types import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    SHORT,
    UCHAR,
    UINT,
    ULONG,
    USHORT,
    ClType,
    OpaqueType,
    PointerType,
    ValueType,
)

_LETTERS = {
    "c": CHAR,
    "a": CHAR,
    "h": UCHAR,
    "s": SHORT,
    "t": USHORT,
    "i": INT,
    "j": UINT,
    "l": LONG,
    "m": ULONG,
    "x": LONG,
    "y": ULONG,
    "f": FLOAT,
    "d": DOUBLE,
    "b": BOOL,
    "Dh": HALF,
}
_OTHER_LETTERS = {"v": None, "z": OpaqueType("...")}
_NAME = re.compile(r"_Z(\d+)")
_VECTOR = re.compile(r"Dv(\d+)_")
_SUBSTITUTION = re.compile(r"S([0-9A-Z]*)_")
_SOURCE_NAME = re.compile(r"\d+")
_QUALIFIERS = re.compile(r"[rVK]*")
_ADDRESS_SPACE = re.compile(r"U3AS(\d)")


@final
@dataclass(frozen=True, slots=True)
class Demangled:
    """A built-in's base name and the types of its arguments."""

    base: str
    arguments: tuple[ClType, ...]

    def __str__(self) -> str:
        return f"{self.base}({', '.join(map(str, self.arguments))})"


@lru_cache(maxsize=4096)
def demangle(name: str) -> Demangled:
    """Take a mangled built-in's name apart.

    Args:
        name: `_Z5clampDv4_fS_S_`.

    Returns:
        Base name and argument types: `clamp`, three times `float4`.

    Raises:
        UnsupportedError: The name is not a mangled OpenCL function.
    """
    match = _NAME.match(name)
    if match is None:
        raise UnsupportedError(f"{name!r} is not the mangled name of an OpenCL built-in: it does not start with _Z")
    start = match.end()
    end = start + int(match[1])
    base = name[start:end]
    if len(base) < int(match[1]) or end == len(name):
        raise UnsupportedError(f"{name!r} is not the mangled name of an OpenCL built-in: it ends early")
    arguments = _Parser(name, end).arguments()
    return Demangled(base, arguments)


@final
@dataclass(frozen=True, slots=True)
class _Qualified:
    """A type with an address space, const or volatile: what a pointer points to."""

    type: ClType | None  # None is void
    address_space: int
    qualifiers: str


@final
class _Parser:
    """Reads the argument types that follow the base name."""

    __slots__ = ("_name", "_place", "_seen")

    def __init__(self, name: str, place: int) -> None:
        self._name = name
        self._place = place
        self._seen: list[ClType | _Qualified] = []  # candidates for substitution, S_ first

    def arguments(self) -> tuple[ClType, ...]:
        if self._name[self._place :] == "v":
            return ()
        found: list[ClType] = []
        while self._place < len(self._name):
            argument = self._type()
            if argument is None or isinstance(argument, _Qualified):
                self._fail()
            found.append(argument)
        return tuple(found)

    def _type(self) -> ClType | _Qualified | None:
        """The next type; None is `void`."""
        rest = self._name[self._place :]
        if rest.startswith("P"):
            self._place += 1
            return self._pointer()
        if match := _VECTOR.match(rest):
            self._place += match.end()
            return self._vector(int(match[1]))
        if match := _SUBSTITUTION.match(rest):
            self._place += match.end()
            return self._substitution(match[1])
        if match := _SOURCE_NAME.match(rest):
            return self._source_name(match)
        letters = rest[: 2 if rest.startswith("D") else 1]
        self._place += len(letters)
        if letters in _LETTERS:
            return ValueType(_LETTERS[letters])
        if letters not in _OTHER_LETTERS:
            self._place -= len(letters)
            self._fail()
        return _OTHER_LETTERS[letters]

    def _vector(self, width: int) -> ValueType:
        element = self._type()
        if not isinstance(element, ValueType):
            self._fail()
        vector = ValueType(element.scalar, width)
        self._seen.append(vector)
        return vector

    def _substitution(self, digits: str) -> ClType | _Qualified:
        index = int(digits, 36) + 1 if digits else 0
        if index >= len(self._seen):
            self._fail()
        return self._seen[index]

    def _pointer(self) -> PointerType:
        """What follows `P`. All qualifiers of the pointee together make one candidate for substitution."""
        space, start = 0, self._place
        while match := _ADDRESS_SPACE.match(self._name, self._place):
            space = int(match[1])
            self._place = match.end()
        qualifiers = _QUALIFIERS.match(self._name, self._place)
        assert qualifiers is not None  # it matches the empty string
        self._place = qualifiers.end()
        is_qualified = self._place > start
        target = self._type()
        if is_qualified:
            if isinstance(target, _Qualified):
                self._fail()
            target = _Qualified(target, space, qualifiers[0])
            self._seen.append(target)
        elif not isinstance(target, _Qualified):
            target = _Qualified(target, 0, "")
        pointer = PointerType(target.type, target.address_space, "K" in target.qualifiers, "V" in target.qualifiers)
        self._seen.append(pointer)
        return pointer

    def _source_name(self, match: re.Match[str]) -> OpaqueType:
        start = self._place + match.end()
        end = start + int(match[0])
        if end > len(self._name):
            self._fail()
        self._place = end
        opaque = OpaqueType(self._name[start:end].removeprefix("ocl_"))
        self._seen.append(opaque)
        return opaque

    def _fail(self) -> NoReturn:
        raise UnsupportedError(
            f"{self._name!r} is not the mangled name of an OpenCL built-in: "
            f"no type starts at {self._name[self._place :]!r}"
        )
