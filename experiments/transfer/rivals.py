"""What the dot product is compared with, on tables of log times (launches by devices)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def row_column(known_NM: Floats, rows: NDArray[np.int64], log_times: Floats) -> Floats:
    """Mean of each launch over the other devices, and the new device's mean offset; `(N,)`."""
    mean = known_NM.mean(axis=1)
    return mean + (np.mean(log_times - mean[rows]) if len(rows) else 0.0)


def gaussian_process(
    known_NM: Floats, rows: NDArray[np.int64], log_times: Floats, settings: tuple[float, float]
) -> Floats:
    """A Gaussian process on log times with the other devices' mean and covariance.

    `settings` are how much of the diagonal is added, and the noise (`choose_settings`).
    """
    shrink, noise = settings
    covariance = np.cov(known_NM)
    covariance = covariance + shrink * np.diag(np.diag(covariance))
    mean = known_NM.mean(axis=1)
    if len(rows) == 0:
        return mean
    gram = covariance[np.ix_(rows, rows)] + noise**2 * np.eye(len(rows))
    return mean + covariance[:, rows] @ np.linalg.solve(gram, log_times - mean[rows])


def choose_settings(known_NM: Floats) -> tuple[float, float]:
    """Added diagonal and noise under which the known devices, each left out in turn, are most probable."""
    scores: dict[tuple[float, float], float] = {}
    some = np.random.default_rng(0).permutation(len(known_NM))[:200]
    table = known_NM[some]
    for shrink in (0.02, 0.05, 0.1, 0.2, 0.5):
        for noise in (0.05, 0.1, 0.2):
            total = 0.0
            for device in range(table.shape[1]):
                others = np.delete(table, device, axis=1)
                covariance = np.cov(others)
                gram = covariance + shrink * np.diag(np.diag(covariance)) + noise**2 * np.eye(len(table))
                off = table[:, device] - others.mean(axis=1)
                log_determinant = np.linalg.slogdet(gram)[1]
                total -= off @ np.linalg.solve(gram, off) + log_determinant
            scores[shrink, noise] = total
    return max(scores, key=lambda key: scores[key])


def forest(inputs: Floats, log_times: Floats, asked: Floats, *, seed: int) -> Floats:
    """A random forest from features to log time."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(n_estimators=100, max_features=0.5, random_state=seed, n_jobs=1)
    return model.fit(inputs, log_times).predict(asked)
