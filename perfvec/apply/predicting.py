"""Predict: a program vector times device vectors, and the interval around it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.beliefs import KnownDevice, know_devices, uncertainty_of
from perfvec.apply.calibration_set import CalibrationSet, find_set
from perfvec.apply.devices import DeviceKind, find_devices
from perfvec.apply.encoding import launch_input
from perfvec.apply.models import load_model, model_path
from perfvec.apply.tracing import launch_of, trace
from perfvec.apply.twins import lacks_twin, model_with_twins
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.measured import load_measured
from perfvec.model.conformal import check_confidence
from perfvec.model.posterior import corrected_program, predictive
from perfvec.report.progress import OnProgress, silent
from perfvec.trace_data import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from perfvec.arch.device import Device
    from perfvec.arch.measured import MeasuredTable
    from perfvec.launch import Launch
    from perfvec.model.launch_input import LaunchInput
    from perfvec.model.uncertainty import Uncertainty
    from perfvec.model.weights import TrainedModel

logger = logging.getLogger(__name__)

DEFAULT_CONFIDENCE = 0.8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The time of a launch on a device.

    Attributes:
        device: The device's name.
        kernel_time_s: Predicted.
        low_s: Lower end of the interval that the time lies in with probability `confidence`.
        high_s: Its upper end.
        confidence: Above 0 and below 1.
        measured_s: Measured, where the table of measured times has the launch on this device; else None.
        kind: `real` where the model was trained on times of the device, `calibrated` where its vector comes from
            launches that the user measured, `simulated` where from the timing model, `datasheet` where from its data
            sheet alone.
        is_familiar: Whether the launch is like those that the model was trained on. Where it is not, the interval
            holds less often than it says.
    """

    device: str
    kernel_time_s: float
    low_s: float
    high_s: float
    confidence: float
    measured_s: float | None
    kind: DeviceKind
    is_familiar: bool


def encode(source: Launch | Trace, *, model: str | Path | None = None) -> NDArray[np.float64]:
    """The program vector of a launch; its product with a device's vector is the time on that device.

    Args:
        source: The launch, or its trace.
        model: File of the model; the shipped one where it is None.

    Returns:
        Shape `(D,)`; counts first, then learned coordinates, all 0 or more.

    Raises:
        PerfVecError: As `perfvec.apply.tracing.trace`, or the model is missing or does not fit.
    """
    path = model_path(model)
    traced = source if isinstance(source, Trace) else trace(source)
    return load_model(path).encode([launch_input(traced)])[0]


def predict(
    source: Launch | Trace,
    devices: Sequence[str] | None = None,
    *,
    model: str | Path | None = None,
    measured: MeasuredTable | None = None,
    budget: int | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    known_times: Mapping[str, float] | None = None,
    on_progress: OnProgress = silent,
) -> list[Prediction]:
    """Predict the time of a launch on devices that nobody needs to have at hand.

    Args:
        source: The launch, or its trace.
        devices: Names or aliases; all known devices where it is None.
        model: File of the model; the shipped one where it is None.
        measured: Table to look measured times up in; the shipped one where it is None.
        budget: Most sub-group instructions to execute before giving up; the tracer's own where it is None.
        confidence: Of the time to lie in its interval; above 0 and below 1.
        known_times: Seconds that this launch was measured to take, by device. They correct its program vector for
            devices of the same type: what is wrong with it on GPUs and on CPUs has little in common.
        on_progress: Hears what is being done.

    Returns:
        One prediction for each device, in the order given, or by name.

    Raises:
        PerfVecError: A device is unknown, the model is missing or does not fit, a known time is not positive, or as
            `perfvec.apply.tracing.trace`.
    """
    path = model_path(model)
    chosen = find_devices(devices)
    check_confidence(confidence)
    elsewhere = {find_devices([name])[0].name: time_s for name, time_s in (known_times or {}).items()}
    table = load_measured() if measured is None else measured
    on_progress("tracing", 0, 0)
    traced = source if isinstance(source, Trace) else trace(source, budget=budget)
    if traced.context.caveat:
        logger.warning("kernel %r: %s", traced.launch.kernel_name, traced.context.caveat)
    on_progress("encoding", 0, 0)
    trained = model_with_twins(path)
    seen = launch_input(traced)
    vector = trained.encode([seen])[0]
    uncertainty, calibration = uncertainty_of(path), find_set(path)
    familiar = calibration is None or is_familiar(calibration, seen)
    if not familiar:
        logger.warning(
            "kernel %r is unlike every launch that the model was trained on; take its times as a guess, for the "
            "intervals hold less often than they say",
            traced.launch.kernel_name,
        )
    if calibration is not None:
        _tell_of_twins([device.name for device in chosen if lacks_twin(trained, device)], model)
    others = know_devices(trained, find_devices(list(elsewhere)) if elsewhere else [], uncertainty, calibration)
    digest = launch_of(source).digest
    predictions: list[Prediction] = []
    for known in know_devices(trained, chosen, uncertainty, calibration):
        alike = [item for item in others if item.device.type == known.device.type]
        program = correct(vector, alike, elsewhere, uncertainty) if alike else vector
        interval = uncertainty.interval(known.belief, program[None], known.footing, confidence)
        time = table.lookup(digest, known.device.name)
        predictions.append(
            Prediction(
                device=known.device.name,
                kernel_time_s=float(interval.time_s[0]),
                low_s=float(interval.low_s[0]),
                high_s=float(interval.high_s[0]),
                confidence=confidence,
                measured_s=None if time is None else time.kernel_time_s,
                kind=known.kind,
                is_familiar=familiar,
            )
        )
    return predictions


def _tell_of_twins(names: Sequence[str], model: str | Path | None) -> None:
    """How to know GPUs better that start from the formula of their datasheet."""
    if names:
        logger.warning(
            "%s: known by the formula of the data sheet alone. To fit to the timing model, once, in a minute or two: "
            "perfvec devices twin %s%s",
            ", ".join(names),
            " ".join(names),
            "" if model is None else f" --model {model}",
        )


def is_familiar(calibration: CalibrationSet, launch: LaunchInput) -> bool:
    """Whether a launch is like those that the model was trained on."""
    from perfvec.model.baselines import aggregate_features

    return float(calibration.familiarity.distance(aggregate_features([launch], with_times=False))[0]) <= 1


def correct(
    vector: NDArray[np.float64],
    others: Sequence[KnownDevice],
    times_s: Mapping[str, float],
    uncertainty: Uncertainty,
) -> NDArray[np.float64]:
    """The program vector of a launch, corrected by times of it on other devices; `(D,)`.

    Raises:
        ModelError: A time is not positive.
    """
    programs = vector[None]
    misfits = [uncertainty.misfit_of(known.device.type).new for known in others]
    in_doubt = [
        predictive(known.belief, programs, new).device_deviation[0] for known, new in zip(others, misfits, strict=True)
    ]
    new = min(misfits, key=lambda misfit: misfit.variance)
    return corrected_program(
        vector,
        np.stack([known.belief.log_mean for known in others]),
        np.array([times_s[known.device.name] for known in others]),
        np.hypot(in_doubt, new.noise),
        common=new.kernel,
        own=new.launch,
    )


def device_vectors(model: TrainedModel, devices: Sequence[Device]) -> NDArray[np.float64]:
    """The vectors of devices: trained ones from the model, others from their data sheets; `(devices, D)`."""
    table = model.devices
    return np.stack(
        [
            table.row(device.name)
            if device.name in table.names
            else model.device_from_datasheet(seconds_per_unit(device))
            for device in devices
        ]
    )
