"""Segments: the order that makes lanes meet again, and where blocks are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.executor import Execution, compile_launch
from perfvec.program.segments import MOST_ACCESSES, execution_order, is_barrier, make_segments, strong_components
from tests.naive import is_reachable, walk
from tests.opencl import oclgrind_device
from tests.program.ir_text import kernel_from_ir
from tests.program.launching import make_launch
from tests.program.odd_kernels import odd_kernels

Graph = dict[int, list[int]]


def _graphs() -> st.SearchStrategy[Graph]:
    """Graphs of up to 12 nodes, most with at most two successors a node, as branches make them."""
    return st.integers(1, 12).flatmap(
        lambda size: st.lists(
            st.lists(st.integers(0, size - 1), max_size=3, unique=True), min_size=size, max_size=size
        ).map(lambda rows: dict(enumerate(rows)))
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(_graphs())
def test_order_of_random_graphs(graph: Graph):
    order = execution_order(graph, entry=0)
    assert order[0] == 0
    assert sorted(order) == sorted(walk(graph, 0))
    rank = {node: place for place, node in enumerate(order)}
    for source in order:
        for target in graph[source]:
            if rank[target] > rank[source]:
                continue
            # A jump backwards goes to the first node of a loop, whose nodes stand without others between them: from
            # each node on the way one comes back to the header without leaving to what stands before it.
            later = {n: [t for t in graph[n] if rank.get(t, -1) >= rank[target]] for n in order}
            for node in order[rank[target] : rank[source] + 1]:
                assert is_reachable(later, node, target)
                assert is_reachable(later, target, node)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(_graphs())
def test_acyclic_graphs_are_put_into_topological_order(graph: Graph):
    forward = {node: [t for t in targets if t > node] for node, targets in graph.items()}
    rank = {node: place for place, node in enumerate(execution_order(forward, entry=0))}
    assert all(rank[source] < rank[t] for source in rank for t in forward[source])


def test_order_by_hand():
    # 0 -> 1 -> 2 -> 1, 2 -> 3: the loop of 1 and 2 comes before what follows it, though 3 is found first.
    assert execution_order({0: [1], 1: [3, 2], 2: [1], 3: []}, entry=0) == [0, 1, 2, 3]
    # Loops in one another: 1 { 2 { 3 } 4 } 5
    assert execution_order({0: [1], 1: [5, 2], 2: [4, 3], 3: [2], 4: [1], 5: []}, entry=0) == [0, 1, 2, 3, 4, 5]
    # A loop with two entries
    assert sorted(execution_order({0: [1, 2], 1: [2], 2: [1, 3], 3: []}, entry=0)[1:3]) == [1, 2]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(_graphs())
def test_strong_components(graph: Graph):
    found = strong_components(graph)
    assert sorted(n for component in found for n in component) == sorted(graph)
    place = {n: i for i, component in enumerate(found) for n in component}
    for a in graph:
        for b in graph:
            both = is_reachable(graph, a, b) and is_reachable(graph, b, a)
            assert both == (place[a] == place[b])
            if b in graph[a]:
                assert place[b] <= place[a]


def test_long_chains_need_no_recursion():
    size = 20_000
    ring = {n: [(n + 1) % size] for n in range(size)}
    assert execution_order(ring, entry=0)[:3] == [0, 1, 2]


# ---- where blocks are cut ---------------------------------------------------------------------------------------

L = "ptr addrspace(3)"
LOAD, STORE = f"%x# = load i32, {L} %t, align 4", f"store i32 1, {L} %t, align 4"
ONE_LOAD = LOAD.replace("#", "")
BARRIER = "call void @_Z7barrierj(i32 1)"


def cut(*lines: str) -> list[list[str]]:
    """Opcodes of the segments' bodies."""
    body = "\n".join(f"  {line.replace('#', str(number))}" for number, line in enumerate(lines))
    segments = make_segments(kernel_from_ir(f"entry:\n{body}\n  ret void", f"{L} %t, ptr addrspace(1) %g"))
    assert [s.successors for s in segments] == [(i + 1,) for i in range(len(segments) - 1)] + [()]
    assert [s.is_first for s in segments] == [True] + [False] * (len(segments) - 1)
    assert [s.terminator is None for s in segments] == [True] * (len(segments) - 1) + [False]
    return [[i.opcode for i in s.body] for s in segments]


def test_a_lane_must_not_read_what_an_earlier_lane_has_just_written():
    assert cut(STORE, LOAD) == [["store"], ["load"]]
    assert cut(LOAD, STORE) == [["load"], ["store"]]
    assert cut(LOAD, LOAD, STORE, STORE, LOAD) == [["load", "load"], ["store", "store"], ["load"]]


def test_what_no_other_lane_sees_is_not_cut():
    g, p = "ptr addrspace(1)", "ptr"
    assert (
        len(cut(f"%a = load i32, {g} %g, align 4", f"store i32 1, {g} %g, align 4", f"%b = load i32, {g} %g, align 4"))
        == 1
    )
    assert len(cut("%a = alloca i32", f"store i32 1, {p} %a, align 4", f"%b = load i32, {p} %a, align 4")) == 1


def test_atomics_and_copies_read_and_write():
    atomic = f"%a# = call i32 @_Z10atomic_incPU3AS3Vi({L} %t)"
    assert cut(atomic, atomic) == [["call"], ["call"]]
    assert cut(f"%v = call <4 x i32> @_Z6vload4mPU3AS3Ki(i64 0, {L} %t)", LOAD) == [["call", "load"]]
    assert cut(f"call void @_Z7vstore4Dv4_imPU3AS3i(<4 x i32> zeroinitializer, i64 0, {L} %t)", LOAD) == [
        ["call"],
        ["load"],
    ]


def test_barriers_end_segments():
    segments = make_segments(
        kernel_from_ir(f"entry:\n  {STORE}\n  {BARRIER}\n  {BARRIER}\n  {ONE_LOAD}\n  ret void", f"{L} %t")
    )
    assert [s.is_barrier for s in segments] == [True, True, False]
    assert [[is_barrier(i) for i in s.body] for s in segments] == [[False, True], [True], [False]]
    assert cut(LOAD, BARRIER, STORE) == [["load", "call"], ["store"]]


def test_what_does_not_exist_at_run_time_is_left_out():
    assert cut("call void @llvm.lifetime.start.p0(ptr %t)", "%a = alloca i32", LOAD) == [["load"]]


def test_long_segments_are_cut():
    sizes = [len(opcodes) for opcodes in cut(*[LOAD] * (2 * MOST_ACCESSES + 1))]
    assert sizes == [MOST_ACCESSES, MOST_ACCESSES, 1]


def test_loop_headers_and_successors():
    segments = make_segments(
        kernel_from_ir(
            f"entry:\n  br label %a\na:\n  {STORE}\n  {ONE_LOAD}\n"
            "  switch i32 %n, label %b [ i32 1, label %a\n i32 2, label %a ]\n"
            "b:\n  ret void\ndead:\n  br label %a",
            f"{L} %t, i32 %n",
        )
    )
    assert [s.label for s in segments] == ["%entry", "%a", "%a", "%b"]
    assert [s.successors for s in segments] == [(1,), (2,), (3, 1, 1), ()]
    assert [s.is_loop_header for s in segments] == [False, True, False, False]


def test_a_block_may_be_its_own_header():
    segments = make_segments(
        kernel_from_ir("entry:\n  br label %a\na:\n  br i1 %n, label %a, label %b\nb:\n  ret void", "i1 %n")
    )
    assert [(s.label, s.is_loop_header) for s in segments] == [("%entry", False), ("%a", True), ("%b", False)]


# ---- lanes meet again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimise", [True, False])
@pytest.mark.parametrize(
    "name", ["switch", "switch_falls_through", "goto", "two_entries", "nested_loops", "early_return", "bit_tricks"]
)
def test_all_lanes_are_together_at_the_end(name: str, optimise: bool):
    oclgrind_device()
    launch = odd_kernels()[f"{name}"]
    compiled = compile_launch(launch, optimise=optimise)
    execution = Execution(compiled, launch)
    execution.run(range(execution.num_work_groups))
    ends = [s.index for s in compiled.native.segments if s.terminator is not None and s.terminator.opcode == "ret"]
    assert len(ends) == 1
    assert execution.segment_count[ends[0]] == 2  # sub-groups
    assert execution.segment_lanes[ends[0]] == 64


def test_lanes_of_a_divergent_loop_run_each_turn_together():
    """Lane i takes i % 4 turns: the body runs 3 times, for 24, 16 and 8 lanes, and what follows once for all."""
    oclgrind_device()
    launch = make_launch(
        """kernel void k(global int *o) {
            int i = get_global_id(0); for (int j = 0; j < (i & 3); j++) o[i] ^= j; o[i]++; }""",
        "buffer:int32:32",
        global_size=32,
    )
    compiled = compile_launch(launch, optimise=False)
    execution = Execution(compiled, launch)
    masks: list[tuple[str, int]] = []

    def consume(events: np.ndarray, addresses: np.ndarray) -> None:
        for segment, mask in events.tolist():
            if segment < len(compiled.native.segments):
                masks.append((compiled.native.segments[segment].label, mask.bit_count()))

    execution.run([0], consume)
    assert [lanes for label, lanes in masks if label == "%for.body"] == [24, 16, 8]
    assert [lanes for label, lanes in masks if label == "%for.end"] == [32]
