"""From a launch to its trace."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import BudgetError
from perfvec.program.classify import StaticTable, make_static_table
from perfvec.program.executor import DEFAULT_BUDGET, Execution, compile_launch
from perfvec.program.frontend import PIPELINE_VERSION
from perfvec.program.long_runs import LongRuns
from perfvec.program.pilot import MOST_GROUPS, MOST_INSTRUCTIONS, Pilot, try_out
from perfvec.program.record import Recorder, is_counted_atomic
from perfvec.program.registers import most_live_registers
from perfvec.program.sampling import Sample, choose_groups, sample_groups
from perfvec.trace_data import LINE_BYTES, LaunchContext, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from perfvec.launch import Launch
    from perfvec.program.buffers import Contents
    from perfvec.program.contention import Contention
    from perfvec.program.control_flow import ControlFlow

DEFAULT_GROUPS = 48
# Work-groups of a default trace, at least: if these are not more than so many sub-group instructions, and in any case.
FEWEST_GROUPS, FEWEST_INSTRUCTIONS, FEWEST_LONG_GROUPS = 8, 16_000_000, 4
# Sub-group instructions after which a default trace takes no further work-groups.
SAMPLE_INSTRUCTIONS = 1_500_000
# Share of executed segments by which traced work-groups may differ from what they do when others run before them.
SAME_WITHIN = 0.002


def trace_launch(
    launch: Launch,
    *,
    work_groups: int | None = DEFAULT_GROUPS,
    budget: int | None = None,
    on_printf: Callable[[str], None] | None = None,
) -> Trace:
    """Execute a sample of a launch's work-groups and record what they did. No GPU is needed.

    Args:
        launch: What to trace.
        work_groups: About how many work-groups to record; None for all of them. Where they are long, fewer are taken,
            at least `FEWEST_GROUPS`, or `FEWEST_LONG_GROUPS` if they are very long.
        budget: Most sub-group instructions to execute before giving up. Where it is None, work-groups that run past
            `DEFAULT_BUDGET` are cut off, and the trace's caveat says so.
        on_printf: Called once with what the executed work-groups printed, if anything; before an error is raised, too.

    Loops of sub-groups that run for long are taken by weight where they may be: see `perfvec.program.long_runs`.

    Raises:
        SourceError: The source does not compile.
        KernelNotFoundError: The program has no such kernel.
        LaunchError: The arguments do not fit the kernel.
        UnsupportedError: The kernel uses something that the executor does not know.
        MemoryAccessError: A work-item touched memory outside its buffers.
        BarrierDivergenceError: Not all work-items of a work-group reached a barrier.
        BudgetError: The budget ran out.
    """
    tracer = _Tracer(launch, limit=DEFAULT_BUDGET if budget is None else budget, may_cut=budget is None)
    try:
        return tracer.trace(work_groups)
    finally:
        if on_printf is not None and (text := tracer.printed()):
            on_printf(text)


@final
class _Tracer:
    """A launch being traced."""

    def __init__(self, launch: Launch, *, limit: int, may_cut: bool) -> None:
        self._launch, self._limit, self._may_cut = launch, limit, may_cut
        self._compiled = compile_launch(launch)
        self._static = make_static_table(self._compiled.native)
        self._contents: dict[int, Contents] = {}
        self._last: Execution | None = None

    def printed(self) -> str:
        """What the last execution printed."""
        return self._last.printed() if self._last is not None else ""

    def _execution(self, limit: int) -> Execution:
        self._last = Execution(self._compiled, self._launch, budget=limit, contents=self._contents)
        return self._last

    def trace(self, work_groups: int | None) -> Trace:
        """Trace about so many work-groups, or all."""
        if work_groups is None:
            return self._record(self._sample(math.prod(self._launch.num_groups)))[0]
        sample, pilot = self._choose(work_groups)
        trace, execution = self._record(sample)
        if pilot is not None and not _is_as_in(pilot, sample, execution):
            trace, _ = self._record(sample, before=np.setdiff1d(pilot.sample.groups, sample.groups))
        return trace

    def _record(self, sample: Sample, before: NDArray[np.int64] | None = None) -> tuple[Trace, Execution]:
        """Trace these work-groups; `before`: others that are executed between them, in order of their numbers."""
        execution = self._execution(self._limit)
        recorder = Recorder(
            self._compiled.native,
            self._static,
            num_sub_groups=execution.num_sub_groups,
            groups=sample.groups,
            num_groups=self._launch.num_groups,
            weights=sample.weights,
            memory_bytes={number: memory.num_bytes for number, memory in execution.memories.items()},
        )
        runs = LongRuns(execution, recorder, len(sample.groups))
        caveat = runs.run(sample.groups, before=before, may_cut=self._may_cut)
        tables, contention = recorder.tables(), recorder.atomics.contention()
        rows = self._static.rows.copy()
        rows["contention"][is_counted_atomic(rows)] = contention.by_instruction
        trace = Trace(
            launch=self._launch,
            pipeline_version=PIPELINE_VERSION,
            num_executed=execution.num_executed,
            context=_context(
                self._launch,
                execution,
                self._static,
                tables["sub_groups"],
                recorder.num_lines() + float(runs.extra_lines @ sample.weights),
                contention,
                recorder.control_flow.summary(),
                caveat,
            ),
            static=rows,
            **tables,
        )
        return trace, execution

    def _sample(self, most: int) -> Sample:
        return sample_groups(self._launch.num_groups, most=most, seed=self._seed)

    @property
    def _seed(self) -> int:
        return int(self._launch.digest[:8], 16)

    def _choose(self, most: int) -> tuple[Sample, Pilot | None]:
        """The work-groups to trace, and what was learned from trying some out, if that decided.

        Fewer are taken where one alone, run without record, shows that they are long.
        """
        sample = self._sample(most)
        if len(sample.groups) <= FEWEST_LONG_GROUPS:
            return sample, None
        probe = self._execution(min(self._limit, FEWEST_INSTRUCTIONS))
        try:
            probe.run([int(sample.groups[len(sample.groups) // 2])])
        except BudgetError:
            if self._limit <= FEWEST_INSTRUCTIONS:
                raise
            return self._sample(FEWEST_LONG_GROUPS), None
        sizes = np.diff(self._static.start)
        instructions = max(1, int(probe.segment_count @ sizes))
        most = min(most, _fit(instructions))
        tried = self._sample(min(MOST_GROUPS, MOST_INSTRUCTIONS // instructions))
        if len(tried.groups) > most:
            pilot = try_out(self._execution(min(self._limit, 2 * MOST_INSTRUCTIONS)), tried)
            behaviour = pilot.behaviour(self._static) if pilot else np.zeros((1, 0))
            if pilot and (behaviour != behaviour[0]).any():
                per_group = float(tried.weights @ pilot.segments @ sizes) / float(tried.weights.sum())
                most = min(most, _fit(per_group))
                groups = self._launch.num_groups
                return choose_groups(tried, behaviour, num_groups=groups, most=most, seed=self._seed), pilot
        return self._sample(most), None


def _fit(instructions: float) -> int:
    """How many work-groups of so many sub-group instructions a default trace has at most."""
    fewest = max(FEWEST_LONG_GROUPS, min(FEWEST_GROUPS, int(FEWEST_INSTRUCTIONS / instructions)))
    return max(fewest, int(SAMPLE_INSTRUCTIONS / instructions))


def _is_as_in(pilot: Pilot, sample: Sample, execution: Execution) -> bool:
    """Whether traced work-groups did what they did when others ran before them."""
    expected = pilot.segments[np.isin(pilot.sample.groups, sample.groups)].sum(axis=0)
    return bool(np.abs(execution.segment_count - expected).sum() <= SAME_WITHIN * expected.sum())


def _context(
    launch: Launch,
    execution: Execution,
    static: StaticTable,
    sub_groups: NDArray[np.void],
    num_lines: float,
    contention: Contention,
    control_flow: ControlFlow,
    caveat: str,
) -> LaunchContext:
    weight = sub_groups["weight"]
    lengths = sub_groups["num_instructions"].astype(np.float64)
    mean = float(np.average(lengths, weights=weight))
    spread = float(np.sqrt(np.average((lengths - mean) ** 2, weights=weight)))
    return LaunchContext(
        num_work_items=launch.num_work_items,
        num_work_groups=execution.num_work_groups,
        sub_groups_per_group=execution.num_sub_groups,
        local_size=launch.num_work_items // execution.num_work_groups,
        num_dims=len(launch.global_size),
        local_mem_bytes=execution.local_mem_bytes,
        private_mem_bytes=execution.compiled.native.memories.private_bytes,
        live_registers=most_live_registers(execution.compiled.native.kernel),
        buffer_bytes=launch.buffer_bytes,
        footprint_bytes=min(LINE_BYTES * num_lines, float(max(launch.buffer_bytes, LINE_BYTES))),
        static_instructions=len(static.rows),
        mean_instructions=mean,
        max_instructions=float(lengths.max()),
        instructions_spread=spread / mean if mean else 0.0,
        atomic_contention=contention.by_sub_group,
        atomic_lane_contention=contention.by_lane,
        local_atomic_contention=contention.local,
        hottest_atomics=contention.hottest,
        mean_lanes=control_flow.mean_lanes,
        split_share=control_flow.split_share,
        branch_entropy=control_flow.branch_entropy,
        caveat=caveat,
    )
