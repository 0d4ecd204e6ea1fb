"""What corpora hold: one file of generated launches, or all that is shipped, with suites and measured times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.device import find_device, load_devices
from perfvec.arch.measured import load_measured
from perfvec.arguments import contents_of
from perfvec.content import content_folder
from perfvec.corpus.family_splits import FAMILY_SPLITS, split_of
from perfvec.corpus.generated import Corpus, recipe_fill
from perfvec.corpus.generator import SUITE, GeneratedKernel, generate_kernel
from perfvec.corpus.suite import load_suites
from perfvec.corpus.times import TIMES_SUFFIX, CorpusTimes, times_path

if TYPE_CHECKING:
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.launch import Launch


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a corpus holds.

    Attributes:
        kernels: Kernels.
        launches: Launches.
        families: Families of kernels (see `perfvec.corpus.generator_structure.Structure.family`).
        devices: By device: "launches" with a measured time there, or meant for it where nothing was measured at all;
            of the measured times "kernels" (with one), "median_s", "under_10_us" and "over_1_ms" (shares), "spread"
            (median), "repeats" (mean), "launch_overhead_s" (median over sessions) and "failed" (launches that could
            not be timed).
        share_tied_to_global_size: Of the launches.
        type_shares: Of the kernels, by the type (NumPy's word) that they calculate in; in suites, that of most buffers.
        width_shares: Of the kernels, by vector width.
        dim_shares: Of the launches, by dimensions.
        fill_shares: Of generated launches, by what they do to the device that they are meant for.
        split_kernels: Generated kernels by split (see `perfvec.corpus.family_splits`).
        family_kernels: Kernels by family, the largest first.
        suites: Launches by suite; generated ones are a suite of their own.
    """

    kernels: int
    launches: int
    families: int
    devices: Mapping[str, Mapping[str, float]]
    share_tied_to_global_size: float
    type_shares: Mapping[str, float]
    width_shares: Mapping[str, float]
    dim_shares: Mapping[str, float]
    fill_shares: Mapping[str, float]
    split_kernels: Mapping[str, int]
    family_kernels: Mapping[str, int]
    suites: Mapping[str, int]


@final
@dataclass(frozen=True, slots=True)
class _Kernel:
    suite: str
    family: str
    value: str
    width: int


class _Tally:
    """Counts over launches."""

    def __init__(self) -> None:
        self.kernels: dict[object, _Kernel] = {}
        self.tied = self.launches = 0
        self.dims: Counter[str] = Counter()
        self.fills: Counter[str] = Counter()
        self.suites: Counter[str] = Counter()
        self.meant: Counter[str] = Counter()
        self.times: dict[str, list[tuple[object, float, float, int]]] = defaultdict(list)
        self.overheads: dict[str, set[float]] = defaultdict(set)
        self.failed: Counter[str] = Counter()

    def add(self, key: object, kernel: _Kernel, dims: int, is_tied: bool) -> None:
        self.kernels[key] = kernel
        self.launches += 1
        self.tied += is_tied
        self.dims[str(dims)] += 1
        self.suites[kernel.suite] += 1

    def description(self) -> Description:
        families = Counter(kernel.family for kernel in self.kernels.values())
        splits = Counter(split_of(kernel.family) for kernel in self.kernels.values() if kernel.suite == SUITE)
        planned = {name: {"launches": count} for name, count in self.meant.items()}
        return Description(
            kernels=len(self.kernels),
            launches=self.launches,
            families=len(families),
            devices={name: self._device(name) for name in sorted(self.times)} or planned,
            share_tied_to_global_size=self.tied / max(self.launches, 1),
            type_shares=_shares(kernel.value for kernel in self.kernels.values()),
            width_shares=_shares(str(kernel.width) for kernel in self.kernels.values()),
            dim_shares=_shares(self.dims.elements()),
            fill_shares=_shares(self.fills.elements()),
            split_kernels={split: splits[split] for split in FAMILY_SPLITS},
            family_kernels=dict(families.most_common()),
            suites=dict(self.suites.most_common()),
        )

    def _device(self, name: str) -> dict[str, float]:
        times = np.array([time for _, time, _, _ in self.times[name]])
        return {
            "launches": len(times),
            "kernels": len({key for key, *_ in self.times[name]}),
            "median_s": float(np.median(times)),
            "under_10_us": float(np.mean(times < 10e-6)),
            "over_1_ms": float(np.mean(times > 1e-3)),
            "spread": float(np.nanmedian([spread for _, _, spread, _ in self.times[name]])),
            "repeats": float(np.mean([repeats for *_, repeats in self.times[name]])),
            "launch_overhead_s": float(np.median(sorted(self.overheads[name]))),
            "failed": self.failed[name],
        }


def describe(corpus: Corpus, times: CorpusTimes | None = None) -> Description:
    """Say what a corpus of generated launches holds, without tracing anything.

    Args:
        corpus: The corpus.
        times: Its measured times, where there are any.

    Raises:
        DeviceError: A device that it was built for has no device file any more.
    """
    tally = _Tally()
    _add_corpus(tally, corpus, times)
    return tally.description()


def describe_shipped(folder: Path | None = None) -> Description:
    """Say what the shipped suites, corpora and tables hold together.

    Args:
        folder: Holds suites, and corpora and tables in `corpus/` and `measured/`; the shipped one where it is None.

    Raises:
        FormatError: A file is damaged.
    """
    place = content_folder("traces") if folder is None else folder
    tally = _Tally()
    _add_suites(tally, load_suites(place), place / "measured")
    for corpus, times in corpora_in(place / "corpus"):
        _add_corpus(tally, corpus, times)
    return tally.description()


def corpora_in(folder: Path) -> Iterator[tuple[Corpus, CorpusTimes | None]]:
    """Corpora of a folder, each with its measured times, or None where there are none.

    Raises:
        FormatError: A file is damaged, or a table is of another corpus.
    """
    for path in sorted(folder.glob("*.h5")):
        if not path.name.endswith(TIMES_SUFFIX):
            corpus = Corpus.load(path)
            table = times_path(path)
            yield corpus, CorpusTimes.load(table, corpus_digest=corpus.stored_digest) if table.exists() else None


def _add_corpus(tally: _Tally, corpus: Corpus, times: CorpusTimes | None) -> None:
    known = load_devices()
    devices = {name: find_device(name, known) for name in corpus.devices}
    kernels = [generate_kernel(seed) for seed in corpus.kernel_seeds]
    records = [_generated(kernel) for kernel in kernels]
    for row, recipe in enumerate(corpus.recipes):
        kernel = kernels[recipe.kernel]
        tally.add(kernel.seed, records[recipe.kernel], kernel.structure.dims, kernel.structure.is_size_tied)
        tally.fills[recipe_fill(corpus, row, devices)] += 1
        tally.meant[corpus.devices[recipe.device]] += 1
    for (device, row), time in times.times.items() if times is not None else ():
        seed = corpus.kernel_seeds[corpus.recipes[row].kernel]
        tally.times[device].append((seed, time.kernel_time_s, time.spread, time.num_repeats))
        tally.overheads[device].add(time.session.launch_overhead_s)
    for device, _ in times.failures if times is not None else ():
        tally.failed[device] += 1


def _generated(kernel: GeneratedKernel) -> _Kernel:
    value = kernel.structure.value
    return _Kernel(SUITE, kernel.family, value.element.split("x")[0], value.width)


def _add_suites(tally: _Tally, entries: Sequence[SuiteLaunch], measured: Path) -> None:
    table = load_measured(measured) if measured.is_dir() else None
    keys: dict[str, object] = {}
    for entry in entries:
        key = (entry.suite, entry.kernel)
        value, width = _main_type(entry.launch)
        kernel = tally.kernels.get(key) or _Kernel(entry.suite, entry.family, value, width)
        tally.add(key, kernel, len(entry.launch.global_size), entry.is_size_tied)
        keys[entry.launch.digest] = key
    for time in table.times if table is not None else ():
        if time.digest in keys:
            tally.times[time.device].append((keys[time.digest], time.kernel_time_s, time.spread, time.num_repeats))
            tally.overheads[time.device].add(time.launch_overhead_s)


def _main_type(launch: Launch) -> tuple[str, int]:
    """The type and vector width that most buffers of a launch have; generated kernels tell theirs."""
    elements = [contents.element for contents in map(contents_of, launch.args) if contents is not None]
    if not elements:
        return "none", 1
    element, _ = Counter(elements).most_common(1)[0]
    return element.scalar, element.width


def _shares(values: Iterable[str]) -> dict[str, float]:
    counts = Counter(values)
    total = sum(counts.values())
    return {name: count / total for name, count in counts.most_common()}
