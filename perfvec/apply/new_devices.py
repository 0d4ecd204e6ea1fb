"""How far predictions are from times on a device that is taken for new, after k launches were measured on it.

They are launches of kernels that the model was trained on; errors are of held-out launches of such kernels, and of
unseen kernels. The model has the launches that `perfvec calibrate` would choose. A baseline that learns says what the
other devices take, in the mean of logarithms, times the geometric mean of what k random launches took over what it said
of them: chosen launches are odd ones, and would move it too far. What goes by a data sheet alone stays as it is.

Legend: N launch, M device, D vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.calibration_making import KnownTimes, calibrated
from perfvec.apply.calibration_set import measurements
from perfvec.apply.evaluating import NEW_DEVICE_SPLITS, EvaluationRow, figure_rows
from perfvec.apply.predictors import MODEL, ROOFLINE, TIMING_MODEL, predict_baselines, shipped_times
from perfvec.model.device_rows import fitted_vectors
from perfvec.model.posterior import Misfit, exact_belief, log_times, table_prior
from perfvec.model.weights import TWIN_SPREAD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.apply.devices import DeviceKind
    from perfvec.apply.splits import Holdout
    from perfvec.model.posterior import DeviceBelief
    from perfvec.model.uncertainty import Uncertainty
    from perfvec.model.weights import TrainedModel

COUNTS = (0, 1, 5, 10, 20)
SIMULATED_COUNTS = (0, 10)
# Choices of the measured launches on a real device; of simulated ones there are enough to take one each.
DRAWS = 3
# Simulated times have no noise to speak of.
_SIMULATED_NOISE = 0.01


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewDevice:
    """A device that is taken for new.

    Attributes:
        name: Its name.
        prior: What the model believes of it without a measurement.
        misfit: What the model cannot express of kernels that it was trained on.
        times: Seconds `(N,)`; NaN where there is none.
        spread: Interquartile range ÷ median, `(N,)`.
        learned: Seconds `(N,)` on other devices by the name of each predictor that learns, before a measurement.
        datasheet: Seconds `(N,)` by the name of each that goes by a data sheet; NaN where it has none.
    """

    name: str
    prior: DeviceBelief
    misfit: Misfit
    times: NDArray[np.float64]
    spread: NDArray[np.float64]
    learned: Mapping[str, NDArray[np.float64]]
    datasheet: Mapping[str, NDArray[np.float64]]

    def predict(
        self,
        programs_ND: NDArray[np.float64],
        kernels: tuple[str, ...],
        candidates: NDArray[np.int64],
        count: int,
        seed: int,
    ) -> dict[str, NDArray[np.float64]]:
        """Times of all launches after some were measured: seconds `(N,)` by predictor.

        Args:
            programs_ND: Program vectors of the launches.
            kernels: Of each.
            candidates: Launches that may be measured, by row.
            count: How many are.
            seed: Another seed, other launches.
        """
        kept = candidates[~np.isnan(self.times[candidates])]
        offered = measurements(
            programs_ND[kept], self.times[kept], self.spread[kept], [kernels[row] for row in kept.tolist()]
        )
        belief = calibrated(self.prior, offered, self.misfit, count, seed=seed)
        told = {MODEL: np.exp(log_times(programs_ND, belief.log_mean))}
        rows = np.random.default_rng(seed).permutation(kept)[:count]
        for name, times_N in self.learned.items():
            ratio = np.exp(np.log(self.times[rows] / times_N[rows]).mean()) if len(rows) else 1.0
            told[name] = ratio * times_N
        return {**told, **self.datasheet}


def new_device_rows(
    devices: Sequence[NewDevice],
    dataset: Dataset,
    programs_ND: NDArray[np.float64],
    candidates: NDArray[np.int64],
    holdout: Holdout,
    *,
    label: str,
    kind: DeviceKind,
    counts: Sequence[int],
    num_draws: int = 1,
) -> list[EvaluationRow]:
    """Figures over devices, each taken for new.

    Args:
        devices: The devices.
        dataset: The N launches.
        programs_ND: Their program vectors.
        candidates: Launches that may be measured, by row.
        holdout: What the model was not trained on.
        label: What to call the devices.
        kind: Theirs.
        counts: Numbers of measured launches, 0 or more.
        num_draws: Choices of them.
    """
    kernels = tuple(f"{entry.suite}/{entry.kernel}" for entry in dataset.entries)
    found: list[EvaluationRow] = []
    for count in counts:
        drawn = [
            (device, device.predict(programs_ND, kernels, candidates, count, seed=place * num_draws + draw))
            for place, device in enumerate(devices)
            for draw in range(num_draws if count else 1)
        ]
        for split, part in NEW_DEVICE_SPLITS.items():
            rows = holdout.rows(dataset.entries, part)
            if len(rows) == 0:
                continue
            found += figure_rows(
                [dataset.entries[row] for row in rows],
                np.stack([device.times[rows] for device, _ in drawn], axis=1),
                {name: np.stack([told[name][rows] for _, told in drawn], axis=1) for name in drawn[0][1]},
                [device.name for device, _ in drawn],
                split=split,
                device=label,
                kind=kind,
                num_measured=count,
            )
    return found


def real_new_device(
    known: KnownTimes, dataset: Dataset, uncertainty: Uncertainty, training: NDArray[np.int64], name: str
) -> NewDevice:
    """A device that the model was trained on, without its own row of the table.

    Args:
        known: Times of the model's devices.
        dataset: The launches, with the timing model's times where there are some.
        uncertainty: What the model does not know.
        training: Launches to fit baselines to, by row.
        name: The device.
    """
    measured = dataset.measured()
    own = measured.data.device_names.index(name)
    others = measured.with_devices(
        [
            column
            for column in range(len(measured.devices))
            if column != own and not np.isnan(measured.data.times[training, column]).all()
        ]
    )
    device = measured.devices[own]
    datasheet = {ROOFLINE: predict_roofline(measured, own)}
    timed = shipped_times(dataset, [device])
    if timed is not None:
        datasheet[TIMING_MODEL] = timed[:, 0]
    return NewDevice(
        name=name,
        prior=known.prior(name, uncertainty.spread),
        misfit=uncertainty.misfit_of(device.type).known,
        times=measured.data.times[:, own],
        spread=measured.data.spread[:, own],
        learned=_of_others(others, training) if others.devices else {},
        datasheet=datasheet,
    )


def simulated_new_devices(
    model: TrainedModel,
    dataset: Dataset,
    learned: Mapping[str, NDArray[np.float64]],
    misfit: Misfit,
    *,
    held_out: Sequence[str],
) -> list[NewDevice]:
    """Devices of a design space that the model was not trained on.

    Args:
        model: The model.
        dataset: The launches, with times on these devices.
        learned: Seconds `(N,)` on other devices by the name of each baseline that learns.
        misfit: What the model cannot express, as `simulated_misfit` has it.
        held_out: The devices.
    """
    none = np.zeros((0, model.encoder.layout.dim))
    found: list[NewDevice] = []
    for name in held_out:
        column = dataset.data.device_names.index(name)
        start = model.device_from_datasheet(dataset.data.seconds_per_unit[column])
        found.append(
            NewDevice(
                name=name,
                prior=table_prior(start, none, none, common=TWIN_SPREAD, own=TWIN_SPREAD),
                misfit=misfit,
                times=dataset.data.times[:, column],
                spread=dataset.data.spread[:, column],
                learned=learned,
                datasheet={ROOFLINE: predict_roofline(dataset, column)},
            )
        )
    return found


def fitted_new_devices(
    model: TrainedModel,
    dataset: Dataset,
    programs_ND: NDArray[np.float64],
    launches: NDArray[np.int64],
    misfit: Misfit,
    *,
    held_out: Sequence[str],
) -> list[NewDevice]:
    """The same devices with vectors fitted to the timing model's times, as `perfvec.apply.twins` fits a user's GPU.

    Args:
        model: The model.
        dataset: The launches, with times on these devices.
        programs_ND: Their program vectors.
        launches: Launches to fit to, by row.
        misfit: See `simulated_new_devices`.
        held_out: The devices.
    """
    columns = [dataset.data.device_names.index(name) for name in held_out]
    times_NM = dataset.data.times[:, columns]
    vectors_MD = fitted_vectors(
        model, dataset.data.seconds_per_unit[columns], programs_ND[launches], times_NM[launches]
    )
    return [
        NewDevice(
            name=name,
            prior=exact_belief(vectors_MD[place]),
            misfit=misfit,
            times=times_NM[:, place],
            spread=dataset.data.spread[:, columns[place]],
            learned={},
            datasheet={},
        )
        for place, name in enumerate(held_out)
    ]


def simulated_misfit(predicted: NDArray[np.float64], times: NDArray[np.float64]) -> Misfit:
    """What the model cannot express of times that the timing model gives; as much of it of a kernel as of a launch.

    Args:
        predicted: Seconds `(N, M)` of launches and devices that the model was trained on.
        times: As the timing model has them; NaN where there is none.
    """
    # The middle of the distribution, which a few that are far off do not widen.
    deviation = float(np.nanmedian(np.abs(np.log(predicted / times)))) / 0.6745
    return Misfit(launch=deviation * 0.5**0.5, kernel=deviation * 0.5**0.5, noise=_SIMULATED_NOISE)


def predict_roofline(dataset: Dataset, column: int) -> NDArray[np.float64]:
    """Seconds `(N,)` that the data sheet of a device gives."""
    from perfvec.arch.datasheet import roofline_time_s

    return roofline_time_s(dataset.devices[column], np.stack([item.resources for item in dataset.data.launches]))


def _of_others(dataset: Dataset, training: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    predicted = predict_baselines(dataset.subset(training), dataset)
    return mean_over_devices({name: times for name, times in predicted.items() if name != ROOFLINE})


def mean_over_devices(predicted: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Geometric means over devices: seconds `(N,)` of `(N, M)`, by predictor."""
    return {name: np.exp(np.log(times_NM).mean(axis=1)) for name, times_NM in predicted.items()}
