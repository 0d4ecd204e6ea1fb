from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfvec.apply import models, predicting
from perfvec.apply.beliefs import know_devices
from perfvec.apply.devices import find_devices
from perfvec.apply.models import load_model
from perfvec.apply.predicting import encode, predict
from perfvec.apply.tracing import trace
from perfvec.arch.measured import MeasuredTable
from perfvec.errors import DeviceError, FormatError, ModelError
from perfvec.model.uncertainty import assumed_uncertainty
from tests.apply.tiny import measured_table, suites, tiny_model


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    tiny_model().save(path)
    return path


def test_the_prediction_is_the_dot_product(tmp_path: Path, model_path: Path):
    launch = suites(tmp_path)[0].launch
    names = ["nvidia-h200", "intel-hd-530"]
    vector = encode(launch, model=model_path)
    known = know_devices(load_model(model_path), find_devices(names), assumed_uncertainty(), None)
    vectors = np.stack([item.belief.vector for item in known])
    predictions = predict(launch, names, model=model_path, measured=MeasuredTable())
    assert [item.kernel_time_s for item in predictions] == pytest.approx((vectors @ vector).tolist(), rel=1e-12)
    assert [item.device for item in predictions] == names
    assert [item.kind for item in predictions] == ["real", "datasheet"]
    assert (vector >= 0).all()
    assert all(0 < item.low_s < item.kernel_time_s < item.high_s < 1 for item in predictions)
    widths = [item.high_s / item.low_s for item in predictions]
    assert widths[1] > 1.5 * widths[0]  # nobody measured the second device


def test_a_trace_gives_what_its_launch_gives(tmp_path: Path, model_path: Path):
    launch = suites(tmp_path)[0].launch
    traced = trace(launch)
    assert np.array_equal(encode(traced, model=model_path), encode(launch, model=model_path))
    assert predict(traced, ["h200"], model=model_path) == predict(launch, ["h200"], model=model_path)


def test_the_measured_time_stands_beside(tmp_path: Path, model_path: Path):
    entries = suites(tmp_path)
    table = measured_table(entries, ("nvidia-h200",))
    predictions = predict(entries[0].launch, ["nvidia-h200", "amd-mi210"], model=model_path, measured=table)
    assert predictions[0].measured_s == table.times[0].kernel_time_s
    assert predictions[1].measured_s is None


def test_all_devices_by_name_unless_told(tmp_path: Path, model_path: Path):
    predictions = predict(suites(tmp_path)[0].launch, model=model_path)
    names = [item.device for item in predictions]
    assert names == sorted(names)
    assert {"nvidia-h200", "amd-instinct-mi210", "intel-hd-530"} <= set(names)


def test_a_file_is_read_once_and_again_when_it_changes(tmp_path: Path, model_path: Path):
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(model_path.read_bytes())
    first = load_model(copy)
    assert load_model(copy) is first
    tiny_model(("other",)).save(copy)
    assert load_model(copy).families == ("other",)


def test_a_missing_model_says_where_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    launch = suites(tmp_path / "suites")[0].launch
    with pytest.raises(ModelError, match=r"there is no model file at .*absent.*perfvec train --config"):
        predict(launch, model=tmp_path / "absent")
    monkeypatch.setattr(models, "SHIPPED_MODEL", tmp_path / "default.safetensors")
    with pytest.raises(ModelError, match="this installation has no trained model"):
        encode(launch)


def test_a_damaged_model_is_refused(tmp_path: Path):
    (tmp_path / "bad.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(FormatError, match="not a readable safetensors file"):
        load_model(tmp_path / "bad.safetensors")


def test_an_unknown_device_is_found_out_before_the_kernel_is_traced(
    tmp_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(predicting, "trace", lambda launch: pytest.fail("traced"))
    with pytest.raises(DeviceError, match="did you mean"):
        predict(suites(tmp_path)[0].launch, ["nvidia-h20"], model=model_path)
