"""What the timing model says of a trace on many devices: times, and where they went.

Legend: M configuration, S static instruction, T token, K cause, L source line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.resources import CAUSES as CAUSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Where an instruction's time is looked up in `Simulation.static_time_s`; the row of what no instruction causes is last.
LAUNCH_ROW = -1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A trace on M configurations.

    Attributes:
        kernel_time_s: From START to END of the kernel's event; shape `(M,)`.
        cycles: The same in cycles of each configuration's clock; `(M,)`.
        occupancy: Resident sub-groups ÷ most a unit can hold, 0 to 1; `(M,)`.
        breakdown_s: Where the time went, by `CAUSES`; `(M, K)`; rows add up to `kernel_time_s`.
        static_time_s: The time's increments by static instruction, all its executions together, and last what no
            instruction causes: launch and dispatch; `(M, S + 1)`; rows add up to `kernel_time_s`.
        token_time_s: Increment of one execution of each token of the trace; `(M, T)`. With `Trace.token_weight` they
            add up to `kernel_time_s` less the last column of `static_time_s`. Empty unless asked for.
        lines: Source lines, rising; 0 stands for unknown lines and for what no instruction causes; `(L,)`.
        line_time_s: The time's increments by source line; `(M, L)`; rows add up to `kernel_time_s`.
    """

    kernel_time_s: NDArray[np.float64]
    cycles: NDArray[np.float64]
    occupancy: NDArray[np.float64]
    breakdown_s: NDArray[np.float64]
    static_time_s: NDArray[np.float64]
    token_time_s: NDArray[np.float64]
    lines: NDArray[np.int64]
    line_time_s: NDArray[np.float64]


def by_line(static_time_s: NDArray[np.float64], source_line: NDArray[np.int32]) -> tuple[NDArray, NDArray]:
    """Add up increments by source line.

    Args:
        static_time_s: `(M, S + 1)`, as in `Simulation`.
        source_line: `(S,)`, of the trace's static table.

    Returns:
        `lines` and `line_time_s` of `Simulation`.
    """
    lines, place = np.unique(np.append(source_line, 0).astype(np.int64), return_inverse=True)
    line_time_s = np.zeros((len(lines), len(static_time_s)))
    np.add.at(line_time_s, place, static_time_s.T)
    return lines, line_time_s.T
