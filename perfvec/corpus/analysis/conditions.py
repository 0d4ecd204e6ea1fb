"""Conditions of branches, and what they say about the polynomials that they compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from perfvec.corpus.analysis.polynomial import ONE, Polynomial

_NEGATED = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ult": "uge", "uge": "ult",
    "ugt": "ule", "ule": "ugt",
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on integers.

    Attributes:
        kind: "compare", "all", "any" or "opaque".
        predicate: LLVM's word for a comparison.
        left: What is compared.
        right: What it is compared with.
        parts: The conditions of which all or any hold.
        line: Source line; 0 where unknown.
    """

    kind: str
    predicate: str = ""
    left: Polynomial = ONE
    right: Polynomial = ONE
    parts: tuple[Condition, ...] = ()
    line: int = 0

    def negated(self) -> Condition:
        """The condition that holds where this one does not."""
        if self.kind == "compare":
            return Condition(
                kind="compare",
                predicate=_NEGATED[self.predicate],
                left=self.left,
                right=self.right,
                line=self.line,
            )
        kind = {"all": "any", "any": "all"}.get(self.kind, self.kind)
        return Condition(kind=kind, parts=tuple(part.negated() for part in self.parts), line=self.line)

    def comparisons(self) -> Iterator[Condition]:
        """The comparisons that hold for certain where this condition holds."""
        if self.kind == "compare":
            yield self
        elif self.kind == "all" or (self.kind == "any" and len(self.parts) == 1):
            for part in self.parts:
                yield from part.comparisons()

    def every_comparison(self) -> Iterator[Condition]:
        """All comparisons in it, whether they need hold or not."""
        if self.kind == "compare":
            yield self
        for part in self.parts:
            yield from part.every_comparison()


OPAQUE = Condition(kind="opaque")


@final
@dataclass(frozen=True, slots=True)
class Guard:
    """What a comparison says: a polynomial that is not negative; or, where `is_unequal`, one that is not zero."""

    polynomial: Polynomial
    is_unequal: bool = False


def guards_of(conditions: Iterable[Condition]) -> tuple[Guard, ...]:
    """What conditions that hold say about polynomials, as integers without end.

    Unsigned numbers do not wrap here, so an unsigned comparison says of its smaller side that it is not negative.
    """
    return tuple(
        dict.fromkeys(guard for condition in conditions for part in condition.comparisons() for guard in _guards(part))
    )


def _guards(comparison: Condition) -> tuple[Guard, ...]:
    left, right, predicate = comparison.left, comparison.right, comparison.predicate
    if predicate == "eq":
        return Guard(left - right), Guard(right - left)
    if predicate == "ne":
        return (Guard(left - right, is_unequal=True),)
    small, large = (left, right) if predicate[1:] in ("lt", "le") else (right, left)
    difference = large - small
    first = Guard(difference - ONE if predicate[1:] in ("lt", "gt") else difference)
    is_unsigned = predicate[0] == "u" and not small.is_constant
    return (first, Guard(small)) if is_unsigned else (first,)
