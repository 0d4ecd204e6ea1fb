"""Occupancy: how many work-groups a unit holds at once.

    groups = min(max_groups, max_sub_groups / s, registers / (s · w · r), local memory / l)

with `s` sub-groups of `w` lanes a work-group, `r` registers a work-item and `l` bytes a work-group, each rounded up to
what the device hands out, the quotients rounded down.

Source:
    NVIDIA, "CUDA C++ Programming Guide", section "Multiprocessor Level", and "CUDA Occupancy Calculator"; Hong and Kim,
    "An Analytical Model for a GPU Architecture with Memory-level and Thread-level Parallelism Awareness", ISCA 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.errors import DeviceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.trace_data import LaunchContext


def sub_groups_per_group(context: LaunchContext, machines: Machines) -> NDArray[np.float64]:
    """Device sub-groups of a work-group, `(M,)`."""
    return np.ceil(context.local_size / machines["sub_group_size"])


def registers_per_work_item(context: LaunchContext, machines: Machines) -> NDArray[np.float64]:
    """Registers that a work-item is given, `(M,)`: as few as it takes for one work-group to fit, if need be.

    Compilers keep the rest in private memory, so that a work-group of the largest size fits on every device.
    """
    granule = machines["register_granule"]
    registers = np.maximum(context.live_registers + machines["register_overhead"], 1.0)
    wanted = np.ceil(registers / granule) * granule
    lanes = sub_groups_per_group(context, machines) * machines["sub_group_size"]
    most = np.maximum(np.floor(machines["registers"] / lanes / granule), 1.0) * granule
    return np.minimum(wanted, np.minimum(most, np.floor(machines["max_registers_per_work_item"] / granule) * granule))


def resident_groups(context: LaunchContext, machines: Machines) -> NDArray[np.float64]:
    """Work-groups that a unit holds at once, `(M,)`; whole numbers of 1 or more.

    Raises:
        DeviceError: A work-group fits on no unit of a configuration.
    """
    _check_fit(context, machines)
    sub_groups = sub_groups_per_group(context, machines)
    by_sub_groups = np.floor(machines["max_sub_groups"] / sub_groups)
    lanes = sub_groups * machines["sub_group_size"]
    by_registers = np.floor(machines["registers"] / (lanes * registers_per_work_item(context, machines)))
    granule = machines["local_granule_bytes"]
    by_local = np.floor(machines["local_bytes"] / np.maximum(np.ceil(context.local_mem_bytes / granule) * granule, 1.0))
    limited = np.minimum(np.minimum(machines["max_groups"], by_registers), np.maximum(by_local, 1.0))
    return np.where(machines["limits_occupancy"] > 0, np.minimum(by_sub_groups, limited), by_sub_groups)


def _check_fit(context: LaunchContext, machines: Machines) -> None:
    for config in machines.configs:
        if context.local_mem_bytes > config.max_group_local_bytes:
            raise DeviceError(
                f"a work-group takes {context.local_mem_bytes} B of local memory; allowed by max_group_local_bytes are "
                f"{config.max_group_local_bytes}, so it fits on no compute unit. Trace a launch with less local memory."
            )
        if context.local_size > config.max_group_work_items:
            raise DeviceError(
                f"a work-group has {context.local_size} work-items; allowed by max_group_work_items are "
                f"{config.max_group_work_items}, so it fits on no compute unit. Trace a launch with smaller ones."
            )
