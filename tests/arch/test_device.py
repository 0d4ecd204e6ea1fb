from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfvec.arch import device as device_module
from perfvec.arch.device import fact_names, find_device, load_devices, read_device
from perfvec.content import content_folder
from perfvec.errors import DeviceError

H200 = content_folder("archs") / "nvidia-h200.toml"


def test_all_shipped_files_load(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(device_module, "user_folder", lambda: tmp_path / "none")
    devices = load_devices()
    assert len(devices) >= 100
    assert {"nvidia-h200", "amd-epyc-2core-pocl", "xeon-16core-pocl"} <= devices.keys()
    for name, device in devices.items():
        assert device.name == name
        assert all(device.source_of(path) for path in fact_names())


def test_facts_and_their_sources():
    device = find_device("nvidia-h200")
    assert device.compute.compute_units == 132
    assert device.compute.fp32_lanes == pytest.approx(128, rel=1e-4)
    assert device.compute.num_slots == 132 * 64
    assert device.memory.dram.bandwidth_bytes_per_s == 4.8e12
    assert device.is_assumed("memory.l2.bandwidth_bytes_per_s")
    assert not device.is_assumed("compute.clock_hz")
    assert find_device("xeon-16core-pocl").is_assumed("memory.dram.bandwidth_bytes_per_s")


def test_what_microbenchmarks_reach_stands_beside_the_facts():
    device = find_device("nvidia-h200")
    path = "memory.dram.bandwidth_bytes_per_s"
    assert device.fact(path) == 4.8e12
    assert 0.75 * 4.8e12 < device.achieved[path] < 4.8e12
    with pytest.raises(DeviceError, match=r"no fact 'memory.l2.latency'; allowed: memory.l2.latency_cycles"):
        device.fact("memory.l2.latency")


def test_wavefronts_of_64_count_as_two_sub_groups():
    assert find_device("amd-instinct-mi250x-1gcd").compute.num_slots == 110 * 2048 / 32


def test_aliases_and_nearest_names():
    assert find_device("H200").name == "nvidia-h200"
    with pytest.raises(DeviceError, match=r"no device 'nvidia-h20'; did you mean nvidia-h200"):
        find_device("nvidia-h20")
    with pytest.raises(DeviceError, match=r"no device '!'; `perfvec devices` lists all \d+\. .*NAME\.toml"):
        find_device("!")


def write(folder: Path, old: str, new: str, *, name: str = "nvidia-h200") -> Path:
    text = H200.read_text(encoding="utf-8")
    assert old in text
    path = folder / f"{name}.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("compute_units = 132", "compute_unit = 132", r"\[compute\] has the unknown key 'compute_unit'; allowed: "),
        ("compute_units = 132\n", "", r"\[compute\] lacks 'compute_units'"),
        ("compute_units = 132", "compute_units = 132.5", r"compute_units=132.5; allowed is a whole number"),
        ("compute_units = 132", "compute_units = 0", r"compute_units=0; allowed are finite numbers over 0"),
        ("clock_hz = 1.98e9", "clock_hz = true", r"clock_hz=True; allowed is a number"),
        ("clock_hz = 1.98e9", "clock_hz = nan", r"clock_hz=nan; allowed are finite"),
        ("clock_hz = 1.98e9", "clock_hz = 1980", r"lanes a compute unit; allowed are 1 to 1024"),
        ("fp64_flops = 3.3454e13", "fp64_flops = 9e13", r"fp64_flops=9e\+13 is more than fp32_flops"),
        ("bandwidth_bytes_per_s = 4.8e12", "bandwidth_bytes_per_s = 4.8e15", r"less than that of dram"),
        ("latency_cycles = 34.0", "latency_cycles = 340.0", r"l1.latency_cycles=340 is more than that of l2, 260"),
        ("year = 2024", "year = 24", r"year=24; allowed are 1970"),
        ('type = "gpu"', 'type = "fpga"', r"type='fpga'; allowed: gpu, cpu, accelerator"),
        ('vendor = "nvidia"', 'vendor = ""', r"vendor=''; allowed is a text"),
        ('aliases = ["nvidia-h200-sxm-141gb", "h200"]', 'aliases = "h200"', r"allowed is a list of texts"),
        ("[memory.l1]", "[memory.l0]", r"\[memory\] has the unknown key 'l0'"),
        ("[launch]", "[lunch]", r"unknown key 'lunch'; allowed: launch"),
        ('"memory" = ', '"memori" = ', r"\[sources\] has 'memori'"),
        ('"launch.overhead_s" = ', '# "launch.overhead_s" = ', r"launch.overhead_s has no source; add it to"),
        ("[device]", "[device", r"cannot read device file"),
        ('l2.bandwidth_bytes_per_s" = 9', 'l2.bandwidth" = 9', r"\[achieved\] has 'memory.l2.bandwidth'; allowed"),
        ('l2.bandwidth_bytes_per_s" = 9', 'l2.bandwidth_bytes_per_s" = -9', r"\[achieved\] memory.l2.*=-9"),
        ('l2.bandwidth_bytes_per_s" = 9.774e12', 'l2.bandwidth_bytes_per_s" = "9"', r"allowed is a number"),
        ('"achieved" = ', '# "achieved" = ', r"\[achieved\] has no source; add 'achieved'"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused(tmp_path: Path, old: str, new: str, message: str):
    with pytest.raises(DeviceError, match=message) as raised:
        read_device(write(tmp_path, old, new))
    assert "nvidia-h200.toml" in str(raised.value)


def test_a_missing_table_is_named(tmp_path: Path):
    path = tmp_path / "x.toml"
    path.write_text('[device]\nname = "x"\n', encoding="utf-8")
    with pytest.raises(DeviceError, match=r"\[memory\] is missing"):
        read_device(path)
    with pytest.raises(DeviceError, match="cannot read device file"):
        read_device(tmp_path / "y.toml")


def test_the_file_is_named_after_the_device(tmp_path: Path):
    path = write(tmp_path, "[device]", "[device]", name="other")
    with pytest.raises(DeviceError, match=re.escape("describes 'nvidia-h200'; name the file nvidia-h200.toml")):
        read_device(path)


def test_two_devices_of_one_name_are_refused(tmp_path: Path):
    write(tmp_path, "[device]", "[device]")
    write(tmp_path, 'name = "nvidia-h200"', 'name = "twin"', name="twin")
    with pytest.raises(DeviceError, match="both answer to 'nvidia-h200-sxm-141gb'"):
        load_devices(tmp_path)


def test_a_folder_must_exist(tmp_path: Path):
    with pytest.raises(DeviceError, match="does not exist; give one that holds"):
        load_devices(tmp_path / "none")


def test_the_users_own_files_replace_shipped_ones(monkeypatch, tmp_path: Path):
    write(tmp_path, "year = 2024", "year = 2030")
    monkeypatch.setattr(device_module, "user_folder", lambda: tmp_path)
    assert load_devices()["nvidia-h200"].year == 2030
