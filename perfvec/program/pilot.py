"""Trying work-groups out before some are traced: what each of many does, counted without a record.

Native code without a record is so much quicker than with one that hundreds of work-groups can be run for the cost of
tracing a few. Where all do the same, little is learned; where not (skewed rows, a frontier, escape times), the
work-groups to trace and their weights are chosen by it: see `perfvec.program.sampling.choose_groups`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import BudgetError
from perfvec.program.accesses import GLOBAL
from perfvec.program.executor import Execution
from perfvec.program.ir import pointer_space
from perfvec.program.sampling import Sample, choose_groups, place_classes, sample_groups
from perfvec.trace_data import ADDRESS_SPACES, OPCODE_CLASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.launch import Launch
    from perfvec.program.buffers import Contents
    from perfvec.program.classify import StaticTable
    from perfvec.program.machine_code import CompiledKernel

# Work-groups of a sample, at least: if these are not more than so many sub-group instructions, and in any case.
FEWEST_GROUPS, FEWEST_INSTRUCTIONS, FEWEST_LONG_GROUPS = 8, 16_000_000, 4
# Sub-group instructions after which a sample has no further work-groups.
SAMPLE_INSTRUCTIONS = 1_500_000
# Work-groups that are tried out at most, and the sub-group instructions and estimated time after which no more are.
MOST_GROUPS, MOST_INSTRUCTIONS, MOST_NS = 2500, 8_000_000, 200e6
# Estimated time of those that are tried out first; if all like ones do the same, no others are.
FIRST_NS = 30e6
# Nanoseconds of native code: for a segment, and for a scalar of a lane by opcode class. A rough fit to 240 launches,
# half of which are within a third of it; atomics as if their addresses were all over a large buffer, the dearest case.
_SEGMENT_NS, _SCALAR_NS = 28.0, 0.3
_CLASS_NS = {"special": 6.0, "native": 2.0, "atomic": 60.0, "load": 1.0, "store": 1.0}
_OF_CLASS_NS = np.array([_CLASS_NS.get(name, _SCALAR_NS) for name in OPCODE_CLASSES])
# Estimated time of what decides nothing, of all that are tried out of a kernel's launches, above which code without
# it is compiled.
LEAST_IDLE_NS = 10e6
# Share of executed segments by which work-groups of a sample may differ from what they do when others run before them.
SAME_WITHIN = 0.002
_ON_CHIP = [ADDRESS_SPACES.index(name) for name in ("none", "private", "local")]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Work-groups to trace.

    Attributes:
        sample: These.
        between: Others that are to be executed without a record between them, in order of their numbers, since what
            work-groups do depends on those before them; None where it does not.
    """

    sample: Sample
    between: NDArray[np.int64] | None = None


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

    def depends_on_place(self, num_groups: tuple[int, ...]) -> bool:
        """Whether all work-groups of each class of places do the same."""
        done = np.concatenate([self.segments, self.lanes], axis=1)
        _, first, number = np.unique(
            place_classes(self.sample.groups, num_groups), return_index=True, return_inverse=True
        )
        return bool((done == done[first[number]]).all())


# Columns of `Pilot.behaviour` by what they count: instructions, accesses, bytes.
KINDS = np.array([0] * len(OPCODE_CLASSES) + [1, 2])


def run_each(execution: Execution, sample: Sample) -> Pilot | None:
    """Run work-groups one by one, without a record.

    Returns:
        What they do; None if the execution's budget ran out before the last.

    Raises:
        MemoryAccessError, BarrierDivergenceError: The kernel did what it must not.
    """
    shape = len(sample.groups), len(execution.segment_count)
    segments, lanes = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    try:
        for place, _ in enumerate(execution.run_each(sample.groups.tolist())):
            segments[place], lanes[place] = execution.segment_count, execution.segment_lanes
    except BudgetError:
        return None
    return Pilot(
        sample=sample,
        segments=np.diff(segments, axis=0, prepend=0),
        lanes=np.diff(lanes, axis=0, prepend=0),
    )


@final
class Tryout:
    """Chooses the work-groups of a launch that are to be traced.

    Args:
        compiled: Its kernel.
        launch: The launch.
        limit: Most sub-group instructions of an execution.
    """

    def __init__(self, compiled: CompiledKernel, launch: Launch, *, limit: int) -> None:
        self._compiled, self._launch, self._limit = compiled, launch, limit
        self._seed = int(launch.digest[:8], 16)
        self._contents: dict[int, Contents] = {}
        self._last: Execution | None = None

    def execution(self, most: int | None = None, *, is_trial: bool = False) -> Execution:
        """A new execution of the launch, of at most so many sub-group instructions, or the limit."""
        limit = self._limit if most is None else min(most, self._limit)
        self._last = Execution(self._compiled, self._launch, budget=limit, contents=self._contents, is_trial=is_trial)
        return self._last

    def printed(self) -> str:
        """What the last execution printed."""
        return "" if self._last is None else self._last.printed()

    def choose(self, static: StaticTable, most: int | None) -> Choice:
        """Choose about so many work-groups, or all.

        Where they are long, fewer are chosen, at least `FEWEST_GROUPS`, or `FEWEST_LONG_GROUPS` if very long.

        Raises:
            MemoryAccessError, BarrierDivergenceError: The kernel did what it must not.
            BudgetError: One work-group ran past the limit.
        """
        everything = math.prod(self._launch.num_groups)
        sample = self._by_place(everything if most is None else most)
        if most is None or len(sample.groups) <= FEWEST_LONG_GROUPS:
            return Choice(sample=sample)
        sizes = np.diff(static.start)
        probe = self._probe(int(sample.groups[len(sample.groups) // 2]))
        if probe is None:  # it may be long, or wait for those before it, which run as well when they are tried out
            nanoseconds, fits, first, most_tried = math.inf, FEWEST_LONG_GROUPS, 0, MOST_GROUPS
        else:
            instructions, nanoseconds = max(1, int(probe.segment_count @ sizes)), _nanoseconds(probe, static)
            fits = most = min(most, _fit(instructions))
            first = int(FIRST_NS / nanoseconds)
            most_tried = min(MOST_GROUPS, MOST_INSTRUCTIONS // instructions, int(MOST_NS / nanoseconds))
        tried = self._by_place(most_tried)
        if len(tried.groups) <= fits:
            return Choice(sample=self._by_place(fits))
        for some in (self._by_place(max(first, 2 * fits)), tried):
            if some is not tried and (probe is None or 2 * len(some.groups) > len(tried.groups)):
                continue
            is_trial = probe is None or self._is_trial_worth(probe, nanoseconds, len(some.groups))
            pilot = run_each(self.execution(2 * MOST_INSTRUCTIONS, is_trial=is_trial), some)
            if pilot is None or (probe is not None and pilot.depends_on_place(self._launch.num_groups)):
                return Choice(sample=self._by_place(fits))
        most = min(most, _fit(float(tried.weights @ pilot.segments @ sizes) / everything))
        sample = choose_groups(
            tried,
            pilot.behaviour(static),
            kinds=KINDS,
            num_groups=self._launch.num_groups,
            most=most,
            seed=self._seed,
        )
        return Choice(sample=sample, between=self._between(pilot, sample))

    def _probe(self, group: int) -> Execution | None:
        """A work-group that has run alone; None if it has more instructions than a sample may have."""
        probe = self.execution(FEWEST_INSTRUCTIONS, is_trial=self._compiled.has_trial)
        try:
            probe.run([group])
        except BudgetError:
            if self._limit <= FEWEST_INSTRUCTIONS:
                raise
            return None
        return probe

    def _is_trial_worth(self, probe: Execution, nanoseconds: float, num_groups: int) -> bool:
        """Whether to try work-groups out by code without what is idle, which takes time to compile."""
        compiled = self._compiled
        compiled.tried_ns += nanoseconds * num_groups
        if compiled.has_trial or compiled.tried_ns <= LEAST_IDLE_NS:
            return compiled.has_trial
        return compiled.tried_ns * _idle_nanoseconds(probe) / nanoseconds > LEAST_IDLE_NS

    def _by_place(self, most: int) -> Sample:
        return sample_groups(self._launch.num_groups, most=most, seed=self._seed)

    def _between(self, pilot: Pilot, sample: Sample) -> NDArray[np.int64] | None:
        """Work-groups that were tried out besides, if those of the sample do something else without them."""
        if all(p.use or p.opaque or pointer_space(p.type) != GLOBAL for p in self._compiled.native.kernel.parameters):
            return None  # none reads what another writes
        execution = self.execution(2 * MOST_INSTRUCTIONS, is_trial=self._compiled.has_trial)
        expected = pilot.segments[np.isin(pilot.sample.groups, sample.groups)].sum(axis=0)
        try:
            execution.run(sample.groups)
            differs = np.abs(execution.segment_count - expected).sum() > SAME_WITHIN * expected.sum()
        except BudgetError:  # they wait for others
            differs = True
        return np.setdiff1d(pilot.sample.groups, sample.groups) if differs else None


def _nanoseconds(execution: Execution, static: StaticTable) -> float:
    """About how long a run without a record took; the same on every machine."""
    return _SEGMENT_NS * float(execution.segment_count.sum()) + float(_instruction_ns(execution, static).sum())


def _instruction_ns(execution: Execution, static: StaticTable) -> NDArray[np.float64]:
    """About how long each instruction took."""
    rows = static.rows
    lanes = np.repeat(execution.segment_lanes, np.diff(static.start))
    return (lanes * np.maximum(rows["vector_width"], 1) * _OF_CLASS_NS[rows["opcode_class"]]).astype(np.float64)


def _idle_nanoseconds(execution: Execution) -> float:
    """About how much of the time of a run went into what decides nothing."""
    return float(execution.segment_lanes @ execution.compiled.idle_scalars @ _OF_CLASS_NS)


def _fit(instructions: float) -> int:
    """How many work-groups of so many sub-group instructions a sample has at most."""
    fewest = max(FEWEST_LONG_GROUPS, min(FEWEST_GROUPS, int(FEWEST_INSTRUCTIONS / instructions)))
    return max(fewest, int(SAMPLE_INSTRUCTIONS / instructions))
