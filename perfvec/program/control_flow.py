"""How the lanes of a launch's sub-groups stay together, and how predictable its branches are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.program.core import control_flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.program.segments import Segment


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFlow:
    """What the launch's instructions and conditional branches do on average; 0 without any.

    Attributes:
        mean_lanes: Active lanes of a sub-group instruction, up to 32.
        split_share: Share of the executions of branches by sub-groups after which their lanes go different ways.
        branch_entropy: Entropy of the ways that a branch's lanes go, in bits, averaged over branches by their
            executions by lanes: 0 where each branch always goes one way, 1 where each of two ways is as frequent.
    """

    mean_lanes: float
    split_share: float
    branch_entropy: float


@final
class ControlFlowLog:
    """Counts where the lanes of a launch go, work-group after work-group.

    Args:
        segments: The kernel's segments.
        sizes: Instructions of each; shape `(segments,)`.
        num_sub_groups: Sub-groups of a work-group.
        weights: Work-groups of the launch that each executed one stands for.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        sizes: NDArray[np.int64],
        *,
        num_sub_groups: int,
        weights: NDArray[np.float64],
    ) -> None:
        ways = [sorted(set(segment.successors)) for segment in segments]
        most = max([1, *map(len, ways)])
        self._successors = np.array(
            [[*way, *[-1] * (most - len(way))] if len(way) > 1 else [-1] * most for way in ways], np.int64
        ).reshape(len(ways), most)
        self._sizes = sizes
        self._counts = np.zeros((len(ways), control_flow.TO_FIRST + most), np.int64)
        self._totals = np.zeros(self._counts.shape)
        self._waiting = np.zeros((num_sub_groups, 32, 3), np.int64)
        self._num_waiting = np.zeros(num_sub_groups, np.int64)
        self._scalars = np.zeros(2, np.int64)
        self._weights = weights

    def consume(self, events: NDArray[np.uint32]) -> None:
        """Take in a piece of the executor's record: `(events, 2)`, see `core.control_flow.consume`."""
        control_flow.consume(
            events, self._successors, self._weights, self._counts, self._totals, self._waiting, self._num_waiting,
            self._scalars,
        )  # fmt: skip

    def summary(self) -> ControlFlow:
        """Averages over the launch.

        Source:
            Shannon, "A mathematical theory of communication", 1948, section 6, of each branch's ways.
        """
        runs, lanes, splits = self._totals[:, : control_flow.TO_FIRST].T
        is_branch = (self._successors >= 0).any(axis=1)
        to = self._totals[is_branch, control_flow.TO_FIRST :]
        decided = to.sum(axis=1)
        share = np.divide(to, decided[:, None], out=np.zeros(to.shape), where=to > 0)
        bits = -(share * np.log2(share, out=np.zeros(share.shape), where=share > 0)).sum(axis=1)
        return ControlFlow(
            mean_lanes=_ratio(float(lanes @ self._sizes), float(runs @ self._sizes)),
            split_share=_ratio(splits[is_branch].sum(), runs[is_branch].sum()),
            branch_entropy=_ratio(float(bits @ decided), decided.sum()),
        )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
