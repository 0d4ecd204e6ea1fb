"""Sizes of a generated launch: trip counts and tables, so that it takes about a given time on a device.

The estimate is rough, and only steers: it spreads launches over kernel times, and keeps those away that would take
seconds. Times are measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from perfvec.corpus.expressions import evaluate
from perfvec.trace_data import SUB_GROUP_SIZE

if TYPE_CHECKING:
    from perfvec.arch.device import Device
    from perfvec.corpus.draw import Draw
    from perfvec.corpus.generator import GeneratedKernel
    from perfvec.corpus.generator_writer import Size
    from perfvec.corpus.ndrange import NDRange

# Kernel times that launches aim at, in microseconds, and most memory of their buffers, by type of device. Times of a
# CPU repeat badly below a millisecond, and its memory is slow to fill.
TARGET_US = {"gpu": (15, 20_000), "accelerator": (15, 20_000), "cpu": (1_200, 5_000)}
_MOST_BUFFER_BYTES = {"gpu": 1 << 29, "accelerator": 1 << 29, "cpu": 1 << 28}
# Most operations of a work-group, counted by sub-groups of 32: a tracer executes some dozen groups of a launch.
_MOST_GROUP_OPERATIONS = 3e6
_BISECTIONS = 14
_MACRO_STEP = 4
# Of the latency of dram, that of an access on average, most being found in a cache.
_LATENCY_SHARE = 0.6
# Cycles from one simple operation to the next that needs it, and how many a work-item has on the way.
_DEPENDENT_CYCLES = 3.0


# What is shorter by the estimate is drawn again, a few times.
LEAST_S = {"gpu": 8e-6, "accelerator": 8e-6, "cpu": 1e-3}
# Share of a CPU's peak arithmetic that kernels reach whose work-items a compiler has vectorised in part. Measured with
# generated kernels: about a half on a 2-core EPYC. With the suites, a 16-core Xeon is three times as far from its peak.
_CPU_SHARE = 0.25


def choose_sizes(
    draw: Draw,
    kernel: GeneratedKernel,
    ndrange: NDRange,
    device: Device,
    *,
    target_s: float,
    most_bytes: int | None = None,
    macros: Mapping[str, int] | None = None,
) -> dict[str, int] | None:
    """Choose what a launch must choose.

    Args:
        draw: Where from.
        kernel: The kernel.
        ndrange: Its work-items.
        device: What it is for.
        target_s: About how long it shall take there.
        most_bytes: Most memory of all buffers; by the type of device where it is None.
        macros: Sizes that are not to be chosen, since a program has them built in.

    Returns:
        A number for each of the kernel's sizes, and "slack"; None where even the smallest need more memory.
    """
    most_bytes = _MOST_BUFFER_BYTES[device.type] if most_bytes is None else most_bytes
    slack = draw.between(1, max(ndrange.local_size)) if draw.chance(35) else 0
    # Tables do not lengthen the work, so they are drawn; from the other sizes each gets its own share of the growth.
    tables = {size.name: draw.power_of_two(size.low, size.high) for size in kernel.sizes if size.kind == "extent"}
    growing = [(size, draw.choice((0.4, 1.0, 1.0, 2.0))) for size in kernel.sizes if size.kind != "extent"]

    def sizes_at(growth: float) -> dict[str, int]:
        grown = {size.name: _grown(size, min(1.0, growth * speed), ndrange) for size, speed in growing}
        return {**grown, **tables, **(macros or {}), "slack": slack}

    def fits(growth: float) -> bool:
        names = kernel.names(ndrange.global_size, ndrange.local_size, sizes_at(growth))
        return (
            buffer_bytes(kernel, names) <= most_bytes
            and group_operations(kernel, names) <= _MOST_GROUP_OPERATIONS
            and estimate_s(kernel, names, device) <= target_s
        )

    names = kernel.names(ndrange.global_size, ndrange.local_size, sizes_at(0.0))
    while buffer_bytes(kernel, names) > most_bytes:
        large = max(tables, key=lambda name: tables[name], default="")
        if not large or tables[large] <= 1 << 10:
            return None
        tables[large] >>= 1
        names = kernel.names(ndrange.global_size, ndrange.local_size, sizes_at(0.0))
    if fits(1.0):
        return sizes_at(1.0)
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return sizes_at(low)


def _grown(size: Size, growth: float, ndrange: NDRange) -> int:
    """A size after so much of its growth, 0 to 1."""
    value = size.low * (size.high / size.low) ** growth
    if size.kind == "macro":  # few values, so that launches share programs
        return size.low * _MACRO_STEP ** int(math.log(value / size.low, _MACRO_STEP) + 1e-9)
    if size.kind != "elements":
        return max(size.low, round(value))
    base = math.prod(ndrange.global_size) if size.base == "items" else ndrange.global_size[int(size.base[1:])]
    return max(1, round(base * value * 0.9))


def buffer_bytes(kernel: GeneratedKernel, names: Mapping[str, float]) -> float:
    """Memory of all buffers of a launch."""
    return sum(evaluate(count, names) * num_bytes for count, num_bytes in kernel.buffers)


def group_operations(kernel: GeneratedKernel, names: Mapping[str, float]) -> float:
    """Simple operations of a work-group, by sub-groups of 32."""
    operations, accesses, *_ = work_of_item(kernel, names)
    return (operations + 4 * accesses) * math.ceil(names["L"] / SUB_GROUP_SIZE)


def work_of_item(kernel: GeneratedKernel, names: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Simple operations, accesses to global memory, bytes of them, and seconds of waiting, of a work-item."""
    operations = accesses = num_bytes = serial_ns = 0.0
    for cost in kernel.costs:
        times = max(1.0, evaluate(cost.times, names))
        operations += times * cost.operations
        accesses += times * cost.accesses
        num_bytes += times * cost.num_bytes
        serial_ns += times * cost.serial_ns
    return operations, accesses, num_bytes, serial_ns * 1e-9


def estimate_s(kernel: GeneratedKernel, names: Mapping[str, float], device: Device) -> float:
    """About how long a launch takes on a device.

    The longest of four: arithmetic and memory traffic, each at the share of the device that so many work-items keep
    busy; what one work-item waits for itself, as often as the device must be filled; and what all wait for each other.
    """
    operations, accesses, num_bytes, serial_s = work_of_item(kernel, names)
    compute, dram = device.compute, device.memory.dram
    items = names["items"]
    held = compute.compute_units * compute.max_sub_groups_per_compute_unit * compute.sub_group_size
    busy_units = min(1.0, names["groups"] / compute.compute_units)
    reached = _CPU_SHARE if device.type == "cpu" else 1.0
    rate = reached * compute.fp32_flops / 2 * min(busy_units, 4.0 * items / held)
    bandwidth = dram.bandwidth_bytes_per_s * min(busy_units, 2.0 * items / held)
    waves = math.ceil(items / held)
    alone = operations * _DEPENDENT_CYCLES / reached + accesses * _LATENCY_SHARE * dram.latency_cycles
    return device.launch.overhead_s + max(
        items * operations / rate, items * num_bytes / bandwidth, waves * alone / compute.clock_hz, items * serial_s
    )


def draw_target_s(draw: Draw, device: Device) -> float:
    """A kernel time to aim at on a device, about as often in each octave."""
    return draw.spread(*TARGET_US[device.type]) * 1e-6
