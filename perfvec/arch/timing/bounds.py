"""The bounds of a launch: what it would take on each device if all but one thing cost nothing; and who causes them.

Legend: M configuration, S static instruction, A access, T token, R row that time is booked on, B bound, G work-group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.timing.accesses import AccessCosts, access_costs
from perfvec.arch.timing.alone import Alone, shares_of_rows
from perfvec.arch.timing.atomics import serial_cycles
from perfvec.arch.timing.dispatch import Residency, place_groups
from perfvec.arch.timing.overlap import overlap
from perfvec.arch.timing.pipes import instructions, pipe_cycles
from perfvec.arch.timing.reach import find_reach
from perfvec.arch.timing.result import CAUSES
from perfvec.arch.timing.workload import WIDTHS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload

BOUNDS = ("alone", "core", "local", "l1", "l2", "dram", "misses", "atomics", "dispatch")
# Causes of the bounds but the first, whose cause is what sub-groups wait for.
_CAUSES = ("", "issue", "local", "l1", "l2", "dram", "l2", "atomics", "dispatch")
_ALONE, _DISPATCH = BOUNDS.index("alone"), BOUNDS.index("dispatch")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of a launch, with shares of rows in them that add up to 1.

    Attributes:
        ramp: Cycles before the first values come, in which nothing else is done.
        cycles: Cycles of all bounds together, the ramp left out.
        shares: Share of `cycles` that each bound causes.
        tails: Share of each bound that is there because numbers of work-groups are rounded up.
        rows: Share of each bound that each row causes; 0 everywhere where no row does.
        memory_rows: Share of rows in what sub-groups wait for memory.
        waits: What sub-groups alone take, by cause; adds up to 1.
        levels: What they wait for memory, by cause; adds up to 1, or is 0.
        occupancy: See `Simulation`.
    """

    ramp: NDArray[np.float64]
    cycles: NDArray[np.float64]
    shares: NDArray[np.float64]
    tails: NDArray[np.float64]
    rows: NDArray[np.float64]
    memory_rows: NDArray[np.float64]
    waits: NDArray[np.float64]
    levels: NDArray[np.float64]
    occupancy: NDArray[np.float64]

    def by_row(self) -> NDArray[np.float64]:
        """Cycles that each row causes, `(R, M)`."""
        return np.einsum("bm,brm->rm", self.cycles * self.shares, self.rows) + self.ramp * self.memory_rows

    def by_launch(self) -> NDArray[np.float64]:
        """Cycles that no row causes, `(M,)`."""
        caused = self.rows.sum(axis=1)
        unclaimed = ((1.0 - caused) * self.shares).sum(axis=0) * self.cycles
        return unclaimed + self.ramp * (1.0 - self.memory_rows.sum(axis=0))

    def by_cause(self) -> NDArray[np.float64]:
        """Cycles by `CAUSES`, `(K, M)`."""
        cycles = np.zeros((len(CAUSES), len(self.cycles)))
        cycles_BM = self.cycles * self.shares
        for bound, cause in enumerate(_CAUSES):
            if cause:
                cycles[CAUSES.index(cause)] += cycles_BM[bound] * (1.0 - self.tails[bound])
        cycles += cycles_BM[_ALONE] * (1.0 - self.tails[_ALONE]) * self.waits
        cycles[CAUSES.index("tail")] += (cycles_BM * self.tails).sum(axis=0)
        return cycles + self.ramp * self.levels


def find_bounds(workload: Workload, machines: Machines, rows_T: NDArray[np.int64], num_rows: int) -> Bounds:
    """Find the bounds of a launch.

    Args:
        workload: The launch.
        machines: M configurations.
        rows_T: Row on which each token's time is booked.
        num_rows: Rows.

    Raises:
        DeviceError: A work-group fits on no unit of a configuration.
    """
    residency = place_groups(workload.trace.context, machines)
    costs = access_costs(workload, machines, find_reach(workload, machines, residency))
    alone = Alone(workload, machines, residency, costs, rows_T, num_rows)
    demands = _demands(workload, machines, costs, rows_T, num_rows)
    bounds_BM, even_BM, rows = _bounds(workload, machines, residency, demands, num_rows)
    bounds_BM[_ALONE], even_BM[_ALONE], rows[_ALONE] = alone.cycles, alone.even_M, alone.row_RM
    ramp = np.minimum(alone.first_M, alone.mean_M) * machines["has_ramp"]
    bounds_BM[_ALONE] -= ramp
    even_BM[_ALONE] -= ramp
    cycles, shares = overlap(bounds_BM, machines["overlap_exponent"], _DISPATCH)
    return Bounds(
        ramp=ramp,
        cycles=cycles,
        shares=shares,
        tails=np.clip(1.0 - even_BM / np.where(bounds_BM > 0, bounds_BM, 1.0), 0.0, 1.0) * (bounds_BM > 0),
        rows=rows,
        memory_rows=alone.memory_rows,
        waits=alone.waits,
        levels=alone.levels,
        occupancy=residency.occupancy,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Demands:
    """What all executions of the launch ask of each part, by row; all `(R, M)`. Units as in `AccessCosts`."""

    core: NDArray[np.float64]
    access: dict[str, NDArray[np.float64]]


def _demands(
    workload: Workload, machines: Machines, costs: AccessCosts, rows_T: NDArray[np.int64], num_rows: int
) -> _Demands:
    names = ("local_cycles", "l1_cycles", "l2_bytes", "dram_bytes", "l1_waits", "l2_waits", "atomics")
    access = {name: np.zeros((num_rows, len(machines))) for name in names}
    by_token = num_rows != len(workload.trace.static) or not np.array_equal(rows_T, workload.trace.token_static)
    if by_token:
        at = np.flatnonzero(workload.token_access >= 0)
        weight = workload.token_executed[at, -1] * 32 / workload.trace.token_lanes[at]
        for name in names:
            access[name][rows_T[at]] = getattr(costs, name)[workload.token_access[at]] * weight[:, None]
    elif len(workload.access_static):
        first = np.flatnonzero(np.diff(workload.access_static, prepend=-1))
        for name in names:
            executed = getattr(costs, name) * workload.access_executed[:, None]
            access[name][workload.access_static[first]] = np.add.reduceat(executed, first, axis=0)
    return _Demands(core=_core(workload, machines, rows_T, num_rows), access=access)


def _core(workload: Workload, machines: Machines, rows_T: NDArray[np.int64], num_rows: int) -> NDArray[np.float64]:
    """Cycles of one unit for all executions, at the scheduler or the pipe that has most to do, `(R, M)`."""
    executed_RW = np.stack([np.bincount(rows_T, column, num_rows) for column in workload.token_executed.T], axis=1)
    kind_M = np.where(machines["counts_idle_lanes"] > 0, np.searchsorted(WIDTHS, machines["sub_group_size"]), -1)
    executed_RM = executed_RW[:, kind_M] * np.where(kind_M < 0, 32 / machines["sub_group_size"], 1.0)
    static_R = np.zeros(num_rows, dtype=np.int64)
    static_R[rows_T] = workload.trace.token_static
    counts = instructions(workload, machines)
    issue_SM = counts.sum(axis=0) / (machines["issue_width"] * machines["schedulers"])
    each = np.concatenate([pipe_cycles(counts, machines), issue_SM[None]])
    total = np.stack([(part[static_R] * executed_RM).sum(axis=0) for part in each])
    fullest = total.argmax(axis=0)
    return each[fullest[None, :], static_R[:, None], np.arange(len(machines))[None, :]] * executed_RM


def _bounds(
    workload: Workload, machines: Machines, residency: Residency, demands: _Demands, num_rows: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """All bounds but that of sub-groups alone: cycles, cycles if units were equally full, shares of rows."""
    shape = (len(BOUNDS), len(machines))
    bounds, even, rows = np.zeros(shape), np.zeros(shape), np.zeros((shape[0], num_rows, shape[1]))
    num_groups = float(workload.num_groups)
    in_fullest, in_mean = residency.groups_of_unit / num_groups, residency.even_groups / num_groups
    bytes_per_cycle = machines["l2_bytes_per_s"] / machines["clock_hz"]
    access = demands.access
    totals = {name: demand.sum(axis=0) for name, demand in access.items()}
    in_unit = {
        "core": (demands.core, residency.imbalance),
        "local": (access["local_cycles"], 1.0),
        "l1": (access["l1_cycles"], 1.0),
        "l2": (access["l2_bytes"], 1.0 / machines["l2_bytes_per_cycle_per_unit"]),
        "misses": (access["l1_waits"], 1.0 / machines["l1_miss_limit_sectors"]),
    }
    for name, (demand, cycles) in in_unit.items():
        bound = BOUNDS.index(name)
        bounds[bound], even[bound] = (demand.sum(axis=0) * cycles * share for share in (in_fullest, in_mean))
        rows[bound] = shares_of_rows(demand)
    in_device = {
        "l2": totals["l2_bytes"] / bytes_per_cycle,
        "dram": totals["dram_bytes"] / (machines["dram_bytes_per_s"] / machines["clock_hz"]),
        "misses": totals["l2_waits"] / machines["l2_miss_limit_sectors"],
        "atomics": np.maximum(
            totals["atomics"] / machines["l2_atomics_per_cycle"],
            serial_cycles(totals["atomics"], workload, machines),
        ),
        "dispatch": num_groups * machines["group_dispatch_s"] * machines["clock_hz"],
    }
    for name, cycles in in_device.items():
        bound = BOUNDS.index(name)
        is_more = cycles > bounds[bound]
        bounds[bound] = np.where(is_more, cycles, bounds[bound])
        even[bound] = np.where(is_more, cycles, even[bound])
    rows[BOUNDS.index("dram")] = shares_of_rows(access["dram_bytes"])
    rows[BOUNDS.index("atomics")] = shares_of_rows(access["atomics"])
    misses = BOUNDS.index("misses")
    by_l2 = in_device["misses"] >= bounds[misses]
    rows[misses] = np.where(by_l2 & (totals["l2_waits"] > 0), shares_of_rows(access["l2_waits"]), rows[misses])
    return bounds, even, rows
