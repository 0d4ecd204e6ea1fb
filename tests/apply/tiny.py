"""A corpus, a model and a table of measured times that are small enough to make in a test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from perfvec.apply.encoding import feature_schema
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import load_devices
from perfvec.arch.measured import MeasuredTable, MeasuredTime
from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.model.config import ModelConfig, TrainingConfig
from perfvec.model.devices import DeviceBank
from perfvec.model.program_encoder import ProgramEncoder
from perfvec.model.weights import TrainedModel

torch.set_num_threads(1)

DEVICES = ("nvidia-h200", "amd-instinct-mi210")
KERNELS = """
__kernel void scale(__global float *a, float f) { a[get_global_id(0)] *= f; }
__kernel void add(__global float *a, __global const float *b) { a[get_global_id(0)] += b[get_global_id(0)]; }
__kernel void power(__global float *a, int n) {
  float x = a[get_global_id(0)], y = 1;
  for (int i = 0; i < n; ++i) y *= x;
  a[get_global_id(0)] = y;
}
__kernel void gather(__global float *a, __global const int *at) { a[get_global_id(0)] = a[at[get_global_id(0)]]; }
__kernel void beyond(__global float *a) { a[get_global_id(0) + 1000000] = 1; }
__kernel void torn(__global float *a) {
  if (get_local_id(0) < 3) barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] = 1;
}
__kernel void endless(__global volatile float *a) { while (a[get_global_id(0)] < 2) a[get_global_id(0)] *= 1; }
__kernel void pictured(__read_only image2d_t t, __global float4 *a) {
  const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_NEAREST;
  a[get_global_id(0)] = read_imagef(t, s, (int2)(0, 0));
}
"""
_SUITE = """
[suite]
name = "{suite}"
title = "Tiny"
"""
_KERNEL = """
[[kernel]]
name = "{kernel}"
file = "tiny.cl"
family = "{kernel}"
args = {args}
global = ["N"]
local = ["64"]
launches = [{launches}]
"""
_ARGS = {
    "scale": ["buffer:float32:N", "float32:2"],
    "add": ["buffer:float32:N", "buffer:float32:N"],
    "power": ["buffer:float32:N", "int32:20"],
    "gather": ["buffer:float32:N", "buffer:int32:N:indices(N)"],
    "beyond": ["buffer:float32:N"],
}


def write_suites(
    folder: Path, suites: dict[str, list[str]] | None = None, sizes: tuple[int, ...] = (256, 1024)
) -> Path:
    """Write suites with the kernels named; returns the folder."""
    for suite, kernels in (suites or {"one": ["scale", "add"], "two": ["power", "gather"]}).items():
        place = folder / suite
        place.mkdir(parents=True)
        (place / "tiny.cl").write_text(KERNELS, encoding="utf-8")
        launches = ", ".join(f"{{ N = {size} }}" for size in sizes)
        text = _SUITE.format(suite=suite)
        for kernel in kernels:
            text += _KERNEL.format(kernel=kernel, args=_ARGS[kernel], launches=launches)
        (place / "suite.toml").write_text(text, encoding="utf-8")
    return folder


def suites(folder: Path, **settings: object) -> list[SuiteLaunch]:
    return load_suites(write_suites(folder, **settings))  # type: ignore[arg-type]


def measured_time(entry: SuiteLaunch, device: str, kernel_time_s: float) -> MeasuredTime:
    return MeasuredTime(
        digest=entry.launch.digest,
        device=device,
        kernel_time_s=kernel_time_s,
        spread=0.01,
        num_repeats=20,
        min_s=kernel_time_s,
        launch_overhead_s=5e-6,
        driver="1.0",
        date="2026-01-01",
        name=entry.name,
    )


def measured_table(entries: list[SuiteLaunch], devices: tuple[str, ...] = DEVICES) -> MeasuredTable:
    """Times that grow with the launch: (5 + index) µs + 50 ns a work-item, twice that on the second device."""
    return MeasuredTable(
        times=tuple(
            measured_time(entry, device, (1 + column) * ((5 + row) * 1e-6 + entry.launch.num_work_items * 5e-8))
            for row, entry in enumerate(entries)
            for column, device in enumerate(devices)
        )
    )


def tiny_model(families: tuple[str, ...] = ("seen",), devices: tuple[str, ...] = DEVICES) -> TrainedModel:
    """A model with random weights."""
    known = load_devices()
    datasheets = np.stack([seconds_per_unit(known[name]) for name in devices])
    config = TrainingConfig(model=ModelConfig(encoder="pooled", dim=860, hidden=8, launch_hidden=8))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = ProgramEncoder(feature_schema(), config.model)
        bank = DeviceBank(datasheets, encoder.layout)
    return TrainedModel(
        encoder=encoder,
        bank=bank,
        schema=feature_schema(),
        config=config,
        device_names=devices,
        device_kinds=("real",) * len(devices),
        seconds_per_unit=datasheets,
        families=families,
        validation_families=(),
        suites=("tiny",),
        code_version="test",
    )
