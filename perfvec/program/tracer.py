"""From a launch to its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.program.executor import DEFAULT_BUDGET, Execution, compile_launch
from perfvec.program.frontend import PIPELINE_VERSION
from perfvec.program.local_memory import LocalReads
from perfvec.program.long_runs import LongRuns
from perfvec.program.pilot import Tryout
from perfvec.program.record import Collected, Recorder, is_counted_atomic
from perfvec.trace_data import LINE_BYTES, LaunchContext, Trace, TraceSummary, open_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from perfvec.launch import Launch
    from perfvec.program.contention import Contention
    from perfvec.program.control_flow import ControlFlow
    from perfvec.program.record import Append

DEFAULT_GROUPS = 48


def trace_launch(
    launch: Launch,
    *,
    work_groups: int | None = DEFAULT_GROUPS,
    budget: int | None = None,
    on_printf: Callable[[str], None] | None = None,
) -> Trace:
    """Execute a sample of a launch's work-groups and record what they did. No GPU is needed.

    Local memory that is read and has not been written is warned of, once.

    Args:
        launch: What to trace.
        work_groups: About how many work-groups to record; None for all of them. Where they are long, fewer are taken:
            see `perfvec.program.pilot.Tryout.choose`.
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
    collected = Collected()
    summary = _trace(launch, collected.append, work_groups=work_groups, budget=budget, on_printf=on_printf)
    return Trace(
        launch=launch,
        pipeline_version=summary.pipeline_version,
        num_executed=summary.num_executed,
        context=summary.context,
        static=summary.static,
        memory=summary.memory,
        sub_groups=summary.sub_groups,
        **collected.tables(),
    )


def trace_to_file(
    launch: Launch,
    path: str | Path,
    *,
    work_groups: int | None = DEFAULT_GROUPS,
    budget: int | None = None,
    on_printf: Callable[[str], None] | None = None,
) -> TraceSummary:
    """As `trace_launch(...).save(path)`, but windows and streams go to the file while the launch runs.

    Memory grows by some 70 bytes a distinct window or sub-group, and not with the windows' contents and the streams.

    Raises:
        FormatError: The folder does not exist.
        PerfVecError: As `trace_launch`.
    """
    with open_trace(path) as file:
        summary = _trace(launch, file.append, work_groups=work_groups, budget=budget, on_printf=on_printf)
        file.finish(summary)
    return summary


def _trace(
    launch: Launch,
    append: Append,
    *,
    work_groups: int | None,
    budget: int | None,
    on_printf: Callable[[str], None] | None,
) -> TraceSummary:
    compiled = compile_launch(launch)
    static = compiled.static
    tryout = Tryout(compiled, launch, limit=DEFAULT_BUDGET if budget is None else budget)
    try:
        choice = tryout.choose(static, work_groups)
        sample, execution = choice.sample, tryout.execution()
        recorder = Recorder(
            compiled.native,
            static,
            num_sub_groups=execution.num_sub_groups,
            groups=sample.groups,
            num_groups=launch.num_groups,
            weights=sample.weights,
            memory_bytes={number: memory.num_bytes for number, memory in execution.memories.items()},
            append=append,
        )
        local_reads = LocalReads(compiled.native, execution.memories, launch.source_name)
        runs = LongRuns(execution, recorder, len(sample.groups), also=local_reads.consume)
        caveat = runs.run(sample.groups, before=choice.between, may_cut=budget is None)
    finally:
        if on_printf is not None and (text := tryout.printed()):
            on_printf(text)
    tables, contention = recorder.tables(), recorder.atomics.contention()
    rows = static.rows.copy()
    rows["contention"][is_counted_atomic(rows)] = contention.by_instruction
    return TraceSummary(
        launch=launch,
        pipeline_version=PIPELINE_VERSION,
        num_executed=execution.num_executed,
        num_recorded=recorder.num_recorded,
        num_windows=recorder.num_windows,
        context=_context(
            launch,
            execution,
            len(rows),
            tables["sub_groups"],
            recorder.num_lines() + float(runs.extra_lines @ sample.weights),
            contention,
            recorder.control_flow.summary(),
            caveat,
        ),
        static=rows,
        **tables,
    )


def _context(
    launch: Launch,
    execution: Execution,
    static_instructions: int,
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
        live_registers=execution.compiled.live_registers,
        buffer_bytes=launch.buffer_bytes,
        footprint_bytes=min(LINE_BYTES * num_lines, float(max(launch.buffer_bytes, LINE_BYTES))),
        static_instructions=static_instructions,
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
