"""Launches for many outside sources at once, with what came of each kernel, counted by reason."""

from __future__ import annotations

import errno
import math
import signal
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, final

from perfvec.corpus.completion import Completed, complete
from perfvec.corpus.inference import DEFAULT_GLOBAL_SIZES, InferredLaunch, check_run, infer_launches
from perfvec.corpus.outside import OutsideSource
from perfvec.errors import (
    BarrierDivergenceError,
    BudgetError,
    LaunchError,
    MemoryAccessError,
    PerfVecError,
    SourceError,
    UnsupportedError,
)
from perfvec.program.frontend import compile_source, kernel_names

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

OK = "runs within its buffers"
NO_KERNEL = "source without a kernel"
NOT_COMPILED = "source does not compile"
TOO_MUCH_MEMORY = "needs too much memory here"
TOO_LONG = "no answer in time"
CRASHES = "ends its process"
UNEXPECTED = "another error"
# What went wrong, by error; the first that fits.
REASONS: tuple[tuple[type[PerfVecError], str], ...] = (
    (SourceError, NOT_COMPILED),
    (MemoryAccessError, "leaves its buffers"),
    (BarrierDivergenceError, "not all work-items reach a barrier"),
    (BudgetError, "does not end within the budget"),
    (UnsupportedError, "not supported by the executor"),
    (LaunchError, "no launch of an allowed size"),
    (PerfVecError, UNEXPECTED),
)
_VERIFIED_BUDGET = 60_000_000
# What a process that infers may take: memory, and time of the processor for a kernel.
_MOST_PROCESS_BYTES = 8 << 30
LIMIT_S = 30.0
_SILENT_RATIO = 10.0  # wall time after which it is ended whatever it does, in such limits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a kernel, or of a source without one.

    Attributes:
        source: The source's name.
        kernel_name: The kernel; "" where the source has none or does not compile.
        reason: `OK` or one of the reasons above.
        cause: The error's message; "" where there is none.
        wall_s: How long it took.
        inferred: The launch; None where there is none.
        added: What the source lacked and was given to compile, in words.
    """

    source: str
    kernel_name: str
    reason: str
    cause: str
    wall_s: float
    inferred: InferredLaunch | None
    added: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A source, and how to treat it.

    Attributes:
        number: Its place among the sources.
        source: It.
        global_sizes: Of the launches.
        verified_groups: See `survey`.
        completed_from: See `survey`.
        done: Kernels of which an outcome is known.
    """

    number: int
    source: OutsideSource
    global_sizes: tuple[tuple[int, ...], ...]
    verified_groups: int
    completed_from: tuple[Path, ...] | None
    done: tuple[str, ...] = ()


def survey(
    sources: Iterable[OutsideSource],
    *,
    global_sizes: tuple[tuple[int, ...], ...] = DEFAULT_GLOBAL_SIZES,
    verified_groups: int = 0,
    num_processes: int = 0,
    completed_from: Sequence[Path] | None = None,
    limit_s: float = LIMIT_S,
) -> Iterator[Outcome]:
    """Infer a launch of every kernel.

    Args:
        sources: Where the kernels are.
        global_sizes: Work-items, by the number of dimensions that a kernel looks at.
        verified_groups: Work-groups that are run of each launch once more, besides those of the inference.
        num_processes: Processes that share the work; what one source does to its process, by memory, time or a
            crash, costs that source alone. With 0 all is done in this process, without such limits.
        completed_from: Folders where headers and functions are looked for that sources lack, which get macros that
            they lack as well (see `perfvec.corpus.completion`); None takes sources as they are.
        limit_s: Time of the processor that a process may take for a kernel.

    Yields:
        One outcome for each kernel, and for each source that has none or does not compile; sources in order.
    """
    jobs = [
        _Job(
            number=number,
            source=source,
            global_sizes=global_sizes,
            verified_groups=verified_groups,
            completed_from=None if completed_from is None else tuple(completed_from),
        )
        for number, source in enumerate(sources)
    ]
    if num_processes:
        yield from _Crew(jobs, num_processes, limit_s).run()
        return
    for job in jobs:
        yield from (message for message in _outcomes(job) if isinstance(message, Outcome))


def count_reasons(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Outcomes by reason, those that run first, the others by number."""
    counts = Counter(outcome.reason for outcome in outcomes)
    return {OK: counts.pop(OK, 0), **dict(counts.most_common())}


def _outcomes(job: _Job) -> Iterator[str | Outcome]:
    """The name of each kernel when it is begun, and its outcome."""
    source, start = job.source, time.perf_counter()
    try:
        if job.completed_from is None:
            completed = Completed(source=source, module=compile_source(source.text, source.build_options, source.name))
        else:
            completed = complete(source, job.completed_from)
        names = kernel_names(completed.module)
    except (PerfVecError, MemoryError, OSError) as error:
        yield _failed(source.name, "", error, start)
        return
    if not names:
        wall_s = time.perf_counter() - start
        yield Outcome(source=source.name, kernel_name="", reason=NO_KERNEL, cause="", wall_s=wall_s, inferred=None)
    for name in names:
        if name not in job.done:
            yield name
            yield replace(_outcome(job, completed, name), added=completed.added)


def _outcome(job: _Job, completed: Completed, name: str) -> Outcome:
    start = time.perf_counter()
    source = completed.source
    try:
        (inferred,) = infer_launches(
            source.text,
            name,
            default_sizes=job.global_sizes,
            build_options=source.build_options,
            source_name=source.name,
        )
        if job.verified_groups:
            check_run(inferred.launch, most_groups=job.verified_groups, budget=_VERIFIED_BUDGET)
    except (PerfVecError, MemoryError, OSError) as error:
        return _failed(source.name, name, error, start)
    wall_s = time.perf_counter() - start
    return Outcome(source=source.name, kernel_name=name, reason=OK, cause="", wall_s=wall_s, inferred=inferred)


def _failed(source: str, kernel_name: str, error: Exception, start: float) -> Outcome:
    is_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    reason = next((text for kind, text in REASONS if isinstance(error, kind)), UNEXPECTED)
    return Outcome(
        source=source,
        kernel_name=kernel_name,
        reason=TOO_MUCH_MEMORY if is_memory else reason,
        cause=str(error) or type(error).__name__,
        wall_s=time.perf_counter() - start,
        inferred=None,
    )


# ---- processes --------------------------------------------------------------------------------------------------

# The name of the kernel that is begun; an outcome; None at the end of a source.
_Message: TypeAlias = "str | Outcome | None"


def _serve(connection: Connection, limit_s: float) -> None:
    """Work of a process: take jobs, send messages."""
    with suppress(EOFError, BrokenPipeError):  # nobody wants more
        while True:
            job = connection.recv()
            _limit_process(limit_s)
            for message in _outcomes(job):
                connection.send(message)
                _limit_process(limit_s)
            connection.send(None)


def _limit_process(limit_s: float) -> None:
    """Bound this process's memory, and its time of the processor from now on; more ends it by SIGXCPU."""
    try:
        import resource
    except ImportError:  # not everywhere
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_PROCESS_BYTES, _MOST_PROCESS_BYTES))
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + limit_s), most))


@final
@dataclass(slots=True, kw_only=True)
class _Worker:
    """A process as its parent sees it.

    Attributes:
        process: It.
        connection: To it.
        job: In its hands.
        kernel: Begun; "" while it compiles.
        since_s: `time.monotonic()` at which that began.
    """

    process: BaseProcess
    connection: Connection
    job: _Job | None = None
    kernel: str = ""
    since_s: float = field(default_factory=time.monotonic)


@final
class _Crew:
    """Processes that share sources, and are replaced when one of these ends or holds them."""

    def __init__(self, jobs: Sequence[_Job], num_processes: int, limit_s: float) -> None:
        self._jobs = deque(jobs)
        self._limit_s = limit_s
        self._found: dict[int, list[Outcome]] = {job.number: [] for job in jobs}
        self._is_over = dict.fromkeys(self._found, False)
        self._workers = [_hired(limit_s) for _ in range(min(num_processes, len(jobs)))]

    def run(self) -> Iterator[Outcome]:
        """Outcomes, sources in order."""
        following = 0
        try:
            while following in self._is_over:
                while self._is_over.get(following):
                    yield from self._found.pop(following)
                    following += 1
                self._direct()
                self._listen()
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.process.join()
                worker.connection.close()

    def _direct(self) -> None:
        for worker in self._workers:
            if worker.job is None and self._jobs:
                worker.job, worker.kernel, worker.since_s = self._jobs.popleft(), "", time.monotonic()
                worker.connection.send(worker.job)

    def _listen(self) -> None:
        by_connection = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(by_connection), timeout=1.0):
            worker = by_connection[connection]  # pyright: ignore[reportArgumentType]
            try:
                self._hear(worker, worker.connection.recv())
            except (EOFError, OSError):
                worker.process.join()
                is_late = worker.process.exitcode == -getattr(signal, "SIGXCPU", 0)
                cause = f"{self._limit_s:g} s of the processor" if is_late else f"exit code {worker.process.exitcode}"
                self._replace(worker, TOO_LONG if is_late else CRASHES, cause)
        for worker in list(self._workers):
            if worker.job is not None and time.monotonic() - worker.since_s > _SILENT_RATIO * self._limit_s:
                self._replace(worker, TOO_LONG, f"not done after {_SILENT_RATIO * self._limit_s:g} s")

    def _hear(self, worker: _Worker, message: _Message) -> None:
        assert worker.job is not None
        worker.since_s = time.monotonic()
        if message is None:
            self._is_over[worker.job.number] = True
            worker.job = None
        elif isinstance(message, Outcome):
            self._found[worker.job.number].append(message)
        else:
            worker.kernel = message

    def _replace(self, worker: _Worker, reason: str, cause: str) -> None:
        """End a process, note the kernel in its hands, and leave the others of its source to the next."""
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        self._workers[self._workers.index(worker)] = _hired(self._limit_s)
        job = worker.job
        if job is None:
            return
        wall_s = time.monotonic() - worker.since_s
        self._found[job.number].append(
            Outcome(
                source=job.source.name,
                kernel_name=worker.kernel,
                reason=reason,
                cause=cause,
                wall_s=wall_s,
                inferred=None,
            )
        )
        done = tuple(outcome.kernel_name for outcome in self._found[job.number])
        if worker.kernel:
            self._jobs.appendleft(replace(job, done=done))
        else:
            self._is_over[job.number] = True


def _hired(limit_s: float) -> _Worker:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, limit_s), daemon=True)
    process.start()
    there.close()
    return _Worker(process=process, connection=here)
