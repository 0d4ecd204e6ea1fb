"""Devices whose times the timing model gives: those of a design space, and the shipped GPUs as their files have them.

Devices of the space are trained on or held out. A shipped GPU has a row where its vector starts while nobody has
measured it: the dot product then says what the timing model would.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import numpy as np

from perfvec.arch.device import load_devices
from perfvec.arch.space import SampledDevice
from perfvec.arch.space_files import find_space, load_space_split
from perfvec.arch.timing.of_device import timing_config
from perfvec.content import content_folder

if TYPE_CHECKING:
    from perfvec.arch.timing import TimingConfig

Part: TypeAlias = Literal["training", "held-out", "shipped"]
# What the simulated row of a device is called, beside the one from measured times.
PREFIX = "timing-model/"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevices:
    """All devices of a space's split, by number, and after them the shipped GPUs by name.

    Attributes:
        space: Name of the space.
    """

    space: str

    @property
    def devices(self) -> tuple[SampledDevice, ...]:
        """All of them: `devices[n].number == n`."""
        return tuple(device for device, _ in _all(self.space))

    @property
    def configs(self) -> tuple[TimingConfig, ...]:
        """Of the devices."""
        return tuple(item.config for item in self.devices)

    @property
    def digest(self) -> str:
        """16 hex digits that tell one set of devices from another."""
        return hashlib.sha256(repr(self.configs).encode()).hexdigest()[:16]

    def part(self, part: Part, count: int = 0) -> tuple[SampledDevice, ...]:
        """The devices to train on, those that nothing is tuned on, or the shipped ones.

        Args:
            part: Which.
            count: Of them so many, the first; 0 for all.

        Raises:
            DeviceError: There is no such space, or it has no split.
        """
        chosen = [device for device, own in _all(self.space) if own == part]
        return tuple(chosen[:count] if count else chosen)

    def chosen_for(self, digest: str, count: int = 0) -> list[int]:
        """Numbers of the devices that a launch is timed on.

        Args:
            digest: `Launch.digest`, which chooses.
            count: So many of those for training; 0 for all devices, those held out and the shipped ones included.

        Raises:
            DeviceError: There is no such space, or it has no split.
        """
        if not count:
            return [device.number for device in self.devices]
        numbers = np.array([device.number for device in self.part("training")])
        return sorted(np.random.default_rng(int(digest[:16], 16)).permutation(numbers)[:count].tolist())


@functools.cache
def _all(name: str) -> tuple[tuple[SampledDevice, Part], ...]:
    split = load_space_split(find_space(name))
    parts: list[tuple[SampledDevice, Part]] = []
    parts.extend((item, "training") for item in split.training)
    parts.extend((item, "held-out") for item in split.held_out)
    parts.sort(key=lambda pair: pair[0].number)
    for device in load_devices(content_folder("archs")).values():
        if device.type == "gpu":
            named = replace(device, name=PREFIX + device.name)
            item = SampledDevice(number=len(parts), values={}, device=named, config=timing_config(device))
            parts.append((item, "shipped"))
    return tuple(parts)
