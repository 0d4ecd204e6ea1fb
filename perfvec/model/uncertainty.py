"""What a model does not know: how far devices and program vectors are off, and the intervals that follow.

The hyper-parameters are those under which measured times are most probable (type-II maximum likelihood); what the
Gaussians then still have wrong is put right by conformal scores of launches of families that nothing was fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ModelError
from perfvec.model.conformal import score_interval
from perfvec.model.posterior import DeviceBelief, Measurements, Misfit, log_evidence, predictive

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Where the search for hyper-parameters starts, and what it may not fall below: standard deviations in log.
_START = {"common": 1.0, "own": 0.5, "launch": 0.2, "kernel": 0.3}
_LEAST = 0.02
# A trained device's start has seen its own times, so the table understates how far a new device is from its datasheet.
# Left out of training, the H200 took 0.34 and the Xeon 2.2 times what theirs said, in the median: about this in log.
_LEAST_COMMON = 0.9
NOISE = 0.02
_PULL = 0.01
_LARGEST_LOG = 2.0
CALIBRATED, DATASHEET = "calibrated", "datasheet"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PriorSpread:
    """How far a device may depart from its datasheet, in log, beyond what the table shows (`posterior.table_prior`).

    Attributes:
        common: Standard deviation of a factor on all coordinates together.
        own: Standard deviation of a coordinate by itself.
    """

    common: float
    own: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.common, self.own]).all() and min(self.common, self.own) >= 0):
            raise ModelError(f"common={self.common}, own={self.own}; allowed are finite numbers, 0 or more")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Predicted times and the range that each lies in with the given probability; seconds, shape `(n,)` each."""

    time_s: NDArray[np.float64]
    low_s: NDArray[np.float64]
    high_s: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMisfit:
    """How wrong program vectors are on devices of a type: times on CPUs spread more than on GPUs.

    Attributes:
        known: Of launches whose kernels the model was trained on: what a device is calibrated with.
        new: Of launches of other kernels: what is predicted.
    """

    known: Misfit
    new: Misfit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Footing:
    """On what a device's row stands: whose scores and whose misfit its intervals go by.

    Attributes:
        group: Name of a trained device, or `calibrated` or `datasheet`.
        type: `gpu`, `cpu` or `accelerator`.
    """

    group: str
    type: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """What a model does not know.

    Attributes:
        spread: Of devices.
        misfit: Of program vectors, by type of device.
        scores: Conformal scores by footing: of trained devices each, and for devices of each type that are known by a
            few launches or by none. Each `(n,)`.
    """

    spread: PriorSpread
    misfit: Mapping[str, TypeMisfit] = field(hash=False)
    scores: Mapping[Footing, NDArray[np.float64]] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.misfit or not self.scores:
            raise ModelError("an uncertainty needs a misfit of one type of device and scores of one footing, or more")

    def misfit_of(self, device_type: str) -> TypeMisfit:
        """The misfit on devices of a type; of the types that it knows the widest, where it does not know this one."""
        widest = max(self.misfit.values(), key=lambda item: item.new.variance)
        return self.misfit.get(device_type, widest)

    def scores_of(self, footing: Footing) -> NDArray[np.float64]:
        """The scores of a footing; where there are none, of its type, else of its group, else of all."""
        if footing in self.scores:
            return self.scores[footing]
        for near in (
            [scores for at, scores in self.scores.items() if at.group == CALIBRATED and at.type == footing.type],
            [scores for at, scores in self.scores.items() if at.group == footing.group],
            list(self.scores.values()),
        ):
            if near:
                return np.concatenate(near)
        raise AssertionError  # __post_init__ has refused that

    def interval(
        self, belief: DeviceBelief, programs: NDArray[np.float64], footing: Footing, confidence: float
    ) -> Interval:
        """Times of launches of new kernels, and calibrated intervals around them.

        Args:
            belief: The device.
            programs: Program vectors, `(n, D)`.
            footing: On what the belief stands.
            confidence: Of a time to lie in its interval; above 0 and below 1.

        Raises:
            ModelError: The confidence is out of range, or the programs do not fit.
        """
        told = predictive(belief, programs, self.misfit_of(footing.type).new)
        low, high = score_interval(self.scores_of(footing), confidence)
        return Interval(
            time_s=np.exp(told.log_time),
            low_s=np.exp(told.log_time + min(low, 0.0) * told.deviation),
            high_s=np.exp(told.log_time + max(high, 0.0) * told.deviation),
        )

    def expected_error(self, variance: NDArray[np.float64] | float, footing: Footing) -> float:
        """Median |predicted - measured| ÷ predicted to expect, a fraction.

        Args:
            variance: Of the log time, as far as it comes from the device: of each target, or their mean.
            footing: On what the device stands.
        """
        typical = float(np.median(np.abs(self.scores_of(footing))))
        new = self.misfit_of(footing.type).new
        return float(np.median(np.expm1(typical * np.sqrt(np.asarray(variance) + new.variance))))


def fit_spread(
    priors: Sequence[Callable[[PriorSpread], DeviceBelief]], measured: Sequence[Measurements], types: Sequence[str]
) -> tuple[PriorSpread, dict[str, Misfit]]:
    """Hyper-parameters under which the times of known devices, each taken for new, are most probable.

    Args:
        priors: For each device, what the other rows of the table make of it, given a spread.
        measured: Launches of each device whose kernels the model was trained on.
        types: Type of each device; each type has a misfit of its own.

    Raises:
        ModelError: There is no device, or one has no launches.
    """
    from scipy.optimize import minimize

    if not priors or not len(priors) == len(measured) == len(types) or min(len(item.times) for item in measured) == 0:
        raise ModelError("hyper-parameters need one device or more, each with measured launches")
    kinds = sorted(set(types))
    start = np.log([_START["common"], _START["own"], *(len(kinds) * [_START["launch"], _START["kernel"]])])

    def parts(logs: NDArray[np.float64]) -> tuple[PriorSpread, dict[str, Misfit]]:
        values = [float(value) for value in np.exp(np.minimum(logs, _LARGEST_LOG)) + _LEAST]
        values[0] = max(values[0], _LEAST_COMMON)
        misfits = {
            kind: Misfit(launch=values[2 + 2 * at], kernel=values[3 + 2 * at], noise=NOISE)
            for at, kind in enumerate(kinds)
        }
        return PriorSpread(common=values[0], own=values[1]), misfits

    def loss(logs: NDArray[np.float64]) -> float:
        spread, misfits = parts(logs)
        lost = [
            -log_evidence(prior(spread), launches, misfits[kind]) / len(launches.times)
            for prior, launches, kind in zip(priors, measured, types, strict=True)
        ]
        # A weak pull towards the start: with two or three devices their spread alone says little.
        return float(np.mean(lost)) + _PULL * float(np.square(logs - start).sum())

    found = minimize(loss, start, method="Nelder-Mead", options={"maxfev": 200, "xatol": 0.03, "fatol": 1e-3})
    return parts(found.x)


def assumed_uncertainty() -> Uncertainty:
    """What to go by where a model has no calibration set: the start of the search, and normal scores."""
    from scipy.stats import norm

    misfit = Misfit(launch=_START["launch"], kernel=_START["kernel"], noise=NOISE)
    return Uncertainty(
        spread=PriorSpread(common=_START["common"], own=_START["own"]),
        misfit={"gpu": TypeMisfit(known=misfit, new=misfit)},
        scores={Footing(group=CALIBRATED, type="gpu"): norm.ppf((np.arange(99) + 0.5) / 99)},
    )
