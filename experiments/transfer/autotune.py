"""`python -m experiments.transfer.autotune`: tuning spaces on NVIDIA and AMD GPUs; a new GPU by k configurations.

A configuration's program vector is its times on the other GPUs, so the new GPU is a mixture of them; what the mixture
leaves is a Gaussian process over the tuning parameters. Figures: MAPE over the space, rank correlation, and what share
of the optimum the configuration that is predicted to be best reaches.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.transfer import rivals
from experiments.transfer.harness import COUNTS, SEEDS, arguments, write
from perfvec.model.covariance import Covariance
from perfvec.model.posterior import DeviceBelief, Measurements, Misfit, log_evidence, posterior, shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# File, and devices whose times mean the same (README of the data: the other two of pnpoly were timed on the host).
SPACES: dict[str, tuple[str, ...]] = {
    "convolution_milo": (),
    "convolution_kt": (),
    "gemm_kt": (),
    "pnpoly_kt": ("nvidia-rtx-3060-laptop", "nvidia-rtx-3090"),
}
_NOT_PARAMETERS = (
    "kernel", "device", "api", "problem_size", "status", "compile_time_s", "num_regs", "source", "timing", "n_reps",
)  # fmt: skip
_MOST = 3000
_NOISES, _LENGTHS = (0.02, 0.05, 0.15, 0.4), (0.5, 1.0, 2.0)
_MIXTURES = (0.3, 1.0, 3.0)
_SCALES = (0.1, 0.3, 0.8)


def load(data: Path, name: str, devices: tuple[str, ...]) -> tuple[Floats, Floats, list[str]]:
    """Log times `(N, M)`, tuning parameters `(N, A)` and GPUs: configurations that run on all of them."""
    import pandas as pd

    table = pd.read_csv(data / "autotune_hub" / f"{name}.csv.gz", low_memory=False)
    table = table[table["status"] == "ok"]
    if devices:
        table = table[table["device"].isin(devices)]
    parameters = [
        column
        for column in table.columns
        if column not in _NOT_PARAMETERS and not column.startswith("runtime") and table[column].nunique() > 1
    ]
    times = table.pivot_table(index=parameters, columns="device", values="runtime_s", aggfunc="median").dropna()
    if len(times) > _MOST:
        times = times.iloc[np.sort(np.random.default_rng(0).permutation(len(times))[:_MOST])]
    values = np.stack([times.index.get_level_values(column).to_numpy(float) for column in parameters], axis=1)
    values = np.log2(1 + values)
    values = values[:, np.ptp(values, axis=0) > 0]
    return np.log(times.to_numpy()), (values - values.mean(axis=0)) / values.std(axis=0), list(times.columns)


def dot_product(known_NM: Floats, settings: Floats, rows: NDArray[np.int64], log_times: Floats) -> Floats:
    """Log times of all configurations on the new GPU."""
    programs = np.exp(known_NM - known_NM.mean())
    dim, count = programs.shape[1], len(rows)
    measured = Measurements(
        programs=programs[rows],
        times=np.exp(log_times),
        deviation=np.zeros(count),
        kernels=tuple(map(str, range(count))),
    )
    # Before it is measured: as fast as the others on average, and any mixture of them. How far from that, and how well
    # a mixture fits, is what makes the k times most probable.
    found: list[tuple[float, Floats]] = []
    for own in _MIXTURES:
        prior = DeviceBelief(
            log_mean=np.full(dim, known_NM.mean() - np.log(dim)),
            covariance=Covariance.of(np.full(dim, own**2), np.ones((1, dim))),
        )
        for noise in _NOISES:
            misfit = Misfit(launch=noise, kernel=0.0, noise=0.02)
            evidence = log_evidence(prior, measured, misfit) if count else 0.0
            found.append((evidence, posterior(prior, measured, misfit).log_mean))
    mixture = shares(programs, max(found, key=lambda item: item[0])[1])[1]
    return mixture if count == 0 else mixture + _left_over(settings, rows, log_times - mixture[rows])


def _left_over(settings: Floats, rows: NDArray[np.int64], left: Floats) -> Floats:
    """Gaussian process of residuals over the tuning parameters; its settings by evidence on the k configurations."""
    square = ((settings[:, None] - settings[rows][None]) ** 2).sum(axis=-1) / settings.shape[1]
    best: tuple[float, Floats] | None = None
    for noise in _NOISES:
        for length in _LENGTHS:
            for scale in _SCALES:
                smooth = scale**2 * np.exp(-0.5 * square / length**2)
                factor = np.linalg.cholesky(smooth[rows] + noise**2 * np.eye(len(rows)))
                white = np.linalg.solve(factor, left)
                # A weak pull towards nothing left over, for few configurations say little of three numbers.
                evidence = -0.5 * white @ white - np.log(np.diag(factor)).sum() - np.log(scale / 0.1) ** 2 / 2
                if best is None or evidence > best[0]:
                    best = (float(evidence), smooth @ np.linalg.solve(factor.T, white))
    assert best is not None
    return best[1]


def one_factor(known_NM: Floats, rows: NDArray[np.int64], log_times: Floats) -> Floats:
    """The times of the one GPU whose times are nearest up to a factor, by the k configurations."""
    if len(rows) == 0:
        return known_NM[:, 0]
    off = log_times[:, None] - known_NM[rows]
    nearest = int(np.argmin(off.std(axis=0)))
    return known_NM[:, nearest] + off[:, nearest].mean()


def figures(predicted: Floats, truth: Floats) -> tuple[float, float, float, float]:
    """MAPE, median error, rank correlation, and the share of the optimum that the choice reaches."""
    from scipy.stats import spearmanr

    errors = np.abs(np.expm1(predicted - truth))
    share = np.exp(truth.min() - truth[np.argmin(predicted)])
    correlation = float(spearmanr(predicted, truth).statistic) if np.ptp(predicted) > 0 else 0.0
    return float(errors.mean()), float(np.median(errors)), correlation, float(share)


def main() -> None:
    """Run all spaces."""
    options = arguments(__doc__, "autotune")
    record: dict[str, object] = {}
    plot: dict[str, dict[str, dict[str, float]]] = {}
    for name, devices in SPACES.items():
        log_times, settings, gpus = load(options.data, name, devices)
        found: dict[tuple[str, int], list[tuple[float, float, float, float]]] = defaultdict(list)
        for device in range(len(gpus)):
            known, truth = np.delete(log_times, device, axis=1), log_times[:, device]
            for seed in SEEDS:
                order = np.random.default_rng(1000 * seed + device).permutation(len(truth))
                for count in COUNTS:
                    rows = order[:count]
                    times = truth[rows]
                    methods = {
                        "dot product": dot_product(known, settings, rows, times),
                        "one factor": one_factor(known, rows, times),
                        "row + column": rivals.row_column(known, rows, times),
                    }
                    if count >= 5:
                        methods["random forest"] = rivals.forest(settings[rows], times, settings, seed=seed)
                    for method, predicted in methods.items():
                        found[method, count].append(figures(predicted, truth))
        told: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
        for (method, count), rows_found in found.items():
            mean = np.mean(rows_found, axis=0)
            told[method][str(count)] = dict(
                zip(("mape", "median", "rank_correlation", "share_of_optimum"), map(float, mean), strict=True)
            )
        record[name] = {"configurations": len(log_times), "devices": gpus, "new device": told}
        for method, by_count in told.items():
            row = "  ".join(
                f"{count}: {100 * item['mape']:.0f}/{item['rank_correlation']:.2f}/{100 * item['share_of_optimum']:.0f}"
                for count, item in by_count.items()
            )
            sys.stdout.write(f"{name}, {method}: MAPE %/rank/best %  {row}\n")
        plot |= {f"{name}, {method}": dict(told[method]) for method in ("dot product", "one factor")}
    write(options.output, record, plot=plot, title="Tuning spaces, a new GPU")


if __name__ == "__main__":
    main()
