from __future__ import annotations

import dataclasses

import pyopencl as cl
import pytest

from perfvec.arch import opencl
from perfvec.arch.opencl import LiveDevice, choose_device, describe, device_key, list_devices, open_device
from perfvec.errors import OpenCLError
from tests.opencl import pocl_device

H200 = LiveDevice(
    number=0,
    platform="NVIDIA CUDA",
    name="NVIDIA H200",
    driver="580.1",
    type="gpu",
    compute_units=132,
    memory_bytes=150 << 30,
)
EPYC = LiveDevice(
    number=1,
    platform="Portable Computing Language",
    name="pthread-skylake-avx512-AMD EPYC",
    driver="3.1",
    type="cpu",
    compute_units=2,
    memory_bytes=5 << 30,
)
OCLGRIND = LiveDevice(
    number=2,
    platform="Oclgrind",
    name="Oclgrind Simulator",
    driver="21.10",
    type="gpu",
    compute_units=1,
    memory_bytes=1 << 27,
)


def test_keys_of_known_devices():
    assert device_key(H200) == "nvidia-h200"
    assert device_key(EPYC) == "amd-epyc-2core-pocl"
    xeon = dataclasses.replace(EPYC, name="cpu-sapphirerapids-INTEL(R) XEON(R) PLATINUM 8568Y+", compute_units=16)
    assert device_key(xeon) == "xeon-16core-pocl"


def test_keys_of_unknown_devices():
    assert device_key(dataclasses.replace(H200, name="NVIDIA H200 NVL")) == "nvidia-h200-nvl"
    assert device_key(dataclasses.replace(EPYC, compute_units=8)) == "skylake-avx512-amd-epyc-8core-pocl"
    intel = dataclasses.replace(EPYC, platform="Intel(R) OpenCL", name="Intel(R) Xeon(R) Gold 6226", compute_units=16)
    assert device_key(intel) == "intel-xeon-gold-6226-16core"  # not PoCL: other times, another device


@pytest.mark.parametrize(
    ("devices", "expected"),
    [([EPYC, H200], H200), ([OCLGRIND, EPYC], EPYC)],
)
def test_the_rule_prefers_gpus_and_passes_over_oclgrind(monkeypatch, devices, expected):
    monkeypatch.setattr(opencl, "list_devices", lambda: devices)
    assert choose_device() == expected


def test_no_device_says_what_to_do(monkeypatch):
    monkeypatch.setattr(opencl, "list_devices", lambda: [OCLGRIND])
    with pytest.raises(OpenCLError, match=r"found: 2: Oclgrind Simulator \(Oclgrind\)\. Install the GPU vendor's"):
        choose_device()
    monkeypatch.setattr(opencl, "list_devices", lambda: [])
    with pytest.raises(OpenCLError, match=r"found: none\. Install"):
        choose_device()
    with pytest.raises(OpenCLError, match="there is no OpenCL device 3"):
        choose_device(3)


def test_a_machine_without_platforms_has_no_devices(monkeypatch):
    def refuse():
        raise cl.LogicError

    monkeypatch.setattr(cl, "get_platforms", refuse)
    assert list_devices() == []


def test_pocl_opens_again_by_its_record():
    handle = pocl_device()
    live = next(device for device in list_devices() if device.platform == "Portable Computing Language")
    assert live == describe(handle, number=live.number)
    assert live.type == "cpu"
    assert open_device(live) == handle
    free_now = dataclasses.replace(live, memory_bytes=live.memory_bytes // 2)  # PoCL says what is free
    assert open_device(free_now) == handle
    assert choose_device(live.number) == live
    with pytest.raises(OpenCLError, match="is no longer there"):
        open_device(dataclasses.replace(live, driver="0"))
    with pytest.raises(OpenCLError, match="is no longer there"):
        open_device(dataclasses.replace(live, number=99))
