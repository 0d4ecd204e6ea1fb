"""The timing model: a trace on many devices at once.

    time = launch + ramp + overlap(sub-groups alone, core, local, L1, L2, DRAM, misses, atomics; dispatch)

Sub-groups are stepped through alone against a scoreboard, window by window (`core.scoreboard`); what all of them ask of
pipes and memories is added up; the bounds hide behind each other (`overlap`). docs/timing.md has the whole.

Legend: M configuration, S static instruction, A access, T token, R row that time is booked on (S or T), B bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.bounds import find_bounds
from perfvec.arch.timing.machines import Machines
from perfvec.arch.timing.result import CAUSES, Simulation, by_line
from perfvec.arch.timing.workload import Workload, read_workload

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from perfvec.arch.timing.config import TimingConfig
    from perfvec.trace_data import Trace

# Configurations that are worked on together: as many as keep what is known of each access in the processor's cache.
_MOST_TOGETHER, _LEAST_TOGETHER, _NUMBERS_TOGETHER = 64, 8, 1 << 20


def simulate(
    trace: Trace | Workload,
    configs: Sequence[TimingConfig],
    *,
    without: Collection[str] = (),
    by_token: bool = False,
) -> Simulation:
    """Time a trace on devices, and say where the time went.

    Args:
        trace: The trace, or what `read_workload` made of it.
        configs: One or more devices.
        without: Mechanisms to switch off, of `MECHANISMS`.
        by_token: Whether to give the increment of each token, too.

    Raises:
        DeviceError: A work-group fits on no compute unit of a device.
        ConfigError: There is no device, or no mechanism of that name.
    """
    workload = trace if isinstance(trace, Workload) else read_workload(trace)
    Machines(configs, without)  # refuses what it must before any work is done
    together = _NUMBERS_TOGETHER // max(len(workload.access_static), 1)
    step = min(_MOST_TOGETHER, max(_LEAST_TOGETHER, together))
    chosen = [rows[first : first + step] for rows in _alike(configs) for first in range(0, len(rows), step)]
    parts = [_simulate_some(workload, Machines([configs[i] for i in rows], without), by_token) for rows in chosen]
    back = np.argsort(np.concatenate(chosen))
    static_time_s, breakdown_s, token_time_s, occupancy = (
        np.concatenate(arrays)[back] for arrays in zip(*parts, strict=True)
    )
    kernel_time_s = static_time_s.sum(axis=1)
    lines, line_time_s = by_line(static_time_s, workload.trace.static["source_line"])
    return Simulation(
        kernel_time_s=kernel_time_s,
        cycles=kernel_time_s * np.array([config.clock_hz for config in configs]),
        occupancy=occupancy,
        breakdown_s=breakdown_s,
        static_time_s=static_time_s,
        token_time_s=token_time_s,
        lines=lines,
        line_time_s=line_time_s,
    )


def _alike(configs: Sequence[TimingConfig]) -> list[list[int]]:
    """Places of configurations that can be stepped together: those of one lookahead."""
    by_lookahead: dict[int, list[int]] = {}
    for place, config in enumerate(configs):
        by_lookahead.setdefault(config.lookahead_instructions, []).append(place)
    return list(by_lookahead.values())


def _simulate_some(workload: Workload, machines: Machines, by_token: bool) -> tuple[np.ndarray, ...]:
    """Increments by static instruction `(M, S + 1)`, by cause `(M, K)`, by token `(M, T)`, and the occupancy `(M,)`."""
    trace = workload.trace
    rows_T = np.arange(trace.num_tokens) if by_token else trace.token_static.astype(np.int64)
    num_rows = trace.num_tokens if by_token else len(trace.static)
    bounds = find_bounds(workload, machines, rows_T, num_rows)
    clock = machines["clock_hz"]
    rows_s = bounds.by_row() / clock
    breakdown = bounds.by_cause() / clock
    breakdown[CAUSES.index("launch")] += machines["launch_overhead_s"]
    alone_s = bounds.by_launch() / clock + machines["launch_overhead_s"]
    static_s = rows_s
    token_s = np.zeros((len(machines), 0))
    if by_token:
        static_s = np.zeros((len(trace.static), len(machines)))
        np.add.at(static_s, trace.token_static, rows_s)
        weight = trace.token_weight
        token_s = (rows_s / np.where(weight > 0, weight, 1.0)[:, None]).T
    return np.vstack([static_s, alone_s]).T, breakdown.T, token_s, bounds.occupancy
