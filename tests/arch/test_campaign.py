"""Campaigns: what one launch does to its process costs that launch alone, and is counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from perfvec.arch import campaign
from perfvec.arch.campaign import CAMPAIGN_PROTOCOL, CRASHES, NEVER_ENDS, Job, reason_of, run_campaign
from perfvec.arch.measure import FailedLaunch, Outcome
from perfvec.arch.measured import MeasuredTime
from perfvec.arch.opencl import LiveDevice
from perfvec.errors import ConfigError, LaunchError, OpenCLError
from perfvec.launch import Launch
from tests.arch.test_measure import BROKEN, CRASHING, TOO_FEW
from tests.arch.test_session import increment, live_pocl

ENDLESS = dataclasses.replace(
    increment(),
    source="__kernel void increment(__global float *a, __global const float *b, __global uchar *c) {"
    " volatile __global float *v = a; while (b[0] == 1.0f) v[0] += 1.0f; }",
)
MISSPELT = dataclasses.replace(increment(), kernel_name="decrement")
QUICK = dataclasses.replace(CAMPAIGN_PROTOCOL, warm_up_s=0.02, filler_s=1e-4, wake_s=0.002, watchdog_s=1.0)


def picked(launches: Mapping[int, Launch], rows: Sequence[int]) -> list[Launch]:
    return [launches[row] for row in rows]


def nothing(rows: Sequence[int]) -> list[Launch]:
    raise LaunchError("no such launch")


def jobs_of(launches: Sequence[Launch], size: int = 4) -> list[Job]:
    make = partial(picked, dict(enumerate(launches)))
    return [
        Job(rows=tuple(range(first, min(first + size, len(launches)))), make=make)
        for first in range(0, len(launches), size)
    ]


def test_every_launch_has_one_outcome_and_failures_are_counted_by_reason():
    device = dataclasses.replace(live_pocl())
    huge = increment(1 << 32)  # 32 GiB of buffers, and as much for copies
    launches = [increment(64), ENDLESS, increment(128), CRASHING, BROKEN, MISSPELT, TOO_FEW, huge, increment(256)]
    heard: list[tuple[int, Outcome]] = []
    report = run_campaign(
        [*jobs_of(launches), Job(rows=(9,), make=nothing)],
        device,
        total_budget_s=200.0,
        on_outcome=lambda row, outcome: heard.append((row, outcome)),
        num_workers=1,
        protocol=QUICK,
    )
    outcomes = dict(heard)
    assert sorted(row for row, _ in heard) == list(range(10))
    for row in (0, 2, 8):
        time = outcomes[row]
        assert isinstance(time, MeasuredTime), time
        assert time.digest == launches[row].digest
        assert time.launch_overhead_s > 0
        assert time.num_repeats >= 2
    assert report.failures == {
        NEVER_ENDS: 1, CRASHES: 1, "does not compile": 1, "no such kernel in the source": 1,
        "arguments do not fit the kernel": 2, "needs more memory than the device has": 1,
    }  # fmt: skip
    assert (report.num_measured, report.num_left) == (3, 0)
    assert report.num_restarts >= 2
    assert 0 < report.busy_s < report.turn_s < report.wall_s
    assert {"compiling", "contents", "waiting"} == report.worker_s.keys()
    assert 0 < sum(report.worker_s.values()) < report.wall_s


def test_several_workers_share_the_jobs():
    launches = [increment(64 * number) for number in range(1, 9)]
    heard: dict[int, Outcome] = {}
    report = run_campaign(
        jobs_of(launches, 2), live_pocl(), total_budget_s=200.0, on_outcome=heard.__setitem__, num_workers=2,
        protocol=QUICK,
    )  # fmt: skip
    assert sorted(heard) == list(range(8))
    assert (report.num_measured, report.num_left, report.num_restarts) == (8, 0, 0)
    assert len({outcome.launch_overhead_s for outcome in heard.values() if isinstance(outcome, MeasuredTime)}) <= 2


def test_on_a_cpu_jobs_are_prepared_until_a_round_ends_and_then_all_are_measured(monkeypatch):
    """Six jobs take two workers three rounds if each ends its round with its job, else one."""
    launches = [increment(64 * number) for number in range(1, 13)]
    ends: list[float] = []
    direct = campaign._Crew._direct_round

    def heard(crew, states):
        result = direct(crew, states)
        ends.append(crew._round_ends_s.value)
        return result

    monkeypatch.setattr(campaign._Crew, "_direct_round", heard)
    rows: list[int] = []

    def keep(row: int, outcome: Outcome) -> None:
        assert isinstance(outcome, MeasuredTime), outcome
        rows.append(row)

    monkeypatch.setattr(campaign, "ROUND_S", 1e3)
    report = run_campaign(
        jobs_of(launches, 2), live_pocl(), total_budget_s=1e4, on_outcome=keep, num_workers=2, protocol=QUICK
    )
    assert sorted(rows) == list(range(12))
    assert len(set(ends)) == 2  # before the warm-up, and one round
    assert report.num_left == 0
    rows.clear()
    ends.clear()
    monkeypatch.setattr(campaign, "ROUND_S", 1e-3)
    report = run_campaign(
        jobs_of(launches, 2), live_pocl(), total_budget_s=200.0, on_outcome=keep, num_workers=2, protocol=QUICK
    )  # fmt: skip
    assert sorted(rows) == list(range(12))
    assert len(set(ends)) >= 7  # a launch each a round


def test_a_crash_costs_one_of_the_launches_that_a_worker_holds():
    launches = [increment(64), increment(128), increment(256), CRASHING, increment(512)]
    heard: dict[int, Outcome] = {}
    report = run_campaign(
        jobs_of(launches, 2), live_pocl(), total_budget_s=200.0, on_outcome=heard.__setitem__, num_workers=1,
        protocol=QUICK,
    )  # fmt: skip
    assert report.failures == {CRASHES: 1}
    assert sorted(row for row, outcome in heard.items() if isinstance(outcome, MeasuredTime)) == [0, 1, 2, 4]


def test_programs_are_kept_in_memory_where_they_may_be_loaded_from_there(tmp_path, monkeypatch):
    assert campaign._quick_folder(str(tmp_path / "absent")) is None
    monkeypatch.setattr(campaign, "_MOST_CACHE_BYTES", 1)
    assert campaign._quick_folder(str(tmp_path)) == str(tmp_path)
    monkeypatch.setattr(campaign, "_MOST_CACHE_BYTES", 1 << 62)
    assert campaign._quick_folder(str(tmp_path)) is None

    def refuse(*args):
        raise PermissionError("mounted noexec")

    monkeypatch.setattr(campaign, "_MOST_CACHE_BYTES", 1)
    monkeypatch.setattr(campaign.mmap, "mmap", refuse)
    assert campaign._quick_folder(str(tmp_path)) is None


def test_what_the_budget_leaves_out_is_counted():
    report = run_campaign(
        jobs_of([increment(64), increment(128)]), live_pocl(), total_budget_s=1e-6, on_outcome=lambda *_: None,
        num_workers=1,
    )  # fmt: skip
    assert (report.num_measured, report.num_left) == (0, 2)


def test_workers_that_never_measure_end_the_campaign():
    gone = LiveDevice(
        number=7, platform="", name="gone", driver="", type="gpu", compute_units=1, memory_bytes=1 << 30
    )  # fmt: skip
    with pytest.raises(OpenCLError, match="OpenCL device 7, gone, is no longer there"):
        run_campaign(jobs_of([increment()]), gone, total_budget_s=100.0, on_outcome=lambda *_: None, num_workers=1)


def test_a_silent_worker_is_replaced():
    device = live_pocl()
    heard: dict[int, Outcome] = {}
    slow = dataclasses.replace(QUICK, watchdog_s=1000.0)
    report = run_campaign(
        jobs_of([ENDLESS, increment(64)]), device, total_budget_s=200.0, on_outcome=heard.__setitem__, num_workers=1,
        protocol=slow, silence_s=20.0,
    )  # fmt: skip
    assert report.failures == {campaign.SILENT: 1}
    assert isinstance(heard[1], MeasuredTime)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SourceError: x", "does not compile"),
        ("DeviceMemoryError: x", "needs more memory than the device has"),
        ("OpenCLError: x", "refused by the device, or faults it"),
        ("FormatError: x", "the device's timer does not resolve it"),
        ("KeyError: 3", "another error"),
        (f"{CRASHES}: exit code -11", CRASHES),
        ("OpenCLError: clEnqueueNDRangeKernel failed: INVALID_WORK_GROUP_SIZE", campaign.TOO_LARGE),
    ],
)
def test_reasons_are_few(text: str, reason: str):
    assert reason_of(FailedLaunch(digest="", device="x", reason=text)) == reason


@pytest.mark.parametrize("changes", [{"total_budget_s": 0}, {"num_workers": 0}, {"budget_s": -1.0}, {"silence_s": 0}])
def test_impossible_settings_are_refused(changes):
    settings = {"total_budget_s": 1.0, "on_outcome": lambda *_: None, **changes}
    with pytest.raises(ConfigError, match="allowed are numbers over 0"):
        run_campaign([], live_pocl(), **settings)
