from dataclasses import replace

import numpy as np
import pytest
import torch

from perfvec.errors import ConfigError
from perfvec.model.config import ModelConfig
from perfvec.model.devices import DeviceBank
from perfvec.model.excess import excess_pairs
from perfvec.model.landmarks import Landmarks
from perfvec.model.program_encoder import ProgramEncoder
from perfvec.model.vectors import contributions, encode
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, NUM_RESOURCES, RESOURCE_INDEX
from tests.model.synthetic_launches import SCHEMA, make_training_set

COUNT = 4
CONFIG = ModelConfig(encoder="pooled", hidden=16, dim=1540, landmarks=COUNT)


@pytest.fixture(scope="module")
def launches():
    """Launches with times on archetypes."""
    rng = np.random.default_rng(0)
    found = []
    for launch in make_training_set(num_launches=12, num_families=12, num_devices=1, seed=2).launches:
        resources = launch.resources.copy()
        resources[NUM_COUNTED:] = rng.lognormal(-12.0, 2.0, NUM_RESOURCES - NUM_COUNTED)
        found.append(replace(launch, resources=resources))
    return found


@pytest.fixture(scope="module")
def encoder(launches):
    torch.manual_seed(0)
    encoder = ProgramEncoder(SCHEMA, CONFIG).eval()
    encoder.fit_inputs(launches, seed=0)
    return encoder


def times_of(launches):
    timed = np.stack([launch.resources[NUM_COUNTED:] for launch in launches])
    return timed.reshape(len(launches), len(ARCHETYPES), len(CAUSES)).sum(axis=2)


def test_a_launch_has_its_typical_time_divided_among_landmarks(encoder, launches):
    vectors = encode(encoder, launches)
    found = vectors[:, [name.startswith("landmark:") for name in encoder.layout.names]]
    assert found.shape == (12, COUNT) and (found > 0).all()
    scale = excess_pairs(0).scale
    typical = np.exp(np.log(times_of(launches) * scale).mean(axis=1)) / scale[0]
    np.testing.assert_allclose(found.sum(axis=1), typical, rtol=1e-6)
    assert (found.max(axis=1) > 0.5 * typical).mean() > 0.5  # most are near to one of them


def test_a_launch_at_a_landmark_has_it_most_and_a_scaled_launch_has_the_same_shares(encoder, launches):
    assert encoder.landmarks is not None
    times = torch.from_numpy(times_of(launches)[:COUNT])
    seconds = encoder.landmarks(encoder.landmarks.centre_LA, times)
    assert seconds.argmax(dim=1).tolist() == list(range(COUNT))
    twice = encoder.landmarks(encoder.landmarks.centre_LA, 2 * times)
    torch.testing.assert_close(twice, 2 * seconds)


def test_instructions_share_a_landmark(encoder, launches):
    parts = contributions(encoder, launches[0])
    is_landmark = [name.startswith("landmark:") for name in encoder.layout.names]
    whole = (parts.tokens.sum(axis=0) + parts.launch)[is_landmark]
    np.testing.assert_allclose(whole, encode(encoder, launches[:1])[0, is_landmark], rtol=1e-6)
    assert (parts.tokens[:, is_landmark] > 0).any()


def test_a_landmark_costs_a_share_of_what_the_median_launch_does(encoder):
    seconds = np.random.default_rng(1).lognormal(-1, 1, (2, NUM_RESOURCES))
    layout = encoder.layout
    with torch.no_grad():
        vectors = DeviceBank(seconds, layout)().numpy()
    scale = excess_pairs(0).scale
    columns = [RESOURCE_INDEX[f"time:{name}:dram"] for name in ARCHETYPES]
    median = seconds[:, columns] @ (1 / scale)  # what the device takes where each archetype takes its median
    share = 1 / (layout.launch_gates + layout.token_gates)
    first = layout.names.index("landmark:0")
    for place in range(first, first + COUNT):
        np.testing.assert_allclose(vectors[:, place], share * median * scale[0], rtol=1e-5)


def test_fewer_launches_than_landmarks_are_refused():
    landmarks = Landmarks(COUNT)
    same = torch.zeros(9, len(ARCHETYPES))
    with pytest.raises(ConfigError, match="landmarks is 4, but only 1 launches to train on differ"):
        landmarks.fit(same, seed=0)


def test_landmarks_are_kept_with_the_weights(encoder, launches):
    again = ProgramEncoder(SCHEMA, CONFIG).eval()
    again.load_state_dict(encoder.state_dict())
    np.testing.assert_array_equal(encode(again, launches), encode(encoder, launches))
