"""Long work-items: which loops may be taken by weight, and that totals stay what they are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.launch import Launch
from perfvec.program import long_runs
from perfvec.program.executor import compile_launch
from perfvec.program.loops import iterations_left, weighable_loops
from perfvec.program.tracer import trace_launch
from perfvec.trace_data import Trace
from tests.opencl import oclgrind_device
from tests.program.launching import make_launch

TESTS = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
NEST = """float s = 0;
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s = s * 0.5f + o[(i * m + j) & 1023];
    o[0] = s;"""
SKIPPED = {
    "nest": NEST,
    "reduction": "float s = 0; for (int j = 0; j < n; j++) s += o[j & 511]; o[0] = s;",
    "downwards": "float s = 0; for (long i = n; i > 0; i -= 3) s = s * 0.5f + o[i & 1023]; o[0] = s;",
    "pointers": "float s = 0; for (global float *q = o, *e = o + n; q != e; q++) s = s * 0.5f + *q; o[0] = s;",
    "other memory": "for (int i = 0; i < n; i++) o[i & 1023] = p[i & 1023];",
}
NOT_SKIPPED = {
    "while on data": "float s = o[0] + 1; while (s > 1e-3f) s *= 0.999f; o[0] = s;",
    "chase": "int j = 0; for (int i = 0; i < n; i++) j = p[j & 1023]; o[0] = j;",
    "index later": "int s = 1; for (int i = 0; i < n; i++) s = s * 5 + i; o[s & 1023] = 1;",
    "branch later": "float s = 1; for (int i = 0; i < n; i++) s = s * 0.5f + o[i & 1023]; "
    "if (s > 3) for (int i = 0; i < 99; i++) o[i] = sin(o[i]);",
    "memory read for an index": "for (int i = 0; i < n; i++) p[i & 1023] = i * 7; o[p[5] & 1023] = 1;",
    "private array read for an index": "int a[64]; for (int i = 0; i < n; i++) a[i & 63] = i * p[0]; "
    "o[a[m & 63] & 1023] = 1;",
    "break": "float s = 0; for (int i = 0; i < n; i++) { s = s * 0.5f + o[i & 1023]; if (s > 9) break; } o[0] = s;",
    "branch inside": "float s = 0; for (int i = 0; i < n; i++) { s = s * 0.5f + o[i & 1023]; "
    "if (s > 9) o[1] = s; } o[0] = s;",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _front_end():
    oclgrind_device()


def kernel(body: str, n: int = 8, m: int = 8, *, size: int = 1) -> Launch:
    source = f"kernel void k(global float *o, global int *p, int n, int m) {{ {body} }}"
    return make_launch(
        source,
        "buffer:float32:1024",
        "buffer:int32:1024",
        f"int32:{n}",
        f"int32:{m}",
        global_size=size,
        local_size=size,
    )


def full_trace(launch: Launch) -> Trace:
    """The trace without any skipping."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_runs, "LONG", 1 << 60)
        return trace_launch(launch)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255), st.sampled_from(sorted(TESTS)), st.booleans())
def test_iterations_left_against_going_through_them(value: int, step: int, bound: int, relation: str, is_signed: bool):
    left = iterations_left(value, step, bound, bits=8, relation=relation, is_signed=is_signed)

    def stays(number: int) -> bool:
        shift = 128 if is_signed else 0
        now, to = ((v + shift) % 256 - shift for v in (value + number * step, bound))
        return TESTS[relation](now, to)

    if left is not None:
        assert all(stays(number) for number in range(left))
        end = value + left * ((step + 128) % 256 - 128)
        if not is_signed and 0 <= end <= 255:  # where the value wraps around, the loop may go on; it is then executed
            assert not stays(left)


@pytest.mark.parametrize("name", SKIPPED)
def test_loops_that_may_be_taken_by_weight(name: str):
    assert weighable_loops(compile_launch(kernel(SKIPPED[name])).native)


@pytest.mark.parametrize("name", NOT_SKIPPED)
def test_loops_that_may_not(name: str):
    native = compile_launch(kernel(NOT_SKIPPED[name])).native
    headers = {s.index for s in native.segments if s.is_loop_header}
    first = min(headers)
    assert first not in {loop.header for loop in weighable_loops(native)}


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(long_runs, "LONG", 50_000)


def total(trace: Trace) -> float:
    return float(trace.token_weight.sum())


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize(("n", "m"), [(1000, 1000), (100, 40_000), (300_000, 10), (7, 300_001), (1_000_003, 1)])
def test_nests_have_exact_totals(n: int, m: int):
    launch = kernel(NEST, n, m)
    trace = trace_launch(launch)
    assert total(trace) == pytest.approx(total(full_trace(launch)), rel=1e-9)
    assert trace.num_executed < 0.6 * full_trace(launch).num_executed
    assert trace.sub_groups["num_instructions"].sum() == pytest.approx(total(trace))
    assert trace.num_weighted + trace.num_recorded == pytest.approx(total(trace))
    assert trace.context.caveat == ""


def test_a_million_iterations_in_one_work_item():
    launch = kernel(SKIPPED["reduction"], 4_000_000)
    trace, full = trace_launch(launch), full_trace(launch)
    assert total(trace) == pytest.approx(total(full), rel=1e-9)
    assert trace.num_executed < 0.4 * full.num_executed


def test_a_triangle_is_close():
    body = "float s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) s = s * 0.5f + o[j & 1023]; o[0] = s;"
    launch = kernel(body, 6000)
    trace, full = trace_launch(launch), full_trace(launch)
    assert total(trace) == pytest.approx(total(full), rel=0.02)
    assert trace.num_executed < 0.5 * full.num_executed


@pytest.mark.usefixtures("_soon")
def test_lanes_of_different_length():
    body = "float s = 0; int t = n + 3000 * get_local_id(0); for (int j = 0; j < t; j++) s += o[j & 511]; o[0] = s;"
    launch = kernel(body, 1_000_000, size=32)
    trace, full = trace_launch(launch), full_trace(launch)
    assert total(trace) == pytest.approx(total(full), rel=0.01)
    assert trace.num_executed < full.num_executed


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("name", ["chase", "index later", "branch inside", "while on data"])
def test_what_may_not_be_skipped_is_executed(name: str):
    launch = kernel(NOT_SKIPPED[name], 100_000)
    trace, full = trace_launch(launch), full_trace(launch)
    assert trace.num_executed == full.num_executed
    assert trace.num_weighted == 0
    assert (trace.stream_weight == 1).all()


def test_what_is_cut_off_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("perfvec.program.tracer.DEFAULT_BUDGET", 200_000)
    trace = trace_launch(kernel("volatile int x = 1; while (x);"))
    assert "cut off after 200,0" in trace.context.caveat
    assert 0.9 * 200_000 < total(trace) <= 200_010
    whole = trace_launch(kernel("o[0] = 1;"))
    assert whole.context.caveat == ""
