"""Stores: where what is written goes, by the caches' write policies.

Written through, every store's sectors go on to the next level at once. Written back, they go there when they are
evicted: from the L1 as a load's would have missed; from the L2 once for each time that a store misses it, and once for
sectors that are stored to where they lie, as long as the launch then writes no more sectors than it touches. Private
memory is written back on all devices.

Source:
    Write-through L1 and write-back, write-allocate L2 without fetching: Khairy, Shen, Aamodt, Rogers, "Accel-Sim", ISCA
    2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.pipes import is_space
from perfvec.trace_data import LINE_BYTES, SECTOR_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.reach import Reach
    from perfvec.arch.timing.workload import Workload


def stored_to_l2(
    moved: NDArray[np.float64], workload: Workload, reach: Reach, machines: Machines
) -> NDArray[np.float64]:
    """Sectors of each store that go on to the L2, `(A, M)`."""
    return moved * _passes_l1(workload, reach, machines) * machines["counts_stores"]


def stored_to_dram(
    to_l2: NDArray[np.float64], workload: Workload, reach: Reach, machines: Machines
) -> NDArray[np.float64]:
    """Sectors of each store that go on to DRAM, `(A, M)`.

    Args:
        to_l2: Sectors of what stores that reach the L2, `(A, M)`.
        workload: The launch.
        reach: How far accesses reach.
        machines: The configurations.
    """
    passed = _passes_l1(workload, reach, machines)
    missing = to_l2 * np.minimum(reach.evicts / np.where(passed > 0, passed, 1.0), 1.0)
    # Lines of private memory are no part of the launch's footprint.
    is_shared = ~_is_private(workload)
    executed = workload.access_executed * is_shared
    lying = (to_l2 - missing) * is_shared[:, None] * reach.evicted
    room_M = workload.footprint_lines * LINE_BYTES / SECTOR_BYTES - executed @ missing
    once_M = np.clip(room_M / np.maximum(executed @ lying, 1.0), 0.0, 1.0)
    return np.where(machines["l2_writes_back"] > 0, missing + lying * once_M, to_l2)


def _is_private(workload: Workload) -> NDArray[np.bool_]:
    return is_space(workload.trace.static[workload.access_static], "private")


def _passes_l1(workload: Workload, reach: Reach, machines: Machines) -> NDArray[np.float64]:
    """Share of what is stored that goes on to the L2, `(A, M)`."""
    is_back = (machines["l1_writes_back"] > 0) | _is_private(workload)[:, None]
    return np.where(is_back, reach.misses_l1, 1.0)
