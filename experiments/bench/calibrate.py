"""How long a device's posterior and the choice of the next launch take.

    make bench-calibrate

Synthetic program vectors of the shipped model's length: times depend on shapes alone. Ends in one line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from perfvec.apply.models import load_model
from perfvec.model.posterior import Design, DeviceBelief, Measurements, Misfit, posterior, shares

DIM = load_model().encoder.layout.dim
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


def main() -> None:
    """Measure and print."""
    rng = np.random.default_rng(0)
    prior = DeviceBelief(log_mean=rng.normal(-23, 1.5, DIM), covariance=0.2 * np.eye(DIM) + 0.2)
    programs = rng.lognormal(14, 2, (NUM_CANDIDATES, DIM)) * (rng.random((NUM_CANDIDATES, DIM)) < 0.3)
    kernels = [str(row // 4) for row in range(NUM_CANDIDATES)]
    misfit = Misfit(launch=0.2, kernel=0.3, noise=0.02)
    log_times = shares(programs[:NUM_MEASURED], prior.log_mean)[1] + rng.normal(0, 0.5, NUM_MEASURED)
    measured = Measurements(
        programs=programs[:NUM_MEASURED],
        times=np.exp(log_times),
        deviation=np.full(NUM_MEASURED, 0.02),
        kernels=tuple(kernels[:NUM_MEASURED]),
    )
    posterior_s = seconds(lambda: posterior(prior, measured, misfit))
    design = Design(prior, programs, programs, misfit, kernels=kernels)
    choice_s = seconds(design.choose)
    sys.stdout.write(
        f"posterior of {DIM} coordinates from {NUM_MEASURED} launches: {1e3 * posterior_s:.1f} ms (at most 50)\n"
        f"next of {NUM_CANDIDATES} candidates for {NUM_CANDIDATES} targets: {1e3 * choice_s:.0f} ms (at most 500)\n"
    )
    sys.stdout.write(json.dumps({"posterior_s": posterior_s, "next_launch_s": choice_s}) + "\n")


if __name__ == "__main__":
    main()
