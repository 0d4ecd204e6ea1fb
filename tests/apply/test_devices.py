from __future__ import annotations

from pathlib import Path

import pytest

from perfvec.apply.devices import devices, find_devices
from perfvec.arch.measured import MeasuredTable
from perfvec.errors import DeviceError
from tests.apply.tiny import measured_table, suites


def test_devices_are_listed_with_what_is_known_of_them(tmp_path: Path):
    entries = devices(measured=measured_table(suites(tmp_path), ("nvidia-h200",)))
    by_name = {entry.name: entry for entry in entries}
    assert list(by_name) == sorted(by_name)
    assert by_name["nvidia-h200"].num_measured_launches == 8
    assert by_name["nvidia-h200"].kind == "real"
    assert by_name["nvidia-h200"].vendor == "nvidia"
    assert by_name["amd-instinct-mi210"].kind == "simulated"  # a row of the timing model's times
    assert by_name["amd-epyc-7763"].kind == "datasheet"
    assert 0.05 < by_name["nvidia-h200"].expected_error < by_name["amd-instinct-mi210"].expected_error < 3


def test_devices_are_found_by_name_and_alias_each_once():
    found = find_devices(["h200", "amd-instinct-mi210", "nvidia-h200"])
    assert [device.name for device in found] == ["nvidia-h200", "amd-instinct-mi210"]
    assert len(find_devices(None)) == len(devices(measured=MeasuredTable()))


def test_an_unknown_device_is_answered_with_the_nearest():
    with pytest.raises(DeviceError, match="no device 'nvidia-h20'; did you mean nvidia-h200"):
        find_devices(["nvidia-h20"])
