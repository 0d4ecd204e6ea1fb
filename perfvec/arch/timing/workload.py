"""What the timing model reads from a trace once, whatever the configurations.

Legend: S static instruction, T token, A access (distinct pair of static instruction and memory outcome), Q pair of
windows that follow each other, E entry of a stream, G traced work-group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.timing.pipes import is_class, is_space, varies
from perfvec.trace_data import LINE_BYTES, SECTOR_BYTES, STRIDE_CLASSES, SUB_GROUP_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.trace_data import Trace

WIDTHS = (8, 16, 32, 64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A trace as the timing model takes it.

    Attributes:
        trace: The trace.
        token_executed: Device sub-groups that the launch executes each token with, by width in `WIDTHS`; those of 32
            without regard to idle lanes stand last, `(T, len(WIDTHS) + 1)`.
        token_access: Access of each token, -1 if it makes none.
        access_static: Static instruction of each access.
        access_outcome: Row of the trace's memory outcomes of each access.
        access_executed: How often the launch executes each access.
        access_lanes: Mean active lanes of each access.
        pair_before, pair_window, pair_weight: See `core.scoreboard.step_pairs`.
        stream_pair: Pair of each entry of the streams.
        stream_weights: Weight of each entry, and the same for sub-groups of 64 (two halves brought together).
        group_start: First traced sub-group of each traced work-group, and the end of the last.
        group_weight: Work-groups of the launch that each stands for.
        group_lines: Distinct lines that a work-group touches, on average.
        footprint_lines: Distinct lines that the launch touches.
        access_new: Of the sectors that an access touches first in the sample, the share that it touches first in the
            launch: sampled work-groups lack neighbours that share their lines; `(A,)`.
        scattered_lines: Lines that the launch touches between two touches of one that is touched at any time.
        in_registers: Which static instructions access private arrays that a compiler keeps in registers.
        atomic_lines: Lines of global memory that atomic operations of the sample touch; 1 or more.
        static_attempts: How often an atomic operation is tried, on average; 1 for all others.
        static_uniform: Which static instructions' addresses follow from nothing that differs between lanes.
        static_scattered: 1 where no work-group of the sample touches an instruction's lines again, down to 0 where
            half or more of their sectors have been touched by others.
        static_shared: Share of an instruction's sectors that all work-groups touch alike, 0 to 1.
    """

    trace: Trace
    token_executed: NDArray[np.float64]
    token_access: NDArray[np.int64]
    access_static: NDArray[np.int64]
    access_outcome: NDArray[np.int64]
    access_executed: NDArray[np.float64]
    access_lanes: NDArray[np.float64]
    pair_before: NDArray[np.int64]
    pair_window: NDArray[np.int64]
    pair_weight: NDArray[np.float64]
    stream_pair: NDArray[np.int64]
    stream_weights: NDArray[np.float64]
    group_start: NDArray[np.int64]
    group_weight: NDArray[np.float64]
    group_lines: float
    footprint_lines: float
    access_new: NDArray[np.float64]
    scattered_lines: float
    in_registers: NDArray[np.bool_]
    atomic_lines: float
    static_attempts: NDArray[np.float64]
    static_uniform: NDArray[np.bool_]
    static_scattered: NDArray[np.float64]
    static_shared: NDArray[np.float64]

    @property
    def num_groups(self) -> int:
        """Work-groups of the launch."""
        return self.trace.context.num_work_groups

    @property
    def num_stepped(self) -> int:
        """Sub-group instructions that are stepped through for each configuration."""
        return int(np.diff(self.trace.window_start)[self.pair_window].sum())


def read_workload(trace: Trace) -> Workload:
    """Read a trace."""
    token_weight = trace.token_weight
    token_access, keys, executed, lanes = _accesses(trace, token_weight)
    access_static, access_outcome = np.divmod(keys, max(len(trace.memory), 1))
    pairs, stream_pair, pair_weight = _pairs(trace)
    saved_windows = _shared_share(trace)
    group_start, group_weight = _groups(trace)
    memory = trace.memory[access_outcome]
    footprint = trace.context.footprint_bytes / SECTOR_BYTES
    new, scattered_lines = _first_touches(memory, executed, footprint)
    return Workload(
        trace=trace,
        token_executed=_executions(trace, token_weight, saved_windows),
        token_access=token_access,
        access_static=access_static,
        access_outcome=access_outcome,
        access_executed=executed,
        access_lanes=lanes,
        pair_before=pairs // (trace.num_windows + 1) - 1,
        pair_window=pairs % (trace.num_windows + 1),
        pair_weight=pair_weight,
        stream_pair=stream_pair,
        stream_weights=np.stack([np.ones(len(stream_pair)), 2 * saved_windows[trace.stream_window]])
        * trace.stream_weight,
        group_start=group_start,
        group_weight=group_weight,
        group_lines=_lines_of_a_group(trace, memory, executed),
        footprint_lines=_footprint_lines(memory, executed, footprint),
        access_new=new,
        scattered_lines=scattered_lines,
        in_registers=_in_registers(trace, access_static, memory, executed),
        atomic_lines=_atomic_lines(trace, token_access, access_static, memory, executed),
        static_attempts=_attempts(trace.static),
        static_uniform=_has_uniform_address(trace.static),
        static_scattered=_scattered(trace, access_static, memory, executed),
        static_shared=_shared_by_all(trace, access_static, memory, executed),
    )


def _executions(
    trace: Trace, token_weight: NDArray[np.float64], saved_windows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sub-groups of `w` lanes that have an active lane are at least lanes / w, and are taken to be no more."""
    lanes = trace.token_lanes.astype(np.float64)
    narrow = [np.ceil(lanes / width) for width in WIDTHS if width <= SUB_GROUP_SIZE]
    both = np.repeat(saved_windows, np.diff(trace.window_start))
    return np.stack([*narrow, both, lanes / SUB_GROUP_SIZE], axis=1) * token_weight[:, None]


def _accesses(
    trace: Trace, token_weight: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Access of each token; static instruction and outcome of each access in one number; executions; mean lanes."""
    token_access = np.full(trace.num_tokens, -1)
    at = np.flatnonzero(trace.token_memory >= 0)
    keys, token_access[at] = np.unique(
        trace.token_static[at].astype(np.int64) * max(len(trace.memory), 1) + trace.token_memory[at],
        return_inverse=True,
    )
    executed = np.bincount(token_access[at], token_weight[at], len(keys)).astype(np.float64)
    lanes = np.bincount(token_access[at], token_weight[at] * trace.token_lanes[at], len(keys)).astype(np.float64)
    return token_access, keys, executed, lanes / np.maximum(executed, np.finfo(np.float64).tiny)


def _pairs(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Distinct pairs of windows that follow each other as one number; pair of each entry; executions of each pair."""
    stream = trace.stream_window.astype(np.int64)
    before = np.concatenate([[0], stream[:-1] + 1])[: len(stream)]
    starts = trace.stream_start[:-1]
    before[starts[starts < len(stream)]] = 0
    pairs, stream_pair = np.unique(before * (trace.num_windows + 1) + stream, return_inverse=True)
    weights = np.repeat(trace.sub_groups["weight"], np.diff(trace.stream_start)) * trace.stream_weight
    return pairs, stream_pair.astype(np.int64), np.bincount(stream_pair, weights, len(pairs)).astype(np.float64)


def _groups(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where each traced work-group's sub-groups begin, and how many work-groups it stands for."""
    group = trace.sub_groups["work_group"]
    start = np.flatnonzero(np.diff(group, prepend=-1))
    bounds = np.append(start, len(group))
    return bounds, np.add.reduceat(trace.sub_groups["weight"], start) / np.diff(bounds)


def _shared_share(trace: Trace) -> NDArray[np.float64]:
    """Executions of each window by sub-groups of 64 for one by a half of it: 1/2 if both halves take it together."""
    from perfvec.arch.timing.core.scoreboard import shared_windows, window_codes

    names, code = np.unique(window_codes(trace.window_start, trace.token_static), return_inverse=True)
    index, group = trace.sub_groups["index"], trace.sub_groups["work_group"]
    first = np.flatnonzero(index % 2 == 0)
    follower = np.minimum(first + 1, len(index) - 1)
    has_second = (group[follower] == group[first]) & (index[follower] == index[first] + 1)
    total, saved = shared_windows(
        first,
        np.where(has_second, follower, -1),
        trace.sub_groups["weight"][first],
        trace.stream_start,
        code[trace.stream_window].astype(np.int64),
        trace.stream_weight,
        len(names),
    )
    return (1.0 - saved / np.where(total > 0, total, 1.0))[code]


def _first_touches(
    memory: NDArray[np.void], executed: NDArray[np.float64], footprint: float
) -> tuple[NDArray[np.float64], float]:
    """See `access_new` and `scattered_lines`.

    Of the launch's sectors, accesses with regular addresses touch some, streams, and the others the rest, a table, in
    which each sector is touched `k` times. Between two times lie the table and the k-th part of the streams.
    """
    cold = memory["cold_sectors_device"] * executed
    is_irregular = memory["stride_class"] == STRIDE_CLASSES.index("irregular")
    in_streams, in_table = float(cold[~is_irregular].sum()), float(cold[is_irregular].sum())
    streams = min(in_streams, footprint)
    table = min(in_table, max(footprint - streams, footprint * LEAST_TABLE))
    new_in_streams = min(1.0, (footprint - table) / in_streams) if in_streams else 1.0
    new_in_table = table / in_table if in_table else 1.0
    between = (table + new_in_table * streams) * SECTOR_BYTES / LINE_BYTES
    return np.where(is_irregular, new_in_table, new_in_streams), between


def _cold_lines(memory: NDArray[np.void], executed: NDArray[np.float64], cold: str) -> float:
    """Lines that are touched for the first time, from sectors that are.

    An access whose lines are all new brings as many as it has; one that comes to known lines, too, a line for each four
    new sectors, since it completes lines as often as it begins them.
    """
    sectors = executed * memory[cold]
    is_new = (memory["reuse_work_group"] == 0) & (memory["reuse_device"] == 0)
    a_line = np.where(is_new, np.maximum(memory["sectors"], 1.0) / np.maximum(memory["lines"], 1.0), 4.0)
    return float(sectors @ (1.0 / np.clip(a_line, 1.0, 4.0)))


def _lines_of_a_group(trace: Trace, memory: NDArray[np.void], executed: NDArray[np.float64]) -> float:
    lines = _cold_lines(memory, executed, "cold_sectors_work_group")
    return lines / max(trace.context.num_work_groups, 1)


def _footprint_lines(memory: NDArray[np.void], executed: NDArray[np.float64], sectors: float) -> float:
    cold = float(memory["cold_sectors_device"] @ executed)
    return sectors * (_cold_lines(memory, executed, "cold_sectors_device") / cold if cold else 1.0 / 4.0)


def _shared_by_all(
    trace: Trace, access_static: NDArray[np.int64], memory: NDArray[np.void], executed: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Share of each instruction's first touches that are of lines which all work-groups touch.

    A line that all of `n` traced work-groups touch is touched first by one of them, so that `n` first touches in a
    work-group come on one in the launch. Runs of four neighbours are traced together, and share lines that others
    do not; up to that nothing is taken to be shared by all.
    """
    size = len(trace.static)
    by_group = np.bincount(access_static, executed * memory["cold_sectors_work_group"], size)
    by_launch = np.bincount(access_static, executed * memory["cold_sectors_device"], size)
    num_traced = len(np.unique(trace.sub_groups["work_group"]))
    if num_traced <= RUN_LENGTH or trace.context.num_work_groups <= 1:
        return np.zeros(size)
    ratio = np.where(by_group > 0, by_group / np.maximum(by_launch, by_group / num_traced + 1e-300), 1.0)
    is_read = is_class(trace.static, "load") & is_space(trace.static, "global", "constant", "generic")
    return np.clip((ratio - RUN_LENGTH) / (num_traced - RUN_LENGTH), 0.0, 1.0) * is_read


def _attempts(static: NDArray[np.void]) -> NDArray[np.float64]:
    """Attempts of atomic operations that follow from their own result; see `atomics`."""
    is_retried = is_class(static, "atomic") & (static["producers"] == np.arange(len(static))[:, None]).any(axis=1)
    return np.where(is_retried, 2.0 - 1.0 / np.maximum(static["contention"], 1.0), 1.0)


def _has_uniform_address(static: NDArray[np.void]) -> NDArray[np.bool_]:
    """Whether an instruction's address is an argument or constants away from one, whatever the work-item.

    What is known of addresses is which instructions make them: ids, and what is loaded, may differ between lanes.
    """
    producers, differs = static["producers"], varies(static)
    is_address = is_class(static, "address")
    return np.asarray(~(is_address[producers] & differs[producers] & (producers >= 0)).any(axis=1))


def _scattered(
    trace: Trace, access_static: NDArray[np.int64], memory: NDArray[np.void], executed: NDArray[np.float64]
) -> NDArray[np.float64]:
    size = len(trace.static)
    by_group = np.bincount(access_static, executed * memory["cold_sectors_work_group"], size)
    by_launch = np.bincount(access_static, executed * memory["cold_sectors_device"], size)
    return np.clip(2.0 * by_launch / np.maximum(by_group, 1e-300) - 1.0, 0.0, 1.0)


def _in_registers(
    trace: Trace, access_static: NDArray[np.int64], memory: NDArray[np.void], executed: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Small private arrays whose elements are chosen alike by all lanes: loops over them are unrolled."""
    is_private = is_space(trace.static, "private")
    weight = executed * is_private[access_static]
    alike = float(weight @ (memory["stride_class"] == STRIDE_CLASSES.index("uniform")))
    is_small = trace.context.private_mem_bytes <= MOST_REGISTER_BYTES
    return is_private & (alike > MOSTLY * weight.sum()) & is_small


def _atomic_lines(
    trace: Trace,
    token_access: NDArray[np.int64],
    access_static: NDArray[np.int64],
    memory: NDArray[np.void],
    access_executed: NDArray[np.float64],
) -> float:
    """Lines that atomic operations of the sample touch first; if others had touched them before, by their addresses.

    If each of `n` addresses meets `c` operations on average, the launch makes n · c; a line has 32 of them.
    """
    context = trace.context
    if not context.hottest_atomics:
        return 1.0
    in_sample = np.bincount(trace.stream_window, trace.stream_weight, trace.num_windows)
    token_sample = np.repeat(in_sample, np.diff(trace.window_start))
    at = np.flatnonzero(token_access >= 0)
    executed = np.bincount(token_access[at], token_sample[at], len(access_static))
    is_atomic = is_class(trace.static, "atomic") & is_space(trace.static, "global", "generic")
    sectors = float((executed * is_atomic[access_static]) @ memory["cold_sectors_device"])
    total = float((access_executed * is_atomic[access_static]) @ memory["distinct_addresses"])
    addresses = total / max(context.atomic_lane_contention, 1.0)
    return max(1.0, sectors * SECTOR_BYTES / LINE_BYTES, addresses * 4 / LINE_BYTES)


MOST_REGISTER_BYTES = 1024  # 256 registers
MOSTLY = 0.99
LEAST_TABLE = 0.01  # of the footprint, if accesses with irregular addresses touch any of it first
RUN_LENGTH = 4  # neighbouring work-groups that the tracer takes together; see perfvec.program.sampling
