"""Make a calibration set: choose its launches, and find out from measured times what the model does not know.

Nothing here is fitted to the families that conformal scores are taken of, and each device is taken for new in turn: its
own row of the table is left out of its prior.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.calibration_set import CalibrationSet, measurements
from perfvec.errors import ModelError
from perfvec.model.design import Design, random_pool
from perfvec.model.familiarity import fit_familiarity
from perfvec.model.posterior import (
    DeviceBelief,
    Measurements,
    Misfit,
    exact_belief,
    log_times,
    posterior,
    predictive,
)
from perfvec.model.uncertainty import (
    CALIBRATED,
    DATASHEET,
    NOISE,
    Footing,
    PriorSpread,
    TypeMisfit,
    Uncertainty,
    fit_spread,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.apply.splits import Holdout
    from perfvec.model.weights import TrainedModel

# A launch of the set may have this many bytes of buffers, and may be expected to take this long on the slowest device.
MOST_BYTES = 96 << 20
LONGEST_S = 0.25
_PER_KERNEL = 2
# Launches after which a device counts as calibrated when its conformal scores are taken.
_TYPICAL_LAUNCHES = 20
_MOST_EVIDENCE = 250
_MOST_SCORES = 1000


def make_set(model: TrainedModel, dataset: Dataset, holdout: Holdout, *, model_digest: str) -> CalibrationSet:
    """Choose the launches, and find out what the model does not know.

    Args:
        model: The model.
        dataset: Measured launches of the suites.
        holdout: What the model was not trained on: conformal scores are of these families, all else of the others.
        model_digest: `file_digest` of the model's file.

    Raises:
        ModelError: The model has seen the held-out families, or there are too few launches.
    """
    from perfvec.apply.evaluating import check_unseen
    from perfvec.model.baselines import aggregate_features

    check_unseen(model, dataset.entries, holdout)
    programs_ND = model.encode(dataset.data.launches)
    seen = holdout.training_rows(dataset.entries)
    unseen = holdout.rows(dataset.entries, "unseen-kernel")
    chosen, is_candidate = choose_rows(dataset, programs_ND, seen, slowest_vector(model))
    known = KnownTimes.of(model, dataset, programs_ND)
    spread, misfit = learn_misfit(known, chosen[is_candidate], unseen)
    features_NA = aggregate_features(dataset.data.launches, with_times=False)
    return CalibrationSet(
        names=tuple(dataset.entries[row].name for row in chosen),
        digests=tuple(dataset.entries[row].launch.digest for row in chosen),
        programs=programs_ND[chosen],
        is_candidate=is_candidate,
        uncertainty=Uncertainty(
            spread=spread,
            misfit=misfit,
            scores=conformal_scores(known, chosen[is_candidate], unseen, spread=spread, misfit=misfit),
        ),
        familiarity=fit_familiarity(features_NA[seen], [dataset.entries[row].family for row in seen]),
        model_digest=model_digest,
    )


def slowest_vector(model: TrainedModel) -> NDArray[np.float64]:
    """The vector that prices every coordinate as the slowest real device of the model does."""
    return model.devices.vectors[model.real_devices()].max(axis=0)


def choose_rows(
    dataset: Dataset, programs_ND: NDArray[np.float64], seen: NDArray[np.int64], slowest_D: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Launches of the set: a few of each kernel, such as small devices run, and others where there are none.

    Args:
        dataset: Measured launches.
        programs_ND: Their program vectors.
        seen: Rows of families that the model was trained on.
        slowest_D: Device vector by which a launch is too long.

    Returns:
        Rows, and whether each is a candidate, `(n,)` both.
    """
    expected_N = programs_ND @ slowest_D
    by_kernel: dict[str, list[int]] = {}
    for row in seen.tolist():
        entry = dataset.entries[row]
        by_kernel.setdefault(f"{entry.suite}/{entry.kernel}", []).append(row)
    rows: list[int] = []
    flags: list[bool] = []
    for kernel in sorted(by_kernel):
        fitting = [
            row
            for row in by_kernel[kernel]
            if dataset.entries[row].launch.buffer_bytes <= MOST_BYTES and expected_N[row] <= LONGEST_S
        ]
        # The longest says most of throughput, the middle one of another mix.
        fitting.sort(key=lambda row: -expected_N[row])
        picked = list(dict.fromkeys([*fitting[:1], *fitting[len(fitting) // 2 :][: _PER_KERNEL - 1]]))
        others = [row for row in by_kernel[kernel] if row not in picked]
        others.sort(key=lambda row: dataset.entries[row].launch.digest)
        targets = others[: _PER_KERNEL - len(picked)]
        rows += [*picked, *targets]
        flags += [True] * len(picked) + [False] * len(targets)
    if not any(flags):
        raise ModelError("no measured launch is small enough for a calibration set; measure smaller launches")
    return np.array(rows, dtype=np.int64), np.array(flags, dtype=bool)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTimes:
    """Times of devices that the model was trained on, each of which may be taken for new.

    Attributes:
        model: The model.
        devices: Devices with times.
        types: Their types.
        programs: `(N, D)`.
        times: Seconds, `(N, devices)`; NaN where there is none.
        spread: Interquartile range ÷ median, `(N, devices)`.
        kernels: Of each launch.
    """

    model: TrainedModel
    devices: tuple[str, ...]
    types: tuple[str, ...]
    programs: NDArray[np.float64]
    times: NDArray[np.float64]
    spread: NDArray[np.float64]
    kernels: tuple[str, ...]

    @classmethod
    def of(cls, model: TrainedModel, dataset: Dataset, programs_ND: NDArray[np.float64]) -> KnownTimes:
        """From a data set; only the devices that the model was trained on."""
        columns = [i for i, name in enumerate(dataset.data.device_names) if name in model.device_names]
        return cls(
            model=model,
            devices=tuple(dataset.data.device_names[column] for column in columns),
            types=tuple(dataset.devices[column].type for column in columns),
            programs=programs_ND,
            times=dataset.data.times[:, columns],
            spread=dataset.data.spread[:, columns],
            kernels=tuple(f"{entry.suite}/{entry.kernel}" for entry in dataset.entries),
        )

    def prior(self, name: str, spread: PriorSpread) -> DeviceBelief:
        """What the other real devices make of a device."""
        model = self.model
        seconds = model.seconds_per_unit[model.device_names.index(name)]
        return model.device_prior(seconds, common=spread.common, own=spread.own, but=name)

    def prior_maker(self, name: str) -> Callable[[PriorSpread], DeviceBelief]:
        """`prior` of a device, as a function of the spread."""
        return partial(self.prior, name)

    def measurements(self, name: str, rows: NDArray[np.int64]) -> Measurements:
        """The launches among the rows that were measured on a device."""
        column = self.devices.index(name)
        kept = rows[~np.isnan(self.times[rows, column])]
        return measurements(
            self.programs[kept],
            self.times[kept, column],
            self.spread[kept, column],
            [self.kernels[row] for row in kept],
        )


def learn_misfit(
    known: KnownTimes, candidates: NDArray[np.int64], unseen: NDArray[np.int64]
) -> tuple[PriorSpread, dict[str, TypeMisfit]]:
    """How far devices and program vectors are off.

    Args:
        known: Times of trained devices.
        candidates: Launches of kernels that the model was trained on.
        unseen: Launches of other kernels.

    Raises:
        ModelError: No launch of other kernels was measured.
    """
    rows = candidates[np.random.default_rng(0).permutation(len(candidates))[:_MOST_EVIDENCE]]
    spread, misfit = fit_spread(
        [known.prior_maker(name) for name in known.devices],
        [known.measurements(name, rows) for name in known.devices],
        known.types,
    )
    return spread, {
        kind: TypeMisfit(known=item, new=_new_misfit(known, kind, unseen, item)) for kind, item in misfit.items()
    }


def _new_misfit(known: KnownTimes, kind: str, unseen: NDArray[np.int64], misfit: Misfit) -> Misfit:
    """Misfit of kernels that the model was not trained on: `misfit`, with as much of a kernel as residuals ask for."""
    residuals = [
        np.log(item.times) - log_times(item.programs, np.log(known.model.devices.row(name)))
        for name, own in zip(known.devices, known.types, strict=True)
        if own == kind and len((item := known.measurements(name, unseen)).times)
    ]
    if not residuals:
        raise ModelError(
            f"no launch of a held-out family was measured on a {kind}; intervals cannot be calibrated without"
        )
    # The middle of the distribution, which a few that are far off do not widen.
    deviation = float(np.median(np.abs(np.concatenate(residuals)))) / 0.6745
    left = deviation**2 - misfit.launch**2 - NOISE**2
    return Misfit(launch=misfit.launch, kernel=float(np.sqrt(max(left, misfit.kernel**2))), noise=NOISE)


def conformal_scores(
    known: KnownTimes,
    candidates: NDArray[np.int64],
    unseen: NDArray[np.int64],
    *,
    spread: PriorSpread,
    misfit: Mapping[str, TypeMisfit],
) -> dict[Footing, NDArray[np.float64]]:
    """Scores of launches of unseen families: on each trained device, and on each as if it were new."""
    scores: dict[Footing, list[NDArray[np.float64]]] = defaultdict(list)
    for name, kind in zip(known.devices, known.types, strict=True):
        asked = known.measurements(name, unseen)
        if len(asked.times) == 0:
            continue
        new = misfit[kind].new
        prior = known.prior(name, spread)
        belief = calibrated(prior, known.measurements(name, candidates), misfit[kind].known, _TYPICAL_LAUNCHES)
        exact = exact_belief(known.model.devices.row(name))
        for group, at in ((name, exact), (DATASHEET, prior), (CALIBRATED, belief)):
            scores[Footing(group=group, type=kind)].append(_scores(at, asked, new))
    return {
        footing: _no_narrower_than_normal(_thinned(parts)) if footing.group == DATASHEET else _thinned(parts)
        for footing, parts in scores.items()
    }


def _no_narrower_than_normal(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of devices taken for new, at least as far out as the Gaussian's: their starts have seen their times."""
    from scipy.stats import norm

    normal = norm.ppf((np.arange(len(scores)) + 0.5) / len(scores))
    return np.where(normal < 0, np.minimum(scores, normal), np.maximum(scores, normal))


def calibrated(
    prior: DeviceBelief, candidates: Measurements, misfit: Misfit, count: int, *, seed: int = 0
) -> DeviceBelief:
    """The belief after so many launches, each chosen from a random pool for what it says of all the candidates."""
    if count == 0 or len(candidates.times) == 0:
        return prior
    pool = random_pool(len(candidates.times), count, seed=seed)
    offered = candidates.subset(pool.tolist())
    design = Design(prior, offered.programs, candidates.programs, misfit, kernels=offered.kernels)
    rows = [int(pool[design.choose()]) for _ in range(min(count, len(pool)))]
    return posterior(prior, candidates.subset(rows), misfit)


def _scores(belief: DeviceBelief, asked: Measurements, new: Misfit) -> NDArray[np.float64]:
    told = predictive(belief, asked.programs, new)
    return (np.log(asked.times) - told.log_time) / told.deviation


def _thinned(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Scores of several devices, as many of each, sorted; large sets by their quantiles."""
    each = _MOST_SCORES // len(parts)
    even = [np.quantile(part, (np.arange(each) + 0.5) / each) if len(part) > each else part for part in parts]
    return np.sort(np.concatenate(even))
