"""Trying work-groups out before some are traced: what each of many does, counted without a record.

Native code without a record is so much quicker than with one that hundreds of work-groups can be run for the cost of
tracing a few. Where all do the same, little is learned; where not (skewed rows, a frontier, escape times), the
work-groups to trace and their weights are chosen by it: see `perfvec.program.sampling.choose_groups`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import BudgetError
from perfvec.trace_data import ADDRESS_SPACES, OPCODE_CLASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.program.classify import StaticTable
    from perfvec.program.executor import Execution
    from perfvec.program.sampling import Sample

# Work-groups that are tried out at most, and sub-group instructions after which no more are.
MOST_GROUPS = 2500
MOST_INSTRUCTIONS = 8_000_000
_ON_CHIP = [ADDRESS_SPACES.index(name) for name in ("none", "private", "local")]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """What work-groups do.

    Attributes:
        sample: The work-groups, and how many of the launch each stands for.
        segments: Executions of each segment by a sub-group; shape `(groups, segments)`.
        lanes: Executions by a lane, as `segments`.
    """

    sample: Sample
    segments: NDArray[np.int64]
    lanes: NDArray[np.int64]

    def behaviour(self, static: StaticTable) -> NDArray[np.float64]:
        """Sub-group instructions by opcode class, accesses to global memory, and the bytes that lanes ask of it.

        Returns:
            Shape `(groups, len(OPCODE_CLASSES) + 2)`.
        """
        rows = static.rows
        segment = np.repeat(np.arange(self.segments.shape[1]), np.diff(static.start))
        of_class = np.zeros((self.segments.shape[1], len(OPCODE_CLASSES)))
        np.add.at(of_class, (segment, rows["opcode_class"]), 1.0)
        is_global = ~np.isin(rows["address_space"], _ON_CHIP)
        accesses, num_bytes = (
            np.bincount(segment, is_global * weights, self.segments.shape[1]) for weights in (1, rows["access_bytes"])
        )
        columns = [self.segments @ of_class, self.segments @ accesses, self.lanes @ num_bytes]
        return np.column_stack(columns).astype(np.float64)


def try_out(execution: Execution, sample: Sample) -> Pilot | None:
    """Run work-groups one by one, without a record.

    Returns:
        What they do; None if the execution's budget ran out before the last.

    Raises:
        MemoryAccessError, BarrierDivergenceError: The kernel did what it must not.
    """
    shape = len(sample.groups), len(execution.segment_count)
    segments, lanes = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for place, group in enumerate(sample.groups.tolist()):
        try:
            execution.run([group])
        except BudgetError:
            return None
        segments[place], lanes[place] = execution.segment_count, execution.segment_lanes
    return Pilot(
        sample=sample,
        segments=np.diff(segments, axis=0, prepend=0),
        lanes=np.diff(lanes, axis=0, prepend=0),
    )
