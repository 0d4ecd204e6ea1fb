from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from perfvec.arch.archetypes import archetype_prices
from perfvec.arch.datasheet import (
    COUNTED_SHARE,
    counted_seconds_per_unit,
    ladder_weights,
    roofline_time_s,
    seconds_per_unit,
)
from perfvec.arch.device import find_device, load_devices
from perfvec.arch.timing.of_device import timing_config
from perfvec.resources import NUM_COUNTED, NUM_RESOURCES, RESOURCE_INDEX, RESOURCES, SLOT_LADDER


def counts(**values: float) -> np.ndarray:
    vector = np.zeros(NUM_RESOURCES)
    for name, value in values.items():
        vector[RESOURCE_INDEX[name]] = value
    return vector


def test_h200_seconds_by_hand():
    seconds = counted_seconds_per_unit(find_device("nvidia-h200"))
    by_hand = {
        "launch": 5.57e-6,
        "fp32_issue": 32 / (66.908e12 / 2),  # 32 lanes, an fma is two FLOP
        "fp64_issue": 32 / (33.454e12 / 2),
        "int_issue": 32 / (64 * 132 * 1.98e9),
        "special_issue": 32 / (16 * 132 * 1.98e9) + 8 * 32 / (66.908e12 / 2),
        "other_issue": 32 / (128 * 132 * 1.98e9),
        "local_passes": 1 / (132 * 1.98e9),  # one pass a cycle and compute unit
        "l1_sectors": 32 / (128 * 132 * 1.98e9),
        "l2_sectors": 32 / (32 * 132 * 1.98e9),
        "dram_sectors": 32 / 4.8e12,
        "atomic_passes": 1 / (132 * 1.98e9),
        "barriers": 5 / (132 * 1.98e9),
    }
    for name, expected in by_hand.items():
        # Files give six digits.
        assert seconds[RESOURCE_INDEX[name]] == pytest.approx(expected, rel=1e-5), name


def test_h200_latency_terms_by_hand():
    seconds = counted_seconds_per_unit(find_device("nvidia-h200"))
    slots = 132 * 64  # 8448, between the rungs 2048 and 16384
    low = (1 / slots - 1 / 16384) / (1 / 2048 - 1 / 16384)
    assert seconds[RESOURCE_INDEX["issue_per_slot_2048"]] == pytest.approx(low * 4 / 1.98e9)
    assert seconds[RESOURCE_INDEX["issue_per_slot_16384"]] == pytest.approx((1 - low) * 4 / 1.98e9)
    assert seconds[RESOURCE_INDEX["access_per_slot_2048"]] == pytest.approx(low * (260 + 658) / 2 / 1.98e9)
    for rung in (16, 256):
        assert seconds[RESOURCE_INDEX[f"issue_per_slot_{rung}"]] == 0
        assert seconds[RESOURCE_INDEX[f"access_per_slot_{rung}"]] == 0


@pytest.mark.parametrize("slots", [16.0, 17.0, 100.0, 256.0, 2048.0, 8448.0, 16384.0])
def test_ladder_is_exact_for_plenty_and_for_little_work(slots: float):
    weights = ladder_weights(slots)
    assert weights.sum() == pytest.approx(1)  # little work: every rung counts the same
    assert (weights / np.array(SLOT_LADDER)).sum() == pytest.approx(1 / slots)  # plenty: a count goes as 1 / slots
    assert (weights >= 0).all()
    assert np.count_nonzero(weights) <= 2


def test_ladder_beyond_its_ends():
    assert ladder_weights(2.0).tolist() == [8, 0, 0, 0]
    assert ladder_weights(20_000.0).tolist() == [0, 0, 0, 1]


def test_a_device_vector_starts_with_a_share_of_the_counted_prices_and_the_timed_ones():
    device = find_device("nvidia-rtx-3090")
    seconds = seconds_per_unit(device)
    assert seconds.shape == (NUM_RESOURCES,)
    np.testing.assert_allclose(seconds[:NUM_COUNTED], COUNTED_SHARE * counted_seconds_per_unit(device), rtol=1e-15)
    np.testing.assert_array_equal(seconds[NUM_COUNTED:], archetype_prices(timing_config(device)))
    other = timing_config(find_device("amd-instinct-mi210"))
    np.testing.assert_array_equal(seconds_per_unit(device, other)[NUM_COUNTED:], archetype_prices(other))


def test_every_device_charges_for_every_throughput_resource():
    for device in load_devices().values():
        seconds = seconds_per_unit(device)
        assert np.isfinite(seconds).all()
        for resource in RESOURCES:
            if "_per_slot_" not in resource.name:
                assert seconds[RESOURCE_INDEX[resource.name]] > 0, (device.name, resource.name)


def test_roofline_is_launch_plus_the_slowest_roof():
    device = find_device("nvidia-h200")
    streaming = counts(launch=1, fp32_issue=1e6, dram_sectors=1e8, l2_sectors=1e8, l1_sectors=1e8)
    # 1e8 sectors of 32 B at 4.8 TB/s are 0.667 ms; the arithmetic is 1 µs.
    assert roofline_time_s(device, streaming) == pytest.approx(5.57e-6 + 1e8 * 32 / 4.8e12)
    arithmetic = counts(launch=1, fp32_issue=1e9, dram_sectors=1e6)
    assert roofline_time_s(device, arithmetic) == pytest.approx(5.57e-6 + 1e9 * 32 / (66.908e12 / 2), rel=1e-5)
    # Instructions of all kinds share the issue slots: 1e9 of each of two kinds, 128 lanes a cycle.
    mixed = counts(launch=1, fp32_issue=1e9, other_issue=1e9)
    assert roofline_time_s(device, mixed) == pytest.approx(5.57e-6 + 2e9 * 32 / (128 * 132 * 1.98e9), rel=1e-5)
    both = np.stack([streaming, arithmetic])
    assert roofline_time_s(device, both).tolist() == [
        roofline_time_s(device, streaming), roofline_time_s(device, arithmetic)
    ]  # fmt: skip


def test_roofline_is_monotonic():
    device = find_device("nvidia-rtx-3090")
    rng = np.random.default_rng(0)
    launches = rng.uniform(0, 1e8, (200, NUM_RESOURCES))
    base = roofline_time_s(device, launches)
    for name in ("dram_sectors", "l2_sectors", "fp32_issue", "local_passes"):
        more = launches.copy()
        more[:, RESOURCE_INDEX[name]] *= 1.5
        assert (roofline_time_s(device, more) >= base).all(), name
    dram = dataclasses.replace(device.memory.dram, bandwidth_bytes_per_s=1.2 * 936e9)
    faster = dataclasses.replace(device, memory=dataclasses.replace(device.memory, dram=dram))
    assert (roofline_time_s(faster, launches) <= base).all()


def test_roofline_refuses_another_number_of_resources():
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        roofline_time_s(find_device("nvidia-h200"), np.zeros(3))
