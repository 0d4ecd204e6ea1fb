"""`python -m experiments.transfer.own`: the project's own devices held out in turn, and how often intervals hold.

The H200 and the Xeon are each left out of training; k launches of training families are measured on them, and launches
of unseen families are predicted. Intervals are calibrated on half of the unseen families and judged on the other half.
Models without a device are trained as `without-DEVICE.yaml` says, unless given by --without DEVICE=FILE.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from experiments.transfer.harness import COUNTS, SEEDS, figures, write
from perfvec.apply.calibration_making import KnownTimes, calibrated, choose_rows, learn_misfit, slowest_vector
from perfvec.apply.dataset import Dataset, make_dataset
from perfvec.apply.models import load_model
from perfvec.apply.splits import load_holdout
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.measured import load_measured
from perfvec.corpus.suite import load_suites
from perfvec.model.conformal import score_interval
from perfvec.model.posterior import Measurements, corrected_program, exact_belief, posterior, predictive, shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.posterior import DeviceBelief, Misfit

    Floats = NDArray[np.float64]
    Rows = NDArray[np.int64]

HELD_OUT = ("nvidia-h200", "xeon-16core-pocl")
CONFIDENCE = 0.8
HALVES = 200
_PLACE = Path(__file__).resolve().parent


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Launches of a data set on one device, as one model sees them."""

    launches: Measurements
    families: NDArray[np.str_]

    @classmethod
    def of(cls, dataset: Dataset, programs_ND: Floats, device: str, rows: Rows) -> Part:
        """The rows that were measured on the device."""
        column = dataset.data.device_names.index(device)
        kept = rows[~np.isnan(dataset.data.times[rows, column])]
        return cls(
            launches=Measurements(
                programs=programs_ND[kept],
                times=dataset.data.times[kept, column],
                deviation=dataset.data.spread[kept, column] / 1.349,
                kernels=tuple(f"{dataset.entries[row].suite}/{dataset.entries[row].kernel}" for row in kept),
            ),
            families=np.array([dataset.entries[row].family for row in kept]),
        )


def model_without(device: str, given: dict[str, list[Path]]) -> list[Path]:
    """Files of models that have not seen a device."""
    if device in given:
        return given[device]
    from perfvec.apply.training import load_experiment, run_training

    return [run_training(load_experiment(_PLACE / f"without-{device}.yaml")).weights_path]


def held_out(device: str, path: Path, dataset: Dataset, full_error: dict[str, float]) -> dict[str, Any]:
    """A device that the model has not seen, told by k launches."""
    model, holdout = load_model(path), load_holdout()
    programs = model.encode(dataset.data.launches)
    seen, unseen = holdout.training_rows(dataset.entries), holdout.rows(dataset.entries, "unseen-kernel")
    known = KnownTimes.of(model, dataset, programs)
    chosen, is_candidate = choose_rows(dataset, programs, seen, slowest_vector(model))
    spread, misfits = learn_misfit(known, chosen[is_candidate], unseen)
    facts = next(item for item in dataset.devices if item.name == device)
    misfit = misfits.get(facts.type, next(iter(misfits.values())))
    prior = model.device_prior(seconds_per_unit(facts), common=spread.common, own=spread.own)
    candidates = Part.of(dataset, programs, device, chosen[is_candidate]).launches
    asked = Part.of(dataset, programs, device, unseen)
    truth = np.log(asked.launches.times)
    errors: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    coverage: dict[str, float] = {}
    for count in COUNTS:
        by_method: dict[str, list[Floats]] = {"chosen launches": [], "random launches": []}
        scores: list[Floats] = []
        for seed in SEEDS:
            belief = calibrated(prior, candidates, misfit.known, count, seed=seed)
            told = predictive(belief, asked.launches.programs, misfit.new)
            by_method["chosen launches"].append(told.log_time)
            scores.append((truth - told.log_time) / told.deviation)
            rows = np.random.default_rng(seed).permutation(len(candidates.times))[:count].tolist()
            at = posterior(prior, candidates.subset(rows), misfit.known)
            by_method["random launches"].append(shares(asked.launches.programs, at.log_mean)[1])
        for method, logs in by_method.items():
            errors[method][str(count)] = figures(np.concatenate(logs), np.tile(truth, len(SEEDS)))
        coverage[str(count)] = float(np.mean([halves_coverage(item, asked.families)["mean"] for item in scores]))
    at_ten = errors["chosen launches"]["10"]
    return {
        "model": path.name,
        "errors": dict(errors),
        "coverage of the 80 % interval": coverage,
        "ratio to full training at 10 launches": {name: at_ten[name] / full_error[name] for name in ("median", "mape")},
    }


def halves_coverage(scores: Floats, families: NDArray[np.str_]) -> dict[str, float]:
    """How often the interval holds on families that it was not calibrated on: random halves, again and again."""
    names = np.unique(families)
    shares_inside: list[float] = []
    by_family: dict[str, list[float]] = defaultdict(list)
    for seed in range(HALVES):
        half = np.random.default_rng(seed).permutation(names)[: len(names) // 2]
        is_known = np.isin(families, half)
        low, high = score_interval(scores[is_known], CONFIDENCE)
        inside = (scores >= low) & (scores <= high)
        shares_inside.append(float(inside[~is_known].mean()))
        for name in np.setdiff1d(names, half):
            by_family[name].append(float(inside[families == name].mean()))
    means = np.array([np.mean(values) for values in by_family.values()])
    return {
        "mean": float(np.mean(shares_inside)),
        "10th percentile of halves": float(np.quantile(shares_inside, 0.1)),
        "90th percentile of halves": float(np.quantile(shares_inside, 0.9)),
        "families": len(names),
        "median family": float(np.median(means)),
        "families under 50 %": float((means < 0.5).mean()),
        "launches": len(scores),
    }


def full_training(dataset: Dataset) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The shipped model on unseen families: errors, coverage, and times corrected by those of another device."""
    model, holdout = load_model(), load_holdout()
    programs = model.encode(dataset.data.launches)
    seen, unseen = holdout.training_rows(dataset.entries), holdout.rows(dataset.entries, "unseen-kernel")
    known = KnownTimes.of(model, dataset, programs)
    chosen, is_candidate = choose_rows(dataset, programs, seen, slowest_vector(model))
    _, misfits = learn_misfit(known, chosen[is_candidate], unseen)
    errors: dict[str, Any] = {}
    coverage: dict[str, Any] = {}
    for name, kind in zip(known.devices, known.types, strict=True):
        asked = Part.of(dataset, programs, name, unseen)
        told = predictive(exact_belief(model.devices.row(name)), asked.launches.programs, misfits[kind].new)
        truth = np.log(asked.launches.times)
        errors[name] = figures(told.log_time, truth)
        coverage[name] = halves_coverage((truth - told.log_time) / told.deviation, asked.families)
    pairs = {
        f"{source} to {target}": elsewhere(known, unseen, source, target, misfits[known.types[0]].new)
        for source in known.devices
        for target in known.devices
        if source != target
    }
    return errors, coverage, pairs


def elsewhere(known: KnownTimes, unseen: Rows, source: str, target: str, new: Misfit) -> dict[str, Any]:
    """Launches of unseen families on one device, given their time on another."""
    table = known.model.devices
    at, to = known.devices.index(source), known.devices.index(target)
    both = unseen[~np.isnan(known.times[unseen][:, [at, to]]).any(axis=1)]
    exact: DeviceBelief = exact_belief(table.row(source))
    corrected = np.stack(
        [
            corrected_program(
                known.programs[row],
                exact.log_mean[None],
                known.times[row, [at]],
                np.array([np.hypot(new.noise, known.spread[row, at] / 1.349)]),
                common=new.kernel,
                own=new.launch,
            )
            for row in both
        ]
    )
    truth = np.log(known.times[both, to])
    return {
        "without": figures(np.log(known.programs[both] @ table.row(target)), truth),
        "with": figures(np.log(corrected @ table.row(target)), truth),
    }


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="append", default=[], metavar="DEVICE=FILE", help="model without a device")
    parser.add_argument("--processes", type=int, default=None, help="processes that trace launches")
    parser.add_argument("-o", "--output", type=Path, default=_PLACE / "results" / "own")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    given: dict[str, list[Path]] = defaultdict(list)
    for text in options.without:
        given[text.partition("=")[0]].append(Path(text.partition("=")[2]))
    dataset = make_dataset(load_suites(), load_measured(), num_processes=options.processes)
    errors, coverage, pairs = full_training(dataset)
    record: dict[str, Any] = {"full training": errors, "coverage": coverage, "a time elsewhere": pairs, "held out": {}}
    for device in HELD_OUT:
        record["held out"][device] = [
            held_out(device, path, dataset, errors[device]) for path in model_without(device, given)
        ]
    sys.stdout.write(
        json.dumps({name: record[name] for name in ("full training", "coverage", "a time elsewhere")}) + "\n"
    )
    plot = {
        f"{device}, {method}": rows
        for device, models in record["held out"].items()
        for method, rows in models[0]["errors"].items()
    }
    write(options.output, record, plot=plot, title="Own devices held out")


if __name__ == "__main__":
    main()
