import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from perfvec import metrics
from perfvec.errors import ConfigError, ModelError
from perfvec.model.baselines import ConstantBaseline, baseline_input
from perfvec.model.config import ModelConfig, TrainingConfig
from perfvec.model.training import BatchStream, LaunchData, train
from perfvec.model.training_set import split_families
from perfvec.model.vectors import predict
from perfvec.model.weights import TrainedModel
from perfvec.resources import NUM_RESOURCES
from tests.model.synthetic_launches import make_training_set

SMALL = TrainingConfig(
    model=ModelConfig(encoder="pooled", hidden=16, launch_hidden=16, dropout=0.0),
    epochs=4,
    batch_launches=8,
    validation_fraction=0.4,
    accelerator="cpu",
)


@pytest.fixture(scope="module")
def dataset():
    return make_training_set(num_launches=24, num_families=8, num_devices=3, seed=5)


def times_of(model, launches):
    return predict(model.encode(launches), model.devices.vectors)


@pytest.mark.parametrize("encoder", ["conv", "lstm", "pooled", "transformer"])
def test_four_samples_are_overfitted(encoder, tmp_path):
    four = make_training_set(num_launches=4, num_families=4, num_devices=3, noise=0.0, seed=7)
    config = replace(
        SMALL,
        model=replace(SMALL.model, encoder=encoder),
        epochs=120,
        batch_launches=4,
        learning_rate=1e-2,
        device_learning_rate=2e-1,
        prior_weight=0.0,
        datasheet_weight=0.0,
        profile_noise=0.0,
        validation_fraction=0.0,
    )
    model = train(config, four, tmp_path)
    assert metrics.mape(times_of(model, four.launches), four.times) < 0.02


def test_training_beats_the_constant_on_unseen_families(tmp_path):
    whole = make_training_set(num_launches=80, num_families=20, num_devices=3, seed=6)
    is_test = np.array([family in ("kernel3", "kernel11", "kernel17") for family in whole.families])
    train_set, test_set = whole.subset(np.flatnonzero(~is_test)), whole.subset(np.flatnonzero(is_test))
    model = train(replace(SMALL, epochs=25), train_set, tmp_path)
    constant = ConstantBaseline()
    constant.fit(baseline_input(train_set.launches, train_set.families), train_set.times)
    baseline = constant.predict(baseline_input(test_set.launches, test_set.families))
    error = metrics.median_ape(times_of(model, test_set.launches), test_set.times)
    assert error < 0.5 * metrics.median_ape(baseline, test_set.times)
    assert not set(model.validation_families) & set(model.families)
    assert not {"kernel3", "kernel11", "kernel17"} & {*model.families, *model.validation_families}
    # A device known by its datasheet alone is predicted too, if not as well.
    new = model.device_from_datasheet(whole.seconds_per_unit[0])
    assert new.shape == (SMALL.model.dim,) and (new > 0).all()


def test_the_same_seed_trains_the_same_model_and_leaves_the_callers_chance_alone(dataset, tmp_path):
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    first = train(SMALL, dataset, tmp_path / "a")
    assert torch.equal(torch.rand(3), expected)
    second = train(SMALL, dataset, tmp_path / "b")
    np.testing.assert_array_equal(times_of(first, dataset.launches), times_of(second, dataset.launches))
    other = train(replace(SMALL, seed=1), dataset, tmp_path / "c")
    assert not np.allclose(times_of(first, dataset.launches), times_of(other, dataset.launches))


def test_training_that_was_broken_off_goes_on_as_it_would_have(dataset, tmp_path):
    config = replace(SMALL, model=replace(SMALL.model, dropout=0.2), validation_fraction=0.0)
    whole = train(config, dataset, tmp_path / "whole")
    calls = 0
    original = BatchStream.__iter__

    def stop_in_the_third_pass(self):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("power cut")
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchStream, "__iter__", stop_in_the_third_pass)
        with pytest.raises(RuntimeError, match="power cut"):
            train(config, dataset, tmp_path / "resumed")
    resumed = train(config, dataset, tmp_path / "resumed")
    np.testing.assert_array_equal(times_of(resumed, dataset.launches), times_of(whole, dataset.launches))


def test_a_finished_training_called_again_gives_the_same_model(dataset, tmp_path):
    first, again = train(SMALL, dataset, tmp_path), train(SMALL, dataset, tmp_path)
    np.testing.assert_array_equal(times_of(first, dataset.launches), times_of(again, dataset.launches))


def test_a_folder_of_another_training_is_refused(dataset, tmp_path):
    train(replace(SMALL, epochs=1), dataset, tmp_path)
    with pytest.raises(ConfigError, match="another configuration or data set"):
        train(replace(SMALL, epochs=2), dataset, tmp_path)
    with pytest.raises(ConfigError, match="another configuration or data set"):
        train(replace(SMALL, epochs=1), dataset.subset(np.arange(20)), tmp_path)
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="is damaged"):
        train(replace(SMALL, epochs=1), dataset, tmp_path)


class _RunsCode:
    def __reduce__(self):
        return exec, ("raise AssertionError('a checkpoint ran code')",)


@pytest.mark.parametrize("name", ["last.ckpt", "best.ckpt"])
@pytest.mark.parametrize(
    "content", [b"", b"no checkpoint", pickle.dumps(_RunsCode(), protocol=2)], ids=["empty", "text", "code"]
)
def test_a_damaged_checkpoint_is_refused_and_runs_no_code(name, content, dataset, tmp_path):
    train(replace(SMALL, epochs=1), dataset, tmp_path)
    (tmp_path / "checkpoints" / name).write_bytes(content)
    with pytest.raises(ConfigError, match=rf"{name} is not a whole checkpoint .* train again"):
        train(replace(SMALL, epochs=1), dataset, tmp_path)


def test_logs_and_checkpoints_are_written(dataset, tmp_path):
    train(replace(SMALL, epochs=1), dataset, tmp_path / "deep" / "folder")
    folder = tmp_path / "deep" / "folder"
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"best.ckpt", "last.ckpt"}
    logs = {path.name for path in (folder / "logs").iterdir()}
    assert any(name.startswith("events.out.tfevents") for name in logs)
    assert {"projector_config.pbtxt", "program_vectors.tsv", "device_vectors.metadata.tsv"} <= logs
    assert json.loads((folder / "run.json").read_text())["config"]["epochs"] == 1


@pytest.mark.parametrize("encoder", ["conv", "lstm"])
def test_bfloat16_trains(encoder, dataset, tmp_path):
    config = replace(SMALL, model=replace(SMALL.model, encoder=encoder), precision="bf16-mixed")
    half, whole = (
        train(config, dataset, tmp_path / "half"),
        train(replace(config, precision="32-true"), dataset, tmp_path),
    )
    # Three digits in the networks; the sums and the device vectors are in double precision all the same.
    ratio = times_of(half, dataset.launches) / times_of(whole, dataset.launches)
    np.testing.assert_allclose(ratio, 1, atol=0.1)


def test_missing_measurements_do_not_enter(dataset, tmp_path):
    times = dataset.times.copy()
    times[::2, 0] = np.nan
    spread = np.where(np.isnan(times), np.nan, dataset.spread)
    model = train(SMALL, replace(dataset, times=times, spread=spread), tmp_path)
    assert np.isfinite(times_of(model, dataset.launches)).all()


def test_two_passes_differ_and_a_pass_repeats(dataset):
    weights = np.ones_like(dataset.times)

    def order(epoch, *, is_shuffled=True):
        stream = BatchStream(dataset, SMALL, weights, is_shuffled=is_shuffled, device=torch.device("cpu"))
        stream.epoch = epoch
        batches = list(stream)
        assert len(batches) == len(stream) == 3
        return np.concatenate([batch.log_times_NM.numpy() for batch in batches])

    np.testing.assert_array_equal(order(0), order(0))
    assert not np.array_equal(order(0), order(1))
    np.testing.assert_array_equal(order(3, is_shuffled=False), np.log(dataset.times))
    np.testing.assert_array_equal(np.sort(order(0), axis=0), np.sort(np.log(dataset.times), axis=0))


def test_families_are_never_split():
    families = tuple(f"kernel{i % 10}" for i in range(50))
    train_rows, validation_rows = split_families(families, fraction=0.3, seed=0)
    assert sorted([*train_rows, *validation_rows]) == list(range(50))
    held_out = {families[row] for row in validation_rows}
    assert len(held_out) == 3 and not held_out & {families[row] for row in train_rows}
    assert split_families(families, fraction=0.3, seed=0)[1].tolist() == validation_rows.tolist()


@pytest.mark.parametrize(
    ("families", "fraction", "expected"),
    [("abcdef", 0.0, 0), ("aaa", 0.5, 0), ("abcdef", 0.4, 0), ("abcdef", 0.5, 3), ("abcd", 1.0, 3)],
)
def test_split_leaves_something_to_train_on(families, fraction, expected):
    train_rows, validation_rows = split_families(tuple(families), fraction=fraction, seed=0)
    assert len(train_rows) >= 1 and len({families[row] for row in validation_rows}) == expected


def test_one_family_trains_without_validation(dataset, tmp_path):
    one = replace(dataset, families=("only",) * 24)
    assert not LaunchData(one, SMALL).has_validation
    assert train(replace(SMALL, epochs=1), one, tmp_path).validation_families == ()


def test_weights_by_hand(dataset):
    three = dataset.subset(np.array([0, 8, 1]))  # two launches of kernel0, one of kernel1
    times = three.times.copy()
    times[0, 1] = np.nan
    spread = np.zeros_like(times)
    spread[2] = 0.1
    weights = replace(three, times=times, spread=spread).weights(typical_spread=0.1, family_balance=1.0)
    # Kernel0's launches count 1/2 each; kernel1's counts 1, halved by its spread. Eight measurements, mean 1/2.
    np.testing.assert_allclose(weights, [[1, 0, 1], [1, 1, 1], [1, 1, 1]], rtol=1e-12)


def with_simulated(dataset, num_devices=5):
    """The training set with times of simulated devices, of which the first launch does not fit on the first."""
    other = make_training_set(num_launches=len(dataset.launches), num_families=8, num_devices=num_devices, seed=9)
    times = other.times.copy()
    times[0, 0] = np.nan
    names = tuple(f"space/{number}" for number in range(num_devices))
    return dataset.with_simulated(times, names, other.seconds_per_unit)


def test_simulated_devices_stand_behind_the_real_ones(dataset):
    both = with_simulated(dataset)
    assert both.kinds == ("real",) * 3 + ("simulated",) * 5
    assert both.device_names[2:4] == ("device2", "space/0")
    np.testing.assert_array_equal(both.times[:, :3], dataset.times)
    np.testing.assert_array_equal(both.spread[:, :3], dataset.spread)
    np.testing.assert_array_equal(both.seconds_per_unit[:3], dataset.seconds_per_unit)
    # The timing model repeats itself; where a launch does not fit there is no spread either.
    assert np.isnan(both.times[0, 3]) and np.isnan(both.spread[0, 3])
    assert np.nansum(both.spread[:, 3:]) == 0 and np.isnan(both.spread[:, 3:]).sum() == 1
    assert both.subset(np.array([3, 1])).kinds == both.kinds
    assert both.fingerprint != replace(both, num_simulated=4).fingerprint
    more = both.with_simulated(both.times[:, 4:5], ("space/9",), both.seconds_per_unit[4:5])
    assert more.num_simulated == 6 and more.kinds[-1] == "simulated"


@pytest.mark.parametrize("share", [0.0, 0.5, 2.0])
def test_simulated_devices_together_count_a_share_of_the_real_ones(dataset, share):
    alone = dataset.weights(typical_spread=0.1, family_balance=0.5)
    both = with_simulated(dataset)
    weights = both.weights(typical_spread=0.1, family_balance=0.5, simulated_weight=share)
    np.testing.assert_allclose(weights[:, :3], alone, rtol=1e-12)
    assert weights[:, 3:].sum() == pytest.approx(share * alone.sum())
    assert weights[0, 3] == 0
    if share:
        assert (weights[1:, 3:] > 0).all()


def test_without_measured_times_simulated_ones_count_one_each(dataset):
    both = with_simulated(dataset)
    times = both.times.copy()
    times[:, :3] = np.nan
    only = replace(both, times=times, spread=np.where(np.isnan(times), np.nan, 0.0))
    weights = only.weights(typical_spread=0.1, family_balance=0.5)
    assert weights[:, :3].sum() == 0
    assert weights[~np.isnan(times)].mean() == pytest.approx(1)


def test_kinds_are_trained_saved_and_read(dataset, tmp_path):
    both = with_simulated(dataset)
    config = replace(SMALL, epochs=20)
    model = train(config, both, tmp_path)
    assert model.device_kinds == both.kinds
    model.save(tmp_path / "model.safetensors")
    loaded = TrainedModel.load(tmp_path / "model.safetensors")
    assert loaded.devices.kinds == both.kinds
    np.testing.assert_allclose(loaded.devices.vectors, model.devices.vectors, rtol=5e-3)  # kept in half precision
    # Simulated devices are learned, too, unless they count nothing.
    ignoring = train(replace(config, simulated_weight=0.0), both, tmp_path / "ignoring")
    errors = [metrics.median_ape(times_of(one, both.launches)[1:, 3:], both.times[1:, 3:]) for one in (model, ignoring)]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"families": ("a",)}, "do not belong together"),
        ({"times": np.ones((2, 2))}, "need"),
        ({"times": np.full((24, 3), np.nan)}, "no measured time at all"),
        ({"times": np.zeros((24, 3))}, "positive and finite"),
        ({"spread": np.full((24, 3), np.nan)}, "spread of a measured time"),
        ({"device_names": ("a", "b")}, "need"),
        ({"seconds_per_unit": -np.ones((3, NUM_RESOURCES))}, "negative or not finite"),
        ({"launches": ()}, "no launches"),
    ],
)
def test_malformed_training_sets_are_refused(dataset, changes, message):
    with pytest.raises(ModelError, match=message):
        replace(dataset, **changes)
