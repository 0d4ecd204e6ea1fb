"""The timed resources: how long a launch takes on archetypes, by cause, and what a device charges for that.

An archetype is a device of the timing model, fixed like a unit: what a device file said, or a numbered device of a
design space, when a version of the resources was made (`experiments/devices/archetypes.py`). A trace is timed on all of
them at once; each time is split by cause. What another device charges for a second that archetype `a` spent for cause
`c` starts at

    w_a(device) · rate_{a,c} ÷ rate_{device,c},        w_a = softmax_a(−|x_device − x_a|² ÷ 0.1)

with `rate` the throughput (or one over the latency) that the cause depends on, and `x` the logarithms of what describes
a device, each over its standard deviation among the archetypes.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing import TimingConfig, Workload, read_workload, simulate
from perfvec.content import content_folder
from perfvec.errors import DeviceError, FormatError
from perfvec.resources import ARCHETYPES, CAUSES, RESOURCES_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.trace_data import LaunchContext, Trace

_NEARNESS = 0.1


@functools.cache
def archetype_configs() -> tuple[TimingConfig, ...]:
    """The archetypes, in the order of `ARCHETYPES`, from the shipped `archs/archetypes.json`.

    Raises:
        FormatError: The file is not of this release.
    """
    path = content_folder("archs") / "archetypes.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        version, facts = table["resources_version"], table["archetypes"]
        configs = tuple(TimingConfig(**facts[name]) for name in ARCHETYPES)
    except (OSError, ValueError, KeyError, TypeError, DeviceError) as error:
        raise FormatError(f"cannot read the archetypes {path}: {error!r}; install perfvec again") from error
    if version != RESOURCES_VERSION:
        raise FormatError(
            f"{path} has archetypes of resources version {version}, this release has {RESOURCES_VERSION}; install "
            "perfvec again"
        )
    return configs


def archetype_times(trace: Trace | Workload) -> NDArray[np.float64]:
    """How long a launch takes on each archetype, cause by cause.

    An archetype that is too small for the launch's work-groups is made as large as they need: a coordinate that some
    launches lack would be none.

    Args:
        trace: The trace, or what `read_workload` made of it.

    Returns:
        Seconds `(len(TIMED),)`, 0 or more, in the order of `perfvec.resources.TIMED`.
    """
    workload = trace if isinstance(trace, Workload) else read_workload(trace)
    configs = [_roomy(config, workload.trace.context) for config in archetype_configs()]
    return np.maximum(simulate(workload, configs).breakdown_s, 0.0).ravel()


def times_on(trace: Trace | Workload, configs: Sequence[TimingConfig]) -> NDArray[np.float64]:
    """Times on devices of which some may be too small.

    Args:
        trace: The trace, or what `read_workload` made of it.
        configs: M devices.

    Returns:
        Seconds `(M,)`; NaN where a work-group fits on no unit of a device.
    """
    workload = trace if isinstance(trace, Workload) else read_workload(trace)
    times_M = np.full(len(configs), np.nan)
    fitting = [place for place, config in enumerate(configs) if _roomy(config, workload.trace.context) is config]
    if fitting:
        times_M[fitting] = simulate(workload, [configs[place] for place in fitting]).kernel_time_s
    return times_M


def archetype_prices(config: TimingConfig) -> NDArray[np.float64]:
    """What a device charges for a second on an archetype, by the formula above.

    Args:
        config: The device, as the timing model knows it.

    Returns:
        Seconds per second `(len(TIMED),)`, positive, in the order of `perfvec.resources.TIMED`.
    """
    traits_AX, rates_AC = _archetype_table()
    deviation_X = traits_AX.std(axis=0)
    distance_A = np.square((traits_AX - _traits(config)) / deviation_X).mean(axis=1)
    weight_A = np.exp((distance_A.min() - distance_A) / _NEARNESS)
    weight_A /= weight_A.sum()
    return (weight_A[:, None] * rates_AC / _rates(config)).ravel()


@functools.cache
def _archetype_table() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    configs = archetype_configs()
    return np.stack([_traits(config) for config in configs]), np.stack([_rates(config) for config in configs])


def _traits(config: TimingConfig) -> NDArray[np.float64]:
    """Logarithms of what describes a device."""
    units, clock = config.compute_units, config.clock_hz
    return np.log(
        [
            config.fp32_lanes * units * clock,
            config.fp64_lanes * units * clock,
            config.l2_bytes_per_s,
            config.dram_bytes_per_s,
            config.l2_bytes,
            config.l1_bytes + 1,
            clock,
            units,
            config.max_sub_groups * config.sub_group_size * units,
            config.dram_latency_s,
            config.launch_overhead_s,
            config.sub_group_size,
            config.line_bytes,
        ]
    )


def _rates(config: TimingConfig) -> NDArray[np.float64]:
    """What each of `CAUSES` is done at, a second; `(causes,)`."""
    units_hz = config.compute_units * config.clock_hz
    lanes_per_s = config.fp32_lanes * units_hz
    rates = {
        "issue": lanes_per_s,
        "dependence": config.clock_hz / config.fp32_latency_cycles,
        "local": config.local_banks * units_hz,
        "l1": config.l1_bytes_per_cycle * units_hz,
        "l2": config.l2_bytes_per_s,
        "dram": config.dram_bytes_per_s,
        "atomics": config.l2_atomics_per_cycle * config.clock_hz,
        "barrier": config.clock_hz,
        "dispatch": 1.0 / config.group_dispatch_s,
        "launch": 1.0 / config.launch_overhead_s,
        "tail": lanes_per_s,
    }
    return np.array([rates[cause] for cause in CAUSES])


def _roomy(config: TimingConfig, context: LaunchContext) -> TimingConfig:
    """The device, or one just large enough for a launch's work-groups."""
    needed = -(-context.local_size // config.sub_group_size)
    room = {
        "max_group_local_bytes": context.local_mem_bytes,
        "local_bytes": context.local_mem_bytes,
        "max_group_work_items": context.local_size,
        "max_sub_groups": needed,
        "registers": needed * config.sub_group_size * config.register_granule,
    }
    larger = {name: value for name, value in room.items() if value > getattr(config, name)}
    return replace(config, **larger) if larger else config
