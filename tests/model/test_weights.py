import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from perfvec.errors import FormatError, ModelError
from perfvec.model.config import ModelConfig, TrainingConfig
from perfvec.model.posterior import Measurements, Misfit, posterior, table_prior
from perfvec.model.training import train
from perfvec.model.vectors import predict
from perfvec.model.weights import TrainedModel
from tests.model.synthetic_launches import make_training_set
from tests.naive import dense


@pytest.fixture(scope="module")
def dataset():
    return make_training_set(num_launches=8, num_families=4, num_devices=2)


# Logarithms of devices' prices are around 1 and below, with 11 bits.
HALF_PRECISION = 2e-3


@pytest.fixture(scope="module")
def model(dataset, tmp_path_factory):
    config = TrainingConfig(epochs=2, model=ModelConfig(hidden=16, launch_hidden=16), accelerator="cpu")
    return train(config, dataset, tmp_path_factory.mktemp("run"))


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    return path


def test_a_round_trip_rounds_devices_once(model, path, dataset):
    loaded = TrainedModel.load(path)
    loaded.save(path)
    again = TrainedModel.load(path)
    programs = model.encode(dataset.launches)
    np.testing.assert_array_equal(loaded.encode(dataset.launches), programs)
    np.testing.assert_allclose(
        programs @ loaded.devices.vectors.T, programs @ model.devices.vectors.T, rtol=HALF_PRECISION
    )
    np.testing.assert_array_equal(again.devices.vectors, loaded.devices.vectors)
    seconds = dataset.seconds_per_unit[0]
    np.testing.assert_allclose(
        loaded.device_from_datasheet(seconds), model.device_from_datasheet(seconds), rtol=4 * HALF_PRECISION
    )
    np.testing.assert_allclose(loaded.seconds_per_unit, dataset.seconds_per_unit, rtol=1e-7)


def test_where_it_comes_from_is_kept(model, path):
    loaded = TrainedModel.load(path)
    for name in (
        "schema",
        "config",
        "device_names",
        "device_kinds",
        "families",
        "validation_families",
        "suites",
        "code_version",
    ):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.devices.kinds == ("real", "real")


def test_only_real_devices_show_how_far_a_datasheet_is_off(model, dataset):
    seconds = dataset.seconds_per_unit[0]
    simulated = replace(model, device_kinds=("real", "simulated"))
    assert (simulated.real_devices(), model.real_devices(but="device0")) == ([0], [1])
    prior = simulated.device_prior(seconds, common=0.5, own=0.5)
    alone = table_prior(
        model.device_from_datasheet(seconds),
        model.devices.vectors[:1],
        model.datasheet_devices.vectors[:1],
        common=0.5,
        own=0.5,
    )
    np.testing.assert_array_equal(dense(prior.covariance), dense(alone.covariance))
    np.testing.assert_array_equal(prior.log_mean, alone.log_mean)


def test_attribution_of_the_model_is_its_prediction(model, dataset):
    launch = dataset.launches[0]
    parts = model.contributions(launch)
    device = model.devices.row("device1")
    time = predict(model.encode([launch]), device[None])[0, 0]
    # Gates are single precision.
    assert parts.tokens.sum(axis=0) @ device + parts.launch @ device == pytest.approx(time, rel=1e-6)


def test_a_launch_of_another_schema_is_refused(model, dataset):
    launch = dataset.launches[0]
    other = replace(launch, schema=replace(launch.schema, features_version=9), name="saxpy")
    for use in (lambda: model.encode([other]), lambda: model.contributions(other)):
        with pytest.raises(ModelError, match="saxpy has features_version 9, the model expects 1"):
            use()


def test_measuring_a_device_makes_it_predictable(model, dataset):
    # Half of the launches calibrate the first device as if it were new; the model's own error is the noise.
    belief = model.device_prior(dataset.seconds_per_unit[0], common=0.5, own=0.5)
    programs, times = model.encode(dataset.launches), dataset.times[:, 0]
    misfit = Misfit(launch=0.05, kernel=0.0, noise=0.01)
    half = Measurements(
        programs=programs[::2],
        times=times[::2],
        deviation=np.zeros(len(times[::2])),
        kernels=tuple(map(str, range(len(times[::2])))),
    )
    known = posterior(belief, half, misfit)
    before = np.abs(programs[1::2] @ belief.vector / times[1::2] - 1)
    after = np.abs(programs[1::2] @ known.vector / times[1::2] - 1)
    assert np.median(after) < np.median(before)


def test_devices_without_what_is_their_own(model, dataset):
    table = model.datasheet_devices
    assert table.kinds == ("datasheet", "datasheet")
    # Equal up to the datasheet's logarithm.
    np.testing.assert_allclose(
        table.row("device1"), model.device_from_datasheet(dataset.seconds_per_unit[1]), rtol=1e-12
    )


def test_a_datasheet_of_the_wrong_length_is_refused(model):
    with pytest.raises(ModelError, match="seconds_per_unit has shape"):
        model.device_from_datasheet(np.ones(3))


def rewrite(path, *, metadata=None, drop=(), **tensors):
    """Write the file again with some metadata or tensors changed."""
    with safe_open(path, framework="pt") as file:
        kept = {name: file.get_tensor(name) for name in file.keys() if name not in drop}  # noqa: SIM118
        values = file.metadata()
    save_file(kept | tensors, path, {k: v for k, v in (values | (metadata or {})).items() if v is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metadata": {"format": "perfvec-trace"}}, "holds 'perfvec-trace', not 'perfvec-model'"),
        ({"metadata": {"format": None}}, "holds None"),
        ({"metadata": {"format_version": "1"}}, "format version 1; this release reads 3. Upgrade"),
        ({"metadata": {"config": "{"}}, "is damaged"),
        ({"metadata": {"config": json.dumps({"epochs": 0})}}, "is damaged: training setting epochs"),
        ({"metadata": {"schema": json.dumps({"features_version": 1})}}, "is damaged"),
        ({"metadata": {"device_names": json.dumps(["a"])}}, "is damaged"),
        ({"metadata": {"families": None}}, "is damaged"),
        ({"metadata": {"device_kinds": None}}, "is damaged"),
        ({"metadata": {"device_kinds": json.dumps(["real"])}}, "is damaged: device_kinds"),
        ({"metadata": {"device_kinds": json.dumps(["real", "odd"])}}, "is damaged: device_kinds"),
        ({"drop": ("bank.own_learned",)}, "is damaged"),
        ({"seconds_per_unit": torch.ones(2, 3)}, "is damaged"),
        ({"drop": ("seconds_per_unit",)}, "is damaged"),
    ],
)
def test_damaged_and_foreign_files_are_refused(path, changes, message):
    rewrite(path, **changes)
    with pytest.raises(FormatError, match=message):
        TrainedModel.load(path)


def test_what_is_no_safetensors_file_is_refused(tmp_path, path):
    with pytest.raises(FormatError, match="does not exist"):
        TrainedModel.load(tmp_path / "nowhere")
    text = tmp_path / "text.safetensors"
    text.write_text("not a model", encoding="utf-8")
    with pytest.raises(FormatError, match="not a readable safetensors file"):
        TrainedModel.load(text)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(FormatError, match="not a readable safetensors file"):
        TrainedModel.load(path)


def test_saving_into_a_missing_folder_is_refused(model, tmp_path):
    with pytest.raises(FormatError, match="folder"):
        model.save(tmp_path / "missing" / "model.safetensors")
