"""Judges the tests of a file on an executor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias, final

from experiments.conformance.compare import find_mismatch
from experiments.conformance.executors import AbstractExecutor, AbstractProgram, BuildError, Traits
from experiments.conformance.reader import KernelTest, ProgramFile

Verdict: TypeAlias = Literal["passed", "failed", "skipped"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one test; `cause` says why it failed or was skipped."""

    test: str
    verdict: Verdict
    cause: str = ""


def names_of_tests(file: ProgramFile) -> list[str]:
    """Names of a file's tests; one that only builds has one test."""
    return [test.name for test in file.tests] or ["build"]


def judge(executor: AbstractExecutor, file: ProgramFile, *, first: int = 0) -> Iterator[Outcome | None]:
    """Run the tests of a file from number `first` on.

    Yields:
        None once the program is built, or refused; then the outcome of each test.
    """
    names = names_of_tests(file)[first:]
    traits = executor.traits()
    if reason := _reason_to_skip(file, traits):
        yield from (Outcome(test=name, verdict="skipped", cause=reason) for name in names)
        return
    try:
        program = executor.build(file)
    except BuildError as error:
        verdict: Verdict = "passed" if file.expects_build_failure else "failed"
        cause = "" if file.expects_build_failure else str(error)
        yield from (Outcome(test=name, verdict=verdict, cause=cause) for name in names)
        return
    except Exception as error:  # whatever it is, it is a failure of the executor under test
        yield from (Outcome(test=name, verdict="failed", cause=_describe(error)) for name in names)
        return
    yield None
    if not file.tests:
        is_refused = file.expects_build_failure
        cause = "the program builds; the compiler must refuse it" if is_refused else ""
        yield Outcome(test=names[0], verdict="failed" if is_refused else "passed", cause=cause)
    for test in file.tests[first:]:
        yield _judge_test(program, test, traits)


def _judge_test(program: AbstractProgram, test: KernelTest, traits: Traits) -> Outcome:
    if not test.kernel_name:
        return Outcome(test=test.name, verdict="skipped", cause="a template: it names no kernel")
    local_items = prod((test.local_size or (1,))[: test.dimensions])
    if local_items > traits.max_local_size:
        cause = f"the work-group of {local_items} work-items is larger than the device allows"
        return Outcome(test=test.name, verdict="skipped", cause=cause)
    try:
        found = program.run(test)
        wrong = [find_mismatch(output, found[output.index]) for output in test.outputs]
    except Exception as error:  # whatever it is, it is a failure of the executor under test
        return Outcome(test=test.name, verdict="failed", cause=_describe(error))
    if test.expects_failure:
        cause = "" if all(wrong) else "the results are those that must not come out"
    else:
        cause = "; ".join(text for text in wrong if text)
    return Outcome(test=test.name, verdict="failed" if cause else "passed", cause=cause)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _reason_to_skip(file: ProgramFile, traits: Traits) -> str:
    if file.version_min > traits.version:
        return f"needs OpenCL C {file.version_min / 10}; the device has {traits.version / 10}"
    if file.device_pattern and not re.search(file.device_pattern, traits.name):
        return f"is for devices called {file.device_pattern}"
    if missing := sorted(set(file.extensions) - traits.extensions):
        return f"needs {', '.join(missing)}"
    return "needs images" if file.needs_images and not traits.has_images else ""
