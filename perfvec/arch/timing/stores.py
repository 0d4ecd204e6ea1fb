"""Stores: where what is written goes, by the caches' write policies.

Written through, every store's sectors go on to the next level at once. Written back, they go there when they are
evicted: from the L1 as a load's would have missed, from the L2 once for each sector that the launch writes, if more was
touched since than it holds. A sector that is stored to again before that goes to DRAM once; the launch writes no more
sectors than it touches.

Source:
    Write-through L1 and write-back, write-allocate L2 without fetching: Khairy, Shen, Aamodt, Rogers, "Accel-Sim", ISCA
    2020, section IV.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.trace_data import LINE_BYTES, SECTOR_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.reach import Reach
    from perfvec.arch.timing.workload import Workload


def stored_to_l2(moved: NDArray[np.float64], reach: Reach, machines: Machines) -> NDArray[np.float64]:
    """Sectors of each store that go on to the L2, `(A, M)`."""
    share = np.where(machines["l1_writes_back"] > 0, reach.misses_l1, 1.0)
    return moved * share * machines["counts_stores"]


def stored_to_dram(
    to_l2: NDArray[np.float64], writes: NDArray[np.bool_], workload: Workload, reach: Reach, machines: Machines
) -> NDArray[np.float64]:
    """Sectors of each store that go on to DRAM, `(A, M)`.

    Args:
        to_l2: Sectors that reach the L2, `(A, M)`.
        writes: Which accesses write, `(A,)`.
        workload: What is executed.
        reach: How far accesses reach.
        machines: The configurations.
    """
    total_M = (workload.access_executed * writes) @ to_l2
    touched = workload.footprint_lines * LINE_BYTES / SECTOR_BYTES
    once_M = np.minimum(1.0, touched / np.maximum(total_M, 1.0)) * reach.evicted
    return to_l2 * writes[:, None] * np.where(machines["l2_writes_back"] > 0, once_M, 1.0)
