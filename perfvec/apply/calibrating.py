"""Calibrate a device: choose launches, measure them, and add the device to the user's table.

Batches are planned ahead, for the variance after a measurement does not hang on the time that is measured; each
batch is one child process, and between batches the posterior is taken anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.apply.beliefs import prior_of
from perfvec.apply.calibration_set import CalibrationSet, load_set
from perfvec.apply.models import load_model
from perfvec.apply.twins import make_where_lacking
from perfvec.apply.user_table import save_user_row, user_row_path
from perfvec.arch.adding import add_device, live_specification, nearest_device, scaled_device
from perfvec.arch.device import Device, load_devices
from perfvec.arch.measure import measure_many
from perfvec.arch.measured import MeasuredTable, MeasuredTime
from perfvec.arch.opencl import device_key
from perfvec.errors import ConfigError, DeviceError, ModelError
from perfvec.model.design import Design, random_pool
from perfvec.model.posterior import DeviceBelief, log_times, posterior, shares
from perfvec.model.uncertainty import CALIBRATED, DATASHEET, Footing
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.opencl import LiveDevice
    from perfvec.arch.session import Protocol
    from perfvec.launch import Launch

logger = logging.getLogger(__name__)

DEFAULT_BUDGET_S = 60.0
LAUNCH_BUDGET_S = 0.15
_BATCH = 10
# Wall time of a launch besides its repeats: data, compilation, copies.
_OVERHEAD_S = 0.5
_BYTES_PER_S = 2e8
# The first launch is measured again at the end. This much slower and the device throttles, or is shared.
_MOST_DRIFT = 0.15
_NOISY_SPREAD = 0.15
_MINUTES_AHEAD = (1, 2, 5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """What a calibration came to.

    Attributes:
        device: Name of the device's row.
        path: File of the row.
        num_measured: Launches that the row stands on.
        num_failed: Launches that could not be measured.
        wall_s: How long it took; 0 where times were given.
        expected_errors: What was or would be measured, and the median error to expect of kernels like the suites', a
            fraction.
        flags: What is suspicious about the times.
    """

    device: str
    path: Path
    num_measured: int
    num_failed: int
    wall_s: float
    expected_errors: tuple[tuple[str, float], ...]
    flags: tuple[str, ...]


def calibrate(
    live: LiveDevice,
    *,
    name: str = "",
    model: str | Path | None = None,
    budget_s: float = DEFAULT_BUDGET_S,
    num_launches: int | None = None,
    targets: NDArray[np.float64] | None = None,
    is_replacing: bool = False,
    protocol: Protocol | None = None,
    on_progress: OnProgress = silent,
) -> CalibrationResult:
    """Measure launches on a device of this machine until its vector is known as well as the budget allows.

    Args:
        live: The device.
        name: Of its row; the device's own where it is "".
        model: File of the model; the shipped one where it is None.
        budget_s: Wall time after which no launch is begun; over 0.
        num_launches: How many launches to measure, however long it takes; None to go by the budget.
        targets: Program vectors that are to be predicted, `(m, D)`; the corpus where it is None.
        is_replacing: Replace a row that the user's table has.
        protocol: When a time counts as measured.
        on_progress: Hears how far it is.

    Raises:
        ConfigError: A number is out of range.
        DeviceError: The table has a row of that name.
        OpenCLError: The device cannot be used.
        ModelError: The model has no calibration set, or no launch could be measured.
    """
    if budget_s <= 0 or (num_launches is not None and num_launches < 1):
        raise ConfigError(f"budget {budget_s} s, {num_launches} launches; allowed are numbers over 0")
    calibration = load_set(model)
    row_name = _check_name(live, name, model, is_replacing=is_replacing)
    device = _device_of(live, row_name)
    trained = make_where_lacking(device, model=model, on_progress=on_progress)
    prior = prior_of(trained, device, calibration.uncertainty)
    work = _Work(
        live=live,
        calibration=calibration,
        targets=calibration.programs if targets is None else targets,
        prior=prior,
        protocol=protocol,
        on_progress=on_progress,
    )
    begun = time.perf_counter()
    total = num_launches if num_launches is not None else len(work.launches)
    while len(work.times) < total and work.open_rows:
        left_s = budget_s - (time.perf_counter() - begun)
        if num_launches is None and (left_s <= 0 or (work.times and work.seconds_a_launch(begun) > left_s)):
            break
        if not work.measure(min(_BATCH, total - len(work.times)), np.inf if num_launches else left_s, total):
            break
    if not work.times:
        raise ModelError(f"no launch could be measured on {live.name}: {work.reasons()}")
    flags = work.flags()
    wall_s = time.perf_counter() - begun
    path = save_user_row(
        row_name, MeasuredTable(times=tuple(replace(item, device=row_name) for item in work.times.values()))
    )
    return CalibrationResult(
        device=row_name,
        path=path,
        num_measured=len(work.times),
        num_failed=len(work.failures),
        wall_s=wall_s,
        expected_errors=work.expected_errors(wall_s / len(work.times)),
        flags=flags,
    )


def _check_name(live: LiveDevice, name: str, model: str | Path | None, *, is_replacing: bool) -> str:
    """The name of the row to write."""
    row_name = name or device_key(live)
    if row_name in load_model(model).device_names:
        raise DeviceError(
            f"the table has {row_name} already: the model was trained on launches measured on one. To give the "
            f"device of this machine a row of its own, name it: -o my-{row_name}"
        )
    check_row(row_name, is_replacing=is_replacing)
    return row_name


def check_row(row_name: str, *, is_replacing: bool) -> None:
    """Refuse a name that is none, or that the user's table has.

    Raises:
        ConfigError: It is no name.
        DeviceError: The table has a row of that name.
    """
    if Path(row_name).name != row_name or row_name != row_name.lower() or row_name.startswith("."):
        raise ConfigError(f"{row_name!r} is no name of a device; allowed are lower case letters, digits and dashes")
    if user_row_path(row_name).is_file() and not is_replacing:
        raise DeviceError(
            f"the table has a row {row_name} already ({user_row_path(row_name)}); give --replace to measure it anew, "
            "or another name with -o"
        )


def _device_of(live: LiveDevice, row_name: str) -> Device:
    """The facts of the row's device; where there is no file of that name, one is written."""
    known = load_devices()
    if row_name in known:
        return known[row_name]
    own = known.get(device_key(live))
    if own is not None:
        made = replace(own, name=row_name, aliases=(), opencl_names=())
    else:
        spec = live_specification(live, row_name)
        made = scaled_device(spec, nearest_device(spec, known))
        logger.warning(
            "no device file describes %s; %s was written from what OpenCL reports, scaled from others. Correct it "
            "where you know better.",
            live.name,
            row_name,
        )
    add_device(made)
    return made


@final
class _Work:
    """A calibration under way."""

    def __init__(
        self,
        *,
        live: LiveDevice,
        calibration: CalibrationSet,
        targets: NDArray[np.float64],
        prior: DeviceBelief,
        protocol: Protocol | None,
        on_progress: OnProgress,
    ) -> None:
        self.live, self.calibration, self.targets, self.prior = live, calibration, targets, prior
        self._protocol, self._on_progress = protocol, on_progress
        self.launches: dict[int, Launch] = {}
        for digest, entry in calibration.launches().items():
            row = calibration.row(digest)
            if row is not None and 2 * entry.launch.buffer_bytes < live.memory_bytes / 2:
                self.launches[row] = entry.launch
        self.times: dict[int, MeasuredTime] = {}
        self.failures: dict[int, str] = {}
        self.belief = prior
        self.misfit = calibration.uncertainty.misfit_of(live.type).known

    @property
    def open_rows(self) -> list[int]:
        """Launches that were not tried yet."""
        return [row for row in self.launches if row not in self.times and row not in self.failures]

    def seconds_a_launch(self, begun: float) -> float:
        """Wall time of a launch so far."""
        return (time.perf_counter() - begun) / max(len(self.times), 1)

    def _design(self, rows: Sequence[int]) -> Design:
        """A design over the given launches, from what is believed now."""
        programs = self.calibration.programs[list(rows)]
        log_time = log_times(programs, self.belief.log_mean)
        num_bytes = np.array([self.launches[row].buffer_bytes for row in rows], dtype=np.float64)
        costs = _OVERHEAD_S + num_bytes / _BYTES_PER_S + LAUNCH_BUDGET_S + np.exp(log_time)
        kernels = [self.calibration.kernels[row] for row in rows]
        return Design(self.belief, programs, self.targets, self.misfit, kernels=kernels, costs=costs)

    def measure(self, count: int, budget_s: float, total: int) -> bool:
        """Plan a batch, measure it, and learn from it; whether any launch was tried."""
        every = self.open_rows
        rows = [every[row] for row in random_pool(len(every), count, seed=len(every))]
        design = self._design(rows)
        batch = [rows[design.choose()] for _ in range(min(count, len(rows)))]
        before = len(self.times) + len(self.failures)
        row_of = {self.launches[row].digest: row for row in batch}
        report = measure_many(
            [self.launches[row] for row in batch],
            self.live,
            budget_s_per_launch=LAUNCH_BUDGET_S,
            total_budget_s=budget_s,
            protocol=self._protocol,
            is_isolated=True,
            on_result=lambda _: self._on_progress("measuring", len(self.times), total),
        )
        names = self.calibration.names
        for item in report.times:
            self.times[row_of[item.digest]] = replace(item, name=names[row_of[item.digest]])
        for item in report.failures:
            self.failures[row_of[item.digest]] = item.reason
        self.learn()
        self._on_progress("measuring", len(self.times), total)
        return len(self.times) + len(self.failures) > before

    def learn(self) -> None:
        """Take the posterior from all times."""
        rows = list(self.times)
        launches = self.calibration.measurements(
            rows, [self.times[row].kernel_time_s for row in rows], [self.times[row].spread for row in rows]
        )
        self.belief = posterior(self.prior, launches, self.misfit)

    def reasons(self) -> str:
        """Why launches failed."""
        return next(iter(self.failures.values()), "no launch of the set fits its memory").splitlines()[0]

    def flags(self) -> tuple[str, ...]:
        """What is suspicious: measured by a second look at the first launch, and by the spreads."""
        found: list[str] = []
        first = next(iter(self.times))
        again = measure_many(
            [self.launches[first]], self.live, budget_s_per_launch=LAUNCH_BUDGET_S, is_isolated=True
        ).times
        if again:
            found += drift_flags(self.times[first], again[0])
        return (*found, *spread_flags(list(self.times.values())))

    def expected_errors(self, seconds_a_launch: float) -> tuple[tuple[str, float], ...]:
        """The median error to expect: without measuring, as it is, and with further minutes at the same pace."""
        unknown, footing = self.calibration.uncertainty, Footing(group=CALIBRATED, type=self.live.type)
        shares_mD, _ = shares(self.targets, self.prior.log_mean)
        before = float(self.prior.covariance.variance(shares_mD).mean())
        rows = self.open_rows
        design = self._design(rows or list(self.launches))
        found = [
            ("without measuring", unknown.expected_error(before, Footing(group=DATASHEET, type=self.live.type))),
            (f"with these {len(self.times)} launches", unknown.expected_error(design.mean_variance, footing)),
        ]
        done = 0
        for minutes in _MINUTES_AHEAD:
            wanted = int(60 * minutes / seconds_a_launch)
            for _ in range(done, min(wanted, len(rows))):
                design.choose()
            done = min(wanted, len(rows))
            more = unknown.expected_error(design.mean_variance, footing)
            found.append((f"with {minutes} more minute{'s' if minutes > 1 else ''} ({done} launches)", more))
            if done == len(rows):
                break
        return tuple(found)


def drift_flags(first: MeasuredTime, again: MeasuredTime) -> list[str]:
    """Whether a launch takes longer at the end than at the beginning, by more than its spread explains."""
    drift = again.kernel_time_s / first.kernel_time_s - 1
    spread = np.nanmax([first.spread, again.spread, 0.0])
    if drift <= max(_MOST_DRIFT, 2 * spread):
        return []
    return [
        f"the first launch, {first.name or first.digest}, took {100 * drift:.0f} % longer at the end than at "
        "the beginning: the device throttles, or something else runs on it. Let it cool, stop the rest, and calibrate "
        "again."
    ]


def spread_flags(times: Sequence[MeasuredTime]) -> list[str]:
    """Whether the repeats of most launches differ much."""
    spreads = np.array([item.spread for item in times])
    noisy = int((spreads > _NOISY_SPREAD).sum())
    if 2 * noisy <= len(spreads):
        return []
    return [
        f"{noisy} of {len(spreads)} launches vary by more than {100 * _NOISY_SPREAD:.0f} % between repeats: the device "
        "throttles or is shared; their times count accordingly less"
    ]
