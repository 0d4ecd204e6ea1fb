"""Rows of devices that are added and fitted afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.config import ModelConfig, TrainingConfig
from perfvec.model.device_rows import fit_rows, with_rows
from perfvec.model.training import train
from tests.model.synthetic_launches import make_training_set


@pytest.fixture(scope="module")
def dataset():
    return make_training_set(num_launches=30, num_families=6, num_devices=2)


@pytest.fixture(scope="module")
def model(dataset, tmp_path_factory):
    config = TrainingConfig(epochs=2, model=ModelConfig(hidden=16, launch_hidden=16), accelerator="cpu")
    return train(config, dataset, tmp_path_factory.mktemp("run"))


@pytest.fixture
def wider(model, dataset):
    return with_rows(model, ("device0", "copy"), "simulated", np.stack([dataset.seconds_per_unit[0]] * 2))


def test_a_new_row_starts_where_its_datasheet_says(wider, model, dataset):
    assert wider.device_names == (*model.device_names, "copy")
    assert wider.device_kinds[-1] == "simulated"
    np.testing.assert_allclose(wider.devices.vectors[:-1], model.devices.vectors, rtol=1e-6)
    expected = model.bank.from_datasheet(dataset.seconds_per_unit[:1]).numpy()[0]
    np.testing.assert_allclose(wider.devices.row("copy"), expected, rtol=1e-6)


def test_a_device_that_was_never_measured_starts_from_its_simulated_twin(wider, model, dataset):
    seconds = dataset.seconds_per_unit[0]
    assert model.simulated_twin(seconds) is None
    np.testing.assert_array_equal(wider.device_from_datasheet(seconds), wider.devices.row("copy"))
    np.testing.assert_array_equal(wider.datasheet_devices.row("device0"), wider.devices.row("copy"))
    assert wider.simulated_twin(1.01 * seconds) is None


def test_a_row_is_fitted_to_times_and_the_others_stay(wider, dataset):
    programs = wider.encode(dataset.launches)
    truth = wider.devices.row("copy") * np.random.default_rng(0).lognormal(0.0, 0.7, programs.shape[1])
    times = (programs @ truth)[:, None]
    times[::7] = np.nan
    before = _error(programs @ wider.devices.row("copy"), times)
    fitted = fit_rows(wider, ["copy"], programs, times, np.ones_like(times))
    assert _error(programs @ fitted.devices.row("copy"), times) < 0.2 * before
    np.testing.assert_array_equal(fitted.devices.vectors[:-1], wider.devices.vectors[:-1])


def test_shapes_and_names_are_checked(wider, dataset):
    programs = wider.encode(dataset.launches[:3])
    with pytest.raises(ModelError, match="do not belong together"):
        fit_rows(wider, ["copy"], programs, np.ones((2, 1)), np.ones((2, 1)))
    with pytest.raises(ModelError, match=r"no row for \['strange'\]; add it first"):
        fit_rows(wider, ["strange"], programs, np.ones((3, 1)), np.ones((3, 1)))


def _error(predicted, times):
    return float(np.nanmean(np.abs(np.log(predicted[:, None] / times))))
