"""Atomic operations on global memory: at the L2, in turn where they meet at one line.

Lanes of a sub-group in one sector make one operation, if no two of them are on one address; where lanes meet at one, so
many follow one another. If the address is the same for all lanes whatever they do, the compiler combines them before.
An operation that follows from its own result is a loop of compare-and-exchange. The sample's never fail for other
sub-groups' sake; on a device one that meets `c` others is taken to need 2 - 1 / c attempts.

Operations on one line follow one another, whatever else the device does: those of the launch on the address with most,
or an even share of all for each line that is touched, if that is more. All together take their share of the L2's rate.

Source:
    Measured here on one GPU: 0.8 ns for each sub-group on an address that is the same for all (`docs/decisions.md`, 13)
    and for each lane where that is not known; histograms of 20 to 1,000 bins show that other addresses of the line
    wait, too, and that the lanes of one sector do not.
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

    One for each sector, whose lanes are taken together, times the lanes to an address; but only one if all lanes have
    one address and the compiler knows it.
    """
    memory = workload.trace.memory[workload.access_outcome]
    distinct = np.maximum(memory["distinct_addresses"], 1.0)
    is_combined = (distinct == 1) & workload.static_uniform[workload.access_static]
    repeats = np.where(is_combined, 1.0, np.maximum(workload.access_lanes / distinct, 1.0))
    repeats = repeats * workload.static_attempts[workload.access_static]
    return by_width(memory, "sectors", machines["sub_group_size"]) * repeats[:, None]


def serial_cycles(total: NDArray[np.float64], workload: Workload, machines: Machines) -> NDArray[np.float64]:
    """Cycles of the launch's operations on the line with most, `(M,)`; `total` is all of them."""
    most = np.maximum(workload.trace.context.hottest_atomics, total / workload.atomic_lines)
    return np.minimum(most, total) * machines["l2_atomic_same_line_cycles"]
