from __future__ import annotations

from pathlib import Path

import pytest

from perfvec.arch.adding import Specification, add_device, device_text, nearest_device, scaled_device
from perfvec.arch.device import find_device, load_devices, read_device
from perfvec.errors import DeviceError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platformdirs.user_data_dir", lambda name: str(tmp_path / name))
    return tmp_path / "perfvec" / "archs"


def test_every_shipped_device_comes_back_from_its_text(tmp_path: Path):
    for device in load_devices().values():
        path = tmp_path / f"{device.name}.toml"
        path.write_text(device_text(device), encoding="utf-8")
        assert read_device(path) == device


def test_what_is_not_given_is_scaled():
    like = find_device("nvidia-rtx-3090")
    old = like.compute
    spec = Specification(
        name="half", vendor="nvidia", type="gpu", compute_units=old.compute_units // 2, clock_hz=old.clock_hz
    )
    made = scaled_device(spec, like)
    assert made.compute.fp32_flops == pytest.approx(old.fp32_flops / 2)
    assert made.compute.fp32_lanes == pytest.approx(old.fp32_lanes)
    assert made.memory.l2.bandwidth_bytes_per_s == pytest.approx(like.memory.l2.bandwidth_bytes_per_s / 2)
    assert made.source_of("compute.compute_units") == "given"
    assert made.source_of("memory.dram.latency_cycles").startswith("assumed: as nvidia-rtx-3090")


def test_what_is_given_is_taken():
    spec = Specification(
        name="new", vendor="amd", type="gpu", compute_units=10, clock_hz=2e9, fp32_flops=2.56e12, fp64_flops=1.6e11,
        dram_bytes=2**33, dram_bytes_per_s=1e11, l2_bytes=2**20, year=2021, source="a data sheet",
    )  # fmt: skip
    made = scaled_device(spec, find_device("amd-rx-6900-xt"))
    assert (made.compute.fp32_flops, made.compute.fp64_flops) == (2.56e12, 1.6e11)
    assert (made.memory.dram.bandwidth_bytes_per_s, made.memory.dram.capacity_bytes) == (1e11, 2**33)
    assert made.source_of("memory.dram.bandwidth_bytes_per_s") == "a data sheet"


def test_the_nearest_device_is_of_the_same_vendor_and_family():
    devices = load_devices()
    spec = Specification(name="x", vendor="nvidia", type="gpu", architecture="Ampere", year=2021, compute_units=46)
    near = nearest_device(spec, devices)
    assert near.vendor == "nvidia" and "Ampere" in near.architecture
    rdna = Specification(name="x", vendor="amd", type="gpu", architecture="RDNA 2.0", year=2021, compute_units=28)
    assert nearest_device(rdna, devices).architecture == "RDNA2"
    assert nearest_device(Specification(name="x", vendor="intel", type="cpu"), devices).type == "cpu"
    with pytest.raises(DeviceError, match="no device file of type 'abacus'"):
        nearest_device(Specification(name="x", vendor="intel", type="abacus"), devices)


def test_an_added_device_is_found_and_not_overwritten(folder: Path):
    like = find_device("nvidia-rtx-3090")
    made = scaled_device(Specification(name="mine", vendor="nvidia", type="gpu", compute_units=10), like)
    assert add_device(made) == folder / "mine.toml"
    assert find_device("mine") == made
    with pytest.raises(DeviceError, match="there is a device 'mine' already"):
        add_device(made)


def test_what_the_timing_model_refuses_is_not_written(folder: Path):
    # Oclgrind says that it runs at 1 MHz.
    made = scaled_device(
        Specification(name="slow", vendor="oclgrind", type="cpu", clock_hz=1e6), find_device("intel-i7-3820")
    )
    with pytest.raises(DeviceError, match=r"cannot add slow: .*clock_hz=1000000.0.* by hand"):
        add_device(made)
    assert not folder.exists()
