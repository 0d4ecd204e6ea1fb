"""The devices that times are predicted for, and what is known of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from perfvec.arch.device import Device, find_device, load_devices
from perfvec.arch.measured import load_measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfvec.arch.measured import MeasuredTable

DeviceKind: TypeAlias = Literal["real", "datasheet"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """A device in the table.

    Attributes:
        name: Its name.
        kind: `real` where launches were measured on it, `datasheet` where it is known by its data sheet alone.
        vendor: Lower case.
        type: `gpu`, `cpu` or `accelerator`.
        architecture: The vendor's name of the family.
        year: Of release.
        aliases: Other names that it answers to.
        num_measured_launches: Launches in the shipped table of measured times.
    """

    name: str
    kind: DeviceKind
    vendor: str
    type: str
    architecture: str
    year: int
    aliases: tuple[str, ...]
    num_measured_launches: int


def devices(*, measured: MeasuredTable | None = None) -> list[DeviceEntry]:
    """All devices that have a device file, by name.

    Args:
        measured: Table of measured times; the shipped one where it is None.

    Raises:
        DeviceError: A device file is wrong.
        FormatError: The table of measured times is damaged.
    """
    table = load_measured() if measured is None else measured
    counts = Counter(time.device for time in table.times)
    return [
        DeviceEntry(
            name=device.name,
            kind="real" if counts[device.name] else "datasheet",
            vendor=device.vendor,
            type=device.type,
            architecture=device.architecture,
            year=device.year,
            aliases=device.aliases,
            num_measured_launches=counts[device.name],
        )
        for device in load_devices().values()
    ]


def find_devices(names: Sequence[str] | None) -> list[Device]:
    """The devices of these names or aliases, each once, in the order given; all of them where there is no name.

    Raises:
        DeviceError: A name is not known; the message has the nearest ones.
    """
    known = load_devices()
    if not names:
        return list(known.values())
    return list({device.name: device for device in (find_device(name, known) for name in names)}.values())
