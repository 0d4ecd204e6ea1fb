"""Where lanes go: entropies and splits by hand, mean lanes against the trace's tokens."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from perfvec.program.tracer import trace_launch
from perfvec.trace_data import LaunchContext
from tests.opencl import oclgrind_device
from tests.program.launching import make_launch

PARAMETERS = "__global int *o, int n"


def entropy(*shares: float) -> float:
    assert sum(shares) == pytest.approx(1)
    return -sum(share * log2(share) for share in shares if share)


def context(body: str, n: int, *, groups: int, local: int, work_groups: int | None = None) -> LaunchContext:
    oclgrind_device()
    source = f"__kernel void k({PARAMETERS}) {{ int i = get_global_id(0), l = get_local_id(0); {body} }}"
    launch = make_launch(source, "buffer:int32:40000", f"int32:{n}", global_size=groups * local, local_size=local)
    found = trace_launch(launch, work_groups=work_groups)
    executed = found.token_weight
    assert found.context.mean_lanes == pytest.approx(executed @ found.token_lanes / executed.sum(), rel=1e-12)
    return found.context


def test_without_branches_all_work_items_are_active():
    found = context("o[i] = n;", 1, groups=3, local=40)
    assert found.mean_lanes == (32 + 8) / 2
    assert (found.split_share, found.branch_entropy) == (0, 0)


def test_bounds_check():
    """70 of 96 work-items pass; the third sub-group splits."""
    found = context("if (i < n) o[i] = 1;", 70, groups=3, local=32)
    assert found.split_share == pytest.approx(1 / 3)
    assert found.branch_entropy == pytest.approx(entropy(70 / 96, 26 / 96))


def test_a_branch_that_goes_one_way_has_no_entropy_and_one_between_sub_groups_does_not_split():
    always = context("if (n > 3) o[i] = 1;", 7, groups=2, local=64)
    assert (always.split_share, always.branch_entropy, always.mean_lanes) == (0, 0, 32)
    between = context("if (l < 32) o[i] = 1;", 7, groups=2, local=64)
    assert (between.split_share, between.branch_entropy, between.mean_lanes) == (0, 1, 32)


def test_a_branch_in_divergent_flow():
    """Odd lanes, and of those a quarter: 40 work-items are 20 odd ones, of which 1, 9, 17, 25, 33."""
    found = context("if (l & 1) { o[i] = 1; if ((l & 7) == 1) o[i + n] = 2; }", 9000, groups=2, local=40)
    assert found.split_share == 1  # two branches of two sub-groups, 20 and 5 of their lanes
    assert found.branch_entropy == pytest.approx((40 * 1 + 20 * entropy(5 / 20, 15 / 20)) / 60)


def test_a_loop_of_ten_turns():
    """Its guard goes one way; its end goes back 9 times of 10."""
    body = "int s = i;\n#pragma unroll 1\nfor (int k = 0; k < n; k++) s = s * s + o[(s & 7) + k]; o[i] = s;"
    found = context(body, 10, groups=1, local=48)
    assert found.split_share == 0
    assert found.branch_entropy == pytest.approx(10 * entropy(0.1, 0.9) / 11)
    assert found.mean_lanes == 24


def test_loops_of_different_length_in_one_sub_group():
    """Lane l makes l % 3 + 1 turns, 21 work-items: 7 leave after each of the three turns."""
    body = "int s = i;\n#pragma unroll 1\nfor (int k = 0; k <= l % n; k++) s = s * s + o[(s & 7) + k]; o[i] = s;"
    found = context(body, 3, groups=5, local=21)
    # All pass the guard. The end is reached by 21, 14 and 7 lanes, 21 of which go back; the last run does not split.
    assert found.split_share == pytest.approx(2 / 4)
    assert found.branch_entropy == pytest.approx((21 * 0 + 42 * entropy(21 / 42, 21 / 42)) / 63)


def test_sub_groups_that_wait_for_each_other_in_a_loop():
    body = """local int t[64]; t[l] = 0;
    for (int k = 0; k < n; k++) { barrier(CLK_LOCAL_MEM_FENCE); if (l > k) t[l] += k; } o[i] = t[l];"""
    found = context(body, 4, groups=2, local=64)
    # A group: guard 2 runs; 4 turns of 2 sub-groups, of which the first splits at the condition; ends 4 turns of 2.
    assert found.split_share == pytest.approx(4 / (2 + 8 + 8))
    taken = sum(63 - k for k in range(4)) / 256
    bits = 64 * 0 + 256 * entropy(taken, 1 - taken) + 256 * entropy(0.25, 0.75)
    assert found.branch_entropy == pytest.approx(bits / (64 + 256 + 256))


def test_a_switch_of_four_ways():
    body = "switch (l & n) { case 0: o[i] = 3; break; case 1: o[i + 1] = 1; break; case 2: o[2] = i; break; }"
    found = context(body, 3, groups=2, local=32)
    assert found.split_share == 1
    assert found.branch_entropy == pytest.approx(2)


def test_a_sample_is_weighted():
    """Only the last of 512 groups is cut off: its first sub-group splits, its second fails as one."""
    body, n = "if (i < n) o[i] = 1;", 512 * 64 - 40
    whole, sample = (context(body, n, groups=512, local=64, work_groups=most) for most in (None, 48))
    assert whole.split_share == pytest.approx(1 / 1024)
    assert whole.branch_entropy == pytest.approx(entropy(40 / 32768, 1 - 40 / 32768))
    for name in ("mean_lanes", "split_share", "branch_entropy"):
        assert getattr(sample, name) == pytest.approx(getattr(whole, name), rel=1e-4)
    assert np.isfinite(sample.branch_entropy)
