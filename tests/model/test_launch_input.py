from dataclasses import replace

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.launch_input import PROFILE_EXTRA, FeatureSchema, LaunchInput, check_same_schema, launch_profile
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, NUM_RESOURCES, RESOURCE_INDEX
from tests.model.synthetic_launches import SCHEMA, make_training_set


def small_launch(**changes):
    """Two windows of two and one tokens, executed 3 and 10 times."""
    schema = FeatureSchema(features_version=1, feature_names=("f", "g"), unit_names=("u",), context_names=("c",))
    resources = np.zeros(NUM_RESOURCES)
    resources[RESOURCE_INDEX["launch"]] = 1
    values = {
        "schema": schema,
        "token_features": np.ones((3, 2), np.float32),
        "token_units": np.ones((3, 1), np.float32),
        "window_start": np.array([0, 2, 3]),
        "window_weight": np.array([3.0, 10.0]),
        "context": np.array([7.0], np.float32),
        "resources": resources,
        "name": "gemm",
    }
    return LaunchInput.from_tokens(**(values | changes))


def test_token_weight_repeats_the_window_weight():
    assert small_launch().token_weight.tolist() == [3.0, 3.0, 10.0]


def test_profile_is_context_mix_and_size():
    profile = launch_profile(small_launch())
    executed = 2 * 3 + 1 * 10 + 1  # one more than the instructions that are executed
    assert profile[0] == 7.0
    assert profile[1 + RESOURCE_INDEX["launch"]] == pytest.approx(np.log(1 / executed + 1e-6), rel=1e-6)
    assert profile[1 + RESOURCE_INDEX["fp32_issue"]] == pytest.approx(np.log(1e-6), rel=1e-6)
    assert profile[1 + NUM_COUNTED] == pytest.approx(np.log(executed), rel=1e-6)
    assert len(profile) == 1 + PROFILE_EXTRA


def test_profile_has_times_against_their_mean_and_shares_of_causes():
    resources = small_launch().resources.copy()
    times_AC = resources[NUM_COUNTED:].reshape(len(ARCHETYPES), len(CAUSES))
    times_AC[:, 0], times_AC[:, 1] = 3e-3, 1e-3
    times_AC[1] *= 10
    profile = launch_profile(small_launch(resources=resources))[1 + NUM_COUNTED + 1 :]
    log_A, shares_AC = profile[: len(ARCHETYPES)], profile[len(ARCHETYPES) :].reshape(times_AC.shape)
    assert log_A.mean() == pytest.approx(0, abs=1e-6)
    assert log_A[1] - log_A[0] == pytest.approx(np.log(10), rel=1e-5)
    np.testing.assert_allclose(shares_AC[:, :3], [[0.75, 0.25, 0]] * len(ARCHETYPES), rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"token_features": np.zeros((0, 2), np.float32), "token_units": np.zeros((0, 1), np.float32)},
            "gemm has an empty trace",
        ),
        ({"token_features": np.zeros((2, 2), np.float32)}, "2 tokens have features and 3 have units"),
        ({"window_start": np.array([0]), "window_weight": np.zeros(0)}, "empty trace: 3 tokens in 0 windows"),
        ({"token_features": np.full((3, 2), np.nan, np.float32)}, "row_features has a value that is not finite"),
        ({"context": np.array([np.inf], np.float32)}, "context has a value that is not finite"),
        ({"token_units": np.full((3, 1), -1, np.float32)}, "row_units has a negative value"),
        ({"window_weight": np.array([1.0, -1.0])}, "window_weight has a negative value"),
        ({"token_units": np.ones((3, 2), np.float32)}, r"row_units has shape \(1, 2\)"),
        ({"resources": np.zeros(3)}, "resources has shape"),
        ({"resources": np.zeros(NUM_RESOURCES)}, "counts no resource at all"),
        ({"window_start": np.array([0, 2, 2])}, "must rise from 0"),
        ({"window_start": np.array([1, 2, 3])}, "must rise from 0"),
        ({"schema": replace(small_launch().schema, resources_version=99)}, "resources of version 99"),
    ],
)
def test_malformed_launches_are_refused(changes, message):
    with pytest.raises(ModelError, match=message):
        small_launch(**changes)


def test_tokens_that_look_alike_share_a_row():
    rng = np.random.default_rng(0)
    distinct = rng.normal(size=(40, 2)).astype(np.float32)
    order = np.concatenate([np.arange(40), rng.integers(0, 40, 160)])
    units = (order[:, None] % 3).astype(np.float32)
    launch = small_launch(token_features=distinct[order // 2], token_units=units, window_start=np.array([0, 150, 200]))
    assert len(launch.row_features) == len(set(zip((order // 2).tolist(), (order % 3).tolist(), strict=True)))
    assert np.array_equal(launch.token_features, distinct[order // 2]) and np.array_equal(launch.token_units, units)
    mean = launch.row_weight @ launch.row_features
    np.testing.assert_allclose(mean, launch.token_weight @ launch.token_features, rtol=1e-5)


def test_a_token_without_a_row_is_refused():
    with pytest.raises(ModelError, match="token_row names row 5 of 1"):
        replace(small_launch(), token_row=np.array([0, 5, 0], np.int32))


def test_a_window_longer_than_256_is_refused():
    with pytest.raises(ModelError, match="a window has 257 tokens; at most 256"):
        small_launch(
            token_features=np.ones((257, 2), np.float32),
            token_units=np.ones((257, 1), np.float32),
            window_start=np.array([0, 257]),
            window_weight=np.ones(1),
        )


def test_schema_mismatch_names_the_field():
    with pytest.raises(ModelError, match="kernel x has features_version 2, the model expects 1"):
        SCHEMA.require(replace(SCHEMA, features_version=2), what="kernel x")
    with pytest.raises(ModelError, match="unit_names"):
        SCHEMA.require(replace(SCHEMA, unit_names=("other",)), what="kernel x")


def test_schema_with_a_repeated_name_is_refused():
    with pytest.raises(ModelError, match="context_names of a feature schema repeats"):
        replace(SCHEMA, context_names=("a", "a"))


def test_launches_must_share_a_schema():
    launches = make_training_set(num_launches=2, num_families=2, num_devices=1).launches
    assert check_same_schema(launches) == SCHEMA
    with pytest.raises(ModelError, match="no launches"):
        check_same_schema([])
    with pytest.raises(ModelError, match="gemm has"):
        check_same_schema([*launches, small_launch()])
