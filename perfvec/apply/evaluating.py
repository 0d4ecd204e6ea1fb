"""How far predictions are from measurements, on launches that no predictor has seen."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.predictors import TIMING_MODEL, predict_all, timing_times
from perfvec.errors import ModelError
from perfvec.metrics import Summary, summarise
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.apply.devices import DeviceKind
    from perfvec.apply.splits import Holdout, SplitName
    from perfvec.apply.trace_cache import TraceCache
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.model.weights import TrainedModel

logger = logging.getLogger(__name__)

# Launches below this sit at the launch overhead and flatter any predictor.
LONG_S = 20e-6
SUBSETS = {"all": 0.0, "over 20 us": LONG_S}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """All figures of a predictor on the launches of a split on a device; errors are fractions.

    Attributes:
        predictor: Name of the predictor.
        split: Name of the split.
        subset: `all`, or those whose measured time is over 20 µs.
        device: The device's name.
        kind: `real` where the model was trained on times of the device, else `datasheet`.
        num_launches: Launches compared.
        mape: Mean absolute percentage error.
        median_ape: Median.
        p90_ape: 90th percentile.
        worst_ape: Largest.
        worst_kernel: `suite/kernel` of the launch with the largest.
        worst_launch: Full name of that launch.
        rank_correlation: Mean Spearman correlation within a kernel; NaN where no kernel can be ranked.
        share_within_25: Share of launches within 25 %.
    """

    predictor: str
    split: str
    subset: str
    device: str
    kind: DeviceKind
    num_launches: int
    mape: float
    median_ape: float
    p90_ape: float
    worst_ape: float
    worst_kernel: str
    worst_launch: str
    rank_correlation: float
    share_within_25: float


def evaluate(
    model: TrainedModel,
    dataset: Dataset,
    holdout: Holdout,
    split: SplitName,
    *,
    traces: TraceCache | None = None,
    on_progress: OnProgress = silent,
) -> list[EvaluationRow]:
    """Compare the model and the baselines with measured times.

    The baselines are fitted to what the model may be trained on: the launches that are not held out.

    Args:
        model: A model that keeps to the holdout.
        dataset: Measured launches, those to train on included.
        holdout: What was held out.
        split: Which of it to evaluate.
        traces: Where traces are kept; with it the timing model is a predictor too.
        on_progress: Hears how many launches the timing model has done.

    Returns:
        A row for each predictor, subset and device that has launches.

    Raises:
        ModelError: The model was trained on held-out families, or there is nothing to evaluate or to fit.
    """
    check_unseen(model, dataset.entries, holdout)
    if split == "unseen-launch" and not holdout.held_out_families:
        raise ModelError(
            f"holdout {holdout.name!r} holds out no family, so nothing shows that the model has not seen its held-out "
            "launches; use a holdout file that lists families"
        )
    test_rows = holdout.rows(dataset.entries, split)
    training_rows = holdout.training_rows(dataset.entries)
    for rows, what in ((test_rows, f"held out for {split}"), (training_rows, "left to fit baselines to")):
        if len(rows) == 0:
            raise ModelError(
                f"no measured launch is {what} in holdout {holdout.name!r}; measure more launches, or choose another "
                "split or holdout file"
            )
    training, test = _common_devices(dataset.subset(training_rows), dataset.subset(test_rows))
    predicted = predict_all(model, training, test)
    if traces is not None:
        predicted[TIMING_MODEL] = timing_times(test.entries, test.devices, traces, on_progress=on_progress)
    return [
        row
        for predictor, times_NM in predicted.items()
        for column in range(len(test.devices))
        for row in _rows(predictor, split, test, times_NM[:, column], column, model)
    ]


def check_unseen(model: TrainedModel, entries: Sequence[SuiteLaunch], holdout: Holdout) -> None:
    """Refuse to evaluate a model on what it was trained on.

    `perfvec train` holds out families and single launches together or not at all, so a model that has seen no
    held-out family has seen no held-out launch.

    Raises:
        ModelError: A held-out family or suite is among those it was trained on, or decided when its training stopped.
    """
    held_out = holdout.held_out_families | {entry.family for entry in entries if entry.suite in holdout.suites}
    seen = held_out & {*model.families, *model.validation_families}
    if seen or set(holdout.suites) & set(model.suites):
        raise ModelError(
            f"the model was trained on {', '.join(sorted(seen)) or ', '.join(holdout.suites)}, which holdout "
            f"{holdout.name!r} keeps for evaluation; its figures there would mean nothing. Train with this holdout "
            "(data.holdout in the configuration), or evaluate with the one that the model was trained with."
        )


def _common_devices(training: Dataset, test: Dataset) -> tuple[Dataset, Dataset]:
    """Leave out devices without a time in both parts."""
    kept = [
        column
        for column in range(len(training.devices))
        if not (np.isnan(training.data.times[:, column]).all() or np.isnan(test.data.times[:, column]).all())
    ]
    if not kept:
        raise ModelError("no device has measured times of both held-out and other launches; measure more launches")
    for column, device in enumerate(training.devices):
        if column not in kept:
            logger.warning("device %s has no times of both held-out and other launches; left out", device.name)
    return training.with_devices(kept), test.with_devices(kept)


def _rows(
    predictor: str, split: str, test: Dataset, times_N: NDArray[np.float64], column: int, model: TrainedModel
) -> list[EvaluationRow]:
    measured_N = test.data.times[:, column]
    device = test.devices[column].name
    rows: list[EvaluationRow] = []
    for subset, longer_than_s in SUBSETS.items():
        chosen = np.flatnonzero((measured_N > longer_than_s) & ~np.isnan(times_N))  # NaN is not longer
        if len(chosen) == 0:
            continue
        entries = [test.entries[row] for row in chosen]
        kernels = [f"{entry.suite}/{entry.kernel}" for entry in entries]
        summary = summarise(times_N[chosen], measured_N[chosen], [entry.name for entry in entries], kernels)
        rows.append(_row(summary, predictor, split, subset, device, device in model.device_names))
    return rows


def _row(summary: Summary, predictor: str, split: str, subset: str, device: str, is_trained: bool) -> EvaluationRow:
    return EvaluationRow(
        predictor=predictor,
        split=split,
        subset=subset,
        device=device,
        kind="real" if is_trained else "datasheet",
        num_launches=summary.num_launches,
        mape=summary.mape,
        median_ape=summary.median_ape,
        p90_ape=summary.p90_ape,
        worst_ape=summary.worst_ape,
        worst_kernel="/".join(summary.worst_name.split("/")[:2]),
        worst_launch=summary.worst_name,
        rank_correlation=summary.rank_correlation,
        share_within_25=summary.share_near,
    )
