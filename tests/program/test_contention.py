"""How many atomics meet at one address: closed forms, and samples against whole launches."""

import pytest

from perfvec.program.tracer import trace_launch
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
"""
# By kernel: contention by sub-group and by lane. 512 groups of 2 sub-groups.
EXPECTED = {
    "one": (1024, 32768),
    "one_in_four": (1024, 8192),
    "four": (1024, 8192),
    "group": (2, 64),
    "pairs": (4, 128),
    "apart": (1, 1),
    # Half of the operations by lane are on the one address; by sub-group 1 in 33.
    "twice": ((1024 * 1024 + 32768) / (1024 + 32768), (32768 * 32768 + 32768) / (2 * 32768)),
    "local_only": (0, 0),
}


def contention(kernel: str, work_groups: int | None, bins: int = 100) -> tuple[float, float]:
    oclgrind_device()
    launch = make_launch(
        SOURCE,
        "buffer:int32:50000:constant(0)",
        f"buffer:int32:32768:indices({bins})",
        kernel_name=kernel,
        global_size=NUM_GROUPS * LOCAL,
        local_size=LOCAL,
    )
    context = trace_launch(launch, work_groups=work_groups).context
    return context.atomic_contention, context.atomic_lane_contention


@pytest.mark.parametrize("kernel", EXPECTED)
def test_whole_launches_are_counted_exactly(kernel: str) -> None:
    assert contention(kernel, None) == pytest.approx(EXPECTED[kernel], rel=1e-12)


@pytest.mark.parametrize("kernel", sorted(set(EXPECTED) - {"pairs"}))
def test_a_sample_gives_the_same_where_groups_are_alike(kernel: str) -> None:
    assert contention(kernel, 48) == pytest.approx(EXPECTED[kernel], rel=1e-9)


def test_neighbours_that_share_an_address_are_not_taken_for_all_groups() -> None:
    by_sub_group, by_lane = contention("pairs", 48)
    assert 2 < by_sub_group <= 4
    assert 64 < by_lane <= 128


@pytest.mark.parametrize("bins", [1, 20, 1000, 30000])
def test_random_bins_are_estimated_however_rarely_they_are_hit(bins: int) -> None:
    whole, sample = contention("bins", None, bins), contention("bins", 48, bins)
    # A uniform draw: an operation meets itself and the other 32767 with probability 1 / bins each.
    assert whole[1] == pytest.approx(1 + 32767 / bins, rel=0.05)
    assert sample == pytest.approx(whole, rel=0.1)
