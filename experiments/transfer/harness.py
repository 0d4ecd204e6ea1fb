"""What the experiments share: the data folder, a new device by a few launches, figures, files."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.transfer import bilinear, rivals
from perfvec.files import whole_file
from perfvec.model.design import Design, random_pool
from perfvec.model.posterior import DeviceBelief

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COUNTS = (0, 1, 2, 5, 10, 20, 50)
SEEDS = (0, 1, 2)
_PLACE = Path(__file__).resolve().parent
_SHARED = _PLACE.parents[2] / "shared" / "data"


def arguments(description: str | None, name: str) -> argparse.Namespace:
    """The command line of an experiment: where the data are, where the results go."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=_SHARED, help="folder of measured data of others")
    parser.add_argument("-o", "--output", type=Path, default=_PLACE / "results" / name, help="folder of the results")
    found = parser.parse_args()
    if not found.data.is_dir():
        parser.error(f"the folder of measured data {found.data} does not exist; give it with --data")
    found.output.mkdir(parents=True, exist_ok=True)
    return found


def device_facts(data: Path, names: list[str]) -> Floats:
    """Facts of devices from the table of specifications: logarithms of rates and sizes, type and vendor."""
    import pandas as pd

    table: pd.DataFrame = pd.read_csv(data / "devices.csv").set_index("device").loc[names]
    clock = table["boost_mhz"].fillna(table["base_mhz"])
    rates = [
        np.log(column.astype(float)) for column in (table.fp32_gflops, table.dram_gb_s, clock, table.compute_units)
    ]
    flags = [(table.type == "gpu").astype(float), (table.vendor == "nvidia").astype(float)]
    return np.stack([np.asarray(column, dtype=np.float64) for column in (*rates, *flags)], axis=1)


def figures(predicted: Floats, measured: Floats) -> dict[str, float]:
    """Figures of errors from log times: fractions."""
    errors = np.abs(np.expm1(predicted - measured))
    return {
        "median": float(np.median(errors)),
        "mape": float(errors.mean()),
        "p90": float(np.quantile(errors, 0.9)),
        "count": len(errors),
    }


def new_device(
    log_times_NM: Floats,
    facts_MA: Floats,
    *,
    rank: int,
    features: Floats | None = None,
    counts: tuple[int, ...] = COUNTS,
    seeds: tuple[int, ...] = SEEDS,
) -> dict[str, dict[str, dict[str, float]]]:
    """Each device held out in turn, and told by k launches; figures of all other launches, by method and k.

    Args:
        log_times_NM: Log seconds; no NaN.
        facts_MA: Facts of the devices.
        rank: Coordinates of the dot product.
        features: Of the launches, for the random forest; `(N, A)`.
        counts: How many launches of the new device are measured.
        seeds: Which; and the start of the factorisation.
    """
    found: dict[tuple[str, int], list[tuple[Floats, Floats]]] = defaultdict(list)
    num_launches, num_devices = log_times_NM.shape
    for device in range(num_devices):
        others = np.delete(np.arange(num_devices), device)
        known, truth = log_times_NM[:, others], log_times_NM[:, device]
        settings = rivals.choose_settings(known)
        for seed in seeds:
            factors = bilinear.factorise(known, rank=rank, spread=1.0, seed=seed)
            prior = bilinear.device_prior(factors, facts_MA[others], facts_MA[device])
            order = np.random.default_rng(1000 * seed + device).permutation(num_launches)
            for count in counts:
                chance, chosen = order[:count], chosen_rows(factors, prior, count, seed)
                by_chance = bilinear.calibrated(factors, prior, chance, truth[chance])
                methods: dict[str, tuple[NDArray[np.int64], Floats]] = {
                    "dot product": (chance, bilinear.log_times_of(factors, by_chance)),
                    "dot product, launches chosen": (
                        chosen,
                        bilinear.log_times_of(factors, bilinear.calibrated(factors, prior, chosen, truth[chosen])),
                    ),
                    "row + column": (chance, rivals.row_column(known, chance, truth[chance])),
                    "Gaussian process": (chance, rivals.gaussian_process(known, chance, truth[chance], settings)),
                }
                if features is not None and count >= 5:
                    told = rivals.forest(features[chance], truth[chance], features, seed=seed)
                    methods["random forest"] = (chance, told)
                for method, (used, predicted) in methods.items():
                    left = np.setdiff1d(np.arange(num_launches), used)
                    found[method, count].append((predicted[left], truth[left]))
    return gathered(found)


def chosen_rows(factors: bilinear.Factors, prior: DeviceBelief, count: int, seed: int) -> NDArray[np.int64]:
    """Launches that the design chooses from a random pool, for what they say of all launches."""
    programs = np.exp(factors.log_programs)
    pool = random_pool(len(programs), count, seed=seed)
    if count == 0:
        return pool
    design = Design(prior, programs[pool], programs, bilinear.MISFIT, kernels=list(map(str, pool)))
    return pool[[design.choose() for _ in range(min(count, len(pool) - 1))]]


def gathered(
    found: dict[tuple[str, int], list[tuple[Floats, Floats]]],
) -> dict[str, dict[str, dict[str, float]]]:
    """Figures over all devices and seeds together, by method and count."""
    result: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for (method, count), parts in found.items():
        predicted, measured = (np.concatenate(column) for column in zip(*parts, strict=True))
        result[method][str(count)] = figures(predicted, measured)
    return dict(result)


def write(output: Path, record: dict[str, Any], *, plot: dict[str, dict[str, dict[str, float]]], title: str) -> None:
    """Write `results.json` and a plot of median errors by the number of launches; say the figures."""
    with whole_file(output / "results.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for method, by_count in plot.items():
        counts = [int(count) for count in by_count]
        axes.plot(counts, [100 * row["median"] for row in by_count.values()], marker="o", label=method)
    axes.set(xscale="symlog", yscale="log", xlabel="launches measured on the new device", ylabel="median error in %")
    axes.set_title(title)
    axes.legend(fontsize=8)
    figure.tight_layout()
    with whole_file(output / "errors.png") as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    pyplot.close(figure)
    for method, by_count in plot.items():
        row = "  ".join(f"{count}: {100 * item['median']:.1f}" for count, item in by_count.items())
        sys.stdout.write(f"{title}, {method}: median error in % by launches  {row}\n")


def by_groups(
    groups: NDArray[Any], predict: Callable[[NDArray[np.bool_]], dict[str, Floats]], log_times_NM: Floats
) -> dict[str, dict[str, float]]:
    """Each group left out in turn; figures of all launches together, by method."""
    told: dict[str, Floats] = {}
    for group in np.unique(groups):
        left_out = groups == group
        for method, predicted in predict(left_out).items():
            told.setdefault(method, np.full_like(log_times_NM, np.nan))[left_out] = predicted
    return {method: figures(predicted.ravel(), log_times_NM.ravel()) for method, predicted in told.items()}
