"""Train a model as a configuration file says, and note what came of it beside the weights.

    data:
      devices: [nvidia-h200]            # names; all with measured times and a device file where it is left out
      holdout: unseen-kernel            # a file, `unseen-kernel` for the shipped one, `none` to train on all
      measured: traces/measured         # folder of measured times; the shipped one where it is left out
      suites: traces                    # folder of suites; the shipped one where it is left out
      corpora: [nvidia-h200]            # generated launches: FILE.h5 with FILE.times.h5 beside it, or a shipped one
      launches_per_kernel: 8            # of these, at most so many of each kernel; 0 for all
      simulated: gpu-2010-today         # a design space, whose training devices the timing model times launches on
      simulated_devices: 0              # at most so many of them; 0 for all
      devices_per_generated: 48         # of which a generated launch is timed on so many; 0 for all
    model:                              # fields of perfvec.model.config.ModelConfig
      dim: 1536
    optimiser:                          # the other fields of perfvec.model.config.TrainingConfig
      epochs: 200
    out_dir: runs/first

Writes `model.safetensors` and `result.json` into `out_dir`.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from perfvec.apply.corpus_data import measured_corpus
from perfvec.apply.dataset import Dataset, make_dataset
from perfvec.apply.evaluating import EvaluationRow, evaluate_splits
from perfvec.apply.feature_cache import FeatureCache, fill
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.splits import Holdout, load_holdout
from perfvec.arch.measured import load_measured
from perfvec.corpus.generator import SUITE as GENERATED_SUITE
from perfvec.corpus.suite import load_suites
from perfvec.errors import ConfigError, ModelError
from perfvec.files import whole_file
from perfvec.model.config import TrainingConfig, training_config
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfvec.arch.measured import MeasuredTable
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.model.weights import TrainedModel

WEIGHTS_FILE = "model.safetensors"
RESULT_FILE = "result.json"
NO_HOLDOUT = "none"
SHIPPED_HOLDOUT = "unseen-kernel"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """What to train on.

    Attributes:
        devices: Names or aliases; empty for all that have times.
        holdout: A holdout file, `unseen-kernel` for the shipped one, or `none`.
        measured: Folder of measured times; "" for the shipped one.
        suites: Folder of suites; "" for the shipped one.
        corpora: Corpora of generated launches, as `perfvec.apply.corpus_data.measured_corpus` takes them.
        launches_per_kernel: Most launches of each of their kernels; 0 for all.
        simulated: Design space whose devices for training (`archs/spaces/splits`) are trained on, too, and with them
            the shipped GPUs as the timing model has them; "" for none.
        simulated_devices: Most devices of the space; 0 for all.
        devices_per_generated: Devices of the space that a launch of a corpus is timed on, others for each, where no
            cache has it yet; 0 for all. Many launches on a few devices say more than few launches on all.
    """

    devices: list[str] = field(default_factory=list)
    holdout: str = SHIPPED_HOLDOUT
    measured: str = ""
    suites: str = ""
    corpora: list[str] = field(default_factory=list)
    launches_per_kernel: int = 0
    simulated: str = ""
    simulated_devices: int = 0
    devices_per_generated: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentConfig:
    """A configuration file.

    Attributes:
        data: What to train on.
        training: Shape of the model, and how to train it.
        out_dir: Folder of the results.
    """

    data: DataConfig
    training: TrainingConfig
    out_dir: Path


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What came of a training.

    Attributes:
        weights_path: The model's file.
        result_path: The account of it.
        num_launches: Launches trained on, those that decided when to stop included.
        num_left_out: Measured launches that could not be traced.
        device_names: Devices trained on that were measured.
        num_simulated: Simulated devices trained on beside them.
        rows: Figures on what was held out; none where nothing was.
    """

    weights_path: Path
    result_path: Path
    num_launches: int
    num_left_out: int
    device_names: tuple[str, ...]
    num_simulated: int
    rows: tuple[EvaluationRow, ...]


def load_experiment(path: str | Path, *, out_dir: str | Path | None = None) -> ExperimentConfig:
    """Read a configuration file. What it leaves out keeps its default.

    Args:
        path: A YAML file.
        out_dir: Instead of the file's own.

    Raises:
        ConfigError: The file is missing or no YAML mapping, or a key or value is not allowed; the message names it.
    """
    import dacite
    import yaml

    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read configuration {path}: {error}") from error
    keys = ("data", "model", "optimiser", "out_dir")
    if not isinstance(values, dict) or set(values) - set(keys):
        found = sorted(map(str, set(values) - set(keys))) if isinstance(values, dict) else type(values).__name__
        raise ConfigError(f"configuration {path} has {found}; allowed are the keys {', '.join(keys)}")
    sections = {key: values.get(key) or {} for key in keys[:3]}
    for key, section in sections.items():
        if not isinstance(section, dict):
            raise ConfigError(f"configuration {path}: {key} is {section!r}; it must be a mapping of settings")
    if "model" in sections["optimiser"]:
        raise ConfigError(f"configuration {path}: optimiser has the key model; that is a section of its own")
    try:
        data = dacite.from_dict(DataConfig, sections["data"], dacite.Config(strict=True))
    except dacite.DaciteError as error:
        raise ConfigError(f"configuration {path}, data: {error}") from error
    return ExperimentConfig(
        data=data,
        training=training_config({**sections["optimiser"], "model": sections["model"]}, where=str(path)),
        out_dir=Path(out_dir or values.get("out_dir") or Path("runs") / Path(path).resolve().parent.name),
    )


def holdout_of(config: DataConfig) -> Holdout:
    """What the configuration holds out.

    Raises:
        ConfigError: The holdout file cannot be read.
    """
    if config.holdout == NO_HOLDOUT:
        return Holdout(name=NO_HOLDOUT)
    return load_holdout(None if config.holdout == SHIPPED_HOLDOUT else config.holdout)


def dataset_of(
    config: DataConfig,
    *,
    cache: FeatureCache | None = None,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> Dataset:
    """Put together what a configuration trains on and is evaluated on, traced where the cache lacks it.

    Args:
        config: What to take.
        cache: Where features are kept; the user's cache where it is None.
        num_processes: Processes that trace what the cache lacks; None for one a core.
        on_progress: Hears what is being done.

    Raises:
        PerfVecError: A file of the configuration cannot be read, a device or space is unknown, or no launch is left.
    """
    launches, measured = launches_of(config)
    space = SimulatedDevices(space=config.simulated) if config.simulated else None
    store = FeatureCache.open(simulated=space) if cache is None else cache
    if config.devices_per_generated:
        fill_features(config, store, launches, num_processes=num_processes, on_progress=on_progress)
    return make_dataset(
        launches,
        measured,
        device_names=config.devices,
        simulated=(*space.part("training", config.simulated_devices), *space.part("shipped")) if space else (),
        cache=store,
        num_processes=num_processes,
        on_progress=on_progress,
    )


def launches_of(config: DataConfig) -> tuple[list[SuiteLaunch], MeasuredTable]:
    """The launches that a configuration names, suites first, and their measured times.

    Raises:
        PerfVecError: A file of the configuration cannot be read.
    """
    launches = load_suites(Path(config.suites) if config.suites else None)
    measured = load_measured(config.measured or None)
    for name in config.corpora:
        entries, times = measured_corpus(name, launches_per_kernel=config.launches_per_kernel)
        launches += entries
        measured = measured.merge(times)
    return launches, measured


def fill_features(
    config: DataConfig,
    cache: FeatureCache,
    launches: Sequence[SuiteLaunch],
    *,
    seconds: float = math.inf,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> dict[str, str]:
    """Trace the launches that a cache lacks, in their order, but those of the suites first.

    Args:
        config: How many devices a generated launch is timed on.
        cache: Where features are kept.
        launches: As `launches_of` has them.
        seconds: Wall time after which no more are begun.
        num_processes: Processes that trace; None for one a core.
        on_progress: Hears how many are done.

    Returns:
        By digest, why launches are still not in the cache.
    """
    ends_at = time.monotonic() + seconds
    failures: dict[str, str] = {}
    for is_generated, store in ((False, cache), (True, replace(cache, some_simulated=config.devices_per_generated))):
        named = [(item.name, item.launch) for item in launches if (item.suite == GENERATED_SUITE) is is_generated]
        left = ends_at - time.monotonic()
        failures |= fill(store, named, num_processes=num_processes, seconds=left, on_progress=on_progress)
    return failures


def run_training(
    config: ExperimentConfig,
    *,
    cache: FeatureCache | None = None,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> TrainingResult:
    """Train a model, evaluate it on what was held out, and write both down.

    Args:
        config: As read by `load_experiment`.
        cache: Where features are kept; the user's cache where it is None.
        num_processes: Processes that trace what the cache lacks; None for one a core.
        on_progress: Hears what is being done.

    Raises:
        PerfVecError: A file of the configuration cannot be read, a device is unknown, there is nothing to train on,
            or the folder holds another training.
    """
    from perfvec.model.training import train

    begun = time.perf_counter()
    holdout = holdout_of(config.data)
    dataset = dataset_of(config.data, cache=cache, num_processes=num_processes, on_progress=on_progress)
    rows = holdout.training_rows(dataset.entries)
    if len(rows) == 0:
        raise ModelError(f"holdout {holdout.name!r} leaves none of the {len(dataset.entries)} launches to train on")
    on_progress("training", 0, 0)
    training = dataset.subset(rows)
    model = train(config.training, training.data, config.out_dir)
    weights_path = config.out_dir / WEIGHTS_FILE
    model.save(weights_path)
    on_progress("evaluating", 0, 0)
    evaluated = evaluate_splits(model, dataset.measured(), holdout)
    result_path = config.out_dir / RESULT_FILE
    record = _record(config, holdout, dataset, len(rows), model, evaluated) | {"wall_s": time.perf_counter() - begun}
    with whole_file(result_path) as temporary:
        temporary.write_text(json.dumps(record, indent=1, default=str), encoding="utf-8")
    return TrainingResult(
        weights_path=weights_path,
        result_path=result_path,
        num_launches=len(rows),
        num_left_out=len(dataset.left_out),
        device_names=dataset.measured().data.device_names,
        num_simulated=dataset.data.num_simulated,
        rows=tuple(evaluated),
    )


def _record(
    config: ExperimentConfig,
    holdout: Holdout,
    dataset: Dataset,
    num_training_launches: int,
    model: TrainedModel,
    rows: list[EvaluationRow],
) -> dict[str, object]:
    return {
        "code_version": model.code_version,
        "config": asdict(config),
        "holdout": asdict(holdout),
        "devices": dataset.measured().data.device_names,
        "simulated_devices": dataset.data.device_names[len(dataset.devices) - dataset.data.num_simulated :],
        "num_launches": len(dataset.entries),
        "num_training_launches": num_training_launches,
        "num_left_out": Counter(item.reason.partition(":")[0] for item in dataset.left_out),
        "left_out": {item.name: item.reason[:200] for item in dataset.left_out},
        "families": model.families,
        "validation_families": model.validation_families,
        "rows": [
            {
                key: None if isinstance(value, float) and math.isnan(value) else value
                for key, value in asdict(row).items()
            }
            for row in rows
        ],
    }
