"""Traces: they stand for the whole launch, come back from a file, and damaged files are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from perfvec.errors import BudgetError, FormatError, KernelNotFoundError
from perfvec.launch import Launch
from perfvec.program.counts import TOKEN_UNITS, count_resources, count_window_units, unit_tables
from perfvec.program.frontend import PIPELINE_VERSION
from perfvec.program.pilot import FEWEST_GROUPS
from perfvec.program.tracer import trace_launch
from perfvec.resources import RESOURCE_INDEX
from perfvec.trace_data import Trace
from tests.program.launching import make_launch

pytestmark = pytest.mark.usefixtures("front_end")

TABLES = (
    "static", "memory", "window_start", "token_static", "token_lanes", "token_memory", "sub_groups", "stream_start",
    "stream_window", "stream_weight",
)  # fmt: skip
# The edges of the grid guard their reads; work-groups on the diagonal do more.
STENCIL = make_launch(
    """kernel void k(global const float *a, global float *b, int w, int h) {
        int x = get_global_id(0), y = get_global_id(1); float s = a[y * w + x];
        if (x > 0) s += a[y * w + x - 1]; if (x < w - 1) s += a[y * w + x + 1];
        if (y > 0) s += a[(y - 1) * w + x]; if (y < h - 1) s += a[(y + 1) * w + x];
        b[y * w + x] = s * 0.2f; }""",
    "buffer:float32:49152",
    "buffer:float32:49152",
    "int32:256",
    "int32:192",
    global_size=(256, 192),
    local_size=(16, 8),
)


def counted(trace: Trace) -> np.ndarray:
    tables = unit_tables(trace)
    return count_resources(trace, tables, count_window_units(trace, tables))


def test_the_whole_launch():
    trace = trace_launch(STENCIL, work_groups=None)
    groups = 16 * 24
    assert trace.pipeline_version == PIPELINE_VERSION
    assert trace.context.num_work_groups == groups
    assert len(trace.sub_groups) == groups * 4
    assert trace.sub_groups["weight"].tolist() == [1.0] * groups * 4
    assert trace.token_weight.sum() == trace.sub_groups["num_instructions"].sum()
    stores = trace.token_weight[trace.static["address_space"][trace.token_static] == 2].sum()
    assert stores < groups * 4 * 7
    total = dict(zip(TOKEN_UNITS, counted(trace)[[RESOURCE_INDEX[name] for name in TOKEN_UNITS]], strict=True))
    assert total["dram_sectors"] == pytest.approx(2 * 49152 * 4 / 32)
    assert trace.context.footprint_bytes == 2 * 49152 * 4


def test_a_sample_stands_for_the_whole_launch():
    whole, sample = trace_launch(STENCIL, work_groups=None), trace_launch(STENCIL)
    assert len(sample.sub_groups) < len(whole.sub_groups) / 4
    assert sample.sub_groups["weight"].sum() == pytest.approx(16 * 24 * 4)
    expected, found = counted(whole), counted(sample)
    for name in ("fp32_issue", "int_issue", "other_issue", "l1_sectors"):
        assert found[RESOURCE_INDEX[name]] == pytest.approx(expected[RESOURCE_INDEX[name]], rel=0.01)
    # Lines that two work-groups share are counted once only if the sample has both.
    for name in ("l2_sectors", "dram_sectors"):
        assert found[RESOURCE_INDEX[name]] == pytest.approx(expected[RESOURCE_INDEX[name]], rel=0.15)
    assert sample.context.footprint_bytes == pytest.approx(whole.context.footprint_bytes, rel=0.15)
    assert sample.context.mean_instructions == pytest.approx(whole.context.mean_instructions, rel=0.01)


def test_a_uniform_launch_is_counted_exactly_from_a_sample():
    launch = make_launch(
        "kernel void k(global float *o) { o[get_global_id(0)] *= 2; }", "buffer:float32:65536", global_size=65536,
        local_size=64,
    )  # fmt: skip
    whole, sample = (trace_launch(launch, work_groups=n) for n in (None, 20))
    assert counted(sample) == pytest.approx(counted(whole))


def test_long_work_groups_are_sampled_more_thinly():
    launch = make_launch(
        """kernel void k(global float *o, int n) {
            int i = get_global_id(0); float s = o[i]; for (int j = 0; j < n; j++) s = s * 0.5f + j; o[i] = s; }""",
        "buffer:float32:4096",
        "int32:50000",
        global_size=4096,
    )
    assert len(trace_launch(launch).sub_groups) < 48
    assert len(trace_launch(launch).sub_groups) >= FEWEST_GROUPS
    with pytest.raises(BudgetError, match="budget of 100,000 sub-group instructions"):
        trace_launch(launch, budget=100_000)


def test_a_trace_is_the_same_each_time():
    first, second = trace_launch(STENCIL), trace_launch(STENCIL)
    assert first.context == second.context
    for name in TABLES:
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


def test_no_trace_of_a_kernel_that_is_not_there():
    with pytest.raises(KernelNotFoundError, match="no kernel 'other'"):
        trace_launch(replace(STENCIL, kernel_name="other"))


# ---- files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a good trace."""
    target = tmp_path / "trace.h5"
    trace_launch(STENCIL, work_groups=10).save(target)
    return target


def test_a_trace_comes_back(path: Path):
    trace, again = trace_launch(STENCIL, work_groups=10), Trace.load(path)
    assert (again.launch, again.context, again.pipeline_version) == (trace.launch, trace.context, PIPELINE_VERSION)
    for name in TABLES:
        left, right = getattr(trace, name), getattr(again, name)
        assert left.dtype == right.dtype
        assert np.array_equal(left, right), name
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_every_dataset_has_units(path: Path):
    with h5py.File(path) as file:
        assert all(file[name].attrs["units"] for name in TABLES)


def test_an_empty_kernel_comes_back(tmp_path: Path):
    trace = trace_launch(make_launch("kernel void k(void) {}"))
    trace.save(tmp_path / "empty.h5")
    assert Trace.load(tmp_path / "empty.h5").num_tokens == trace.num_tokens == 1  # the return
    assert isinstance(trace.launch, Launch)


def _change(path: Path, name: str, values: object) -> None:
    with h5py.File(path, "r+") as file:
        old = file[name][()]
        del file[name]
        file[name] = values(old) if callable(values) else values


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("token_static", lambda old: old + 10_000, "token_static points outside its table of"),
        ("token_memory", lambda old: old - 5, "token_memory points outside"),
        ("stream_window", lambda old: old + 10_000, "stream_window points outside"),
        ("window_start", lambda old: old * 1000, "window_start points outside"),
        ("stream_start", lambda old: old[:-1], "its tables differ in length"),
        ("token_lanes", lambda old: old[:-1], "its tables differ in length"),
        ("memory", np.zeros(3, np.int64), "table 'memory' has fields int64, expected"),
    ],
)
def test_damaged_tables_are_refused(path: Path, name: str, values: object, message: str):
    _change(path, name, values)
    with pytest.raises(FormatError, match=message):
        Trace.load(path)


def test_damaged_files_are_refused(path: Path, tmp_path: Path):
    with pytest.raises(FormatError, match=r"none\.h5 does not exist"):
        Trace.load(tmp_path / "none.h5")
    half = tmp_path / "half.h5"
    half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(FormatError, match=r"half\.h5 is not a readable HDF5 file"):
        Trace.load(half)
    with pytest.raises(FormatError, match=r"the folder .* does not exist"):
        Trace.load(path).save(tmp_path / "nowhere" / "trace.h5")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("format_version", 1, "has perfvec-trace format version 1; this release reads 2"),
        ("format", "perfvec-launch", "holds 'perfvec-launch', not 'perfvec-trace'"),
        ("context", "{", "is damaged"),
        ("context", '{"num_work_items": 1}', "is damaged"),
        ("pipeline_version", "none", "is damaged"),
    ],
)
def test_files_of_another_kind_are_refused(path: Path, attribute: str, value: object, message: str):
    with h5py.File(path, "r+") as file:
        file.attrs[attribute] = value
    with pytest.raises(FormatError, match=message):
        Trace.load(path)


def test_a_file_without_a_dataset_is_refused(path: Path):
    with h5py.File(path, "r+") as file:
        del file["stream_window"]
    with pytest.raises(FormatError, match="is damaged"):
        Trace.load(path)
