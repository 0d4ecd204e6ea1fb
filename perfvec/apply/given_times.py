"""Calibrate a device by times that were measured elsewhere: a CSV file, read with suspicion."""

from __future__ import annotations

import csv
import difflib
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from perfvec.apply.beliefs import prior_of
from perfvec.apply.calibrating import CalibrationResult, check_row
from perfvec.apply.calibration_set import CalibrationSet, load_set
from perfvec.apply.devices import find_devices
from perfvec.apply.models import load_model
from perfvec.apply.twins import make_where_lacking
from perfvec.apply.user_table import save_user_row
from perfvec.arch.measured import MeasuredTable, MeasuredTime
from perfvec.errors import ConfigError, DeviceError
from perfvec.model.posterior import log_times, posterior, predictive
from perfvec.model.uncertainty import CALIBRATED, DATASHEET, Footing
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

Unit: TypeAlias = Literal["s", "ms", "us", "ns"]
_SECONDS_IN: dict[Unit, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_COLUMNS = ("kernel", "launch", "seconds")
# Runs of a launch that differ by more than this contradict each other.
_CONTRADICTION = 1.25
# Times that are this often what can be, each alike, are in another unit; a device is off by this much at most.
_UNIT_FACTORS: tuple[tuple[float, Unit], ...] = ((1e3, "ms"), (1e6, "us"), (1e9, "ns"))
_FARTHEST = 30.0


def calibrate_from_csv(
    path: str | Path,
    *,
    name: str,
    model: str | Path | None = None,
    unit: Unit | None = None,
    is_replacing: bool = False,
    on_progress: OnProgress = silent,
) -> CalibrationResult:
    """Add a device whose times were measured elsewhere.

    Args:
        path: CSV with a head and the columns kernel, launch and seconds; one line a run. A kernel is `suite/kernel` or
            its function's name, a launch its name in the suite or its digest; `perfvec calibrate --list` prints them.
        name: Name or alias of the device, which has a device file.
        model: File of the model; the shipped one where it is None.
        unit: Unit of the third column; seconds, and a check whether they may be that, where it is None.
        is_replacing: Replace a row that the user's table has.
        on_progress: Hears how far it is, where the device lacks its simulated twin.

    Raises:
        ConfigError: The file cannot be read, a line is wrong, or all times are in another unit.
        DeviceError: The device is unknown, or the table has a row of it.
        ModelError: The model has no calibration set.
    """
    calibration = load_set(model)
    device = find_devices([name])[0]
    if device.name in load_model(model).device_names:
        raise DeviceError(f"the table has {device.name} already: the model was trained on launches measured on one")
    check_row(device.name, is_replacing=is_replacing)
    runs = _read_csv(Path(path), calibration, _SECONDS_IN[unit or "s"])
    rows = list(runs)
    medians = np.array([float(np.median(runs[row])) for row in rows])
    trained = make_where_lacking(device, model=model, on_progress=on_progress)
    prior = prior_of(trained, device, calibration.uncertainty)
    if unit is None:
        _check_unit(medians, np.exp(log_times(calibration.programs[rows], prior.log_mean)), path)
    flags = [
        f"{calibration.names[row]} is given {len(times)} times, from {min(times):.3g} s to {max(times):.3g} s: the "
        "repeats contradict each other; the median counts, and the launch less"
        for row, times in runs.items()
        if max(times) > _CONTRADICTION * min(times)
    ]
    times = [_given_time(calibration, row, device.name, runs[row]) for row in rows]
    launches = calibration.measurements(rows, medians.tolist(), [item.spread for item in times])
    unknown = calibration.uncertainty
    misfit = unknown.misfit_of(device.type)
    belief = posterior(prior, launches, misfit.known)
    stages = (("without measuring", prior, DATASHEET), (f"with these {len(rows)} launches", belief, CALIBRATED))
    errors = [
        (
            label,
            unknown.expected_error(
                predictive(at, calibration.programs, misfit.new).device_deviation ** 2,
                Footing(group=group, type=device.type),
            ),
        )
        for label, at, group in stages
    ]
    return CalibrationResult(
        device=device.name,
        path=save_user_row(device.name, MeasuredTable(times=tuple(times))),
        num_measured=len(rows),
        num_failed=0,
        wall_s=0.0,
        expected_errors=tuple(errors),
        flags=tuple(flags),
    )


def _given_time(calibration: CalibrationSet, row: int, device: str, runs: Sequence[float]) -> MeasuredTime:
    low, middle, high = (float(value) for value in np.quantile(runs, [0.25, 0.5, 0.75]))
    return MeasuredTime(
        digest=calibration.digests[row],
        device=device,
        kernel_time_s=middle,
        spread=float("nan") if len(runs) == 1 else (high - low) / middle,
        num_repeats=len(runs),
        min_s=min(runs),
        launch_overhead_s=0.0,
        driver="given",
        date=time.strftime("%Y-%m-%d"),
        name=calibration.names[row],
    )


def _read_csv(path: Path, calibration: CalibrationSet, unit_s: float) -> dict[int, list[float]]:
    """Runs of each launch, in seconds, by row of the calibration set."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"cannot read {path}: {error}; give a CSV file with {', '.join(_COLUMNS)}") from error
    if not lines or not set(_COLUMNS) <= set(lines[0]):
        found = ", ".join(map(str, lines[0])) if lines else "no line of data"
        raise ConfigError(f"{path} has {found}; its first line must be {','.join(_COLUMNS)}, and times must follow")
    index = _index(calibration)
    runs: dict[int, list[float]] = defaultdict(list)
    for number, line in enumerate(lines, start=2):
        where = f"{path}, line {number}"
        row = _find(index, str(line["kernel"] or "").strip(), str(line["launch"] or "").strip(), where)
        try:
            seconds = float(line["seconds"] or "")
        except ValueError as error:
            raise ConfigError(f"{where}: seconds is {line['seconds']!r}; write a number such as 1.25e-3") from error
        if not 0 < seconds < float("inf"):
            raise ConfigError(
                f"{where}: seconds is {seconds}; allowed are finite numbers over 0. Leave out launches that failed."
            )
        runs[row].append(seconds * unit_s)
    return dict(runs)


def _index(calibration: CalibrationSet) -> dict[str, int]:
    """Rows by every text that may name a launch: digest, full name, and both with the kernel."""
    index: dict[str, int] = {}
    for row, (name, digest) in enumerate(zip(calibration.names, calibration.digests, strict=True)):
        suite, kernel, rest = name.split("/", 2)
        for text in (digest, name, f"{suite}/{kernel} {rest}", f"{kernel} {rest}"):
            index.setdefault(text, row)
    return index


def _find(index: Mapping[str, int], kernel: str, launch: str, where: str) -> int:
    for text in (launch, f"{kernel} {launch}", f"{kernel}/{launch}"):
        if text in index:
            return index[text]
    near = difflib.get_close_matches(f"{kernel} {launch}", index, n=3, cutoff=0.3)
    hint = f"the nearest are {'; '.join(near)}" if near else "none is near"
    raise ConfigError(
        f"{where}: the calibration set has no launch {launch!r} of kernel {kernel!r}; {hint}. perfvec calibrate --list "
        "prints all."
    )


def _check_unit(times_s: NDArray[np.float64], expected_s: NDArray[np.float64], path: str | Path) -> None:
    """Refuse times that are all about a thousand, a million or a thousand million times what they can be."""
    off = float(np.median(times_s / expected_s))
    for factor, unit in _UNIT_FACTORS:
        if 1 / _FARTHEST < off / factor < _FARTHEST:
            raise ConfigError(
                f"the times in {path} are {off:.3g} times what the data sheet lets expect, in the median: they look "
                f"like {unit}, not seconds. Give --unit {unit}, or --unit s if they are seconds."
            )
        if 1 / _FARTHEST < off * factor < _FARTHEST:
            raise ConfigError(
                f"the times in {path} are {1 / off:.3g} times shorter than the data sheet lets expect, in the median: "
                f"about {factor:.0e}; seconds are expected. Correct the file, or give --unit s if they are seconds."
            )
