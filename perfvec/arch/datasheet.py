"""From a device file to numbers: seconds per unit of every resource, and the roofline of the data sheet.

Both are starting points and baselines, not predictions to rely on: a data sheet knows peaks, not what kernels reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.archetypes import archetype_prices
from perfvec.arch.device import Device
from perfvec.arch.timing.of_device import timing_config
from perfvec.resources import COUNTED, NUM_COUNTED, RESOURCE_INDEX, SLOT_LADDER
from perfvec.trace_data import SECTOR_BYTES, SUB_GROUP_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing import TimingConfig

# Assumptions that no data sheet settles. They are starting values; training and measured times correct them.
# A division, root or transcendental function at full precision: one special-function operation and the fp32
# instructions around it (range reduction, Newton steps).
SPECIAL_FP32_INSTRUCTIONS = 8
# Cycles for which a sub-group at a barrier keeps its share of a compute unit idle.
BARRIER_CYCLES = 5.0
# A pass of an atomic occupies one compute unit's path to the L2 for one cycle, and its address for one cycle.
ATOMIC_CYCLES = 1.0
# Of their price, what counted resources start at in a device vector.
COUNTED_SHARE = 0.05
# A local-memory pass moves one 4 B word of each of 32 banks.
PASS_BYTES = 4 * SUB_GROUP_SIZE


def _lane_issue_s(device: Device, lanes: float) -> float:
    return SUB_GROUP_SIZE / (lanes * device.compute.compute_units * device.compute.clock_hz)


def _fp32_s(device: Device) -> float:
    return SUB_GROUP_SIZE / (device.compute.fp32_flops / 2)


def _cycles_s(device: Device, cycles: float) -> float:
    return cycles / (device.compute.compute_units * device.compute.clock_hz)


# Seconds per unit of each resource that a device has a throughput for.
_THROUGHPUTS: dict[str, Callable[[Device], float]] = {
    "launch": lambda d: d.launch.overhead_s,
    "work_groups": lambda d: d.launch.work_group_s,
    "fp32_issue": _fp32_s,
    "fp64_issue": lambda d: SUB_GROUP_SIZE / (d.compute.fp64_flops / 2),
    "int_issue": lambda d: _lane_issue_s(d, d.compute.int_lanes),
    "special_issue": lambda d: _lane_issue_s(d, d.compute.special_lanes) + SPECIAL_FP32_INSTRUCTIONS * _fp32_s(d),
    "other_issue": lambda d: _lane_issue_s(d, d.compute.issue_lanes),
    "local_passes": lambda d: PASS_BYTES / d.memory.local.bandwidth_bytes_per_s,
    "l1_sectors": lambda d: SECTOR_BYTES / d.memory.l1.bandwidth_bytes_per_s,
    "l2_sectors": lambda d: SECTOR_BYTES / d.memory.l2.bandwidth_bytes_per_s,
    "dram_sectors": lambda d: SECTOR_BYTES / d.memory.dram.bandwidth_bytes_per_s,
    "atomic_passes": lambda d: _cycles_s(d, ATOMIC_CYCLES),
    "serial_atomics": lambda d: ATOMIC_CYCLES / d.compute.clock_hz,
    "barriers": lambda d: _cycles_s(d, BARRIER_CYCLES),
}
# Resources whose times overlap in the roofline: the slowest one counts.
_ROOFS = ("fp32_issue", "fp64_issue", "int_issue", "special_issue", "local_passes", "l1_sectors", "l2_sectors",
          "dram_sectors")  # fmt: skip


def seconds_per_unit(device: Device, config: TimingConfig | None = None) -> NDArray[np.float64]:
    """Where a device vector starts: what a device charges for each resource, from its data sheet alone.

    The timed resources make up the whole time already (`perfvec.arch.archetypes`), so the counted ones start at a
    twentieth of their price: there to be corrected, not to be paid twice.

    Args:
        device: The device.
        config: The device as the timing model knows it; from its facts unless given.

    Returns:
        Seconds per unit, shape `(NUM_RESOURCES,)`, in the order of `RESOURCES`.
    """
    timed = archetype_prices(timing_config(device) if config is None else config)
    return np.concatenate([COUNTED_SHARE * counted_seconds_per_unit(device), timed])


def counted_seconds_per_unit(device: Device) -> NDArray[np.float64]:
    """What a device charges for each counted resource, from its data sheet alone.

    Throughput resources are totals of a launch, so each costs its share of the whole device's peak rate, with
    `C` compute units, clock `f`, 32 lanes a sub-group and 32 B a sector:

        fp32, fp64     32 / (FLOP/s / 2)                    int, other     32 / (lanes · C · f)
        special        32 / (special_lanes · C · f) + 8 fp32 instructions (assumed)
        local          128 B / bandwidth                    l1, l2, dram   32 B / bandwidth
        launch         overhead_s                           work_groups    work_group_s
        atomic pass    1 / (C · f) (assumed)                barrier        5 / (C · f) (assumed)
        serial atomic  1 / f (assumed)

    Latency resources (`issue_per_slot_S`, `access_per_slot_S`) count what one slot runs if `S` sub-groups are
    resident. The device has `N` slots; it charges the fp32 latency for an instruction, and the mean of the L2 and
    DRAM latencies for an access, at `N`, shared out between the two rungs beside it (see `ladder_weights`).

    Args:
        device: The device.

    Returns:
        Seconds per unit, shape `(NUM_COUNTED,)`, in the order of `COUNTED`; 0 on rungs away from the device.

    Source:
        Peak rates: Williams, Waterman, Patterson, "Roofline", CACM 2009. Latency term: Little's law, as in Volkov,
        "Understanding latency hiding on GPUs", 2016, section 4. Checked by hand in tests/arch/test_datasheet.py.
    """
    seconds = np.zeros(NUM_COUNTED)
    for name, throughput in _THROUGHPUTS.items():
        seconds[RESOURCE_INDEX[name]] = throughput(device)
    access_cycles = (device.memory.l2.latency_cycles + device.memory.dram.latency_cycles) / 2
    weights = ladder_weights(device.compute.num_slots)
    for slots, weight in zip(SLOT_LADDER, weights, strict=True):
        instruction_s = device.compute.fp32_latency_cycles / device.compute.clock_hz
        seconds[RESOURCE_INDEX[f"issue_per_slot_{slots}"]] = weight * instruction_s
        seconds[RESOURCE_INDEX[f"access_per_slot_{slots}"]] = weight * access_cycles / device.compute.clock_hz
    return seconds


def ladder_weights(num_slots: float) -> NDArray[np.float64]:
    """Weights of the ladder's rungs that stand for a device of `num_slots` slots.

    What a slot runs is constant where the launch has fewer sub-groups than slots, and inversely proportional to the
    slots where it has many more. Weights linear in 1 / slots between the two neighbouring rungs are exact for both:

        w_low = (1/N - 1/high) / (1/low - 1/high),   w_high = 1 - w_low

    Below the lowest rung the many-sub-groups law alone holds, `w = low / N`; above the highest rung `w = 1`.

    Args:
        num_slots: Sub-groups of 32 lanes that the device holds at once; over 0.

    Returns:
        Shape `(len(SLOT_LADDER),)`; two of them differ from 0 at most.
    """
    ladder = np.array(SLOT_LADDER, dtype=np.float64)
    weights = np.zeros(len(ladder))
    if num_slots <= ladder[0]:
        weights[0] = ladder[0] / num_slots
    elif num_slots >= ladder[-1]:
        weights[-1] = 1.0
    else:
        high = int(np.searchsorted(ladder, num_slots))
        low = high - 1
        weights[low] = (1 / num_slots - 1 / ladder[high]) / (1 / ladder[low] - 1 / ladder[high])
        weights[high] = 1 - weights[low]
    return weights


def roofline_time_s(device: Device, resources: NDArray[np.float64]) -> NDArray[np.float64]:
    """The data sheet's roofline: the launch, and then whichever resource takes longest at its peak rate.

        time = overhead_s + max(fp32, fp64, int, special, issue, local, L1, L2, DRAM)

    `issue` is all sub-group instructions over the rate at which compute units start them.

    Args:
        device: The device.
        resources: Resources of launches, in the order of `RESOURCES`, of which the counted ones are looked at; shape
            `(..., NUM_COUNTED)` or more.

    Returns:
        Seconds; shape `(...)`.

    Raises:
        ValueError: The last axis is not `NUM_COUNTED` long or longer.

    Source:
        Williams, Waterman, Patterson, "Roofline", CACM 2009, with more than one roof as in its section 5; the
        hierarchy of memory roofs as in Yang et al., "Hierarchical Roofline analysis for GPUs", 2019.
    """
    counts = np.asarray(resources, dtype=np.float64)
    if counts.ndim == 0 or counts.shape[-1] < NUM_COUNTED:
        raise ValueError(
            f"resources have shape {counts.shape}; the last axis holds the {NUM_COUNTED} resources "
            f"{COUNTED[0].name} to {COUNTED[-1].name}, and may go on"
        )
    seconds = counted_seconds_per_unit(device)
    roofs = [counts[..., RESOURCE_INDEX[name]] * seconds[RESOURCE_INDEX[name]] for name in _ROOFS]
    instructions = sum(counts[..., i] for name, i in RESOURCE_INDEX.items() if name.endswith("_issue"))
    roofs.append(instructions * seconds[RESOURCE_INDEX["other_issue"]])
    return device.launch.overhead_s * counts[..., RESOURCE_INDEX["launch"]] + np.max(roofs, axis=0)
