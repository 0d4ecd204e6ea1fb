"""A worker of a campaign: prepares the launches of its jobs, and measures them when it is its turn."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from perfvec.arch.campaign import CampaignPlan, Job, Message
from perfvec.arch.contents import ContentCache
from perfvec.arch.measure import FailedLaunch
from perfvec.arch.session import Session
from perfvec.errors import OpenCLError, PerfVecError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from perfvec.arch.measure import Outcome
    from perfvec.arch.replay import HostBuffer
    from perfvec.launch import Launch

# Most launches of a turn: what is lost if the campaign ends before it.
_TURN_LAUNCHES = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    row: int
    launch: Launch
    contents: Mapping[int, HostBuffer]


def work(connection: Connection, running_since: Any, plan: CampaignPlan) -> None:
    """Take jobs until there are no more, or nobody gives any.

    Args:
        connection: To the campaign.
        running_since: Gets the time at which a kernel began, and 0 when it has ended.
        plan: How to measure.
    """
    # Drivers keep what they compiled on disk, where processes wait for each other; read when OpenCL is first asked.
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    os.environ["CUDA_MODULE_LOADING"] = "EAGER"  # not in a turn
    os.environ["POCL_CACHE_DIR"] = plan.cache_folder
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the campaign is over
        try:
            worker = _Worker(connection, running_since, plan)
        except PerfVecError as error:
            connection.send(Message(kind="broken", cause=str(error)))
            return
        worker.serve()


@final
class _Worker:
    def __init__(self, connection: Connection, running_since: Any, plan: CampaignPlan) -> None:
        def on_run(is_running: bool) -> None:
            running_since.value = time.monotonic() if is_running else 0.0

        self._connection = connection
        self._plan = plan
        self._session = Session(plan.device, plan.protocol, is_warm=False, on_run=on_run)
        self._cache = ContentCache(plan.host_bytes // 2)
        self._is_lost = False
        self._spent_s: defaultdict[str, float] = defaultdict(float)

    def serve(self) -> None:
        """Warm the device up, then do jobs."""
        self._in_turn(self._session.warm_up)
        while True:
            self._connection.send(Message(kind="idle"))
            job = self._connection.recv()
            if not isinstance(job, Job):
                return
            for prepared in self._prepared(job):
                self._in_turn(lambda prepared=prepared: self._measure(prepared))
                if self._is_lost:  # whatever comes next needs another process
                    return

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

    def _prepared(self, job: Job) -> Iterator[list[_Prepared]]:
        """Launches whose programs are compiled and whose contents are made, as many as a turn takes."""
        ready: list[_Prepared] = []
        blocks: dict[int, int] = {}
        for row, make in self._launches(job):
            self._connection.send(Message(kind="begin", row=row))
            try:
                launch = make()
                contents = self._prepare(launch)
            except Exception as error:  # whatever is wrong with one launch, the others are still wanted
                self._tell(row, self._failed(error))
                continue
            ready.append(_Prepared(row=row, launch=launch, contents=contents))
            blocks.update((id(_base(held.block)), _base(held.block).nbytes) for held in contents.values())
            if len(ready) >= _TURN_LAUNCHES or sum(blocks.values()) > self._plan.host_bytes // 2:
                self._connection.send(Message(kind="begin"))
                yield ready
                ready, blocks = [], {}
        self._connection.send(Message(kind="begin"))
        if ready:
            yield ready

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

    def _prepare(self, launch: Launch) -> Mapping[int, HostBuffer]:
        self._session.check_memory(launch)
        with self._spending("compiling"):
            self._session.compile(launch)
        with self._spending("contents"):
            contents = self._cache.contents(launch)
            if not self._plan.is_in_rounds:  # the memory of a CPU is the host's
                self._session.stage(contents, most_bytes=self._plan.device_bytes // 2)
        if self._plan.is_in_rounds:
            with self._spending("compiling"):  # PoCL does it when a kernel first runs
                self._session.rehearse(launch, contents)
        return contents

    # ---- measuring ----------------------------------------------------------------------------------------------

    def _measure(self, prepared: list[_Prepared]) -> None:
        self._session.wake()
        for item in prepared:
            if time.time() > self._plan.deadline_s:
                return
            self._connection.send(Message(kind="begin", row=item.row))
            try:
                outcome: Outcome = self._session.measure(
                    item.launch, item.contents, budget_s=self._plan.budget_s, is_awake=True
                )
            except Exception as error:
                outcome = self._failed(error)
            self._tell(item.row, outcome)
            self._is_lost = isinstance(outcome, FailedLaunch) and not self._session.is_alive()
            if self._is_lost:
                return
            self._session.free_unused(self._plan.device_bytes // 2)

    def _tell(self, row: int, outcome: Outcome) -> None:
        self._connection.send(Message(kind="outcome", row=row, outcome=outcome))

    def _failed(self, error: Exception) -> FailedLaunch:
        name = type(error).__name__ if isinstance(error, PerfVecError) else OpenCLError.__name__
        return FailedLaunch(digest="", device=self._session.key, reason=f"{name}: {error}")


def _base(block: Any) -> Any:
    return block if block.base is None else block.base
