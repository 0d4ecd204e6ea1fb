"""Predict: a program vector times device vectors."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.devices import DeviceKind, find_devices
from perfvec.apply.encoding import launch_input
from perfvec.apply.tracing import launch_of, trace
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.measured import load_measured
from perfvec.errors import ModelError
from perfvec.report.progress import OnProgress, silent
from perfvec.trace_data import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.arch.device import Device
    from perfvec.arch.measured import MeasuredTable
    from perfvec.launch import Launch
    from perfvec.model.weights import TrainedModel

logger = logging.getLogger(__name__)

SHIPPED_MODEL = Path(__file__).resolve().parent.parent / "weights" / "default.safetensors"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The time of a launch on a device.

    Attributes:
        device: The device's name.
        kernel_time_s: Predicted.
        measured_s: Measured, where the table of measured times has the launch on this device; else None.
        kind: `real` where the model was trained on times of the device, `datasheet` where its vector comes from its
            data sheet alone.
    """

    device: str
    kernel_time_s: float
    measured_s: float | None
    kind: DeviceKind


def model_path(path: str | Path | None = None) -> Path:
    """The file of the model: the given one, or the shipped one.

    Raises:
        ModelError: It does not exist.
    """
    chosen = SHIPPED_MODEL if path is None else Path(path)
    if chosen.is_file():
        return chosen
    what = "this installation has no trained model" if path is None else "there is no model file"
    raise ModelError(
        f"{what} at {chosen}; give one with --model PATH (model=PATH in Python), install a release that ships one, or "
        "train one with perfvec train --config experiments/first/config.yaml"
    )


def load_model(path: str | Path | None = None) -> TrainedModel:
    """Read a model, once for each file.

    Args:
        path: The file; the shipped model where it is None.

    Raises:
        ModelError: The file does not exist.
        FormatError: It is damaged, of another kind or version.
    """
    chosen = model_path(path).resolve()
    return _load_model(chosen, chosen.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _load_model(path: Path, changed_ns: int) -> TrainedModel:  # noqa: ARG001  (a changed file is another model)
    from perfvec.model.weights import TrainedModel

    return TrainedModel.load(path)


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
    on_progress: OnProgress = silent,
) -> list[Prediction]:
    """Predict the time of a launch on devices that nobody needs to have at hand.

    Args:
        source: The launch, or its trace.
        devices: Names or aliases; all known devices where it is None.
        model: File of the model; the shipped one where it is None.
        measured: Table to look measured times up in; the shipped one where it is None.
        budget: Most sub-group instructions to execute before giving up; the tracer's own where it is None.
        on_progress: Hears what is being done.

    Returns:
        One prediction for each device, in the order given, or by name.

    Raises:
        PerfVecError: A device is unknown, the model is missing or does not fit, or as
            `perfvec.apply.tracing.trace`.
    """
    path = model_path(model)
    chosen = find_devices(devices)
    table = load_measured() if measured is None else measured
    on_progress("tracing", 0, 0)
    traced = source if isinstance(source, Trace) else trace(source, budget=budget)
    if traced.context.caveat:
        logger.warning("kernel %r: %s", traced.launch.kernel_name, traced.context.caveat)
    on_progress("encoding", 0, 0)
    trained = load_model(path)
    vector = trained.encode([launch_input(traced)])[0]
    digest = launch_of(source).digest
    predictions: list[Prediction] = []
    for device, kernel_time_s in zip(chosen, device_vectors(trained, chosen) @ vector, strict=True):
        time = table.lookup(digest, device.name)
        predictions.append(
            Prediction(
                device=device.name,
                kernel_time_s=float(kernel_time_s),
                measured_s=None if time is None else time.kernel_time_s,
                kind="real" if device.name in trained.device_names else "datasheet",
            )
        )
    return predictions


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
