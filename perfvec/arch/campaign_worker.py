"""A worker of a campaign: prepares the launches of its jobs, and measures them when it is its turn."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.arch.campaign import CampaignPlan, Job, Message
from perfvec.arch.contents import ContentCache
from perfvec.arch.measure import FailedLaunch
from perfvec.arch.session import Session
from perfvec.errors import OpenCLError, PerfVecError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from perfvec.arch.measure import Outcome
    from perfvec.arch.replay import HostBuffer
    from perfvec.arch.session import HeldLaunch
    from perfvec.launch import Launch

# Most launches of a turn: what is lost if the campaign ends before it.
_TURN_LAUNCHES = 64
_NO_BLOCK = np.empty(0, np.uint8)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A launch that waits for its turn; of contents that are held on the device only the sizes are kept."""

    row: int
    launch: Launch
    contents: Mapping[int, HostBuffer]
    held: HeldLaunch | None = None


def work(connection: Connection, running_since: Any, round_ends_s: Any, plan: CampaignPlan) -> None:
    """Take jobs until there are no more, or nobody gives any.

    Args:
        connection: To the campaign.
        running_since: Gets the time at which a kernel began, and 0 when it has ended.
        round_ends_s: Has the time after which no further launch is prepared for this turn.
        plan: How to measure.
    """
    # Drivers keep what they compiled on disk, where processes wait for each other; read when OpenCL is first asked.
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    os.environ["CUDA_MODULE_LOADING"] = "EAGER"  # not in a turn
    os.environ["POCL_CACHE_DIR"] = plan.cache_folder
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the campaign is over
        try:
            worker = _Worker(connection, running_since, round_ends_s, plan)
        except PerfVecError as error:
            connection.send(Message(kind="broken", cause=str(error)))
            return
        worker.serve()


@final
class _Worker:
    def __init__(self, connection: Connection, running_since: Any, round_ends_s: Any, plan: CampaignPlan) -> None:
        def on_run(is_running: bool) -> None:
            running_since.value = time.monotonic() if is_running else 0.0

        self._connection = connection
        self._round_ends_s = round_ends_s
        self._plan = plan
        self._session = Session(plan.device, plan.protocol, is_warm=False, on_run=on_run)
        self._cache = ContentCache(plan.host_bytes // 2)
        self._is_lost = False
        self._spent_s: defaultdict[str, float] = defaultdict(float)

    def serve(self) -> None:
        """Warm the device up, then do jobs."""
        self._in_turn(self._session.warm_up)
        ready: list[_Prepared] = []
        while not self._is_lost:  # whatever comes next needs another process
            self._connection.send(Message(kind="idle", num_held=len(ready)))
            job = self._connection.recv()
            for row, make in self._launches(job) if isinstance(job, Job) else ():
                prepared = self._prepare(row, make)
                if prepared is not None:
                    ready.append(prepared)
                if ready and self._is_full(ready):
                    self._take_turn(ready)
                    if self._is_lost:
                        return
            if ready and not (self._plan.is_in_rounds and isinstance(job, Job)):
                self._take_turn(ready)

    def _is_full(self, ready: list[_Prepared]) -> bool:
        """Whether no more should be prepared for this turn."""
        if time.monotonic() > self._round_ends_s.value:
            return True
        if self._plan.is_in_rounds:
            return sum(item.held.num_bytes for item in ready if item.held is not None) > self._plan.device_bytes
        blocks = {id(_base(held.block)): _base(held.block).nbytes for item in ready for held in item.contents.values()}
        return len(ready) >= _TURN_LAUNCHES or sum(blocks.values()) > self._plan.host_bytes // 2

    def _take_turn(self, ready: list[_Prepared]) -> None:
        """Measure what is ready, and let go of it."""
        self._in_turn(lambda: self._measure(ready))
        ready.clear()
        if self._plan.is_in_rounds and not self._is_lost:
            self._session.free_unused(self._plan.device_bytes // 2)

    def _in_turn(self, action: Callable[[], None]) -> None:
        """Do something while the device is ours."""
        with self._spending("waiting"):
            self._connection.send(Message(kind="ready"))
            self._connection.recv()
        before = self._session.busy_s
        action()
        busy_s = self._session.busy_s - before
        self._connection.send(Message(kind="over", busy_s=busy_s, spent_s=dict(self._spent_s)))
        self._spent_s.clear()
        self._connection.recv()

    @contextmanager
    def _spending(self, what: str) -> Iterator[None]:
        """Note what the time of the block went into."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._spent_s[what] += time.perf_counter() - begun

    # ---- preparing ----------------------------------------------------------------------------------------------

    def _prepare(self, row: int, make: Callable[[], Launch]) -> _Prepared | None:
        """A launch whose program is compiled and whose contents are made; None where that failed."""
        self._connection.send(Message(kind="begin", row=row))
        try:
            prepared = self._made_ready(row, make())
        except Exception as error:  # whatever is wrong with one launch, the others are still wanted
            self._tell(row, self._failed(error))
            return None
        self._connection.send(Message(kind="begin"))
        return prepared

    def _launches(self, job: Job) -> Iterator[tuple[int, Callable[[], Launch]]]:
        try:
            launches = job.make(job.rows)
        except PerfVecError as error:
            failure = error

            def fail() -> Launch:
                raise failure

            yield from ((row, fail) for row in job.rows)
            return
        yield from ((row, lambda launch=launch: launch) for row, launch in zip(job.rows, launches, strict=True))

    def _made_ready(self, row: int, launch: Launch) -> _Prepared:
        self._session.check_memory(launch)
        with self._spending("compiling"):
            self._session.compile(launch)
        with self._spending("contents"):
            contents = self._cache.contents(launch)
            if not self._plan.is_in_rounds:
                self._session.stage(contents, most_bytes=self._plan.device_bytes // 2)
                return _Prepared(row=row, launch=launch, contents=contents)
            held = self._session.hold(launch, contents)
        with self._spending("compiling"):
            self._session.rehearse(launch, contents, held)
        sizes = {place: replace(buffer, block=_NO_BLOCK) for place, buffer in contents.items()}
        return _Prepared(row=row, launch=launch, contents=sizes, held=held)

    # ---- measuring ----------------------------------------------------------------------------------------------

    def _measure(self, prepared: list[_Prepared]) -> None:
        self._session.wake()
        for item in prepared:
            if time.time() > self._plan.deadline_s:
                return
            self._connection.send(Message(kind="begin", row=item.row))
            try:
                outcome: Outcome = self._session.measure(
                    item.launch, item.contents, budget_s=self._plan.budget_s, is_awake=True, held=item.held
                )
            except Exception as error:
                outcome = self._failed(error)
            self._tell(item.row, outcome)
            self._is_lost = isinstance(outcome, FailedLaunch) and not self._session.is_alive()
            if self._is_lost:
                return
            if not self._plan.is_in_rounds:
                self._session.free_unused(self._plan.device_bytes // 2)

    def _tell(self, row: int, outcome: Outcome) -> None:
        self._connection.send(Message(kind="outcome", row=row, outcome=outcome))

    def _failed(self, error: Exception) -> FailedLaunch:
        name = type(error).__name__ if isinstance(error, PerfVecError) else OpenCLError.__name__
        return FailedLaunch(digest="", device=self._session.key, reason=f"{name}: {error}")


def _base(block: Any) -> Any:
    return block if block.base is None else block.base
