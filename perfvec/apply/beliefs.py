"""What is known of each device: the Gaussian of its vector, on what it stands, and how far predictions are off."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from perfvec.apply.calibration_set import CalibrationSet, find_set
from perfvec.apply.devices import DeviceKind
from perfvec.apply.user_table import load_user_rows
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.model.posterior import DeviceBelief, device_variances, exact_belief, posterior
from perfvec.model.uncertainty import CALIBRATED, DATASHEET, Footing, Uncertainty, assumed_uncertainty

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from perfvec.arch.device import Device
    from perfvec.arch.measured import MeasuredTable
    from perfvec.model.weights import TrainedModel

logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDevice:
    """A device and what is known of it.

    Attributes:
        device: Its facts.
        kind: `real` where the model was trained on times of it, `simulated` where its vector was fitted to times of the
            timing model, `calibrated` where the user's table has measured launches, `datasheet` where none of these.
        belief: Of its vector.
        footing: Whose conformal scores its intervals go by.
        num_launches: Measured launches of the user's table.
    """

    device: Device
    kind: DeviceKind
    belief: DeviceBelief
    footing: Footing
    num_launches: int


def uncertainty_of(model: str | Path | None) -> Uncertainty:
    """What a model does not know: from its calibration set, or assumed, with a warning, where there is none."""
    found = find_set(model)
    if found is not None:
        return found.uncertainty
    logger.warning(
        "the model has no calibration set of its own, so intervals are assumed, not calibrated; perfvec "
        "calibration-set makes it"
    )
    return assumed_uncertainty()


def know_devices(
    trained: TrainedModel,
    devices: Sequence[Device],
    uncertainty: Uncertainty,
    calibration: CalibrationSet | None,
) -> list[KnownDevice]:
    """What is known of devices, one for each.

    Args:
        trained: The model.
        devices: The devices.
        uncertainty: What the model does not know.
        calibration: Program vectors of launches that the user may have measured; None where there are none.

    Raises:
        FormatError: A file of the user's table is damaged.
    """
    rows = load_user_rows()
    return [_know(trained, device, uncertainty, calibration, rows.get(device.name)) for device in devices]


def _know(
    trained: TrainedModel,
    device: Device,
    uncertainty: Uncertainty,
    calibration: CalibrationSet | None,
    measured: MeasuredTable | None,
) -> KnownDevice:
    table, kind_of = trained.devices, device.type
    if measured is not None and calibration is not None:
        prior = prior_of(trained, device, uncertainty)
        known = [(row, time) for time in measured.times if (row := calibration.row(time.digest)) is not None]
        if known:
            launches = calibration.measurements(
                [row for row, _ in known],
                [time.kernel_time_s for _, time in known],
                [time.spread for _, time in known],
            )
            belief = posterior(prior, launches, uncertainty.misfit_of(kind_of).known)
            return KnownDevice(
                device=device,
                kind="calibrated",
                belief=belief,
                footing=Footing(group=CALIBRATED, type=kind_of),
                num_launches=len(known),
            )
        logger.warning(
            "none of the launches measured on %s is in the calibration set of this model, so it is known by its data "
            "sheet alone; calibrate it again",
            device.name,
        )
    if device.name in table.names:
        own = Footing(group=device.name, type=kind_of)
        footing = own if own in uncertainty.scores else Footing(group=CALIBRATED, type=kind_of)
        belief = exact_belief(table.row(device.name))
        return KnownDevice(device=device, kind="real", belief=belief, footing=footing, num_launches=0)
    is_simulated = trained.simulated_twin(seconds_per_unit(device)) is not None
    return KnownDevice(
        device=device,
        kind="simulated" if is_simulated else "datasheet",
        belief=prior_of(trained, device, uncertainty),
        footing=Footing(group=DATASHEET, type=kind_of),
        num_launches=0,
    )


def prior_of(trained: TrainedModel, device: Device, uncertainty: Uncertainty) -> DeviceBelief:
    """What is believed of a device that was never measured, given its datasheet."""
    spread = uncertainty.spread
    return trained.device_prior(seconds_per_unit(device), common=spread.common, own=spread.own)


def expected_errors(known: Sequence[KnownDevice], uncertainty: Uncertainty, calibration: CalibrationSet) -> list[float]:
    """Median |predicted - measured| ÷ predicted to expect on kernels like those of the suites; fractions, by device."""
    variance_Kn = device_variances([item.belief for item in known], calibration.programs)
    return [uncertainty.expected_error(row_n, item.footing) for row_n, item in zip(variance_Kn, known, strict=True)]
