"""Everything that predicts times of a data set's launches: the model, and what it has to beat, behind one call.

Legend: N launch, M device.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from perfvec.apply.predicting import device_vectors
from perfvec.apply.simulated import PREFIX
from perfvec.arch.datasheet import roofline_time_s
from perfvec.errors import PerfVecError
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.apply.trace_cache import TraceCache
    from perfvec.arch.device import Device
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.model.baselines import AbstractBaseline, BaselineInput
    from perfvec.model.weights import TrainedModel

logger = logging.getLogger(__name__)

MODEL = "perfvec"
ROOFLINE = "datasheet roofline"
TIMING_MODEL = "timing model"


def _baselines() -> dict[str, Callable[[], AbstractBaseline]]:
    from perfvec.model.baselines import ConstantBaseline, RowColumnBaseline, TreeBaseline

    return {
        "constant": ConstantBaseline,
        "row + column effect": RowColumnBaseline,
        "random forest": TreeBaseline,
    }


def predict_all(
    model: TrainedModel, training: Dataset, test: Dataset, *, programs_ND: NDArray[np.float64] | None = None
) -> dict[str, NDArray[np.float64]]:
    """Times of the test launches by each predictor.

    Args:
        model: The model.
        training: What baselines are fitted to; every device has a time in it.
        test: Launches to predict, on the same devices.
        programs_ND: Program vectors of the test launches, where they are at hand.

    Returns:
        Seconds `(N, M)` by the predictor's name, the model first.
    """
    programs_ND = model.encode(test.data.launches) if programs_ND is None else programs_ND
    return {MODEL: programs_ND @ device_vectors(model, test.devices).T, **predict_baselines(training, test)}


def predict_baselines(training: Dataset, test: Dataset) -> dict[str, NDArray[np.float64]]:
    """`predict_all` without the model."""
    predicted: dict[str, NDArray[np.float64]] = {}
    known, asked = _baseline_input(training), _baseline_input(test)
    for name, make in _baselines().items():
        baseline = make()
        baseline.fit(known, training.data.times)
        predicted[name] = baseline.predict(asked)
    predicted[ROOFLINE] = np.stack([roofline_time_s(device, asked.resources) for device in test.devices], axis=1)
    return predicted


def shipped_times(dataset: Dataset, devices: Sequence[Device]) -> NDArray[np.float64] | None:
    """Times by the timing model that came with a data set's launches, `(N, M)`; None where it has none of the devices.

    Args:
        dataset: Launches with times on the shipped GPUs as the timing model has them (`perfvec.apply.simulated`).
        devices: The M devices; those that there are no times of, such as CPUs, get NaN.
    """
    columns = {name: column for column, name in enumerate(dataset.data.device_names)}
    found = [columns.get(PREFIX + device.name) for device in devices]
    if all(column is None for column in found):
        return None
    nothing = np.full(len(dataset.entries), np.nan)
    return np.stack([nothing if column is None else dataset.data.times[:, column] for column in found], axis=1)


def timing_times(
    entries: Sequence[SuiteLaunch], devices: Sequence[Device], cache: TraceCache, *, on_progress: OnProgress = silent
) -> NDArray[np.float64]:
    """Times of launches by the timing model, configured from the device files alone.

    Args:
        entries: The N launches.
        devices: The M devices.
        cache: Where their traces are, or are kept once they are made.
        on_progress: Hears how many are done.

    Returns:
        Seconds `(N, M)`; NaN where a launch cannot be traced, or a work-group does not fit on a device by its file.
    """
    from perfvec.arch.timing import read_workload, simulate
    from perfvec.arch.timing.of_device import timing_config

    configs = [timing_config(device) for device in devices]
    times = np.full((len(entries), len(devices)), np.nan)
    for row, entry in enumerate(entries):
        try:
            workload = read_workload(cache.get(entry.launch))
        except PerfVecError as error:
            logger.warning("%s is left out of the timing model's figures: %s", entry.name, error)
            continue
        for column, config in enumerate(configs):
            try:
                times[row, column] = simulate(workload, [config]).kernel_time_s[0]
            except PerfVecError as error:
                logger.warning("%s on %s is left out: %s", entry.name, devices[column].name, error)
        on_progress("simulating", row + 1, len(entries))
    return times


def _baseline_input(dataset: Dataset) -> BaselineInput:
    from perfvec.model.baselines import baseline_input

    return baseline_input(dataset.data.launches, [f"{entry.suite}/{entry.kernel}" for entry in dataset.entries])
