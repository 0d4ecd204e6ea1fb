"""How many atomic operations of a launch meet at one address, estimated from the traced work-groups.

Atomics to one address run one after another on every device, whatever its width. Two counts matter: operations by lane,
and operations by sub-group, in which lanes of a sub-group on one address count once, since devices and compilers
combine them where they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.program.driver import MARK_GROUP_END

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_ROWS = 1 << 14  # that are kept before they are counted


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Operations of the launch on the address of an operation, averaged over all operations; 0 without atomics."""

    by_sub_group: float
    by_lane: float


@final
class AtomicLog:
    """Gathers the addresses of a launch's global atomics, work-group after work-group.

    Args:
        sites: For each segment, the rows of its address block that belong to global atomics.
        num_sites: Rows of each segment's address block; shape `(segments,)`.
    """

    def __init__(self, sites: list[list[int]], num_sites: NDArray[np.int64]) -> None:
        self._sites = sites
        self._num_sites = num_sites
        self._has_atomics = np.flatnonzero([bool(rows) for rows in sites])
        self._num_ended = 0
        # Rows not yet counted, each with its work-group's place among the traced; then counts by both.
        self._rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._num_rows = 0
        self._counts = _Counts.none()

    def consume(self, events: NDArray[np.uint32], addresses: NDArray[np.int64]) -> None:
        """Take in a piece of the executor's record.

        Args:
            events: `(events, 2)`: segment and lane mask, or a mark of the driver.
            addresses: `(rows, lane)`: a row a memory access, -1 for inactive lanes.
        """
        words = events[:, 0]
        segments = words[words < len(self._num_sites)]
        first = np.cumsum(self._num_sites[segments]) - self._num_sites[segments]
        ended = self._num_ended + np.cumsum(words == MARK_GROUP_END)
        places = ended[words < len(self._num_sites)]
        for segment in self._has_atomics:
            is_here = segments == segment
            for row in self._sites[segment]:
                self._rows.append((places[is_here], addresses[first[is_here] + row]))
                self._num_rows += len(self._rows[-1][0])
        self._num_ended = int(ended[-1]) if len(ended) else self._num_ended
        if self._num_rows > _MOST_ROWS:
            self._count()

    def _count(self) -> None:
        """Only counts by work-group and address are kept."""
        place = np.concatenate([places for places, _ in self._rows])
        rows = np.sort(np.concatenate([addresses for _, addresses in self._rows]), axis=1)
        self._rows, self._num_rows = [], 0
        is_new = np.ones(rows.shape, np.bool_)
        is_new[:, 1:] = rows[:, 1:] != rows[:, :-1]
        is_active = rows >= 0
        operations = _Counts(
            place=np.repeat(place, is_active.sum(axis=1)),
            address=rows[is_active],
            by_sub_group=is_new[is_active].astype(np.float64),
            by_lane=np.ones(int(is_active.sum())),
        )
        self._counts = self._counts.added(operations)

    def contention(self, groups: NDArray[np.int64], weights: NDArray[np.float64]) -> Contention:
        """Estimate the contention of the whole launch.

        Args:
            groups: Linear numbers of the traced work-groups.
            weights: Work-groups of the launch that each stands for.

        Operations on an operation's own address come from its neighbourhood, the run of neighbouring traced
        work-groups, and from elsewhere. The first are counted; the second are the launch's other operations times the
        probability that two operations of different runs meet, which pairs of traced runs estimate without bias,
        however rarely they meet.
        """
        if self._rows:
            self._count()
        counts = self._counts
        if not len(counts.place):
            return Contention(by_sub_group=0.0, by_lane=0.0)
        runs = np.cumsum(np.diff(groups, prepend=groups[0]) > 1, dtype=np.int64)
        distinct, address = np.unique(counts.address, return_inverse=True)
        keys, pair = np.unique(runs[counts.place] * len(distinct) + address, return_inverse=True)
        run, address = np.divmod(keys, len(distinct))
        weight = weights[counts.place]
        by_sub_group, by_lane = (
            _meeting(run, address, _sums(pair, count), _sums(pair, count * weight))
            for count in (counts.by_sub_group, counts.by_lane)
        )
        return Contention(by_sub_group=by_sub_group, by_lane=by_lane)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Operations by a work-group's place among the traced and by address; all arrays of one length."""

    place: NDArray[np.int64]
    address: NDArray[np.int64]
    by_sub_group: NDArray[np.float64]
    by_lane: NDArray[np.float64]

    @classmethod
    def none(cls) -> _Counts:
        return cls(
            place=np.zeros(0, np.int64), address=np.zeros(0, np.int64), by_sub_group=np.zeros(0), by_lane=np.zeros(0)
        )

    def added(self, other: _Counts) -> _Counts:
        """Both together, each work-group and address once, in this order."""
        place, address = np.append(self.place, other.place), np.append(self.address, other.address)
        distinct, number = np.unique(address, return_inverse=True)
        keys, pair = np.unique(place * len(distinct) + number, return_inverse=True)
        return _Counts(
            place=keys // max(len(distinct), 1),
            address=distinct[keys % max(len(distinct), 1)],
            by_sub_group=_sums(pair, np.append(self.by_sub_group, other.by_sub_group)),
            by_lane=_sums(pair, np.append(self.by_lane, other.by_lane)),
        )


def _sums(number: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the values of each number."""
    return np.bincount(number, weights=values).astype(np.float64)


def _meeting(
    run: NDArray[np.int64], address: NDArray[np.int64], plain: NDArray[np.float64], weighted: NDArray[np.float64]
) -> float:
    """Mean number of operations on an operation's own address, from counts by run of traced work-groups and address.

    With `v` the weighted and `u` the plain operations of run k on address a, and S the sum of v:

        sum_ka v u / S + (S - sum_k v_k u_k / S) · (sum_a (sum_k v)² - sum_ka v²) / (S² - sum_k v_k²)
    """
    total = weighted.sum()
    run_plain, run_weighted = np.bincount(run, weights=plain), np.bincount(run, weights=weighted)
    near = weighted @ plain / total
    pairs = total**2 - run_weighted @ run_weighted
    if pairs <= 0:
        return float(near)
    meeting = np.square(np.bincount(address, weights=weighted)).sum() - weighted @ weighted
    return float(near + (total - run_weighted @ run_plain / total) * meeting / pairs)
