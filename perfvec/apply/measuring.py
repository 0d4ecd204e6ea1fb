"""Time a launch on a device of this machine; whole corpora are timed by `perfvec.apply.corpus_measuring`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfvec import errors
from perfvec.arch.measure import FailedLaunch, measure_many
from perfvec.arch.measured import MeasuredTime
from perfvec.arch.opencl import choose_device
from perfvec.errors import OpenCLError, PerfVecError

if TYPE_CHECKING:
    from perfvec.arch.session import Protocol
    from perfvec.launch import Launch

LAUNCH_BUDGET_S = 1.0


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
