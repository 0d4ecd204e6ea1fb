"""NDRanges: the shares that are asked for, on devices of all kinds, and what a device holds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

from perfvec.arch.device import find_device
from perfvec.corpus.draw import Draw
from perfvec.corpus.ndrange import Demands, NDRange, deck, fill_of, groups_held, sample_ndrange
from perfvec.errors import ConfigError

DEVICES = ("nvidia-h200", "amd-instinct-mi210", "nvidia-gtx-970", "intel-hd-530")
DEMANDS = (
    Demands(dims=1),
    Demands(dims=2),
    Demands(dims=3),
    Demands(dims=1, is_power_of_two=True, local_item_bytes=8),
    Demands(dims=2, local_item_bytes=16, local_fixed_bytes=1024),
)


def test_shares_of_the_deck_are_exact():
    cards = deck(Draw(1), 2000)
    assert Counter(fill for fill, _ in cards) == {"idle": 500, "underused": 1200, "full": 300}
    assert Counter(is_multiple for _, is_multiple in cards) == {True: 1400, False: 600}
    assert Counter(fill for fill, _ in cards[:20]) == {"idle": 5, "underused": 12, "full": 3}
    assert len({tuple(cards[start : start + 20]) for start in range(0, 2000, 20)}) > 90  # in ever new orders


@pytest.mark.parametrize("name", DEVICES)
def test_shares_of_the_launches(name: str):
    """25 % leave compute units idle, 60 % underuse them, 15 % fill them; 70 % multiples of the sub-group width."""
    device, draw, count = find_device(name), Draw(2), 2000
    fills: Counter[str] = Counter()
    multiples = 0
    for number, (fill, is_multiple) in enumerate(deck(draw, count)):
        demands = DEMANDS[number % len(DEMANDS)]
        ndrange = sample_ndrange(draw, device, demands, fill, is_multiple=is_multiple)
        fills[fill_of(device, ndrange, demands)] += 1
        multiples += ndrange.local_items % device.compute.sub_group_size == 0
        assert len(ndrange.global_size) == len(ndrange.local_size) == demands.dims
        assert all(size % local == 0 for size, local in zip(ndrange.global_size, ndrange.local_size, strict=True))
        assert ndrange.local_items <= min(device.compute.max_work_group_size, 1024)
        assert demands.local_bytes(ndrange.local_items) <= device.compute.max_local_bytes_per_work_group
        if demands.is_power_of_two:
            assert ndrange.local_items & (ndrange.local_items - 1) == 0
    shares = [fills[fill] / count for fill in ("idle", "underused", "full")]
    assert shares == pytest.approx([0.25, 0.6, 0.15], abs=0.02)
    assert multiples / count == pytest.approx(0.7, abs=0.02)


def test_sizes_are_spread():
    device, draw = find_device("nvidia-h200"), Draw(3)
    drawn = [sample_ndrange(draw, device, Demands(dims=2), "underused", is_multiple=True) for _ in range(500)]
    assert len({ndrange.local_size for ndrange in drawn}) > 40
    assert len({ndrange.local_items for ndrange in drawn}) > 15
    groups = [ndrange.num_groups for ndrange in drawn]
    assert min(groups) < 200
    assert max(groups) > 2000
    assert sum(1 for ndrange in drawn if min(ndrange.global_size) > 1) > 350  # truly two-dimensional


def test_what_a_device_holds():
    """H200: 132 compute units, each 64 sub-groups of 32, 32 work-groups, 228 KiB of local memory."""
    device = find_device("nvidia-h200")
    assert groups_held(device, 256, 0) == 132 * 8
    assert groups_held(device, 32, 0) == 132 * 32  # work-groups are what runs out
    assert groups_held(device, 33, 0) == 132 * 32
    assert groups_held(device, 1024, 0) == 132 * 2
    assert groups_held(device, 256, 48 << 10) == 132 * 4  # local memory is
    demands = Demands(dims=1)

    def fill(groups: int) -> str:
        return fill_of(device, NDRange(global_size=(256 * groups,), local_size=(256,)), demands)

    assert [fill(groups) for groups in (131, 132, 1055, 1056)] == ["idle", "underused", "underused", "full"]


def test_a_device_of_one_group_a_unit_is_idle_or_full():
    device, draw = find_device("xeon-16core-pocl"), Draw(4)
    fills = {
        fill: {
            fill_of(device, sample_ndrange(draw, device, Demands(dims=1), fill, is_multiple=True), Demands(dims=1))
            for _ in range(50)
        }
        for fill in ("idle", "underused", "full")
    }
    assert fills == {"idle": {"idle"}, "underused": {"full"}, "full": {"full"}}


def test_too_much_local_memory_is_refused():
    device = find_device("nvidia-h200")
    with pytest.raises(ConfigError, match=r"needs 70000 bytes of local memory .* does not fit nvidia-h200"):
        sample_ndrange(Draw(0), device, Demands(dims=1, local_fixed_bytes=70_000), "idle", is_multiple=True)


def test_a_small_device_gets_small_launches():
    device = find_device("nvidia-h200")
    small = replace(device, compute=replace(device.compute, compute_units=4, fp32_flops=2e12, fp64_flops=1e12))
    for target, low, high in ((device, 264, 2112), (small, 8, 64)):
        ndrange = [sample_ndrange(Draw(seed), target, Demands(dims=1), "full", is_multiple=True) for seed in range(50)]
        least = min(groups_held(target, item.local_items, 0) for item in ndrange)
        assert low <= least <= high
        assert all(math.prod(item.global_size) >= 32 * low for item in ndrange)
