"""Launches for many outside sources at once, with what came of each kernel, counted by reason."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import final

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

OK = "runs within its buffers"
NO_KERNEL = "source without a kernel"
NOT_COMPILED = "source does not compile"
# What went wrong, by error; the first that fits.
REASONS: tuple[tuple[type[PerfVecError], str], ...] = (
    (SourceError, NOT_COMPILED),
    (MemoryAccessError, "leaves its buffers"),
    (BarrierDivergenceError, "not all work-items reach a barrier"),
    (BudgetError, "does not end within the budget"),
    (UnsupportedError, "not supported by the executor"),
    (LaunchError, "no launch of an allowed size"),
    (PerfVecError, "another error"),
)
_VERIFIED_BUDGET = 60_000_000


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
    """

    source: str
    kernel_name: str
    reason: str
    cause: str
    wall_s: float
    inferred: InferredLaunch | None


def survey(
    sources: Iterable[OutsideSource],
    *,
    global_sizes: tuple[tuple[int, ...], ...] = DEFAULT_GLOBAL_SIZES,
    verified_groups: int = 0,
    num_processes: int = 1,
) -> Iterator[Outcome]:
    """Infer a launch of every kernel.

    Args:
        sources: Where the kernels are.
        global_sizes: Work-items, by the number of dimensions that a kernel looks at.
        verified_groups: Work-groups that are run of each launch once more, besides those of the inference.
        num_processes: Processes that share the work.

    Yields:
        One outcome for each kernel, and for each source that has none or does not compile; sources in order.
    """
    jobs = [(source, global_sizes, verified_groups) for source in sources]
    if num_processes == 1:
        for job in jobs:
            yield from _outcomes(job)
        return
    with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
        for outcomes in pool.map(_outcomes, jobs):
            yield from outcomes


def count_reasons(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Outcomes by reason, those that run first, the others by number."""
    counts = Counter(outcome.reason for outcome in outcomes)
    return {OK: counts.pop(OK, 0), **dict(counts.most_common())}


def _outcomes(job: tuple[OutsideSource, tuple[tuple[int, ...], ...], int]) -> list[Outcome]:
    source, global_sizes, verified_groups = job
    start = time.perf_counter()
    try:
        names = kernel_names(compile_source(source.text, source.build_options, source.name))
    except PerfVecError as error:
        return [_failed(source.name, "", error, start)]
    if not names:
        wall_s = time.perf_counter() - start
        return [Outcome(source=source.name, kernel_name="", reason=NO_KERNEL, cause="", wall_s=wall_s, inferred=None)]
    return [_outcome(source, name, global_sizes, verified_groups) for name in names]


def _outcome(
    source: OutsideSource, name: str, global_sizes: tuple[tuple[int, ...], ...], verified_groups: int
) -> Outcome:
    start = time.perf_counter()
    try:
        (inferred,) = infer_launches(
            source.text,
            name,
            default_sizes=global_sizes,
            build_options=source.build_options,
            source_name=source.name,
        )
        if verified_groups:
            check_run(inferred.launch, most_groups=verified_groups, budget=_VERIFIED_BUDGET)
    except PerfVecError as error:
        return _failed(source.name, name, error, start)
    wall_s = time.perf_counter() - start
    return Outcome(source=source.name, kernel_name=name, reason=OK, cause="", wall_s=wall_s, inferred=inferred)


def _failed(source: str, kernel_name: str, error: PerfVecError, start: float) -> Outcome:
    reason = next(text for kind, text in REASONS if isinstance(error, kind))
    wall_s = time.perf_counter() - start
    return Outcome(
        source=source, kernel_name=kernel_name, reason=reason, cause=str(error), wall_s=wall_s, inferred=None
    )
