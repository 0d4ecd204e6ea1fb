import numpy as np
import pytest
import torch

from perfvec.model.batching import make_batch
from perfvec.model.launch_input import launch_profile
from perfvec.model.window_sampling import WindowChoice, all_windows, sample_windows, window_units
from tests.model.synthetic_launches import make_training_set


@pytest.fixture(scope="module")
def launches():
    return make_training_set(num_launches=6, num_families=6, num_devices=1, seed=3).launches


def batch_of(launches, **options):
    profiles = np.stack([launch_profile(launch) for launch in launches])
    return make_batch(launches, profiles, [all_windows(launch) for launch in launches], **options)


@pytest.mark.parametrize("max_tokens", [1, 300, 16384])
def test_every_window_is_in_one_bucket_with_its_tokens(launches, max_tokens):
    batch = batch_of(launches, max_tokens=max_tokens)
    seen = []
    for bucket in batch.buckets:
        assert bucket.features_BTF.shape[0] == 1 or bucket.features_BTF[..., 0].numel() <= max_tokens
        for row in range(len(bucket.lengths_B)):
            index, window = int(bucket.launch_B[row]), int(bucket.window_B[row])
            length = int(bucket.lengths_B[row])
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


def test_little_is_padding(launches):
    for bucket in batch_of(launches).buckets:
        assert bucket.lengths_B.min() >= 0.7 * bucket.features_BTF.shape[1]


def test_double_precision_where_it_counts(launches):
    batch = batch_of(launches)
    assert batch.resources_NK.dtype == batch.buckets[0].weight_B.dtype == torch.float64


def test_few_windows_are_all_taken(launches):
    choice = sample_windows(
        launches[0].window_weight, 10_000, np.random.default_rng(0), units=window_units(launches[0])
    )
    assert (choice.unit_scale == 1).all()
    np.testing.assert_array_equal(choice.weights, launches[0].window_weight)


def test_sampling_takes_as_many_as_asked_and_has_no_bias(launches):
    launch = max(launches, key=lambda one: one.num_windows)
    assert launch.num_windows > 4
    rng = np.random.default_rng(0)
    total = np.zeros(launch.num_windows)
    draws = 4000
    for _ in range(draws):
        choice = sample_windows(launch.window_weight, 4, rng, units=window_units(launch))
        assert isinstance(choice, WindowChoice) and len(choice.windows) == 4
        total[choice.windows] += choice.weights
    # A window drawn with probability q has relative deviation sqrt((1 − q) ÷ q ÷ draws); six of them.
    size = launch.window_weight * launch.window_lengths
    probability = np.minimum(1, 4 * size / size.sum())
    tolerance = 6 * np.sqrt(1 / probability / draws)
    assert (np.abs(total / draws / launch.window_weight - 1) < tolerance).all()


def test_the_heaviest_windows_are_always_drawn():
    from dataclasses import replace

    launch = max(make_training_set(num_launches=9, num_families=9, num_devices=1).launches, key=lambda x: x.num_windows)
    weight = np.ones(launch.num_windows)
    weight[2] = 1e9
    launch = replace(launch, window_weight=weight)
    for seed in range(20):
        choice = sample_windows(launch.window_weight, 3, np.random.default_rng(seed), units=window_units(launch))
        assert choice.weights[choice.windows.tolist().index(2)] == pytest.approx(1e9, rel=1e-12)


def test_units_of_a_window_are_the_sum_over_its_tokens(launches):
    launch = launches[0]
    units = window_units(launch)
    for window in range(launch.num_windows):
        rows = slice(launch.window_start[window], launch.window_start[window + 1])
        expected = [*launch.token_units[rows].sum(axis=0, dtype=np.float64), launch.window_lengths[window]]
        np.testing.assert_allclose(units[window], expected, rtol=1e-12)


def test_drawn_windows_have_the_whole_launchs_units(launches):
    launch = max(launches, key=lambda one: one.num_windows)
    total = launch.token_weight @ np.concatenate([launch.token_units, np.ones((launch.num_tokens, 1))], axis=1)
    choice = sample_windows(launch.window_weight, 4, np.random.default_rng(1), units=window_units(launch))
    batch = make_batch([launch], launch_profile(launch)[None], [choice])
    drawn = sum(torch.einsum("btv,b->v", bucket.units_BTV.double(), bucket.weight_B) for bucket in batch.buckets)
    # Every window of this truth uses every unit that the kernel uses. Units are single precision.
    np.testing.assert_allclose(drawn, total, rtol=1e-5)
