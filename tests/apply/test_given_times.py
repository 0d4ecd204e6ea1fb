from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.beliefs import know_devices
from perfvec.apply.calibration_set import load_set
from perfvec.apply.devices import devices, find_devices
from perfvec.apply.given_times import calibrate_from_csv
from perfvec.apply.models import load_model
from perfvec.apply.user_table import load_user_rows
from perfvec.arch.measured import MeasuredTable
from perfvec.errors import ConfigError, DeviceError
from tests.apply.calibrated import model_path as model_path
from tests.apply.calibrated import user_folder as user_folder

DEVICE = "nvidia-rtx-3090"
pytestmark = pytest.mark.usefixtures("user_folder")


def true_times(model_path: Path, factor: float) -> np.ndarray:
    """Times of a device that is so many times as slow as its data sheet says."""
    calibration = load_set(model_path)
    known = know_devices(load_model(model_path), find_devices([DEVICE]), calibration.uncertainty, calibration)[0]
    return factor * calibration.programs @ known.belief.vector


def write_csv(folder: Path, lines: list[str], head: str = "kernel,launch,seconds") -> Path:
    path = folder / "times.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def lines_of(times: np.ndarray, rows: range = range(12)) -> list[str]:
    return [f"kernel{row // 2},-/N={256 << row},{times[row]:.6e}" for row in rows]


def test_times_from_a_file_make_a_row(tmp_path: Path, model_path: Path):
    path = write_csv(tmp_path, lines_of(true_times(model_path, 2.0), range(8)))
    result = calibrate_from_csv(path, name=DEVICE, model=model_path)
    assert result.num_measured == 8 and not result.flags
    (_, before), (_, after) = result.expected_errors
    assert after < before
    assert list(load_user_rows()) == [DEVICE]


def test_the_vector_follows_the_times(tmp_path: Path, model_path: Path):
    times = true_times(model_path, 2.0)
    calibrate_from_csv(write_csv(tmp_path, lines_of(times, range(8))), name=DEVICE, model=model_path)
    calibration = load_set(model_path)
    known = know_devices(load_model(model_path), find_devices([DEVICE]), calibration.uncertainty, calibration)[0]
    predicted = calibration.programs[8:] @ known.belief.vector
    assert np.abs(predicted / times[8:] - 1).max() < 0.15
    entry = next(item for item in devices(measured=MeasuredTable(), model=model_path) if item.name == DEVICE)
    other = next(item for item in devices(measured=MeasuredTable(), model=model_path) if item.name == "nvidia-gtx-970")
    assert (entry.kind, entry.num_measured_launches) == ("calibrated", 8)
    assert entry.expected_error < other.expected_error


def test_launches_go_by_digest_name_or_kernel(tmp_path: Path, model_path: Path):
    times = true_times(model_path, 1.0)
    lines = [
        f"dense/kernel0,-/N=256,{times[0]}",
        f"kernel0,{2:016x},{times[1]}",
        f"kernel1,dense/kernel1/-/N=1024,{times[2]}",
    ]
    assert calibrate_from_csv(write_csv(tmp_path, lines), name=DEVICE, model=model_path).num_measured == 3


@pytest.mark.parametrize(
    ("factor", "message"),
    [(1e3, "look like ms.*--unit ms"), (1e6, "look like us"), (1e9, "look like ns"), (1e-3, "shorter than")],
)
def test_another_unit_is_noticed(tmp_path: Path, model_path: Path, factor: float, message: str):
    path = write_csv(tmp_path, lines_of(factor * true_times(model_path, 1.5)))
    with pytest.raises(ConfigError, match=message):
        calibrate_from_csv(path, name=DEVICE, model=model_path)
    assert not load_user_rows()


def test_the_unit_may_be_said(tmp_path: Path, model_path: Path):
    times = true_times(model_path, 1.5)
    result = calibrate_from_csv(write_csv(tmp_path, lines_of(1e6 * times)), name=DEVICE, model=model_path, unit="us")
    stored = load_user_rows()[result.device]
    assert [item.kernel_time_s for item in stored.times] == pytest.approx(times.tolist(), rel=1e-5)


@pytest.mark.parametrize("text", ["0", "-1e-3", "nan", "inf"])
def test_impossible_times_are_refused_with_their_line(tmp_path: Path, model_path: Path, text: str):
    lines = [*lines_of(true_times(model_path, 1.0), range(2)), f"kernel3,-/N=16384,{text}"]
    with pytest.raises(ConfigError, match=r"line 4: seconds is .*over 0"):
        calibrate_from_csv(write_csv(tmp_path, lines), name=DEVICE, model=model_path)
    assert not load_user_rows()


def test_what_cannot_be_read_is_refused(tmp_path: Path, model_path: Path):
    with pytest.raises(ConfigError, match="line 2: seconds is 'fast'"):
        calibrate_from_csv(write_csv(tmp_path, ["kernel0,-/N=256,fast"]), name=DEVICE, model=model_path)
    with pytest.raises(ConfigError, match="first line must be kernel,launch,seconds"):
        calibrate_from_csv(write_csv(tmp_path, ["a,b"], head="x,y"), name=DEVICE, model=model_path)
    with pytest.raises(ConfigError, match="no line of data"):
        calibrate_from_csv(write_csv(tmp_path, []), name=DEVICE, model=model_path)
    with pytest.raises(ConfigError, match="cannot read"):
        calibrate_from_csv(tmp_path / "absent.csv", name=DEVICE, model=model_path)


def test_unknown_kernels_are_refused_with_the_nearest(tmp_path: Path, model_path: Path):
    with pytest.raises(ConfigError, match=r"line 2: .*no launch .* of kernel .kernel0.; the nearest are .*N=256"):
        calibrate_from_csv(write_csv(tmp_path, ["kernel0,-/N=257,1e-3"]), name=DEVICE, model=model_path)


def test_contradictory_repeats_are_flagged(tmp_path: Path, model_path: Path):
    times = true_times(model_path, 1.0)
    lines = [*lines_of(times), f"kernel0,-/N=256,{3 * times[0]}", f"kernel1,-/N=1024,{1.01 * times[2]}"]
    result = calibrate_from_csv(write_csv(tmp_path, lines), name=DEVICE, model=model_path)
    assert len(result.flags) == 1 and "N=256 is given 2 times" in result.flags[0]


def test_a_device_in_the_table_is_not_overwritten(tmp_path: Path, model_path: Path):
    path = write_csv(tmp_path, lines_of(true_times(model_path, 1.0)))
    calibrate_from_csv(path, name=DEVICE, model=model_path)
    with pytest.raises(DeviceError, match=f"has a row {DEVICE} already.*--replace"):
        calibrate_from_csv(path, name=DEVICE, model=model_path)
    calibrate_from_csv(path, name=DEVICE, model=model_path, is_replacing=True)
    with pytest.raises(DeviceError, match="nvidia-h200 already: the model was trained"):
        calibrate_from_csv(path, name="h200", model=model_path)
    with pytest.raises(DeviceError, match="no device"):
        calibrate_from_csv(path, name="nowhere", model=model_path)
