"""`python -m experiments.foundation.ablation -o FOLDER`: trainings that differ in one thing each, beside each other.

Features are made first, as many as a time allows: suites, then generated launches, one of each kernel and corpus a
round. Then each variant is a process of its own, forked from one that holds the data. Every variant leaves its model
and a line in `results.json`: figures on validation families, by which one chooses, on held-out families and on
simulated devices.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.apply.dataset import Dataset, make_dataset
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.training import fill_features, holdout_of, launches_of, load_experiment
from perfvec.corpus.generator import SUITE as GENERATED_SUITE
from perfvec.errors import PerfVecError
from perfvec.files import whole_file
from perfvec.program.counts import TOKEN_UNITS
from perfvec.resources import NUM_COUNTED, NUM_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from perfvec.apply.splits import Holdout
    from perfvec.apply.training import ExperimentConfig
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.model.launch_input import LaunchInput

HERE = Path(__file__).resolve().parent
RESULTS_FILE = "results.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is different.

    Attributes:
        model: Fields of `ModelConfig`.
        optimiser: Other fields of `TrainingConfig`.
        simulated: Simulated devices; None for all.
        generated: Whether generated launches are trained on.
        data: Share of the training families, at random.
        window: Instructions of a window.
        is_timed: Whether the timed resources are there; without, the counted ones have their whole price.
    """

    model: Mapping[str, Any] = field(default_factory=dict)
    optimiser: Mapping[str, Any] = field(default_factory=dict)
    simulated: int | None = None
    generated: bool = True
    data: float = 1.0
    window: int = 256
    is_timed: bool = True


VARIANTS: dict[str, Variant] = {
    "base": Variant(),
    "seed 1": Variant(optimiser={"seed": 1}),
    "seed 2": Variant(optimiser={"seed": 2}),
    "pooled": Variant(model={"encoder": "pooled"}),
    "transformer": Variant(model={"encoder": "transformer"}),
    "lstm 2 x 256": Variant(model={"encoder": "lstm", "hidden": 256, "layers": 2}),
    "no timed resources": Variant(is_timed=False),
    "resources alone": Variant(model={"dim": NUM_RESOURCES, "token_gates": 0, "excess": 0, "landmarks": 0}),
    "no launch gates": Variant(model={"dim": NUM_RESOURCES + 6 * len(TOKEN_UNITS), "excess": 0, "landmarks": 0}),
    "no straight gates": Variant(model={"straight_gates": False}),
    "no excess": Variant(model={"dim": 1836, "excess": 0}),
    "no landmarks": Variant(model={"dim": 1836, "landmarks": 0}),
    "600 landmarks": Variant(model={"dim": 2436, "landmarks": 600}),
    "none of the three": Variant(model={"dim": 1536, "excess": 0, "landmarks": 0, "straight_gates": False}),
    "two gates a resource": Variant(model={"dim": 2904}),
    "less noise": Variant(optimiser={"profile_noise": 0.05}),
    "window 16": Variant(window=16),
    "window 64": Variant(window=64),
    "no simulated devices": Variant(simulated=0),
    "16 simulated devices": Variant(simulated=16),
    "64 simulated devices": Variant(simulated=64),
    "suites alone": Variant(generated=False),
    "10 % of the families": Variant(data=0.1),
    "30 % of the families": Variant(data=0.3),
}


def say(text: str) -> None:
    """Tell the user at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def make_features(config: ExperimentConfig, cache: FeatureCache, seconds: float) -> list[SuiteLaunch]:
    """Make features until the time is over; the launches that have some."""
    launches, _ = launches_of(config.data)
    # Launches of a kernel follow each other in a corpus: the first of each is taken first, in every corpus.
    places = [place for _, same in groupby(launches, key=lambda entry: entry.kernel) for place, _ in enumerate(same)]
    ordered = [launches[row] for row in np.argsort(np.array(places), kind="stable")]
    begun = time.perf_counter()
    told = [begun]

    def tell(what: str, done: int, total: int) -> None:
        if time.perf_counter() - told[0] > 20:
            told[0] = time.perf_counter()
            say(f"{what} {done} of {total}, {told[0] - begun:.0f} s")

    failures = fill_features(config.data, cache, ordered, seconds=seconds, on_progress=tell)
    kept = [entry for entry in ordered if entry.launch.digest not in failures and cache.holds(entry.launch.digest)]
    say(f"{len(kept)} of {len(ordered)} launches have features, {time.perf_counter() - begun:.0f} s")
    return kept


def changed(dataset: Dataset, variant: Variant, space: SimulatedDevices, rows: NDArray[np.int64]) -> Dataset:
    """What a variant is trained on, of all the rows that are not held out."""
    data = dataset.data
    if not variant.generated:
        rows = rows[[dataset.entries[row].suite != "generated" for row in rows]]
    if variant.data < 1:
        families = sorted({dataset.entries[row].family for row in rows})
        kept = set(np.random.default_rng(0).permutation(families)[: round(variant.data * len(families))].tolist())
        rows = rows[[dataset.entries[row].family in kept for row in rows]]
    num_real = len(data.device_names) - data.num_simulated
    chosen = (*space.part("training", variant.simulated or 0), *space.part("shipped")) if variant.simulated != 0 else ()
    part = dataset.with_devices([*range(num_real), *(num_real + item.number for item in chosen)]).subset(rows)
    launches = tuple(shaped(launch, variant) for launch in part.data.launches)
    seconds = part.data.seconds_per_unit if variant.is_timed else counted_alone(part.data.seconds_per_unit)
    return replace(part, data=replace(part.data, launches=launches, seconds_per_unit=seconds))


def shaped(launch: LaunchInput, variant: Variant) -> LaunchInput:
    """A launch with shorter windows, or without timed resources."""
    if not variant.is_timed:
        resources = launch.resources.copy()
        resources[NUM_COUNTED:] = 0.0
        launch = replace(launch, resources=resources)
    if variant.window >= launch.window_lengths.max():
        return launch
    pieces = -(-launch.window_lengths // variant.window)
    first = np.repeat(launch.window_start[:-1], pieces)
    place = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = np.append(first + place * variant.window, launch.window_start[-1])
    return replace(launch, window_start=start, window_weight=np.repeat(launch.window_weight, pieces))


def counted_alone(seconds_MK: NDArray[np.float64]) -> NDArray[np.float64]:
    """Datasheets as they were before there were timed resources."""
    from perfvec.arch.datasheet import COUNTED_SHARE

    alone = seconds_MK.copy()
    alone[:, :NUM_COUNTED] /= COUNTED_SHARE
    alone[:, NUM_COUNTED:] = 0.0
    return alone


def run_variant(
    name: str,
    config: ExperimentConfig,
    dataset: Dataset,
    space: SimulatedDevices,
    holdout: Holdout,
    folder: Path,
    devices: int,
) -> None:
    """Train, save the model and write its figures."""
    import torch

    from experiments.foundation.figures import real_figures, simulated_figures
    from perfvec.model.training import accelerator, train

    torch.set_num_threads(1)
    variant = VARIANTS[name]
    training = replace(config.training, model=replace(config.training.model, **variant.model), **variant.optimiser)
    part = changed(dataset, variant, space, holdout.training_rows(dataset.entries))
    out = folder / name.replace(" ", "-").replace("%", "percent")
    begun = time.perf_counter()
    model = train(training, part.data, out)
    train_s = time.perf_counter() - begun
    model.save(out / "model.safetensors")
    model.encoder.to(accelerator(training))
    suites = np.array([entry.suite != GENERATED_SUITE for entry in dataset.entries])
    all_rows = np.arange(len(dataset.entries))
    asked = replace(
        dataset, data=replace(dataset.data, launches=tuple(shaped(item, variant) for item in dataset.data.launches))
    )
    validation = all_rows[suites & np.array([entry.family in model.validation_families for entry in dataset.entries])]
    unseen = holdout.rows(dataset.entries, "unseen-kernel")
    seen = all_rows[suites & np.array([entry.family in model.families for entry in dataset.entries])]
    held_out = space.part("held-out", devices)
    names = [item.device.name for item in held_out]
    columns = [dataset.data.device_names.index(item) for item in names]
    starts = dataset.data.seconds_per_unit[columns]
    record = {
        "variant": name,
        "train_s": train_s,
        "launches": len(part.entries),
        "parameters": sum(item.numel() for item in model.encoder.parameters()),
        "dim": model.encoder.layout.dim,
        "validation": real_figures(model, asked, validation),
        "unseen kernels": real_figures(model, asked, unseen[suites[unseen]]),
        "unseen generated kernels": real_figures(model, asked, unseen[~suites[unseen]]),
        "simulated": simulated_figures(
            model,
            asked,
            starts if variant.is_timed else counted_alone(starts),
            seen=np.random.default_rng(0).permutation(seen)[:600],
            unseen=unseen[suites[unseen]],
            held_out=names,
            counts=(0, 10),
        ),
    }
    with whole_file(out / "figures.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")
    say(line_of(record))


def line_of(record: Mapping[str, Any]) -> str:
    """A variant's main figures in a line."""
    h200, valid = (record[key].get("nvidia-h200", {}) for key in ("unseen kernels", "validation"))
    long = record["unseen kernels"].get("nvidia-h200 over 20 us", {})
    return (
        f"{record['variant']:22} {record['train_s']:5.0f} s  validation {valid.get('mape', np.nan):.3f} "
        f"{valid.get('median', np.nan):.3f}  H200 {h200.get('mape', np.nan):.3f} {h200.get('median', np.nan):.3f} "
        f"rank {h200.get('rank', np.nan):.2f} long {long.get('mape', np.nan):.3f} {long.get('median', np.nan):.3f}  "
        + "  ".join(f"{value:.3f}" for key, value in record["simulated"].items() if "median" not in key)
    )


def run_all(names: Sequence[str], processes: int, arguments: tuple[Any, ...]) -> list[str]:
    """Run the variants in processes, so many at a time; those that failed, whose tracebacks are on stderr."""
    context = multiprocessing.get_context("fork")
    waiting, running, failed = list(names), [], []
    while waiting or running:
        while waiting and len(running) < processes:
            name = waiting.pop(0)
            process = context.Process(target=run_variant, name=name, args=(name, *arguments))
            process.start()
            running.append(process)
        running[0].join(timeout=0.5)
        failed += [process.name for process in running if process.exitcode]
        running = [process for process in running if process.is_alive()]
    return failed


def collect(folder: Path) -> list[dict[str, Any]]:
    """The figures of all variants that have some, in the order of `VARIANTS`."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/figures.json")]
    return sorted(found, key=lambda record: list(VARIANTS).index(record["variant"]))


def main() -> int:
    """Make features, train the variants, write what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=HERE / "config.yaml")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), choices=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--processes", type=int, default=4, help="variants at a time")
    parser.add_argument("--fill", type=float, default=1e9, metavar="SECONDS", help="time for features")
    parser.add_argument("--epochs", type=int, default=0, help="instead of the configuration's")
    parser.add_argument("--devices", type=int, default=16, help="held-out simulated devices to try")
    options = parser.parse_args()
    try:
        config = load_experiment(options.config)
        space = SimulatedDevices(space=config.data.simulated)
        cache = FeatureCache.open(simulated=space)
        launches = make_features(config, cache, options.fill)
        if not options.only:
            return 0
        _, measured = launches_of(config.data)
        dataset = make_dataset(launches, measured, simulated=space.devices, cache=cache)
    except PerfVecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    say(f"{len(dataset.entries)} launches, {len(dataset.devices)} devices")
    if options.epochs:
        config = replace(config, training=replace(config.training, epochs=options.epochs))
    options.output.mkdir(parents=True, exist_ok=True)
    holdout = holdout_of(config.data)
    failed = run_all(
        options.only, options.processes, (config, dataset, space, holdout, options.output, options.devices)
    )
    records = collect(options.output)
    with whole_file(options.output / RESULTS_FILE) as temporary:
        temporary.write_text(json.dumps(records, indent=1), encoding="utf-8")
    say("\n".join(line_of(record) for record in records))
    if failed:
        sys.stderr.write(f"failed, see above: {', '.join(failed)}; run them again with --only\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
