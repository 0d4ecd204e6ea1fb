"""Everything that predicts times of a data set's launches: the model, and what it has to beat, behind one call.

Legend: N launch, M device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.apply.predicting import device_vectors
from perfvec.arch.datasheet import roofline_time_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.model.baselines import AbstractBaseline, BaselineInput
    from perfvec.model.weights import TrainedModel

MODEL = "perfvec"
ROOFLINE = "datasheet roofline"


def _baselines() -> dict[str, Callable[[], AbstractBaseline]]:
    from perfvec.model.baselines import ConstantBaseline, RowColumnBaseline, TreeBaseline

    return {
        "constant": ConstantBaseline,
        "row + column effect": RowColumnBaseline,
        "random forest": TreeBaseline,
    }


def predict_all(model: TrainedModel, training: Dataset, test: Dataset) -> dict[str, NDArray[np.float64]]:
    """Times of the test launches by each predictor.

    Args:
        model: The model.
        training: What baselines are fitted to; every device has a time in it.
        test: Launches to predict, on the same devices.

    Returns:
        Seconds `(N, M)` by the predictor's name, the model first.
    """
    predicted = {MODEL: model.encode(test.data.launches) @ device_vectors(model, test.devices).T}
    known, asked = _baseline_input(training), _baseline_input(test)
    for name, make in _baselines().items():
        baseline = make()
        baseline.fit(known, training.data.times)
        predicted[name] = baseline.predict(asked)
    predicted[ROOFLINE] = np.stack([roofline_time_s(device, asked.resources) for device in test.devices], axis=1)
    return predicted


def _baseline_input(dataset: Dataset) -> BaselineInput:
    from perfvec.model.baselines import baseline_input

    return baseline_input(dataset.data.launches, [f"{entry.suite}/{entry.kernel}" for entry in dataset.entries])
