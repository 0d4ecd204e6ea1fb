"""Time a corpus or the suites on a device of this machine, in runs that may be broken off at any time."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from perfvec.arch.campaign import Job, reason_of, run_campaign
from perfvec.arch.measured import MeasuredTable, MeasuredTime
from perfvec.arch.opencl import device_key
from perfvec.corpus.draw import Draw
from perfvec.corpus.generated import Corpus, LaunchRecipe, launch_of_recipe
from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.corpus.times import CorpusTimes, times_path
from perfvec.errors import ConfigError
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from perfvec.arch.campaign import Outcome
    from perfvec.arch.opencl import LiveDevice
    from perfvec.launch import Launch

SAVE_EVERY_S = 20.0
# Of the launches of a kernel, so many in a job: a worker that crashes gives the others back.
_JOB_LAUNCHES = 64
Make: TypeAlias = "Callable[[Sequence[int]], Sequence[Launch]]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Which launches, in which order, by how many.

    Attributes:
        num_kernels: Most kernels; all where it is None.
        num_launches: Most launches; all where it is None.
        num_workers: Processes that prepare; one a core where it is None.
        seed: The order of the kernels follows from it.
    """

    num_kernels: int | None = None
    num_launches: int | None = None
    num_workers: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("num_kernels", "num_launches", "num_workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name}={value}; allowed are whole numbers over 0")

    def jobs(self, kernels: Mapping[object, Sequence[int]], make: Callable[[Sequence[int]], Make]) -> list[Job]:
        """Jobs in a random order of kernels, each begun kernel whole.

        Args:
            kernels: Rows by kernel.
            make: Gives what makes the launches of rows in a worker.
        """
        groups = Draw(self.seed).shuffled(list(kernels.values()))[: self.num_kernels]
        jobs: list[Job] = []
        left = sum(map(len, groups)) if self.num_launches is None else self.num_launches
        for group in groups:
            rows = group[:left]
            left -= len(rows)
            for start in range(0, len(rows), _JOB_LAUNCHES):
                part = tuple(rows[start : start + _JOB_LAUNCHES])
                jobs.append(Job(rows=part, make=make(part)))
        return jobs


# ---- what is measured -------------------------------------------------------------------------------------------


class AbstractTarget(ABC):
    """Launches by row, and the table on disk that their times go into.

    Attributes:
        path: The table.
    """

    path: Path

    @abstractmethod
    def kernels(self) -> Mapping[object, Sequence[int]]:
        """Rows by kernel; no two rows with the same launch."""

    @abstractmethod
    def maker(self, rows: Sequence[int]) -> Make:
        """What makes launches of these rows; it can travel to another process."""

    @abstractmethod
    def known(self, device: str) -> frozenset[int]:
        """Rows that need not be timed on a device."""

    @abstractmethod
    def kernel_time_s(self, device: str) -> dict[int, float]:
        """Times on a device by row, seconds."""

    @abstractmethod
    def add(self, row: int, outcome: Outcome) -> None:
        """Keep an outcome."""

    @abstractmethod
    def save(self) -> None:
        """Write the table, whole or not at all."""


def target_of(corpus: Path | None, table: Path | None, *, is_suites: bool) -> AbstractTarget:
    """What a command line asks for.

    Args:
        corpus: File of a corpus, or a folder of suites.
        table: The table; beside the corpus where it is None.
        is_suites: The shipped suites instead.

    Raises:
        ConfigError: Neither or both are asked for, or suites without a table.
        FormatError: A file is damaged, or they do not belong together.
    """
    if is_suites == (corpus is not None):
        raise ConfigError("give either a corpus file or --suites")
    if corpus is not None and not corpus.is_dir():
        return CorpusTarget(Corpus.load(corpus), table or times_path(corpus))
    if table is None:
        raise ConfigError("suites need --out FILE, such as --out traces/measured/nvidia-h200.h5")
    return SuiteTarget(load_suites(corpus), table)


@final
class CorpusTarget(AbstractTarget):
    """A corpus of generated launches; rows are its own."""

    def __init__(self, corpus: Corpus, path: Path) -> None:
        """Read the table, if there is one.

        Raises:
            FormatError: The table is damaged, or of another corpus.
        """
        self.corpus, self.path = corpus, path
        digest = corpus.stored_digest or corpus.digest()
        self.times = (
            CorpusTimes.load(path, corpus_digest=digest) if path.exists() else CorpusTimes(corpus_digest=digest)
        )

    def kernels(self) -> Mapping[object, Sequence[int]]:
        """Rows by kernel; what two devices drew alike is timed once."""
        rows: dict[object, list[int]] = defaultdict(list)
        seen: set[LaunchRecipe] = set()
        for row, recipe in enumerate(self.corpus.recipes):
            alike = replace(recipe, device=0)
            if alike not in seen:
                seen.add(alike)
                rows[recipe.kernel].append(row)
        return rows

    def maker(self, rows: Sequence[int]) -> Make:
        """See `AbstractTarget`."""
        recipes = {row: self.corpus.recipes[row] for row in rows}
        seed = self.corpus.kernel_seeds[recipes[rows[0]].kernel]
        return partial(_generated, seed, recipes)

    def known(self, device: str) -> frozenset[int]:
        """See `AbstractTarget`."""
        return self.times.known(device)

    def kernel_time_s(self, device: str) -> dict[int, float]:
        """See `AbstractTarget`."""
        return {row: time.kernel_time_s for (name, row), time in self.times.times.items() if name == device}

    def add(self, row: int, outcome: Outcome) -> None:
        """See `AbstractTarget`."""
        if isinstance(outcome, MeasuredTime):
            self.times.add(row, outcome)
        else:
            self.times.fail(row, outcome.device, reason_of(outcome))

    def save(self) -> None:
        """See `AbstractTarget`."""
        self.times.save(self.path)


def _generated(seed: int, recipes: Mapping[int, LaunchRecipe], rows: Sequence[int]) -> list[Launch]:
    return [launch_of_recipe(seed, recipes[row]).launch for row in rows]


@final
class SuiteTarget(AbstractTarget):
    """Launches of suites; the table is one of `perfvec.arch.measured`."""

    def __init__(self, entries: Sequence[SuiteLaunch], path: Path) -> None:
        """Read the table, if there is one.

        Raises:
            FormatError: The table is damaged.
        """
        self.path = path
        self._entries = list({entry.launch.digest: entry for entry in entries}.items())
        self._table = MeasuredTable.load(path) if path.exists() else MeasuredTable()
        self._new: list[MeasuredTime] = []

    def kernels(self) -> Mapping[object, Sequence[int]]:
        """See `AbstractTarget`."""
        rows: dict[object, list[int]] = defaultdict(list)
        for row, (_, entry) in enumerate(self._entries):
            rows[entry.suite, entry.kernel].append(row)
        return rows

    def maker(self, rows: Sequence[int]) -> Make:
        """See `AbstractTarget`."""
        return partial(_picked, {row: self._entries[row][1].launch for row in rows})

    def known(self, device: str) -> frozenset[int]:
        """See `AbstractTarget`."""
        return frozenset(self.kernel_time_s(device))

    def kernel_time_s(self, device: str) -> dict[int, float]:
        """See `AbstractTarget`."""
        times = {item.digest: item.kernel_time_s for item in (*self._table.times, *self._new) if item.device == device}
        return {row: times[digest] for row, (digest, _) in enumerate(self._entries) if digest in times}

    def add(self, row: int, outcome: Outcome) -> None:
        """See `AbstractTarget`; failures are not kept."""
        if isinstance(outcome, MeasuredTime):
            digest, entry = self._entries[row]
            self._new.append(replace(outcome, digest=digest, name=entry.name))

    def save(self) -> None:
        """See `AbstractTarget`."""
        if self._new:
            self._table, self._new = self._table.merge(self._new), []
        self._table.save(self.path)


def _picked(launches: Mapping[int, Launch], rows: Sequence[int]) -> list[Launch]:
    return [launches[row] for row in rows]


# ---- measuring --------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSummary:
    """What a run came to.

    Attributes:
        device: The device's name in tables.
        table: Where the times are.
        num_launches: Launches that there are, none twice.
        num_measured: Measured now.
        num_known: In the table before, or known to fail.
        num_failed: Could not be timed.
        num_left: For another run.
        num_kernels: Kernels with a launch in the table.
        failures: How many, by reason.
        examples: A message for each reason.
        num_restarts: Worker processes that were replaced.
        wall_s: How long it took.
        launches_per_s: Measured a second of that.
        busy_share: Share of the wall time in which the device ran launches.
        turn_share: Share in which a worker had the device for itself.
        worker_shares: Shares of the time of all workers, by what they did besides their turns.
        share_under_10_us: Of all times on the device in the table.
        share_over_1_ms: Likewise.
    """

    device: str
    table: str
    num_launches: int
    num_measured: int
    num_known: int
    num_failed: int
    num_left: int
    num_kernels: int
    failures: dict[str, int]
    examples: dict[str, str]
    num_restarts: int
    wall_s: float
    launches_per_s: float
    busy_share: float
    turn_share: float
    worker_shares: dict[str, float]
    share_under_10_us: float
    share_over_1_ms: float


@final
@dataclass(slots=True, kw_only=True)
class _Saver:
    """Keeps outcomes, and writes the table now and then and at the end."""

    target: AbstractTarget
    examples: dict[str, str] = field(default_factory=dict)
    saved_s: float = field(default_factory=time.monotonic)
    is_new: bool = False

    def keep(self, row: int, outcome: Outcome) -> None:
        if not isinstance(outcome, MeasuredTime):
            self.examples.setdefault(reason_of(outcome), f"launch {row}: {outcome.reason}")
        self.target.add(row, outcome)
        self.is_new = True
        if time.monotonic() - self.saved_s > SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        if self.is_new:
            self.target.save()
        self.saved_s, self.is_new = time.monotonic(), False

    @contextmanager
    def saving(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.save()


def measure(
    target: AbstractTarget,
    device: LiveDevice,
    order: Order | None = None,
    total_budget_s: float = float("inf"),
    on_progress: OnProgress = silent,
) -> MeasureSummary:
    """Time the launches that the table lacks, and write it every 20 s.

    Args:
        target: Launches and table.
        device: Where.
        order: Which first.
        total_budget_s: Wall time after which no launch is begun.
        on_progress: Hears how far it is.

    Raises:
        OpenCLError: The device cannot be used.
        FormatError: The table cannot be written.
    """
    order = order or Order()
    key = device_key(device)
    kernels, known = target.kernels(), target.known(key)
    missing = {kernel: left for kernel, rows in kernels.items() if (left := [row for row in rows if row not in known])}
    jobs = order.jobs(missing, target.maker)
    total = sum(len(job.rows) for job in jobs)
    saver = _Saver(target=target)
    num_done = 0

    def keep(row: int, outcome: Outcome) -> None:
        nonlocal num_done
        num_done += 1
        saver.keep(row, outcome)
        on_progress("measuring", num_done, total)

    with saver.saving():
        report = run_campaign(
            jobs, device, total_budget_s=total_budget_s, on_outcome=keep, num_workers=order.num_workers
        )
    times_s = target.kernel_time_s(key)
    values = np.array(list(times_s.values())) if times_s else np.full(1, np.nan)
    num_launches = sum(map(len, kernels.values()))
    num_failed = sum(report.failures.values())
    return MeasureSummary(
        device=key,
        table=str(target.path),
        num_launches=num_launches,
        num_measured=report.num_measured,
        num_known=num_launches - sum(map(len, missing.values())),
        num_failed=num_failed,
        num_left=sum(map(len, missing.values())) - report.num_measured - num_failed,
        num_kernels=sum(1 for rows in kernels.values() if any(row in times_s for row in rows)),
        failures=dict(report.failures.most_common()),
        examples=saver.examples,
        num_restarts=report.num_restarts,
        wall_s=report.wall_s,
        launches_per_s=report.num_measured / report.wall_s,
        busy_share=report.busy_s / report.wall_s,
        turn_share=report.turn_s / report.wall_s,
        worker_shares={
            what: spent_s / (report.wall_s * report.num_workers) for what, spent_s in report.worker_s.items()
        },
        share_under_10_us=float(np.mean(values < 10e-6)),
        share_over_1_ms=float(np.mean(values > 1e-3)),
    )


# ---- checking ---------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Launches of a table, timed again.

    Attributes:
        device: The device's name in tables.
        ratios: New time ÷ time in the table, rising.
        num_failed: Launches that could not be timed again.
    """

    device: str
    ratios: tuple[float, ...]
    num_failed: int

    def record(self) -> dict[str, object]:
        """The figures."""
        ratios = np.array(self.ratios) if self.ratios else np.full(1, np.nan)
        low, quarter, middle, third, high = map(float, np.percentile(ratios, (5, 25, 50, 75, 95)))
        return {
            "device": self.device,
            "launches": len(self.ratios),
            "failed": self.num_failed,
            "median_ratio": middle,
            "p5": low,
            "p25": quarter,
            "p75": third,
            "p95": high,
            "share_within_5_percent": float(np.mean(np.abs(ratios - 1) <= 0.05)),
        }


def check_times(
    target: AbstractTarget,
    device: LiveDevice,
    count: int,
    order: Order | None = None,
    total_budget_s: float = float("inf"),
    on_progress: OnProgress = silent,
) -> Check:
    """Time random launches of the table again.

    Args:
        target: Launches and table, which is not changed.
        device: Where.
        count: How many.
        order: Which, by its seed.
        total_budget_s: Wall time after which no launch is begun.
        on_progress: Hears how far it is.

    Raises:
        ConfigError: The count is not over 0, or the table has no times on the device.
        OpenCLError: The device cannot be used.
    """
    order = order or Order()
    key = device_key(device)
    before = target.kernel_time_s(key)
    if count < 1 or not before:
        raise ConfigError(
            f"{target.path} has {len(before)} times on {key} to check {count} of; measure first, and give a number "
            "over 0"
        )
    chosen = Draw(order.seed).shuffled(sorted(before))[:count]
    after: dict[int, float] = {}

    def keep(row: int, outcome: Outcome) -> None:
        if isinstance(outcome, MeasuredTime):
            after[row] = outcome.kernel_time_s
        on_progress("measuring again", len(after), len(chosen))

    jobs = [Job(rows=(row,), make=target.maker([row])) for row in chosen]
    report = run_campaign(jobs, device, total_budget_s=total_budget_s, on_outcome=keep, num_workers=order.num_workers)
    ratios = sorted(time_s / before[row] for row, time_s in after.items())
    return Check(device=key, ratios=tuple(ratios), num_failed=sum(report.failures.values()))
