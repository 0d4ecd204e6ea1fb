"""Intervals of atoms and polynomials, and how a guard makes them smaller."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from perfvec.corpus.analysis.conditions import Guard
from perfvec.corpus.analysis.polynomial import Atom, Monomial, Polynomial

Bound: TypeAlias = int | Fraction | float  # a float where it is infinite
Range: TypeAlias = tuple[Bound, Bound]
Box: TypeAlias = dict[Atom, Range]

EVERYTHING: Range = (-math.inf, math.inf)
_WHOLE = frozenset(("id", "trip", "div", "rem", "lshr", "floor", "scalar", "pow2", "image"))


def by_kind(atom: Atom) -> str:
    """A key to sort atoms by."""
    return atom.kind


def times(a: Bound, b: Bound) -> Bound:
    """A product, in which 0 times infinity is 0."""
    return 0 if a == 0 or b == 0 else a * b


def divided(a: Bound, b: Bound) -> Bound:
    """A quotient of ends of ranges."""
    if math.isinf(a):
        return a
    return 0 if math.isinf(b) else Fraction(a) / Fraction(b)


def floored(value: Bound, divisor: int = 1) -> Bound:
    """A quotient rounded down; infinity stays."""
    return value if math.isinf(value) else math.floor(Fraction(value) / divisor)


def _product_range(product: Monomial, box: Box) -> Range:
    low, high = 1, 1
    for atom in product:
        ends = [times(x, y) for x in (low, high) for y in box[atom]]
        low, high = min(ends), max(ends)
    return low, high


def highest(polynomial: Polynomial, box: Box) -> Bound:
    """The sum of the greatest values of a polynomial's terms."""
    total: Bound = 0
    for product, coefficient in polynomial.terms.items():
        low, high = _product_range(product, box) if product else (1, 1)
        total += times(coefficient, high if coefficient > 0 else low)
        if total == math.inf:
            return total
    return total


def tighten(guard: Guard, box: Box) -> None:
    """Make ranges smaller by one guard."""
    polynomial = guard.polynomial
    for product, coefficient in polynomial.terms.items():
        if len(product) != 1:
            continue
        (atom,) = product
        factor, rest = polynomial.split(atom)
        if not factor.is_constant:
            continue
        low, high = box[atom]
        if guard.is_unequal:
            if rest.is_constant:
                excluded = -Fraction(rest.constant) / Fraction(coefficient)
                box[atom] = (low + 1 if low == excluded else low), (high - 1 if high == excluded else high)
            continue
        most = highest(rest, box)
        if math.isinf(most):
            continue
        limit = -Fraction(most) / Fraction(coefficient)
        is_whole = atom.kind in _WHOLE
        if coefficient > 0:
            box[atom] = max(low, math.ceil(limit) if is_whole else limit), high
        else:
            box[atom] = low, min(high, math.floor(limit) if is_whole else limit)
