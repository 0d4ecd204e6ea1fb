"""Simulate: the timing model on a trace, for devices of the shelf, changed ones, and samples of design spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from perfvec.apply.tracing import launch_of, trace
from perfvec.arch.device import find_device, load_devices
from perfvec.arch.space_files import find_space
from perfvec.arch.timing import Simulation, TimingConfig, field_ranges, simulate
from perfvec.arch.timing.of_device import changed, nearest, timing_config
from perfvec.errors import ConfigError, DeviceError
from perfvec.report.progress import OnProgress, silent
from perfvec.trace_data import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perfvec.arch.space import Scalar
    from perfvec.launch import Launch

_TRUTHS = {"true": True, "false": False}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevices:
    """A launch on M devices of the timing model.

    Attributes:
        launch: The launch.
        names: Of the devices, `(M,)`; those of a design space are called by their numbers, `SPACE/7`.
        configs: Their configurations, `(M,)`.
        drawn: What was drawn for each device of a design space, by parameter; empty for other devices.
        left_out: Devices of a design space on which a work-group does not fit.
        simulation: Times, and where they went.
    """

    launch: Launch
    names: tuple[str, ...]
    configs: tuple[TimingConfig, ...]
    drawn: tuple[Mapping[str, Scalar], ...]
    left_out: tuple[str, ...]
    simulation: Simulation


def simulate_devices(
    source: Launch | Trace,
    names: Sequence[str],
    *,
    settings: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    budget: int | None = None,
    on_progress: OnProgress = silent,
) -> SimulatedDevices:
    """Simulate a launch on devices that have a device file.

    Args:
        source: The launch, or its trace.
        names: Names or aliases of devices; one or more.
        settings: Fields of `TimingConfig` that shall differ from what the device files give.
        without: Mechanisms that are switched off, of `perfvec.arch.timing.MECHANISMS`.
        budget: Most sub-group instructions to execute before giving up; the tracer's own where it is None.
        on_progress: Hears what is being done.

    Raises:
        PerfVecError: A device, field or mechanism is unknown, a value is not allowed, a work-group fits on no compute
            unit, or as `perfvec.apply.tracing.trace`.
    """
    if not names:
        raise ConfigError("no device to simulate; give one, such as nvidia-h200, or a design space")
    known = load_devices()
    devices = [find_device(name, known) for name in names]
    configs = [timing_config(device, settings) for device in devices]
    simulation = simulate(_traced(source, budget, on_progress), configs, without=without)
    return SimulatedDevices(
        launch=launch_of(source),
        names=tuple(device.name for device in devices),
        configs=tuple(configs),
        drawn=({},) * len(configs),
        left_out=(),
        simulation=simulation,
    )


def simulate_space(
    source: Launch | Trace,
    space_name: str,
    *,
    num_devices: int,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    budget: int | None = None,
    on_progress: OnProgress = silent,
) -> SimulatedDevices:
    """Simulate a launch on a sample of a design space.

    Args:
        source: The launch, or its trace.
        space_name: Name of the space.
        num_devices: How many devices; the first ones of a seed are the same however many are asked for.
        seed: Another seed, other devices.
        settings: Fields of `TimingConfig` that all devices shall have.
        without: Mechanisms that are switched off.
        budget: As for `simulate_devices`.
        on_progress: Hears what is being done.

    Raises:
        PerfVecError: As for `simulate_devices`, or the space is unknown or contradicts itself.
    """
    space = find_space(space_name)
    sample = space.sample(num_devices, seed=seed)
    configs = [changed(item.config, settings) for item in sample]
    traced = _traced(source, budget, on_progress)
    fitting = [number for number, config in enumerate(configs) if _fits(traced, config)]
    if not fitting:
        raise DeviceError(
            f"a work-group of {traced.context.local_size} work-items and {traced.context.local_mem_bytes} B of local "
            f"memory fits on none of the {num_devices} devices; draw more of them, or give smaller work-groups"
        )
    chosen = [configs[number] for number in fitting]
    return SimulatedDevices(
        launch=traced.launch,
        names=tuple(sample[number].device.name for number in fitting),
        configs=tuple(chosen),
        drawn=tuple(sample[number].values for number in fitting),
        left_out=tuple(item.device.name for item in sample if item.number not in set(fitting)),
        simulation=simulate(traced, chosen, without=without),
    )


def _fits(traced: Trace, config: TimingConfig) -> bool:
    """Whether a work-group fits on a compute unit."""
    context = traced.context
    return context.local_size <= config.max_group_work_items and context.local_mem_bytes <= config.max_group_local_bytes


def _traced(source: Launch | Trace, budget: int | None, on_progress: OnProgress) -> Trace:
    if not isinstance(source, Trace):
        on_progress("tracing", 0, 0)
        source = trace(source, budget=budget)
    on_progress("simulating", 0, 0)
    return source


def read_setting(text: str) -> tuple[str, float | int | str | bool]:
    """A field of the timing model and its value from `FIELD=VALUE`.

    Raises:
        DeviceError: It is not of that form, there is no such field, or the value is not of its kind.
    """
    name, equals, value = text.partition("=")
    known = field_ranges()
    if not equals:
        raise DeviceError(f"--set {text!r} is not FIELD=VALUE; write for example l2_bytes=33554432")
    if name not in known:
        raise DeviceError(f"--set {text!r}: no timing field {name!r}; allowed: {nearest(name, known)}")
    if known[name].allowed and not isinstance(known[name].allowed[0], int):
        return name, value
    if value.lower() in _TRUTHS:
        return name, _TRUTHS[value.lower()]
    try:
        number = float(value)
    except ValueError as error:
        kind = "a whole number" if known[name].is_whole else "a number"
        raise DeviceError(f"--set {text!r}: allowed is {kind}") from error
    return name, int(number) if number.is_integer() else number
