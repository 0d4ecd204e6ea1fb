from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.timing.fit import Free, fit
from experiments.timing.h200 import FREE, by_group, figures, is_first_half, measured_launches
from perfvec.apply.tracing import trace
from perfvec.arch.device import find_device
from perfvec.arch.timing import field_ranges, read_workload, simulate
from perfvec.arch.timing.of_device import timing_config
from tests.apply.tiny import suites


def test_a_fit_finds_the_parameters_that_made_the_times(tmp_path: Path):
    launches = suites(tmp_path, sizes=(1 << 10, 1 << 16, 1 << 20))
    workloads = 8 * [read_workload(trace(entry.launch)) for entry in launches]
    start = timing_config(find_device("h200"))
    truth = replace(start, group_dispatch_s=2e-9, launch_overhead_s=9e-6)
    times = np.array([simulate(workload, [truth]).kernel_time_s[0] for workload in workloads])
    free = (
        Free(field="group_dispatch_s", low=1e-11, high=1e-8, why=""),
        Free(field="launch_overhead_s", low=1e-6, high=1e-4, why=""),
    )
    found = fit(workloads, times, start, free)
    # The prior of ten launches holds them back a little.
    assert found.config.group_dispatch_s == pytest.approx(2e-9, rel=0.4)
    assert found.config.launch_overhead_s == pytest.approx(9e-6, rel=0.1)
    assert found.loss_after < 0.3 * found.loss_before
    assert found.config.dram_bytes_per_s == start.dram_bytes_per_s


def test_free_parameters_are_at_most_ten_within_what_their_fields_allow():
    assert len({item.field for item in FREE}) == len(FREE) <= 10
    for item in FREE:
        allowed = field_ranges()[item.field]
        assert allowed.low <= item.low < item.high <= allowed.high
        assert not allowed.is_whole


def test_families_are_in_one_half_and_launches_in_one_order():
    rows = measured_launches("nvidia-h200", None)
    assert measured_launches("nvidia-h200", 10) == rows[:10]
    families = {row.entry.family for row in rows}
    assert 0.35 < np.mean([is_first_half(family) for family in families]) < 0.65


def test_figures_of_groups_are_those_of_their_launches():
    rows = measured_launches("nvidia-h200", 40)
    predicted = np.array([row.time_s * (1.5 if place % 2 else 0.9) for place, row in enumerate(rows)])
    groups = by_group(predicted, rows, lambda row: "odd" if row % 2 else "even")
    assert groups["odd"]["mape"] == pytest.approx(0.5)
    assert groups["even"]["mape"] == pytest.approx(0.1)
    assert groups["even"]["median_log_ratio"] == pytest.approx(np.log(0.9))
    assert figures(predicted, rows)["mape"] == pytest.approx(0.3)
