"""Atomic operations on global memory: at the L2, in turn where they meet at one address.

Lanes of a sub-group on one address are combined into one operation. Operations of the launch on the address with most
follow one another, whatever else the device does; all together take their share of the L2's rate.

Source:
    Operations at the L2, their rate and that on one address: measured here on one GPU (`docs/decisions.md`, 13: 0.8 ns
    for each sub-group on one address, whether the result is used or not).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload


def atomic_operations(workload: Workload, machines: Machines) -> NDArray[np.float64]:
    """Operations of the L2 that an access makes if it is atomic, `(A, M)`: one an address and sub-group."""
    memory = workload.trace.memory[workload.access_outcome]
    distinct = np.maximum(memory["distinct_addresses"], 1.0)[:, None]
    narrow = np.ceil(workload.access_lanes[:, None] / machines["sub_group_size"])
    return np.maximum(distinct, np.minimum(narrow, workload.access_lanes[:, None]))


def serial_cycles(workload: Workload, machines: Machines) -> NDArray[np.float64]:
    """Cycles of the launch's operations on the address with most, `(M,)`."""
    return workload.trace.context.hottest_atomics * machines["l2_atomic_same_line_cycles"]
