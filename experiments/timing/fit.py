"""Free parameters of the timing model, fitted to measured times of some launches.

    minimise over x:  sum over launches of soft_l1(log(simulated / measured) / scale) + prior((x - x0) / spread)

`x` are logarithms of the parameters (all positive). By the prior, a parameter that few launches hang on stays near
`x0`, where it began: a factor of two counts as much as an error of `scale` in ten launches. The derivatives are
differences of one pass: the timing model takes the fitted point and a step in each parameter as so many devices.

Source: `scipy.optimize.least_squares`, trust region reflective, loss soft_l1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.optimize import least_squares

from perfvec.arch.timing import TimingConfig, Workload, simulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEP = 0.05  # of a logarithm
MOST_PASSES = 6
SCALE = 0.3  # errors beyond this share count less than their square
PRIOR_LAUNCHES = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """A free parameter.

    Attributes:
        field: Of `TimingConfig`.
        low: Least value.
        high: Largest value.
        why: Why facts and published figures do not settle it.
    """

    field: str
    low: float
    high: float
    why: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a fit came to.

    Attributes:
        config: The fitted configuration.
        loss_before: Mean |log(simulated / measured)| with the configuration that was begun with.
        loss_after: The same with the fitted one.
        num_passes: Passes over the launches.
    """

    config: TimingConfig
    loss_before: float
    loss_after: float
    num_passes: int


def fit(
    workloads: Sequence[Workload], measured_s: NDArray[np.float64], start: TimingConfig, free: Sequence[Free]
) -> Fit:
    """Fit free parameters.

    Args:
        workloads: Launches to learn from.
        measured_s: Their times, `(N,)`.
        start: Where to begin; what is not free stays.
        free: The free parameters.
    """
    low, high = (np.log([getattr(item, side) for item in free]) for side in ("low", "high"))
    first = np.clip(np.log([max(getattr(start, item.field), item.low) for item in free]), low + 1e-6, high - 1e-6)
    passes: dict[bytes, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def at(logarithms: NDArray[np.float64]) -> TimingConfig:
        return replace(start, **{item.field: float(np.exp(x)) for item, x in zip(free, logarithms, strict=True)})

    def look(point: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        key = point.tobytes()
        if key not in passes:
            # Steps go inwards, so that no configuration leaves its range.
            steps = np.where(point + STEP > high, -STEP, STEP)
            configs = [at(point), *(at(point + step) for step in np.diag(steps))]
            times = np.array([simulate(workload, configs).kernel_time_s for workload in workloads])
            logs = np.log(times / measured_s[:, None])
            passes[key] = logs[:, 0], (logs[:, 1:] - logs[:, :1]) / steps
        return passes[key]

    weight = SCALE * np.sqrt(PRIOR_LAUNCHES) / np.log(2) * np.eye(len(free))
    solved = least_squares(
        lambda point: np.concatenate([look(point)[0], weight @ (point - first)]),
        first,
        jac=lambda point: np.vstack([look(point)[1], weight]),  # pyright: ignore[reportArgumentType]
        bounds=(low, high),
        loss="soft_l1",
        f_scale=SCALE,
        max_nfev=MOST_PASSES,
        x_scale="jac",
    )
    return Fit(
        config=at(solved.x),
        loss_before=float(np.abs(look(first)[0]).mean()),
        loss_after=float(np.abs(look(solved.x)[0]).mean()),
        num_passes=len(passes),
    )
