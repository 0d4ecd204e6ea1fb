"""The vector of a new device from a few measured launches: a Gaussian prior and its closed-form posterior.

Legend: k measured launch, n known device, D vector. In formulas m is the prior mean, C its covariance, P the program
vectors of the measured launches, t their times and ρ the relative noise; the model is t = P a + noise, the noise of
each launch Gaussian with standard deviation ρ t, a ~ N(m, C).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.devices import DeviceTable

# Log deviation of a coordinate that a table of few devices is taken to leave open, and how many devices it counts as.
_DEFAULT_LOG_DEVIATION = 0.7
_DEFAULT_COUNT = 4.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBelief:
    """What is believed of a device vector.

    Attributes:
        mean: Seconds per unit; float64 `(D,)`.
        covariance: Float64 `(D, D)`, symmetric, positive semi-definite.
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def __post_init__(self) -> None:
        size = len(self.mean)
        if self.mean.ndim != 1 or self.covariance.shape != (size, size):
            raise ModelError(f"a mean of shape {self.mean.shape} and a covariance {self.covariance.shape} do not match")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.covariance).all()):
            raise ModelError("the belief about a device has a value that is not finite")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Predicted times and the range each lies in with the given probability; seconds, shape `(n,)` each."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def table_prior(start: NDArray[np.float64], table: DeviceTable, starts: NDArray[np.float64]) -> DeviceBelief:
    """Empirical Bayes: a new device departs from its start as the known devices depart from theirs.

    The departures are taken in log, so the moments are those of a log-normal and no coordinate is likely negative.
    Few devices say little, so their covariance is shrunk towards independent coordinates.

    Args:
        start: Vector of the new device from its datasheet alone; `(D,)`, positive.
        table: Vectors of the known devices, `(n, D)`, positive.
        starts: Vectors of the known devices from their datasheets alone; `(n, D)`, positive.

    Raises:
        ModelError: The shapes differ or a vector is not positive.
    """
    if table.vectors.shape != starts.shape or start.shape != starts.shape[1:]:
        raise ModelError(
            f"vectors {table.vectors.shape}, their starts {starts.shape} and a new start {start.shape} do not match"
        )
    if min(start.min(), starts.min(), table.vectors.min()) <= 0:
        raise ModelError("the prior of a device needs positive vectors; take them from a trained model")
    departure_nD = np.log(table.vectors / starts)
    count = len(departure_nD)
    total = count + _DEFAULT_COUNT
    shift_D = departure_nD.sum(axis=0) / total
    centred_nD = departure_nD - shift_D
    own_DD = centred_nD.T @ centred_nD / total
    # The average of devices that are not in the table counts as default spread around no shift.
    default_D = _DEFAULT_COUNT / total * (_DEFAULT_LOG_DEVIATION**2 + shift_D**2)
    log_DD = own_DD + np.diag(default_D)
    mean_D = start * np.exp(shift_D)
    return DeviceBelief(mean=mean_D, covariance=mean_D[:, None] * mean_D * np.expm1(log_DD))


def posterior(
    prior_mean: NDArray[np.float64],
    prior_cov: NDArray[np.float64],
    programs: NDArray[np.float64],
    times: NDArray[np.float64],
    relative_noise: float,
) -> DeviceBelief:
    """Condition a belief on measured launches.

    Solved in the k measurements (Woodbury), each divided by its time, so that launches of any length weigh alike and
    only a k × k matrix near 1 is factored.

    Args:
        prior_mean: m; `(D,)`.
        prior_cov: C; `(D, D)`.
        programs: P; `(k, D)`. With k = 0 the belief stays as it is.
        times: t; seconds, `(k,)`, positive.
        relative_noise: ρ; above 0. What the model cannot express belongs in it too.

    Raises:
        ModelError: The shapes differ, a time is not positive, or the noise is not.
    """
    prior = DeviceBelief(mean=prior_mean, covariance=prior_cov)
    if programs.shape != (len(times), len(prior_mean)):
        raise ModelError(f"programs {programs.shape}, times {times.shape} and a mean {prior_mean.shape} do not match")
    if not (np.isfinite(times).all() and (times > 0).all()):
        raise ModelError("measured times must be positive and finite to calibrate a device")
    if not relative_noise > 0:
        raise ModelError(f"relative_noise={relative_noise} must be above 0; no measurement is exact")
    if len(times) == 0:
        return prior
    # Coordinates differ by many orders of magnitude; in units of their own deviation the products stay near 1.
    scale_D = np.sqrt(np.diag(prior_cov))
    unit_D = np.where(scale_D > 0, scale_D, 1.0)
    relative_kD = programs / times[:, None] * unit_D
    cov_DD = prior_cov / unit_D[:, None] / unit_D
    projected_Dk = cov_DD @ relative_kD.T
    factor_kk = np.linalg.cholesky(relative_kD @ projected_Dk + relative_noise**2 * np.eye(len(times)))
    whitened_kD = np.linalg.solve(factor_kk, projected_Dk.T)
    residual_k = np.linalg.solve(factor_kk, 1.0 - programs @ prior_mean / times)
    mean_D = prior_mean + unit_D * (whitened_kD.T @ residual_k)
    shrunk_DD = (cov_DD - whitened_kD.T @ whitened_kD) * unit_D[:, None] * unit_D
    return DeviceBelief(mean=mean_D, covariance=(shrunk_DD + shrunk_DD.T) / 2)


def predictive_interval(
    belief: DeviceBelief, programs: NDArray[np.float64], *, relative_noise: float, probability: float = 0.9
) -> Interval:
    """Times of launches on a device that is known as well as the belief says.

    Args:
        belief: The device.
        programs: Program vectors, `(n, D)`.
        relative_noise: Noise of a measurement relative to its time, 0 or more.
        probability: Of a measurement to lie in the interval; above 0 and below 1.

    Returns:
        A central interval. A lower end below zero is given as zero: no time is negative.

    Raises:
        ModelError: The shapes differ or the probability is out of range.
    """
    from scipy.stats import norm

    if programs.ndim != 2 or programs.shape[1] != len(belief.mean):
        raise ModelError(f"programs {programs.shape} do not match a device vector of {len(belief.mean)}")
    if not 0 < probability < 1:
        raise ModelError(f"probability={probability} must lie between 0 and 1")
    mean_n = programs @ belief.mean
    variance_n = np.einsum("nd,de,ne->n", programs, belief.covariance, programs) + (relative_noise * mean_n) ** 2
    # Rounding can leave a variance of zero slightly below it.
    reach_n = float(norm.ppf((1 + probability) / 2)) * np.sqrt(np.maximum(variance_n, 0.0))
    return Interval(mean=mean_n, low=np.maximum(mean_n - reach_n, 0.0), high=mean_n + reach_n)
