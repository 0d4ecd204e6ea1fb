"""`python -m experiments.transfer.opendwarfs`: OpenDwarfs on 12 devices, with architecture-independent features.

Splits: a device held out and told by k launches; a kernel left out; an application left out; single cells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.transfer import bilinear, rivals
from experiments.transfer.harness import SEEDS, arguments, by_groups, device_facts, figures, new_device, write

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Fixed before the first result of these splits.
RANK, ENCODER_RANK = 8, 4
_KEY = ["application", "kernel", "size"]
# Where the invocations of a launch differ, the mean work belongs to the time, not that of the first.
_MEANS = ("total_instruction_count", "workitems", "operand_sum", "total_barriers_hit", "total_memory_footprint")
_HIDDEN = 0.3


def load(data: Path) -> tuple[Floats, Floats, list[str], NDArray[np.str_], NDArray[np.str_]]:
    """Log times `(N, M)`, features `(N, A)`, devices, kernels and applications."""
    import pandas as pd

    folder = data / "aiwc_opendwarfs"
    times = pd.read_csv(folder / "runtimes.csv.gz").pivot_table(index=_KEY, columns="device", values="runtime_s")
    table = pd.read_csv(folder / "features.csv.gz").set_index(_KEY).loc[times.index].astype(float)
    for name in _MEANS:
        table[name] = np.where(table["first_invocation_representative"] == 0, table[f"mean_{name}"], table[name])
    kept = [
        name
        for name in table.columns
        if not name.startswith("mean_") and name not in ("n_invocations_profiled", "first_invocation_representative")
    ]
    columns = [np.nan_to_num(np.asarray(table[name], dtype=np.float64)) for name in kept]
    columns = [np.log1p(np.maximum(column, 0)) if column.max() > 50 else column for column in columns]
    work, items, footprint = (np.log1p(np.asarray(table[_MEANS[at]], dtype=np.float64)) for at in (0, 1, 4))
    features = np.stack([*columns, work - items, footprint - work], axis=1)
    deviation = features.std(axis=0)
    features = (features - features.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1.0)
    kernels = np.array([f"{row[0]}/{row[1]}" for row in times.index])
    return np.log(times.to_numpy()), features, list(times.columns), kernels, np.array([row[0] for row in times.index])


def pooled_forest(
    features_NA: Floats, log_times_NM: Floats, asked_NA: Floats, facts_MA: Floats, *, seed: int
) -> Floats:
    """One forest for all devices, from features and the devices' facts; NaN times are left out."""
    rows = [
        np.column_stack([features_NA, np.tile(np.append(facts, at), (len(features_NA), 1))])
        for at, facts in enumerate(facts_MA)
    ]
    inputs, times = np.concatenate(rows), log_times_NM.T.ravel()
    known = ~np.isnan(times)
    asked = np.concatenate(
        [np.column_stack([asked_NA, np.tile(np.append(f, at), (len(asked_NA), 1))]) for at, f in enumerate(facts_MA)]
    )
    return rivals.forest(inputs[known], times[known], asked, seed=seed).reshape(len(facts_MA), -1).T


def unseen(
    left_out: NDArray[np.bool_], features: Floats, log_times: Floats, facts: Floats, seed: int
) -> dict[str, Floats]:
    """Times of launches that nobody measured, by method."""
    known = ~left_out
    kernel, scale = bilinear.choose_kernel(features[known], log_times[known])
    prior = kernel.between(features[known], features[known]) + kernel.own * np.eye(int(known.sum()))
    factors = bilinear.factorise(log_times[known], rank=ENCODER_RANK, spread=scale, seed=seed, prior_NN=prior)
    programs = bilinear.encode(factors, kernel, features[known], features[left_out])
    return {
        "dot product": np.logaddexp.reduce(programs[:, None] + factors.log_devices[None], axis=-1),
        "random forest": pooled_forest(features[known], log_times[known], features[left_out], facts, seed=seed),
        "row + column": np.tile(log_times[known].mean(axis=0), (int(left_out.sum()), 1)),
    }


def fill_cells(features: Floats, seen: Floats, seed: int) -> bilinear.Factors:
    """Programs and devices from some cells; rank, and whether features say anything, by a share of these left out."""
    kernel, scale = bilinear.choose_kernel(features, seen)
    gram = kernel.between(features, features) + kernel.own * np.eye(len(features))
    inner = np.random.default_rng(seed + 100).random(seen.shape) < _HIDDEN / 2
    left = np.where(inner, np.nan, seen)
    judged = inner & ~np.isnan(seen)
    best: tuple[float, int, bool] | None = None
    for rank in (ENCODER_RANK, RANK):
        for has_features in (False, True):
            factors = _fit_cells(left, rank, seed, scale, gram if has_features else None)
            told = np.logaddexp.reduce(factors.log_programs[:, None] + factors.log_devices[None], axis=-1)
            error = float(np.median(np.abs(told - seen)[judged]))
            if best is None or error < best[0]:
                best = (error, rank, has_features)
    assert best is not None
    return _fit_cells(seen, best[1], seed, scale, gram if best[2] else None)


def _fit_cells(seen: Floats, rank: int, seed: int, scale: float, gram: Floats | None) -> bilinear.Factors:
    return bilinear.factorise(seen, rank=rank, spread=1.0 if gram is None else scale, seed=seed, prior_NN=gram)


def random_cells(features: Floats, log_times: Floats, facts: Floats) -> dict[str, dict[str, float]]:
    """A share of all cells hidden."""
    told: dict[str, list[tuple[Floats, Floats]]] = {}
    for seed in SEEDS:
        hidden = np.random.default_rng(seed).random(log_times.shape) < _HIDDEN
        seen = np.where(hidden, np.nan, log_times)
        factors = fill_cells(features, seen, seed)
        launch = np.nanmean(seen - np.nanmean(seen, axis=0), axis=1)
        methods = {
            "dot product": np.logaddexp.reduce(factors.log_programs[:, None] + factors.log_devices[None], axis=-1),
            "random forest": pooled_forest(features, seen, features, facts, seed=seed),
            "row + column": launch[:, None] + np.nanmean(seen - launch[:, None], axis=0),
        }
        for method, predicted in methods.items():
            told.setdefault(method, []).append((predicted[hidden], log_times[hidden]))
    return {
        method: figures(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        for method, parts in told.items()
    }


def main() -> None:
    """Run all splits."""
    options = arguments(__doc__, "opendwarfs")
    log_times, features, devices, kernels, applications = load(options.data)
    facts = device_facts(options.data, devices)
    told = new_device(log_times, facts, rank=RANK, features=features)
    record: dict[str, object] = {"launches": len(log_times), "devices": devices, "new device": told}
    record["random cells"] = random_cells(features, log_times, facts)
    for split, groups in (("unseen kernel", kernels), ("unseen application", applications)):
        record[split] = [
            by_groups(groups, lambda left_out, seed=seed: unseen(left_out, features, log_times, facts, seed), log_times)
            for seed in SEEDS
        ]
        sys.stdout.write(f"{split}: {record[split]}\n")
    sys.stdout.write(f"random cells: {record['random cells']}\n")
    write(options.output, record, plot=told, title="OpenDwarfs, a new device")


if __name__ == "__main__":
    main()
