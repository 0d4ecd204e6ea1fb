"""Features of tokens and launches: by hand for saxpy, and producers against a slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.counts import TOKEN_UNITS, count_token_units, unit_tables
from perfvec.program.features import CONTEXT_NAMES, FEATURE_NAMES, make_features, nearest_producers
from perfvec.program.tracer import trace_launch
from perfvec.resources import NUM_COUNTED
from perfvec.trace_data import CONTEXT_FIELDS, OPCODE_CLASSES, Trace
from tests.opencl import oclgrind_device
from tests.program.launching import make_launch
from tests.program.test_counts import SAXPY, TILED


def trace(launch: object) -> Trace:
    oclgrind_device()
    return trace_launch(launch, work_groups=None)  # type: ignore[arg-type]


def log2(value: float, scale: float) -> float:
    return math.log2(1 + value) / scale


def test_tokens_of_saxpy():
    """The two sub-groups run the same window: ten tokens, the third access to a sector that was just loaded."""
    features = make_features(trace(SAXPY))
    assert features.token_features.shape == (10, len(FEATURE_NAMES))
    assert features.token_features.dtype == np.float32
    assert features.window_start.tolist() == [0, 10]
    assert features.window_weight.tolist() == [2.0]
    load, fma, store = (dict(zip(FEATURE_NAMES, features.token_features[i].tolist(), strict=True)) for i in (4, 7, 8))
    expected = {
        "class_load": 1, "kind_float": 1, "space_global": 1, "stride_unit": 1, "log_bits": log2(32, 6),
        "log_access_bytes": log2(4, 7), "lanes": 1, "is_used": 1, "log_sectors": log2(4, 8), "log_lines": log2(1, 8),
        # Runs of 8 lanes read a sector each, of 16 two; each touches the one line.
        "log_sectors_8": log2(4, 8), "log_lines_8": log2(4, 8),
        "log_sectors_16": log2(4, 8), "log_lines_16": log2(2, 8),
        "log_cold_sectors_work_group": log2(4, 8), "log_cold_sectors_device": log2(4, 8), "producer_distance": 1,
        "num_producers": 1 / 3,
    }  # fmt: skip
    assert {name: value for name, value in load.items() if value} == pytest.approx(expected)
    expected = {
        "class_fma": 1, "kind_float": 1, "space_none": 1, "stride_none": 1, "log_bits": log2(32, 6), "lanes": 1,
        "is_used": 1, "producer_distance": 1, "producer_is_load": 1, "num_producers": 2 / 3,
    }  # fmt: skip
    assert {name: value for name, value in fma.items() if value} == pytest.approx(expected)
    assert store["log_cold_sectors_device"] == 0
    assert store["reuse_work_group"] == pytest.approx(1 / 32)  # the line used last: bucket 1
    assert store["producer_distance"] == 1
    assert store["producer_is_load"] == 0
    assert store["is_used"] == 0


def test_whether_the_result_of_an_atomic_is_used():
    source = """
    __kernel void k(__global int *a, __global int *b) {
        atomic_inc(a);
        b[get_global_id(0)] = atomic_add(a + 1, 2);
        atomic_xchg(a + 2, 5);
    }
    """
    static = trace(make_launch(source, "buffer:int32:4", "buffer:int32:64")).static
    atomics = static[static["opcode_class"] == OPCODE_CLASSES.index("atomic")]
    assert atomics["is_used"].tolist() == [False, True, False]


def test_tokens_of_atomics():
    """2 groups of 40: 32 and 8 lanes; odd lanes on 4 global counters; all on one local counter or another."""
    source = """
    __kernel void k(__global int *a) {
        __local int n[2];
        int l = get_local_id(0);
        if (l < 2) n[l] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l & 1) atomic_inc(a + (l >> 1 & 3));
        atomic_add(&n[l > 20], 1);
    }
    """
    found = trace(make_launch(source, "buffer:int32:4", global_size=80, local_size=40))
    features = make_features(found)
    tokens = [dict(zip(FEATURE_NAMES, row, strict=True)) for row in features.token_features.tolist()]
    names = ("lanes", "log_same_address", "log_distinct_addresses", "log_contention", "log_sectors", "log_sectors_8")
    in_global, in_local = (
        sorted({tuple(t[name] for name in names) for t in tokens if t["class_atomic"] and t[space]})
        for space in ("space_global", "space_local")
    )
    # Each of the 4 sub-groups goes to all 4 addresses; 8 neighbouring lanes too.
    assert np.array(in_global) == pytest.approx(
        np.array(
            [
                (4 / 32, log2(1, 8), log2(4, 8), log2(4, 16), log2(1, 8), log2(1, 8)),
                (16 / 32, log2(4, 8), log2(4, 8), log2(4, 16), log2(1, 8), log2(4, 8)),
            ]
        )
    )
    # In a group 21 lanes of the first sub-group on n[0]; 11, and the 8 of the second, on n[1].
    mean = log2((1 + 2 + 2) / 3, 16)
    assert np.array(in_local) == pytest.approx(
        np.array([(8 / 32, log2(8, 8), log2(1, 8), mean, 0, 0), (1, log2(21, 8), log2(2, 8), mean, 0, 0)])
    )


def test_launch_of_saxpy():
    found = trace(SAXPY)
    features = make_features(found)
    context = dict(zip(CONTEXT_NAMES, features.context.tolist(), strict=True))
    assert len(context) == len(CONTEXT_FIELDS) + NUM_COUNTED
    assert context["log_num_work_items"] == pytest.approx(log2(64, 16))
    assert context["log_live_registers"] == pytest.approx(log2(found.context.live_registers, 16))
    assert (context["split_share"], context["branch_entropy"]) == (0, 0)
    assert context["log_mean_lanes"] == pytest.approx(log2(32, 16))
    assert context["log_dram_sectors"] == pytest.approx(log2(16, 32))
    assert features.resources.shape == (NUM_COUNTED,)
    assert features.resources[0] == 1


def test_units_are_those_of_the_counts():
    found = trace(TILED)
    features = make_features(found)
    assert features.token_units.shape == (found.num_tokens, len(TOKEN_UNITS))
    assert np.allclose(features.token_units, count_token_units(found, unit_tables(found)))
    assert np.isfinite(features.token_features).all()
    assert np.abs(features.token_features).max() <= 2


def test_some_windows_have_the_features_that_they_have_among_all():
    found = trace(TILED)
    assert found.num_windows > 3
    every = make_features(found)
    chosen = np.array([0, 2, found.num_windows - 1])
    some = make_features(found, chosen)
    rows = np.concatenate([np.arange(every.window_start[w], every.window_start[w + 1]) for w in chosen])
    assert np.array_equal(some.token_features, every.token_features[rows])
    assert np.array_equal(some.token_units, every.token_units[rows])
    assert np.array_equal(some.window_weight, every.window_weight[chosen])
    assert np.array_equal(np.diff(some.window_start), np.diff(every.window_start)[chosen])
    assert np.array_equal(some.context, every.context)
    assert np.array_equal(some.resources, every.resources)


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=4),
    st.lists(st.lists(st.integers(-1, 5), min_size=3, max_size=3), min_size=6, max_size=6),
)
def test_producers_are_those_of_the_slow_twin(static: list[int], cuts: list[int], producers: list[list[int]]):
    starts = sorted({0, len(static), *(cut for cut in cuts if cut < len(static))})
    is_load = np.array([True, False, True, False, False, True])
    distance, is_from_load, count = nearest_producers(
        np.array(static, np.uint32), np.array(starts, np.int64), np.array(producers, np.int32), is_load
    )
    for token, number in enumerate(static):
        first = max(start for start in starts[:-1] if start <= token)
        gaps = []
        for producer in producers[number]:
            places = [i for i in range(first, token) if static[i] == producer]
            if producer >= 0 and places:
                gaps.append((token - places[-1], bool(is_load[producer])))
        assert count[token] == len(gaps)
        assert distance[token] == min((gap for gap, _ in gaps), default=0)
        assert bool(is_from_load[token]) in ({load for gap, load in gaps if gap == distance[token]} or {False})
