"""What the timing model needs to know of a SIMT device: plain numbers, each with its unit and its allowed range.

Cycles are of the core clock, whatever the part. "Unit" is a compute unit. Lanes are operations that one unit starts a
cycle in all its schedulers together, so a pipe of `L` lanes takes a sub-group of `w` every `w / L` cycles.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, final

from perfvec.errors import DeviceError
from perfvec.trace_data import LINE_BYTES, SECTOR_BYTES

GREEDY_THEN_OLDEST, ROUND_ROBIN = "greedy-then-oldest", "round-robin"
THROUGH, BACK = "through", "back"
WARM, COLD = "warm", "cold"
# Bytes of local memory in a row of a bank.
BANK_BYTES = 4


def _number(low: float, high: float, default: float | None = None) -> Any:
    metadata = {"low": low, "high": high}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


def _one_of(*allowed: object, default: object = None) -> Any:
    metadata = {"allowed": allowed}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TimingConfig:
    """One device of the timing model.

    Attributes:
        compute_units: NVIDIA SMs, AMD CUs, Intel sub-slices.
        clock_hz: Clock of the units.
        sub_group_size: Lanes of the device's sub-group: 8, 16, 32 or 64.
        schedulers: Schedulers of a unit; each has its share of the unit's sub-groups and pipes.
        scheduler_policy: `greedy-then-oldest` or `round-robin`.
        interleaving: Of what other sub-groups touch while one comes back to a line, the share that comes between: 1 if
            all advance evenly, 0 if each runs to its end.
        issue_width: Instructions that a scheduler starts per cycle.
        fp32_lanes: fp32 operations of a unit per cycle; a fused multiply-add is one.
        fp64_lanes: fp64 operations of a unit per cycle.
        int_lanes: 32-bit integer operations of a unit per cycle.
        special_lanes: Reciprocals, roots and transcendental functions of a unit per cycle.
        load_store_lanes: Addresses that a unit's load/store pipe takes per cycle.
        fp32_latency_cycles: From an fp32 operation to one that needs its result.
        fp64_latency_cycles: The same for fp64.
        int_latency_cycles: The same for integers, comparisons, selections.
        special_latency_cycles: The same for the special-function pipe.
        branch_latency_cycles: From a branch to the next instruction of the sub-group.
        lookahead_instructions: How far compiler and unit bring an instruction forward past others that wait; 0 for
            strictly in order.
        max_sub_groups: Most resident sub-groups of a unit.
        max_groups: Most resident work-groups of a unit.
        max_group_work_items: Most work-items of a work-group.
        registers: 32-bit registers of a unit.
        register_granule: Registers of a work-item are handed out in multiples of this.
        register_overhead: Registers of a work-item beyond those that the trace counts as live.
        max_registers_per_work_item: What is above lives in private memory.
        local_bytes: Local memory of a unit.
        max_group_local_bytes: Most local memory of a work-group.
        local_granule_bytes: Local memory is handed out in multiples of this.
        local_banks: Banks of local memory, each of 4 B a cycle.
        local_latency_cycles: From a local load to the use of its value.
        l1_bytes: First-level cache of a unit; 0 where there is none for global memory.
        l1_holds_local: Whether resident work-groups' local memory is taken from `l1_bytes`.
        l1_ways: Lines of a set.
        l1_latency_cycles: From a load to the use of its value where it hits.
        l1_bytes_per_cycle: What a unit's L1 delivers.
        l1_lines_per_cycle: Lines that a unit's L1 looks up.
        l1_miss_limit_sectors: Sectors of 32 B that a unit may wait for at once.
        l1_write_policy: `through` (stores go on to the L2 at once) or `back`.
        l2_bytes: Last-level cache of the device.
        l2_ways: Lines of a set.
        l2_latency_cycles: From a load to the use of its value where it misses L1 and hits L2.
        l2_bytes_per_s: What the L2 delivers to all units together.
        l2_bytes_per_cycle_per_unit: What one unit can take from it or send to it.
        l2_miss_limit_sectors: Sectors of 32 B that the device may wait for at once.
        l2_write_policy: `back` (what is stored goes to DRAM when it is evicted) or `through`.
        sector_bytes: Least that a miss moves: 32, 64 or 128.
        line_bytes: What one tag covers: 64 or 128; at least a sector.
        dram_bytes_per_s: What DRAM delivers on a long copy, read and written bytes together.
        dram_access_bytes: What DRAM moves at least to read or change bytes anywhere: 32, 64 or 128.
        dram_latency_s: From a load to the use of its value where it misses everywhere.
        local_atomic_cycles: Between two atomic operations on one address of local memory.
        l2_atomics_per_cycle: Atomic operations on distinct lines that the L2 takes per cycle, the whole device.
        l2_atomic_same_line_cycles: Between two atomic operations on one line of global memory.
        barrier_cycles: From the last arrival at a barrier to the next instruction.
        group_start_cycles: From a free place in a unit to the first instruction of its next work-group.
        group_dispatch_s: Between two work-groups, the whole device dispatching.
        launch_overhead_s: Time of an empty kernel of one work-group.
        start: `warm` where the launch ran before on the same buffers, or `cold`.
        overlap_exponent: How well the bounds of a launch hide behind each other; see `perfvec.arch.timing.overlap`.
        uniform_share: Of integer instructions and branches that are the same for all lanes, such as those of counted
            loops, the share that is left after unrolling and hoisting.
        address_instructions: Integer instructions of an address calculation.
        convert_instructions: Integer instructions of a conversion from or to floating point; others are free.
        division_instructions: fp32 instructions of an fp32 division, beside one special operation.
        special_instructions: fp32 instructions of a transcendental function at full precision, beside one special.
        fp64_special_instructions: fp64 instructions of an fp64 division or root; other functions take twice that.
        integer_division_instructions: Integer instructions of a 32-bit division or remainder.
    """

    compute_units: int = _number(1, 4096)
    clock_hz: float = _number(1e8, 1e10)
    sub_group_size: int = _one_of(8, 16, 32, 64)
    schedulers: int = _number(1, 64)
    scheduler_policy: str = _one_of(GREEDY_THEN_OLDEST, ROUND_ROBIN, default=GREEDY_THEN_OLDEST)
    interleaving: float = _number(0, 1, default=0.5)
    issue_width: float = _number(0.0625, 16, default=1.0)

    fp32_lanes: float = _number(1, 4096)
    fp64_lanes: float = _number(0.0625, 4096)
    int_lanes: float = _number(1, 4096)
    special_lanes: float = _number(0.0625, 4096)
    load_store_lanes: float = _number(1, 4096)
    fp32_latency_cycles: float = _number(1, 1000)
    fp64_latency_cycles: float = _number(1, 1000)
    int_latency_cycles: float = _number(1, 1000)
    special_latency_cycles: float = _number(1, 1000)
    branch_latency_cycles: float = _number(0, 1000, default=8.0)
    lookahead_instructions: int = _number(0, 256, default=32)

    max_sub_groups: int = _number(1, 4096)
    max_groups: int = _number(1, 4096)
    max_group_work_items: int = _number(1, 65_536, default=1024)
    registers: int = _number(256, 1 << 24)
    register_granule: int = _number(1, 64, default=8)
    register_overhead: int = _number(0, 64, default=8)
    max_registers_per_work_item: int = _number(16, 1024, default=255)
    local_bytes: int = _number(0, 1 << 30)
    max_group_local_bytes: int = _number(0, 1 << 30)
    local_granule_bytes: int = _number(1, 65_536, default=128)
    local_banks: int = _number(1, 1024, default=32)
    local_latency_cycles: float = _number(1, 1000)

    l1_bytes: int = _number(0, 1 << 30)
    l1_holds_local: bool = _one_of(True, False, default=False)
    l1_ways: int = _number(1, 1024, default=4)
    l1_latency_cycles: float = _number(1, 10_000)
    l1_bytes_per_cycle: float = _number(1, 4096)
    l1_lines_per_cycle: float = _number(0.0625, 64, default=1.0)
    l1_miss_limit_sectors: int = _number(1, 1 << 20, default=1024)
    l1_write_policy: str = _one_of(THROUGH, BACK, default=THROUGH)
    l2_bytes: int = _number(4096, 1 << 36)
    l2_ways: int = _number(1, 1024, default=16)
    l2_latency_cycles: float = _number(1, 10_000)
    l2_bytes_per_s: float = _number(1e8, 1e15)
    l2_bytes_per_cycle_per_unit: float = _number(1, 4096, default=64.0)
    l2_miss_limit_sectors: int = _number(1, 1 << 26, default=1 << 17)
    l2_write_policy: str = _one_of(BACK, THROUGH, default=BACK)
    sector_bytes: int = _one_of(32, 64, 128, default=SECTOR_BYTES)
    line_bytes: int = _one_of(64, 128, default=LINE_BYTES)
    dram_bytes_per_s: float = _number(1e8, 1e15)
    dram_access_bytes: int = _one_of(32, 64, 128, default=64)
    dram_latency_s: float = _number(1e-9, 1e-4)

    local_atomic_cycles: float = _number(0.0625, 10_000, default=2.0)
    l2_atomics_per_cycle: float = _number(0.0625, 65_536)
    l2_atomic_same_line_cycles: float = _number(0.0625, 10_000, default=2.0)
    barrier_cycles: float = _number(0, 10_000, default=20.0)
    group_start_cycles: float = _number(0, 1e6, default=200.0)
    group_dispatch_s: float = _number(0, 1e-3)
    launch_overhead_s: float = _number(0, 1.0)
    start: str = _one_of(WARM, COLD, default=WARM)
    overlap_exponent: float = _number(1, 64, default=8.0)

    uniform_share: float = _number(0, 1, default=0.5)
    address_instructions: float = _number(0, 16, default=0.5)
    convert_instructions: float = _number(0, 16, default=1.0)
    division_instructions: float = _number(0, 1000, default=8.0)
    special_instructions: float = _number(0, 1000, default=32.0)
    fp64_special_instructions: float = _number(0, 1000, default=24.0)
    integer_division_instructions: float = _number(0, 1000, default=16.0)

    def __post_init__(self) -> None:
        for entry in fields(self):
            _check(entry, getattr(self, entry.name))
        for small, large, reason in _ORDERED:
            if getattr(self, small) > getattr(self, large):
                raise DeviceError(
                    f"timing configuration: {small}={getattr(self, small):g} is more than "
                    f"{large}={getattr(self, large):g}; {reason}"
                )
        if self.l2_latency_s > self.dram_latency_s:
            raise DeviceError(
                f"timing configuration: dram_latency_s={self.dram_latency_s:g} is less than l2_latency_cycles="
                f"{self.l2_latency_cycles:g} at clock_hz={self.clock_hz:g}, {self.l2_latency_s:g} s; allowed is that "
                "or more, since what misses L2 has waited for it"
            )
        if self.max_group_work_items > self.max_sub_groups * self.sub_group_size:
            raise DeviceError(
                f"timing configuration: max_group_work_items={self.max_group_work_items}; allowed are up to "
                f"max_sub_groups x sub_group_size = {self.max_sub_groups * self.sub_group_size}, since a work-group "
                "runs in one unit"
            )

    @property
    def l2_latency_s(self) -> float:
        """Latency of a hit in L2, in seconds."""
        return self.l2_latency_cycles / self.clock_hz


_ORDERED = (
    ("l1_latency_cycles", "l2_latency_cycles", "a nearer level answers at least as soon"),
    ("sector_bytes", "line_bytes", "a line has one sector or more"),
    ("max_group_local_bytes", "local_bytes", "a work-group's local memory lies in one unit"),
)


def _check(entry: Field[Any], value: Any) -> None:
    """Refuse a value that is not allowed in its field."""
    where = f"timing configuration: {entry.name}={value!r}"
    if "allowed" in entry.metadata:
        allowed = entry.metadata["allowed"]
        if value not in allowed or (isinstance(value, bool) != isinstance(allowed[0], bool)):
            raise DeviceError(f"{where}; allowed: {', '.join(map(str, allowed))}")
        return
    low, high = entry.metadata["low"], entry.metadata["high"]
    kind = "whole numbers" if entry.type == "int" else "numbers"
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high or (entry.type == "int" and value != int(value)):
        raise DeviceError(f"{where}; allowed are {kind} from {low:g} to {high:g}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRange:
    """What a field of `TimingConfig` allows: numbers from `low` to `high`, or the values in `allowed`."""

    low: float
    high: float
    allowed: tuple[object, ...]
    is_whole: bool
    is_required: bool


def field_ranges() -> dict[str, FieldRange]:
    """What each field of `TimingConfig` allows, by name; `allowed` is empty for ranges of numbers."""
    return {
        entry.name: FieldRange(
            low=entry.metadata.get("low", math.nan),
            high=entry.metadata.get("high", math.nan),
            allowed=tuple(entry.metadata.get("allowed", ())),
            is_whole=entry.type == "int",
            is_required=entry.default is MISSING,
        )
        for entry in fields(TimingConfig)
    }
