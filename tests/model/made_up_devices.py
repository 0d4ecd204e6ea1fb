"""Devices and launches that nobody has: random vectors, and measurements of them."""

from __future__ import annotations

import numpy as np

from perfvec.model.posterior import Measurements


def measured(programs, times, deviation=0.0, kernels=None):
    programs = np.asarray(programs, dtype=float)
    count = len(programs)
    return Measurements(
        programs=programs,
        times=np.asarray(times, dtype=float),
        deviation=np.full(count, deviation),
        kernels=tuple(kernels or map(str, range(count))),
    )


def random_device(seed, *, dim=8, count=200):
    rng = np.random.default_rng(seed)
    log_vector = rng.normal(-23, 1, dim)
    programs = rng.lognormal(15, 2, (count, dim)) * (rng.random((count, dim)) < 0.7)
    programs[:, 0] += 1.0
    return rng, log_vector, programs
