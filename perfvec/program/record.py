"""Keeps what a trace needs of the executor's record: owner of the arrays that `core/windows.py` fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.program.classify import CLASS_INDEX
from perfvec.program.core import outcomes, reuse, windows
from perfvec.trace_data import MEMORY_DTYPE, SUB_GROUP_DTYPE

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

    def __init__(self, native: NativeKernel, static: StaticTable, num_sub_groups: int) -> None:
        rows = static.rows
        num_sites = np.bincount([s.segment for s in native.sites], minlength=len(native.segments))
        self._kernel = windows.Kernel(
            start=static.start,
            is_header=np.array([s.is_loop_header for s in native.segments]),
            num_sites=num_sites.astype(np.int64),
            site=static.site,
            space=np.ascontiguousarray(rows["address_space"]),
            access_bytes=rows["access_bytes"].astype(np.int64),
            is_atomic=rows["opcode_class"] == CLASS_INDEX["atomic"],
        )
        self._num_sub_groups = num_sub_groups
        self._opened = windows.Open(
            static=np.zeros((num_sub_groups, windows.MAX_WINDOW), np.uint32),
            lanes=np.zeros((num_sub_groups, windows.MAX_WINDOW), np.uint8),
            memory=np.zeros((num_sub_groups, windows.MAX_WINDOW), np.int32),
            length=np.zeros(num_sub_groups, np.int64),
            total=np.zeros(num_sub_groups, np.int64),
        )
        self._store = windows.Store(
            token_static=np.zeros(1 << 14, np.uint32),
            token_lanes=np.zeros(1 << 14, np.uint8),
            token_memory=np.zeros(1 << 14, np.int32),
            window_start=np.zeros((1 << 10) + 1, np.int64),
            window_hash=np.zeros(1 << 10, np.int64),
            window_slots=np.full(1 << 10, windows.EMPTY),
            outcome_key=np.zeros(1 << 10, np.int64),
            outcome_slots=np.full(1 << 10, windows.EMPTY),
            stream_sub_group=np.zeros(1 << 14, np.int64),
            stream_window=np.zeros(1 << 14, np.uint32),
        )
        self._progress = windows.Progress(
            scalars=np.zeros(9, np.int64),
            stamps=np.zeros(outcomes.STAMP_SLOTS, np.int64),
            values=np.zeros(outcomes.STAMP_SLOTS, np.int64),
            sectors=np.zeros(windows.MAX_SECTORS, np.int64),
            words=np.zeros(outcomes.LOCAL_WORDS, np.int64),
            per_bank=np.zeros(outcomes.NUM_BANKS, np.int64),
        )
        self._group_stack = windows.Stack(*reuse.new_stack(1 << 10))
        self._device_stack = windows.Stack(*reuse.new_stack(1 << 14))
        self._sub_groups: list[tuple[int, int, int, float]] = []

    @property
    def num_device_lines(self) -> int:
        """Distinct cache lines that the work-groups have touched so far."""
        return int(self._device_stack.state[reuse.NUM_LINES])

    def consume(self, group: int, events: NDArray[np.uint32], addresses: NDArray[np.int64]) -> None:
        """Take in a piece of the record (the executor's `Consumer`)."""
        del group
        scalars = self._progress.scalars
        scalars[windows.EVENT] = scalars[windows.ROW] = 0
        while True:
            lack = windows.consume(
                self._kernel,
                events,
                addresses,
                self._opened,
                self._store,
                self._progress,
                self._group_stack,
                self._device_stack,
            )
            if lack == windows.FINISHED:
                return
            self._enlarge(lack)

    def end_group(self, group: int, weight: float) -> None:
        """End the windows of a work-group whose record has been taken in.

        Args:
            group: Its linear number.
            weight: Work-groups of the launch that it stands for.
        """
        scalars = self._progress.scalars
        for sub_group in range(self._num_sub_groups):
            if lack := self._lack_at_end():
                self._enlarge(lack)
            windows.end_window(self._store, scalars, self._opened, sub_group)
        totals = self._opened.total
        self._sub_groups += [(group, i, int(totals[i]), weight) for i in range(self._num_sub_groups)]
        totals[:] = 0
        scalars[windows.FIRST_SUB_GROUP] += self._num_sub_groups
        reuse.clear(*self._group_stack)

    def _lack_at_end(self) -> int:
        return int(
            windows._lack(
                self._store, self._progress.scalars, 2, 2 * windows.MAX_WINDOW, 0, self._group_stack, self._device_stack
            )
        )

    def _enlarge(self, lack: int) -> None:
        store = self._store
        if lack == windows.NEEDS_TOKENS:
            self._store = store._replace(
                token_static=_doubled(store.token_static),
                token_lanes=_doubled(store.token_lanes),
                token_memory=_doubled(store.token_memory),
            )
        elif lack == windows.NEEDS_WINDOWS:
            hashes = _doubled(store.window_hash)
            count = self._progress.scalars[windows.WINDOWS]
            self._store = store._replace(
                window_start=_doubled(store.window_start),
                window_hash=hashes,
                window_slots=_rehash(hashes[:count], 2 * len(store.window_slots)),
            )
        elif lack == windows.NEEDS_OUTCOMES:
            keys = _doubled(store.outcome_key)
            count = self._progress.scalars[windows.OUTCOMES]
            codes = np.array([windows._mix(np.int64(1), key) for key in keys[:count]], np.int64)
            self._store = store._replace(outcome_key=keys, outcome_slots=_rehash(codes, 2 * len(store.outcome_slots)))
        elif lack == windows.NEEDS_STREAM:
            self._store = store._replace(
                stream_sub_group=_doubled(store.stream_sub_group), stream_window=_doubled(store.stream_window)
            )
        elif lack == windows.NEEDS_GROUP_STACK:
            state = self._group_stack.state
            self._group_stack = windows.Stack(state, *reuse.enlarged(state, self._group_stack.table))
        else:
            state = self._device_stack.state
            self._device_stack = windows.Stack(state, *reuse.enlarged(state, self._device_stack.table))

    def tables(self) -> dict[str, NDArray[np.generic]]:
        """The tables of `perfvec.trace_data.Trace` by name, all but `static`."""
        store, scalars = self._store, self._progress.scalars
        tokens, stream = scalars[windows.TOKENS], scalars[windows.STREAM]
        order = np.argsort(store.stream_sub_group[:stream], kind="stable")
        lengths = np.bincount(store.stream_sub_group[:stream], minlength=len(self._sub_groups))
        return {
            "memory": unpack_outcomes(store.outcome_key[: scalars[windows.OUTCOMES]]),
            "window_start": store.window_start[: scalars[windows.WINDOWS] + 1].copy(),
            "token_static": store.token_static[:tokens].copy(),
            "token_lanes": store.token_lanes[:tokens].copy(),
            "token_memory": store.token_memory[:tokens].copy(),
            "sub_groups": np.array(self._sub_groups, SUB_GROUP_DTYPE),
            "stream_start": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "stream_window": store.stream_window[:stream][order],
        }


def _doubled(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.concatenate([array, np.zeros_like(array)])


def _rehash(codes: NDArray[np.int64], num_slots: int) -> NDArray[np.int64]:
    slots = np.full(num_slots, windows.EMPTY)
    windows.insert_all(slots, codes)
    return slots
