"""Reuse distances of cache lines: by hand, and against lists of lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.core import lines
from tests import naive

Access = Sequence[tuple[int, int]]  # lines and the sectors of each


class Touched:
    """The tables under test, which grow as their owner would let them."""

    def __init__(
        self, *, num_groups: int = 1, memory_bytes: dict[int, int] | None = None, places: Sequence[int] | None = None
    ) -> None:
        self.table, self.base = lines.new_table(memory_bytes or {0: 128 * 4096})
        self.seen = np.zeros(len(self.table), np.int64)
        self.marks = lines.new_marks(1024)
        self.groups = lines.new_groups(num_groups)
        self.places = np.zeros(num_groups, np.int64) if places is None else np.array(places)
        self.state, self.rows = np.zeros(4, np.int64), np.zeros(lines.MAX_LINES, np.int64)

    def touch(self, access: Access) -> tuple[int, ...]:
        while not lines.make_room(self.state, self.table, *self.marks, lines.MAX_LINES):
            self.marks = lines.enlarged(*self.marks)
        relative = np.zeros((lines.MAX_LINES, 2), np.int64)
        origin = access[0][0]
        relative[: len(access)] = [(line - origin, bits) for line, bits in access]
        return lines.touch(
            relative, len(access), origin, self.base, self.table, *self.marks, *self.groups, self.state, self.rows
        )  # fmt: skip

    def next_group(self) -> None:
        lines.next_group(self.state, self.seen, *self.marks, self.places)


class Twin:
    """The same with lists."""

    def __init__(self) -> None:
        self.group, self.device = naive.LruStack(), naive.Footprint()

    def touch(self, access: Access) -> tuple[int, ...]:
        sectors = [4 * line + i for line, bits in access for i in range(4) if bits >> i & 1]
        found = naive.touch_lines(sectors, self.group, self.device)
        names = ("reuse_work_group", "reuse_device", "cold_sectors_work_group", "cold_sectors_device")
        return tuple(found[name] for name in names)

    def next_group(self) -> None:
        self.group = naive.LruStack()
        self.device.group += 1


def within(touches: Iterable[int]) -> list[int]:
    """Buckets of the distances within a work-group, of accesses to one line each."""
    touched = Touched()
    return [touched.touch([(line, 1)])[0] for line in touches]


def test_within_a_work_group_by_hand():
    a, b, c = 5, 9, 1000
    # Distances: never, never, 0, 1, never, 2, 2, each as 1 + floor(log2(1 + distance)).
    assert within((a, b, b, a, c, b, a)) == [0, 0, 1, 2, 0, 2, 2]


def test_sectors_are_cold_once():
    touched = Touched(num_groups=2)
    assert [touched.touch([(7, bits)])[2:] for bits in (0b0011, 0b0110, 0b1111)] == [(2, 2), (1, 1), (1, 1)]
    touched.next_group()
    assert touched.touch([(7, 0b1001)])[2:] == (2, 0)


def test_lines_by_how_many_places_touch_them():
    touched = Touched(num_groups=5, places=(0, 0, 3, 6, 6))
    for group in ([1, 2, 3, 9], [2, 4], [3, 5], [3, 5, 6], [6]):
        touched.touch([(line, 1) for line in group])
        touched.touch([(group[0], 1)])
        touched.next_group()
    # Place 0 alone: 1, 2, 4, 9; place 6 alone: 6; two places: 5; three: 3. The last work-group counts.
    weights = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    assert lines.count_seen(touched.seen, weights) == (7, 5, 1 + 10 + 10 + 1 + 10000, 1)


def test_between_work_groups_by_hand():
    touched = Touched(num_groups=3)
    assert touched.touch([(5, 1), (6, 1), (7, 1)])[:2] == (0, 0)
    touched.next_group()
    assert touched.touch([(9, 1)])[:2] == (0, 0)
    assert touched.touch([(6, 1)])[:2] == (0, 2)  # only line 9 counts for a later work-group
    assert touched.touch([(7, 1)])[:2] == (0, 2)  # lines 9 and 6
    touched.next_group()
    assert touched.touch([(5, 1)])[:2] == (0, 3)  # lines 6, 7 and 9
    assert touched.state[lines.ALL_LINES] == 4


def test_a_new_line_that_changes_the_bucket():
    """Line 0 was touched before line 1, so its distance is 1; but 1, touched behind two new lines, has 3."""
    touched, twin = Touched(), Twin()
    access = ((0, 1), (8, 1), (9, 1), (1, 1))
    for each in ((((0, 1),)), (((1, 1),)), access):
        assert touched.touch(each) == twin.touch(each)
    assert touched.touch(((20, 1), (0, 1)))[0] == naive.log_bucket(4)


def test_a_loop_over_more_lines_than_there_is_room_for():
    assert within([*range(3000)] * 3) == [0] * 3000 + [naive.log_bucket(2999)] * 6000


def test_memories_do_not_share_lines():
    touched = Touched(memory_bytes={2: 1, 5: 129, 3: 0, 9: 128})
    numbers = [2 << lines.MEMORY_SHIFT, 5 << lines.MEMORY_SHIFT, (5 << lines.MEMORY_SHIFT) + 1, 9 << lines.MEMORY_SHIFT]
    assert touched.touch([(number, 1) for number in numbers]) == (0, 0, 4, 4)
    assert len(touched.table) == 4


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.sampled_from((8, 40, 400, 4000)), st.sampled_from((1, 4, 32)))
def test_like_the_slow_twin(seed: int, num_lines: int, most: int):
    rng = np.random.Generator(np.random.PCG64(seed))
    touched, twin = Touched(num_groups=200), Twin()
    for _ in range(200):
        for _ in range(rng.integers(1, 6)):
            count = int(rng.integers(1, min(most, num_lines) + 1))
            # Some accesses go where the work-group has been, some anywhere.
            start = int(rng.integers(num_lines))
            offsets = rng.permutation(count) if rng.random() < 0.3 else rng.permutation(num_lines)[:count]
            access = [(int((start + offset) % num_lines), int(rng.integers(1, 16))) for offset in offsets]
            assert touched.touch(access) == twin.touch(access)
        if rng.random() < 0.5:
            touched.next_group()
            twin.next_group()


def test_long_random_run_is_equal_to_the_list():
    rng = np.random.Generator(np.random.PCG64(3))
    touched, twin = Touched(), Twin()
    for line in rng.zipf(1.3, 20_000) % 700:
        access = [(int(line), 1)]
        assert touched.touch(access) == twin.touch(access)


@pytest.mark.parametrize("distance", [*range(70), 1023, 1024, 1 << 40])
def test_buckets_of_distances(distance: int):
    assert lines.log_bucket(distance) == (naive.log_bucket(distance) if distance < 1 << 30 else 31)
