"""Long work-items: iterations of loops that decide nothing are taken by weight once a sub-group has run for long.

A sub-group's first `LONG` instructions are executed and recorded as ever. After that, at the header of a loop that may
be weighed (`perfvec.program.loops`), a few iterations are executed, and if many are left, these are split into strata
of equal length; of each the iterations in the middle are executed and stand for the others, over which the induction
variables are set forward. Loops inside are treated alike within the iterations that are executed; the weights multiply.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import BudgetError
from perfvec.program.driver import MARK_GROUP_END, WAITING
from perfvec.program.loops import Loop, Term, iterations_left, weighable_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.program.executor import Consumer, Execution
    from perfvec.program.record import Recorder

LONG = 6_000_000  # instructions of a sub-group
STRATA = (31, 7, 3)  # by depth of the loop; odd primes, so that strata do not keep step with powers of two
BURST_EVENTS = (4096, 512, 64)  # segments that are executed of a stratum, at least
FEWEST_ITERATIONS = 32


@dataclass(slots=True, kw_only=True)
class _Frame:
    """A loop being taken by weight: the stratum at hand and those to come."""

    loop: Loop
    depth: int
    left: int  # iterations left when the burst began
    first: int  # entry of the stream at which it began
    lines: int  # cache lines that had been touched then
    passed: int  # times that the header had been executed then
    skipped: int = 0  # iterations of the stratum that were skipped before it
    strata: list[int] | None = None  # their lengths, from the one at hand; None while the first burst runs


@final
class LongRuns:
    """Executes work-groups into a recorder, loops of long sub-groups by weight.

    Args:
        execution: What executes them.
        recorder: What takes in the record.
        num_groups: How many there will be.
        also: Takes in the record besides.

    Attributes:
        extra_lines: By work-group: cache lines that skipped iterations would have touched first, estimated.
    """

    def __init__(self, execution: Execution, recorder: Recorder, num_groups: int, *, also: Consumer) -> None:
        self.extra_lines = np.zeros(num_groups)
        self._execution, self._recorder, self._also = execution, recorder, also
        self._frames: list[_Frame] = []
        self._free_at: dict[int, int] = {}  # by header: the event from which on it is looked at again
        self._clock = 0
        self._base = 0  # place of the first work-group that the execution was given
        self._loops: dict[int, Loop] | None = None

    def run(self, groups: NDArray[np.int64], *, before: NDArray[np.int64] | None = None, may_cut: bool) -> str:
        """Execute work-groups, as `Execution.run` does.

        Args:
            groups: Linear numbers of the work-groups, rising.
            before: Others, rising, that are executed without a record before those of higher numbers.
            may_cut: Cut work-groups off where the budget ends, instead of giving up.

        Returns:
            Why what was recorded may not stand for the work-groups; "" if it does.

        Raises:
            MemoryAccessError, BarrierDivergenceError, BudgetError: As `Execution.run`.
        """
        try:
            if before is None:
                self._run(groups)
            else:
                pieces = np.split(before, np.searchsorted(before, groups))
                for self._base, others in enumerate(pieces[:-1]):
                    self._execution.run(others)
                    self._run(groups[self._base : self._base + 1])
        except BudgetError:
            if not may_cut:
                raise
            return self._cut_off(groups)
        return ""

    def _cut_off(self, groups: NDArray[np.int64]) -> str:
        """Keep what was executed; end the work-groups that were not."""
        execution, recorder = self._execution, self._recorder
        recorder.consume(*execution.record())
        position = self._base + execution.place[0]
        recorder.consume(np.full((len(groups) - position, 2), MARK_GROUP_END, np.uint32), np.zeros((0, 32), np.int64))
        return (
            f"cut off after {execution.num_executed:,} sub-group instructions, in work-group {position + 1} of the "
            f"{len(groups)} that stand for the launch; the rest is not counted. If the kernel ends, raise "
            "--budget; if not, look at its loops and their bounds."
        )

    def _run(self, groups: NDArray[np.int64]) -> None:
        execution, recorder = self._execution, self._recorder
        execution.begin(groups)
        place, is_done = execution.place, False
        try:
            while not is_done:
                loops = self._watched()
                is_done, events, addresses = execution.step(*self._most_events(loops))
                recorder.consume(events, addresses)
                self._also(events, addresses)
                self._clock += len(events)
                if execution.place != place:
                    place = execution.place
                    self._frames.clear()
                elif loops and not is_done:
                    self._look(loops)
        finally:
            execution.stop_at(frozenset())

    def _watched(self) -> dict[int, Loop]:
        """Loops at whose headers the execution stops now, by header."""
        if self._recorder.length(self._execution.place[1] % self._execution.num_sub_groups) < LONG:
            if self._loops:
                self._execution.stop_at(frozenset())
            return {}
        if self._loops is None:
            is_alone = self._execution.num_sub_groups == 1
            found = weighable_loops(self._execution.compiled.native)
            self._loops = {loop.header: loop for loop in found if is_alone or not loop.has_barrier}
        watched = {h: loop for h, loop in self._loops.items() if self._free_at.get(h, 0) <= self._clock}
        if self._loops:
            self._execution.stop_at(frozenset(watched))
        return watched

    def _most_events(self, watched: dict[int, Loop]) -> tuple[int, ...]:
        waiting = [at - self._clock for header, at in self._free_at.items() if at > self._clock]
        del watched
        return (min(waiting),) if waiting and self._loops else ()

    def _look(self, loops: dict[int, Loop]) -> None:
        """See whether the sub-group stands at a header that was watched, and act."""
        pcs = self._execution.program_counters()
        header = int(pcs.min())
        if header not in loops:
            return
        loop, active = loops[header], pcs == header
        while self._frames and not (loop is self._frames[-1].loop or loop.segments < self._frames[-1].loop.segments):
            self._frames.pop()
        others = pcs[~active & (pcs < WAITING)]
        left = None if loop.segments & set(others.tolist()) else self._left(loop, active)
        frame = self._frames[-1] if self._frames and self._frames[-1].loop is loop else None
        # Only if the header was executed once an iteration is this the loop's run that the burst began in.
        if frame is not None and (left is None or frame.left - left != self._passed(loop) - frame.passed):
            self._frames.pop()
            frame = None
        if frame is None:
            self._enter(loop, left)
        else:
            assert left is not None
            self._go_on(frame, left, active)

    def _passed(self, loop: Loop) -> int:
        return int(self._execution.segment_count[loop.header])

    def _enter(self, loop: Loop, left: int | None) -> None:
        depth = min(len(self._frames), len(STRATA) - 1)
        if left is not None and left >= FEWEST_ITERATIONS:
            first, lines = self._recorder.cut(self._execution.place[1])
            self._frames.append(
                _Frame(loop=loop, depth=depth, left=left, first=first, lines=lines, passed=self._passed(loop))
            )
        self._free_at[loop.header] = self._clock + BURST_EVENTS[depth]

    def _go_on(self, frame: _Frame, left: int, active: NDArray[np.bool_]) -> None:
        """A burst has ended: weigh it, skip the rest of its stratum, begin the next."""
        done = frame.left - left
        end, lines = self._recorder.cut(self._execution.place[1])
        if frame.strata is None:
            rest = left - 1 - done  # the last iterations are executed, whatever happens
            number = min(STRATA[frame.depth], rest // (2 * done))
            if number < 2:
                self._frames.pop()
                self._free_at[frame.loop.header] = self._clock + 4 * BURST_EVENTS[frame.depth]
                return
            bounds = [rest * i // number for i in range(number + 1)]
            frame.strata = [after - before for before, after in itertools.pairwise(bounds)]
        else:
            length = frame.strata.pop(0)
            after = max(0, length - frame.skipped - done)
            factor = (frame.skipped + done + after) / done
            self._recorder.weigh(frame.first, end, factor)
            if len(self._frames) == 1:
                self.extra_lines[self._base + self._execution.place[0]] += (factor - 1) * (lines - frame.lines)
            self._skip(frame.loop, after, active)
            left -= after
            if frame.strata and after == 0:  # the burst ran into the next stratum
                frame.strata[0] -= frame.skipped + done - length
            if not frame.strata or frame.strata[0] < 2 * done:
                self._frames.pop()
                self._free_at[frame.loop.header] = self._clock + BURST_EVENTS[frame.depth]
                return
        frame.skipped = max(0, frame.strata[0] - done) // 2
        self._skip(frame.loop, frame.skipped, active)
        frame.left, frame.first, frame.lines = left - frame.skipped, end, lines
        frame.passed = self._passed(frame.loop)
        self._free_at[frame.loop.header] = self._clock + BURST_EVENTS[frame.depth]

    # ---- values -------------------------------------------------------------------------------------------------

    def _value(self, text: str, bits: int) -> NDArray[np.uint64]:
        """A constant, an argument or a kept value, of each lane."""
        if not text.startswith("%"):
            return np.full(32, int(text) % (1 << bits), np.uint64)
        if text in self._execution.compiled.slot_offsets:
            return self._execution.kept(text, bits).astype(np.uint64)
        return np.full(32, self._execution.argument(text, bits), np.uint64)

    def _sum(self, terms: tuple[Term, ...], bits: int) -> NDArray[np.uint64]:
        total = np.zeros(32, np.uint64)
        for term in terms:
            total += self._value(term.value, bits) * np.uint64(term.factor % (1 << 64))
        return total & np.uint64((1 << bits) - 1)

    def _left(self, loop: Loop, active: NDArray[np.bool_]) -> int | None:
        """Iterations that all active lanes go through before the first leaves the loop; None if not known."""
        test, bits = loop.test, loop.test.induction.bits
        value = self._value(test.induction.name, bits) + self._sum(test.terms, bits)
        step, bound = self._sum(test.induction.step, bits), self._value(test.bound, bits)
        size, least = 1 << bits, None
        for numbers in set(zip(*(v[active].tolist() for v in (value, step, bound)), strict=True)):
            now, by, to = (number % size for number in numbers)
            left = iterations_left(now, by, to, bits=bits, relation=test.relation, is_signed=test.is_signed)
            if left is None:
                return None
            least = left if least is None else min(least, left)
        return least

    def _skip(self, loop: Loop, number: int, active: NDArray[np.bool_]) -> None:
        """Set the induction variables of the active lanes forward by a number of iterations."""
        for induction in loop.inductions:
            values = self._execution.kept(induction.name, induction.bits)
            moved = values.astype(np.uint64) + self._sum(induction.step, induction.bits) * np.uint64(number)
            values[active] = moved.astype(values.dtype)[active]
