"""Live OpenCL devices: list them, pick one, and find its row in the device table."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import pyopencl as cl

from perfvec.arch.device import Device, load_devices
from perfvec.errors import OpenCLError

OCLGRIND_PLATFORM = "Oclgrind"
POCL_PLATFORM = "Portable Computing Language"
# The order in which a device is picked where the user names none.
_PREFERRED_TYPES = ("gpu", "accelerator", "cpu")
_INSTALL_HINT = "Install the GPU vendor's OpenCL driver, or PoCL for the CPU (apt-get install pocl-opencl-icd)."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDevice:
    """A device that this machine's OpenCL offers.

    Attributes:
        number: Its place in `list_devices()`.
        platform: Name of its OpenCL platform.
        name: As OpenCL names it; AMD GPUs by their board name.
        driver: Driver version.
        type: `gpu`, `cpu` or `accelerator`.
        compute_units: As OpenCL reports.
        memory_bytes: Global memory.
    """

    number: int
    platform: str
    name: str
    driver: str
    type: str
    compute_units: int
    memory_bytes: int

    @property
    def is_simulator(self) -> bool:
        """Whether its times mean nothing: Oclgrind interprets kernels."""
        return self.platform == OCLGRIND_PLATFORM


def _handles() -> list[cl.Device]:
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the ICD loader's way to say that there are none
        platforms = []
    handles: list[cl.Device] = []
    for platform in platforms:
        try:
            handles.extend(platform.get_devices())
        except cl.Error:  # a platform without a device
            continue
    return handles


def describe(handle: cl.Device, *, number: int) -> LiveDevice:
    """The record of a pyopencl device.

    Args:
        handle: The device.
        number: Its place in `list_devices()`.
    """
    kinds = ((cl.device_type.GPU, "gpu"), (cl.device_type.CPU, "cpu"))
    return LiveDevice(
        number=number,
        platform=handle.platform.name.strip(),
        name=_product_name(handle),
        driver=handle.driver_version.strip(),
        type=next((name for bit, name in kinds if handle.type & bit), "accelerator"),
        compute_units=handle.max_compute_units,
        memory_bytes=handle.global_mem_size,
    )


def _product_name(handle: cl.Device) -> str:
    """The product's name: AMD's driver puts the code name (gfx90a) into the ordinary field."""
    try:
        board = str(handle.board_name_amd)
    except (cl.Error, AttributeError):
        board = ""
    return board.strip("\0 ") or handle.name.strip("\0 ")


def list_devices() -> list[LiveDevice]:
    """All OpenCL devices of this machine, numbered from 0; empty where there are none."""
    return [describe(handle, number=number) for number, handle in enumerate(_handles())]


def choose_device(number: int | None = None) -> LiveDevice:
    """Pick a device: by number, or the first GPU, accelerator or CPU that is not the simulator.

    Args:
        number: Place in `list_devices()`; None to let the rule decide.

    Raises:
        OpenCLError: There is no such device, or none but the simulator.
    """
    devices = list_devices()
    listing = "; ".join(f"{device.number}: {device.name} ({device.platform})" for device in devices) or "none"
    if number is not None:
        if not 0 <= number < len(devices):
            raise OpenCLError(f"there is no OpenCL device {number}; found: {listing}. {_INSTALL_HINT}")
        return devices[number]
    for kind in _PREFERRED_TYPES:
        for device in devices:
            if device.type == kind and not device.is_simulator:
                return device
    raise OpenCLError(f"no OpenCL device to run kernels on; found: {listing}. {_INSTALL_HINT}")


def open_device(device: LiveDevice) -> cl.Device:
    """The pyopencl device of a record.

    Raises:
        OpenCLError: It is gone, or another device has its number now.
    """
    handles = _handles()
    if device.number < len(handles):
        handle = handles[device.number]
        # A driver of a CPU may say how much memory is free now.
        if replace(describe(handle, number=device.number), memory_bytes=device.memory_bytes) == device:
            return handle
    raise OpenCLError(f"OpenCL device {device.number}, {device.name}, is no longer there; list the devices again")


def device_key(device: LiveDevice, devices: Mapping[str, Device] | None = None) -> str:
    """The name of a live device in tables: that of its device file, or a name made from the product's.

    A GPU is known by its name alone, a CPU by name and number of compute units.

    Args:
        device: The live device.
        devices: Device files; `load_devices()` where it is None.
    """
    for known in (load_devices() if devices is None else devices).values():
        if _is_described_by(device, known):
            return known.name
    name = re.sub(r"^(pthread|basic|cpu)-", "", device.name) if device.platform == POCL_PLATFORM else device.name
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)", "", name.lower())).strip("-") or "unknown"
    if device.type != "cpu":
        return slug
    return f"{slug}-{device.compute_units}core" + ("-pocl" if device.platform == POCL_PLATFORM else "")


def _is_described_by(device: LiveDevice, known: Device) -> bool:
    name = device.name.lower()
    if not any(fnmatch.fnmatchcase(name, pattern.lower()) for pattern in known.opencl_names):
        return False
    if known.opencl_platform and known.opencl_platform != device.platform:
        return False
    return device.type == known.type and (device.type != "cpu" or device.compute_units == known.compute.compute_units)
