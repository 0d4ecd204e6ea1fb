"""How many atomic operations of a launch meet at one address, estimated from the traced work-groups.

Atomics to one address run one after another on every device, whatever its width. Two counts matter: operations by lane,
and operations by sub-group, in which lanes of a sub-group on one address count once, since devices and compilers
combine them where they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Operations of the launch on the address of an operation, averaged over all operations; 0 without atomics."""

    by_sub_group: float
    by_lane: float


class AtomicLog:
    """Gathers the addresses of a launch's global atomics, work-group after work-group.

    Args:
        sites: For each segment, the rows of its address block that belong to global atomics.
        num_sites: Rows of each segment's address block; shape `(segments,)`.
    """

    def __init__(self, sites: list[list[int]], num_sites: NDArray[np.int64]) -> None:
        self._sites = sites
        self._num_sites = num_sites
        self._has_atomics = np.array([bool(rows) for rows in sites], np.bool_)
        self._pieces: list[NDArray[np.int64]] = []
        self._groups: list[tuple[int, float, NDArray[np.int64], NDArray[np.float64]]] = []

    def consume(self, events: NDArray[np.uint32], addresses: NDArray[np.int64], no_segment: int) -> None:
        """Take in a piece of the executor's record.

        Args:
            events: `(events, 2)`: segment and lane mask, or `no_segment`.
            addresses: `(rows, lane)`: a row a memory access, -1 for inactive lanes.
            no_segment: What stands in place of a segment where the event is none.
        """
        segments = events[:, 0][events[:, 0] != no_segment]
        ends = np.cumsum(self._num_sites[segments])
        for segment in np.flatnonzero(self._has_atomics):
            first_rows = (ends - self._num_sites[segments])[segments == segment]
            self._pieces += [addresses[first_rows + row] for row in self._sites[segment]]

    def end_group(self, group: int, weight: float) -> None:
        """End a work-group: only its addresses and their counts are kept.

        Args:
            group: Its linear number.
            weight: Work-groups of the launch that it stands for.
        """
        if not self._pieces:
            return
        rows = np.sort(np.concatenate(self._pieces), axis=1)
        self._pieces.clear()
        is_new = np.ones(rows.shape, np.bool_)
        is_new[:, 1:] = rows[:, 1:] != rows[:, :-1]
        is_active = rows >= 0
        distinct, place = np.unique(rows[is_active], return_inverse=True)
        by_lane = np.bincount(place, minlength=len(distinct))
        by_sub_group = np.bincount(place, weights=is_new[is_active], minlength=len(distinct))
        self._groups.append((group, weight, distinct, np.stack([by_sub_group, by_lane], axis=1).astype(np.float64)))

    def contention(self) -> Contention:
        """Estimate the contention of the whole launch.

        Operations on an operation's own address come from its neighbourhood, the run of neighbouring traced
        work-groups, and from elsewhere. The first are counted; the second are the launch's other operations times the
        probability that two operations of different runs meet, which pairs of traced runs estimate without bias,
        however rarely they meet.
        """
        if not self._groups:
            return Contention(by_sub_group=0.0, by_lane=0.0)
        numbers = np.array([group for group, *_ in self._groups])
        runs = np.cumsum(np.diff(numbers, prepend=numbers[0]) > 1)
        run = np.repeat(runs, [len(addresses) for _, _, addresses, _ in self._groups])
        weight = np.repeat([w for _, w, _, _ in self._groups], [len(addresses) for _, _, addresses, _ in self._groups])
        counts = np.concatenate([c for *_, c in self._groups])
        _, address = np.unique(np.concatenate([a for _, _, a, _ in self._groups]), return_inverse=True)
        return Contention(
            by_sub_group=_meeting(run, address, weight, counts[:, 0]),
            by_lane=_meeting(run, address, weight, counts[:, 1]),
        )


def _meeting(
    run: NDArray[np.int64], address: NDArray[np.int64], weight: NDArray[np.float64], count: NDArray[np.float64]
) -> float:
    """Mean number of operations on an operation's own address, from counts by traced work-group and address.

    With `v` the weighted and `u` the plain operations of run k on address a, and S the sum of v:

        sum_ka v u / S + (S - sum_k v_k u_k / S) · (sum_a (sum_k v)² - sum_ka v²) / (S² - sum_k v_k²)
    """
    num_addresses = int(address.max()) + 1
    keys, pair = np.unique(run * num_addresses + address, return_inverse=True)
    key_run, key_address = np.divmod(keys, num_addresses)
    plain = np.bincount(pair, weights=count)
    weighted = np.bincount(pair, weights=count * weight)
    total = weighted.sum()
    run_plain, run_weighted = np.bincount(key_run, weights=plain), np.bincount(key_run, weights=weighted)
    near = weighted @ plain / total
    pairs = total**2 - run_weighted @ run_weighted
    if pairs <= 0:
        return float(near)
    meeting = np.square(np.bincount(key_address, weights=weighted)).sum() - weighted @ weighted
    return float(near + (total - run_weighted @ run_plain / total) * meeting / pairs)
