"""The devices that times are predicted for, and what is known of each."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from perfvec.arch.device import Device, find_device, load_devices
from perfvec.arch.measured import load_measured

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from perfvec.arch.measured import MeasuredTable

DeviceKind: TypeAlias = Literal["real", "calibrated", "simulated", "datasheet"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """A device in the table.

    Attributes:
        name: Its name.
        kind: `real` where the model was trained on times of it, `calibrated` where the user's table has measured
            launches of it, `simulated` where its vector was fitted to times of the timing model, `datasheet` where a
            formula of its data sheet is all that there is.
        vendor: Lower case.
        type: `gpu`, `cpu` or `accelerator`.
        architecture: The vendor's name of the family.
        year: Of release.
        aliases: Other names that it answers to.
        num_measured_launches: Measured launches that its row stands on.
        num_simulated_launches: Launches that its row was fitted to on this machine, with times by the timing model (see
            `perfvec.apply.twins`).
        expected_error: Median |predicted - measured| ÷ predicted to expect of kernels like the suites', a fraction; NaN
            where the model has no calibration set.
    """

    name: str
    kind: DeviceKind
    vendor: str
    type: str
    architecture: str
    year: int
    aliases: tuple[str, ...]
    num_measured_launches: int
    num_simulated_launches: int
    expected_error: float


def devices(*, measured: MeasuredTable | None = None, model: str | Path | None = None) -> list[DeviceEntry]:
    """All devices that have a device file, by name.

    Args:
        measured: Table of measured times; the shipped one where it is None.
        model: File of the model; the shipped one where it is None.

    Raises:
        DeviceError: A device file is wrong.
        FormatError: The table of measured times, a row of the user's or the calibration set is damaged.
        ModelError: The model is missing.
    """
    from perfvec.apply.beliefs import expected_errors, know_devices
    from perfvec.apply.calibration_set import find_set
    from perfvec.apply.twins import find_twins, model_with_twins
    from perfvec.model.uncertainty import assumed_uncertainty

    table = load_measured() if measured is None else measured
    counts = Counter(time.device for time in table.times)
    calibration = find_set(model)
    uncertainty = assumed_uncertainty() if calibration is None else calibration.uncertainty
    twins = find_twins(model)
    known = know_devices(model_with_twins(model), list(load_devices().values()), uncertainty, calibration)
    errors = [math.nan] * len(known) if calibration is None else expected_errors(known, uncertainty, calibration)
    return [
        DeviceEntry(
            name=item.device.name,
            kind=item.kind,
            vendor=item.device.vendor,
            type=item.device.type,
            architecture=item.device.architecture,
            year=item.device.year,
            aliases=item.device.aliases,
            num_measured_launches=counts[item.device.name] if item.kind == "real" else item.num_launches,
            num_simulated_launches=twins[item.device.name].num_launches if item.device.name in twins else 0,
            expected_error=error,
        )
        for item, error in zip(known, errors, strict=True)
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
