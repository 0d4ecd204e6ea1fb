"""Time many launches on a device: data and programs made ahead, failures kept apart, no launch timed twice.

`perfvec.arch.session` times one launch, `perfvec.arch.measured` is the table that the times go into.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, final

from perfvec.arch.measured import MeasuredTime
from perfvec.arch.opencl import LiveDevice
from perfvec.arch.replay import HostBuffer, host_buffers, host_bytes
from perfvec.arch.session import Protocol, Session
from perfvec.errors import ConfigError
from perfvec.launch import Launch

logger = logging.getLogger(__name__)

# Host bytes of launches whose data waits for the device.
_MAX_WAITING_BYTES = 4 << 30
_WAITING_PER_WORKER = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FailedLaunch:
    """A launch that could not be timed.

    Attributes:
        digest: `Launch.digest`.
        device: The device's name in tables.
        reason: The error's name and message.
    """

    digest: str
    device: str
    reason: str


Outcome: TypeAlias = MeasuredTime | FailedLaunch
# What a measuring loop says: the digest of the launch that it begins, then its outcome.
Tell: TypeAlias = Callable[["str | Outcome"], None]
Contents: TypeAlias = "dict[int, HostBuffer]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureReport:
    """What became of the launches.

    Attributes:
        times: Measured launches, in the order in which they were timed.
        failures: Launches that could not be timed.
        num_skipped: Launches that were known before, or repeated another.
        num_left: Launches that the total budget left out.
    """

    times: tuple[MeasuredTime, ...]
    failures: tuple[FailedLaunch, ...]
    num_skipped: int
    num_left: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a measuring process needs to know besides the launches.

    Attributes:
        device: Where to measure.
        budget_s_per_launch: Wall time that the repeats of a launch may take.
        deadline_s: `time.time()` after which no launch is begun; processes share that clock.
        protocol: When a time counts as measured.
        num_workers: Threads that work ahead; with 0, data and program are made at the launch's own turn.
        hang_s: Silence after which a child process counts as hung.
    """

    device: LiveDevice
    budget_s_per_launch: float
    deadline_s: float
    protocol: Protocol
    num_workers: int
    hang_s: float


def measure_many(
    launches: Sequence[Launch],
    device: LiveDevice,
    *,
    budget_s_per_launch: float = 0.3,
    total_budget_s: float = float("inf"),
    on_result: Callable[[Outcome], None] | None = None,
    skip: Collection[str] = (),
    protocol: Protocol | None = None,
    num_workers: int = 4,
    is_isolated: bool = False,
    hang_s: float = 120.0,
) -> MeasureReport:
    """Time launches one after another.

    Threads generate input data and compile programs ahead. On a CPU device they do so in turns with the measuring,
    because they would take the cores that are being measured. A launch that fails is reported and passed over.

    Args:
        launches: What to time; launches with the same source and options share a program, so keep them together.
        device: Where (see `perfvec.arch.opencl.choose_device`).
        budget_s_per_launch: Wall time that the repeats of a launch may take; over 0.
        total_budget_s: Wall time after which no further launch is begun; over 0.
        on_result: Called with each outcome as it comes, in this thread; write the table here now and then.
        skip: Digests of launches that are known already.
        protocol: When a time counts as measured.
        num_workers: Threads that work ahead; 1 or more.
        is_isolated: Measure in a child process. A kernel that reaches outside its buffers ends the process on CPU
            devices, and some drivers recover only in a new one; the launch is then reported and the rest goes on. The
            calling program must be importable (`if __name__ == "__main__"`).
        hang_s: Silence after which a child process is ended, and its launch reported; over 0.

    Raises:
        ConfigError: A budget or the number of workers is not over 0.
        OpenCLError: The device cannot be used, or fails again and again.
    """
    if min(budget_s_per_launch, total_budget_s, num_workers, hang_s) <= 0:
        raise ConfigError(
            f"budget_s_per_launch={budget_s_per_launch}, total_budget_s={total_budget_s}, num_workers={num_workers}, "
            f"hang_s={hang_s}; allowed are numbers over 0"
        )
    known = frozenset(skip)
    pending = {digest: launch for launch in launches if (digest := launch.digest) not in known}
    plan = Plan(
        device=device,
        budget_s_per_launch=budget_s_per_launch,
        deadline_s=time.time() + total_budget_s,
        protocol=protocol or Protocol(),
        num_workers=num_workers,
        hang_s=hang_s,
    )
    times: list[MeasuredTime] = []
    failures: list[FailedLaunch] = []

    def collect(message: str | Outcome) -> None:
        if isinstance(message, str):
            return
        if isinstance(message, MeasuredTime):
            times.append(message)
        else:
            logger.info("launch %s failed on %s: %s", message.digest, message.device, message.reason)
            failures.append(message)
        if on_result is not None:
            on_result(message)

    if pending and is_isolated:
        from perfvec.arch.isolated import measure_in_children

        measure_in_children(pending, plan, collect)
    elif pending:
        measure_here(pending, plan, collect)
    return MeasureReport(
        times=tuple(times),
        failures=tuple(failures),
        num_skipped=len(launches) - len(pending),
        num_left=len(pending) - len(times) - len(failures),
    )


def measure_here(pending: Mapping[str, Launch], plan: Plan, tell: Tell) -> None:
    """Time launches in this process.

    Args:
        pending: Launches by digest.
        plan: How.
        tell: Hears the digest of each launch as it is begun, and then its outcome.

    Raises:
        OpenCLError: The device cannot be used.
    """
    station = _Station(plan)
    for digest, launch, make in _made_ahead(pending, station.make, plan):
        if time.time() > plan.deadline_s:
            return
        tell(digest)
        tell(station.time(digest, launch, make))


@final
class _Station:
    """A session that is replaced when a launch has broken it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._session = Session(plan.device, plan.protocol)
        self._is_suspect = False

    def make(self, launch: Launch) -> Contents:
        """Compile the program, and generate the data; called from worker threads."""
        self._session.programs.get(launch)
        return host_buffers(launch)

    def time(self, digest: str, launch: Launch, make: Callable[[], Contents]) -> Outcome:
        """Time a launch, or say why not."""
        if self._is_suspect and not self._session.is_alive():
            self._session = Session(self._plan.device, self._plan.protocol)
        self._is_suspect = False
        try:
            return self._session.measure(launch, make(), budget_s=self._plan.budget_s_per_launch)
        except Exception as error:  # whatever is wrong with one launch, the others are still wanted
            self._is_suspect = True
            return FailedLaunch(digest=digest, device=self._session.key, reason=f"{type(error).__name__}: {error}")


def _made_ahead(
    pending: Mapping[str, Launch], make: Callable[[Launch], Contents], plan: Plan
) -> Iterator[tuple[str, Launch, Callable[[], Contents]]]:
    """Launches in order, each with a call that gives its data, made meanwhile by worker threads."""
    if plan.num_workers == 0:
        yield from ((digest, launch, partial(make, launch)) for digest, launch in pending.items())
        return
    source = deque(pending.items())
    waiting: deque[tuple[str, Launch, Future[Contents]]] = deque()
    is_in_turns = plan.device.type == "cpu"
    pool = ThreadPoolExecutor(plan.num_workers)
    try:
        while source or waiting:
            if not waiting or not is_in_turns:
                num_bytes = sum(host_bytes(launch) for _, launch, _ in waiting)
                while source and len(waiting) < _WAITING_PER_WORKER * plan.num_workers:
                    num_bytes += host_bytes(source[0][1])
                    if waiting and num_bytes > _MAX_WAITING_BYTES:
                        break
                    digest, launch = source.popleft()
                    waiting.append((digest, launch, pool.submit(make, launch)))
            if is_in_turns:
                wait([future for _, _, future in waiting])
            digest, launch, future = waiting.popleft()
            yield digest, launch, future.result
            del future  # its data may be gigabytes
    finally:
        pool.shutdown(cancel_futures=True)
