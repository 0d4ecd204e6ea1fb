"""The vector of a device as a Gaussian: prior, closed-form posterior and predicted times.

Legend: D vector, k measured launch, n launch, q known device. In formulas p is a program vector, a a device
vector, t a time:

    t = p · a · exp(v · w + noise),   log a ~ N(mean, covariance),   v ~ N(0, misfit)

The Gaussian is over log a, so that every vector is positive and errors are relative. The time is linear in it to first
order: with shares w_d = p_d a_d ÷ (p · a), which are 0 or more and sum to 1,

    log t(u) = log(p · a) + w · u + O(u²)          for a vector a · exp(u)

so the variance of log t is w' covariance w, and conditioning on measured times is Gaussian regression on shares. The
shares are taken again at the new mean until it stands still (iterated extended Kalman filter; Bell and Cathey, IEEE
Trans. Automatic Control 1993, the Gauss-Newton method of the maximum a posteriori). What the program vector itself has
wrong is a correction v of the same form, one for each launch and one for each kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ModelError
from perfvec.model.covariance import Covariance, variances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MOST_STEPS = 20
_STILL = 1e-3
# A coordinate moves at most by this factor (e^2) in one step: where shares change fast, full steps overshoot.
_LONGEST_STEP = 2.0
# How many devices the default spread counts as beside those of the table.
_DEFAULT_COUNT = 4.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """How wrong program vectors are, and how noisy times; standard deviations of the logarithm of a time.

    Attributes:
        launch: Of a launch by itself.
        kernel: Of all launches of a kernel together.
        noise: Of a repeated measurement, beside its own measured spread.
    """

    launch: float
    kernel: float
    noise: float

    def __post_init__(self) -> None:
        values = (self.launch, self.kernel, self.noise)
        if not all(np.isfinite(values)) or min(values) < 0 or self.launch + self.noise <= 0:
            raise ModelError(
                f"misfit launch={self.launch}, kernel={self.kernel}, noise={self.noise}; allowed are finite numbers, "
                "0 or more, and not both launch and noise 0: no measurement is exact"
            )

    @property
    def variance(self) -> float:
        """Of the logarithm of a launch's time, its kernel being new."""
        return self.launch**2 + self.kernel**2 + self.noise**2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBelief:
    """What is believed of a device vector.

    Attributes:
        log_mean: Mean of log a, a in seconds per unit; float64 `(D,)`.
        covariance: Of log a.
    """

    log_mean: NDArray[np.float64]
    covariance: Covariance

    def __post_init__(self) -> None:
        if self.log_mean.shape != self.covariance.own.shape:
            raise ModelError(
                f"a mean of shape {self.log_mean.shape} and variances {self.covariance.own.shape} do not match"
            )
        if not np.isfinite(self.log_mean).all():
            raise ModelError("the belief about a device has a value that is not finite")

    @property
    def vector(self) -> NDArray[np.float64]:
        """The device vector at the mean of its logarithm; seconds per unit, `(D,)`."""
        return np.exp(self.log_mean)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Predictive:
    """Times of launches, each log-normal.

    Attributes:
        log_time: Mean of the logarithm of the seconds; `(n,)`.
        deviation: Its standard deviation: of the device vector, the program vector and the noise together; `(n,)`.
        device_deviation: The part of it that measuring the device can take away; `(n,)`.
    """

    log_time: NDArray[np.float64]
    deviation: NDArray[np.float64]
    device_deviation: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Measured launches of a device.

    Attributes:
        programs: Program vectors; float64 `(k, D)`, 0 or more.
        times: Seconds; `(k,)`, positive.
        deviation: Standard deviation of the logarithm of each time, from its repeats; `(k,)`, 0 or more.
        kernels: Kernel of each launch: launches of one share a part of their misfit.
    """

    programs: NDArray[np.float64]
    times: NDArray[np.float64]
    deviation: NDArray[np.float64]
    kernels: tuple[str, ...]

    def __post_init__(self) -> None:
        count = len(self.times)
        if self.programs.ndim != 2 or not len(self.programs) == len(self.deviation) == len(self.kernels) == count:
            raise ModelError(
                f"programs {self.programs.shape}, {count} times, {len(self.deviation)} deviations and "
                f"{len(self.kernels)} kernels do not belong together"
            )
        if not (np.isfinite(self.times).all() and (self.times > 0).all()):
            raise ModelError("measured times must be positive and finite to calibrate a device")
        if not (np.isfinite(self.deviation).all() and (self.deviation >= 0).all()):
            raise ModelError("deviations of measured times must be finite and 0 or more")

    def subset(self, rows: Sequence[int]) -> Measurements:
        """Some of the launches, in the order given."""
        return Measurements(
            programs=self.programs[list(rows)],
            times=self.times[list(rows)],
            deviation=self.deviation[list(rows)],
            kernels=tuple(self.kernels[row] for row in rows),
        )


def exact_belief(vector: NDArray[np.float64]) -> DeviceBelief:
    """The belief in a device that so many launches were measured on that only the misfit is in doubt.

    Args:
        vector: `(D,)`, positive.
    """
    return DeviceBelief(log_mean=np.log(vector), covariance=Covariance.of(np.zeros(len(vector))))


def shares(
    programs: NDArray[np.float64], log_vector: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each coordinate's share of a launch's time, and the logarithm of the time.

    Args:
        programs: `(n, D)`, 0 or more, each row with a value above 0.
        log_vector: `(D,)`.

    Returns:
        Shares `(n, D)`, each row summing to 1, and log seconds `(n,)`.

    Raises:
        ModelError: The shapes differ, or a program vector is not finite, negative, or all 0.
    """
    weights_D, total_n, shift = _weighed(programs, log_vector)
    parts_nD = programs * weights_D
    parts_nD /= total_n[:, None]
    return parts_nD, np.log(total_n) + shift


def single_shares(programs: NDArray[np.float64], log_vector: NDArray[np.float64]) -> NDArray[np.float32]:
    """`shares` in single precision, which is twice as fast to work with; `(n, D)`.

    Raises:
        ModelError: As `shares`.
    """
    weights_D, total_n, _ = _weighed(programs, log_vector)
    parts_nD = np.empty(programs.shape, dtype=np.float32)
    np.divide(programs, total_n[:, None], out=parts_nD, casting="same_kind")
    parts_nD *= weights_D.astype(np.float32)
    return parts_nD


def log_times(programs: NDArray[np.float64], log_vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of the seconds that launches take, `(n,)`: what `shares` gives beside the shares.

    Raises:
        ModelError: As `shares`.
    """
    _, total_n, shift = _weighed(programs, log_vector)
    return np.log(total_n) + shift


def _weighed(
    programs: NDArray[np.float64], log_vector: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Seconds per unit `(D,)` and of launches `(n,)`, both ÷ exp(shift): it keeps tiny and huge units in range."""
    if programs.ndim != 2 or programs.shape[1] != len(log_vector):
        raise ModelError(f"programs {programs.shape} do not match a device vector of {len(log_vector)}")
    shift = float(log_vector.max())
    weights_D = np.exp(log_vector - shift)
    total_n = programs @ weights_D
    if not (np.isfinite(total_n).all() and (total_n > 0).all() and programs.min(initial=0.0) >= 0):
        raise ModelError("program vectors must be finite, 0 or more, and not all 0; encode the launches again")
    return weights_D, total_n, shift


def table_prior(
    start: NDArray[np.float64],
    vectors: NDArray[np.float64],
    starts: NDArray[np.float64],
    *,
    common: float,
    own: float,
) -> DeviceBelief:
    """Empirical Bayes: a new device departs from its start as the known devices depart from theirs, in log.

    The sample covariance of q departures has rank q - 1 at most. It is shrunk towards a common factor of speed and
    independent coordinates, which count as `_DEFAULT_COUNT` devices; with many rows the sample decides.

    Args:
        start: Vector of the new device from what is known without measuring, its datasheet; `(D,)`, positive.
        vectors: Vectors of the known devices, `(q, D)`, positive; q may be 0.
        starts: What was known of them in the same way; `(q, D)`, positive.
        common: Standard deviation of a factor on all coordinates together, in log.
        own: Standard deviation of a coordinate by itself, in log.

    Raises:
        ModelError: The shapes differ, or a vector is not positive.

    Source:
        Shrinkage towards a structured target: Ledoit and Wolf, J. Multivariate Analysis 2004; with a fixed weight, as
        of a conjugate inverse-Wishart prior of `_DEFAULT_COUNT` degrees.
    """
    if vectors.shape != starts.shape or vectors.shape[1:] != start.shape:
        raise ModelError(
            f"vectors {vectors.shape}, their starts {starts.shape} and a new start {start.shape} do not match"
        )
    if not all((part > 0).all() for part in (start, starts, vectors)):
        raise ModelError("the prior of a device needs positive vectors; take them from a trained model")
    departure_qD = np.log(vectors / starts)
    total = len(departure_qD) + _DEFAULT_COUNT
    shift_D = departure_qD.sum(axis=0) / total
    common_1D = np.full((1, len(start)), _DEFAULT_COUNT**0.5 * common)
    covariance = Covariance.of(
        own=_DEFAULT_COUNT / total * (own**2 + shift_D**2),
        shared=np.concatenate([common_1D, departure_qD - shift_D]) / total**0.5,
    )
    return DeviceBelief(log_mean=np.log(start) + shift_D, covariance=covariance)


def posterior(prior: DeviceBelief, measured: Measurements, misfit: Misfit) -> DeviceBelief:
    """Condition a belief on measured launches.

    Solved in the k measurements: only a k × k matrix is factored, and its diagonal is at least the noise.

    Args:
        prior: What is believed before.
        measured: With no launch the belief stays as it is.
        misfit: What the model cannot express.

    Raises:
        ModelError: The launches do not fit the prior.
    """
    if len(measured.times) == 0:
        return prior
    noise_kk = noise_covariance(measured, misfit)
    log_mean_D = _posterior_mean(prior, measured, noise_kk)
    shares_kD, _ = shares(measured.programs, log_mean_D)
    factor_kk = np.linalg.cholesky(prior.covariance.among(shares_kD) + noise_kk)
    taken_kD = np.asarray(np.linalg.solve(factor_kk, prior.covariance.times(shares_kD)), dtype=np.float64)
    return DeviceBelief(log_mean=log_mean_D, covariance=prior.covariance.less(taken_kD))


def _posterior_mean(prior: DeviceBelief, measured: Measurements, noise_kk: NDArray[np.float64]) -> NDArray[np.float64]:
    """Most probable log a, `(D,)`."""
    log_times_k = np.log(measured.times)
    log_mean_D = prior.log_mean
    for _ in range(_MOST_STEPS):
        shares_kD, predicted_k = shares(measured.programs, log_mean_D)
        residual_k = log_times_k - predicted_k - shares_kD @ (prior.log_mean - log_mean_D)
        solved_k = np.linalg.solve(prior.covariance.among(shares_kD) + noise_kk, residual_k)
        step_D = prior.log_mean + prior.covariance.times(solved_k @ shares_kD) - log_mean_D
        longest = float(np.abs(step_D).max())
        log_mean_D = log_mean_D + step_D * min(1.0, _LONGEST_STEP / max(longest, _STILL))
        if longest < _STILL:
            break
    return log_mean_D


def noise_covariance(measured: Measurements, misfit: Misfit) -> NDArray[np.float64]:
    """Covariance of what times of launches depart by from their program vectors; `(k, k)`."""
    names, group_k = np.unique(np.asarray(measured.kernels, dtype=object).astype(str), return_inverse=True)
    same_kG = np.eye(len(names))[group_k]
    own_k = misfit.launch**2 + misfit.noise**2 + measured.deviation**2
    return misfit.kernel**2 * same_kG @ same_kG.T + np.diag(own_k)


def predictive(belief: DeviceBelief, programs: NDArray[np.float64], misfit: Misfit) -> Predictive:
    """Times of launches of new kernels on a device that is known as well as the belief says.

    Args:
        belief: The device.
        programs: Program vectors, `(n, D)`.
        misfit: What the model cannot express.

    Raises:
        ModelError: The programs do not fit the belief.
    """
    weights_D, total_n, shift = _weighed(programs, belief.log_mean)
    variance_n = belief.covariance.scaled(weights_D).variance(programs / total_n[:, None])
    return Predictive(
        log_time=np.log(total_n) + shift,
        deviation=np.sqrt(variance_n + misfit.variance),
        device_deviation=np.sqrt(variance_n),
    )


def device_variances(beliefs: Sequence[DeviceBelief], programs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squares of `Predictive.device_deviation` on several devices, `(beliefs, n)`.

    Args:
        beliefs: The devices; one or more.
        programs: Program vectors, `(n, D)`.

    Raises:
        ModelError: The programs do not fit the beliefs.
    """
    weighed = [_weighed(programs, belief.log_mean) for belief in beliefs]
    scaled = [belief.covariance.scaled(weights_D) for belief, (weights_D, _, _) in zip(beliefs, weighed, strict=True)]
    most_n = programs.max(axis=1)  # keeps squares in range
    return variances(scaled, programs / most_n[:, None]) / np.square([total_n / most_n for _, total_n, _ in weighed])


def log_evidence(prior: DeviceBelief, measured: Measurements, misfit: Misfit) -> float:
    """Logarithm of the probability density of the log times under prior and misfit, linear at the posterior's mean.

    Raises:
        ModelError: The launches do not fit the prior.

    Source:
        Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, equation 2.30.
    """
    noise_kk = noise_covariance(measured, misfit)
    log_mean_D = _posterior_mean(prior, measured, noise_kk)
    shares_kD, predicted_k = shares(measured.programs, log_mean_D)
    residual_k = np.log(measured.times) - predicted_k - shares_kD @ (prior.log_mean - log_mean_D)
    factor_kk = np.linalg.cholesky(prior.covariance.among(shares_kD) + noise_kk)
    white_k = np.linalg.solve(factor_kk, residual_k)
    return float(-0.5 * white_k @ white_k - np.log(np.diag(factor_kk)).sum() - 0.5 * len(white_k) * np.log(2 * np.pi))


# ---- the same kernel elsewhere ----------------------------------------------------------------------------------


def corrected_program(
    program: NDArray[np.float64],
    log_vectors: NDArray[np.float64],
    times: NDArray[np.float64],
    deviation: NDArray[np.float64],
    *,
    common: float,
    own: float,
) -> NDArray[np.float64]:
    """A program vector that agrees with times of the same launch on other devices.

    The mirror image of `posterior`: the coordinates of log p depart by N(0, common² 1 1' + own² I), and each time is a
    measurement with the shares that its device gives.

    Args:
        program: `(D,)`, 0 or more; a coordinate of 0 stays 0.
        log_vectors: Logarithms of the vectors of the k devices, `(k, D)`.
        times: Seconds, `(k,)`, positive.
        deviation: Standard deviation of the logarithm of each time, and of what is not known of its device; `(k,)`,
            above 0.
        common: Standard deviation of a factor on the whole vector, in log.
        own: Standard deviation of a coordinate by itself, in log.

    Raises:
        ModelError: The shapes differ, a time is not positive, or a deviation is not above 0.
    """
    if not len(log_vectors) == len(times) == len(deviation) or log_vectors.shape[1:] != program.shape:
        raise ModelError(f"{len(times)} times, vectors {log_vectors.shape} and a program {program.shape} do not match")
    if len(times) and not ((times > 0).all() and np.isfinite(times).all() and (deviation > 0).all()):
        raise ModelError("times and their deviations must be positive and finite to correct a program vector")
    if len(times) == 0:
        return program
    used = np.flatnonzero(program > 0)
    if len(used) == 0:
        raise ModelError("a program vector that is all 0 cannot be corrected; encode the launch again")
    log_program_U = np.log(program[used])
    prior = DeviceBelief(
        log_mean=log_program_U,
        covariance=Covariance.of(np.full(len(used), own**2), np.full((1, len(used)), common)),
    )
    # p · a is symmetric in p and a: the devices are what is measured with.
    shift_k = log_vectors.max(axis=1)
    measured = Measurements(
        programs=np.exp(log_vectors[:, used] - shift_k[:, None]),
        times=times * np.exp(-shift_k),
        deviation=deviation,
        kernels=tuple(map(str, range(len(times)))),
    )
    belief = posterior(prior, measured, Misfit(launch=0.0, kernel=0.0, noise=1e-9))
    corrected = program.copy()
    corrected[used] = belief.vector
    return corrected
