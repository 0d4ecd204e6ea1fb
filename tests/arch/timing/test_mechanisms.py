"""Each mechanism against arithmetic, or a slow twin."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from perfvec.arch.timing import TimingConfig, read_workload, simulate
from perfvec.arch.timing.caches import bucket_distances, hit_probability
from perfvec.arch.timing.machines import Machines
from perfvec.arch.timing.overlap import overlap
from perfvec.arch.timing.pipes import instructions, result_latency
from perfvec.errors import ConfigError, FormatError
from perfvec.trace_data import OPCODE_CLASSES, Trace
from tests.arch.timing.devices import LARGE, large
from tests.arch.timing.kernels import traced


def time_s(trace: Trace, config: TimingConfig, **others) -> float:
    return simulate(trace, [config], **others).kernel_time_s[0]


@pytest.mark.parametrize(("ways", "share"), [(1, 0.3), (4, 0.7), (16, 1.0), (16, 1.3)])
def test_hits_are_those_of_a_set_associative_cache_with_random_lines(ways, share):
    sets, trials = 64, 4000
    distance = int(share * sets * ways)
    rng = np.random.default_rng(0)
    # A line stays if fewer than `ways` of the distinct lines touched since fall on its set.
    stays = np.mean(rng.binomial(distance, 1 / sets, trials) < ways)
    expected = hit_probability(np.array(float(distance)), np.array(sets * ways * 128.0), np.array(float(ways)))
    assert expected == pytest.approx(stays, abs=0.03)  # three standard errors of the trials, and Poisson for binomial


def test_no_cache_never_hits_and_an_endless_one_always():
    distance = np.array([0.0, 5.0, 1e9])
    assert hit_probability(distance, np.array(0.0), np.array(4.0)).tolist() == [0, 0, 0]
    assert hit_probability(distance, np.array(1e18), np.array(4.0)).tolist() == [1, 1, 1]


def test_buckets_stand_for_the_middle_of_their_distances():
    # Bucket b holds distances d with 1 + floor(log2(1 + d)) = b.
    found = bucket_distances()
    assert math.isinf(found[0])
    for bucket in range(1, 12):
        inside = [d for d in range(5000) if 1 + math.floor(math.log2(1 + d)) == bucket]
        assert found[bucket] == np.mean(inside)


def test_bounds_hide_behind_each_other_and_dispatch_behind_all():
    bounds = np.array([[3.0, 3.0, 0.0, 3.0], [4.0, 4.0, 0.0, 4.0], [1.0, 9.0, 0.0, 5.5]])
    time, shares = overlap(bounds, np.array([2.0, 2.0, 2.0, 1.0]), 2)
    assert time.tolist() == [5.0, 9.0, 0.0, 7.0]
    assert shares.T.tolist() == [[9 / 25, 16 / 25, 0], [0, 0, 1], [0, 0, 0], [3 / 7, 4 / 7, 0]]


def test_instructions_become_sequences_of_the_device():
    workload = read_workload(traced("divergent"))
    static = workload.trace.static
    machines = Machines([large(special_instructions=10.0, division_instructions=7.0, uniform_share=1.0)])
    counts, latency = instructions(workload, machines)[:, :, 0], result_latency(static, machines)[:, 0]
    of = {OPCODE_CLASSES[entry["opcode_class"]]: row for row, entry in enumerate(static) if entry["value_kind"] == 2}
    # Pipes: fp32, fp64, int, special, load/store, none. Latencies of `LARGE`: fp32 4, special 20.
    assert counts[:, of["div"]].tolist() == [7, 0, 0, 1, 0, 0]
    assert counts[:, of["sqrt"]].tolist() == [7, 0, 0, 1, 0, 0]
    assert counts[:, of["native"]].tolist() == [0, 0, 0, 1, 0, 0]
    assert counts[:, of["add"]].tolist() == [1, 0, 0, 0, 0, 0]
    assert latency[[of["div"], of["native"], of["add"]]].tolist() == [7 * 4 + 20, 20, 4]


def test_narrow_sub_groups_issue_more_and_wide_ones_less():
    size = 400 * 256
    trace = traced("fma", (f"buffer:float32:{size}:constant(0)", "int32:100"), (size,), (256,))
    times = [
        time_s(
            trace,
            large(sub_group_size=width, max_sub_groups=128, issue_width=0.0625),
            without=["launch", "dependences"],
        )
        for width in (8, 16, 32, 64)
    ]
    # All lanes are active, and the halves of a sub-group of 64 do the same: instructions to issue halve each time.
    assert [a / b for a, b in pairwise(times)] == pytest.approx([2.0, 2.0, 2.0], rel=0.02)


def test_idle_lanes_cost_what_their_sub_group_costs():
    size = 1 << 17
    trace = traced(
        "divergent", (f"buffer:int32:{size}:uniform(0,40)", f"buffer:float32:{size}:constant(0)"), (size,), (128,)
    )
    without = ["launch", "dependences", "in_order"]
    devices = {
        w: large(fp32_lanes=16.0, special_lanes=4.0, sub_group_size=w, max_sub_groups=256) for w in (8, 16, 32, 64)
    }
    ideal = time_s(trace, devices[32], without=[*without, "divergence"])
    times = [time_s(trace, device, without=without) for device in devices.values()]
    assert all(narrow < wide for narrow, wide in pairwise([ideal, *times]))


def test_conflicts_take_as_many_passes_as_lanes_meet_in_a_bank():
    def local_s(step: int) -> float:
        trace = traced("conflicts", ("buffer:float32:131072:constant(0)", f"int32:{step}"), (131_072,), (256,))
        return time_s(trace, large(local_banks=32), without=["dependences", "launch", "dispatch", "pipes", "issue"])

    # Strides of 2 and 8 words put 2 and 8 lanes on a bank.
    assert local_s(2) / local_s(1) == pytest.approx(2.0, rel=0.05)
    assert local_s(8) / local_s(1) == pytest.approx(8.0, rel=0.05)


def test_round_robin_is_never_faster_than_greedy():
    for kernel in ("product", "divergent", "tree"):
        greedy, robin = simulate(traced(kernel), [LARGE, large(scheduler_policy="round-robin")]).kernel_time_s
        assert robin >= greedy


def test_a_warm_start_saves_dram_what_fits_the_l2():
    trace = traced("copy")  # 2 MiB
    without = ["launch", "dispatch"]
    small, cold, warm = (
        simulate(trace, [config], without=without).breakdown_s[0]
        for config in (large(l2_bytes=1 << 16), large(start="cold"), LARGE)
    )
    dram = 5  # in CAUSES
    assert warm[dram] < 1e-9 < cold[dram]
    assert cold[dram] < small[dram]  # what is stored stays in a large L2


def test_stores_go_to_dram_once_written_back_and_each_time_written_through():
    threads, rounds = 1 << 20, 4
    trace = traced("chain", (f"buffer:float32:{threads}:constant(0)", f"int32:{rounds}"), (threads,), (256,))
    without = ["launch", "dispatch", "ramp"]
    # In place: read and written, 8 B a work-item, whichever policy, since each element is stored once.
    for policy in ("back", "through"):
        config = large(l2_bytes=1 << 16, l2_write_policy=policy, dram_bytes_per_s=1e11)
        assert time_s(trace, config, without=without) == pytest.approx(8 * threads / 1e11, rel=0.02)
    half = time_s(trace, large(l2_bytes=1 << 16, dram_bytes_per_s=1e11), without=[*without, "stores"])
    assert half == pytest.approx(4 * threads / 1e11, rel=0.02)


def test_a_miss_limit_is_a_rate_by_littles_law():
    num = 1 << 22
    trace = traced(
        "copy", (f"buffer:float32x4:{num}:constant(1)", f"buffer:float32x4:{num}:constant(0)"), (num,), (256,)
    )
    limit = 4096
    config = large(l2_bytes=4096, l2_miss_limit_sectors=limit)
    sectors = 16 * num / 32
    assert time_s(trace, config, without=["launch", "dispatch"]) == pytest.approx(
        sectors * config.dram_latency_s / limit, rel=0.01
    )


def test_mechanisms_and_configurations_are_checked():
    with pytest.raises(ConfigError, match="no mechanism cache to switch off; there are issue, pipes"):
        simulate(traced("copy"), [LARGE], without=["cache"])
    with pytest.raises(ConfigError, match="no configuration to simulate; give one TimingConfig or more"):
        simulate(traced("copy"), [])


def test_a_trace_of_another_version_is_refused(tmp_path):
    import h5py

    path = tmp_path / "trace.h5"
    traced("copy").save(path)
    assert simulate(Trace.load(path), [LARGE]).kernel_time_s == simulate(traced("copy"), [LARGE]).kernel_time_s
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 1
    with pytest.raises(FormatError, match="version 1"):
        Trace.load(path)
