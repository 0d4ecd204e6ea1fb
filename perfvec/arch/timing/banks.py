"""Banks of local memory: an access takes as many passes as the fullest bank has distinct words.

The trace counts passes of 32 lanes over 32 banks. With `b` banks they are 32 / b times as many, and each sub-group that
takes part takes one pass at least. Atomic operations on one address follow one another: as many passes as there are of
them, and as the fullest bank has other words.

Source:
    NVIDIA, "CUDA C++ Programming Guide", section "Shared Memory" of compute capability 5.x; Gómez-Luna et al.,
    "Performance Modeling of Atomic Additions on GPU Scratchpad Memory", IEEE TPDS 2013 (operations on one address in
    turn).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.config import BANK_BYTES
from perfvec.arch.timing.pipes import is_class, is_space
from perfvec.trace_data import SUB_GROUP_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload


def local_cycles(workload: Workload, machines: Machines) -> NDArray[np.float64]:
    """Cycles for which accesses keep a unit's local memory busy, `(A, M)`; 0 for other memory."""
    memory = workload.trace.memory[workload.access_outcome]
    static = workload.trace.static[workload.access_static]
    words = np.maximum(workload.access_lanes * static["access_bytes"] / BANK_BYTES, 1.0)
    conflict_free = np.ceil(words / SUB_GROUP_SIZE)[:, None]
    passes = np.where(machines["counts_conflicts"] > 0, memory["bank_passes"].astype(np.float64)[:, None], 1.0)
    passes = np.where(machines["counts_conflicts"] > 0, passes, conflict_free) * (
        SUB_GROUP_SIZE / machines["local_banks"]
    )
    sub_groups = np.ceil(workload.access_lanes[:, None] / machines["sub_group_size"])
    at_least = sub_groups * np.minimum(1.0, machines["sub_group_size"] / machines["local_banks"])
    plain = np.maximum(passes, at_least)
    in_turn = (plain + np.maximum(memory["same_address"], 1.0)[:, None] - 1.0) * machines["local_atomic_cycles"]
    cycles = np.where(is_class(static, "atomic")[:, None], np.maximum(in_turn, plain), plain)
    return np.where(is_space(static, "local")[:, None], cycles, 0.0)
