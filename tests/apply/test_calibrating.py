from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.calibrating import calibrate, drift_flags, spread_flags
from perfvec.apply.devices import find_devices
from perfvec.apply.predicting import predict
from perfvec.apply.user_table import load_user_rows
from perfvec.arch.measured import MeasuredTime
from perfvec.arch.opencl import device_key, list_devices
from perfvec.arch.session import Protocol
from perfvec.corpus.suite import load_suites
from perfvec.errors import ConfigError, DeviceError
from tests.apply.calibrated import user_folder as user_folder
from tests.opencl import pocl_device

TIME = MeasuredTime(
    digest="0" * 16, device="mine", kernel_time_s=1e-3, spread=0.02, num_repeats=9, min_s=9e-4, launch_overhead_s=1e-5,
    driver="1", date="2026-01-01", name="dense/gemm/-/N=8",
)  # fmt: skip


def test_a_device_that_slows_down_is_flagged():
    assert drift_flags(TIME, replace(TIME, kernel_time_s=1.1e-3)) == []
    (flag,) = drift_flags(TIME, replace(TIME, kernel_time_s=1.4e-3))
    assert "dense/gemm/-/N=8, took 40 % longer at the end" in flag and "throttles" in flag
    # What its own spread explains is no drift.
    assert drift_flags(replace(TIME, spread=0.3), replace(TIME, kernel_time_s=1.4e-3)) == []


def test_spreads_of_most_launches_are_flagged():
    noisy = replace(TIME, spread=0.4)
    assert spread_flags([TIME, noisy]) == []
    assert "2 of 3 launches vary by more than 15 %" in spread_flags([noisy, TIME, noisy])[0]
    assert spread_flags([replace(TIME, spread=float("nan"))]) == []


@pytest.mark.usefixtures("user_folder")
def test_this_machine_gets_a_row():
    live = pocl_live()
    steps: list[tuple[str, int, int]] = []
    result = calibrate(
        live,
        name="my-cpu",
        num_launches=4,
        protocol=Protocol(max_repeats=5, warm_up_s=0.05),
        on_progress=lambda *step: steps.append(step),
    )
    assert result.num_measured == 4 and result.path.is_file()
    labels = [label for label, _ in result.expected_errors]
    assert labels[:2] == ["without measuring", "with these 4 launches"] and labels[2].startswith("with 1 more minute")
    assert all(0 < error < 20 for _, error in result.expected_errors)
    later = [error for _, error in result.expected_errors[1:]]
    assert later == sorted(later, reverse=True)  # more launches never leave more in doubt
    assert ("measuring", 4, 4) in steps
    assert len(load_user_rows()["my-cpu"].times) == 4
    (device,) = find_devices(["my-cpu"])
    assert device.type == "cpu" and device.compute.compute_units >= 1
    launch = min((entry.launch for entry in load_suites()), key=lambda item: item.buffer_bytes)
    (prediction,) = predict(launch, ["my-cpu"])
    assert prediction.kind == "calibrated" and np.isfinite(prediction.high_s)
    with pytest.raises(DeviceError, match="has a row my-cpu already"):
        calibrate(live, name="my-cpu", num_launches=1)


def test_impossible_calibrations_are_refused(user_folder: Path):
    live = pocl_live()
    with pytest.raises(ConfigError, match="allowed are numbers over 0"):
        calibrate(live, budget_s=0.0)
    with pytest.raises(ConfigError, match="allowed are numbers over 0"):
        calibrate(live, num_launches=0)
    with pytest.raises(ConfigError, match="no name of a device"):
        calibrate(live, name="../mine", num_launches=1)
    with pytest.raises(DeviceError, match=r"nvidia-h200 already.*-o my-nvidia-h200"):
        calibrate(live, name="nvidia-h200", num_launches=1)
    assert not (user_folder / "measured").exists()
    assert device_key(live)


def pocl_live():
    pocl_device()
    return next(item for item in list_devices() if item.platform == "Portable Computing Language")
