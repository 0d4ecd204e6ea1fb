"""Do the executor and the OpenCL devices compute the same? Work for the processes of `test_results.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfvec.arch.replay import replay
from perfvec.arguments import BufferArg, contents_of
from perfvec.launch import Launch
from tests.opencl import oclgrind_device, pocl_device
from tests.program.launching import Buffers, execute, quick_machine_code

# Relative bounds. Built-ins may differ by some units in the last place (OpenCL allows up to 16 for pow), and one may
# fuse a multiplication and an addition where the other does not; sums of some hundred terms widen that.
RELATIVE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}
# Where terms cancel, what counts is the size of the terms: the largest number in the buffer stands for it.
OF_LARGEST = {np.dtype(np.float16): 1e-3, np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-14}
WITHOUT_OPTIMISER = "-cl-opt-disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a launch gave: the oracle that both modes agree with, or "" and the differences from PoCL."""

    name: str
    oracle: str
    differences: tuple[str, ...] = ()


def judge(
    name: str,
    launch: Launch,
    *,
    tolerance: float = 1.0,
    is_unordered: bool = False,
    ulps: int = 0,
    without_pocl: bool = False,
) -> Verdict:
    """Run a launch in the executor, on optimised and unoptimised IR, and find an oracle that agrees with both.

    PoCL 3.1 miscompiles some kernels in which one lane writes a local value that all read after a barrier. Where it
    differs, PoCL without its optimiser and Oclgrind are asked.

    Args:
        name: For messages.
        launch: What to run.
        tolerance: Factor on the bounds.
        is_unordered: Whether work-items append in an order of their own: contents are sorted before they are compared.
        ulps: By how much integers may differ that hold the bits of floats.
        without_pocl: Ask Oclgrind alone.
    """
    ours = {"optimised": execute(launch)}
    with quick_machine_code():
        ours["unoptimised"] = execute(launch, optimise=False)
    differences: list[str] = []
    unoptimised = replace(launch, build_options=(*launch.build_options, WITHOUT_OPTIMISER))
    for oracle, device, asked in (
        ("PoCL", pocl_device, launch),
        (f"PoCL {WITHOUT_OPTIMISER}", pocl_device, unoptimised),
        ("Oclgrind", oclgrind_device, unoptimised),
    )[2 * without_pocl :]:
        theirs = dict(replay(asked, device()).outputs)
        found = [
            f"{mode} IR, {oracle}: {difference}"
            for mode, buffers in ours.items()
            for difference in differ(launch, buffers, theirs, tolerance=tolerance, is_unordered=is_unordered, ulps=ulps)
        ]
        if not found:
            return Verdict(name=name, oracle=oracle)
        differences += found
    return Verdict(name=name, oracle="", differences=tuple(differences))


def differ(
    launch: Launch,
    ours: Buffers,
    theirs: Buffers,
    *,
    tolerance: float = 1.0,
    is_unordered: bool = False,
    ulps: int = 0,
) -> list[str]:
    """Say where two results differ: integers anywhere, floats beyond the bounds."""
    assert ours.keys() == theirs.keys()
    differences = []
    for position, expected in theirs.items():
        argument = contents_of(launch.args[position])
        assert argument is not None
        left, right = _values(argument, ours[position]), _values(argument, expected)
        if is_unordered:
            left, right = np.sort(left), np.sort(right)
        wrong = np.flatnonzero(~_agrees(left, right, tolerance, ulps))
        if wrong.size:
            i = wrong[0]
            differences.append(
                f"argument {position}: {wrong.size} of {left.size} differ; [{i}] is {left[i]}, expected {right[i]}"
            )
    return differences


def _values(argument: BufferArg, contents: NDArray[np.generic]) -> NDArray[np.generic]:
    """Without the fourth of a 3-vector, which is padding."""
    return contents.reshape(-1, 4)[:, :3].reshape(-1) if argument.element.width == 3 else contents


def _agrees(left: NDArray[np.generic], right: NDArray[np.generic], tolerance: float, ulps: int) -> NDArray[np.bool_]:
    if left.dtype.kind != "f":
        return np.abs(left.astype(np.int64) - right.astype(np.int64)) <= ulps if ulps else left == right
    bound, of_largest = RELATIVE[left.dtype] * tolerance, OF_LARGEST[left.dtype] * tolerance
    with np.errstate(all="ignore"):
        a, b = left.astype(np.float64), right.astype(np.float64)
        finite = np.abs(b[np.isfinite(b)])
        allowed = bound * np.abs(b) + of_largest * (finite.max() if finite.size else 0.0)
        return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed)
