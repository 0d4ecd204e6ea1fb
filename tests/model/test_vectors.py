from dataclasses import replace

import numpy as np
import pytest
import torch

from perfvec.errors import ModelError
from perfvec.model.config import ModelConfig
from perfvec.model.excess import excess_pairs
from perfvec.model.launch_input import LITTLE_S, TIMES_OF_PROFILE, LaunchInput, launch_profile
from perfvec.model.program_encoder import Normaliser, ProgramEncoder
from perfvec.model.vectors import contributions, encode, predict
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, NUM_RESOURCES, RESOURCE_INDEX
from tests.model.synthetic_launches import SCHEMA, make_training_set

# Gates are computed in single precision, in an order that depends on how windows are batched.
SINGLE = 2e-6


@pytest.fixture(scope="module", params=["conv", "lstm", "pooled", "transformer"])
def encoder(request):
    torch.manual_seed(0)
    return ProgramEncoder(SCHEMA, ModelConfig(encoder=request.param, hidden=16, dim=1836, excess=300)).eval()


@pytest.fixture(scope="module")
def launches():
    return make_training_set(num_launches=5, num_families=5, num_devices=1, seed=2).launches


def part_of(launch: LaunchInput, windows: np.ndarray, share: float) -> LaunchInput:
    """Some windows of a launch, and a share of its resources."""
    lengths = launch.window_lengths[windows]
    tokens = np.concatenate([np.arange(launch.window_start[w], launch.window_start[w + 1]) for w in windows])
    return replace(
        launch,
        token_row=launch.token_row[tokens],
        window_start=np.concatenate([[0], np.cumsum(lengths)]),
        window_weight=launch.window_weight[windows],
        resources=share * launch.resources,
    )


def with_times(launch: LaunchInput, seed: int) -> LaunchInput:
    """The launch with times on archetypes."""
    resources = launch.resources.copy()
    resources[NUM_COUNTED:] = np.random.default_rng(seed).lognormal(-12.0, 2.0, NUM_RESOURCES - NUM_COUNTED)
    return replace(launch, resources=resources)


def test_counted_coordinates_are_the_counts(encoder, launches):
    vectors = encode(encoder, launches)
    assert vectors.shape == (5, encoder.layout.dim) and vectors.dtype == np.float64
    np.testing.assert_array_equal(vectors[:, :NUM_RESOURCES], np.stack([x.resources for x in launches]))


def test_straight_gates_add_what_log_times_say_beside_the_network(launches):
    torch.manual_seed(0)
    straight = ProgramEncoder(SCHEMA, ModelConfig(encoder="pooled", hidden=16, straight_gates=True)).eval()
    plain = ProgramEncoder(SCHEMA, ModelConfig(encoder="pooled", hidden=16)).eval()
    plain.load_state_dict({name: value for name, value in straight.state_dict().items() if "straight" not in name})
    before = encode(straight, launches)
    np.testing.assert_array_equal(before, encode(plain, launches))  # they begin at 0
    assert straight.straight_gates is not None
    with torch.no_grad():
        straight.straight_gates.weight[3, 5] = 2.0
    after = encode(straight, launches)
    profiles = torch.from_numpy(np.stack([launch_profile(x) for x in launches]))
    entry = straight.profile_norm(profiles)[:, TIMES_OF_PROFILE][:, 5].numpy()
    times = np.stack([x.resources[NUM_COUNTED:].reshape(len(ARCHETYPES), -1).sum(axis=1) for x in launches])
    relative = np.log(times + LITTLE_S) - np.log(times + LITTLE_S).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(profiles[:, TIMES_OF_PROFILE], relative, rtol=1e-5, atol=1e-6)
    place = NUM_RESOURCES + 3
    used = before[:, 3] > 0
    assert used.any()
    shut = before[used, 3] / before[used, place] - 1  # one over a sigmoid, less 1, is the exponential of its logit
    np.testing.assert_allclose(after[used, place], before[used, 3] / (1 + shut * np.exp(-2.0 * entry[used])), rtol=1e-4)
    others = np.delete(np.arange(before.shape[1]), place)
    np.testing.assert_array_equal(after[:, others], before[:, others])


def test_excess_is_what_one_archetype_takes_longer_than_another(encoder, launches):
    pairs = excess_pairs(encoder.layout.excess)
    assert (pairs.slower != pairs.faster).all() and len({*pairs.names}) == encoder.layout.excess
    is_excess = [name.startswith("excess:") for name in encoder.layout.names]
    timed = [with_times(launch, seed) for seed, launch in enumerate(launches)]
    found = encode(encoder, timed)[:, is_excess]
    for launch, row in zip(timed, found, strict=True):
        times = launch.resources[NUM_COUNTED:].reshape(len(ARCHETYPES), len(CAUSES)).sum(axis=1)
        expected = [
            max(0.0, times[a] - times[b] * pairs.scale[b] / pairs.scale[a])
            for a, b in zip(pairs.slower, pairs.faster, strict=True)
        ]
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-12 * times.max())
    assert (found > 0).any() and (found == 0).any()
    parts = contributions(encoder, timed[0])
    whole = parts.tokens.sum(axis=0) + parts.launch
    np.testing.assert_allclose(whole[is_excess], found[0], rtol=1e-9, atol=1e-15)
    assert (parts.tokens[:, is_excess] > 0).any()


def test_vectors_are_not_negative(encoder, launches):
    assert (encode(encoder, launches) >= 0).all()


def test_vector_is_the_naive_sum_over_windows(encoder, launches):
    launch = launches[0]
    layout = encoder.layout
    profile = encoder.profile_norm(torch.from_numpy(launch_profile(launch))[None])
    expected = np.zeros(layout.num_token_coordinates)
    for window in range(launch.num_windows):
        rows = slice(launch.window_start[window], launch.window_start[window + 1])
        features = encoder.feature_norm(torch.from_numpy(launch.token_features[rows])[None])
        with torch.no_grad():
            gates = encoder.encoder(features, profile, torch.tensor([features.shape[1]]))[0].double().numpy()
        units = np.concatenate([launch.token_units[rows], np.ones((len(gates), 1))], axis=1)
        for gate, unit in enumerate(layout.token_unit):
            expected[gate] += launch.window_weight[window] * np.sum(gates[:, gate] * units[:, unit])
    np.testing.assert_allclose(encode(encoder, [launch])[0, -len(expected) :], expected, rtol=SINGLE)


def test_the_vector_of_concatenated_traces_is_the_sum(encoder, launches):
    launch = launches[0]
    half = launch.num_windows // 2
    parts = [
        part_of(launch, np.arange(half), 0.25),
        part_of(launch, np.arange(half, launch.num_windows), 0.75),
    ]
    profiles = np.stack([launch_profile(launch)] * 2)
    pieces = encode(encoder, parts, profiles=profiles)
    np.testing.assert_allclose(pieces.sum(axis=0), encode(encoder, [launch])[0], rtol=SINGLE)


def test_executing_a_window_twice_counts_it_twice(encoder, launches):
    launch = launches[1]
    twice = replace(launch, window_weight=2 * launch.window_weight, resources=2 * launch.resources)
    profile = launch_profile(launch)[None]
    once = encode(encoder, [launch], profiles=profile)
    np.testing.assert_allclose(encode(encoder, [twice], profiles=profile), 2 * once, rtol=SINGLE)


def test_launches_do_not_see_each_other(encoder, launches):
    together = encode(encoder, launches)
    alone = np.concatenate([encode(encoder, [launch]) for launch in launches])
    np.testing.assert_allclose(together, alone, rtol=SINGLE)


def test_groups_bound_memory_without_changing_vectors(encoder, launches, monkeypatch):
    whole = encode(encoder, launches)
    monkeypatch.setattr("perfvec.model.vectors._GROUP_TOKENS", 500)
    np.testing.assert_allclose(encode(encoder, launches), whole, rtol=SINGLE)


def test_contributions_sum_to_the_vector_and_to_the_time(encoder, launches):
    device = np.random.default_rng(0).lognormal(-23, 2, encoder.layout.dim)
    for launch in launches:
        parts = contributions(encoder, launch)
        vector = encode(encoder, [launch])[0]
        assert parts.tokens.shape == (launch.num_tokens, encoder.layout.dim)
        assert (parts.tokens >= 0).all() and (parts.launch >= 0).all()
        np.testing.assert_allclose(parts.tokens.sum(axis=0) + parts.launch, vector, rtol=SINGLE)
        by_token = parts.tokens @ device
        np.testing.assert_allclose(by_token.sum() + parts.launch @ device, vector @ device, rtol=SINGLE)


def test_time_goes_to_the_instructions_that_cause_it(encoder, launches):
    launch = launches[0]
    resources = launch.resources.copy()
    resources[NUM_COUNTED:] = np.tile(np.arange(1.0, len(CAUSES) + 1), len(ARCHETYPES))
    units = launch.row_units.copy()
    column = {name: index for index, name in enumerate(SCHEMA.unit_names)}
    units[:, column["dram_sectors"]] = 0
    units[:, [column["barriers"], column["l2_sectors"], column["l1_sectors"]]] = 0
    units[0, column["l2_sectors"]] = 2
    parts = contributions(encoder, replace(launch, resources=resources, row_units=units))
    is_first = launch.token_row == 0
    at = {cause: RESOURCE_INDEX[f"time:{ARCHETYPES[3]}:{cause}"] for cause in CAUSES}
    # No instruction reaches DRAM by its counts, so those that reach L2 have the time; nobody does that waits.
    for cause in ("l2", "dram"):
        whole = resources[at[cause]]
        assert parts.tokens[is_first, at[cause]].sum() == pytest.approx(whole)
        assert parts.launch[at[cause]] == 0
    for cause in ("barrier", "l1", "dispatch", "launch"):
        assert parts.launch[at[cause]] == resources[at[cause]]
        assert not parts.tokens[:, at[cause]].any()
    for cause in ("issue", "tail"):
        expected = launch.token_weight / launch.token_weight.sum() * resources[at[cause]]
        np.testing.assert_allclose(parts.tokens[:, at[cause]], expected, rtol=1e-12)


def test_a_weight_of_ten_billion_keeps_the_small_window_beside_it(encoder, launches):
    launch = launches[0]
    weight = np.ones(launch.num_windows)
    weight[0] = 1e10
    heavy = replace(launch, window_weight=weight)
    profile = launch_profile(heavy)[None]
    without = replace(heavy, window_weight=np.where(np.arange(launch.num_windows) == 1, 0.0, weight))
    difference = encode(encoder, [heavy], profiles=profile) - encode(encoder, [without], profiles=profile)
    alone = part_of(launch, np.array([1]), 1.0)
    alone = replace(alone, window_weight=np.ones(1))
    expected = encode(encoder, [alone], profiles=profile)[:, -encoder.layout.num_token_coordinates :]
    found = difference[:, -encoder.layout.num_token_coordinates :]
    # Double precision leaves 1e-16 of 1e10 tokens; single precision would lose the window altogether.
    np.testing.assert_allclose(found, expected, atol=1e-3, rtol=1e-3)


def test_predict_is_every_program_on_every_device():
    programs, devices = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0, 1.0], [0.0, 2.0], [1.0, 1.0]])
    assert predict(programs, devices).tolist() == [[12.0, 4.0, 3.0], [34.0, 8.0, 7.0]]


def test_vectors_of_two_models_are_refused():
    with pytest.raises(ModelError, match="no common length"):
        predict(np.ones((2, 3)), np.ones((2, 4)))


def test_nothing_to_encode_is_refused(encoder, launches):
    with pytest.raises(ModelError, match="no launches"):
        encode(encoder, [])
    with pytest.raises(ModelError, match="1 profiles were given for 5 launches"):
        encode(encoder, launches, profiles=np.zeros((1, 3), np.float32))


def test_the_counted_model_has_no_networks(launches):
    encoder = ProgramEncoder(SCHEMA, ModelConfig(dim=NUM_RESOURCES, token_gates=0)).eval()
    np.testing.assert_array_equal(encode(encoder, launches), np.stack([x.resources for x in launches]))
    parts = contributions(encoder, launches[0])
    np.testing.assert_allclose(parts.tokens.sum(axis=0) + parts.launch, launches[0].resources, rtol=1e-12)


def test_normaliser_centres_scales_and_saturates():
    normaliser = Normaliser(2)
    # Mean 2, deviation 1; a constant column.
    normaliser.fit([np.array([[1.0, 5.0]], np.float32), np.array([[3.0, 5.0]], np.float32)])
    out = normaliser(torch.tensor([[2.0, 5.0], [2.5, 5.0], [1e6, 5.0]]))
    expected = 5 * np.tanh([[0.0, 0.0], [0.1, 0.0], [np.inf, 0.0]])
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
