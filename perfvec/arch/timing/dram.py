"""DRAM: what is moved to and from it for the sectors that miss the L2.

What is read moves as it missed, `g` bytes at least where lanes' addresses are irregular and no work-group comes to
what another touched (`dram_access_bytes`). What is stored moves as it is, if the stores of its instruction fill the
sectors that they send there before these are evicted; else DRAM reads what is around it first, `g` bytes, and writes as
much. With `f` the share of bytes that is stored, and `l` lines of `s` sectors in the access:

    moved = s · (f + (1 - f) · 2 · max(1, g / 32 · l / s))

Source:
    An access granularity of DRAM and a read before a partial write: Jacob, Ng, Wang, "Memory Systems: Cache, DRAM,
    Disk", 2007, part II. That both show on a GPU: strided and scattered stores, measured here on one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.pipes import is_class
from perfvec.trace_data import SECTOR_BYTES, STRIDE_CLASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload


def dram_sectors(
    read: NDArray[np.float64], stored: NDArray[np.float64], workload: Workload, machines: Machines
) -> NDArray[np.float64]:
    """Sectors of 32 B that DRAM moves for each access, `(A, M)`.

    Args:
        read: Sectors that it reads from DRAM, `(A, M)`.
        stored: Sectors that it stores there.
        workload: The launch.
        machines: The configurations.
    """
    memory = workload.trace.memory[workload.access_outcome]
    lines_a_sector = np.minimum(memory["lines"] / np.maximum(memory["sectors"], 1.0), 1.0)[:, None]
    around = np.maximum(1.0, lines_a_sector * (machines["dram_access_bytes"] / SECTOR_BYTES))
    is_irregular = memory["stride_class"] == STRIDE_CLASSES.index("irregular")
    scattered = (is_irregular * workload.static_scattered[workload.access_static])[:, None]
    full = _written_share(stored, workload)
    return read * (1.0 + scattered * (around - 1.0)) + stored * (full + (1.0 - full) * 2.0 * around)


def _written_share(stored: NDArray[np.float64], workload: Workload) -> NDArray[np.float64]:
    """Share of the sectors that each access stores to DRAM which the stores of its instruction fill, `(A, M)`."""
    at, static = workload.access_static, workload.trace.static
    is_store = is_class(static, "store", "copy")[at]
    asked = workload.access_executed * workload.access_lanes * static["access_bytes"][at]
    bytes_S = np.bincount(at, asked, len(static))
    sectors_SM = np.zeros((len(static), stored.shape[1]))
    np.add.at(sectors_SM, at, stored * workload.access_executed[:, None])
    share_SM = np.minimum(1.0, bytes_S[:, None] / np.maximum(sectors_SM * SECTOR_BYTES, 1e-9))
    return np.where(is_store[:, None], share_SM[at], 1.0)
