"""The dot product learned on tables of measured times: programs and devices as positive vectors of a few coordinates.

Legend: N launch, M device, R coordinate, A feature. A time is sum over r of p_r a_r; the logarithms of p and a have
Gaussian priors and are found together at their maximum a posteriori. With a kernel over features, log p is a Gaussian
process of the features plus a correction of each launch: the encoder and what times elsewhere correct in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.optimize import minimize

from perfvec.model.posterior import DeviceBelief, Measurements, Misfit, log_times, posterior, table_prior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Fixed before any result: relative error beyond which the loss is linear, spread of device coordinates in log, and the
# share of a launch's own correction where nothing says better.
NOISE = 0.1
DEVICE_SPREAD = 0.7
RIDGE = 3.0
MISFIT = Misfit(launch=0.1, kernel=0.0, noise=0.02)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Programs and devices.

    Attributes:
        log_programs: `(N, R)`.
        log_devices: `(M, R)`.
        misfit: Root mean square residual of each launch, in log; `(N,)`.
        centre: Prior mean of all log programs.
    """

    log_programs: Floats
    log_devices: Floats
    misfit: Floats
    centre: float


def factorise(log_times_NM: Floats, *, rank: int, spread: float, seed: int, prior_NN: Floats | None = None) -> Factors:
    """Find programs and devices.

    Args:
        log_times_NM: Log seconds; NaN where there is no time.
        rank: Coordinates.
        spread: Standard deviation of log programs.
        seed: Of the start.
        prior_NN: Covariance of a coordinate over the launches, in units of `spread` squared; independent where None.
    """
    num_launches, num_devices = log_times_NM.shape
    is_known = ~np.isnan(log_times_NM)
    times = np.where(is_known, log_times_NM, 0.0)
    row_mean = times.sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    centre = float(times[is_known].mean()) - np.log(rank)
    if prior_NN is None:
        # Each launch about its own mean time: a table without features says nothing of scale.
        root, base = spread * np.eye(num_launches), row_mean[:, None] - np.log(rank)
    else:
        root, base = spread * np.linalg.cholesky(prior_NN), np.full((num_launches, 1), centre)
    rng = np.random.default_rng(seed)
    start = 0.3 * rng.standard_normal((num_launches + num_devices) * rank)
    cut = num_launches * rank

    def loss(values: Floats) -> tuple[float, Floats]:
        free, devices = values[:cut].reshape(num_launches, rank), values[cut:].reshape(num_devices, rank)
        parts = (base + root @ free)[:, None] + devices[None]
        top = parts.max(axis=-1, keepdims=True)
        weights = np.exp(parts - top)
        total = weights.sum(axis=-1)
        off = np.where(is_known, (times - np.log(total) - top[..., 0]) / NOISE, 0.0)
        bend = np.sqrt(1 + off**2 / 4)
        slope = (-off / bend / NOISE)[..., None] * (weights / total[..., None])
        centred = devices - devices.mean(axis=0)
        value = 4 * (bend - 1).sum() + 0.5 * (free**2).sum() + 0.5 * (centred**2).sum() / DEVICE_SPREAD**2
        value += 0.125 * (devices.mean(axis=0) ** 2).sum()
        by_device = slope.sum(axis=0) + centred / DEVICE_SPREAD**2 + 0.25 * devices.mean(axis=0) / num_devices
        return float(value), np.concatenate([(root.T @ slope.sum(axis=1) + free).ravel(), by_device.ravel()])

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    programs = base + root @ found[:cut].reshape(num_launches, rank)
    devices = found[cut:].reshape(num_devices, rank)
    predicted = np.logaddexp.reduce(programs[:, None] + devices[None], axis=-1)
    left = np.where(is_known, log_times_NM - predicted, 0.0)
    misfit = np.sqrt((left**2).sum(axis=1) / np.maximum(is_known.sum(axis=1), 1))
    return Factors(log_programs=programs, log_devices=devices, misfit=misfit, centre=centre)


def device_prior(factors: Factors, facts_MA: Floats, facts_A: Floats) -> DeviceBelief:
    """What is believed of a new device, given its data sheet and those of the known devices.

    Ridge regression from facts to log vectors; each known device is told from the others in the same way, and the new
    device departs from what it is told to be as they do.

    Args:
        factors: The known devices.
        facts_MA: Their facts.
        facts_A: Facts of the new device.
    """
    deviation = facts_MA.std(axis=0)
    deviation = np.where(deviation > 1e-9, deviation, 1.0)
    known, new = (facts_MA - facts_MA.mean(axis=0)) / deviation, (facts_A - facts_MA.mean(axis=0)) / deviation

    def told(rows: NDArray[np.int64], at: Floats) -> Floats:
        mean = factors.log_devices[rows].mean(axis=0)
        gram = known[rows] @ known[rows].T + RIDGE * np.eye(len(rows))
        return mean + at @ known[rows].T @ np.linalg.solve(gram, factors.log_devices[rows] - mean)

    every = np.arange(len(known))
    starts = np.stack([told(every[every != row], known[row]) for row in every])
    return table_prior(np.exp(told(every, new)), np.exp(factors.log_devices), np.exp(starts), common=0.5, own=0.5)


def calibrated(factors: Factors, prior: DeviceBelief, rows: NDArray[np.int64], log_times: Floats) -> DeviceBelief:
    """The belief after launches of the table were measured on the new device."""
    measured = Measurements(
        programs=np.exp(factors.log_programs[rows]),
        times=np.exp(log_times),
        deviation=factors.misfit[rows],
        kernels=tuple(map(str, rows)),
    )
    return posterior(prior, measured, MISFIT)


def log_times_of(factors: Factors, belief: DeviceBelief) -> Floats:
    """Predicted log seconds of all launches of the table; `(N,)`."""
    return log_times(np.exp(factors.log_programs), belief.log_mean)


# ---- the encoder ------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureKernel:
    """Covariance of log program coordinates: a linear and a smooth part, and each launch's own.

    Attributes:
        length: Of the smooth part, in deviations of a feature.
        linear: Weight of the linear part; the smooth part has 1.
        own: Variance of a launch's own correction.
    """

    length: float
    linear: float
    own: float

    def between(self, left_NA: Floats, right_NA: Floats) -> Floats:
        """Covariance without the launches' own corrections."""
        square = ((left_NA[:, None] - right_NA[None]) ** 2).mean(axis=-1)
        return 1.0 + self.linear * left_NA @ right_NA.T / left_NA.shape[1] + np.exp(-0.5 * square / self.length**2)


def choose_kernel(features_NA: Floats, log_times_NM: Floats) -> tuple[FeatureKernel, float]:
    """The kernel under which the times are most probable, and its scale; nothing but the training part is looked at.

    The times of all devices, each about its own mean, count as draws of one Gaussian process of the features.
    """
    centred = log_times_NM - np.nanmean(log_times_NM, axis=0)
    mean = np.nanmean(centred, axis=1)
    best: tuple[float, FeatureKernel, float] | None = None
    for length in (0.3, 0.5, 1.0):
        for linear in (0.2, 1.0):
            for own in (0.02, 0.1, 0.3):
                kernel = FeatureKernel(length=length, linear=linear, own=own)
                factor = np.linalg.cholesky(kernel.between(features_NA, features_NA) + own * np.eye(len(mean)))
                white = np.linalg.solve(factor, mean)
                scale = float(white @ white) / len(mean)
                evidence = -0.5 * len(mean) * np.log(scale) - np.log(np.diag(factor)).sum()
                if best is None or evidence > best[0]:
                    best = (evidence, kernel, np.sqrt(scale))
    assert best is not None
    return best[1], best[2]


def encode(factors: Factors, kernel: FeatureKernel, features_NA: Floats, new_NA: Floats) -> Floats:
    """Log programs of launches that nobody measured, from their features."""
    gram = kernel.between(features_NA, features_NA) + kernel.own * np.eye(len(features_NA))
    return factors.centre + kernel.between(new_NA, features_NA) @ np.linalg.solve(
        gram, factors.log_programs - factors.centre
    )
