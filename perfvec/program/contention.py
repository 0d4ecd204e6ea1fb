"""How many atomic operations meet at one address: in the launch for global memory, in the work-group for local memory.

Atomics to one address run one after another on every device, whatever its width. Operations are counted by lane and by
sub-group; by sub-group the lanes of one execution on one address count once. The launch's counts are estimated from the
traced work-groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.program.core import atomics

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Operations that meet at one address; 0 without atomics.

    Attributes:
        by_sub_group: Operations of the launch by sub-group on the global address of one, on average.
        by_lane: The same by lane.
        hottest: Serial operations (see `core.atomics.count_row`) of the launch on the global address with most.
        local: Operations of the work-group by sub-group on the local address of one, on average.
        by_instruction: Operations by sub-group on the address of one of the instruction's, on average, of the launch
            if the instruction is on global memory, of the work-group if on local memory; shape `(atomics,)`.
    """

    by_sub_group: float
    by_lane: float
    hottest: float
    local: float
    by_instruction: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicInstructions:
    """The atomic instructions of a kernel, segment after segment; arrays of shape `(atomics,)`, but for the first two.

    Attributes:
        num_sites: Rows of each segment's address block; shape `(segments,)`.
        first: First atomic instruction of each segment, and the end of the last; shape `(segments + 1,)`.
        site: Row of the segment's address block that the instruction fills.
        is_local: Whether it is on local memory.
    """

    num_sites: NDArray[np.int64]
    first: NDArray[np.int64]
    site: NDArray[np.int64]
    is_local: NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class _Counts:
    """Operations by address, a work-group's place among the traced, and instruction; arrays of shape `(entries,)`.

    They are sorted by address, and at one address by place.
    """

    place: NDArray[np.int64]
    weight: NDArray[np.float64]
    address: NDArray[np.int64]
    instruction: NDArray[np.int64]
    by_sub_group: NDArray[np.int64]
    by_lane: NDArray[np.int64]
    serial: NDArray[np.int64]


@final
class AtomicLog:
    """Counts the operations of a launch's atomics by address, work-group after work-group.

    Args:
        instructions: The atomics.
        groups: Linear numbers of the work-groups that will be executed, in that order.
        weights: Work-groups of the launch that each stands for.
    """

    def __init__(
        self, instructions: AtomicInstructions, *, groups: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> None:
        self._instructions = instructions
        self._groups, self._weights = groups, weights
        self._state = np.zeros(4, np.int64)
        self._table = atomics.new_table(1 << 10)
        self._entries: list[NDArray[np.int64]] = []  # by work-group

    def consume(self, events: NDArray[np.uint32], addresses: NDArray[np.int64]) -> None:
        """Take in a piece of the executor's record; arrays as for `core.atomics.consume`."""
        it = self._instructions
        if not len(it.site):
            return
        self._state[atomics.EVENT] = self._state[atomics.ROW] = 0
        while stop := atomics.consume(events, addresses, it.num_sites, it.first, it.site, self._state, self._table):
            if stop == atomics.NEEDS_ROOM:
                self._table = atomics.enlarged(self._table)
            else:
                self._end_group()

    def _end_group(self) -> None:
        is_taken = self._table[:, atomics.ADDRESS] != atomics.EMPTY
        self._entries.append(self._table[is_taken, : atomics.LAST_STAMP])
        self._table[is_taken, atomics.ADDRESS] = atomics.EMPTY
        self._state[atomics.ENTRIES] = 0

    def contention(self) -> Contention:
        """Estimate the contention of the whole launch."""
        by_instruction = np.zeros(len(self._instructions.site))
        if not any(map(len, self._entries)):
            return Contention(by_sub_group=0.0, by_lane=0.0, hottest=0.0, local=0.0, by_instruction=by_instruction)
        counts = self._counts()
        is_local = self._instructions.is_local[counts.instruction]
        # Runs of neighbouring work-groups.
        runs = np.cumsum(np.diff(self._groups, prepend=self._groups[0]) > 1, dtype=np.int64)
        inside, across = _Pairs(counts, is_local, counts.place), _Pairs(counts, ~is_local, runs[counts.place])
        numbers = np.unique(counts.instruction)
        is_alone = len(numbers) == 1
        for number in numbers:
            pairs = inside if self._instructions.is_local[number] else across
            meeting = pairs.meeting_in_run if self._instructions.is_local[number] else pairs.meeting
            by_instruction[number] = meeting(counts.by_sub_group, None if is_alone else counts.instruction == number)
        return Contention(
            by_sub_group=across.meeting(counts.by_sub_group),
            by_lane=across.meeting(counts.by_lane),
            hottest=across.hottest(counts.serial),
            local=inside.meeting_in_run(counts.by_sub_group),
            by_instruction=by_instruction,
        )

    def _counts(self) -> _Counts:
        columns = np.concatenate([entries.T for entries in self._entries], axis=1)
        order = np.argsort(columns[atomics.ADDRESS], kind="stable")
        place = np.repeat(np.arange(len(self._entries)), [len(entries) for entries in self._entries])[order]
        address = columns[atomics.ADDRESS][order]
        return _Counts(
            place,
            self._weights[place],
            np.cumsum(np.diff(address, prepend=address[0]) != 0),
            columns[atomics.INSTRUCTION][order],
            *(columns[row][order] for row in range(atomics.BY_SUB_GROUP, atomics.LAST_STAMP)),
        )


@final
class _Pairs:
    """Which entries, of some, share an address in one run of work-groups."""

    def __init__(self, counts: _Counts, chosen: NDArray[np.bool_], run: NDArray[np.int64]) -> None:
        self._chosen, self._weight = chosen, counts.weight[chosen]
        address, run_there = counts.address[chosen], run[chosen]
        is_new = (np.diff(address, prepend=-1) != 0) | (np.diff(run_there, prepend=-1) != 0)
        self._pair = np.cumsum(is_new) - 1
        self._run, self._address = run_there[is_new], address[is_new]
        self._num_runs = np.count_nonzero(np.bincount(run))

    def _sums(self, count: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Plain and weighted operations by pair of run and address."""
        return atomics.sum_by_pair(self._pair, count[self._chosen], self._weight, len(self._run))

    def meeting_in_run(self, count: NDArray[np.int64], own: NDArray[np.bool_] | None = None) -> float:
        """Mean number of operations of the run on an operation's own address; 0 without operations.

        Args:
            count: Operations of each entry.
            own: Of which entries the operations are that the mean is over; all where it is None.
        """
        plain, weighted = self._sums(count)
        mine = weighted if own is None else self._sums(count * own)[1]
        return float(mine @ plain / mine.sum()) if mine.any() else 0.0

    def meeting(self, count: NDArray[np.int64], own: NDArray[np.bool_] | None = None) -> float:
        """Mean number of operations of the launch on an operation's own address; 0 without operations.

        Operations on it come from its neighbourhood, the run of neighbouring traced work-groups, and from elsewhere.
        The first are counted; the second are the launch's other operations times the probability that two operations
        of different runs meet, which pairs of traced runs estimate without bias, however rarely they meet. With `v`
        the weighted and `u` the plain operations of run k on address a, `w` those of `v` that the mean is over, and S,
        W the sums of v and w:

            sum_ka w u / W + (S - sum_k w_k u_k / W) · (sum_a w_a v_a - sum_ka w v) / (W S - sum_k w_k v_k)

        Arguments as for `meeting_in_run`.
        """
        plain, weighted = self._sums(count)
        mine = weighted if own is None else self._sums(count * own)[1]
        total, total_mine = weighted.sum(), mine.sum()
        if not total_mine:
            return 0.0
        near = mine @ plain / total_mine
        run_plain, run_weighted, run_mine = (np.bincount(self._run, x) for x in (plain, weighted, mine))
        pairs = total_mine * total - run_mine @ run_weighted
        if pairs <= 0:
            return float(near)
        at, at_mine = np.bincount(self._address, weighted), np.bincount(self._address, mine)
        meeting = at_mine @ at - mine @ weighted
        return float(near + (total - run_mine @ run_plain / total_mine) * meeting / pairs)

    def hottest(self, count: NDArray[np.int64]) -> float:
        """Operations of the launch on the address with most; 0 without operations.

        An address that all traced runs touch is taken to be touched alike by the groups between; one that only one
        run touches, by no other. For an address that m of M runs touch, with plain and weighted operations u and v:

            u + (v - u) · (m - 1) M / (m (M - 1))

        Where addresses are random and there are many, the largest estimate is too high, since it is chosen for that.
        """
        plain, weighted = self._sums(count)
        if not plain.any():
            return 0.0
        at_plain, at = np.bincount(self._address, plain), np.bincount(self._address, weighted)
        touched = np.maximum(np.bincount(self._address), 1)
        rest = max(self._num_runs - 1, 1)
        return float((at_plain + (at - at_plain) * (touched - 1) * self._num_runs / (touched * rest)).max())
