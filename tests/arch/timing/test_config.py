from __future__ import annotations

import pytest

from perfvec.arch.timing.config import TimingConfig, field_ranges
from perfvec.errors import DeviceError
from tests.arch.timing.devices import LARGE, large


def test_a_refused_value_is_named_with_what_is_allowed():
    for name, value, message in (
        ("sub_group_size", 24, r"sub_group_size=24; allowed: 8, 16, 32, 64"),
        ("clock_hz", 1.98, r"clock_hz=1\.98; allowed are numbers from 1e\+08 to 1e\+10"),
        ("compute_units", 1.5, r"compute_units=1\.5; allowed are whole numbers from 1 to 4096"),
        ("compute_units", float("nan"), r"compute_units=nan; allowed are whole numbers"),
        ("dram_bytes_per_s", "fast", r"dram_bytes_per_s='fast'; allowed are numbers"),
        ("l1_holds_local", 1, r"l1_holds_local=1; allowed: True, False"),
        ("scheduler_policy", "oldest", r"scheduler_policy='oldest'; allowed: greedy-then-oldest, round-robin"),
    ):
        with pytest.raises(DeviceError, match=message):
            large(**{name: value})


def test_fields_that_contradict_each_other_are_refused():
    for changes, message in (
        ({"l1_latency_cycles": 300.0}, r"l1_latency_cycles=300 is more than l2_latency_cycles=250"),
        ({"sector_bytes": 128, "line_bytes": 64}, r"sector_bytes=128 is more than line_bytes=64"),
        ({"dram_latency_s": 1e-8}, r"dram_latency_s=1e-08 is less than l2_latency_cycles=250 .* 1\.25e-07 s"),
        ({"max_sub_groups": 16}, r"max_group_work_items=1024; allowed are up to .* = 512"),
        ({"max_group_local_bytes": 100_000}, r"max_group_local_bytes=100000 is more than local_bytes=98304"),
    ):
        with pytest.raises(DeviceError, match=message):
            large(**changes)


def test_ranges_tell_what_the_fields_allow():
    ranges = field_ranges()
    assert set(ranges) == set(TimingConfig.__dataclass_fields__)
    assert (ranges["clock_hz"].low, ranges["clock_hz"].high, ranges["clock_hz"].is_whole) == (1e8, 1e10, False)
    assert ranges["sub_group_size"].allowed == (8, 16, 32, 64)
    assert ranges["compute_units"].is_whole
    assert ranges["compute_units"].is_required
    assert not ranges["l2_ways"].is_required
    for name, limits in ranges.items():
        if not limits.allowed:
            for end in (limits.low, limits.high):
                at_end = int(end) if limits.is_whole else end
                try:
                    large(**{name: at_end})
                except DeviceError as error:  # in its range, but another field says no
                    assert f"{name}={at_end!r}; allowed are" not in str(error) or name == "max_group_work_items"


def test_the_default_start_is_warm_since_measured_launches_repeat():
    assert LARGE.start == "warm"
