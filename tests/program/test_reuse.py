"""Reuse distances: by hand, and against a list of lines."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.core import reuse
from tests.naive import LruStack


def touch_all(touches: Iterable[tuple[int, int]], *, num_slots: int = 16) -> list[tuple[int, int]]:
    """Distance and fresh sectors of each touch; the stack grows as its owner would let it."""
    state, table, tree = reuse.new_stack(num_slots)
    found = []
    for line, bits in touches:
        if reuse.is_crowded(state, table, 1):
            table, tree = reuse.enlarged(state, table)
        distance, fresh = reuse.touch(state, table, tree, line, bits)
        found.append((int(distance), int(fresh)))
    return found


def test_by_hand():
    a, b, c = 5, 9, 1 << 33
    assert [d for d, _ in touch_all((x, 1) for x in (a, b, b, a, c, b, a))] == [-1, -1, 0, 1, -1, 2, 2]


def test_sectors_are_fresh_once():
    assert touch_all([(7, 0b0011), (7, 0b0110), (8, 0b1000), (7, 0b1111)]) == [(-1, 3), (0, 4), (-1, 8), (1, 8)]


def test_a_cleared_stack_has_forgotten():
    stack = reuse.new_stack(16)
    reuse.touch(*stack, 3, 1)
    reuse.clear(*stack)
    assert reuse.touch(*stack, 3, 1) == (-1, 1)
    assert stack[0][reuse.NUM_LINES] == 1


def test_a_loop_over_more_lines_than_the_table_first_holds():
    lines = list(range(1000)) * 3
    distances = [d for d, _ in touch_all((line, 15) for line in lines)]
    assert distances == [-1] * 1000 + [999] * 2000


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 40).map(lambda n: n * n << 20), st.integers(1, 15)), max_size=300))
def test_equal_to_the_list(touches: list[tuple[int, int]]):
    twin = LruStack()
    assert touch_all(touches) == [twin.touch(line, bits) for line, bits in touches]


def test_long_random_run_is_equal_to_the_list():
    rng = np.random.Generator(np.random.PCG64(3))
    lines = rng.zipf(1.3, 20_000) % 700
    twin = LruStack()
    touches = [(int(line), 1) for line in lines]
    assert touch_all(touches, num_slots=2048) == [twin.touch(line, bits) for line, bits in touches]
