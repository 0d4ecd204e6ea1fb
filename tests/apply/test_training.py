from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.splits import Holdout, save_holdout
from perfvec.apply.tables import training_table
from perfvec.apply.training import DataConfig, fill_features, holdout_of, load_experiment, run_training
from perfvec.corpus.generator import SUITE as GENERATED_SUITE
from perfvec.errors import ConfigError, ModelError
from perfvec.launch import Launch
from perfvec.model.weights import TrainedModel
from tests.apply.tiny import DEVICES, measured_table, suites

CONFIG = """
data: {{holdout: {folder}/holdout.toml, measured: {folder}/measured, suites: {folder}/suites}}
model: {{encoder: pooled, dim: 860, hidden: 8, launch_hidden: 8}}
optimiser: {{epochs: 1, learning_rate: 1e-3, validation_fraction: 0, accelerator: cpu}}
out_dir: {folder}/out
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    entries = suites(folder / "suites")
    (folder / "measured").mkdir()
    measured_table(entries).save(folder / "measured" / "tiny.h5")
    save_holdout(Holdout(name="tiny", families=(("one", ("scale",)),)), folder / "holdout.toml")
    (folder / "config.yaml").write_text(CONFIG.format(folder=folder))
    return folder


def test_training_writes_a_model_that_kept_to_the_holdout_and_an_account(folder: Path):
    config = load_experiment(folder / "config.yaml")
    result = run_training(config, cache=FeatureCache.open(folder), num_processes=0)
    model = TrainedModel.load(result.weights_path)
    assert model.families == ("add", "gather", "power")
    assert set(model.device_names) == set(DEVICES)
    assert result.num_launches == 6
    assert {row.split for row in result.rows} == {"unseen-kernel"}
    account = json.loads(result.result_path.read_text())
    assert account["num_training_launches"] == 6
    assert account["families"] == ["add", "gather", "power"]
    assert account["config"]["training"]["learning_rate"] == 1e-3
    assert {row["predictor"] for row in account["rows"]} >= {"perfvec", "constant"}
    assert result.weights_path.parent == folder / "out"


def test_devices_of_a_space_train_too_and_measured_ones_judge(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / name))
    text = (folder / "config.yaml").read_text()
    text = text.replace("data: {", "data: {simulated: gpu-2010-today, simulated_devices: 3, ")
    (tmp_path / "config.yaml").write_text(text)
    config = load_experiment(tmp_path / "config.yaml", out_dir=tmp_path / "out")
    result = run_training(config, num_processes=0)
    space = SimulatedDevices(space="gpu-2010-today")
    chosen = [item.device.name for item in (*space.part("training", 3), *space.part("shipped"))]
    model = TrainedModel.load(result.weights_path)
    assert model.device_names == (*sorted(DEVICES), *chosen)
    assert model.devices.kinds == ("real",) * 2 + ("simulated",) * len(chosen)
    assert {row.device for row in result.rows} == set(DEVICES)
    assert (result.device_names, result.num_simulated) == (tuple(sorted(DEVICES)), len(chosen))
    assert ("simulated devices", str(len(chosen))) in training_table(result).rows
    account = json.loads(result.result_path.read_text())
    assert account["devices"] == sorted(DEVICES) and account["simulated_devices"] == chosen


def test_what_is_left_out_keeps_its_default(tmp_path: Path):
    place = tmp_path / "mine"
    place.mkdir()
    (place / "config.yaml").write_text("")
    config = load_experiment(place / "config.yaml")
    assert config.out_dir == Path("runs/mine")
    assert config.training.model.dim == 1536
    assert config.data.holdout == "unseen-kernel"
    assert holdout_of(config.data).name == "unseen-kernel"
    (place / "config.yaml").write_text("data: {holdout: none}")
    assert holdout_of(load_experiment(place / "config.yaml", out_dir="there").data).families == ()
    assert load_experiment(place / "config.yaml", out_dir="there").out_dir == Path("there")


def test_the_shipped_configuration_can_be_read():
    path = Path(__file__).parents[2] / "experiments" / "foundation" / "config.yaml"
    assert holdout_of(load_experiment(path).data).name == "unseen-kernel"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: {}", r"has \['models'\]; allowed are the keys data, model, optimiser, out_dir"),
        ("[1]", "has list; allowed are the keys"),
        ("data: 3", "data is 3; it must be a mapping"),
        ("data: {device: x}", 'data: can not match "device"'),
        ("optimiser: {epoch: 3}", "unknown settings: epoch"),
        ("optimiser: {model: {}}", "optimiser has the key model"),
        ("model: {dim: 0}", "dim is 0; it must be 1 or more"),
        ("model: {dim: [", "cannot read configuration"),
    ],
)
def test_a_malformed_configuration_is_refused(tmp_path: Path, text: str, message: str):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_experiment(tmp_path / "config.yaml")


def test_a_holdout_that_leaves_nothing_is_refused(folder: Path, tmp_path: Path):
    save_holdout(Holdout(name="all", suites=("one", "two")), tmp_path / "all.toml")
    text = (folder / "config.yaml").read_text().replace(f"{folder}/holdout.toml", f"{tmp_path}/all.toml")
    (tmp_path / "config.yaml").write_text(text)
    config = load_experiment(tmp_path / "config.yaml", out_dir=tmp_path)
    with pytest.raises(ModelError, match="holdout 'all' leaves none of the 8 launches to train on"):
        run_training(config, cache=FeatureCache.open(folder), num_processes=0)


def test_generated_launches_are_filled_last_and_timed_on_some_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entries = suites(tmp_path / "suites", suites={"one": ["scale"]}, sizes=(1024, 4096))
    generated = replace(entries[0], suite=GENERATED_SUITE)
    asked: list[tuple[int, list[str]]] = []

    def fill(cache: FeatureCache, named: list[tuple[str, Launch]], **_: object) -> dict[str, str]:
        asked.append((cache.some_simulated, [launch.digest for _, launch in named]))
        return {launch.digest: "no" for _, launch in named}

    monkeypatch.setattr("perfvec.apply.training.fill", fill)
    cache = FeatureCache.open(tmp_path, simulated=SimulatedDevices(space="gpu-2010-today"))
    failures = fill_features(DataConfig(devices_per_generated=7), cache, [generated, entries[1]])
    assert asked == [(0, [entries[1].launch.digest]), (7, [generated.launch.digest])]
    assert set(failures) == {entry.launch.digest for entry in (generated, entries[1])}
