"""Predictors that the model has to beat, behind one interface. The datasheet roofline is on the architecture side.

Legend: N launch, M device, K counted resource, A aggregate feature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from perfvec.errors import ModelError
from perfvec.model.launch_input import NUM_TIMED_PROFILE, LaunchInput, launch_profile
from perfvec.resources import NUM_COUNTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineInput:
    """What a baseline may look at.

    Attributes:
        features: Aggregate features of each launch, such as `aggregate_features`; `(N, A)`, finite.
        resources: Counted resources; `(N, K)`, 0 or more.
        kernels: Kernel of each launch; length N.
    """

    features: NDArray[np.float64]
    resources: NDArray[np.float64]
    kernels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.features) == len(self.resources) == len(self.kernels) or not self.kernels:
            raise ModelError(
                f"{len(self.features)} rows of features, {len(self.resources)} of resources and {len(self.kernels)} "
                "kernels do not belong together, or there are none"
            )


class AbstractBaseline(ABC):
    """Fitted to times on M devices, it predicts times on the same M devices."""

    @abstractmethod
    def fit(self, launches: BaselineInput, times_NM: NDArray[np.float64]) -> None:
        """Learn from measured seconds; NaN where there is none.

        Raises:
            ModelError: The times do not fit the launches, or a device has none.
        """

    @abstractmethod
    def predict(self, launches: BaselineInput) -> NDArray[np.float64]:
        """Seconds, `(N, M)`, positive."""


@final
class ConstantBaseline(AbstractBaseline):
    """One time a device, whatever the launch."""

    def __init__(self, kind: Literal["geometric", "median"] = "geometric") -> None:
        self.kind = kind
        self._log_M = np.zeros(0)

    def fit(self, launches: BaselineInput, times_NM: NDArray[np.float64]) -> None:
        """See `AbstractBaseline.fit`."""
        log_NM = _log_times(launches, times_NM)
        self._log_M = (np.nanmean if self.kind == "geometric" else np.nanmedian)(log_NM, axis=0)

    def predict(self, launches: BaselineInput) -> NDArray[np.float64]:
        """See `AbstractBaseline.predict`."""
        return np.tile(np.exp(self._log_M), (len(launches.kernels), 1))


@final
class RowColumnBaseline(AbstractBaseline):
    """log time = effect of the kernel + effect of the device; a kernel that was not seen has the mean effect, 0."""

    _SWEEPS = 50  # each halves the error even where few times are measured

    def __init__(self) -> None:
        self._device_M = np.zeros(0)
        self._kernel: dict[str, float] = {}

    def fit(self, launches: BaselineInput, times_NM: NDArray[np.float64]) -> None:
        """See `AbstractBaseline.fit`."""
        log_NM = _log_times(launches, times_NM)
        names, row_of = np.unique(np.asarray(launches.kernels), return_inverse=True)
        measured_NM = ~np.isnan(log_NM)
        filled_NM = np.where(measured_NM, log_NM, 0.0)
        per_kernel = np.bincount(row_of, weights=measured_NM.sum(axis=1), minlength=len(names))
        effect = np.zeros(len(names))
        device_M = np.zeros(log_NM.shape[1])
        for _ in range(self._SWEEPS):
            device_M = ((filled_NM - effect[row_of, None]) * measured_NM).sum(axis=0) / measured_NM.sum(axis=0)
            left_N = ((filled_NM - device_M) * measured_NM).sum(axis=1)
            effect = np.bincount(row_of, weights=left_N, minlength=len(names)) / np.maximum(per_kernel, 1)
            effect -= np.average(effect, weights=per_kernel)
        self._device_M = device_M
        self._kernel = dict(zip(names.tolist(), effect.tolist(), strict=True))

    def predict(self, launches: BaselineInput) -> NDArray[np.float64]:
        """See `AbstractBaseline.predict`."""
        effect_N = np.array([self._kernel.get(kernel, 0.0) for kernel in launches.kernels])
        return np.exp(effect_N[:, None] + self._device_M)


@final
class CountedBaseline(AbstractBaseline):
    """time = counted resources · seconds per unit, fitted 0 or more to the least squares of relative errors."""

    def __init__(self) -> None:
        self._seconds_MK = np.zeros((0, 0))

    def fit(self, launches: BaselineInput, times_NM: NDArray[np.float64]) -> None:
        """See `AbstractBaseline.fit`."""
        from scipy.optimize import nnls

        _log_times(launches, times_NM)
        scale_K = np.maximum(launches.resources.max(axis=0), 1.0)
        seconds: list[NDArray[np.float64]] = []
        for times_N in times_NM.T:
            rows = ~np.isnan(times_N)
            relative_NK = launches.resources[rows] / scale_K / times_N[rows, None]
            # Columns of like length, without which the solver's tolerance drops the small ones.
            length_K = np.maximum(np.linalg.norm(relative_NK, axis=0), np.finfo(np.float64).tiny)
            solution, _ = nnls(relative_NK / length_K, np.ones(int(rows.sum())), maxiter=100 * len(scale_K))
            seconds.append(solution / length_K / scale_K)
        self._seconds_MK = np.stack(seconds)

    def predict(self, launches: BaselineInput) -> NDArray[np.float64]:
        """See `AbstractBaseline.predict`."""
        times_NM = launches.resources @ self._seconds_MK.T
        return np.maximum(times_NM, np.finfo(np.float64).tiny)


@final
class TreeBaseline(AbstractBaseline):
    """A random forest or gradient-boosted trees a device, from aggregate features to log time."""

    def __init__(self, kind: Literal["forest", "boosting"] = "forest", *, seed: int = 0) -> None:
        self.kind = kind
        self.seed = seed
        self._trees: list[RandomForestRegressor | HistGradientBoostingRegressor] = []

    def fit(self, launches: BaselineInput, times_NM: NDArray[np.float64]) -> None:
        """See `AbstractBaseline.fit`."""
        log_NM = _log_times(launches, times_NM)
        self._trees = []
        for log_N in log_NM.T:
            rows = ~np.isnan(log_N)
            tree = self._make()
            tree.fit(launches.features[rows], log_N[rows])
            if self.kind == "forest":
                tree.set_params(n_jobs=None)  # several threads would add predictions up in any order
            self._trees.append(tree)

    def predict(self, launches: BaselineInput) -> NDArray[np.float64]:
        """See `AbstractBaseline.predict`."""
        return np.exp(np.stack([tree.predict(launches.features) for tree in self._trees], axis=1))

    def _make(self) -> RandomForestRegressor | HistGradientBoostingRegressor:
        from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

        if self.kind == "forest":
            return RandomForestRegressor(n_estimators=200, max_features=0.5, random_state=self.seed, n_jobs=-1)
        return HistGradientBoostingRegressor(max_iter=200, learning_rate=0.08, random_state=self.seed)


def baseline_input(launches: Sequence[LaunchInput], kernels: Sequence[str]) -> BaselineInput:
    """What baselines may look at, from launches as the model sees them."""
    return BaselineInput(
        features=aggregate_features(launches),
        resources=np.stack([launch.resources for launch in launches]),
        kernels=tuple(kernels),
    )


def aggregate_features(launches: Sequence[LaunchInput], *, with_times: bool = True) -> NDArray[np.float64]:
    """Features of whole launches for predictors that see no sequence.

    Args:
        launches: The launches.
        with_times: Whether what follows from the timed resources is among them: hundreds of views of few things, beside
            which nothing else counts where distances are taken.

    Returns:
        Launch profile, log resources, and the token features' weighted means; float64 `(N, A)`.
    """
    rows: list[NDArray[np.float64]] = []
    for launch in launches:
        weight = launch.row_weight
        mean = weight @ launch.row_features.astype(np.float64) / max(float(weight.sum()), 1e-300)
        profile, resources = launch_profile(launch), launch.resources
        if not with_times:
            profile, resources = profile[:-NUM_TIMED_PROFILE], resources[:NUM_COUNTED]
        rows.append(np.concatenate([profile, np.log1p(resources), mean], dtype=np.float64))
    return np.stack(rows)


def _log_times(launches: BaselineInput, times_NM: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of the times, after a check."""
    if times_NM.ndim != 2 or len(times_NM) != len(launches.kernels):
        raise ModelError(f"times have shape {times_NM.shape} for {len(launches.kernels)} launches; give a row each")
    if np.isnan(times_NM).all(axis=0).any():
        raise ModelError("a device has no measured time to fit a baseline to; leave it out")
    if (times_NM <= 0).any():
        raise ModelError("a measured time is not positive; leave a launch that failed as NaN")
    return np.log(times_NM)
