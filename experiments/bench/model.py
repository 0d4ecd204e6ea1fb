"""`make bench-model`: how fast the shipped model turns traces into program vectors and those into times.

Encoding is the whole of `TrainedModel.encode` on traced launches: padding, network, sums in double precision. What is
counted are instructions of distinct windows, each encoded once; how many instructions of the launch they stand for does
not count. Beside it the reference encoder of PerfVec (SC'24): LSTM of two layers of 256 over 51 features in windows of
256, untrained here, since speed does not depend on weights; one pass gives all 256 instructions of a window. On CPU one
core and one thread. Predictions are products of program and device vectors, as `perfvec.model.vectors.predict` makes
them. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from experiments.bench.trace import LAUNCHES, find
from perfvec.apply.encoding import launch_input
from perfvec.apply.predicting import load_model
from perfvec.model.vectors import predict
from perfvec.program.tracer import trace_launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from perfvec.model.launch_input import LaunchInput
    from perfvec.model.weights import TrainedModel

REPEATS = 5
REFERENCE_FEATURES, REFERENCE_HIDDEN, REFERENCE_LAYERS, REFERENCE_WINDOW = 51, 256, 2, 256
REFERENCE_WINDOWS = {"cpu": 16, "cuda": 2048}
PROGRAMS, DEVICES = 10_000, 100


def seconds_of(function: Callable[[], object]) -> float:
    """Median seconds of a call, after one that warms up; work queued on a GPU is waited for."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return median(times[1:])


def encode_rate(model: TrainedModel, launches: list[LaunchInput], device: str) -> float:
    """Instructions that the shipped model encodes a second."""
    model.encoder.to(device)
    seconds = seconds_of(lambda: model.encode(launches))
    return sum(launch.num_tokens for launch in launches) / seconds


def reference_rate(device: str) -> float:
    """Instructions that PerfVec's reference encoder encodes a second."""
    encoder = nn.LSTM(REFERENCE_FEATURES, REFERENCE_HIDDEN, REFERENCE_LAYERS, batch_first=True).eval().to(device)
    shape = (REFERENCE_WINDOWS[device], REFERENCE_WINDOW, REFERENCE_FEATURES)
    features = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(device)
    with torch.inference_mode():
        seconds = seconds_of(lambda: encoder(features))
    return shape[0] * shape[1] / seconds


def prediction_rate(dim: int) -> float:
    """Predictions a second on CPU."""
    rng = np.random.default_rng(0)
    programs, devices = rng.random((PROGRAMS, dim)), rng.random((DEVICES, dim))
    return PROGRAMS * DEVICES / seconds_of(lambda: predict(programs, devices))


def main() -> None:
    """Run the benchmark."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    model = load_model()
    launches = [launch_input(trace_launch(find(name)), most_windows=None) for name in LAUNCHES.values()]
    result: dict[str, float | int | None] = {
        "tokens": sum(launch.num_tokens for launch in launches),
        "encode_per_s_cpu": encode_rate(model, launches, "cpu"),
        "reference_per_s_cpu": reference_rate("cpu"),
        "predictions_per_s": prediction_rate(model.encoder.layout.dim),
        "encode_per_s_gpu": None,
        "reference_per_s_gpu": None,
    }
    if torch.cuda.is_available():
        many = launches * 20
        result["encode_per_s_gpu"] = encode_rate(model, many, "cuda")
        result["reference_per_s_gpu"] = reference_rate("cuda")
    for name, value in result.items():
        sys.stdout.write(f"{name:22}{'no GPU' if value is None else f'{value:,.0f}':>16}\n")
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
