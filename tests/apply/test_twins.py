"""Vectors of GPUs fitted to the timing model on this machine: a tiny model, 52 tiny launches, no measured time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from perfvec import cli
from perfvec.apply import twins
from perfvec.apply.beliefs import prior_of
from perfvec.apply.calibration_set import file_digest, save_set, set_path
from perfvec.apply.devices import devices, find_devices
from perfvec.apply.encoding import launch_input
from perfvec.apply.models import load_model
from perfvec.apply.predicting import predict
from perfvec.apply.tracing import trace
from perfvec.apply.twins import (
    find_twins,
    lacks_twin,
    make_twins,
    make_where_lacking,
    model_with_twins,
    spread_over_kernels,
    twin_path,
)
from perfvec.arch.adding import add_device
from perfvec.arch.archetypes import times_on
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import Device
from perfvec.arch.measured import MeasuredTable
from perfvec.arch.timing.of_device import timing_config
from perfvec.corpus.suite import SuiteLaunch
from perfvec.errors import DeviceError, ModelError
from perfvec.model.baselines import aggregate_features
from perfvec.model.familiarity import fit_familiarity
from tests.apply.calibrated import tiny_set
from tests.apply.tiny import suites, tiny_model
from tests.naive import dense

SIZES = tuple(2**power for power in range(6, 19))
NAME = "nvidia-mine"


@dataclass(frozen=True)
class Machine:
    """A user's machine with a GPU that nobody ships.

    Attributes:
        model: File of the model, its calibration set beside it.
        suites: The launches of the set.
        programs: Their program vectors.
        times: As the timing model has them on the GPU.
        device: The GPU.
    """

    model: Path
    suites: Sequence[SuiteLaunch]
    programs: np.ndarray
    times: np.ndarray
    device: Device


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    folder = tmp_path_factory.mktemp("twins")
    entries = suites(folder / "suites", sizes=SIZES)
    traces = [trace(entry.launch) for entry in entries]
    path, model = folder / "tiny.safetensors", tiny_model()
    model.save(path)
    inputs = [launch_input(item) for item in traces]
    programs = model.encode(inputs)
    own = {
        "names": tuple(entry.name for entry in entries),
        "digests": tuple(entry.launch.digest for entry in entries),
        "programs": programs,
        "is_candidate": np.ones(len(entries), dtype=bool),
        "familiarity": fit_familiarity(
            aggregate_features(inputs, with_times=False), [entry.family for entry in entries]
        ),
    }
    save_set(replace(tiny_set(programs.shape[1], file_digest(path)), **own), set_path(path))
    device = replace(find_devices(["nvidia-l4"])[0], name=NAME, aliases=(), opencl_names=())
    times = np.concatenate([times_on(item, [timing_config(device)]) for item in traces])
    return Machine(model=path, suites=entries, programs=programs, times=times, device=device)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Path:
    """The user's folders, in which the GPU's file is already; the suites are the machine's."""
    for kind in ("data", "cache"):
        monkeypatch.setattr(f"platformdirs.user_{kind}_dir", lambda name, kind=kind: str(tmp_path / kind / name))
    monkeypatch.setattr("perfvec.apply.calibration_set.load_suites", lambda: machine.suites)
    add_device(machine.device)
    return tmp_path


def make(machine: Machine) -> twins.Twin:
    (twin,) = make_twins([machine.device], model=machine.model, num_processes=0)
    return twin


def error(vector: np.ndarray, machine: Machine) -> float:
    return float(np.abs(machine.programs @ vector / machine.times - 1).mean())


def test_a_twin_is_much_nearer_to_the_timing_model_than_the_formula(user: Path, machine: Machine):
    before = model_with_twins(machine.model)
    assert before is load_model(machine.model) and lacks_twin(before, machine.device)
    steps: list[tuple[str, int, int]] = []
    (twin,) = make_twins(
        [machine.device], model=machine.model, num_processes=0, on_progress=lambda *step: steps.append(step)
    )
    assert twin.num_launches == 52 and {("tracing", 52, 52), ("timing", 52, 52)} <= set(steps)
    after = model_with_twins(machine.model)
    seconds = seconds_per_unit(machine.device)
    np.testing.assert_array_equal(after.simulated_twin(seconds), twin.vector)
    assert not lacks_twin(after, machine.device)
    assert error(twin.vector, machine) < 0.5 * error(before.device_from_datasheet(seconds), machine)
    np.testing.assert_array_equal(after.devices.vectors, before.devices.vectors)  # nobody else's changes


def test_the_prior_is_as_narrow_as_of_shipped_gpus(user: Path, machine: Machine):
    unknown = tiny_set(machine.programs.shape[1], "").uncertainty
    wide = prior_of(load_model(machine.model), machine.device, unknown)
    make(machine)
    narrow = prior_of(model_with_twins(machine.model), machine.device, unknown)
    assert np.trace(dense(narrow.covariance)) < 0.6 * np.trace(dense(wide.covariance))


def test_a_second_device_reads_the_traces_of_the_first(user: Path, machine: Machine):
    make(machine)
    written = {path: path.stat().st_mtime_ns for path in (user / "cache").rglob("*.h5")}
    assert len(written) == 52
    (second,) = make_twins(find_devices(["intel-hd-530"]), model=machine.model, num_processes=0)
    assert {path: path.stat().st_mtime_ns for path in (user / "cache").rglob("*.h5")} == written
    assert set(find_twins(machine.model)) == {NAME, "intel-hd-530"} and second.device == "intel-hd-530"


def test_a_changed_device_file_does_not_use_the_old_twin(user: Path, machine: Machine):
    make(machine)
    assert set(find_twins(machine.model)) == {NAME}
    path = user / "data" / "perfvec" / "archs" / f"{NAME}.toml"
    path.unlink()
    # No price follows from how many work-groups are resident, but times do.
    changed = replace(machine.device, compute=replace(machine.device.compute, max_work_groups_per_compute_unit=1))
    np.testing.assert_array_equal(seconds_per_unit(changed), seconds_per_unit(machine.device))
    add_device(changed)
    assert find_twins(machine.model) == {}


def test_another_model_does_not_use_it(user: Path, machine: Machine, tmp_path: Path):
    make(machine)
    other = tmp_path / "other.safetensors"
    tiny_model(("other",)).save(other)
    assert find_twins(other) == {} and set(find_twins(machine.model)) == {NAME}


def test_a_damaged_twin_is_not_used_and_made_again(user: Path, machine: Machine, caplog: pytest.LogCaptureFixture):
    twin = make(machine)
    path = twin_path(NAME, twin.model)
    path.write_bytes(path.read_bytes()[:200])
    assert find_twins(machine.model) == {}
    assert f"perfvec devices twin {NAME} makes it again" in caplog.text
    make(machine)
    assert set(find_twins(machine.model)) == {NAME}


def test_predictions_say_what_they_stand_on(user: Path, machine: Machine, caplog: pytest.LogCaptureFixture):
    def predicted() -> tuple[str, float]:
        launch = machine.suites[-1].launch
        (item,) = predict(launch, [NAME], model=machine.model, measured=MeasuredTable())
        return item.kind, item.kernel_time_s

    assert predicted()[0] == "datasheet"
    assert f"perfvec devices twin {NAME} --model {machine.model}" in caplog.text
    caplog.clear()
    twin = make(machine)
    kind, time_s = predicted()
    assert kind == "simulated" and "twin" not in caplog.text
    assert time_s == pytest.approx(machine.programs[-1] @ twin.vector, rel=0.3)  # moved by what others depart
    (entry,) = [item for item in devices(measured=MeasuredTable(), model=machine.model) if item.name == NAME]
    assert (entry.kind, entry.num_simulated_launches, entry.num_measured_launches) == ("simulated", 52, 0)


def test_calibration_makes_it_first(user: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(twins, "num_cores", lambda: 1)
    path = user / "times.csv"
    rows = [
        f'tiny,"{entry.launch.digest}",{time:.3e}' for entry, time in zip(machine.suites, machine.times, strict=True)
    ]
    path.write_text("\n".join(["kernel,launch,seconds", *rows[:3]]), encoding="utf-8")
    assert cli.main(["calibrate", "--from", str(path), "-o", NAME, "--model", str(machine.model), "--unit", "s"]) == 0
    assert set(find_twins(machine.model)) == {NAME}


def test_what_cannot_be_fitted_starts_from_the_formula(
    user: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("perfvec.apply.calibration_set.load_suites", lambda: machine.suites[:10])
    with pytest.raises(ModelError, match=f"only 10 of 10 launches have a time by the timing model on {NAME}"):
        make(machine)
    monkeypatch.setattr("perfvec.apply.calibration_set.load_suites", list)
    assert make_where_lacking(machine.device, model=machine.model) is load_model(machine.model)
    assert f"{NAME} starts from the formula of its data sheet" in caplog.text


def test_a_cpu_has_no_twin(user: Path, machine: Machine, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(DeviceError, match="amd-epyc-7763 is a cpu, and the timing model is of GPUs"):
        make_twins(find_devices(["amd-epyc-7763"]), model=machine.model)
    cpu = find_devices(["amd-epyc-7763"])[0]
    assert make_where_lacking(cpu, model=machine.model) is load_model(machine.model)
    assert cli.main(["devices", "twin", "amd-epyc-7763", "--model", str(machine.model)]) == 2
    assert "measure it instead: perfvec calibrate" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("twin",), ("add", "one", "two"), ("remove", "one"), ("twin", "h200", "-o", "x")])
def test_the_command_refuses_what_it_does_not_know(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["devices", *words]) == 2
    assert "twin and the names of GPUs that have a device file" in " ".join(capsys.readouterr().err.split())


def test_the_command_makes_and_lists_it(user: Path, machine: Machine, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["devices", "twin", NAME, "--model", str(machine.model)]) == 0
    assert f"{NAME}: vector fitted to the timing model on 52 launches" in capsys.readouterr().out
    assert cli.main(["devices", "--model", str(machine.model)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if NAME in line]
    assert "timing model on 52 launches" in line


def test_launches_are_spread_over_kernels():
    kernels = ["a"] * 6 + ["b"] * 2 + ["c"]
    digests = [f"{row}" for row in range(9)]
    assert sorted(kernels[row] for row in spread_over_kernels(digests, kernels, 3)) == ["a", "b", "c"]
    assert sorted(kernels[row] for row in spread_over_kernels(digests, kernels, 5)) == ["a", "a", "b", "b", "c"]
    assert sorted(spread_over_kernels(digests, kernels, 100)) == list(range(9))
    without = spread_over_kernels([*digests[:-1], ""], kernels, 3)
    assert sorted(kernels[row] for row in without) == ["a", "a", "b"]
