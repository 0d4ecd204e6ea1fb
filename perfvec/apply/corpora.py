"""Corpora of launches: build one for devices, and say what one holds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.launch_features import FEATURES, LaunchFeatures, features_of
from perfvec.arch.device import find_device, load_devices
from perfvec.corpus.draw import Draw
from perfvec.corpus.generated import build_corpus
from perfvec.corpus.suite import load_suites
from perfvec.errors import ConfigError, PerfVecError
from perfvec.program.tracer import trace_launch
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from perfvec.corpus.generated import Corpus
    from perfvec.corpus.suite import SuiteLaunch

QUANTILES = (5, 25, 50, 75, 95)
GENERATED, REAL = "generated", "suites"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What building came to.

    Attributes:
        corpus: The corpus.
        wall_s: How long it took.
        num_bytes: Size of the file.
    """

    corpus: Corpus
    wall_s: float
    num_bytes: int

    @property
    def launches_per_s(self) -> float:
        """Launches built a second, on one core."""
        return len(self.corpus) / self.wall_s


def build(
    path: Path,
    *,
    num_kernels: int,
    launches_per_kernel: int,
    programs_per_kernel: int,
    seed: int,
    device_names: Sequence[str],
    on_progress: OnProgress = silent,
) -> Built:
    """Build a corpus of generated kernels into a file.

    Args:
        path: The file.
        num_kernels: Kernels.
        launches_per_kernel: Launches of each for each device.
        programs_per_kernel: Most programs of these.
        seed: The same seed gives the same corpus.
        device_names: Devices that sizes are chosen for, as `perfvec devices` names them.
        on_progress: Told how far it is.

    Raises:
        DeviceError: There is no such device.
        ConfigError: A number is not allowed, or a device is named twice.
        FormatError: The folder does not exist.
    """
    if not device_names:
        raise ConfigError("a corpus is built for devices; give --device NAME, as perfvec devices lists them")
    known = load_devices()
    devices = [find_device(name, known) for name in device_names]
    names = [device.name for device in devices]
    if len(set(names)) != len(names):
        raise ConfigError(f"devices {', '.join(names)}: each may be given once")
    start = time.perf_counter()
    corpus = build_corpus(
        num_kernels,
        devices,
        launches_per_kernel=launches_per_kernel,
        programs_per_kernel=programs_per_kernel,
        seed=seed,
        on_built=on_progress,
    )
    on_progress("writing", 0, 0)
    corpus.save(path)
    return Built(corpus=corpus, wall_s=time.perf_counter() - start, num_bytes=path.stat().st_size)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Distributions:
    """How launches behave.

    Attributes:
        features: Of each traced launch, by where it is from.
        left_out: Launches that could not be traced, with the reason.
    """

    features: Mapping[str, tuple[LaunchFeatures, ...]]
    left_out: tuple[tuple[str, str], ...]

    def values(self, source: str, feature: str) -> list[float]:
        """A feature of all launches of a source."""
        return [float(getattr(item, feature)) for item in self.features[source]]

    def record(self) -> dict[str, object]:
        """Quantiles of each feature, by source; shares of instruction classes on average."""
        return {
            source: {
                "launches": len(items),
                "quantiles": {
                    feature: dict(
                        zip(
                            (f"p{q}" for q in QUANTILES),
                            map(float, np.percentile(self.values(source, feature), QUANTILES)),
                            strict=True,
                        )
                    )
                    for feature in FEATURES
                },
                "class_shares": {
                    name: float(np.mean([item.class_shares[name] for item in items])) for name in items[0].class_shares
                },
            }
            for source, items in self.features.items()
            if items
        }


def distributions(corpus: Corpus, *, sample: int, seed: int = 0, on_progress: OnProgress = silent) -> Distributions:
    """Trace a sample of a corpus, and as many launches of the suites' real kernels, and measure how they behave.

    Args:
        corpus: The corpus.
        sample: Launches of each.
        seed: Which.
        on_progress: Told how far it is.
    """
    suites = load_suites()
    chosen = {
        GENERATED: [corpus.entry(row) for row in _sample(seed, len(corpus), sample)],
        REAL: [suites[row] for row in _sample(seed, len(suites), sample)],
    }
    features: dict[str, tuple[LaunchFeatures, ...]] = {}
    left_out: list[tuple[str, str]] = []
    for source, entries in chosen.items():
        features[source] = tuple(_traced(entries, source, left_out, on_progress))
    return Distributions(features=features, left_out=tuple(left_out))


def _sample(seed: int, total: int, count: int) -> list[int]:
    return sorted(Draw(seed).shuffled(range(total))[:count])


def _traced(
    entries: Sequence[SuiteLaunch], source: str, left_out: list[tuple[str, str]], on_progress: OnProgress
) -> Iterable[LaunchFeatures]:
    for done, entry in enumerate(entries):
        on_progress(f"tracing {source}", done, len(entries))
        try:
            yield features_of(trace_launch(entry.launch))
        except PerfVecError as error:
            left_out.append((entry.name, f"{type(error).__name__}: {error}"))
