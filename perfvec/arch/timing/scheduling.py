"""Scheduling: whether sub-groups of a scheduler pass the same windows together.

Greedy-then-oldest lets one sub-group run until it waits, then the oldest that can, so that they drift apart and one's
calculations hide another's waiting, whatever the window. Round-robin keeps them in step: `n` sub-groups that all come
to a window with `b` busy cycles, which takes one of them `a` alone, take max(a, n b) in it.

Source:
    Greedy-then-oldest: Rogers, O'Connor, Aamodt, "Cache-Conscious Wavefront Scheduling", MICRO 2012. Both policies as
    bounds over intervals: Huang, Lee, Kim, Lee, "GPUMech", MICRO 2014.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfvec.arch.timing.dispatch import Residency
    from perfvec.arch.timing.machines import Machines


def in_step(residency: Residency, machines: Machines) -> NDArray[np.float64]:
    """Sub-groups of a scheduler that pass each window together, `(M,)`; 0 where they do not."""
    return residency.sharers * machines["is_round_robin"]
