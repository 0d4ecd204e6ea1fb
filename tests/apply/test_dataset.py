from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.dataset import SINGLE_RUN_SPREAD, Dataset, make_dataset
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.tracing import trace
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import load_devices
from perfvec.arch.measured import MeasuredTable
from perfvec.arch.timing import simulate
from perfvec.errors import DeviceError, FormatError, ModelError
from tests.apply.tiny import DEVICES, measured_table, measured_time, suites


def test_a_dataset_has_the_measured_launches_with_times_and_datasheets(tmp_path: Path):
    entries = suites(tmp_path / "suites")
    table = measured_table(entries[:3])
    made = make_dataset(entries, table, cache=FeatureCache.open(tmp_path), num_processes=0)
    assert [entry.name for entry in made.entries] == [entry.name for entry in entries[:3]]
    assert made.data.device_names == tuple(sorted(DEVICES))
    column = made.data.device_names.index("nvidia-h200")
    assert made.data.times[:, column].tolist() == [
        table.times[2 * row].kernel_time_s
        for row in range(3)  # two devices a launch, this one first
    ]
    assert np.array_equal(made.data.seconds_per_unit[column], seconds_per_unit(load_devices()["nvidia-h200"]))
    assert made.data.families == tuple(entry.family for entry in entries[:3])
    assert made.left_out == ()
    assert made.subset(np.array([2, 0])).data.families == (entries[2].family, entries[0].family)


@pytest.fixture
def with_simulated(tmp_path: Path) -> Dataset:
    entries = suites(tmp_path / "suites")[:3]
    space = SimulatedDevices(space="gpu-2010-today")
    cache = FeatureCache.open(tmp_path, simulated=space)
    chosen = space.part("training", 4)
    return make_dataset(entries, measured_table(entries), simulated=chosen, cache=cache, num_processes=0)


def test_simulated_devices_stand_behind_the_measured_ones(with_simulated: Dataset):
    space = SimulatedDevices(space="gpu-2010-today")
    chosen = space.part("training", 4)
    data = with_simulated.data
    assert data.device_names == (*sorted(DEVICES), *(item.device.name for item in chosen))
    assert data.kinds == ("real",) * 2 + ("simulated",) * 4
    assert [device.name for device in with_simulated.devices] == list(data.device_names)
    for row, entry in enumerate(with_simulated.entries):
        expected = simulate(trace(entry.launch), [item.config for item in chosen]).kernel_time_s
        np.testing.assert_allclose(data.times[row, 2:], expected, rtol=1e-6)
    for column, item in enumerate(chosen, start=2):
        expected = seconds_per_unit(item.device, item.config)
        np.testing.assert_array_equal(data.seconds_per_unit[column], expected)
    assert not data.spread[:, 2:].any()


def test_a_dataset_with_some_devices(with_simulated: Dataset):
    whole = with_simulated.data
    measured = with_simulated.measured()
    assert measured.data.device_names == tuple(sorted(DEVICES)) and measured.data.num_simulated == 0
    assert [device.name for device in measured.devices] == sorted(DEVICES)
    np.testing.assert_array_equal(measured.data.times, whole.times[:, :2])
    assert measured.measured().data.device_names == measured.data.device_names
    some = with_simulated.with_devices([1, 5, 3])
    assert some.data.kinds == ("real", "simulated", "simulated")
    assert some.data.device_names == tuple(whole.device_names[column] for column in (1, 5, 3))
    assert [device.name for device in some.devices] == list(some.data.device_names)
    np.testing.assert_array_equal(some.data.spread, whole.spread[:, [1, 5, 3]])
    np.testing.assert_array_equal(some.data.seconds_per_unit, whole.seconds_per_unit[[1, 5, 3]])
    assert some.subset(np.array([2])).data.kinds == some.data.kinds
    assert some.entries == with_simulated.entries


def test_simulated_devices_need_a_cache_that_keeps_their_times(tmp_path: Path):
    entries = suites(tmp_path / "suites")[:1]
    chosen = SimulatedDevices(space="gpu-2010-today").part("training", 1)
    cache = FeatureCache.open(tmp_path)
    with pytest.raises(FormatError, match="no times on simulated devices"):
        make_dataset(entries, measured_table(entries), simulated=chosen, cache=cache, num_processes=0)


def test_devices_may_be_chosen_by_alias(tmp_path: Path):
    entries = suites(tmp_path / "suites")[:2]
    cache = FeatureCache.open(tmp_path)
    made = make_dataset(entries, measured_table(entries), device_names=["h200"], cache=cache, num_processes=0)
    assert made.data.device_names == ("nvidia-h200",)
    with pytest.raises(DeviceError, match="no device 'h20'"):
        make_dataset(entries, measured_table(entries), device_names=["h20"], cache=cache, num_processes=0)


def test_a_launch_that_repeats_another_counts_once(tmp_path: Path):
    first = suites(tmp_path / "suites")[0]
    twin = replace(first, suite="other")
    cache = FeatureCache.open(tmp_path)
    made = make_dataset([first, twin], measured_table([first]), cache=cache, num_processes=0)
    assert made.entries == (first,)


def test_what_cannot_be_traced_is_left_out_and_told(tmp_path: Path):
    entries = suites(tmp_path / "suites", suites={"one": ["scale", "beyond"]}, sizes=(256,))
    made = make_dataset(entries, measured_table(entries), cache=FeatureCache.open(tmp_path), num_processes=0)
    assert [entry.kernel for entry in made.entries] == ["scale"]
    assert [item.name for item in made.left_out] == ["one/beyond/-/N=256"]
    assert made.left_out[0].reason.startswith("MemoryAccessError")
    with pytest.raises(ModelError, match="none of the 1 measured launches can be traced: MemoryAccessError"):
        make_dataset(entries[1:], measured_table(entries), cache=FeatureCache.open(tmp_path), num_processes=0)


def test_a_device_without_a_file_is_left_out_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    entries = suites(tmp_path / "suites")[:1]
    table = measured_table(entries, ("nvidia-h200", "unheard-of"))
    with caplog.at_level(logging.WARNING):
        made = make_dataset(entries, table, cache=FeatureCache.open(tmp_path), num_processes=0)
    assert made.data.device_names == ("nvidia-h200",)
    assert "device unheard-of has measured times but no device file" in caplog.text


def test_a_single_run_has_the_spread_of_a_long_launch(tmp_path: Path):
    entries = suites(tmp_path / "suites")[:1]
    time = replace(measured_time(entries[0], "nvidia-h200", 3.0), spread=float("nan"), num_repeats=1)
    made = make_dataset(entries, MeasuredTable(times=(time,)), cache=FeatureCache.open(tmp_path), num_processes=0)
    assert made.data.spread.tolist() == [[SINGLE_RUN_SPREAD]]


def test_without_measured_launches_there_is_no_dataset(tmp_path: Path):
    entries = suites(tmp_path / "suites")
    with pytest.raises(ModelError, match="no launch of the suites was measured on any known device; measure some with"):
        make_dataset(entries, MeasuredTable(), cache=FeatureCache.open(tmp_path), num_processes=0)
