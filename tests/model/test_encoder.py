import pytest
import torch

from perfvec.errors import ConfigError
from perfvec.model.encoder import ENCODERS, make_encoder, rotate_by_place

SIZES = {"num_features": 5, "num_profile": 3, "num_gates": 7, "hidden": 16, "layers": 2, "dropout": 0.1}


@pytest.fixture(params=sorted(ENCODERS))
def encoder(request):
    torch.manual_seed(0)
    return make_encoder(request.param, **SIZES).eval()


def windows(num_windows=4, length=40):
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(num_windows, length, 5, generator=generator)
    profile = torch.randn(num_windows, 3, generator=generator)
    return features, profile, torch.full((num_windows,), length)


def test_gates_have_the_right_shape_and_lie_between_0_and_1(encoder):
    features, profile, lengths = windows()
    gates = encoder(100 * features, 100 * profile, lengths)
    assert gates.shape == (4, 40, 7) and gates.dtype == torch.float32
    assert (gates >= 0).all() and (gates <= 1).all()


def test_an_instruction_does_not_see_later_ones(encoder):
    features, profile, lengths = windows()
    changed = features.clone()
    changed[:, 25:] += 1.0
    before, after = encoder(features, profile, lengths), encoder(changed, profile, lengths)
    torch.testing.assert_close(before[:, :25], after[:, :25])
    assert (before[:, 25:] != after[:, 25:]).any(dim=-1).all()


def test_padding_changes_nothing(encoder):
    features, profile, lengths = windows()
    padded = torch.cat([features, torch.zeros(4, 24, 5)], dim=1)
    torch.testing.assert_close(encoder(padded, profile, lengths)[:, :40], encoder(features, profile, lengths))


def test_windows_do_not_see_each_other(encoder):
    features, profile, lengths = windows()
    torch.testing.assert_close(
        encoder(features[1:2], profile[1:2], lengths[1:2]), encoder(features, profile, lengths)[1:2]
    )


def test_the_profile_matters(encoder):
    features, profile, lengths = windows()
    assert not torch.allclose(encoder(features, profile, lengths), encoder(features, profile + 1.0, lengths))


@pytest.mark.parametrize(
    ("name", "sees_history"), [("conv", True), ("lstm", True), ("transformer", True), ("pooled", False)]
)
def test_only_sequence_encoders_see_earlier_instructions(name, sees_history):
    torch.manual_seed(0)
    encoder = make_encoder(name, **SIZES).eval()
    features, profile, lengths = windows()
    changed = features.clone()
    changed[:, 20] += 1.0
    # 13 instructions on: within the reach of two layers of the convolution, 3 + 3 x 4 = 15.
    same = torch.allclose(encoder(features, profile, lengths)[:, 33], encoder(changed, profile, lengths)[:, 33])
    assert same != sees_history


def test_an_unknown_encoder_is_refused_with_the_names_there_are():
    with pytest.raises(ConfigError, match=r"no encoder 'rnn'; choose one of conv, lstm, pooled, transformer"):
        make_encoder("rnn", **SIZES)


def test_rotary_products_depend_on_the_distance_of_places_alone():
    generator = torch.Generator().manual_seed(2)
    query, key = torch.randn(2, 1, 1, 1, 16, generator=generator).expand(-1, -1, -1, 30, -1)
    products = (rotate_by_place(query) @ rotate_by_place(key).mT)[0, 0]
    for distance in (0, 1, 7, -3):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert len(torch.unique(products[0].round(decimals=3))) > 20


def test_a_transformer_whose_width_gives_no_whole_heads_is_refused():
    with pytest.raises(ConfigError, match=r"hidden is 20; .* multiple of 16"):
        make_encoder("transformer", **{**SIZES, "hidden": 20})
