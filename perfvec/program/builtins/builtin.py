"""What the tables of built-ins hold: argument pattern, opcode class, and the function that writes the definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

from perfvec.program.builtins.cl_types import INT, UNSIGNED, ClType, PointerType, Scalar, ValueType
from perfvec.program.builtins.emit import Value

# Writes the body for arguments of these types; returns the result, or result and what goes through the pointer.
Emit: TypeAlias = Callable[..., Value | tuple[Value, Value]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One built-in function, over all its overloads.

    Attributes:
        opcode_class: Name in `trace_data.OPCODE_CLASSES`.
        pattern: One letter an argument, `T` being the widest type among those marked `T`, `t` and `v`:
            `T` that type; `t` that type or its scalar; `i` int of that width, or a scalar int; `u` unsigned integer of
            that size and width; `c` integer of that size and width; `m` vector of such unsigned integers, of any width;
            `v` any value; `P` pointer to that type; `I` pointer to int of that width.
        scalars: Which scalars `T` may be.
        emit: Writes the definition; called with the emitter and the arguments that are values.
        emit_half: Writes it for `half`, in `float`; the result is rounded afterwards.
        in_half_bits: Whether `emit` treats `half` itself, so that arguments are not widened.
        widths: Which vector widths `T` may have.
        broadcasts: Whether scalar arguments are made vectors before `emit` sees them.
    """

    opcode_class: str
    pattern: str
    scalars: tuple[Scalar, ...]
    emit: Emit
    emit_half: Emit | None = None
    in_half_bits: bool = False
    widths: tuple[int, ...] = (1, 2, 3, 4, 8, 16)
    broadcasts: bool = True

    @property
    def has_pointer_result(self) -> bool:
        """Whether a second result goes through a pointer."""
        return self.pattern[-1] in "PI"

    def accepts(self, arguments: tuple[ClType, ...]) -> bool:
        """Whether the built-in has an overload for these argument types."""
        if len(arguments) != len(self.pattern):
            return False
        pairs = list(zip(self.pattern, arguments, strict=True))
        candidates = [found for letter, found in pairs if letter in "Ttv" and isinstance(found, ValueType)]
        if not candidates:
            return False
        generic = max(candidates, key=lambda found: found.width)
        if generic.width not in self.widths or generic.scalar not in self.scalars:
            return False
        return all(_FITS[letter](found, generic) for letter, found in pairs)


def _is_integer_like(found: ClType, generic: ValueType) -> bool:
    if not isinstance(found, ValueType) or found.scalar.kind != "int":
        return False
    return found.scalar.bits == generic.scalar.bits and found.width == generic.width


def _is_mask_for(found: ClType, generic: ValueType) -> bool:
    return isinstance(found, ValueType) and found.width > 1 and found.scalar == UNSIGNED[generic.scalar.bits]


def _points_to(found: ClType, pointee: ValueType) -> bool:
    return isinstance(found, PointerType) and found.pointee == pointee


_FITS: dict[str, Callable[[ClType, ValueType], bool]] = {
    "T": lambda found, generic: found == generic,
    "t": lambda found, generic: found in (generic, generic.wide(1)),
    "i": lambda found, generic: found in (generic.of(INT), ValueType(INT)),
    "u": lambda found, generic: found == generic.of(UNSIGNED[generic.scalar.bits]),
    "c": _is_integer_like,
    "m": _is_mask_for,
    "v": lambda found, _: isinstance(found, ValueType),
    "P": _points_to,
    "I": lambda found, generic: _points_to(found, generic.of(INT)),
}
