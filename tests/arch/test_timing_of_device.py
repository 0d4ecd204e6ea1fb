from __future__ import annotations

import pytest

from perfvec.arch.device import find_device, load_devices
from perfvec.arch.timing.of_device import DRAM_EFFICIENCY, timing_config
from perfvec.errors import DeviceError


def config(name: str, **settings):
    return timing_config(find_device(name), settings)


def test_every_device_has_a_configuration():
    devices = load_devices()
    assert len({timing_config(device) for device in devices.values()}) > 100


def test_an_h200_by_hand():
    h200 = config("h200")
    assert h200.compute_units == 132
    assert (h200.schedulers, h200.issue_width) == (4, 1.0)
    assert h200.fp32_lanes == pytest.approx(128, rel=1e-4)
    assert h200.fp64_lanes == pytest.approx(64, rel=1e-4)
    assert h200.load_store_lanes == pytest.approx(32, rel=1e-4)
    assert h200.local_banks == 32
    assert h200.l1_holds_local
    assert h200.dram_bytes_per_s == 3.888e12  # gpu-benches, not the data sheet's 4.8e12
    assert h200.dram_latency_s == pytest.approx(658 / 1.98e9)
    assert (h200.sector_bytes, h200.line_bytes) == (32, 128)


def test_bandwidth_that_nobody_has_measured_is_a_share_of_the_peak():
    device = find_device("nvidia-gtx-680")
    assert timing_config(device).dram_bytes_per_s == DRAM_EFFICIENCY * device.memory.dram.bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("name", "schedulers", "issue_width"),
    [
        ("nvidia-gtx-480", 2, 0.5),  # two schedulers, each an instruction every two cycles of the shader clock
        ("nvidia-gtx-680", 4, 2.0),  # four, each two a cycle
        ("nvidia-tesla-p100-pcie-16gb", 2, 1.0),
        ("amd-r9-290x", 4, 0.25),  # four SIMDs of 16 lanes, each a wavefront of 64 every four cycles
        ("amd-rx-6900-xt", 2, 1.0),
        ("intel-hd-530", 8, 0.5),  # eight EUs of 8 lanes, sub-groups of 16
    ],
)
def test_schedulers_by_architecture(name: str, schedulers: int, issue_width: float):
    found = config(name)
    assert (found.schedulers, found.issue_width) == (schedulers, issue_width)


def test_execution_units_that_share_local_memory_are_one_unit():
    found = config("intel-hd-530")
    assert found.compute_units == 3
    assert found.max_group_local_bytes == found.local_bytes == 65_536
    assert found.fp32_lanes == 64


def test_a_cpu_runs_one_work_group_a_thread():
    found = config("xeon-16core-pocl")
    assert (found.compute_units, found.max_groups) == (16, 1)
    assert found.max_group_work_items == found.max_sub_groups * found.sub_group_size == 4096
    assert config("intel-i7-930").sub_group_size == 8  # vectors of 4; the model's least is 8


def test_settings_replace_fields():
    assert config("h200", l2_bytes=1 << 20).l2_bytes == 1 << 20
    with pytest.raises(DeviceError, match="no timing field 'l2_byte'; allowed: l2_bytes"):
        config("h200", l2_byte=1)
    with pytest.raises(DeviceError, match=r"l2_bytes=1; allowed are whole numbers from 4096"):
        config("h200", l2_bytes=1)
    with pytest.raises(DeviceError, match=r"dram_latency_s=1e-09 is less than l2_latency_cycles"):
        config("h200", dram_latency_s=1e-9)
