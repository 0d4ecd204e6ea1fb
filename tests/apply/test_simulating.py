from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.simulating import SimulatedDevices, read_setting, simulate_devices, simulate_space
from perfvec.apply.simulation_tables import line_table, simulation_record, simulation_table, space_table, write_csv
from perfvec.apply.tracing import trace
from perfvec.arch.timing import CAUSES
from perfvec.arguments import parse_argument
from perfvec.errors import ConfigError, DeviceError
from perfvec.launch import Launch
from perfvec.trace_data import Trace

COPY = """__kernel void copy(__global const float *a, __global float *b) {
  size_t i = get_global_id(0);
  b[i] = a[i] + 1.0f;
}
"""


def copy_launch(num_items: int, local_size: int) -> Launch:
    buffer = parse_argument(f"buffer:float32:{num_items}", position=0)
    return Launch(
        source=COPY, kernel_name="copy", args=(buffer, buffer), global_size=(num_items,), local_size=(local_size,)
    )


@pytest.fixture(scope="module")
def copy() -> Trace:
    return trace(copy_launch(33554432, 256))


def time_s(found: SimulatedDevices) -> float:
    return float(found.simulation.kernel_time_s[0])


def test_a_streaming_copy_takes_what_dram_takes(copy: Trace):
    found = simulate_devices(copy, ["h200"])
    moved_s = 2 * 4 * 33554432 / found.configs[0].dram_bytes_per_s
    assert time_s(found) == pytest.approx(moved_s + found.configs[0].launch_overhead_s, rel=0.15)
    assert CAUSES[int(found.simulation.breakdown_s[0].argmax())] == "dram"


def test_settings_and_mechanisms(copy: Trace):
    slow = simulate_devices(copy, ["h200"], settings={"dram_bytes_per_s": 1e12})
    assert time_s(slow) == pytest.approx(2 * 4 * 33554432 / 1e12, rel=0.15)
    without = simulate_devices(copy, ["h200"], without=["dram", "dispatch"])
    assert time_s(without) < 0.7 * time_s(simulate_devices(copy, ["h200"]))
    with pytest.raises(ConfigError, match="no mechanism drum to switch off; there are"):
        simulate_devices(copy, ["h200"], without=["drum"])
    with pytest.raises(ConfigError, match="no device to simulate"):
        simulate_devices(copy, [])


def test_devices_stand_side_by_side_and_lines_add_up(copy: Trace):
    found = simulate_devices(copy, ["h200", "nvidia-gtx-480"])
    assert found.names == ("nvidia-h200", "nvidia-gtx-480")
    table = simulation_table(found)
    assert [column.title for column in table.columns] == ["copy", "nvidia-h200", "nvidia-gtx-480"]
    assert {"kernel time", "occupancy", *CAUSES} <= {row[0] for row in table.rows}
    rows = {row[0]: row for row in line_table(found).rows}
    assert rows["3"][-1] == "b[i] = a[i] + 1.0f;"
    record = simulation_record(found, by_line=True)["devices"][1]
    assert sum(record["line_time_s"].values()) == pytest.approx(record["kernel_time_s"])
    assert sum(record["breakdown_s"].values()) == pytest.approx(record["kernel_time_s"])
    assert record["config"]["compute_units"] == 15


def test_a_design_space_is_simulated_in_one_go(copy: Trace, tmp_path: Path):
    found = simulate_space(copy, "around-h200", num_devices=30, settings={"l2_ways": 8})
    assert len(found.names) == 30
    assert not found.left_out
    assert {config.l2_ways for config in found.configs} == {8}
    bandwidth = [config.dram_bytes_per_s for config in found.configs]
    assert np.corrcoef(np.log(bandwidth), np.log(found.simulation.kernel_time_s))[0, 1] < -0.9
    assert space_table(found).title.startswith("30 devices, ")
    assert len(space_table(found).rows) == 20
    write_csv(found, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["device"] for row in rows] == list(found.names)
    assert float(rows[3]["kernel_time_s"]) == pytest.approx(found.simulation.kernel_time_s[3])
    assert float(rows[3]["dram_bytes_per_s"]) == bandwidth[3]
    assert simulation_record(found, by_line=False)["devices"][0]["drawn"]["compute.compute_units"] > 0


def test_devices_that_cannot_hold_a_work_group_are_left_out():
    wide = trace(copy_launch(4096, 1024))
    found = simulate_space(wide, "gpu-2010-today", num_devices=40)
    assert found.left_out
    assert len(found.left_out) + len(found.names) == 40
    assert min(config.max_group_work_items for config in found.configs) >= 1024
    with pytest.raises(DeviceError, match="1024 work-items and 0 B of local memory fits on none of the 1 devices"):
        simulate_space(wide, "gpu-2010-today", num_devices=1, settings={"max_group_work_items": 512})


def test_settings_are_read_by_their_fields_kind():
    assert read_setting("l2_bytes=1e6") == ("l2_bytes", 1_000_000)
    assert read_setting("scheduler_policy=round-robin") == ("scheduler_policy", "round-robin")
    assert read_setting("l1_holds_local=True") == ("l1_holds_local", True)
    assert read_setting("issue_width=0.5") == ("issue_width", 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l2_bytes", "is not FIELD=VALUE; write for example l2_bytes="),
        ("l2byte=1", "no timing field 'l2byte'; allowed: l2_bytes"),
        ("l2_bytes=many", "allowed is a whole number"),
        ("clock_hz=fast", "allowed is a number"),
    ],
)
def test_wrong_settings_are_refused(text: str, message: str):
    with pytest.raises(DeviceError, match=message):
        read_setting(text)
