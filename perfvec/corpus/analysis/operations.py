"""Operations of OpenCL C on polynomials: what stays one, and what becomes an atom of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from perfvec.corpus.analysis.polynomial import Atom, Polynomial, constant, polynomial_of


def unsigned(value: Polynomial, type_text: str) -> Polynomial:
    """A negative literal as the unsigned number that it stands for."""
    bits = int(type_text[1:]) if re.fullmatch(r"i\d+", type_text) else 64
    return constant(value.constant + (1 << bits)) if value.is_constant and value.constant < 0 else value


def operation(kind: str) -> Callable[..., Polynomial]:
    """The operation of a kind of atom: folded where all operands are numbers."""
    fold = _FOLDS.get(kind)

    def make(*parts: Polynomial) -> Polynomial:
        if fold is not None and all(part.is_constant for part in parts):
            folded = fold(*(part.constant for part in parts))
            if folded is not None:
                return constant(folded)
        return polynomial_of(Atom(kind, parts))

    return make


_FOLDS: dict[str, Callable[..., int | Fraction | None]] = {
    "div": lambda a, b: a // b if b else None,
    "rem": lambda a, b: a % b if b else None,
    "min": min,
    "max": max,
    "or": lambda a, b: int(a) | int(b) if a == int(a) and b == int(b) else None,
    "pow2": lambda a: 1 << int(a) if 0 <= a < 64 else None,
    "floor": lambda a: a.__floor__(),
    "quotient": lambda a, b: Fraction(a) / Fraction(b) if b else None,
}


def mask_bits(a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    """Bitwise and: a remainder, an alignment, or neither."""
    if a.is_constant and not b.is_constant:
        a, b = b, a
    if not b.is_constant:
        return operation("and")(a, b)
    mask = int(b.constant)
    if mask in ((1 << 32) - 1, (1 << 64) - 1):
        return a
    low = -mask if mask < 0 else (1 << 32) - mask  # what an alignment clears, the sign extended or not
    is_alignment = mask < 0 or (bits == 64 and 0 < low < mask)
    if is_alignment and low & (low - 1) == 0:
        return a - operation("rem")(a, constant(low))
    if mask & (mask + 1) == 0:
        return operation("rem")(a, constant(mask + 1))
    return operation("and")(a, b)


def _shift_right(a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    return operation("div")(a, operation("pow2")(b)) if not b.is_constant else _lshr(a, int(b.constant), bits)


def _lshr(a: Polynomial, places: int, bits: int) -> Polynomial:
    if a.is_constant:
        return constant(int(a.constant) >> places)
    return polynomial_of(Atom("lshr", (a, constant(places), bits)))


def floor(value: Polynomial) -> Polynomial:
    """A floating-point number as an integer."""
    kinds = {atom.kind for atom in value.atoms}
    if kinds <= {"id", "trip"} and all(c == int(c) for c in value.terms.values()):
        return value  # an integer that was a float for a while
    return operation("floor")(value)


def _signed_division(a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    del bits
    if b.is_constant and b.constant < 0:
        return operation("div")(a, b.times(-1)).times(-1)
    return operation("div")(a, b)


def _quotient(a: Polynomial, b: Polynomial, bits: int = 0) -> Polynomial:
    del bits
    return a.times(1 / Fraction(b.constant)) if b.is_constant and b.constant else operation("quotient")(a, b)


def _absolute(a: Polynomial, *_: Polynomial) -> Polynomial:
    return operation("max")(a, a.times(-1))


def _clamp(a: Polynomial, low: Polynomial, high: Polynomial) -> Polynomial:
    return operation("min")(operation("max")(a, low), high)


def _mad(a: Polynomial, b: Polynomial, c: Polynomial) -> Polynomial:
    return a * b + c


ARITHMETIC: dict[str, Callable[[Polynomial, Polynomial, int], Polynomial]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "shl": lambda a, b, _: a * operation("pow2")(b),
    "lshr": _shift_right,
    "ashr": lambda a, b, _: operation("div")(a, operation("pow2")(b)),
    "udiv": lambda a, b, _: operation("div")(a, b),
    "sdiv": _signed_division,
    **{word: lambda a, b, _: operation("rem")(a, b) for word in ("urem", "srem")},
    "fadd": lambda a, b, _: a + b,
    "fsub": lambda a, b, _: a - b,
    "fmul": lambda a, b, _: a * b,
    "fdiv": _quotient,
}
FUNCTIONS: dict[str, Callable[..., Polynomial]] = {
    **{word: operation("min") for word in ("min", "smin", "umin", "fmin", "minnum", "minimum")},
    **{word: operation("max") for word in ("max", "smax", "umax", "fmax", "maxnum", "maximum")},
    **dict.fromkeys(("abs", "fabs"), _absolute),
    **{word: operation("floor") for word in ("floor", "trunc", "rint", "round", "ceil")},
    **dict.fromkeys(("mad", "fma", "fmuladd", "mad24"), _mad),
    **dict.fromkeys(("native_divide", "half_divide"), _quotient),
    "mul24": lambda a, b: a * b,
    "clamp": _clamp,
}
