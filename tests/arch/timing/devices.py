"""Devices for the timing model's tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfvec.arch.timing.config import TimingConfig

# Round figures in the range of a large GPU of the 2020s.
LARGE = TimingConfig(
    compute_units=100,
    clock_hz=2e9,
    sub_group_size=32,
    schedulers=4,
    fp32_lanes=128.0,
    fp64_lanes=64.0,
    int_lanes=64.0,
    special_lanes=16.0,
    load_store_lanes=32.0,
    fp32_latency_cycles=4.0,
    fp64_latency_cycles=8.0,
    int_latency_cycles=4.0,
    special_latency_cycles=20.0,
    max_sub_groups=64,
    max_groups=32,
    registers=65_536,
    local_bytes=98_304,
    max_group_local_bytes=65_536,
    local_latency_cycles=25.0,
    l1_bytes=131_072,
    l1_latency_cycles=30.0,
    l1_bytes_per_cycle=128.0,
    l2_bytes=1 << 25,
    l2_latency_cycles=250.0,
    l2_bytes_per_s=5e12,
    dram_bytes_per_s=2e12,
    dram_latency_s=3e-7,
    l2_atomics_per_cycle=1024.0,
    group_dispatch_s=1e-9,
    launch_overhead_s=5e-6,
)


def large(**changes: Any) -> TimingConfig:
    """`LARGE` with other values in some fields."""
    return replace(LARGE, **changes)
