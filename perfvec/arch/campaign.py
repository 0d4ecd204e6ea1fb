"""Time a hundred thousand launches on one device: worker processes prepare, one at a time measures.

Each worker takes jobs (launches of one kernel), compiles their programs, makes their contents and brings these to
the device. Then it asks for a turn, in which the device is its own. So compilers and data cost no time of the device,
no two kernels share it, and a launch that crashes or hangs its process costs that launch alone. On a CPU device the
workers would take the cores that are measured: there they work in rounds, in which all prepare for a while, each as
much as it can, then all measure, one after another.
"""

from __future__ import annotations

import logging
import math
import mmap
import multiprocessing
import os
import shutil
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

from perfvec.arch.measure import FailedLaunch, Outcome
from perfvec.arch.measured import MeasuredTime
from perfvec.arch.opencl import device_key
from perfvec.arch.session import Protocol
from perfvec.errors import (
    ConfigError,
    DeviceMemoryError,
    FormatError,
    KernelNotFoundError,
    LaunchError,
    OpenCLError,
    PerfVecError,
    SourceError,
)

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from perfvec.arch.opencl import LiveDevice
    from perfvec.launch import Launch

logger = logging.getLogger(__name__)

NEVER_ENDS = "runs past the watchdog"
CRASHES = "ends its process"
SILENT = "no answer from its process"
TOO_LARGE = "work-group too large for the kernel's registers"
# What went wrong, by error; the first that fits.
REASONS: tuple[tuple[type[PerfVecError], str], ...] = (
    (SourceError, "does not compile"),
    (KernelNotFoundError, "no such kernel in the source"),
    (LaunchError, "arguments do not fit the kernel"),
    (DeviceMemoryError, "needs more memory than the device has"),
    (OpenCLError, "refused by the device, or faults it"),
    (FormatError, "the device's timer does not resolve it"),
    (PerfVecError, "another error"),
)
UNEXPECTED = "another error"

CAMPAIGN_PROTOCOL = Protocol(min_repeats=2, max_repeats=40, warm_up_s=0.1)
CPU_PROTOCOL = replace(CAMPAIGN_PROTOCOL, min_repeats=3)
# Wall time that the repeats of a launch may take.
BUDGET_S = 0.006
# How long all prepare on a CPU, of the time that is left at most a share: measuring that takes about twice as long.
ROUND_S = 12.0
_ROUND_SHARE = 1 / 3
# Room for what drivers keep of the programs of a campaign.
_MOST_CACHE_BYTES = 4 << 30
# What a worker may hold for a round.
_MOST_ROUND_BYTES = 2 << 30
_CONTEXT = multiprocessing.get_context("spawn")  # a forked OpenCL driver does not work
_POLL_S = 0.05
_JOIN_S = 10.0
_MOST_FRUITLESS = 3
# A worker that says nothing for so long while it prepares a launch, or between two, hangs.
SILENCE_S = 90.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Launches that belong together, usually of one kernel: a worker takes them whole.

    Attributes:
        rows: A number for each launch, which outcomes carry.
        make: Makes the launches of rows, in a worker; it must travel there, so it is no lambda.
    """

    rows: tuple[int, ...]
    make: Callable[[Sequence[int]], Sequence[Launch]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPlan:
    """What a worker needs to know besides its jobs.

    Attributes:
        device: Where to measure.
        protocol: When a time counts as measured.
        budget_s: Wall time that the repeats of a launch may take.
        deadline_s: `time.time()` after which no launch is begun.
        is_in_rounds: No worker prepares while another measures; what was prepared is held on the device.
        host_bytes: Memory of the host that a worker may fill with contents.
        device_bytes: Memory of the device that a worker may keep.
        cache_folder: Where drivers may keep what they compiled.
    """

    device: LiveDevice
    protocol: Protocol
    budget_s: float
    deadline_s: float
    is_in_rounds: bool
    host_bytes: int
    device_bytes: int
    cache_folder: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignReport:
    """What a campaign came to.

    Attributes:
        num_measured: Launches measured.
        failures: Launches that could not be timed, by reason.
        num_left: Launches that the budget left out.
        num_workers: Workers at a time, at most.
        num_restarts: Workers that were replaced because a launch ended or hung them.
        wall_s: How long it took.
        busy_s: Of that, the device ran launches.
        turn_s: Of that, a worker had the device for itself: also restoring buffers, and the way there and back.
        worker_s: What the workers spent, by what they did: "compiling", "contents", "waiting" for a turn.
    """

    num_measured: int
    failures: Counter[str]
    num_left: int
    num_workers: int
    num_restarts: int
    wall_s: float
    busy_s: float
    turn_s: float
    worker_s: dict[str, float]


Kind: TypeAlias = Literal["ready", "begin", "outcome", "over", "idle", "broken"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a worker says.

    Attributes:
        kind: It is ready for a turn; begins a launch; has an outcome; its turn is over; it wants a job; cannot work.
        row: Of the launch.
        outcome: Of the launch.
        num_held: Launches that are prepared and wait for a turn.
        busy_s: Time in the turn in which the device ran launches.
        spent_s: What the worker spent since its last turn, by what it did.
        cause: Why it cannot work.
    """

    kind: Kind
    row: int = -1
    outcome: Outcome | None = None
    num_held: int = 0
    busy_s: float = 0.0
    spent_s: Mapping[str, float] = field(default_factory=dict)
    cause: str = ""


# What a worker is told: a job, that it may go on, or that there is no job now.
Order: TypeAlias = "Job | bool | None"


def reason_of(failure: FailedLaunch) -> str:
    """A failure's reason in few words, so that equal ones count together."""
    name = failure.reason.partition(":")[0]
    if name in (NEVER_ENDS, CRASHES, SILENT):
        return name
    if "INVALID_WORK_GROUP_SIZE" in failure.reason:
        return TOO_LARGE
    return next((words for kind, words in REASONS if _is_a(name, kind)), UNEXPECTED)


def _is_a(name: str, kind: type[PerfVecError]) -> bool:
    return name == kind.__name__ or any(_is_a(name, below) for below in kind.__subclasses__())


def run_campaign(
    jobs: Sequence[Job],
    device: LiveDevice,
    *,
    total_budget_s: float,
    on_outcome: Callable[[int, Outcome], None],
    num_workers: int | None = None,
    budget_s: float | None = None,
    protocol: Protocol | None = None,
    silence_s: float = SILENCE_S,
) -> CampaignReport:
    """Time launches in worker processes, in the order of the jobs.

    Args:
        jobs: What to time; no row twice.
        device: Where.
        total_budget_s: Wall time after which no launch is begun; over 0.
        on_outcome: Called with each row and its outcome, in this process; on a CPU when nothing is being measured.
        num_workers: Processes that prepare; one a core unless given.
        budget_s: Wall time that the repeats of a launch may take; `BUDGET_S` unless given.
        protocol: When a time counts as measured; `CAMPAIGN_PROTOCOL` unless given, on a CPU `CPU_PROTOCOL`.
        silence_s: How long a worker may prepare one launch.

    Raises:
        ConfigError: A budget or the number of workers is not over 0.
        OpenCLError: The device cannot be used.
    """
    is_cpu = device.type == "cpu"
    workers = _num_cores() if num_workers is None else num_workers
    budget = BUDGET_S if budget_s is None else budget_s
    if min(total_budget_s, workers, budget, silence_s) <= 0:
        raise ConfigError(
            f"total_budget_s={total_budget_s}, num_workers={workers}, budget_s={budget}, silence_s={silence_s}; "
            "allowed are numbers over 0"
        )
    most_bytes = _MOST_ROUND_BYTES if is_cpu else 1 << 62
    with tempfile.TemporaryDirectory(prefix="perfvec-", dir=_quick_folder(), ignore_cleanup_errors=True) as folder:
        plan = CampaignPlan(
            device=device,
            protocol=protocol or (CPU_PROTOCOL if is_cpu else CAMPAIGN_PROTOCOL),
            budget_s=budget,
            deadline_s=time.time() + total_budget_s,
            is_in_rounds=is_cpu,
            host_bytes=min(_host_memory() // (4 * workers), most_bytes),
            device_bytes=min(device.memory_bytes // (4 * workers), most_bytes),
            cache_folder=folder,
        )
        return _Crew(jobs, plan, workers, on_outcome, silence_s).run()


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quick_folder(folder: str = "/dev/shm") -> str | None:
    """A folder in memory where programs may be kept and loaded from, if there is one; None for the usual one.

    PoCL waits for the disk three times a kernel.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(mmap.PAGESIZE)
            mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
        return folder if shutil.disk_usage(folder).free >= _MOST_CACHE_BYTES else None
    except (AttributeError, OSError):  # no such folder, or none that code is loaded from
        return None


def _host_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not everywhere; enough for one worker
        return 4 << 30


State: TypeAlias = Literal["preparing", "waiting", "measuring", "resting", "idle"]


@final
@dataclass(slots=True, kw_only=True)
class _Worker:
    """A worker as its parent sees it.

    Attributes:
        process: It.
        connection: To it.
        running_since: `time.monotonic()` at which its kernel began; 0 while none runs.
        state: What it does; it starts by opening the device.
        left: Its rows without an outcome, and whose they are.
        num_held: Launches that it has prepared, when it asked for a job.
        begun: The launch in its hands, or -1.
        heard_s: When it was last heard.
    """

    process: BaseProcess
    connection: Connection
    running_since: Any
    state: State = "preparing"
    left: dict[int, Job] = field(default_factory=dict)
    num_held: int = 0
    begun: int = -1
    heard_s: float = field(default_factory=time.monotonic)


@final
class _Crew:
    """The workers, and who of them has the device."""

    def __init__(
        self,
        jobs: Sequence[Job],
        plan: CampaignPlan,
        num_workers: int,
        on_outcome: Callable[[int, Outcome], None],
        silence_s: float,
    ) -> None:
        self._jobs = deque(jobs)
        self._plan = plan
        self._num_workers = num_workers
        self._on_outcome = on_outcome
        self._silence_s = silence_s
        self._workers: list[_Worker] = []
        self._total = sum(len(job.rows) for job in jobs)
        self._failures: Counter[str] = Counter()
        self._worker_s: defaultdict[str, float] = defaultdict(float)
        self._num_measured = self._num_restarts = self._num_fruitless = 0
        self._busy_s = self._turn_s = self._turn_began_s = 0.0
        # Of a round: whether its turns are being taken, until when all prepare, and what is to be told when it is over.
        self._has_turns = False
        self._round_ends_s = _CONTEXT.Value("d", math.inf, lock=False)
        self._untold: list[tuple[int, Outcome]] = []

    def run(self) -> CampaignReport:
        """Work until all is done or the time is up."""
        begun = time.perf_counter()
        try:
            with self._dismissing():
                while self._goes_on():
                    self._staff()
                    self._direct()
                    self._listen()
                    self._watch()
        finally:
            self._tell_outcomes()
        num_failed = sum(self._failures.values())
        return CampaignReport(
            num_measured=self._num_measured,
            failures=self._failures,
            num_left=self._total - self._num_measured - num_failed,
            num_workers=self._num_workers,
            num_restarts=self._num_restarts,
            wall_s=time.perf_counter() - begun,
            busy_s=self._busy_s,
            turn_s=self._turn_s,
            worker_s=dict(self._worker_s),
        )

    def _is_late(self) -> bool:
        return time.time() > self._plan.deadline_s

    def _goes_on(self) -> bool:
        if any(worker.state == "measuring" for worker in self._workers):
            return True
        return not self._is_late() and (bool(self._jobs) or any(worker.left for worker in self._workers))

    # ---- directing ----------------------------------------------------------------------------------------------

    def _staff(self) -> None:
        wanted = min(self._num_workers, len(self._workers) + len(self._jobs))
        while len(self._workers) < wanted and not self._is_late():
            self._workers.append(_hire(self._plan, self._round_ends_s))

    def _direct(self) -> None:
        """Give the device to one that waits for it, and work to those that have none."""
        if self._is_late():
            return
        states: Counter[State] = Counter(worker.state for worker in self._workers)
        may_prepare, may_measure = True, not states["measuring"]
        if self._plan.is_in_rounds:
            may_prepare, may_measure = self._direct_round(states)
        for worker in list(self._workers):
            if worker.state == "waiting" and may_measure:
                self._turn_began_s = time.perf_counter()
                self._tell(worker, True, "measuring")
                may_measure = False
            elif worker.state == "resting" and may_prepare:
                self._tell(worker, True, "preparing")
            elif worker.state == "idle" and may_prepare and self._jobs:
                job = self._jobs.popleft()
                worker.left.update(dict.fromkeys(job.rows, job))
                self._tell(worker, job, "preparing")
            elif worker.state == "idle" and worker.num_held:
                self._tell(worker, None, "preparing")

    def _direct_round(self, states: Counter[State]) -> tuple[bool, bool]:
        """Whether workers may prepare, and one may measure."""
        if self._has_turns and not states["measuring"] + states["waiting"]:
            self._has_turns = False
            self._tell_outcomes()
            left_s = self._plan.deadline_s - time.time()
            self._round_ends_s.value = time.monotonic() + min(ROUND_S, _ROUND_SHARE * left_s)
        elif not self._has_turns:
            wants_job = any(worker.state == "idle" and (worker.num_held or self._jobs) for worker in self._workers)
            self._has_turns = states["waiting"] > 0 and not states["preparing"] and not wants_job
        return not self._has_turns, self._has_turns and not states["measuring"] + states["preparing"]

    def _tell(self, worker: _Worker, order: Order, state: State) -> None:
        worker.state, worker.heard_s = state, time.monotonic()
        try:
            worker.connection.send(order)
        except OSError:  # it has died, which is heard next
            logger.info("worker %s is gone", worker.process.pid)

    def _listen(self) -> None:
        by_connection = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(by_connection), timeout=_POLL_S):
            worker = by_connection[connection]  # pyright: ignore[reportArgumentType]
            try:
                while worker.connection.poll():
                    self._hear(worker, worker.connection.recv())
            except (EOFError, OSError):
                worker.process.join(_JOIN_S)
                self._bury(worker, f"{CRASHES}: exit code {worker.process.exitcode}; look for accesses outside buffers")

    def _hear(self, worker: _Worker, message: Message) -> None:
        worker.heard_s = time.monotonic()
        if message.kind == "begin":
            worker.begun = message.row
        elif message.kind == "outcome" and message.outcome is not None:
            self._note(worker, message.row, message.outcome)
        elif message.kind == "ready":
            worker.state = "waiting"
        elif message.kind == "over":
            worker.state = "resting"
            self._turn_ends()
            self._busy_s += message.busy_s
            for what, spent_s in message.spent_s.items():
                self._worker_s[what] += spent_s
        elif message.kind == "idle":
            worker.state, worker.num_held = "idle", message.num_held
        elif message.kind == "broken":
            raise OpenCLError(message.cause)

    def _note(self, worker: _Worker, row: int, outcome: Outcome) -> None:
        worker.begun = -1
        worker.left.pop(row)
        self._num_fruitless = 0
        if isinstance(outcome, MeasuredTime):
            self._num_measured += 1
        else:
            self._failures[reason_of(outcome)] += 1
            logger.info("launch %d failed on %s: %s", row, outcome.device, outcome.reason)
        self._untold.append((row, outcome))
        if not self._plan.is_in_rounds:
            self._tell_outcomes()

    def _tell_outcomes(self) -> None:
        untold, self._untold = self._untold, []
        for row, outcome in untold:
            self._on_outcome(row, outcome)

    def _turn_ends(self) -> None:
        self._turn_s += time.perf_counter() - self._turn_began_s

    # ---- watching -----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        now = time.monotonic()
        limit_s = self._plan.protocol.watchdog_s
        for worker in list(self._workers):
            since = worker.running_since.value
            # Workers that prepare on the cores of a CPU device run their kernels beside each other.
            slack = self._num_workers if worker.state == "preparing" and self._plan.is_in_rounds else 1
            if since and now - since > limit_s * slack:
                self._bury(worker, f"{NEVER_ENDS}: the kernel had not ended after {limit_s:g} s")
            elif worker.state in ("preparing", "measuring") and now - worker.heard_s > self._silence_s:
                self._bury(worker, f"{SILENT}: its compiler or its contents take over {self._silence_s:g} s")

    def _bury(self, worker: _Worker, cause: str) -> None:
        """End a worker, report the launch in its hands, and leave the rest of its job to others."""
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join(_JOIN_S)
        worker.connection.close()
        self._workers.remove(worker)
        if worker.state == "measuring":
            self._turn_ends()
        self._num_restarts += 1
        self._num_fruitless += 1
        if worker.begun >= 0:
            failure = FailedLaunch(digest="", device=device_key(self._plan.device), reason=cause)
            self._note(worker, worker.begun, failure)
        if self._num_fruitless > _MOST_FRUITLESS:
            raise OpenCLError(
                f"measuring on {self._plan.device.name} gave up: workers end without measuring anything ({cause}). "
                "Measure one launch with perfvec measure to see the error, or choose another device."
            )
        rows_by_job: defaultdict[int, list[int]] = defaultdict(list)
        for row, job in worker.left.items():
            rows_by_job[id(job)].append(row)
        jobs = {id(job): job for job in worker.left.values()}
        self._jobs.extendleft(replace(jobs[key], rows=tuple(rows)) for key, rows in rows_by_job.items())

    @contextmanager
    def _dismissing(self) -> Iterator[None]:
        """No worker outlives the block."""
        try:
            yield
        finally:
            for worker in self._workers:
                worker.process.kill()
            for worker in self._workers:
                worker.process.join(_JOIN_S)
                worker.connection.close()


def _hire(plan: CampaignPlan, round_ends_s: Any) -> _Worker:
    from perfvec.arch.campaign_worker import work

    here, there = _CONTEXT.Pipe()
    running_since = _CONTEXT.Value("d", 0.0, lock=False)
    process = _CONTEXT.Process(target=work, args=(there, running_since, round_ends_s, plan), daemon=True)
    process.start()
    there.close()
    return _Worker(process=process, connection=here, running_since=running_since)
