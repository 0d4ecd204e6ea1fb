"""Launches with measured times, as the model sees them: what is trained on and what is evaluated on."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.feature_cache import FeatureCache, fill, read_all
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import find_device, load_devices
from perfvec.arch.measured import SINGLE_RUN_SPREAD
from perfvec.errors import ModelError
from perfvec.model.training_set import TrainingSet
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.arch.device import Device
    from perfvec.arch.measured import MeasuredTable
    from perfvec.arch.space import SampledDevice
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.model.launch_input import LaunchInput

logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A measured launch that could not be traced."""

    name: str
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Measured launches.

    Attributes:
        entries: The N launches with their places in the corpus.
        data: The same launches as the model sees them, with their times on M devices, measured ones first.
        devices: The M devices.
        left_out: Measured launches that could not be traced.
    """

    entries: tuple[SuiteLaunch, ...]
    data: TrainingSet
    devices: tuple[Device, ...]
    left_out: tuple[LeftOut, ...]

    def measured(self) -> Dataset:
        """The data set without simulated devices."""
        return self.with_devices(range(len(self.devices) - self.data.num_simulated))

    def with_devices(self, columns: Sequence[int]) -> Dataset:
        """The data set with only these devices, in this order, measured ones first."""
        num_real = len(self.devices) - self.data.num_simulated
        return replace(
            self,
            devices=tuple(self.devices[column] for column in columns),
            data=replace(
                self.data,
                times=self.data.times[:, columns],
                spread=self.data.spread[:, columns],
                device_names=tuple(self.data.device_names[column] for column in columns),
                seconds_per_unit=self.data.seconds_per_unit[columns],
                num_simulated=sum(column >= num_real for column in columns),
            ),
        )

    def subset(self, rows: NDArray[np.int64]) -> Dataset:
        """The data set with only these launches."""
        return Dataset(
            entries=tuple(self.entries[row] for row in rows),
            data=self.data.subset(rows),
            devices=self.devices,
            left_out=self.left_out,
        )


def make_dataset(
    launches: Sequence[SuiteLaunch],
    measured: MeasuredTable,
    *,
    device_names: Sequence[str] = (),
    simulated: Sequence[SampledDevice] = (),
    cache: FeatureCache | None = None,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> Dataset:
    """Put together the launches that were measured, traced and with features.

    Args:
        launches: The corpus; of launches that repeat another only the first counts.
        measured: Their times.
        device_names: Devices to take, names or aliases; all that have both times and a device file where there is none.
        simulated: Devices whose times by the timing model are taken too, from a cache that keeps them.
        cache: Where features are kept; the user's cache where it is None.
        num_processes: Processes that trace what the cache lacks; 0 to trace in this one; None for one a core.
        on_progress: Hears how far it is.

    Raises:
        DeviceError: A device is unknown.
        ModelError: There is no measured launch, or none that can be traced.
    """
    devices = _devices(measured, device_names)
    names = [device.name for device in devices]
    entries = list(
        {
            digest: entry
            for entry in reversed(launches)
            if any(measured.lookup(digest := entry.launch.digest, name) for name in names)
        }.values()
    )[::-1]
    if not entries:
        raise ModelError(
            f"no launch of the suites was measured on {', '.join(names) or 'any known device'}; measure some with "
            "perfvec corpus measure --suites, into the folder of measured times"
        )
    store = FeatureCache.open() if cache is None else cache
    named = [(entry.name, entry.launch) for entry in entries]
    failures = fill(store, named, num_processes=num_processes, on_progress=on_progress)
    kept: list[SuiteLaunch] = []
    inputs: list[LaunchInput] = []
    left_out: list[LeftOut] = []
    readable = [(entry.name, digest) for entry in entries if (digest := entry.launch.digest) not in failures]
    features = read_all(store, readable, num_processes=num_processes)
    for done, entry in enumerate(entries, start=1):
        found = failures.get(entry.launch.digest) or next(features)
        if isinstance(found, str):
            left_out.append(LeftOut(name=entry.name, reason=found))
        else:
            kept.append(entry)
            inputs.append(found)
        on_progress("reading", done, len(entries))
    if not kept:
        raise ModelError(f"none of the {len(entries)} measured launches can be traced: {left_out[0].reason}")
    data = _training_set(kept, inputs, measured, devices)
    if simulated:
        times_NM = np.stack([store.read_times(entry.launch.digest) for entry in kept])
        data = data.with_simulated(
            times_NM[:, [device.number for device in simulated]],
            tuple(device.device.name for device in simulated),
            np.stack([seconds_per_unit(item.device, item.config) for item in simulated]),
        )
    return Dataset(
        entries=tuple(kept),
        data=data,
        devices=(*devices, *(item.device for item in simulated)),
        left_out=tuple(left_out),
    )


def _devices(measured: MeasuredTable, names: Sequence[str]) -> tuple[Device, ...]:
    known = load_devices()
    if names:
        return tuple(dict.fromkeys(find_device(name, known) for name in names))
    for name in measured.devices:
        if name not in known:
            logger.warning("device %s has measured times but no device file; left out. Add archs/%s.toml.", name, name)
    return tuple(known[name] for name in measured.devices if name in known)


def _training_set(
    entries: Sequence[SuiteLaunch], inputs: Sequence[LaunchInput], measured: MeasuredTable, devices: Sequence[Device]
) -> TrainingSet:
    times = measured.matrix([entry.launch.digest for entry in entries], [device.name for device in devices])
    is_single = np.isnan(times.spread) & ~np.isnan(times.kernel_time_s)
    return TrainingSet(
        launches=tuple(inputs),
        families=tuple(entry.family for entry in entries),
        suites=tuple(entry.suite for entry in entries),
        times=times.kernel_time_s,
        spread=np.where(is_single, SINGLE_RUN_SPREAD, times.spread),
        device_names=tuple(device.name for device in devices),
        seconds_per_unit=np.stack([seconds_per_unit(device) for device in devices]),
    )
