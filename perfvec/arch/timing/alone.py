"""What sub-groups take if each has a scheduler and all memories for itself: the latency bound of a launch.

A work-group takes as long as its longest sub-group. With `w` waves, the mean `a` and the longest `b` of work-groups,
and `s` to start one:

    cycles = (w - 1) (a + s) + b + s

Before the first values come, a launch does nothing else. The latency of the slowest access in a sub-group's first
window is the ramp; it is not hidden behind the other bounds.

Source:
    Time of a sub-group as issue and stalls: Huang, Lee, Kim, Lee, "GPUMech: GPU Performance Modeling Technique based on
    Interval Analysis", MICRO 2014. The ramp is this project's.

Legend: M configuration, S static instruction, A access, T token, R row that time is booked on, G work-group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.timing.accesses import LATENCY_PARTS, AccessCosts
from perfvec.arch.timing.barriers import waits_after
from perfvec.arch.timing.pipes import (
    instructions,
    is_class,
    issue_order,
    main_pipe,
    result_latency,
    sub_group_intervals,
)
from perfvec.arch.timing.result import CAUSES
from perfvec.arch.timing.scheduling import in_step
from perfvec.arch.timing.workload import WIDTHS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.dispatch import Residency
    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload


def shares_of_rows(book_RM: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of rows, which add up to 1, or are 0 where there is nothing."""
    total_M = book_RM.sum(axis=0)
    return book_RM / np.where(total_M > 0, total_M, 1.0)


@final
class Alone:
    """What sub-groups take if each has a scheduler, and all memories, for itself.

    Attributes:
        cycles: Of all waves; the last takes as long as the longest work-group.
        even_M: The same without rounding up waves.
        first_M: Latency of the slowest access of a sub-group's first window.
        mean_M: Cycles of a work-group, on average.
        row_RM, memory_rows, waits, levels: See `Bounds`.
    """

    def __init__(
        self,
        workload: Workload,
        machines: Machines,
        residency: Residency,
        costs: AccessCosts,
        rows_T: NDArray[np.int64],
        num_rows: int,
    ) -> None:
        from perfvec.arch.timing.core.scoreboard import step_pairs, stream_cycles

        trace, static = workload.trace, workload.trace.static
        counts = instructions(workload, machines)
        issue_SM = counts.sum(axis=0) / machines["issue_width"]
        interval_SM = sub_group_intervals(counts, machines)
        from_memory = np.zeros(len(static), dtype=np.bool_)
        from_memory[workload.access_static] = True
        advance_QM, busy_QM, first_QM, *books = step_pairs(
            workload.pair_before,
            workload.pair_window,
            workload.pair_weight,
            trace.window_start,
            trace.token_static,
            workload.token_access,
            rows_T,
            num_rows,
            int(machines["lookahead_instructions"][0]),
            static["producers"].astype(np.int64),
            main_pipe(static),
            issue_order(static),
            from_memory,
            issue_SM,
            waits_after(static, residency.sub_groups, machines),
            interval_SM,
            result_latency(static, machines),
            costs.latency,
        )
        sub_group_cycles = stream_cycles(
            trace.stream_start,
            workload.stream_pair,
            workload.stream_weights,
            (machines["sub_group_size"] == WIDTHS[-1]).astype(np.int64),
            advance_QM,
            busy_QM,
            in_step(residency, machines),
        )
        group_GM = np.maximum.reduceat(sub_group_cycles, workload.group_start[:-1], axis=0)
        share_G = workload.group_weight / workload.group_weight.sum()
        start_M = machines["group_start_cycles"]
        mean_M = share_G @ group_GM
        longest_M = group_GM.max(axis=0)
        self.cycles = (residency.waves - 1.0) * (mean_M + start_M) + longest_M + start_M
        self.even_M = (residency.even_waves - 1.0) * (mean_M + start_M) + mean_M + start_M
        # The launch row takes the start of work-groups.
        issue_RM, dependence_RM, memory_rows = books
        booked_RM = issue_RM + dependence_RM + memory_rows
        self.memory_rows = np.where(memory_rows.sum(axis=0) > 0, shares_of_rows(memory_rows), shares_of_rows(booked_RM))
        running_M = mean_M / np.where(mean_M + start_M > 0, mean_M + start_M, 1.0)
        self.row_RM = shares_of_rows(booked_RM) * running_M
        self.mean_M = mean_M
        is_begin = workload.pair_before < 0
        pair_weight = workload.pair_weight * is_begin
        self.first_M = pair_weight @ first_QM / max(pair_weight.sum(), 1e-300)
        self._book(workload, costs, rows_T, issue_RM, dependence_RM, memory_rows, running_M)

    def _book(
        self,
        workload: Workload,
        costs: AccessCosts,
        rows_T: NDArray[np.int64],
        issue_RM: NDArray[np.float64],
        dependence_RM: NDArray[np.float64],
        memory_rows: NDArray[np.float64],
        running_M: NDArray[np.float64],
    ) -> None:
        """Tell causes: what waits for memory waits for the levels that its producers' latencies come from."""
        static_R = np.zeros(len(issue_RM), dtype=np.int64)
        static_R[rows_T] = workload.trace.token_static
        at_barrier = is_class(workload.trace.static, "barrier")[static_R][:, None]
        parts_KSM = _parts_by_static(workload, costs)
        producers_R3 = workload.trace.static["producers"][static_R]
        waits = np.zeros((len(CAUSES), memory_rows.shape[1]))
        levels_KRM = np.zeros((len(LATENCY_PARTS), *memory_rows.shape))
        for i in range(3):
            levels_KRM += parts_KSM[:, producers_R3[:, i]] * (producers_R3[:, i] >= 0)[:, None]
        total_RM = levels_KRM.sum(axis=0)
        levels_KRM /= np.where(total_RM > 0, total_RM, 1.0)
        for level, name in enumerate(LATENCY_PARTS):
            waits[CAUSES.index(name)] += (levels_KRM[level] * memory_rows).sum(axis=0)
        of_memory = shares_of_rows(waits)
        waits[CAUSES.index("issue")] += (issue_RM * ~at_barrier).sum(axis=0)
        waits[CAUSES.index("barrier")] += (issue_RM * at_barrier).sum(axis=0)
        waits[CAUSES.index("dependence")] += dependence_RM.sum(axis=0)
        waits = shares_of_rows(waits)
        self.levels = np.where(of_memory.sum(axis=0) > 0, of_memory, waits)
        waits *= running_M
        waits[CAUSES.index("dispatch")] += 1.0 - running_M
        self.waits = waits


def _parts_by_static(workload: Workload, costs: AccessCosts) -> NDArray[np.float64]:
    """Latency of static instructions' accesses by its parts, executions added up; `(parts, S, M)`."""
    parts = np.zeros((len(LATENCY_PARTS), len(workload.trace.static), costs.latency.shape[1]))
    if len(workload.access_static):
        first = np.flatnonzero(np.diff(workload.access_static, prepend=-1))
        summed = np.add.reduceat(costs.parts * workload.access_executed[:, None], first, axis=1)
        parts[:, workload.access_static[first]] = summed
    return parts
