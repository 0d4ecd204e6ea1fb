"""Launches for tests: from a source in the test, and the smallest of each kernel of the suites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from perfvec.arguments import Argument, parse_argument
from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.launch import Launch
from perfvec.program import machine_code
from perfvec.program.executor import Execution, compile_launch

Buffers = dict[int, NDArray[np.generic]]


def make_launch(
    source: str,
    *args: str | Argument,
    kernel_name: str = "k",
    global_size: int | tuple[int, ...] = 64,
    local_size: int | tuple[int, ...] = 32,
    global_offset: tuple[int, ...] = (),
    build_options: Sequence[str] = (),
) -> Launch:
    """A launch of a kernel called `k`: two work-groups of 32 unless told."""
    return Launch(
        source=source,
        kernel_name=kernel_name,
        args=tuple(parse_argument(arg, position=i) if isinstance(arg, str) else arg for i, arg in enumerate(args)),
        global_size=(global_size,) if isinstance(global_size, int) else global_size,
        local_size=(local_size,) if isinstance(local_size, int) else local_size,
        global_offset=global_offset,
        build_options=tuple(build_options),
    )


def execute(launch: Launch, *, optimise: bool = True, budget: int = 20_000_000) -> Buffers:
    """Run all work-groups in the executor; contents of the buffers afterwards, by argument position."""
    execution = Execution(compile_launch(launch, optimise=optimise), launch, budget=budget)
    execution.run(range(execution.num_work_groups))
    return dict(execution.results())


@contextmanager
def quick_machine_code() -> Iterator[None]:
    """Leave LLVM's code generator unoptimised: it takes most of the time that a short launch needs."""
    level, machine_code.CODE_LEVEL = machine_code.CODE_LEVEL, 0
    try:
        yield
    finally:
        machine_code.CODE_LEVEL = level


def smallest_launches() -> list[SuiteLaunch]:
    """The first launch of each kernel: suites list them from small to large."""
    first: dict[tuple[str, str], SuiteLaunch] = {}
    for entry in load_suites():
        first.setdefault((entry.suite, entry.kernel), entry)
    return list(first.values())
