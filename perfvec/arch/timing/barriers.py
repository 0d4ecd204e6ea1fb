"""Barriers, and branches: what a sub-group waits for beyond the issue of the instruction.

At a barrier all instructions before it must have started; the sub-group then waits a while for the others to arrive, a
number of the configuration. That others arrive later because they have more to do is left out: a work-group takes as
long as its longest sub-group altogether.

Source:
    Cycles of a barrier by microbenchmark: Wong, Papadopoulou, Sadooghi-Alvandi, Moshovos, "Demystifying GPU
    Microarchitecture through Microbenchmarking", ISPASS 2010.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.pipes import is_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines


def waits_after(static: NDArray[np.void], sub_groups: NDArray[np.float64], machines: Machines) -> NDArray[np.float64]:
    """Cycles until a sub-group goes on after an instruction, beyond its issue, `(S, M)`.

    Args:
        static: The trace's static table.
        sub_groups: Sub-groups of a work-group, `(M,)`; one alone waits for nobody.
        machines: The configurations.
    """
    at_barrier = is_class(static, "barrier")[:, None] * machines["barrier_cycles"] * (sub_groups > 1)
    return at_barrier + is_class(static, "branch")[:, None] * machines["branch_latency_cycles"]
