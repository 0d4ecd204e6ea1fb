"""Coalescing: what a sub-group's access asks of the L1, by width of the sub-group and size of lines and sectors.

The trace counts distinct sectors of 32 B and lines of 128 B for sub-groups of 8, 16 and 32 lanes. A sector of `s` bytes
or a line of `l` is counted from both: there are at least as many as lines of 128 B, and at least the sectors' bytes.

    moved sectors of 32 B = max(sectors, lines · s / 32),   looked-up lines = max(lines, sectors · 32 / l)

Source:
    NVIDIA, "CUDA C++ Best Practices Guide", section "Coalesced Access to Global Memory"; sectors as the unit of a miss:
    Khairy, Shen, Aamodt, Rogers, "Accel-Sim", ISCA 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.pipes import is_space
from perfvec.trace_data import LINE_BYTES, SECTOR_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload


def by_width(memory: NDArray[np.void], name: str, widths_M: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sectors or lines of accesses on each configuration, `(A, M)`; halves of sub-groups of 64 coalesce apart."""
    columns = np.stack([memory[f"{name}_8"], memory[f"{name}_16"], memory[name]], axis=1).astype(np.float64)
    columns = np.maximum(columns, columns[:, 2:])  # narrow sub-groups share no sector; private memory is not told apart
    return columns[:, np.searchsorted((8, 16), widths_M)]


def transactions(workload: Workload, machines: Machines) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sectors of 32 B that accesses move, and lines that they look up; both `(A, M)`.

    Accesses of local memory, and of private arrays that are in registers, do neither.
    """
    memory = workload.trace.memory[workload.access_outcome]
    static = workload.trace.static[workload.access_static]
    sectors, lines = (by_width(memory, name, machines["sub_group_size"]) for name in ("sectors", "lines"))
    asked = workload.access_lanes * np.maximum(static["access_bytes"], 1)
    together = machines["counts_scatter"] == 0
    sectors = np.where(together, np.minimum(sectors, np.ceil(asked / SECTOR_BYTES)[:, None]), sectors)
    lines = np.where(together, np.minimum(lines, np.ceil(asked / LINE_BYTES)[:, None]), lines)
    moved = np.maximum(sectors, lines * (machines["sector_bytes"] / SECTOR_BYTES))
    looked_up = np.maximum(lines, sectors * (SECTOR_BYTES / machines["line_bytes"]))
    # Lanes that choose other words of their private arrays: sector by sector, as measured on one GPU.
    is_dynamic = is_space(static, "private") & (memory["lines"] > 1)
    looked_up = np.where(is_dynamic[:, None], np.maximum(lines, sectors), looked_up)
    is_none = (is_space(static, "local") | workload.in_registers[workload.access_static])[:, None]
    return np.where(is_none, 0.0, moved), np.where(is_none, 0.0, looked_up)


def l1_cycles(moved: NDArray[np.float64], looked_up: NDArray[np.float64], machines: Machines) -> NDArray[np.float64]:
    """Cycles for which accesses keep a unit's L1 busy, `(A, M)`."""
    return np.maximum(looked_up / machines["l1_lines_per_cycle"], SECTOR_BYTES * moved / machines["l1_bytes_per_cycle"])
