"""Keeps what a trace needs of the executor's record: owner of the arrays that `core/windows.py` fills."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from perfvec.program.classify import CLASS_INDEX
from perfvec.program.contention import AtomicInstructions, AtomicLog
from perfvec.program.control_flow import ControlFlowLog
from perfvec.program.core import lines, outcomes, windows
from perfvec.program.core.pages import sparse_zeros
from perfvec.program.sampling import neighbourhoods
from perfvec.trace_data import LINE_BYTES, MEMORY_DTYPE, SUB_GROUP_DTYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from perfvec.program.classify import StaticTable
    from perfvec.program.native import NativeKernel

# Called with the name of a table of the trace and its next rows.
Append: TypeAlias = "Callable[[str, NDArray[Any]], None]"
# Fields of a packed outcome from the lowest bit: name in MEMORY_DTYPE and bits; see `windows.pack_shape` and
# `windows.pack_reuse`.
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
# Fields of its second number, see `windows.pack_more`.
_PACKED_MORE = (
    ("lines_16", 8),
    ("sectors_16", 8),
    ("lines_8", 8),
    ("sectors_8", 8),
    ("distinct_addresses", 6),
)


# Words of distinct windows, and entries of the stream, after which they are handed on.
_MANY_WORDS = 1 << 18
_MANY_ENTRIES = 1 << 16


def unpack_outcomes(keys: NDArray[np.int64]) -> NDArray[np.void]:
    """Turn packed outcomes, shape `(outcomes, 2)`, into rows of `MEMORY_DTYPE`."""
    rows = np.zeros(len(keys), MEMORY_DTYPE)
    for column, packed in enumerate((_PACKED, _PACKED_MORE)):
        rest = keys[:, column].copy()
        for name, bits in packed:
            rows[name] = rest & ((1 << bits) - 1)
            rest >>= bits
    return rows


@final
class Collected:
    """Keeps tables that come piece by piece."""

    def __init__(self) -> None:
        self._pieces: defaultdict[str, list[NDArray[Any]]] = defaultdict(list)

    def append(self, name: str, rows: NDArray[Any]) -> None:
        """Take in the next rows of a table."""
        self._pieces[name].append(rows)

    def tables(self) -> dict[str, NDArray[Any]]:
        """The tables by name; empty afterwards."""
        return {name: np.concatenate(self._pieces.pop(name)) for name in tuple(self._pieces)}


@final
class Recorder:
    """Takes in the record of one launch, work-group after work-group.

    Args:
        native: The kernel.
        static: Its static table.
        num_sub_groups: Sub-groups of a work-group.
        groups: Linear numbers of the work-groups that will be recorded, rising.
        num_groups: Work-groups of the launch in each dimension.
        weights: Work-groups of the launch that each stands for.
        memory_bytes: Size of each memory by its number.
        append: Takes the long tables of the trace piece by piece, by name, whenever there is much; they stay in memory
            where it is None. What grows besides is 33 bytes or so a distinct window and 34 a sub-group.

    Attributes:
        atomics: Which addresses its atomics went to.
        control_flow: Where its lanes went.
        num_recorded: Sub-group instructions in the streams that have been handed on.
    """

    def __init__(
        self,
        native: NativeKernel,
        static: StaticTable,
        *,
        num_sub_groups: int,
        groups: NDArray[np.int64],
        num_groups: tuple[int, ...],
        weights: NDArray[np.float64],
        memory_bytes: dict[int, int],
        append: Append | None = None,
    ) -> None:
        table = static.rows
        is_atomic = table["opcode_class"] == CLASS_INDEX["atomic"]
        self._layout = (
            *_lay_out(native, static),
            np.stack([table["address_space"], table["access_bytes"], is_atomic], axis=1).astype(np.int64),
        )
        shapes = np.zeros((len(table), windows.NUM_SHAPE), np.int64)
        shapes[:, windows.LAST_KEY] = windows.EMPTY
        self._accesses = (
            np.zeros((len(table), windows.NUM_LANES), np.int64),
            shapes,
            np.zeros((len(table), lines.MAX_LINES, 2), np.int64),
            np.zeros(4 * outcomes.MAX_SECTORS + 3 * outcomes.STAMP_SLOTS, np.int64),
            np.zeros(4, np.int64),
            np.zeros(outcomes.LOCAL_WORDS + outcomes.NUM_BANKS, np.int64),
        )
        self._open = np.zeros((num_sub_groups, windows.MAX_WORDS), np.int32), np.zeros((num_sub_groups, 3), np.int64)
        self._words = np.zeros(_MANY_WORDS, np.int32)
        self._windows = np.zeros((1 << 10, 2), np.int64)
        self._sizes = np.zeros(1 << 10, np.uint8)
        self._window_slots = np.full(1 << 10, windows.EMPTY)
        self._outcome_key = np.zeros((1 << 10, 2), np.int64)
        self._outcome_slots = np.full(1 << 10, windows.EMPTY)
        self._stream = np.zeros(_MANY_ENTRIES, np.int64)
        self._groups, self._weights, self._memory_bytes = groups, weights, memory_bytes
        self._lengths = np.zeros((len(groups), num_sub_groups), np.int64)
        self._places = neighbourhoods(groups, num_groups)
        self._scalars = np.zeros(windows.NUM_SCALARS, np.int64)
        line_table, base = lines.new_table(memory_bytes)
        self._lines = base, line_table
        is_whole = len(groups) == math.prod(num_groups)
        self._seen = sparse_zeros(0 if is_whole else 8 * len(line_table)).view(np.int64)
        self._marks = lines.new_marks(1 << 12)
        self._line_state = *lines.new_groups(len(groups)), np.zeros(4, np.int64), np.zeros(lines.MAX_LINES, np.int64)
        self._factors: list[tuple[int, int, float]] = []
        self._kept = Collected()
        self._append = self._kept.append if append is None else append
        self.num_recorded = 0
        # What has been handed on: windows, their tokens, entries of the stream, work-groups.
        self._windows_out = self._tokens_out = self._entries_out = self._groups_out = 0
        self._append("window_start", np.zeros(1, np.int64))
        self._append("stream_start", np.zeros(1, np.int64))
        self.atomics = AtomicLog(
            _atomic_instructions(static, self._layout[0][:, windows.SEG_SITES]), groups=groups, weights=weights
        )
        self.control_flow = ControlFlowLog(
            native.segments, np.diff(static.start), num_sub_groups=num_sub_groups, weights=weights
        )

    @property
    def num_windows(self) -> int:
        """Distinct windows so far."""
        return int(self._scalars[windows.WINDOWS])

    def num_lines(self) -> float:
        """How many cache lines the launch touches, estimated.

        Of each memory, with s and d lines that one and two places of the grid touched (neighbouring work-groups), and
        u that the other work-groups would add if each line of one place stood for lines of their own:

            lines + f (1 - exp(-u / f)), f = s² / 2 d, or lines + u where d = 0; at most all there are

        Places that are close do not count as two, since work-groups share lines at their edges, which says nothing of
        those far away; d is scaled up for that.

        Source:
            Chao, "Estimating the population size for capture-recapture data with unequal catchability", Biometrics 43,
            1987: f, lines not touched yet; Colwell et al., "Models and estimators linking individual-based and
            sample-based rarefaction, extrapolation and comparison of assemblages", J. Plant Ecol. 5, 2012, eq. 18.
        """
        if not len(self._seen):
            return float(self._line_state[-2][lines.ALL_LINES])
        base = self._lines[0]
        total, places = 0.0, int(self._places.max()) + 1
        far = math.comb(max(places - lines.NEAR, 0), 2)  # pairs of places that are
        for number, num_bytes in self._memory_bytes.items():
            rows = self._seen[base[number] : base[number] + -(-num_bytes // LINE_BYTES)]
            found, single, weighted, double = lines.count_seen(rows, self._weights)
            more = weighted - single
            unseen = single**2 * far / (2 * double * math.comb(places, 2)) if double else np.inf
            total += min(found + (-unseen * np.expm1(-more / unseen) if 0 < unseen < np.inf else more), len(rows))
        return total

    @np.errstate(over="ignore")  # hash codes wrap
    def consume(self, events: NDArray[np.uint32], addresses: NDArray[np.int64]) -> None:
        """Take in a piece of the record (the executor's `Consumer`)."""
        self._scalars[windows.EVENT] = self._scalars[windows.ROW] = 0
        while lack := windows.consume(events, addresses, *self._arrays()):
            self._enlarge(lack)
        self.atomics.consume(events, addresses)
        self.control_flow.consume(events)
        if self._scalars[windows.STREAM] >= _MANY_ENTRIES and self._line_state[-2][lines.GROUP] > self._groups_out:
            self._hand_on_stream()

    def length(self, sub_group: int) -> int:
        """Instructions that a sub-group of the work-group at hand has recorded, those of its open window left out."""
        return int(self._open[1][sub_group, windows.OPEN_TOTAL])

    @np.errstate(over="ignore")  # hash codes wrap
    def cut(self, sub_group: int) -> tuple[int, int]:
        """End the open window of a sub-group; entries of the stream and cache lines touched so far."""
        while lack := windows.lacking(
            self._words, self._window_slots, self._outcome_slots, self._stream, self._scalars, 1, 0
        ):
            self._enlarge(lack)
        state = self._line_state[-2]
        windows.end_window(
            self._words, self._windows, self._sizes, self._window_slots, self._stream, self._scalars, *self._open,
            state[lines.GROUP] * len(self._open[0]), sub_group,
        )  # fmt: skip
        return self._entries_out + int(self._scalars[windows.STREAM]), int(state[lines.ALL_LINES])

    def weigh(self, first: int, end: int, factor: float) -> None:
        """Let entries of the stream, from `first` to before `end`, count `factor` times as much."""
        self._factors.append((first, end, factor))

    def _arrays(self) -> list[NDArray[np.generic]]:
        """What `windows.consume` fills, in its order."""
        return [
            *self._layout, *self._accesses, *self._open, self._words, self._windows, self._sizes, self._window_slots,
            self._outcome_key, self._outcome_slots, self._stream, self._lengths, self._places, self._seen,
            self._scalars, *self._lines, *self._marks, *self._line_state,
        ]  # fmt: skip

    @np.errstate(over="ignore")  # hash codes wrap
    def _enlarge(self, lack: int) -> None:
        if lack == windows.NEEDS_WORDS:
            if not self._scalars[windows.WORDS]:  # one segment or work-group fills it all
                self._words = _doubled(self._words)
            self._hand_on_windows()
        elif lack == windows.NEEDS_WINDOWS:
            codes = self._windows[: self._scalars[windows.WINDOWS], windows.WINDOW_CODE]
            self._window_slots = _rehash(codes, 2 * len(self._window_slots))
            self._windows, self._sizes = _doubled(self._windows), _doubled(self._sizes)
        elif lack == windows.NEEDS_OUTCOMES:
            codes = windows.outcome_codes(self._outcome_key[: self._scalars[windows.OUTCOMES]])
            self._outcome_slots = _rehash(codes, 2 * len(self._outcome_slots))
            self._outcome_key = _doubled(self._outcome_key)
        elif lack == windows.NEEDS_STREAM:
            self._stream = _doubled(self._stream)
        else:
            self._marks = lines.enlarged(*self._marks)

    def _hand_on_windows(self) -> None:
        """Write out the tokens of the distinct windows since the last time."""
        num_windows = int(self._scalars[windows.WINDOWS])
        ends = self._tokens_out + np.cumsum(self._sizes[self._windows_out : num_windows], dtype=np.int64)
        num_tokens = int(ends[-1]) - self._tokens_out if len(ends) else 0
        tokens = {
            "token_static": np.zeros(num_tokens, np.uint32),
            "token_lanes": np.zeros(num_tokens, np.uint8),
            "token_memory": np.zeros(num_tokens, np.int32),
        }
        words = self._words[: self._scalars[windows.WORDS]]
        windows.expand_tokens(words, self._layout[1], self._layout[2], *tokens.values())
        for name, rows in tokens.items():
            self._append(name, rows)
        self._append("window_start", ends)
        self._windows_out, self._tokens_out = num_windows, self._tokens_out + num_tokens
        self._scalars[windows.WORDS] = 0

    def _hand_on_stream(self) -> None:
        """Write out the streams of the work-groups that have ended since the last time."""
        first, end = self._groups_out, int(self._line_state[-2][lines.GROUP])
        num_sub_groups = self._lengths.shape[1]
        recorded = self._stream[: self._scalars[windows.STREAM]]
        stream = recorded[: np.searchsorted(recorded, (end * num_sub_groups) << 32)]
        self.num_recorded += int(self._lengths[first:end].sum())
        sub_group, number = (stream >> 32) - first * num_sub_groups, stream & 0xFFFF_FFFF
        counts = np.bincount(sub_group, minlength=(end - first) * num_sub_groups)
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        stream_window = np.zeros(len(stream), np.uint32)
        windows.order_stream(sub_group << 32 | number, start, stream_window)
        stream_weight = np.ones(len(stream))
        if self._factors:
            for begin, stop, more in self._factors:
                stream_weight[begin - self._entries_out : stop - self._entries_out] *= more
            self._factors = [factor for factor in self._factors if factor[0] >= self._entries_out + len(stream)]
            executed = np.bincount(sub_group, weights=stream_weight * self._sizes[number], minlength=len(counts))
            self._lengths[first:end] = np.rint(executed).reshape(-1, num_sub_groups)
            stream_weight = stream_weight[np.argsort(sub_group, kind="stable")]
        self._append("stream_window", stream_window)
        self._append("stream_weight", stream_weight)
        self._append("stream_start", self._entries_out + start[1:])
        rest = len(recorded) - len(stream)
        self._stream[:rest] = recorded[len(stream) :]
        self._scalars[windows.STREAM] = rest
        self._groups_out, self._entries_out = end, self._entries_out + len(stream)

    def tables(self) -> dict[str, NDArray[Any]]:
        """The tables of `perfvec.trace_data.Trace` by name, all but `static` and what went to `append`."""
        self._hand_on_windows()
        self._hand_on_stream()
        sub_groups = np.zeros(self._lengths.shape, SUB_GROUP_DTYPE)
        sub_groups["work_group"], sub_groups["weight"] = self._groups[:, None], self._weights[:, None]
        sub_groups["index"], sub_groups["num_instructions"] = np.arange(sub_groups.shape[1]), self._lengths
        return {
            **self._kept.tables(),
            "memory": unpack_outcomes(self._outcome_key[: self._scalars[windows.OUTCOMES]]),
            "sub_groups": sub_groups.ravel(),
        }


def _lay_out(native: NativeKernel, static: StaticTable) -> tuple[NDArray[np.int64], ...]:
    """Segments, their parts and the parts' memory accesses, as `windows.consume` takes them."""
    num_sites = np.bincount([s.segment for s in native.sites], minlength=len(native.segments))
    segments, parts, sites = [], [], []
    for number, (first, end) in enumerate(itertools.pairwise(static.start.tolist())):
        first_part = len(parts)
        for start in range(first, end, windows.MAX_WINDOW):
            stop, first_site = min(start + windows.MAX_WINDOW, end), len(sites)
            sites += [(row, static.site[row]) for row in range(start, stop) if static.site[row] >= 0]
            parts.append((start, stop, first_site, len(sites)))
        is_header = native.segments[number].is_loop_header
        segments.append((end - first, is_header, num_sites[number], first_part, len(parts)))
    return (
        np.array(segments, np.int64).reshape(-1, 5),
        np.array(parts, np.int64).reshape(-1, 4),
        np.array(sites, np.int64).reshape(-1, 2),
    )


def is_counted_atomic(rows: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which rows of a static table are atomics on global or local memory; shape `(static,)`."""
    return (rows["opcode_class"] == CLASS_INDEX["atomic"]) & (rows["address_space"] != windows.PRIVATE)


def _atomic_instructions(static: StaticTable, num_sites: NDArray[np.int64]) -> AtomicInstructions:
    chosen = is_counted_atomic(static.rows)
    return AtomicInstructions(
        num_sites=num_sites,
        first=np.concatenate([[0], np.cumsum(chosen)])[static.start],
        site=static.site[chosen],
        is_local=static.rows["address_space"][chosen] == windows.LOCAL,
    )


def _doubled(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array, np.zeros_like(array)])


def _rehash(codes: NDArray[np.int64], num_slots: int) -> NDArray[np.int64]:
    slots = np.full(num_slots, windows.EMPTY)
    windows.insert_all(slots, np.ascontiguousarray(codes))
    return slots
