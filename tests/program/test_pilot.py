"""Samples chosen by what work-groups do: close to a trace of all of them, whatever the data are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.errors import MemoryAccessError
from perfvec.launch import Launch
from perfvec.program import pilot
from perfvec.program.classify import make_static_table
from perfvec.program.counts import count_resources, count_window_units, unit_tables
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.pilot import Pilot, run_each
from perfvec.program.sampling import Sample, choose_groups, sample_groups
from perfvec.program.tracer import trace_launch
from perfvec.resources import RESOURCE_INDEX
from perfvec.trace_data import OPCODE_CLASSES, Trace
from tests.program.launching import make_launch

INSTRUCTIONS_WITHIN, SECTORS_WITHIN, LEAST_SHARE = 0.02, 0.05, 0.01

# Rows whose lengths are skewed: a few are a thousand times as long as most.
ROWS = """kernel void k(global const uint *r, global const float *x, global float *y) {
    uint i = get_global_id(0), n = r[i] % 1000 == 0 ? 3000 : r[i] % 7; float s = 0;
    for (uint j = 0; j < n; j++) s += x[(r[i] + j * 131) % 65536];
    y[i] = s; }"""
# Work-groups claim what others have left: what one does depends on those before it.
CLAIMS = """kernel void k(global const uint *to, global uint *claimed, global uint *next, global uint *n) {
    uint i = get_global_id(0);
    for (uint j = 0; j < 8; j++) {
        uint v = to[i * 8 + j] % 4096;
        if (atomic_xchg(claimed + v, 1u) == 0) next[atomic_inc(n)] = v; } }"""
# Only one work-group in a hundred does anything.
SPARSE = """kernel void k(global const uint *a, global float *o) {
    uint g = get_group_id(0); if (a[g] % 100) return;
    float s = 0; for (uint j = 0; j < 200; j++) s += o[(g * 64 + j) % 4096]; o[get_global_id(0)] = s; }"""
ESCAPE = """kernel void k(global int *o) {
    float a = get_global_id(0) / 128.0f - 2, b = get_global_id(1) / 96.0f - 1, x = 0, y = 0; int n = 0;
    while (x * x + y * y < 4 && n < 200) { float t = x * x - y * y + a; y = 2 * x * y + b; x = t; n++; }
    o[get_global_id(1) * 384 + get_global_id(0)] = n; }"""

LAUNCHES = {
    "rows": make_launch(
        ROWS, "buffer:uint32:65536:uniform(0,1000000)", "buffer:float32:65536", "buffer:float32:65536",
        global_size=65536, local_size=64,
    ),
    "claims": make_launch(
        CLAIMS, "buffer:uint32:262144:uniform(0,1000000)", "buffer:uint32:4096:constant(0)", "buffer:uint32:4096",
        "buffer:uint32:1:constant(0)", global_size=32768, local_size=64,
    ),
    "sparse": make_launch(
        SPARSE, "buffer:uint32:1000:uniform(0,1000000)", "buffer:float32:64000", global_size=64000, local_size=64
    ),
    "escape": make_launch(ESCAPE, "buffer:int32:73728", global_size=(384, 192), local_size=(16, 8)),
}  # fmt: skip


def by_class(trace: Trace) -> np.ndarray:
    return np.bincount(
        trace.static["opcode_class"][trace.token_static], weights=trace.token_weight, minlength=len(OPCODE_CLASSES)
    )


def sectors(trace: Trace) -> float:
    tables = unit_tables(trace)
    return count_resources(trace, tables, count_window_units(trace, tables))[RESOURCE_INDEX["l1_sectors"]]


@pytest.mark.usefixtures("front_end")
@pytest.mark.parametrize("name", LAUNCHES)
def test_the_default_sample_is_close_to_the_whole(name: str):
    launch = LAUNCHES[name]
    sample, whole = trace_launch(launch), trace_launch(launch, work_groups=None)
    assert len(sample.sub_groups) <= len(whole.sub_groups) / 5
    assert sample.sub_groups["weight"].sum() == pytest.approx(len(whole.sub_groups))
    assert sample.sub_groups["weight"].min() >= 1.0
    expected, found = by_class(whole), by_class(sample)
    large = expected >= LEAST_SHARE * expected.sum()
    assert found[large] == pytest.approx(expected[large], rel=INSTRUCTIONS_WITHIN)
    assert sectors(sample) == pytest.approx(sectors(whole), rel=SECTORS_WITHIN)


@pytest.mark.usefixtures("front_end")
def test_each_work_group_is_counted_by_itself():
    launch = LAUNCHES["sparse"]
    compiled = compile_launch(launch)
    found = run_each(Execution(compiled, launch), Sample(groups=np.arange(300), weights=np.ones(300)))
    assert found is not None
    behaviour = found.behaviour(make_static_table(compiled.native))
    for group in (0, 17, 299):
        execution = Execution(compiled, launch)
        execution.run([group])
        assert found.segments[group].tolist() == execution.segment_count.tolist()
        assert found.lanes[group].tolist() == execution.segment_lanes.tolist()
    is_busy = execution.buffers[0].view(np.uint32)[:300] % 100 == 0
    assert 0 < is_busy.sum() < 20
    assert (behaviour[is_busy].sum(axis=1) > 10 * behaviour[~is_busy].sum(axis=1).max()).all()
    assert run_each(Execution(compiled, launch, budget=100), found.sample) is None


@pytest.mark.usefixtures("front_end")
def test_a_fault_of_a_work_group_that_is_only_tried_out_is_found():
    source = "kernel void k(global int *o) { o[get_group_id(0) == 777 ? 1 << 20 : get_global_id(0)] = 1; }"
    launch = make_launch(source, "buffer:int32:65536", global_size=65536, local_size=64)
    assert 777 not in sample_groups(launch.num_groups, most=48, seed=int(launch.digest[:8], 16)).groups
    with pytest.raises(MemoryAccessError, match="777"):
        trace_launch(launch)


@pytest.mark.usefixtures("front_end")
def test_work_groups_that_wait_for_others_are_traced_with_them():
    source = """kernel void k(global volatile int *done, global int *o) {
        int g = get_group_id(0); while (g > 0 && done[g - 1] == 0) {}
        if (get_local_id(0) == 0) done[g] = 1;
        int s = 0; for (int i = 0; i < g; i++) s += o[i * 64]; o[get_global_id(0)] += s + g; }"""
    launch = make_launch(
        source, "buffer:int32:400:constant(0)", "buffer:int32:25600", global_size=25600, local_size=64
    )  # fmt: skip
    sample, whole = trace_launch(launch), trace_launch(launch, work_groups=None)
    assert sample.context.caveat == ""
    assert len(sample.sub_groups) < len(whole.sub_groups) / 5
    assert by_class(sample).sum() == pytest.approx(by_class(whole).sum(), rel=INSTRUCTIONS_WITHIN)


@pytest.mark.usefixtures("front_end")
def test_the_trace_is_the_same_each_time():
    launch: Launch = LAUNCHES["claims"]
    first, second = trace_launch(launch), trace_launch(launch)
    assert first.context == second.context
    assert np.array_equal(first.stream_window, second.stream_window)
    assert np.array_equal(first.sub_groups, second.sub_groups)


@pytest.mark.usefixtures("front_end")
@pytest.mark.parametrize(("bound", "is_tried_in_full"), [("n", False), ("n + get_group_id(0) % 2", True)])
def test_long_work_groups_that_do_the_same_are_tried_out_a_few(
    bound: str, is_tried_in_full: bool, monkeypatch: pytest.MonkeyPatch
):
    # Those at the edges do something else in both kernels.
    source = f"""kernel void k(global const float *x, global float *y, int n) {{
        int i = get_global_id(0); if (i < 20 || i > 127950) return;
        float s = 0; for (int j = 0; j < {bound}; j++) s += x[(i + j) % 4096]; y[i] = s; }}"""
    launch = make_launch(
        source, "buffer:float32:4096", "buffer:float32:128000", "int32:1500", global_size=128000, local_size=64
    )
    tried: list[int] = []

    def run_and_note(execution: Execution, sample: Sample) -> Pilot | None:
        tried.append(len(sample.groups))
        return run_each(execution, sample)

    monkeypatch.setattr(pilot, "run_each", run_and_note)
    trace = trace_launch(launch)
    assert tried[0] < 100
    assert len(tried) == 1 + is_tried_in_full
    assert trace.sub_groups["weight"].sum() == pytest.approx(4000)
    empty = trace.sub_groups["num_instructions"] < trace.sub_groups["num_instructions"].max() / 100
    assert trace.sub_groups["weight"][empty].sum() == pytest.approx(1)  # the last sub-group


@pytest.mark.usefixtures("front_end")
@pytest.mark.parametrize(("store", "is_run_again"), [("y[i] = s", False), ("x[i] = s", True)])
def test_work_groups_that_cannot_see_each_other_are_not_run_again(
    store: str, is_run_again: bool, monkeypatch: pytest.MonkeyPatch
):
    source = f"""kernel void k(global float *x, global float *y) {{
        int i = get_global_id(0); float s = 0; for (int j = 0; j < i % 999; j++) s += x[j]; {store}; }}"""
    launch = make_launch(
        source, "buffer:float32:64000", "buffer:float32:64000", global_size=64000, local_size=64
    )  # fmt: skip
    runs: list[int] = []
    run = Execution.run

    def run_and_note(execution: Execution, groups: Iterable[int], *more: Any) -> None:
        runs.append(len(list(groups)))
        run(execution, groups, *more)

    monkeypatch.setattr(Execution, "run", run_and_note)
    sample = trace_launch(launch)
    assert any(1 < number <= len(sample.sub_groups) for number in runs) == is_run_again


def test_code_without_what_is_idle_is_compiled_once_it_pays_over_launches(monkeypatch: pytest.MonkeyPatch):
    source = """kernel void k(global const float *x, global float *y) {
        int i = get_global_id(0); float s = x[i]; s = s * s + sin(s) * exp(s); y[i] = i % 3 ? s : 0; }"""
    launch = make_launch(source, "buffer:float32:25600", "buffer:float32:25600", global_size=25600, local_size=64)
    compiled = compile_launch(launch)
    before = trace_launch(launch)
    assert not compiled.has_trial
    assert compiled.tried_ns > 0
    monkeypatch.setattr(pilot, "LEAST_IDLE_NS", 1.1 * compiled.tried_ns)
    for _ in range(8):
        after = trace_launch(launch)
        assert np.array_equal(before.sub_groups, after.sub_groups)
        assert np.array_equal(before.stream_window, after.stream_window)
    assert compiled.has_trial


def test_classes_of_instructions_are_told_apart_beside_many_bytes():
    # A class of 1 % of the instructions, all in a tenth of the work-groups; lanes ask 50 bytes an instruction.
    behaviour = np.tile([1000.0, 0.0, 50_000.0], (2000, 1))
    busy = np.random.default_rng(0).choice(2000, 200, replace=False)
    behaviour[busy, 1] = 100.0
    known = Sample(groups=np.arange(2000), weights=np.ones(2000))
    sample = choose_groups(known, behaviour, kinds=np.array([0, 0, 1]), num_groups=(2000,), most=48, seed=1)
    assert sample.weights @ behaviour[sample.groups, 1] == pytest.approx(20_000, rel=0.02)
    assert sample.weights @ behaviour[sample.groups, 2] == pytest.approx(1e8, rel=0.02)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from([(400,), (40, 30), (12, 9, 8)]),
    st.integers(24, 60),
    st.integers(0, 3),
    st.sampled_from(["same", "two kinds", "heavy tail", "one alone"]),
)
def test_known_sums_are_kept(grid: tuple[int, ...], most: int, seed: int, kind: str):
    total, rng = int(np.prod(grid)), np.random.Generator(np.random.PCG64(seed))
    behaviour = np.ones((total, 3))
    if kind == "two kinds":
        behaviour[rng.random(total) < 0.1] = 50, 1, 7
    elif kind == "heavy tail":
        behaviour[:, :2] = rng.pareto(1.2, (total, 2)) + 1
    elif kind == "one alone":
        behaviour[total // 2, 1] = 10 * total
    known = Sample(groups=np.arange(total), weights=np.ones(total))
    sample = choose_groups(known, behaviour, kinds=np.zeros(3, np.int64), num_groups=grid, most=most, seed=seed)
    assert sample.groups.tolist() == sorted(set(sample.groups.tolist()))
    assert len(sample.groups) <= most + 3 ** len(grid)
    assert sample.weights.sum() == pytest.approx(total)
    assert sample.weights.min() >= 1.0 - 1e-9
    assert sample.weights @ behaviour[sample.groups] == pytest.approx(behaviour.sum(axis=0), rel=0.02)
