import numpy as np
import pytest
import torch

from perfvec.errors import ModelError
from perfvec.model.config import ModelConfig
from perfvec.model.devices import MIN_SECONDS_PER_UNIT, DeviceBank, DeviceTable
from perfvec.model.layout import make_layout
from perfvec.resources import NUM_RESOURCES, RESOURCE_INDEX

LAYOUT = make_layout(ModelConfig(), ("l1_sectors", "dram_sectors"))


def bank_of(seconds):
    return DeviceBank(seconds, LAYOUT)


def seconds_of(num_devices=3):
    return np.random.default_rng(0).lognormal(-23, 1, (num_devices, NUM_RESOURCES))


def test_counted_coordinates_start_at_the_datasheet():
    seconds = seconds_of()
    with torch.no_grad():
        vectors = bank_of(seconds)().numpy()
    np.testing.assert_allclose(vectors[:, :NUM_RESOURCES], seconds, rtol=1e-12)


def test_gated_coordinates_start_at_a_share_of_their_price():
    seconds = seconds_of()
    with torch.no_grad():
        vectors = bank_of(seconds)().numpy()
    share = 1 / (LAYOUT.launch_gates + LAYOUT.token_gates)
    # The parameter is kept in single precision.
    np.testing.assert_allclose(vectors[:, NUM_RESOURCES:], seconds[:, LAYOUT.price] * share, rtol=1e-5)


def test_vectors_stay_positive_whatever_the_parameters():
    bank = bank_of(seconds_of())
    with torch.no_grad():
        for parameter in bank.parameters():
            parameter.normal_(0, 3)
        assert (bank() > 0).all() and torch.isfinite(bank()).all()


def test_a_correction_of_a_count_is_a_factor_on_all_its_coordinates():
    bank = bank_of(seconds_of())
    row = RESOURCE_INDEX["dram_sectors"]
    with torch.no_grad():
        before = bank().numpy()
        bank.own_counted[1, row] = np.log(2.0)
        ratio = bank().numpy() / before
    prices = np.concatenate([np.arange(NUM_RESOURCES), LAYOUT.price])
    expected = np.ones_like(ratio)
    expected[1, prices == row] = 2.0
    np.testing.assert_allclose(ratio, expected, rtol=1e-6)


def test_free_units_are_lifted_to_where_they_can_be_corrected():
    seconds = seconds_of(1)
    seconds[0, RESOURCE_INDEX["barriers"]] = 0.0
    for slots, price in ((16, 0.0), (256, 4e-9), (2048, 1e-9), (16384, 0.0)):
        seconds[0, RESOURCE_INDEX[f"issue_per_slot_{slots}"]] = price
    with torch.no_grad():
        vector = bank_of(seconds)().numpy()[0]
    assert vector[RESOURCE_INDEX["barriers"]] == pytest.approx(MIN_SECONDS_PER_UNIT, rel=1e-12)
    # A thousandth of the ladder's largest price.
    assert vector[RESOURCE_INDEX["issue_per_slot_16"]] == pytest.approx(4e-12, rel=1e-12)
    assert vector[RESOURCE_INDEX["issue_per_slot_2048"]] == pytest.approx(1e-9, rel=1e-12)


def test_a_new_device_has_what_all_share_but_nothing_of_its_own():
    seconds = seconds_of()
    bank = bank_of(seconds)
    with torch.no_grad():
        for parameter in bank.parameters():
            parameter.normal_(0, 0.3)
        known, new = bank.without_own().numpy(), bank.from_datasheet(seconds).numpy()
        np.testing.assert_allclose(known, new, rtol=1e-12)
        assert (np.abs(bank().numpy() / new - 1) > 1e-3).any(axis=1).all()
        bank.own_counted.zero_()
        bank.own_learned.zero_()
        np.testing.assert_allclose(bank().numpy(), new, rtol=1e-12)


def test_a_device_twice_as_fast_has_half_the_vector():
    bank = bank_of(seconds_of())
    with torch.no_grad():
        for parameter in bank.parameters():
            parameter.normal_(0, 0.3)
        slow, fast = bank.from_datasheet(np.stack([seconds_of(1)[0], seconds_of(1)[0] / 2])).numpy()
        np.testing.assert_allclose(slow, 2 * fast, rtol=1e-12)


def test_prior_is_the_sum_of_squares_written_out():
    bank = bank_of(seconds_of(2))
    options = {"counted": 0.5, "shared": 1.0, "learned": 2.0, "mixed": 0.1}
    assert bank.prior(**options).item() == 0.0
    with torch.no_grad():
        bank.own_counted[0, 0] = 1.0  # 1 ÷ 0.25 = 4
        bank.own_learned[1, 3] = 2.0  # 4 ÷ 4 = 1
        bank.shared_counted[2] = 3.0  # 9 ÷ 1 = 9
        bank.mix_map[0, 0] = 0.2  # 0.04 ÷ 0.01 = 4
        bank.shared_learned[5] += 4.0  # 16 ÷ (4 x 4) = 1
    assert bank.prior(**options).item() == pytest.approx(0.5 * (4 + 1 + 9 + 4 + 1) / 2, rel=1e-5)


def table(**changes):
    values = {"names": ("a", "b"), "kinds": ("real", "datasheet"), "vectors": np.ones((2, 4))}
    return DeviceTable(**(values | {"seconds_per_unit": seconds_of(2)} | changes))


def test_a_row_is_found_by_name():
    assert table(vectors=np.array([[1.0], [2.0]])).row("b").tolist() == [2.0]
    with pytest.raises(ModelError, match="no device 'c'; it knows a, b"):
        table().row("c")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ("a", "a")}, "repeats a name"),
        ({"kinds": ("real",)}, "do not belong together"),
        ({"vectors": np.full((2, 4), np.nan)}, "not finite"),
        ({"seconds_per_unit": np.ones((2, 3))}, "2 devices need"),
        ({"seconds_per_unit": -seconds_of(2)}, "device 'a' has a value that is negative"),
    ],
)
def test_malformed_tables_are_refused(changes, message):
    with pytest.raises(ModelError, match=message):
        table(**changes)
