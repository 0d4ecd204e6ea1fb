"""OpenCL value types as the built-ins see them: scalars, vectors, pointers, and what they are in LLVM IR."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, final

# Names of the OpenCL address spaces by their SPIR number.
ADDRESS_SPACE_NAMES = ("__private", "__global", "__constant", "__local", "__generic")
VECTOR_WIDTHS = (2, 3, 4, 8, 16)


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar type.

    Attributes:
        name: OpenCL's name.
        kind: Integer or floating point. A truth value (LLVM's `i1`) is an integer of one bit.
        bits: Width.
        is_signed: Whether an integer is signed; true of every float.
        llvm: LLVM IR's name.
    """

    name: str
    kind: Literal["int", "float"]
    bits: int
    is_signed: bool
    llvm: str

    @property
    def low(self) -> int:
        """Least value of an integer type."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def high(self) -> int:
        """Greatest value of an integer type."""
        return (1 << (self.bits - self.is_signed)) - 1

    @property
    def mantissa_bits(self) -> int:
        """Stored bits of a float's significand: 10, 23 or 52."""
        return {16: 10, 32: 23, 64: 52}[self.bits]

    @property
    def exponent_bias(self) -> int:
        """Bias of a float's exponent: 15, 127 or 1023."""
        return {16: 15, 32: 127, 64: 1023}[self.bits]


def _integer(name: str, bits: int) -> Scalar:
    return Scalar(name, "int", bits, not name.startswith("u"), f"i{bits}")


BOOL = Scalar("bool", "int", 1, False, "i1")
CHAR, UCHAR = _integer("char", 8), _integer("uchar", 8)
SHORT, USHORT = _integer("short", 16), _integer("ushort", 16)
INT, UINT = _integer("int", 32), _integer("uint", 32)
LONG, ULONG = _integer("long", 64), _integer("ulong", 64)
# Only inside a definition: the full product of two 64-bit integers.
INT128, UINT128 = _integer("int128", 128), _integer("uint128", 128)
HALF = Scalar("half", "float", 16, True, "half")
FLOAT = Scalar("float", "float", 32, True, "float")
DOUBLE = Scalar("double", "float", 64, True, "double")

INTEGERS = (CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG)
FLOATS = (HALF, FLOAT, DOUBLE)
SCALARS_BY_NAME = {scalar.name: scalar for scalar in (*INTEGERS, *FLOATS, BOOL)}
SIGNED = {8: CHAR, 16: SHORT, 32: INT, 64: LONG, 128: INT128}
UNSIGNED = {1: BOOL, 8: UCHAR, 16: USHORT, 32: UINT, 64: ULONG, 128: UINT128}


@final
@dataclass(frozen=True, slots=True)
class ValueType:
    """A scalar, or a vector of `width` of them; `width` 1 is the scalar itself."""

    scalar: Scalar
    width: int = 1

    @property
    def llvm(self) -> str:
        """The type in LLVM IR: `float`, `<4 x i8>`."""
        return self.scalar.llvm if self.width == 1 else f"<{self.width} x {self.scalar.llvm}>"

    @property
    def suffix(self) -> str:
        """The type in the name of an LLVM intrinsic: `f32`, `v4i8`."""
        letter = "f" if self.scalar.kind == "float" else "i"
        return f"{letter}{self.scalar.bits}" if self.width == 1 else f"v{self.width}{letter}{self.scalar.bits}"

    def of(self, scalar: Scalar) -> ValueType:
        """The same width of another scalar."""
        return replace(self, scalar=scalar)

    def wide(self, width: int) -> ValueType:
        """Another width of the same scalar."""
        return replace(self, width=width)

    def __str__(self) -> str:
        return self.scalar.name if self.width == 1 else f"{self.scalar.name}{self.width}"


@final
@dataclass(frozen=True, slots=True)
class PointerType:
    """A pointer. `pointee` is None for `void`."""

    pointee: ClType | None
    address_space: int = 0
    is_const: bool = False
    is_volatile: bool = False

    def __str__(self) -> str:
        if self.address_space < len(ADDRESS_SPACE_NAMES):
            space = ADDRESS_SPACE_NAMES[self.address_space]
        else:
            space = f"__attribute__((address_space({self.address_space})))"
        words = [space, "const" * self.is_const, "volatile" * self.is_volatile, str(self.pointee or "void")]
        return " ".join(word for word in words if word) + " *"


@final
@dataclass(frozen=True, slots=True)
class OpaqueType:
    """A type that is not a value: an image, an event, a sampler, the three dots of printf."""

    name: str

    def __str__(self) -> str:
        return self.name


ClType = ValueType | PointerType | OpaqueType
