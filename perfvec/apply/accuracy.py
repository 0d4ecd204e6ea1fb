"""What `perfvec evaluate` prints: figures of one split, or of all splits and baselines in one go.

Legend: N launch, M device, D vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.beliefs import uncertainty_of
from perfvec.apply.calibration_making import KnownTimes, choose_rows, slowest_vector
from perfvec.apply.dataset import LeftOut, make_dataset
from perfvec.apply.evaluating import SPLITS, EvaluationRow, check_unseen, evaluate, evaluate_splits, figure_rows
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.models import load_model
from perfvec.apply.new_devices import (
    COUNTS,
    DRAWS,
    SIMULATED_COUNTS,
    fitted_new_devices,
    mean_over_devices,
    new_device_rows,
    real_new_device,
    simulated_misfit,
    simulated_new_devices,
)
from perfvec.apply.predictors import MODEL, ROOFLINE, predict_baselines
from perfvec.apply.sample import load_sample, sampled
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.splits import load_holdout
from perfvec.apply.trace_cache import TraceCache
from perfvec.apply.twins import spread_over_kernels
from perfvec.arch.measured import load_measured
from perfvec.corpus.suite import load_suites
from perfvec.report.progress import OnProgress, silent
from perfvec.resources import ARCHETYPES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.apply.splits import Holdout, SplitName
    from perfvec.model.uncertainty import Uncertainty
    from perfvec.model.weights import TrainedModel

SPACE = "gpu-2010-today"
# Of the devices that it was trained on, so many are taken unless told to take all: a forest is fitted to each.
NUM_SEEN_DEVICES = 12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllSplits:
    """Figures of all splits.

    Attributes:
        rows: A row for each predictor, subset, device and split.
        is_full: Whether all launches were taken, not the fixed sample.
        num_launches: Launches taken.
        num_training_launches: Those of them that are not held out, which baselines are fitted to and new devices are
            measured by.
        left_out: Launches that could not be traced.
    """

    rows: tuple[EvaluationRow, ...]
    is_full: bool
    num_launches: int
    num_training_launches: int
    left_out: tuple[LeftOut, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures has to know."""
        what = "all measured launches" if self.is_full else "a fixed sample of the measured launches"
        return (
            f"Launches: {what} of the suites ({self.num_launches}). Baselines are fitted to the "
            f"{self.num_training_launches} of them that are not held out"
            + ("." if self.is_full else "; --full takes all."),
            "A measured device that is taken for new keeps no row of its own, but its times took part in training the "
            "encoder; docs/calibrate.md has models that were trained without it.",
            "The timing model is of GPUs; on simulated devices its times are the truth. So where a row of theirs was "
            "fitted to these times, on launches that are not held out, the figures say how well a row can stand for a "
            "device, not how good the timing model is.",
        )


def evaluate_split(
    split: SplitName,
    *,
    model_path: Path | None = None,
    holdout_path: Path | None = None,
    suites: Path | None = None,
    measured: Path | None = None,
    device_names: Sequence[str] = (),
    has_timing_model: bool = False,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> list[EvaluationRow]:
    """Trace what the cache lacks, and compare predictors on one split.

    Args:
        split: The split.
        model_path: See `evaluate_all`, as for all that follow but one.
        holdout_path: See there.
        suites: See there.
        measured: See there.
        device_names: See there.
        has_timing_model: Whether the timing model is a predictor, too; traces the launches.
        num_processes: See there.
        on_progress: See there.

    Raises:
        PerfVecError: See there.
    """
    model, holdout = load_model(model_path), load_holdout(holdout_path)
    launches = load_suites(suites)
    check_unseen(model, launches, holdout)  # before hours of tracing
    dataset = make_dataset(
        launches,
        load_measured(measured),
        device_names=device_names,
        num_processes=num_processes,
        on_progress=on_progress,
    )
    on_progress("evaluating", 0, 0)
    traces = TraceCache.open() if has_timing_model else None
    return evaluate(model, dataset, holdout, split, traces=traces, on_progress=on_progress)


def evaluate_all(
    *,
    model_path: Path | None = None,
    holdout_path: Path | None = None,
    suites: Path | None = None,
    measured: Path | None = None,
    device_names: Sequence[str] = (),
    is_full: bool = False,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> AllSplits:
    """Trace what the cache lacks, and compare all predictors on all splits.

    Args:
        model_path: The model; the shipped one where it is None.
        holdout_path: What it was not trained on; the shipped file where it is None.
        suites: Folder of suites; the shipped ones where it is None.
        measured: Folder of measured times; the shipped one where it is None.
        device_names: Measured devices to compare on; all where there is none.
        is_full: Take all launches and simulated devices instead of the fixed sample.
        num_processes: Processes that trace; 0 to trace in this one; None for one a core.
        on_progress: Hears how far it is.

    Raises:
        PerfVecError: A file cannot be read, a device is unknown, the model has seen what is held out, or nothing is
            left.
    """
    model, holdout = load_model(model_path), load_holdout(holdout_path)
    launches = load_suites(suites)
    check_unseen(model, launches, holdout)  # before minutes of tracing
    space = SimulatedDevices(space=SPACE)
    dataset = make_dataset(
        launches if is_full else sampled(launches, load_sample()),
        load_measured(measured),
        device_names=device_names,
        simulated=space.devices,
        cache=FeatureCache.open(simulated=space),
        num_processes=num_processes,
        on_progress=on_progress,
    )
    on_progress("encoding", 0, 0)
    programs_ND = model.encode(dataset.data.launches)
    on_progress("evaluating", 0, 0)
    rows = evaluate_splits(model, dataset, holdout, programs_ND=programs_ND)
    on_progress("taking measured devices for new", 0, 0)
    rows += real_rows(model, uncertainty_of(model_path), dataset, programs_ND, holdout)
    on_progress("evaluating on simulated devices", 0, 0)
    rows += simulated_rows(model, dataset, programs_ND, holdout, space, 0 if is_full else NUM_SEEN_DEVICES)
    return AllSplits(
        rows=tuple(rows),
        is_full=is_full,
        num_launches=len(dataset.entries),
        num_training_launches=len(holdout.training_rows(dataset.entries)),
        left_out=dataset.left_out,
    )


def real_rows(
    model: TrainedModel,
    uncertainty: Uncertainty,
    dataset: Dataset,
    programs_ND: NDArray[np.float64],
    holdout: Holdout,
) -> list[EvaluationRow]:
    """Each measured device of the model taken for new."""
    measured = dataset.measured()
    training = holdout.training_rows(dataset.entries)
    known = KnownTimes.of(model, measured, programs_ND)
    chosen, is_candidate = choose_rows(measured, programs_ND, training, slowest_vector(model))
    return [
        row
        for name in known.devices
        for row in new_device_rows(
            [real_new_device(known, dataset, uncertainty, training, name)],
            dataset,
            programs_ND,
            chosen[is_candidate],
            holdout,
            label=name,
            kind="real",
            counts=COUNTS,
            num_draws=DRAWS,
        )
    ]


def simulated_rows(
    model: TrainedModel,
    dataset: Dataset,
    programs_ND: NDArray[np.float64],
    holdout: Holdout,
    space: SimulatedDevices,
    num_seen: int = 0,
) -> list[EvaluationRow]:
    """Devices of a design space, those that the model was trained on and those that it was not.

    Args:
        model: The model.
        dataset: Launches with times on all devices of the space.
        programs_ND: Their program vectors.
        holdout: What the model was not trained on.
        space: The devices.
        num_seen: Of those that it was trained on and that are no archetypes so many, the first; 0 for all.
    """
    names = dataset.data.device_names
    # On an archetype nothing is predicted: its times are coordinates.
    candidates = [item.device.name for item in space.part("training") if item.device.name not in ARCHETYPES]
    trained = [name for name in candidates if name in model.device_names]
    held_out = [item.device.name for item in space.part("held-out")]
    if not trained:
        return []
    seen = trained[: num_seen or len(trained)]
    training = holdout.training_rows(dataset.entries)
    on_seen = dataset.with_devices([names.index(name) for name in seen])
    baselines = predict_baselines(on_seen.subset(training), on_seen)
    vectors_MD = np.stack([model.devices.row(name) for name in seen])
    predicted = {MODEL: programs_ND @ vectors_MD.T, **baselines}
    rows: list[EvaluationRow] = []
    for split in SPLITS:
        chosen = holdout.rows(dataset.entries, split)
        if len(chosen):
            rows += figure_rows(
                [dataset.entries[row] for row in chosen],
                on_seen.data.times[chosen],
                {name: times_NM[chosen] for name, times_NM in predicted.items()},
                seen,
                split=split,
                device=f"{space.space}, trained on",
                kind="simulated",
            )
    misfit = simulated_misfit(predicted[MODEL][training], on_seen.data.times[training])
    learned = mean_over_devices({name: times for name, times in baselines.items() if name != ROOFLINE})
    chosen, is_candidate = choose_rows(dataset, programs_ND, training, slowest_vector(model))
    entries = [dataset.entries[row] for row in chosen[is_candidate]]
    kept = spread_over_kernels(
        [entry.launch.digest for entry in entries], [f"{entry.suite}/{entry.kernel}" for entry in entries]
    )
    timed = chosen[is_candidate][kept]
    label = f"{space.space}, held out"
    for devices, name, counts in (
        (simulated_new_devices(model, dataset, learned, misfit, held_out=held_out), label, SIMULATED_COUNTS),
        (
            fitted_new_devices(model, dataset, programs_ND, timed, misfit, held_out=held_out),
            f"{label}, fitted to the timing model on {len(timed)} launches",
            (0,),
        ),
    ):
        rows += new_device_rows(
            devices, dataset, programs_ND, training, holdout, label=name, kind="simulated", counts=counts
        )
    return rows
