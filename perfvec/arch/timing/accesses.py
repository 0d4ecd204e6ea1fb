"""What each access costs: cycles of a unit's local memory and L1, bytes of the L2 and of DRAM, and how long it takes.

A load takes the latency of the level where its slowest sector is found, the levels weighted by the probability of that:

    latency = l1 + P(any misses L1) · (l2 - l1) + P(any misses L2) · (dram - l2) + cycles of further lines

Source:
    Latency of a load by where it hits, weighted by the shares: Huang, Lee, Kim, Lee, "GPUMech: GPU Performance Modeling
    Technique based on Interval Analysis", MICRO 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.timing.atomics import atomic_operations
from perfvec.arch.timing.banks import local_cycles
from perfvec.arch.timing.coalescing import l1_cycles, transactions
from perfvec.arch.timing.dram import dram_sectors
from perfvec.arch.timing.misses import miss_waits
from perfvec.arch.timing.pipes import is_class, is_space
from perfvec.arch.timing.stores import stored_to_dram, stored_to_l2
from perfvec.trace_data import SECTOR_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.reach import Reach
    from perfvec.arch.timing.workload import Workload

# Where the latency of an access comes from, in the order of `AccessCosts.parts`.
LATENCY_PARTS = ("local", "l1", "l2", "dram", "atomics")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCosts:
    """What one execution of each access costs; all `(A, M)` but for `parts`.

    Attributes:
        latency: Cycles until its value is there.
        parts: Of it, by `LATENCY_PARTS`, `(len(LATENCY_PARTS), A, M)`.
        local_cycles: Of a unit's local memory.
        l1_cycles: Of a unit's L1.
        l2_bytes: To and from the L2.
        dram_bytes: To and from DRAM.
        l1_waits: Sector-cycles for which a unit waits for what missed its L1.
        l2_waits: Sector-cycles for which the device waits for DRAM.
        atomics: Operations of the L2.
    """

    latency: NDArray[np.float64]
    parts: NDArray[np.float64]
    local_cycles: NDArray[np.float64]
    l1_cycles: NDArray[np.float64]
    l2_bytes: NDArray[np.float64]
    dram_bytes: NDArray[np.float64]
    l1_waits: NDArray[np.float64]
    l2_waits: NDArray[np.float64]
    atomics: NDArray[np.float64]


def access_costs(workload: Workload, machines: Machines, reach: Reach) -> AccessCosts:
    """Work out what accesses cost on each configuration."""
    static = workload.trace.static[workload.access_static]
    is_local = is_space(static, "local")
    is_atomic = is_class(static, "atomic") & ~is_local
    is_store = is_class(static, "store") & ~is_local
    is_load = ~(is_local | is_atomic | is_store)
    moved, looked_up = transactions(workload, machines)
    on_banks = local_cycles(workload, machines)
    in_l1 = l1_cycles(moved, looked_up, machines)
    operations = atomic_operations(workload, machines) * is_atomic[:, None]
    read = moved * is_load[:, None]
    missed = np.where(is_atomic[:, None], moved, read * reach.misses_l1)
    from_dram = (moved * (is_load | is_atomic)[:, None]) * reach.misses_l2
    stored = stored_to_l2(moved * is_store[:, None], workload, reach, machines)
    to_l2 = np.where(is_atomic[:, None], moved, stored)
    to_dram = stored_to_dram(to_l2, workload, reach, machines)
    beyond_l2 = machines.dram_latency_cycles - machines["l2_latency_cycles"]
    beyond_l1 = machines["l2_latency_cycles"] - machines["l1_latency_cycles"]
    waited = np.where(is_atomic[:, None], 1.0, reach.any_misses_l1) * ~is_local[:, None]
    in_memory = ~workload.in_registers[workload.access_static][:, None] * machines["waits"]
    parts = (
        np.stack(
            [
                is_local[:, None] * (machines["local_latency_cycles"] + np.maximum(on_banks - 1.0, 0.0)),
                ~is_local[:, None] * (machines["l1_latency_cycles"] + np.maximum(in_l1 - 1.0, 0.0)),
                waited * beyond_l1 * ~is_atomic[:, None],
                reach.any_misses_l2 * beyond_l2 * ~is_local[:, None],
                waited * beyond_l1 * (is_atomic * workload.static_attempts[workload.access_static])[:, None],
            ]
        )
        * in_memory
    )
    l1_waits, l2_waits = miss_waits(missed, from_dram, machines)
    return AccessCosts(
        latency=parts.sum(axis=0),
        parts=parts,
        local_cycles=on_banks,
        l1_cycles=np.where(is_atomic[:, None], 0.0, in_l1),
        l2_bytes=SECTOR_BYTES * (missed + stored),
        dram_bytes=SECTOR_BYTES * dram_sectors(from_dram, to_dram, workload, machines),
        l1_waits=l1_waits,
        l2_waits=l2_waits,
        atomics=operations,
    )
