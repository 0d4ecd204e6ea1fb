"""Measure in child processes: a launch that crashes or hangs the process costs that launch alone."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from perfvec.arch.measure import FailedLaunch, Outcome, Plan, Tell, measure_here
from perfvec.arch.opencl import device_key
from perfvec.errors import OpenCLError, PerfVecError
from perfvec.launch import Launch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# After a crash so many launches for each worker are made one at a time: a compiler that crashed ahead of its turn is
# found out.
_CAREFUL_PER_WORKER = 3
_MAX_FRUITLESS = 3
_JOIN_S = 10.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How a child ended: the launch in its hands, or "", and why it stopped, "" where it was done."""

    begun: str = ""
    cause: str = ""


def measure_in_children(pending: Mapping[str, Launch], plan: Plan, tell: Tell) -> None:
    """Time launches in a child process, and in another one whenever it ends before its time.

    A child that works ahead may crash over a launch whose turn has not come. So the next child takes the launches one
    at a time, and whatever crashes that one is reported.

    Args:
        pending: Launches by digest.
        plan: How.
        tell: Hears outcomes.

    Raises:
        OpenCLError: Children end again and again without measuring anything.
    """
    left = dict(pending)
    is_careful = False
    num_fruitless = 0

    def hear(outcome: Outcome) -> None:
        del left[outcome.digest]
        tell(outcome)

    while left and time.time() < plan.deadline_s:
        num_before = len(left)
        batch_size = _CAREFUL_PER_WORKER * plan.num_workers if is_careful else len(left)
        batch = dict(itertools.islice(left.items(), batch_size))
        end = _run_child(batch, replace(plan, num_workers=0) if is_careful else plan, hear)
        if end.begun and is_careful:
            hear(FailedLaunch(digest=end.begun, device=device_key(plan.device), reason=end.cause))
        is_careful = bool(end.cause) and not is_careful
        num_fruitless = num_fruitless + 1 if len(left) == num_before else 0
        if num_fruitless >= _MAX_FRUITLESS:
            raise OpenCLError(
                f"measuring on {plan.device.name} gave up: {end.cause}. Measure one launch without is_isolated to see "
                "the error, or choose another device."
            )


def _run_child(batch: Mapping[str, Launch], plan: Plan, hear: Callable[[Outcome], None]) -> _End:
    """Let a child measure launches, and pass its outcomes on, until it is done, dead or silent."""
    context = multiprocessing.get_context("spawn")  # a forked OpenCL driver does not work
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, batch, plan), daemon=True)
    process.start()
    sender.close()
    begun = ""
    has_ended = False
    try:
        while receiver.poll(plan.hang_s + plan.budget_s_per_launch):
            try:
                message: str | Outcome | _End = receiver.recv()
            except EOFError:
                process.join(_JOIN_S)
                return _End(begun=begun, cause=_death(process.exitcode))
            if isinstance(message, _End):
                has_ended = True
                return message
            if isinstance(message, str):
                begun = message
            else:
                begun = ""
                hear(message)
        return _End(begun=begun, cause=f"no answer from the measuring process for {plan.hang_s:g} s: the launch hangs")
    finally:
        receiver.close()
        process.join(_JOIN_S if has_ended else 0.0)
        if process.is_alive():
            process.kill()
            process.join(_JOIN_S)


def _death(exit_code: int | None) -> str:
    return (
        f"the measuring process ended with exit code {exit_code}: the kernel or its compiler crashed; look for "
        "accesses outside the buffers"
    )


def _child(sender: Connection, batch: Mapping[str, Launch], plan: Plan) -> None:
    try:
        measure_here(batch, plan, sender.send)
    except PerfVecError as error:
        sender.send(_End(cause=str(error)))
    else:
        sender.send(_End())
