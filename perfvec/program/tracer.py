"""From a launch to its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.program.classify import StaticTable, make_static_table
from perfvec.program.executor import DEFAULT_BUDGET, Execution, compile_launch
from perfvec.program.frontend import PIPELINE_VERSION
from perfvec.program.local_memory import LocalReads
from perfvec.program.record import Recorder
from perfvec.program.registers import most_live_registers
from perfvec.program.sampling import Sample, sample_groups
from perfvec.trace_data import LINE_BYTES, LaunchContext, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from perfvec.launch import Launch
    from perfvec.program.buffers import Contents
    from perfvec.program.contention import Contention

DEFAULT_GROUPS = 48
FEWEST_GROUPS = 8
# Sub-group instructions after which a default trace takes no further work-groups.
SAMPLE_INSTRUCTIONS = 1_500_000


def trace_launch(
    launch: Launch,
    *,
    work_groups: int | None = DEFAULT_GROUPS,
    budget: int = DEFAULT_BUDGET,
    on_printf: Callable[[str], None] | None = None,
) -> Trace:
    """Execute a sample of a launch's work-groups and record what they did. No GPU is needed.

    Local memory that is read and has not been written is warned of, once.

    Args:
        launch: What to trace.
        work_groups: About how many work-groups to execute; None for all of them. Where they are long, fewer are taken,
            at least `FEWEST_GROUPS`.
        budget: Most sub-group instructions to execute before giving up.
        on_printf: Called once with what the executed work-groups printed, if anything; before an error is raised, too.

    Raises:
        SourceError: The source does not compile.
        KernelNotFoundError: The program has no such kernel.
        LaunchError: The arguments do not fit the kernel.
        UnsupportedError: The kernel uses something that the executor does not know.
        MemoryAccessError: A work-item touched memory outside its buffers.
        BarrierDivergenceError: Not all work-items of a work-group reached a barrier.
        BudgetError: The budget ran out.
    """
    compiled = compile_launch(launch)
    static = make_static_table(compiled.native)
    contents: dict[int, Contents] = {}
    execution = Execution(compiled, launch, budget=budget, contents=contents)
    most = execution.num_work_groups if work_groups is None else work_groups
    sample = sample_groups(launch.num_groups, most=most, seed=int(launch.digest[:8], 16))
    if work_groups is not None:
        sample = _shorten(sample, Execution(compiled, launch, budget=budget, contents=contents))
    recorder = Recorder(
        compiled.native,
        static,
        num_sub_groups=execution.num_sub_groups,
        groups=sample.groups,
        memory_bytes={number: memory.num_bytes for number, memory in execution.memories.items()},
    )
    local_reads = LocalReads(compiled.native, execution.memories, launch.source_name)

    def consume(events: NDArray[np.uint32], addresses: NDArray[np.int64]) -> None:
        recorder.consume(events, addresses)
        local_reads.consume(events, addresses)

    try:
        execution.run(sample.groups, consume)
    finally:
        if on_printf is not None and (text := execution.printed()):
            on_printf(text)
    tables = recorder.tables(sample.weights)
    return Trace(
        launch=launch,
        pipeline_version=PIPELINE_VERSION,
        context=_context(
            launch,
            execution,
            static,
            tables["sub_groups"],
            recorder.new_lines,
            sample,
            recorder.contention(sample.weights),
        ),
        static=static.rows,
        **tables,
    )


def _shorten(sample: Sample, probe: Execution) -> Sample:
    """Take fewer work-groups where one alone, run without record, shows that they are long."""
    if len(sample.groups) <= FEWEST_GROUPS:
        return sample
    probe.run([int(sample.groups[len(sample.groups) // 2])])
    compiled, launch = probe.compiled, probe.launch
    sizes = np.array([len(s.body) + 1 for s in compiled.native.segments])
    instructions = int(probe.segment_count @ sizes)
    fits = max(FEWEST_GROUPS, SAMPLE_INSTRUCTIONS // max(instructions, 1))
    if fits >= len(sample.groups):
        return sample
    return sample_groups(launch.num_groups, most=fits, seed=int(launch.digest[:8], 16))


def _context(
    launch: Launch,
    execution: Execution,
    static: StaticTable,
    sub_groups: NDArray[np.void],
    new_lines: NDArray[np.int64],
    sample: Sample,
    contention: Contention,
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
        footprint_bytes=float(min(LINE_BYTES * (new_lines @ sample.weights), max(launch.buffer_bytes, LINE_BYTES))),
        static_instructions=len(static.rows),
        mean_instructions=mean,
        max_instructions=float(lengths.max()),
        instructions_spread=spread / mean if mean else 0.0,
        atomic_contention=contention.by_sub_group,
        atomic_lane_contention=contention.by_lane,
    )
