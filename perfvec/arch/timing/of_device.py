"""From a device's facts to a configuration of the timing model: one formula or assumption for each field.

Facts that microbenchmarks have reached (`[achieved]` of the device file) go before those of the data sheet. With `C`
compute units of clock `f`:

    fp32, fp64, int, special lanes      of the device file; fp64 by the ratio of the peaks
    load_store_lanes                    local memory's bytes / (4 C f): a word a lane
    schedulers, issue_width             issue_lanes / sub_group_size instructions a cycle, shared out by `_schedulers`
    l1_bytes_per_cycle                  L1's bandwidth / (C f)
    l1_holds_local                      where L1 is larger than the local memory that is cut out of it
    local_banks                         local memory's bytes / (4 C f)
    special_latency_cycles              fp32's and 16 more (assumed: NVIDIA's since Maxwell are 18 to 24 cycles)
    int_latency_cycles                  fp32's (Jia et al. 2018, table 4.1: the same since Maxwell)
    dram_bytes_per_s                    reached by a streaming read; else 91 % of the peak, the median of ten GPUs
                                        (gpu-benches; experiments/devices/curves.py)
    dram_latency_s                      the file's cycles / f
    l2_atomics_per_cycle                sectors of 32 B that the L2 delivers a cycle (assumed: one operation a sector)
    sector_bytes, line_bytes            NVIDIA 32 and 128, AMD 64 and 64 (RDNA and CDNA3: 128), others 64 and 64
    register_granule, most registers    NVIDIA 8 and 255 (Fermi, GK104: 63), AMD 4 and 256

Where a compute unit of the file is smaller than what a work-group may fill (Intel's EUs), as many as share local memory
are one unit of the model. A CPU runs one work-group a hardware thread; its work-items take turns as vectors, so all of
them are resident, and registers and local memory, which are ordinary memory, limit nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perfvec.arch.timing.config import TimingConfig, field_ranges
from perfvec.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfvec.arch.device import Device

# Share of the peak that a streaming read gets, where nobody has measured it.
DRAM_EFFICIENCY = 0.91
SPECIAL_EXTRA_CYCLES = 16.0
WORD_BYTES = 4
_SECTOR_BYTES = 32
_RDNA = ("RDNA", "CDNA3")
_FEW_REGISTERS = ("Fermi", "Kepler GK104")  # 63 a work-item: CUDA C++ Programming Guide, compute capability 2.x and 3.0
# Lines that a core waits for at once, of two sectors: 12 line fill buffers (Intel's optimisation manual, Skylake).
_CPU_MISS_SECTORS = 24


def timing_config(device: Device, settings: Mapping[str, Any] | None = None) -> TimingConfig:
    """The timing model's configuration of a device.

    Args:
        device: The device.
        settings: Fields of `TimingConfig` that shall differ.

    Raises:
        DeviceError: A setting is no field, or a value is not allowed or contradicts others.
    """
    return changed(_of_cpu(device) if device.type == "cpu" else _of_gpu(device), settings)


def changed(config: TimingConfig, settings: Mapping[str, Any] | None) -> TimingConfig:
    """A configuration with other values in some fields.

    Raises:
        DeviceError: A setting is no field, or a value is not allowed or contradicts others.
    """
    known = field_ranges()
    for name in settings or {}:
        if name not in known:
            raise DeviceError(f"no timing field {name!r}; allowed: {nearest(name, known)}")
    return replace(config, **(settings or {}))


def nearest(name: str, known: Mapping[str, object]) -> str:
    """The names most like a wrong one, for a message."""
    import difflib

    return ", ".join(difflib.get_close_matches(name, sorted(known), n=4, cutoff=0.4) or sorted(known))


def _reached(device: Device, path: str) -> float:
    return device.achieved.get(path, device.fact(path))


def _common(device: Device, units: int) -> dict[str, Any]:
    """Fields that GPUs and CPUs have from the same formula; `units` of the model."""
    compute, memory = device.compute, device.memory
    clock = compute.clock_hz
    scale = compute.compute_units / units
    fp32 = compute.fp32_lanes * scale
    rate = units * clock
    local_bytes_per_cycle = memory.local.bandwidth_bytes_per_s / rate
    dram = "memory.dram.bandwidth_bytes_per_s"
    l2_latency = _reached(device, "memory.l2.latency_cycles")
    return {
        "compute_units": units,
        "clock_hz": clock,
        "sub_group_size": compute.sub_group_size,
        "fp32_lanes": fp32,
        "fp64_lanes": fp32 * compute.fp64_flops / compute.fp32_flops,
        "int_lanes": compute.int_lanes * scale,
        "special_lanes": compute.special_lanes * scale,
        "load_store_lanes": max(1.0, local_bytes_per_cycle / WORD_BYTES),
        "fp32_latency_cycles": compute.fp32_latency_cycles,
        "fp64_latency_cycles": compute.fp64_latency_cycles,
        "int_latency_cycles": compute.fp32_latency_cycles,
        "special_latency_cycles": compute.fp32_latency_cycles + SPECIAL_EXTRA_CYCLES,
        "max_groups": round(compute.max_work_groups_per_compute_unit * scale),
        "local_banks": max(1, round(local_bytes_per_cycle / WORD_BYTES)),
        "local_latency_cycles": memory.local.latency_cycles,
        "l1_bytes": round(memory.l1.capacity_bytes * scale),
        "l1_latency_cycles": min(_reached(device, "memory.l1.latency_cycles"), l2_latency),
        "l1_bytes_per_cycle": _reached(device, "memory.l1.bandwidth_bytes_per_s") / rate,
        "l2_bytes": memory.l2.capacity_bytes,
        "l2_latency_cycles": l2_latency,
        "l2_bytes_per_s": _reached(device, "memory.l2.bandwidth_bytes_per_s"),
        "dram_bytes_per_s": device.achieved.get(dram, DRAM_EFFICIENCY * device.fact(dram)),
        "dram_latency_s": max(_reached(device, "memory.dram.latency_cycles"), l2_latency) / clock,
        "l2_atomics_per_cycle": max(1.0, _reached(device, "memory.l2.bandwidth_bytes_per_s") / (_SECTOR_BYTES * clock)),
        "group_dispatch_s": device.launch.work_group_s,
        "launch_overhead_s": device.launch.overhead_s,
    }


def _of_gpu(device: Device) -> TimingConfig:
    compute, memory = device.compute, device.memory
    sharing = max(1, round(compute.max_local_bytes_per_work_group / memory.local.capacity_bytes))
    units = max(1, compute.compute_units // sharing)
    schedulers, issue_width = _schedulers(device, sharing)
    max_sub_groups = compute.max_sub_groups_per_compute_unit * sharing
    local_bytes = max(memory.local.capacity_bytes * sharing, compute.max_local_bytes_per_work_group)
    is_nvidia = device.vendor == "nvidia"
    is_few = device.architecture.startswith(_FEW_REGISTERS)
    return TimingConfig(
        **_common(device, units),
        schedulers=schedulers,
        issue_width=issue_width,
        max_sub_groups=max_sub_groups,
        max_group_work_items=min(compute.max_work_group_size, max_sub_groups * compute.sub_group_size),
        registers=compute.registers_per_compute_unit * sharing,
        register_granule=8 if is_nvidia else 4,
        max_registers_per_work_item=63 if is_few else 255 if is_nvidia else 256,
        local_bytes=local_bytes,
        max_group_local_bytes=compute.max_local_bytes_per_work_group,
        l1_holds_local=memory.l1.capacity_bytes > memory.local.capacity_bytes,
        sector_bytes=32 if is_nvidia else 64,
        line_bytes=128 if is_nvidia or device.architecture.startswith(_RDNA) else 64,
    )


def _schedulers(device: Device, sharing: int) -> tuple[int, float]:
    """Schedulers of a unit, and instructions that each starts a cycle.

    Sub-groups of 64 (GCN, CDNA): four, each over 16 lanes for four cycles. EUs: one each. Others: one for each
    instruction a cycle, two at least (Fermi) and four at most (Kepler starts two a cycle in each).
    """
    per_cycle = device.compute.issue_lanes * sharing / device.compute.sub_group_size
    if sharing > 1:
        schedulers = sharing
    elif device.compute.sub_group_size == 64:
        schedulers = 4
    else:
        schedulers = min(4, max(2, round(per_cycle)))
    return schedulers, per_cycle / schedulers


def _of_cpu(device: Device) -> TimingConfig:
    compute = device.compute
    width = max(8, compute.sub_group_size)  # the model's least; vectors of 4 then take two turns
    most_items = min(compute.max_work_group_size, 4096 * width)
    fields: dict[str, Any] = _common(device, compute.compute_units) | {"sub_group_size": width}
    return TimingConfig(
        **fields,
        schedulers=1,
        issue_width=compute.issue_lanes / width,
        max_sub_groups=-(-most_items // width),
        max_group_work_items=most_items,
        registers=min(256 * most_items, 1 << 24),
        register_granule=1,
        register_overhead=1,
        max_registers_per_work_item=256,
        local_bytes=compute.max_local_bytes_per_work_group,
        max_group_local_bytes=compute.max_local_bytes_per_work_group,
        l1_miss_limit_sectors=_CPU_MISS_SECTORS,
        l1_write_policy="back",
        sector_bytes=64,
        line_bytes=64,
    )
