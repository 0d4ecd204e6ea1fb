"""How long a device's posterior and the choice of the next launch take.

    make bench-calibrate

The shipped weights and the prior of a GPU that nobody has measured. 10,000 launches are 10,000 candidates and 10,000
targets: programs of the calibration set, each mixed with another in log space and shaken by a fifth, so that no two are
alike (`real`); and vectors without any structure, as no set of kernels is (`random`). A choice is timed with all that
goes before it, shares and the targets' directions, as `perfvec calibrate` does for each batch of ten, and by itself, as
for the other nine. Ends in one line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from perfvec.apply.beliefs import prior_of
from perfvec.apply.calibration_set import CalibrationSet, load_set
from perfvec.apply.devices import find_devices
from perfvec.apply.models import load_model
from perfvec.model.design import Design
from perfvec.model.posterior import DeviceBelief, Measurements, posterior, shares

DEVICE = "nvidia-rtx-3090"
NUM_MEASURED = 100
NUM_CANDIDATES = 10_000
REPEATS = 7


def seconds(function: Callable[[], object]) -> float:
    """Median wall time of a call."""
    times: list[float] = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def mixed_programs(calibration: CalibrationSet, rng: np.random.Generator) -> tuple[NDArray[np.float64], list[str]]:
    """Program vectors like those of the set, `(NUM_CANDIDATES, D)`, and the kernel that each has most of."""
    first, second = rng.integers(len(calibration.programs), size=(2, NUM_CANDIDATES))
    part_n1 = rng.uniform(0.5, 1.0, (NUM_CANDIDATES, 1))
    left_nD, right_nD = calibration.programs[first], calibration.programs[second]
    is_common = (left_nD > 0) & (right_nD > 0)
    ratio_nD = np.divide(right_nD, left_nD, out=np.ones_like(left_nD), where=is_common)
    programs_nD = left_nD * ratio_nD ** (1 - part_n1) * rng.lognormal(0, 0.2, left_nD.shape)
    return programs_nD, [calibration.kernels[row] for row in first]


def random_programs(dim: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], list[str]]:
    """Program vectors without structure, `(NUM_CANDIDATES, D)`, and kernels of four each."""
    is_used = rng.random((NUM_CANDIDATES, dim)) < 0.3
    return rng.lognormal(14, 2, is_used.shape) * is_used, [str(row // 4) for row in range(NUM_CANDIDATES)]


def measure(
    prior: DeviceBelief, programs: NDArray[np.float64], kernels: list[str], calibration: CalibrationSet
) -> dict[str, float]:
    """Seconds by what takes them."""
    misfit = calibration.uncertainty.misfit_of("gpu").known
    rng = np.random.default_rng(1)
    rows = rng.permutation(NUM_CANDIDATES)[:NUM_MEASURED]
    log_times = shares(programs[rows], prior.log_mean)[1] + rng.normal(0, 0.5, NUM_MEASURED)
    measured = Measurements(
        programs=programs[rows],
        times=np.exp(log_times),
        deviation=np.full(NUM_MEASURED, 0.02),
        kernels=tuple(kernels[row] for row in rows),
    )
    belief = posterior(prior, measured, misfit)
    design = Design(belief, programs, programs, misfit, kernels=kernels)
    return {
        "posterior_s": seconds(lambda: posterior(prior, measured, misfit)),
        "first_choice_s": seconds(lambda: Design(belief, programs, programs, misfit, kernels=kernels).choose()),
        "next_choice_s": seconds(design.choose),
    }


def main() -> None:
    """Measure and print."""
    calibration = load_set()
    prior = prior_of(load_model(), find_devices([DEVICE])[0], calibration.uncertainty)
    rng = np.random.default_rng(0)
    found: dict[str, dict[str, float]] = {}
    for kind, (programs, kernels) in (
        ("real", mixed_programs(calibration, rng)),
        ("random", random_programs(len(prior.log_mean), rng)),
    ):
        found[kind] = measure(prior, programs, kernels, calibration)
        posterior_ms, first_ms, next_ms = (1e3 * value for value in found[kind].values())
        sys.stdout.write(
            f"{kind} programs of {programs.shape[1]} coordinates: posterior from {NUM_MEASURED} launches "
            f"{posterior_ms:.1f} ms (at most 50); of {NUM_CANDIDATES} candidates for as many targets the first "
            f"{first_ms:.0f} ms (at most 500), each further one {next_ms:.0f} ms\n"
        )
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
