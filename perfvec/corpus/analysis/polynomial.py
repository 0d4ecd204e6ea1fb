"""Polynomials over a kernel's unknowns: what its index expressions and bounds checks are made of.

An unknown is an `Atom`: a work-item's id, a scalar argument, the number of an iteration, a value that was loaded, or
the result of an operation that no polynomial expresses, such as a remainder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from numbers import Rational
from typing import TypeAlias, final

Number: TypeAlias = int | Fraction
MAX_TERMS = 96  # a longer polynomial says nothing that a range would not


@final
@dataclass(frozen=True, slots=True)
class Atom:
    """One unknown.

    Attributes:
        kind: What it is, a word of `perfvec.corpus.analysis.values`.
        key: What tells it from others of its kind.
    """

    kind: str
    key: tuple[object, ...]

    @property
    def polynomials(self) -> tuple[Polynomial, ...]:
        """The polynomials that it is made from."""
        return tuple(part for part in self.key if isinstance(part, Polynomial))


Monomial: TypeAlias = tuple[Atom, ...]  # a product; sorted, so that equal products are equal


@final
class Polynomial:
    """A sum of products of atoms with rational coefficients; immutable."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, Number]) -> None:
        self.terms: dict[Monomial, Number] = {product: c for product, c in terms.items() if c}
        self._hash = hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self._hash == other._hash and self.terms == other.terms

    def __add__(self, other: Polynomial) -> Polynomial:
        return self.plus(other, 1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self.plus(other, -1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, Number] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                product = _product(left, right)
                terms[product] = terms.get(product, 0) + a * b
        return Polynomial(terms)

    def plus(self, other: Polynomial, factor: Number) -> Polynomial:
        """This and `factor` times another."""
        terms = dict(self.terms)
        for product, coefficient in other.terms.items():
            terms[product] = terms.get(product, 0) + factor * coefficient
        return Polynomial(terms)

    def times(self, factor: Number) -> Polynomial:
        """This times a number."""
        return Polynomial({product: _whole(c * factor) for product, c in self.terms.items()})

    @property
    def constant(self) -> Number:
        """The term without atoms."""
        return self.terms.get((), 0)

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return not self.terms or (len(self.terms) == 1 and () in self.terms)

    @property
    def is_long(self) -> bool:
        """Whether it has more terms than are of use."""
        return len(self.terms) > MAX_TERMS

    @property
    def atoms(self) -> KeysView[Atom]:
        """The atoms in its products: a set, in the order of its terms, which is the same in every process."""
        return dict.fromkeys(atom for product in self.terms for atom in product).keys()

    def split(self, atom: Atom) -> tuple[Polynomial, Polynomial]:
        """The factor of an atom, and the terms without it; its powers count as part of the factor."""
        factor: dict[Monomial, Number] = {}
        rest: dict[Monomial, Number] = {}
        for product, coefficient in self.terms.items():
            if atom in product:
                at = product.index(atom)
                factor[product[:at] + product[at + 1 :]] = coefficient
            else:
                rest[product] = coefficient
        return Polynomial(factor), Polynomial(rest)

    def replaced(self, values: Mapping[Atom, Polynomial]) -> Polynomial:
        """With polynomials in place of atoms."""
        if not any(atom in values for atom in self.atoms):
            return self
        kept: dict[Monomial, Number] = {}
        total = ZERO
        for product, coefficient in self.terms.items():
            if not any(atom in values for atom in product):
                kept[product] = coefficient
                continue
            part = constant(coefficient)
            for atom in product:
                part = part * (values[atom] if atom in values else polynomial_of(atom))
            total = total + part
        return total + Polynomial(kept)


@lru_cache(maxsize=1 << 14)
def _sort_key(atom: Atom) -> tuple[str, bytes]:
    """By content: Python's own hashes of texts differ between processes, and with them what is inferred."""
    parts = [sorted(_terms(part)) if isinstance(part, Polynomial) else part for part in atom.key]
    return atom.kind, blake2b(repr(parts).encode(), digest_size=8).digest()


def _terms(polynomial: Polynomial) -> Iterator[tuple[tuple[tuple[str, bytes], ...], str]]:
    for product, coefficient in polynomial.terms.items():
        yield tuple(map(_sort_key, product)), str(coefficient)


def _product(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    return tuple(sorted((*left, *right), key=_sort_key))


def _whole(value: Number) -> Number:
    return value.numerator if isinstance(value, Rational) and value.denominator == 1 else value


def constant(value: Number) -> Polynomial:
    """A number as a polynomial."""
    return Polynomial({(): _whole(value)})


def polynomial_of(atom: Atom) -> Polynomial:
    """An atom as a polynomial."""
    return Polynomial({(atom,): 1})


ZERO = constant(0)
ONE = constant(1)


def all_atoms(polynomials: Iterable[Polynomial]) -> Iterator[Atom]:
    """The atoms of polynomials, and those that their atoms are made from, each once."""
    seen: set[Atom] = set()
    stack = [atom for polynomial in polynomials for atom in polynomial.atoms]
    while stack:
        atom = stack.pop()
        if atom not in seen:
            seen.add(atom)
            yield atom
            stack.extend(inner for part in atom.polynomials for inner in part.atoms)
