"""Keeps what a trace needs of the executor's record: owner of the arrays that `core/windows.py` fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.program.classify import CLASS_INDEX
from perfvec.program.contention import AtomicLog, Contention
from perfvec.program.core import footprint, outcomes, reuse, windows
from perfvec.trace_data import ADDRESS_SPACES, MEMORY_DTYPE, SUB_GROUP_DTYPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.program.classify import StaticTable
    from perfvec.program.native import NativeKernel

# Fields of a packed outcome from the lowest bit: name in MEMORY_DTYPE and bits; see `windows.pack`.
_PACKED = (
    ("cold_sectors_device", 8),
    ("cold_sectors_work_group", 8),
    ("reuse_device", 6),
    ("reuse_work_group", 6),
    ("stride_class", 3),
    ("same_address", 6),
    ("bank_passes", 8),
    ("lines", 8),
    ("sectors", 8),
)


def unpack_outcomes(keys: NDArray[np.int64]) -> NDArray[np.void]:
    """Turn packed outcomes into rows of `MEMORY_DTYPE`."""
    rows = np.zeros(len(keys), MEMORY_DTYPE)
    rest = keys.copy()
    for name, bits in _PACKED:
        rows[name] = rest & ((1 << bits) - 1)
        rest >>= bits
    return rows


@final
class Recorder:
    """Takes in the record of one launch, work-group after work-group."""

    def __init__(self, native: NativeKernel, static: StaticTable, *, num_sub_groups: int, num_groups: int) -> None:
        table = static.rows
        num_sites = np.bincount([s.segment for s in native.sites], minlength=len(native.segments))
        headers = [s.is_loop_header for s in native.segments]
        self._segments = np.stack([static.start[:-1], static.start[1:], headers, num_sites], axis=1).astype(np.int64)
        is_atomic = table["opcode_class"] == CLASS_INDEX["atomic"]
        self._rows = np.stack([static.site, table["address_space"], table["access_bytes"], is_atomic], axis=1).astype(
            np.int64
        )
        self._steps = np.zeros((len(table), windows.NUM_LANES), np.int64)
        self._shapes = np.zeros((len(table), windows.NUM_SHAPE), np.int64)
        self._lines = np.zeros((len(table), windows.MAX_LINES, 2), np.int64)
        self._scratch = np.zeros(outcomes.MAX_SECTORS + 2 * outcomes.STAMP_SLOTS, np.int64)
        self._words = np.zeros(outcomes.LOCAL_WORDS + outcomes.NUM_BANKS, np.int64)
        self._num_sub_groups = num_sub_groups
        self._open_tokens = np.zeros((num_sub_groups, windows.MAX_WINDOW), np.int64)
        self._opened = np.zeros((num_sub_groups, 2), np.int64)
        self._tokens = np.zeros(1 << 14, np.int64)
        self._windows = np.zeros(((1 << 10) + 1, 2), np.int64)
        self._window_slots = np.full(1 << 10, windows.EMPTY)
        self._outcome_key = np.zeros(1 << 10, np.int64)
        self._outcome_slots = np.full(1 << 10, windows.EMPTY)
        self._stream = np.zeros(1 << 14, np.int64)
        self._scalars = np.zeros(9, np.int64)
        self._group_stack = reuse.new_stack(1 << 10)
        self._footprint = footprint.new_footprint(1 << 14, num_groups)
        self._sub_groups: list[tuple[int, int, int, float]] = []
        self._atomics = _atomic_log(static, num_sites)

    @property
    def num_device_lines(self) -> int:
        """Distinct cache lines that the work-groups have touched so far."""
        return int(self._footprint[0][footprint.NUM_LINES])

    @np.errstate(over="ignore")  # hash codes wrap
    def consume(self, group: int, events: NDArray[np.uint32], addresses: NDArray[np.int64]) -> None:
        """Take in a piece of the record (the executor's `Consumer`)."""
        del group
        self._scalars[windows.EVENT] = self._scalars[windows.ROW] = 0
        while lack := windows.consume(
            events, addresses, self._segments, self._rows, self._steps, self._shapes, self._lines, self._scratch,
            self._words, self._open_tokens, self._opened, self._tokens, self._windows, self._window_slots,
            self._outcome_key, self._outcome_slots, self._stream, self._scalars, *self._group_stack,
            *self._footprint,
        ):  # fmt: skip
            self._enlarge(lack)
        if self._atomics:
            self._atomics.consume(events, addresses, windows.MARK_SUB_GROUP)

    @np.errstate(over="ignore")  # hash codes wrap
    def end_group(self, group: int, weight: float) -> None:
        """End the windows of a work-group whose record has been taken in.

        Args:
            group: Its linear number.
            weight: Work-groups of the launch that it stands for.
        """
        while lack := self._lacking(self._num_sub_groups):
            self._enlarge(lack)
        for sub_group in range(self._num_sub_groups):
            windows.end_window(
                self._tokens, self._windows, self._window_slots, self._stream, self._scalars, self._open_tokens,
                self._opened, sub_group,
            )  # fmt: skip
        totals = self._opened[:, windows.OPEN_TOTAL]
        self._sub_groups += [(group, i, int(totals[i]), weight) for i in range(self._num_sub_groups)]
        totals[:] = 0
        self._scalars[windows.FIRST_SUB_GROUP] += self._num_sub_groups
        reuse.clear(*self._group_stack)
        self._footprint[0][footprint.GROUP] += 1
        if self._atomics:
            self._atomics.end_group(group, weight)

    def contention(self) -> Contention:
        """How many global atomics of the launch meet at one address."""
        return self._atomics.contention() if self._atomics else Contention(by_sub_group=0.0, by_lane=0.0)

    def _lacking(self, num_windows: int) -> int:
        return windows.lacking(
            self._tokens, self._window_slots, self._outcome_slots, self._stream, self._scalars, *self._group_stack[:2],
            *self._footprint[:2], num_windows * windows.MAX_WINDOW, num_windows, 0,
        )  # fmt: skip

    @np.errstate(over="ignore")  # hash codes wrap
    def _enlarge(self, lack: int) -> None:
        if lack == windows.NEEDS_TOKENS:
            self._tokens = _doubled(self._tokens)
        elif lack == windows.NEEDS_WINDOWS:
            codes = self._windows[: self._scalars[windows.WINDOWS], windows.WINDOW_HASH]
            self._window_slots = _rehash(codes, 2 * len(self._window_slots))
            self._windows = _doubled(self._windows)
        elif lack == windows.NEEDS_OUTCOMES:
            codes = windows.outcome_codes(self._outcome_key[: self._scalars[windows.OUTCOMES]])
            self._outcome_slots = _rehash(codes, 2 * len(self._outcome_slots))
            self._outcome_key = _doubled(self._outcome_key)
        elif lack == windows.NEEDS_STREAM:
            self._stream = _doubled(self._stream)
        elif lack == windows.NEEDS_GROUP_STACK:
            self._group_stack = (self._group_stack[0], *reuse.enlarged(*self._group_stack[:2]))
        else:
            state, table, tree = self._footprint
            self._footprint = (state, footprint.enlarged(table), tree)

    def tables(self) -> dict[str, NDArray[Any]]:
        """The tables of `perfvec.trace_data.Trace` by name, all but `static`."""
        tokens = self._tokens[: self._scalars[windows.TOKENS]]
        stream = self._stream[: self._scalars[windows.STREAM]]
        sub_group = stream >> 32
        order = np.argsort(sub_group, kind="stable")
        lengths = np.bincount(sub_group, minlength=len(self._sub_groups))
        starts = self._windows[: self._scalars[windows.WINDOWS] + 1, windows.WINDOW_START]
        return {
            "memory": unpack_outcomes(self._outcome_key[: self._scalars[windows.OUTCOMES]]),
            "window_start": starts.copy(),
            "token_static": (tokens >> windows.TOKEN_STATIC_SHIFT).astype(np.uint32),
            "token_lanes": (tokens >> windows.TOKEN_LANES_SHIFT & 63).astype(np.uint8),
            "token_memory": ((tokens & 0xFFFF_FFFF) - 1).astype(np.int32),
            "sub_groups": np.array(self._sub_groups, SUB_GROUP_DTYPE),
            "stream_start": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "stream_window": (stream & 0xFFFF_FFFF)[order].astype(np.uint32),
        }


def _atomic_log(static: StaticTable, num_sites: NDArray[np.int64]) -> AtomicLog | None:
    """A log of the kernel's global atomics; None if it has none."""
    rows, segment = static.rows, np.repeat(np.arange(len(num_sites)), np.diff(static.start))
    is_logged = (
        (rows["opcode_class"] == CLASS_INDEX["atomic"])
        & (static.site >= 0)
        & ~np.isin(rows["address_space"], [ADDRESS_SPACES.index("local"), ADDRESS_SPACES.index("private")])
    )
    if not is_logged.any():
        return None
    sites = [static.site[is_logged & (segment == number)].tolist() for number in range(len(num_sites))]
    return AtomicLog(sites, num_sites)


def _doubled(array: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([array, np.zeros_like(array)])


def _rehash(codes: NDArray[np.int64], num_slots: int) -> NDArray[np.int64]:
    slots = np.full(num_slots, windows.EMPTY)
    windows.insert_all(slots, np.ascontiguousarray(codes))
    return slots
