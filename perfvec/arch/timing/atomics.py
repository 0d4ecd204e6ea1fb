"""Atomic operations on global memory: at the L2, in turn where they meet at one line.

Lanes of a sub-group in one sector make one operation, if no two of them, or all, are on one address. Operations on one
line follow one another, whatever else the device does: those of the launch on the address with most, or an even share
of all for each line that is touched, if that is more. All together take their share of the L2's rate.

Source:
    Operations at the L2, their rate and that on one line: measured here on one GPU (`docs/decisions.md`, 13: 0.8 ns for
    each sub-group on one address, whether the result is used or not; histograms of 100 to 1,000 bins show that other
    addresses of the line wait, too).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.coalescing import by_width

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload


def atomic_operations(workload: Workload, machines: Machines) -> NDArray[np.float64]:
    """Operations of the L2 that an access makes if it is atomic, `(A, M)`.

    One for each sector, whose lanes are taken together; as many more as there are lanes to an address, unless all lanes
    are on one.
    """
    memory = workload.trace.memory[workload.access_outcome]
    distinct = np.maximum(memory["distinct_addresses"], 1.0)
    repeats = np.where(distinct > 1, np.maximum(workload.access_lanes / distinct, 1.0), 1.0)
    return by_width(memory, "sectors", machines["sub_group_size"]) * repeats[:, None]


def serial_cycles(total: NDArray[np.float64], workload: Workload, machines: Machines) -> NDArray[np.float64]:
    """Cycles of the launch's operations on the line with most, `(M,)`; `total` is all of them."""
    most = np.maximum(workload.trace.context.hottest_atomics, total / workload.atomic_lines)
    return np.minimum(most, total) * machines["l2_atomic_same_line_cycles"]
