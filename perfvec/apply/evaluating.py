"""How far predictions are from measurements, on launches that no predictor has seen."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.predictors import TIMING_MODEL, predict_all, shipped_times, timing_times
from perfvec.apply.splits import SplitName
from perfvec.errors import ModelError
from perfvec.metrics import Summary, summarise
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.apply.devices import DeviceKind
    from perfvec.apply.splits import Holdout
    from perfvec.apply.trace_cache import TraceCache
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.model.weights import TrainedModel

logger = logging.getLogger(__name__)

# Launches below this sit at the launch overhead and flatter any predictor.
LONG_S = 20e-6
SUBSETS: tuple[str, ...] = ("all", "over 20 us", "sizes tied to the global size", "sizes not tied")
SPLITS: tuple[SplitName, ...] = ("unseen-launch", "unseen-kernel", "unseen-suite")
# Splits where the device is taken for new, and those whose launches they take.
NEW_DEVICE_SPLITS: dict[str, SplitName] = {"unseen-device": "unseen-launch", "both-unseen": "unseen-kernel"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """All figures of a predictor on the launches of a split on a device; errors are fractions.

    Attributes:
        predictor: Name of the predictor.
        split: Name of the split.
        subset: Of `SUBSETS`: all, those whose measured time is over 20 µs, and, of unseen kernels, those whose work
            follows from the global size and those where it does not.
        device: The device's name, or what several are called together.
        kind: `real` where the model was trained on times of the device, `simulated` where times are the timing model's,
            else `datasheet`.
        num_launches: Launches compared.
        mape: Mean absolute percentage error.
        median_ape: Median.
        p90_ape: 90th percentile.
        worst_ape: Largest.
        worst_kernel: `suite/kernel` of the launch with the largest.
        worst_launch: Full name of that launch.
        rank_correlation: Mean Spearman correlation within a kernel; NaN where no kernel can be ranked.
        share_within_25: Share of launches within 25 %.
        num_measured: Launches measured on the device, where it is taken for new.
        num_devices: Devices that the figures are over.
        num_draws: Choices of the measured launches that they are over.
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
    num_measured: int = 0
    num_devices: int = 1
    num_draws: int = 1


def evaluate_splits(
    model: TrainedModel,
    dataset: Dataset,
    holdout: Holdout,
    *,
    programs_ND: NDArray[np.float64] | None = None,
) -> list[EvaluationRow]:
    """`evaluate` on the splits that have launches."""
    splits: list[SplitName] = [split for split in SPLITS if len(holdout.rows(dataset.entries, split))]
    return evaluate(model, dataset, holdout, *splits, programs_ND=programs_ND) if splits else []


def evaluate(
    model: TrainedModel,
    dataset: Dataset,
    holdout: Holdout,
    *splits: SplitName,
    programs_ND: NDArray[np.float64] | None = None,
    traces: TraceCache | None = None,
    on_progress: OnProgress = silent,
) -> list[EvaluationRow]:
    """Compare the model and the baselines with measured times.

    The baselines are fitted to what the model may be trained on: the launches that are not held out. The timing model
    is a predictor where the data set has its times, or where there are traces.

    Args:
        model: A model that keeps to the holdout.
        dataset: Measured launches, those to train on included.
        holdout: What was held out.
        splits: Which of it to evaluate.
        programs_ND: Program vectors of all the launches, where they are at hand.
        traces: Where traces are kept; with it the timing model is a predictor too.
        on_progress: Hears how many launches the timing model has done.

    Returns:
        A row for each predictor, subset and device that has launches.

    Raises:
        ModelError: The model was trained on held-out families, or there is nothing to evaluate or to fit.
    """
    check_unseen(model, dataset.entries, holdout)
    if "unseen-launch" in splits and not holdout.held_out_families:
        raise ModelError(
            f"holdout {holdout.name!r} holds out no family, so nothing shows that the model has not seen its held-out "
            "launches; use a holdout file that lists families"
        )
    rows_of = {split: holdout.rows(dataset.entries, split) for split in splits}
    training_rows = holdout.training_rows(dataset.entries)
    purposes = {f"held out for {split}": rows for split, rows in rows_of.items()}
    for what, rows in {**purposes, "left to fit baselines to": training_rows}.items():
        if len(rows) == 0:
            raise ModelError(
                f"no measured launch is {what} in holdout {holdout.name!r}; measure more launches, or choose another "
                "split or holdout file"
            )
    test_rows = np.concatenate(list(rows_of.values()))
    measured = dataset.measured()
    training, test = _common_devices(measured.subset(training_rows), measured.subset(test_rows))
    vectors_ND = None if programs_ND is None else programs_ND[test_rows]
    predicted = predict_all(model, training, test, programs_ND=vectors_ND)
    timed = (
        shipped_times(dataset.subset(test_rows), test.devices)
        if traces is None
        else timing_times(test.entries, test.devices, traces, on_progress=on_progress)
    )
    if timed is not None:
        predicted[TIMING_MODEL] = timed
    real = {model.device_names[row] for row in model.real_devices()}
    split_of = np.repeat(splits, [len(rows) for rows in rows_of.values()])
    return [
        row
        for split in splits
        for column, name in enumerate(test.data.device_names)
        for row in figure_rows(
            [test.entries[place] for place in np.flatnonzero(split_of == split)],
            test.data.times[split_of == split][:, [column]],
            {predictor: times_NM[split_of == split][:, [column]] for predictor, times_NM in predicted.items()},
            [name],
            split=split,
            device=name,
            kind="real" if name in real else "datasheet",
        )
    ]


def figure_rows(
    entries: Sequence[SuiteLaunch],
    measured_NM: NDArray[np.float64],
    predicted: Mapping[str, NDArray[np.float64]],
    device_names: Sequence[str],
    *,
    split: str,
    device: str,
    kind: DeviceKind,
    num_measured: int = 0,
) -> list[EvaluationRow]:
    """All figures of each predictor on each subset, over launches and devices together.

    Args:
        entries: The N launches.
        measured_NM: Their times on M devices, seconds; NaN where there is none.
        predicted: The same of each predictor by its name; NaN where it has none.
        device_names: Of the M devices; a device that comes again was drawn for again.
        split: Name of the split.
        device: What to call the devices.
        kind: Theirs.
        num_measured: Launches measured on each.
    """
    num_devices = len(set(device_names))
    names = [entry.name for entry in entries]
    kernels = [f"{entry.suite}/{entry.kernel}" for entry in entries]
    rows: list[EvaluationRow] = []
    for predictor, times_NM in predicted.items():
        for subset, chosen_NM in _subsets(entries, measured_NM, split).items():
            launch, column = np.nonzero(chosen_NM & ~np.isnan(times_NM))
            if len(launch) == 0:
                continue
            summary = summarise(
                times_NM[launch, column],
                measured_NM[launch, column],
                [
                    names[n] if num_devices == 1 else f"{names[n]} on {device_names[m]}"
                    for n, m in _pairs(launch, column)
                ],
                [f"{kernels[n]} {m}" for n, m in _pairs(launch, column)],
            )
            counted = _row(summary, predictor=predictor, split=split, subset=subset, device=device, kind=kind)
            rows.append(
                replace(
                    counted,
                    num_launches=len(np.unique(launch)),
                    num_measured=num_measured,
                    num_devices=num_devices,
                    num_draws=len(device_names) // num_devices,
                )
            )
    return rows


def _pairs(launch: NDArray[np.int64], column: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    return zip(launch.tolist(), column.tolist(), strict=True)


def _subsets(
    entries: Sequence[SuiteLaunch], measured_NM: NDArray[np.float64], split: str
) -> dict[str, NDArray[np.bool_]]:
    tied_N1 = np.array([[entry.is_size_tied] for entry in entries])
    is_known = measured_NM > 0  # NaN is not
    subsets = {SUBSETS[0]: is_known, SUBSETS[1]: measured_NM > LONG_S}
    if split == "unseen-kernel" and tied_N1.any() and not tied_N1.all():
        subsets |= {SUBSETS[2]: is_known & tied_N1, SUBSETS[3]: is_known & ~tied_N1}
    return subsets


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


def _row(summary: Summary, *, predictor: str, split: str, subset: str, device: str, kind: DeviceKind) -> EvaluationRow:
    return EvaluationRow(
        predictor=predictor,
        split=split,
        subset=subset,
        device=device,
        kind=kind,
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
