"""Time launches on a device of this machine: one, or whole suites in a campaign that may be broken off."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from perfvec import errors
from perfvec.arch.measure import FailedLaunch, Outcome, measure_many
from perfvec.arch.measured import MeasuredTable, MeasuredTime
from perfvec.arch.opencl import choose_device, device_key
from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.errors import ConfigError, FormatError, OpenCLError, PerfVecError
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perfvec.arch.opencl import LiveDevice
    from perfvec.arch.session import Protocol
    from perfvec.launch import Launch

LAUNCH_BUDGET_S = 1.0
CAMPAIGN_BUDGET_S = 0.3
SAVE_EVERY_S = 30.0


def measure_launch(
    launch: Launch,
    *,
    opencl_device: int | None = None,
    budget_s: float = LAUNCH_BUDGET_S,
    protocol: Protocol | None = None,
    is_isolated: bool = True,
) -> MeasuredTime:
    """Time one launch.

    Args:
        launch: What to time.
        opencl_device: Number of the OpenCL device; the first GPU, accelerator or CPU where it is None.
        budget_s: Wall time that the repeats may take; over 0.
        protocol: When a time counts as measured.
        is_isolated: Measure in a child process, which a faulty kernel may crash. The calling program must then be
            importable (`if __name__ == "__main__"`).

    Raises:
        OpenCLError: There is no such device, or the launch failed on it.
        PerfVecError: The source does not compile, or the arguments do not fit.
    """
    device = choose_device(opencl_device)
    report = measure_many(
        [launch], device, budget_s_per_launch=budget_s, protocol=protocol, num_workers=1, is_isolated=is_isolated
    )
    if report.failures:
        raise _error(report.failures[0])
    return report.times[0]


def _error(failure: FailedLaunch) -> PerfVecError:
    """The error that a failure's text came from."""
    name, _, message = failure.reason.partition(": ")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, PerfVecError):
        return kind(message)
    return OpenCLError(f"the launch failed on {failure.device}: {failure.reason}")


# ---- campaigns --------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSummary:
    """What a campaign came to.

    Attributes:
        device: The device's name in tables.
        num_launches: Launches of the suites.
        num_measured: Measured now.
        num_known: In the table before.
        num_failed: Could not be timed.
        num_left: Not begun when the time was up.
        num_kernels: Kernels with a time in the table.
        num_all_kernels: Kernels of the suites.
        wall_s: How long it took.
        busy_share: Share of that in which the device ran the launches.
        failures: How often each reason, the most frequent first; with a launch as an example.
    """

    device: str
    num_launches: int
    num_measured: int
    num_known: int
    num_failed: int
    num_left: int
    num_kernels: int
    num_all_kernels: int
    wall_s: float
    busy_share: float
    failures: tuple[tuple[str, int, str], ...]


def measure_suites(
    out_path: str | Path,
    device: LiveDevice,
    *,
    total_budget_s: float,
    limit: int | None = None,
    launches: Sequence[SuiteLaunch] | None = None,
    budget_s_per_launch: float = CAMPAIGN_BUDGET_S,
    protocol: Protocol | None = None,
    is_isolated: bool = True,
    on_progress: OnProgress = silent,
) -> CampaignSummary:
    """Time the launches of all suites that the table lacks, and write the table now and then.

    The order goes round all kernels, so that a campaign that is broken off covers them evenly. A killed campaign
    loses the launches of the last half minute.

    Args:
        out_path: Table of measured times; gets the new ones added to those it has.
        device: Where to measure.
        total_budget_s: Wall time after which no launch is begun.
        limit: Most launches to measure; None for all.
        launches: What to time; all shipped suites where it is None.
        budget_s_per_launch: Wall time that the repeats of a launch may take.
        protocol: When a time counts as measured.
        is_isolated: Measure in a child process.
        on_progress: Hears how far it is.

    Raises:
        ConfigError: A budget or the limit is not over 0.
        FormatError: The table's folder does not exist, or the table is damaged.
        OpenCLError: The device cannot be used.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit={limit}; allowed are whole numbers over 0")
    entries = in_rounds(load_suites() if launches is None else launches)
    keeper = _Keeper(path=Path(out_path))
    key = device_key(device)
    known = keeper.digests(key)
    pending = [entry for entry in entries if entry.launch.digest not in known][:limit]
    names = {entry.launch.digest: entry.name for entry in entries}
    begun = time.perf_counter()
    num_done = itertools.count(1)

    def keep(outcome: Outcome) -> None:
        if isinstance(outcome, MeasuredTime):
            keeper.add(replace(outcome, name=names[outcome.digest]))
        on_progress("measuring", next(num_done), len(pending))

    with keeper.saving():
        report = measure_many(
            [entry.launch for entry in pending],
            device,
            budget_s_per_launch=budget_s_per_launch,
            total_budget_s=total_budget_s,
            on_result=keep,
            protocol=protocol,
            is_isolated=is_isolated,
        )
    wall_s = time.perf_counter() - begun
    measured = keeper.digests(key)
    return CampaignSummary(
        device=key,
        num_launches=len(entries),
        num_measured=len(report.times),
        num_known=len(entries) - len({entry.launch.digest for entry in entries} - known),
        num_failed=len(report.failures),
        num_left=report.num_left,
        num_kernels=len({(entry.suite, entry.kernel) for entry in entries if entry.launch.digest in measured}),
        num_all_kernels=len({(entry.suite, entry.kernel) for entry in entries}),
        wall_s=wall_s,
        busy_share=sum(item.kernel_time_s * item.num_repeats for item in report.times) / wall_s,
        failures=_reasons(report.failures, names),
    )


def in_rounds(launches: Sequence[SuiteLaunch], *, seed: int = 0) -> list[SuiteLaunch]:
    """Launches in an order whose every beginning has about equally many of each kernel; the same order each time.

    Within a round, kernels of one source stand together, so that they share a compiled program.
    """
    by_kernel: dict[tuple[str, str, str], list[SuiteLaunch]] = defaultdict(list)
    for entry in launches:
        by_kernel[entry.suite, entry.launch.source_name, entry.kernel].append(entry)
    shuffled: list[list[SuiteLaunch]] = []
    for key in sorted(by_kernel):
        # Seeded by name, so that one kernel's order does not hang on the others that there are.
        members = sorted(by_kernel[key], key=lambda entry: entry.name)
        random.Random(f"{seed}/{'/'.join(key)}").shuffle(members)
        shuffled.append(members)
    rounds = itertools.zip_longest(*shuffled)
    return [entry for entries in rounds for entry in entries if entry is not None]


def _reasons(failures: Sequence[FailedLaunch], names: dict[str, str]) -> tuple[tuple[str, int, str], ...]:
    # The first line without its numbers, so that equal faults count together.
    heads = {failure.digest: failure.reason.splitlines()[0][:120] for failure in failures}
    kinds = {digest: head.partition(":")[0] for digest, head in heads.items()}
    counts = Counter(kinds.values())
    examples = {kind: digest for digest, kind in reversed(kinds.items())}
    return tuple(
        (kind, count, f"{names[examples[kind]]}: {heads[examples[kind]]}") for kind, count in counts.most_common()
    )


@final
@dataclass(slots=True, kw_only=True)
class _Keeper:
    """A table on disk that grows, written at most every `SAVE_EVERY_S` and at the end."""

    path: Path
    table: MeasuredTable = field(init=False)
    new: list[MeasuredTime] = field(init=False, default_factory=list)
    saved_at: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not self.path.parent.is_dir():
            raise FormatError(f"cannot write {self.path}: the folder {self.path.parent} does not exist; create it")
        self.table = MeasuredTable.load(self.path) if self.path.exists() else MeasuredTable()

    def digests(self, device: str) -> frozenset[str]:
        """Launches that have a time on the device."""
        return frozenset(item.digest for item in (*self.table.times, *self.new) if item.device == device)

    def add(self, item: MeasuredTime) -> None:
        self.new.append(item)
        if time.monotonic() - self.saved_at > SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        if self.new:
            self.table = self.table.merge(self.new)
            self.new = []
            self.table.save(self.path)
        self.saved_at = time.monotonic()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Write what there is, however the block ends."""
        try:
            yield
        finally:
            self.save()
