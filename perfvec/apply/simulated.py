"""Devices of a design space, whose times the timing model gives, as devices to train on or to be tested on."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from perfvec.arch.space import sample_digest
from perfvec.arch.space_files import find_space, load_space_split

if TYPE_CHECKING:
    from perfvec.arch.space import SampledDevice
    from perfvec.arch.timing import TimingConfig

Part: TypeAlias = Literal["training", "held-out"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevices:
    """All devices of a space's split.

    Attributes:
        space: Name of the space.
    """

    space: str

    @property
    def devices(self) -> tuple[SampledDevice, ...]:
        """By number: `devices[n].number == n`."""
        return _split(self.space)[0]

    @property
    def configs(self) -> tuple[TimingConfig, ...]:
        """Of the devices."""
        return tuple(item.config for item in self.devices)

    @property
    def digest(self) -> str:
        """16 hex digits that tell one sample from another."""
        return sample_digest(self.devices)

    def part(self, part: Part, count: int = 0) -> tuple[SampledDevice, ...]:
        """The devices to train on, or those that nothing is tuned on.

        Args:
            part: Which.
            count: Of them so many, the first; 0 for all.

        Raises:
            DeviceError: There is no such space, or it has no split.
        """
        chosen = [item for item in self.devices if (item.number in _split(self.space)[1]) == (part == "held-out")]
        return tuple(chosen[:count] if count else chosen)


@functools.cache
def _split(name: str) -> tuple[tuple[SampledDevice, ...], frozenset[int]]:
    split = load_space_split(find_space(name))
    devices = sorted((*split.training, *split.held_out), key=lambda item: item.number)
    return tuple(devices), frozenset(item.number for item in split.held_out)
