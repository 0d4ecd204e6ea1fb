"""How many atomics meet at one address: closed forms, and samples against whole launches."""

import pytest

from perfvec.program.counts import count_resources, count_window_units, unit_tables
from perfvec.program.tracer import trace_launch
from perfvec.resources import RESOURCE_INDEX
from perfvec.trace_data import OPCODE_CLASSES, Trace
from tests.opencl import oclgrind_device
from tests.program.launching import make_launch

NUM_GROUPS, LOCAL = 512, 64
SOURCE = """
#define ID get_global_id(0)
__kernel void one(__global int *a, __global const int *b) { atomic_inc(a); }
__kernel void one_in_four(__global int *a, __global const int *b) { if ((ID & 3) == 1) atomic_inc(a + 7); }
__kernel void four(__global int *a, __global const int *b) { atomic_inc(a + (ID & 3)); }
__kernel void bins(__global int *a, __global const int *b) { atomic_add(a + b[ID], 1); }
__kernel void group(__global int *a, __global const int *b) { a[9000 + ID] = atomic_inc(a + get_group_id(0)); }
__kernel void pairs(__global int *a, __global const int *b) { atomic_inc(a + get_group_id(0) / 2); }
__kernel void apart(__global int *a, __global const int *b) { atomic_inc(a + ID); }
__kernel void twice(__global int *a, __global const int *b) { atomic_inc(a); atomic_dec(a + 1 + ID); }
__kernel void local_only(__global int *a, __global const int *b) {
    __local int n;
    if (get_local_id(0) == 0) n = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&n);
    barrier(CLK_LOCAL_MEM_FENCE);
    a[ID] = n;
}
__kernel void local_two(__global int *a, __global const int *b) {
    __local int n[2];
    if (get_local_id(0) < 2) n[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&n[get_local_id(0) < 40]);
    barrier(CLK_LOCAL_MEM_FENCE);
    a[ID] = n[0];
}
__kernel void both(__global int *a, __global const int *b) {
    atomic_inc(a);
    if (ID & 1) atomic_add(a, 2);
}
"""
# By kernel, of 512 groups of 2 sub-groups: contention by sub-group and by lane, in local memory, on the hottest
# address, and by instruction.
EXPECTED = {
    "one": (1024, 32768, 0, 1024, [1024]),
    "one_in_four": (1024, 8192, 0, 1024, [1024]),
    "four": (1024, 8192, 0, 8192, [1024]),  # lanes on different addresses are not combined
    "group": (2, 64, 0, 2, [2]),
    "pairs": (4, 128, 0, 4, [4]),
    "apart": (1, 1, 0, 1, [1]),
    # Half of the operations by lane are on the one address; by sub-group 1 in 33.
    "twice": (
        (1024 * 1024 + 32768) / (1024 + 32768), (32768 * 32768 + 32768) / (2 * 32768), 0, 1024, [1024, 1],
    ),
    "local_only": (0, 0, 2, 0, [2]),
    # The first sub-group and 8 lanes of the second on n[1], 24 lanes of the second on n[0].
    "local_two": (0, 0, (2 + 2 + 1) / 3, 0, [5 / 3]),
    "both": (2048, 32768 + 16384, 0, 2048, [2048, 2048]),
}  # fmt: skip


def trace(
    kernel: str, work_groups: int | None, *, bins: int = 100, local: int = LOCAL, groups: int = NUM_GROUPS
) -> Trace:
    oclgrind_device()
    launch = make_launch(
        SOURCE,
        "buffer:int32:50000:constant(0)",
        f"buffer:int32:32768:indices({bins})",
        kernel_name=kernel,
        global_size=groups * local,
        local_size=local,
    )
    return trace_launch(launch, work_groups=work_groups)


def contention(found: Trace) -> tuple[float, float, float, float]:
    context = found.context
    return (
        context.atomic_contention,
        context.atomic_lane_contention,
        context.local_atomic_contention,
        context.hottest_atomics,
    )


def by_instruction(found: Trace) -> list[float]:
    is_atomic = found.static["opcode_class"] == OPCODE_CLASSES.index("atomic")
    assert not found.static["contention"][~is_atomic].any()
    return found.static["contention"][is_atomic].tolist()


@pytest.mark.parametrize("kernel", EXPECTED)
def test_whole_launches_are_counted_exactly(kernel: str) -> None:
    found = trace(kernel, None)
    assert contention(found) == pytest.approx(EXPECTED[kernel][:4], rel=1e-12)
    assert by_instruction(found) == pytest.approx(EXPECTED[kernel][4], rel=1e-6)


@pytest.mark.parametrize("kernel", sorted(set(EXPECTED) - {"pairs"}))
def test_a_sample_gives_the_same_where_groups_are_alike(kernel: str) -> None:
    found = trace(kernel, 48)
    assert contention(found) == pytest.approx(EXPECTED[kernel][:4], rel=1e-9)
    assert by_instruction(found) == pytest.approx(EXPECTED[kernel][4], rel=1e-6)


def test_neighbours_that_share_an_address_are_not_taken_for_all_groups() -> None:
    by_sub_group, by_lane, _, hottest = contention(trace("pairs", 48))
    assert 2 < by_sub_group <= 4
    assert 64 < by_lane <= 128
    assert hottest == 4


def test_partial_sub_groups() -> None:
    """3 groups of 40: a sub-group of 32 and one of 8; lanes 1, 5, 9 ... of each are 8 and 2."""
    found = trace("one_in_four", None, local=40, groups=3)
    assert contention(found) == (6, 30, 0, 6)
    # The lanes below 40 are all of the group: 2 sub-groups on n[1].
    assert contention(trace("local_two", None, local=40, groups=3)) == (0, 0, 2, 0)


@pytest.mark.parametrize("bins", [1, 20, 1000, 30000])
def test_random_bins_are_estimated_however_rarely_they_are_hit(bins: int) -> None:
    whole, sample = contention(trace("bins", None, bins=bins)), contention(trace("bins", 48, bins=bins))
    # A uniform draw: an operation meets itself and the other 32767 with probability 1 / bins each.
    assert whole[1] == pytest.approx(1 + 32767 / bins, rel=0.05)
    assert sample[:2] == pytest.approx(whole[:2], rel=0.1)
    # The largest of many random counts is told less exactly, and rather too high; see `_Pairs.hottest`.
    assert whole[3] * 0.8 <= sample[3] <= whole[3] * 4


def test_the_hottest_address_is_a_resource() -> None:
    found = trace("four", 48)
    tables = unit_tables(found)
    counted = count_resources(found, tables, count_window_units(found, tables))
    assert counted[RESOURCE_INDEX["serial_atomics"]] == pytest.approx(8192)


def test_a_table_that_fills_up_grows_and_forgets_nothing() -> None:
    """1024 lanes a group with an address each, more than half of the first table."""
    found = trace("apart", None, local=1024, groups=4)
    assert contention(found) == (1, 1, 0, 1)
    assert contention(trace("one", None, local=1024, groups=4)) == (128, 4096, 0, 128)
