"""Sectors, bank passes and strides of accesses: arithmetic by hand, and slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.core import outcomes
from perfvec.trace_data import STRIDE_CLASSES
from tests import naive

ALL = (1 << 32) - 1
LANES = np.arange(32)


def count_sectors(addresses: object, num_bytes: int, mask: int = ALL) -> int:
    return collect_lines(addresses, num_bytes, mask)[0]


def collect_lines(addresses: object, num_bytes: int, mask: int = ALL) -> tuple[int, list[tuple[int, int]]]:
    """How many sectors, and the lines, at most 64, each with the mask of its sectors."""
    return collect(addresses, num_bytes, mask)[:2]


def collect(addresses: object, num_bytes: int, mask: int) -> tuple[int, list[tuple[int, int]], tuple[int, ...]]:
    """The same, and sectors and lines of runs of 8 lanes and of runs of 16."""
    scratch = np.zeros(4 * outcomes.MAX_SECTORS + 3 * outcomes.STAMP_SLOTS, np.int64)
    lines, narrow = np.zeros((64, 2), np.int64), np.zeros(4, np.int64)
    for epoch in (1, 2):  # nothing is left over from the time before
        sectors, found = outcomes.distinct_lines(
            np.asarray(addresses, np.int64), mask, num_bytes, 0, lines, scratch, epoch, narrow
        )
    return sectors, [tuple(line) for line in lines[:found].tolist()], tuple(narrow.tolist())


def count_passes(addresses: object, num_bytes: int, mask: int = ALL) -> int:
    words = np.zeros(outcomes.LOCAL_WORDS + outcomes.NUM_BANKS, np.int64)
    return outcomes.bank_passes(np.asarray(addresses, np.int64), mask, num_bytes, words, 1)


def count_private(addresses: object, num_bytes: int, mask: int = ALL) -> tuple[int, int]:
    return outcomes.private_lines(np.asarray(addresses, np.int64), mask, num_bytes, np.zeros(256, np.int64))


def name_stride(addresses: object, num_bytes: int, mask: int = ALL) -> str:
    return STRIDE_CLASSES[outcomes.stride_class(np.asarray(addresses, np.int64), mask, num_bytes)]


@pytest.mark.parametrize(
    ("addresses", "num_bytes", "sectors", "stride"),
    [
        (4 * LANES, 4, 4, "unit"),  # 32 lanes x 4 B = 128 B = 4 sectors of 32 B
        (4 * LANES + 4, 4, 5, "unit"),  # 4 .. 131: one sector more
        (8 * LANES, 8, 8, "unit"),
        (16 * LANES, 16, 16, "unit"),
        (LANES, 1, 1, "unit"),  # 32 bytes
        (8 * LANES, 4, 8, "small"),  # every second float: 256 B
        (16 * LANES, 4, 16, "small"),
        (128 * LANES, 4, 32, "large"),  # a column of a matrix: a sector a lane
        (124 - 4 * LANES, 4, 4, "small"),  # backwards
        (0 * LANES, 4, 1, "uniform"),
        (0 * LANES + 30, 4, 2, "uniform"),  # across a border
        (4 * (LANES // 2), 4, 2, "irregular"),
        (128 * LANES, 128, 128, "unit"),
    ],
)
def test_sectors_and_stride(addresses: np.ndarray, num_bytes: int, sectors: int, stride: str):
    assert count_sectors(addresses, num_bytes) == sectors
    assert name_stride(addresses, num_bytes) == stride


def test_sectors_of_some_lanes():
    assert count_sectors(4 * LANES, 4, 0x1) == 1
    assert count_sectors(4 * LANES, 4, 0xFF) == 1  # 8 lanes x 4 B
    assert count_sectors(4 * LANES, 4, 0x1FF) == 2
    assert count_sectors(np.where(LANES < 16, 4 * LANES, -1), 4, 0xFFFF) == 2
    assert name_stride(4 * LANES, 4, 0x5) == "unit"  # lanes 0 and 2: the lane between would have made equal steps
    assert name_stride(np.array([0, -1, -1, 5]), 4, 0x9) == "irregular"  # 5 B over three lanes
    assert name_stride(4 * LANES, 4, 0x10) == "uniform"


@pytest.mark.parametrize(
    ("addresses", "num_bytes", "passes"),
    [
        (4 * LANES, 4, 1),  # a word a bank
        (8 * LANES, 4, 2),  # stride 2: words 0, 2 .. 62 on 16 banks
        (12 * LANES, 4, 1),  # odd strides spread over all banks
        (128 * LANES, 4, 32),  # stride 32: all on bank 0
        (132 * LANES, 4, 1),  # rows of 33 words
        (0 * LANES, 4, 1),  # one word for all: broadcast
        (8 * LANES, 8, 2),  # 64 words
        (16 * LANES, 16, 4),
        (LANES, 1, 1),  # 8 words
        (4 * (LANES % 16), 4, 1),
        (4 * LANES + 2, 4, 2),  # 33 words: two on bank 0
    ],
)
def test_bank_passes(addresses: np.ndarray, num_bytes: int, passes: int):
    assert count_passes(addresses, num_bytes) == passes
    assert count_passes(addresses + (5 << 40), num_bytes) == passes  # of another array


def test_private_lines():
    assert count_private(0 * LANES, 4) == (4, 1)  # the same word of 32 lanes fills a line
    assert count_private(0 * LANES, 8) == (8, 2)
    assert count_private(0 * LANES, 4, 0xFF) == (1, 1)
    assert count_private(4 * LANES, 4) == (32, 32)  # every lane another word
    assert count_private(0 * LANES + 2, 4) == (8, 2)


def test_shared_addresses():
    assert outcomes.shared_addresses(0 * LANES, ALL) == (32, 1)
    assert outcomes.shared_addresses(4 * LANES, ALL) == (1, 32)
    assert outcomes.shared_addresses(4 * (LANES % 4), ALL) == (8, 4)
    assert outcomes.shared_addresses(4 * (LANES % 4), 0b10001) == (2, 1)
    assert outcomes.shared_addresses(np.where(LANES < 21, 4 * (LANES > 4), -1), (1 << 21) - 1) == (16, 2)


@pytest.mark.parametrize(
    ("addresses", "num_bytes", "mask", "narrow"),
    [
        (4 * LANES, 4, ALL, (4, 4, 4, 2)),  # 8 lanes x 4 B = 1 sector; each run of 8 touches the line, of 16 too
        (0 * LANES, 4, ALL, (4, 4, 2, 2)),  # one sector for each run
        (8 * LANES, 8, ALL, (8, 4, 8, 2)),  # 64 B of 8 lanes are 2 sectors of half a line
        (128 * LANES, 4, ALL, (32, 32, 32, 32)),
        (4 * LANES + 4, 4, ALL, (8, 5, 6, 3)),  # each run ends in the next sector, the last in the next line
        (4 * LANES, 4, 0x1FF, (2, 2, 2, 1)),  # 9 lanes: the ninth alone
        (4 * LANES, 4, 0x00010001, (2, 2, 2, 2)),  # lanes 0 and 16 in one line, never in one run
        (4 * (31 - LANES), 4, 0xFFFFF, (3, 3, 3, 2)),  # backwards, 20 lanes
    ],
)
def test_narrow_sectors(addresses: np.ndarray, num_bytes: int, mask: int, narrow: tuple[int, ...]):
    assert collect(addresses, num_bytes, mask)[2] == narrow


def test_more_sectors_than_fit_are_counted_up_to_the_limit():
    assert count_sectors(512 * LANES, 512) == outcomes.MAX_SECTORS
    assert count_private(512 * LANES, 512)[0] == outcomes.MAX_SECTORS


_ADDRESSES = st.one_of(
    st.lists(st.integers(0, 1 << 12), min_size=32, max_size=32),
    st.builds(
        lambda start, step, jitter: [start + step * lane + (jitter if lane == 7 else 0) for lane in range(32)],
        st.integers(1 << 20, 1 << 21),
        st.integers(-300, 300),
        st.sampled_from((0, 0, 4)),
    ),
)
_MASK = st.integers(1, ALL)


@settings(deadline=None, derandomize=True)
@given(_ADDRESSES, _MASK, st.sampled_from((1, 2, 4, 8, 16, 32, 64, 128)))
def test_equal_to_the_slow_twins(addresses: list[int], mask: int, num_bytes: int):
    sectors = naive.sectors(addresses, mask, num_bytes)
    assert count_sectors(addresses, num_bytes, mask) == min(len(sectors), outcomes.MAX_SECTORS)
    assert count_passes(addresses, num_bytes, mask) == naive.bank_passes(addresses, mask, num_bytes)
    assert outcomes.shared_addresses(np.array(addresses), mask) == naive.shared_addresses(addresses, mask)
    narrow = [count for width in (8, 16) for count in naive.narrow_sectors(addresses, mask, num_bytes, width)]
    if len(sectors) < outcomes.MAX_SECTORS:
        assert collect(addresses, num_bytes, mask)[2] == tuple(narrow)
    assert name_stride(addresses, num_bytes, mask) == naive.stride_name(addresses, mask, num_bytes)
    found, expected = count_private(addresses, num_bytes, mask), naive.private_lines(addresses, mask, num_bytes)
    if expected[0] < outcomes.MAX_SECTORS:
        assert found == expected


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.sampled_from((4, 16, 64)), st.sampled_from((200, 100_000)))
def test_lines_and_their_sectors(seed: int, num_bytes: int, span: int):
    rng = np.random.default_rng(seed)
    addresses, mask = rng.integers(0, span, 32) * 4, int(rng.integers(1, 1 << 32))
    expected: dict[int, int] = {}
    for lane in np.flatnonzero(mask >> LANES & 1):
        for byte in range(int(addresses[lane]), int(addresses[lane]) + num_bytes):
            expected[byte // 128] = expected.get(byte // 128, 0) | 1 << byte // 32 % 4
    sectors, found = collect_lines(addresses, num_bytes, mask)
    assert sectors == sum(bits.bit_count() for bits in expected.values())
    assert found == list(expected.items())[:64]


def test_more_lines_and_sectors_than_are_told_apart():
    sectors, found = collect_lines(4096 * LANES, 512)  # 16 sectors and 4 lines a lane
    assert sectors == outcomes.MAX_SECTORS
    assert found == [(32 * lane + i, 15) for lane in range(16) for i in range(4)]
