"""Miss limits: a level waits for so many sectors at once, so that what misses it comes at a limited rate.

    cycles = sum of sectors · the cycles for which each is waited for / limit          (Little's law)

Source:
    Little, "A Proof for the Queuing Formula L = λW", Operations Research 9, 1961. Miss-status holding registers: Kroft,
    "Lockup-Free Instruction Fetch/Prefetch Cache Organization", ISCA 1981.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines


def miss_waits(
    missed: NDArray[np.float64], from_dram: NDArray[np.float64], machines: Machines
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sector-cycles that a unit waits for what missed its L1, and the device for DRAM, of each access; `(A, M)`."""
    latency_l2, latency_dram = machines["l2_latency_cycles"], machines.dram_latency_cycles
    return missed * latency_l2 + from_dram * (latency_dram - latency_l2), from_dram * latency_dram
