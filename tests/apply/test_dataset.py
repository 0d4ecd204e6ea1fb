from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.dataset import SINGLE_RUN_SPREAD, make_dataset
from perfvec.apply.feature_cache import FeatureCache
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import load_devices
from perfvec.arch.measured import MeasuredTable
from perfvec.errors import DeviceError, ModelError
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
