"""Device files for devices that have none: facts of a device of the same family, scaled by what is known of the other.

What a family's compute unit does in a cycle is taken over from the nearest device file; how many there are, how fast
they run and what memory they have is given. The sources of the file say which is which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from perfvec.arch.device import (
    MEMORY_LEVELS,
    Compute,
    Device,
    LaunchCost,
    MemoryLevel,
    load_devices,
    read_device,
    user_folder,
)
from perfvec.errors import DeviceError
from perfvec.files import whole_file

if TYPE_CHECKING:
    from perfvec.arch.opencl import LiveDevice

_HEAD = ("name", "vendor", "type", "architecture", "year", "aliases", "opencl_names", "opencl_platform")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """What is known of a device without a file; 0 for what is not.

    Attributes:
        name: To give it.
        vendor: Lower case.
        type: `gpu`, `cpu` or `accelerator`.
        architecture: The vendor's name of the family, "" where unknown.
        year: Of release.
        compute_units: As OpenCL counts them.
        clock_hz: Highest clock under load.
        fp32_flops: Of the whole device.
        fp64_flops: Of the whole device.
        dram_bytes: Capacity.
        dram_bytes_per_s: Bandwidth.
        l2_bytes: Capacity.
        source: Where all this is from.
    """

    name: str
    vendor: str
    type: str
    architecture: str = ""
    year: int = 0
    compute_units: int = 0
    clock_hz: float = 0.0
    fp32_flops: float = 0.0
    fp64_flops: float = 0.0
    dram_bytes: float = 0.0
    dram_bytes_per_s: float = 0.0
    l2_bytes: float = 0.0
    source: str = "given"


def nearest_device(spec: Specification, devices: Mapping[str, Device]) -> Device:
    """The device file to scale: of the same type, and of the same architecture, vendor and age as far as there is one.

    Raises:
        DeviceError: There is none of the type.
    """
    same = [device for device in devices.values() if device.type == spec.type]
    if not same:
        raise DeviceError(f"no device file of type {spec.type!r} to start from; write archs/{spec.name}.toml by hand")

    def distance(device: Device) -> tuple[bool, bool, int, float]:
        given, its_own = _family(spec.architecture), _family(device.architecture)
        is_other_family = given not in its_own and its_own not in given
        return (
            device.vendor != spec.vendor,
            is_other_family,
            abs(device.year - spec.year) if spec.year else 0,
            abs(device.compute.compute_units - spec.compute_units),
        )

    return min(same, key=distance)


def _family(architecture: str) -> str:
    """An architecture's name without what tables write differently: "RDNA 2.0" and "RDNA2" are one."""
    return re.sub(r"\.0|[^a-z0-9]", "", architecture.lower())


def scaled_device(spec: Specification, like: Device) -> Device:
    """A device of `like`'s family with the given figures; what is not given follows from compute units and clock.

    Raises:
        DeviceError: The figures contradict each other.
    """
    old = like.compute
    units, clock = spec.compute_units or old.compute_units, spec.clock_hz or old.clock_hz
    rate = units * clock / (old.compute_units * old.clock_hz)
    fp32 = spec.fp32_flops or old.fp32_flops * rate
    fp64 = spec.fp64_flops or fp32 * old.fp64_flops / old.fp32_flops
    levels: dict[str, MemoryLevel] = {
        level: replace(
            getattr(like.memory, level), bandwidth_bytes_per_s=getattr(like.memory, level).bandwidth_bytes_per_s * rate
        )
        for level in MEMORY_LEVELS
    }
    dram = replace(
        like.memory.dram,
        capacity_bytes=int(spec.dram_bytes or like.memory.dram.capacity_bytes),
        bandwidth_bytes_per_s=spec.dram_bytes_per_s or like.memory.dram.bandwidth_bytes_per_s * rate,
    )
    # A scaled cache is at least as fast as the memory behind it.
    l2_bandwidth = max(levels["l2"].bandwidth_bytes_per_s, dram.bandwidth_bytes_per_s)
    l2 = replace(
        levels["l2"],
        capacity_bytes=int(spec.l2_bytes or like.memory.l2.capacity_bytes),
        bandwidth_bytes_per_s=l2_bandwidth,
    )
    l1 = replace(levels["l1"], bandwidth_bytes_per_s=max(levels["l1"].bandwidth_bytes_per_s, l2_bandwidth))
    assumed = f"assumed: as {like.name}, scaled by compute units and clock"
    given = {
        "compute.compute_units": spec.compute_units,
        "compute.clock_hz": spec.clock_hz,
        "compute.fp32_flops": spec.fp32_flops,
        "compute.fp64_flops": spec.fp64_flops,
        "memory.dram.capacity_bytes": spec.dram_bytes,
        "memory.dram.bandwidth_bytes_per_s": spec.dram_bytes_per_s,
        "memory.l2.capacity_bytes": spec.l2_bytes,
    }
    return Device(
        name=spec.name,
        vendor=spec.vendor,
        type=spec.type,
        architecture=spec.architecture or like.architecture,
        year=spec.year or like.year,
        compute=replace(old, compute_units=units, clock_hz=clock, fp32_flops=fp32, fp64_flops=min(fp64, fp32)),
        memory=replace(like.memory, dram=dram, l2=l2, l1=l1, local=levels["local"]),
        launch=like.launch,
        sources={
            **dict.fromkeys(("compute", "memory", "launch"), assumed),
            **{path: spec.source for path, value in given.items() if value},
        },
    )


def device_text(device: Device) -> str:
    """The TOML file of a device."""
    tables: dict[str, dict[str, Any]] = {
        "device": {name: value for name in _HEAD if (value := getattr(device, name)) not in ("", ())},
        "compute": _values(device.compute, Compute),
        **{f"memory.{level}": _values(getattr(device.memory, level), MemoryLevel) for level in MEMORY_LEVELS},
        "launch": _values(device.launch, LaunchCost),
        "achieved": dict(device.achieved),
        "sources": dict(device.sources),
    }
    lines: list[str] = []
    for table, values in tables.items():
        if values:
            lines += ["" if lines else "# Made by perfvec.", f"[{table}]"]
            lines += [f"{json.dumps(key) if '.' in key else key} = {_toml(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _values(record: object, kind: type) -> dict[str, Any]:
    return {item.name: getattr(record, item.name) for item in fields(kind)}


def _toml(value: object) -> str:
    # JSON's texts, numbers and lists of texts are TOML's too.
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def add_device(device: Device) -> Path:
    """Write a device's file into the user's folder.

    Raises:
        DeviceError: A device file, shipped or the user's, has the name already, or the timing model refuses the facts.
    """
    from perfvec.arch.timing.of_device import timing_config

    known = load_devices()
    if device.name in known:
        raise DeviceError(f"there is a device {device.name!r} already; give another name, or remove its file first")
    path = user_folder() / f"{device.name}.toml"
    try:
        timing_config(device)
    except DeviceError as error:
        raise DeviceError(f"cannot add {device.name}: {error}. Write its facts into {path} by hand") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(device_text(device), encoding="utf-8")
    read_device(path)
    return path


def live_specification(live: LiveDevice, name: str) -> Specification:
    """What OpenCL says of a live device."""
    import pyopencl as cl

    from perfvec.arch.opencl import open_device

    handle = open_device(live)
    words = f"{live.platform} {live.name} {handle.vendor}".lower()
    vendor = next((vendor for vendor in ("nvidia", "amd", "intel") if vendor in words), live.platform.lower())
    try:
        clock_hz = 1e6 * float(handle.max_clock_frequency)
    except cl.Error:
        clock_hz = 0.0
    return Specification(
        name=name,
        vendor="amd" if "advanced micro" in words else vendor,
        type=live.type,
        compute_units=live.compute_units,
        clock_hz=clock_hz,
        dram_bytes=float(live.memory_bytes),
        source="as OpenCL reports",
    )
