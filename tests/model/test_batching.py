from dataclasses import replace

import numpy as np
import pytest
import torch

from perfvec.model.batching import PackedLaunches
from perfvec.model.window_sampling import WindowSampler, window_units
from tests.model.synthetic_launches import make_training_set


@pytest.fixture(scope="module")
def launches():
    return make_training_set(num_launches=6, num_families=6, num_devices=1, seed=3).launches


def batch_of(launches, **options):
    packed = PackedLaunches(launches)
    return packed, packed.batch(np.arange(len(launches)), packed.all_windows(), **options)


def sampler_of(launches, num_windows):
    packed = PackedLaunches(launches)
    return packed, WindowSampler(packed.window_weight, packed.window_units, packed.launch_window, num_windows)


@pytest.mark.parametrize("max_tokens", [1, 300, 16384])
def test_every_window_is_in_one_bucket_with_its_tokens(launches, max_tokens):
    packed, batch = batch_of(launches, max_tokens=max_tokens)
    seen = []
    for bucket in batch.buckets:
        assert bucket.features_BTF.shape[0] == 1 or bucket.features_BTF[..., 0].numel() <= max_tokens
        for row in range(len(bucket.lengths_B)):
            index, length = int(bucket.launch_B[row]), int(bucket.lengths_B[row])
            window = int(bucket.window_B[row]) - packed.launch_window[index]
            launch = launches[index]
            start, stop = launch.window_start[window], launch.window_start[window + 1]
            assert length == stop - start
            np.testing.assert_array_equal(bucket.features_BTF[row, :length], launch.token_features[start:stop])
            np.testing.assert_array_equal(bucket.units_BTV[row, :length, :-1], launch.token_units[start:stop])
            assert (bucket.units_BTV[row, :length, -1] == 1).all()
            assert not bucket.features_BTF[row, length:].any() and not bucket.units_BTV[row, length:].any()
            assert bucket.weight_B[row] == launch.window_weight[window]
            seen.append((index, window))
    assert sorted(seen) == [(i, w) for i, launch in enumerate(launches) for w in range(launch.num_windows)]


def test_launches_come_in_the_order_asked_for(launches):
    packed, sampler = sampler_of(launches, 10_000)
    rows = np.array([4, 1])
    batch = packed.batch(rows, sampler.draw(rows, np.random.default_rng(0)))
    np.testing.assert_array_equal(batch.resources_NK, np.stack([launches[row].resources for row in rows]))
    for place, row in enumerate(rows):
        weights = torch.cat([bucket.weight_B[bucket.launch_B == place] for bucket in batch.buckets])
        assert sorted(weights.tolist()) == sorted(launches[row].window_weight.tolist())


def test_little_is_padding(launches):
    for bucket in batch_of(launches)[1].buckets:
        assert bucket.lengths_B.min() >= 0.7 * bucket.features_BTF.shape[1]


def test_double_precision_where_it_counts(launches):
    batch = batch_of(launches)[1]
    assert batch.resources_NK.dtype == batch.buckets[0].weight_B.dtype == torch.float64


def test_few_windows_are_all_taken(launches):
    packed, sampler = sampler_of(launches, 10_000)
    choice, every = sampler.draw(np.arange(6), np.random.default_rng(0)), packed.all_windows()
    np.testing.assert_allclose(choice.unit_scale, 1, rtol=1e-12)
    for name in ("windows", "launches", "weights"):
        np.testing.assert_array_equal(getattr(choice, name), getattr(every, name))


def test_sampling_takes_as_many_as_asked_and_has_no_bias(launches):
    packed, sampler = sampler_of(launches, 3)
    assert np.diff(packed.launch_window).min() >= 3 and np.diff(packed.launch_window).max() > 4
    rng = np.random.default_rng(0)
    total = np.zeros(len(packed.window_weight))
    draws = 4000
    for _ in range(draws):
        choice = sampler.draw(np.arange(6), rng)
        assert np.bincount(choice.launches).tolist() == [3] * 6
        total[choice.windows] += choice.weights
    # A window drawn with probability q has relative deviation sqrt((1 − q) ÷ q ÷ draws); six of them.
    for launch, start in zip(launches, packed.launch_window[:-1], strict=True):
        size = launch.window_weight * launch.window_lengths
        tolerance = 6 * np.sqrt(1 / np.minimum(1, 3 * size / size.sum()) / draws)
        mean = total[start : start + launch.num_windows] / draws
        assert (np.abs(mean / launch.window_weight - 1) < tolerance).all()


def test_the_heaviest_windows_are_always_drawn(launches):
    launch = max(launches, key=lambda one: one.num_windows)
    weight = np.ones(launch.num_windows)
    weight[2] = 1e9
    _, sampler = sampler_of([replace(launch, window_weight=weight)], 3)
    for seed in range(20):
        choice = sampler.draw(np.array([0]), np.random.default_rng(seed))
        assert choice.weights[choice.windows.tolist().index(2)] == pytest.approx(1e9, rel=1e-12)


def test_units_of_a_window_are_the_sum_over_its_tokens(launches):
    launch = launches[0]
    units = window_units(launch)
    for window in range(launch.num_windows):
        rows = slice(launch.window_start[window], launch.window_start[window + 1])
        expected = [*launch.token_units[rows].sum(axis=0, dtype=np.float64), launch.window_lengths[window]]
        np.testing.assert_allclose(units[window], expected, rtol=1e-12)


def test_drawn_windows_have_the_whole_launchs_units(launches):
    packed, sampler = sampler_of(launches, 4)
    rows = np.array([5, 2])
    batch = packed.batch(rows, sampler.draw(rows, np.random.default_rng(1)))
    for place, row in enumerate(rows):
        launch = launches[row]
        total = launch.token_weight @ np.concatenate([launch.token_units, np.ones((launch.num_tokens, 1))], axis=1)
        drawn = sum(
            torch.einsum("btv,b->v", bucket.units_BTV.double(), bucket.weight_B * (bucket.launch_B == place))
            for bucket in batch.buckets
        )
        # Every window of this truth uses every unit that the kernel uses. Units are single precision.
        np.testing.assert_allclose(drawn, total, rtol=1e-5)
