"""Dispatch: which work-groups are where, in how many waves, and what starting them costs.

The sample stands for the grid by its weights. Work-groups go round the units, so the fullest unit gets ceil(G / C) of
`G` on `C` units, and `R` fit at once: ceil(ceil(G / C) / R) waves. What rounding up adds is the tail.

Source:
    Waves, and the tail that they end in: NVIDIA, "GPU Performance Background User's Guide", section "GPU Execution
    Model". Dispatch as a rate of the device is this project's; empty kernels of many work-groups measure it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.timing.occupancy import resident_groups, sub_groups_per_group

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.trace_data import LaunchContext


# Units whose work-groups come between two touches of a line of the L2, however many the device has: those of the GPU
# that the model was held against. With its own number, more units could make a launch slower, for they share the L2.
REFERENCE_UNITS = 132


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """Where work-groups are; all `(M,)`.

    Attributes:
        resident: Work-groups that fit into a unit at once.
        groups_of_unit: Work-groups of the fullest unit, of the whole launch.
        sharing_groups: The same, however work-groups are rounded up.
        even_groups: The same if all units had equally many; 1 or less where some have none.
        groups_together: Work-groups in the fullest unit at once.
        groups_on_device: Work-groups at once that share the L2: those of `REFERENCE_UNITS` units.
        waves: Times that the fullest unit fills up.
        even_waves: The same without rounding up, 1 or more.
        sub_groups: Device sub-groups of a work-group.
        imbalance: Sub-groups of the fullest scheduler ÷ those of all ÷ schedulers.
        sharers: Sub-groups of a scheduler at once.
        l1_bytes: What a unit's L1 has left beside local memory.
        occupancy: Resident sub-groups ÷ most.
    """

    resident: NDArray[np.float64]
    groups_of_unit: NDArray[np.float64]
    sharing_groups: NDArray[np.float64]
    even_groups: NDArray[np.float64]
    groups_together: NDArray[np.float64]
    groups_on_device: NDArray[np.float64]
    waves: NDArray[np.float64]
    even_waves: NDArray[np.float64]
    sub_groups: NDArray[np.float64]
    imbalance: NDArray[np.float64]
    sharers: NDArray[np.float64]
    l1_bytes: NDArray[np.float64]
    occupancy: NDArray[np.float64]


def place_groups(context: LaunchContext, machines: Machines) -> Residency:
    """Place a launch's work-groups.

    Raises:
        DeviceError: A work-group fits on no unit of a configuration.
    """
    resident = resident_groups(context, machines)
    sub_groups = sub_groups_per_group(context, machines)
    units, schedulers = machines["compute_units"], machines["schedulers"]
    num_groups = float(context.num_work_groups)
    even = num_groups / units
    rounds_up = machines["rounds_up"] > 0
    fullest = np.where(rounds_up, np.ceil(even), np.maximum(even, 1.0))
    even_waves = np.maximum(num_groups / (units * resident), 1.0)
    together = np.minimum(resident, np.ceil(even))
    at_once = together * sub_groups
    granule = machines["local_granule_bytes"]
    local = np.ceil(context.local_mem_bytes / granule) * granule * together * machines["l1_holds_local"]
    return Residency(
        resident=resident,
        groups_of_unit=fullest,
        sharing_groups=np.ceil(even),
        even_groups=even,
        groups_together=together,
        groups_on_device=np.minimum(num_groups, REFERENCE_UNITS * resident),
        waves=np.where(rounds_up, np.ceil(np.ceil(even) / resident), even_waves),
        even_waves=even_waves,
        sub_groups=sub_groups,
        imbalance=np.where(rounds_up, np.ceil(at_once / schedulers) * schedulers / at_once, 1.0),
        sharers=np.ceil(at_once / schedulers),
        l1_bytes=np.maximum(machines["l1_bytes"] - local, 0.0),
        occupancy=np.minimum(resident * sub_groups / machines["max_sub_groups"], 1.0),
    )
