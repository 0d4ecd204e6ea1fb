"""Laws that hold whatever the trace: peaks that are reached, limits that are exact, more that is never slower."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfvec.arch.timing import simulate
from perfvec.errors import DeviceError
from tests.arch.timing.devices import LARGE, large
from tests.arch.timing.kernels import traced

# More of a thing may make a launch slower by so much: a window is stepped after the one before it, from a clean start.
TOLERANCE = 0.01
KERNELS = ("copy", "product", "histogram", "divergent", "tree", "walk", "private")
MORE = {
    "compute_units": (1, 2, 3, 7, 13, 50, 100, 200, 1000),
    "clock_hz": (5e8, 1e9, 2e9, 3e9),
    "issue_width": (0.25, 0.5, 1.0, 2.0),
    "fp32_lanes": (16.0, 32.0, 64.0, 128.0),
    "fp64_lanes": (1.0, 2.0, 64.0),
    "int_lanes": (16.0, 32.0, 64.0, 128.0),
    "special_lanes": (1.0, 4.0, 16.0),
    "load_store_lanes": (8.0, 16.0, 32.0, 128.0),
    "local_banks": (8, 16, 32, 64),
    "l1_bytes": (0, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20),
    "l1_bytes_per_cycle": (16.0, 64.0, 128.0, 256.0),
    "l1_lines_per_cycle": (0.25, 0.5, 1.0, 4.0),
    "l1_miss_limit_sectors": (4, 64, 1024, 65_536),
    "l2_bytes": (1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 25, 1 << 28),
    "l2_bytes_per_s": (1e11, 1e12, 5e12, 5e13),
    "l2_bytes_per_cycle_per_unit": (8.0, 32.0, 64.0, 256.0),
    "l2_miss_limit_sectors": (64, 1024, 1 << 17),
    "dram_bytes_per_s": (1e10, 1e11, 1e12, 1e13),
    "l2_atomics_per_cycle": (1.0, 16.0, 1024.0),
}
LESS = {
    "fp32_latency_cycles": (40.0, 8.0, 4.0, 1.0),
    "int_latency_cycles": (40.0, 8.0, 4.0, 1.0),
    "special_latency_cycles": (80.0, 20.0, 1.0),
    "branch_latency_cycles": (30.0, 10.0, 0.0),
    "local_latency_cycles": (100.0, 25.0, 1.0),
    "l1_latency_cycles": (200.0, 100.0, 30.0, 1.0),
    "l2_latency_cycles": (500.0, 250.0, 50.0),
    "dram_latency_s": (2e-6, 1e-6, 3e-7),
    "l2_atomic_same_line_cycles": (50.0, 4.0, 0.5),
    "local_atomic_cycles": (50.0, 4.0, 0.5),
    "barrier_cycles": (200.0, 20.0, 0.0),
    "group_start_cycles": (2000.0, 200.0, 0.0),
    "group_dispatch_s": (1e-7, 1e-9, 0.0),
    "launch_overhead_s": (1e-4, 5e-6, 0.0),
}
BASES = (
    LARGE,
    large(scheduler_policy="round-robin", start="cold"),
    large(compute_units=4, l2_bytes=1 << 18, l1_write_policy="back", max_sub_groups=32),
)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("base", range(len(BASES)))
def test_more_of_anything_or_less_of_a_latency_is_never_slower(kernel, base):
    for name, values in (MORE | LESS).items():
        fields = {field: getattr(BASES[base], field) for field in BASES[base].__slots__} | {"dram_latency_s": 3e-6}
        if name == "dram_latency_s":
            del fields["dram_latency_s"]
        times = simulate(traced(kernel), [type(LARGE)(**(fields | {name: value})) for value in values]).kernel_time_s
        slower = np.diff(times) / times[:-1]
        assert np.all(slower <= TOLERANCE), f"{name}: {times}"


def busy_s(trace, config, **others):
    """Time of a launch without what every launch takes."""
    return simulate(trace, [config], **others).kernel_time_s[0] - config.launch_overhead_s


def test_a_calculating_stream_reaches_the_peak_of_its_pipe():
    config = large(l1_bytes_per_cycle=1024.0)
    groups, rounds, threads = 400, 2000, 256  # 4 work-groups a unit at once
    trace = traced(
        "fma", (f"buffer:float32:{groups * threads}:constant(0)", f"int32:{rounds}"), (groups * threads,), (threads,)
    )
    flops = 2 * 16 * rounds * groups * threads
    peak = 2 * config.fp32_lanes * config.compute_units * config.clock_hz
    assert busy_s(trace, config) >= flops / peak
    # A loop of 16 fused multiply-adds has other instructions, too; with issue and pipes for them, only these count.
    wide = large(issue_width=16.0, int_lanes=4096.0, special_lanes=4096.0)
    assert flops / peak == pytest.approx(busy_s(trace, wide), rel=0.01)


def test_a_streaming_copy_reaches_the_peak_of_dram():
    num = 1 << 24
    trace = traced(
        "copy", (f"buffer:float32x4:{num}:constant(1)", f"buffer:float32x4:{num}:constant(0)"), (num,), (256,)
    )
    for config in (LARGE, large(start="cold"), large(dram_bytes_per_s=5e11, sector_bytes=64)):
        assert 2 * 16 * num / config.dram_bytes_per_s == pytest.approx(busy_s(trace, config), rel=0.02)


def test_a_chase_of_pointers_takes_the_latency_of_the_level_that_holds_them():
    steps = 4096
    free = {"address_instructions": 0.0, "convert_instructions": 0.0}  # as part of the access
    for stride, config, latency in (
        (0, large(**free), LARGE.l1_latency_cycles / LARGE.clock_hz),
        (1024, large(**free), LARGE.l2_latency_s),  # the launch ran before
        (1024, large(**free, start="cold"), LARGE.dram_latency_s),
        (1024, large(**free, l2_bytes=4096), LARGE.dram_latency_s),
    ):
        args = (
            f"buffer:int32:{max(1, steps * stride)}:arange({stride},1)",
            "buffer:int32:1:constant(0)",
            f"int32:{steps}",
        )
        time = busy_s(traced("chase", args, (1,), (1,)), config, without=["dispatch"])
        assert steps * latency == pytest.approx(time, rel=0.01)


def test_atomic_operations_on_one_address_follow_one_another():
    num_groups, threads = 4000, 64
    trace = traced("one_bin", ("buffer:int32:1:constant(0)",), (num_groups * threads,), (threads,))
    config = large(l2_atomic_same_line_cycles=8.0)
    sub_groups = num_groups * threads // 32  # lanes on one address are one operation
    assert sub_groups * 8.0 / config.clock_hz == pytest.approx(busy_s(trace, config), rel=0.05)  # and a first latency


def test_an_empty_kernel_takes_the_overhead_and_the_dispatch_of_its_work_groups():
    trace = traced("nothing", ("buffer:int32:1:constant(0)",), (1 << 24,), (64,))
    config = large(group_dispatch_s=1e-8)
    assert pytest.approx(busy_s(trace, config), rel=0.01) == (1 << 18) * 1e-8


def test_scattered_lanes_move_as_many_sectors_as_there_are_lanes():
    num, threads = 1 << 22, 256
    config = large(l2_bytes=1 << 16, group_dispatch_s=0.0)
    for pitch, sectors in ((1, 4), (2, 8), (8, 32)):
        trace = traced(
            "column",
            (f"buffer:float32:{num * pitch}:constant(1)", f"buffer:float32:{num}:constant(0)", f"int32:{pitch}"),
            (num,),
            (threads,),
        )
        moved = num // 32 * 32 * (sectors + 4)
        assert moved / config.dram_bytes_per_s == pytest.approx(busy_s(trace, config), rel=0.05), (
            pitch
        )  # and a first latency


@pytest.mark.parametrize(
    ("registers", "local", "threads", "limits", "occupancy"),
    [
        (0, 0, 256, {}, 1.0),  # 64 sub-groups of 32 = 8 work-groups of 256
        (0, 0, 32, {}, 0.5),  # 32 work-groups of one sub-group each
        (0, 0, 96, {}, 63 / 64),  # 21 work-groups of 3
        (56, 0, 256, {}, 0.5),  # 56 + 8 registers: 65,536 / (64 · 256) = 4 work-groups of 8 sub-groups
        (57, 0, 256, {}, 3 / 8),  # 65 registers are 72: 3.55
        (0, 24_576, 256, {}, 0.5),  # 98,304 / 24,576 = 4
        (0, 24_577, 256, {}, 3 / 8),  # rounded up to 24,704
        (0, 0, 256, {"sub_group_size": 64}, 0.5),  # 8 work-groups of 4 would be 32 of 64: registers allow 16, so 1
    ],
)
def test_occupancy_is_that_of_the_closed_form(registers, local, threads, limits, occupancy):
    from dataclasses import replace

    trace = traced("copy")
    context = replace(
        trace.context, live_registers=registers, local_mem_bytes=local, local_size=threads, num_work_groups=10_000
    )
    result = simulate(replace(trace, context=context), [large(**limits)])
    expected = 1.0 if limits else occupancy
    assert result.occupancy[0] == expected


def test_a_work_group_that_fits_on_no_unit_is_refused():
    for config, message in (
        (large(max_group_local_bytes=256), r"512 B of local memory; allowed by max_group_local_bytes are 256"),
        (large(max_group_work_items=64), r"128 work-items; allowed by max_group_work_items are 64"),
    ):
        with pytest.raises(DeviceError, match=message):
            simulate(traced("tree"), [LARGE, config])


def test_waves_come_in_whole_numbers():
    rounds, threads = 3000, 256
    config = large(compute_units=10, max_groups=1)

    def time(groups: int) -> float:
        trace = traced(
            "chain",
            (f"buffer:float32:{groups * threads}:constant(0)", f"int32:{rounds}"),
            (groups * threads,),
            (threads,),
        )
        return busy_s(trace, config)

    one = time(10)
    for groups in (1, 10, 11, 20, 25, 30):
        assert time(groups) == pytest.approx(math.ceil(groups / 10) * one, rel=0.02)
