"""Bounds of polynomials under guards, against all values that their atoms can have."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.corpus.analysis.conditions import Condition, Guard, guards_of
from perfvec.corpus.analysis.intervals import highest, tighten
from perfvec.corpus.analysis.polynomial import ZERO, Atom, Polynomial, constant, polynomial_of
from perfvec.corpus.analysis.ranges import Ranges, Setting
from perfvec.corpus.analysis.symbolic import SymbolicKernel
from perfvec.program.canonical import canonical_kernel
from perfvec.program.frontend import compile_source

SIZES = (6, 4, 3)
IDS = tuple(Atom("id", ("global_id", dimension)) for dimension in range(3))
NUMBERS = st.integers(-4, 4)


def linear(coefficients: tuple[int, ...], number: int) -> Polynomial:
    terms = {(atom,): c for atom, c in zip(IDS, coefficients, strict=True)}
    return Polynomial({**terms, (): number})


def value(polynomial: Polynomial, ids: tuple[int, ...]) -> int:
    places = dict(zip(IDS, ids, strict=True))
    return sum(int(c) * math.prod(places[atom] for atom in product) for product, c in polynomial.terms.items())


LINEAR = st.builds(linear, st.tuples(NUMBERS, NUMBERS, NUMBERS), NUMBERS)


@st.composite
def polynomials(draw: st.DrawFn) -> Polynomial:
    """Linear ones, and products of two."""
    return draw(LINEAR) if draw(st.booleans()) else draw(LINEAR) * draw(LINEAR)


def ranges() -> Ranges:
    kernel = SymbolicKernel(canonical_kernel(compile_source("kernel void k(global int* a) { a[0] = 0; }"), "k"))
    return Ranges(kernel, Setting(global_size=SIZES, local_size=(2, 2, 1)))


def test_no_value_is_beyond_the_bounds(front_end: None):
    bounds = ranges()

    @given(polynomials(), st.lists(st.builds(Guard, LINEAR, st.booleans()), max_size=3))
    @settings(deadline=None, max_examples=30)
    def check(polynomial: Polynomial, guards: list[Guard]) -> None:
        allowed = [
            value(polynomial, ids)
            for ids in itertools.product(*map(range, SIZES))
            if all((value(g.polynomial, ids) != 0) if g.is_unequal else (value(g.polynomial, ids) >= 0) for g in guards)
        ]
        low, high = bounds.range(polynomial, guards)
        if allowed:
            assert low <= min(allowed)
            assert high >= max(allowed)
        if not guards and all(len(product) <= 1 for product in polynomial.terms):
            assert (low, high) == (min(allowed), max(allowed))

    check()


def test_the_bound_of_a_sum_is_that_of_its_guard(front_end: None):
    x, y, _ = map(polynomial_of, IDS)
    row = y * constant(6) + x
    # 6 y + x < 10, which no range of x or y alone tells
    assert ranges().range(row.times(4), [Guard(constant(9) - row)]) == (0, 36)


def test_guards_that_allow_nothing(front_end: None):
    x, _, _ = map(polynomial_of, IDS)
    low, high = ranges().range(x, [Guard(x - constant(7))])
    assert low > high


def test_comparisons_as_guards():
    x = polynomial_of(IDS[0])

    def guards(predicate: str) -> set[Polynomial]:
        comparison = Condition(kind="compare", predicate=predicate, left=x, right=constant(5))
        return {guard.polynomial for guard in guards_of([comparison])}

    assert guards("slt") == {constant(4) - x}
    assert guards("sge") == {x - constant(5)}
    assert guards("ult") == {constant(4) - x, x}  # unsigned: not negative either
    assert guards("eq") == {constant(5) - x, x - constant(5)}
    both = Condition(
        kind="any", parts=tuple(Condition(kind="compare", predicate="slt", left=x, right=ZERO) for _ in range(2))
    )
    assert list(both.comparisons()) == []  # one of them holds, and nobody knows which
    assert len(list(both.negated().comparisons())) == 2


def test_unequal_tightens_an_end():
    x = IDS[0]
    box = {x: (0, 5)}
    tighten(Guard(polynomial_of(x), is_unequal=True), box)
    assert box == {x: (1, 5)}
    tighten(Guard(polynomial_of(x) - constant(3), is_unequal=True), box)
    assert box == {x: (1, 5)}
    assert highest(polynomial_of(x) * polynomial_of(x), box) == 25
