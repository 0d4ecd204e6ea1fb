from __future__ import annotations

import dataclasses
import threading
import time

import pytest

from perfvec.arch import isolated, measure
from perfvec.arch.measure import FailedLaunch, Plan, measure_many
from perfvec.arch.measured import MeasuredTable, MeasuredTime
from perfvec.arch.opencl import LiveDevice
from perfvec.errors import ConfigError, OpenCLError
from perfvec.launch import Launch
from tests.arch.test_session import QUICK, increment, live_pocl

BROKEN = dataclasses.replace(increment(), source="__kernel void increment( {")
TOO_FEW = dataclasses.replace(increment(), args=increment().args[:2])
CRASHING = dataclasses.replace(
    increment(),
    source="__kernel void increment(__global float *a, __global const float *b, __global uchar *c) {"
    " a[((size_t)b[0] << 50) + get_global_id(0)] = 1; }",
)
HERE = {"budget_s_per_launch": 0.02, "protocol": QUICK, "num_workers": 2}


def test_many_launches_and_their_failures():
    heard: list[object] = []
    launches = [increment(4096), BROKEN, TOO_FEW, increment(8192), increment(4096)]
    report = measure_many(launches, live_pocl(), on_result=heard.append, **HERE)
    assert [measured.digest for measured in report.times] == [launches[0].digest, launches[3].digest]
    assert [failure.digest for failure in report.failures] == [BROKEN.digest, TOO_FEW.digest]
    assert report.failures[0].reason.startswith("SourceError: kernel.cl does not compile")
    assert report.failures[1].reason.startswith("LaunchError: kernel 'increment' takes 3 arguments, found 2")
    assert report.num_skipped == 1  # the repeated one
    assert report.num_left == 0
    assert [outcome.digest for outcome in heard] == [launch.digest for launch in launches[:4]]  # type: ignore[attr-defined]
    table = MeasuredTable(times=report.times)
    assert table.lookup(launches[0].digest, report.times[0].device) is report.times[0]


def test_known_launches_are_skipped():
    launches = [increment(4096), increment(8192)]
    report = measure_many(launches, live_pocl(), skip={launches[0].digest}, **HERE)
    assert [measured.digest for measured in report.times] == [launches[1].digest]
    assert report.num_skipped == 1
    nothing = measure_many(launches, live_pocl(), skip=[launch.digest for launch in launches], **HERE)
    assert nothing.times == nothing.failures == ()


def test_the_total_budget_leaves_launches_out():
    report = measure_many([increment(4096), increment(8192)], live_pocl(), total_budget_s=1e-9, **HERE)
    assert report.num_left == 2


def test_a_broken_session_is_replaced(monkeypatch):
    made = []

    class FakeSession:
        key = "fake"

        def __init__(self, device, protocol):
            made.append(self)
            self.programs = self

        def get(self, launch):
            return None

        def is_alive(self):
            return False

        def measure(self, launch, contents, *, budget_s):
            if launch == increment(8192):
                raise ValueError("lost")
            return MeasuredTime(
                digest=launch.digest, device="fake", kernel_time_s=1.0, spread=0.0, num_repeats=1, min_s=1.0,
                launch_overhead_s=1.0, driver="", date="2026-12-01",
            )  # fmt: skip

    monkeypatch.setattr(measure, "Session", FakeSession)
    launches = [increment(4096), increment(8192), increment(64), increment(128)]
    report = measure_many(launches, FAKE, num_workers=1)
    assert len(report.times) == 3
    assert report.failures == (FailedLaunch(digest=launches[1].digest, device="fake", reason="ValueError: lost"),)
    assert len(made) == 2


FAKE = LiveDevice(
    number=0, platform="", name="fake", driver="", type="gpu", compute_units=1, memory_bytes=1 << 30
)  # fmt: skip


def plan(kind: str, num_workers: int) -> Plan:
    return Plan(
        device=dataclasses.replace(FAKE, type=kind), budget_s_per_launch=1.0, deadline_s=0.0, protocol=QUICK,
        num_workers=num_workers, hang_s=1.0,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
@pytest.mark.parametrize("num_workers", [0, 3])
def test_data_comes_in_order_and_not_while_a_cpu_is_measured(kind: str, num_workers: int):
    pending = {str(i): increment(64 * (i + 1)) for i in range(20)}
    is_measuring = threading.Event()
    disturbed = []

    def make(launch: Launch):
        if is_measuring.is_set():
            disturbed.append(launch)
        return launch.global_size

    seen = []
    for digest, launch, wait in measure._made_ahead(pending, make, plan(kind, num_workers)):  # type: ignore[arg-type]
        assert wait() == launch.global_size
        is_measuring.set()
        threading.Event().wait(0.001)
        is_measuring.clear()
        seen.append(digest)
    assert seen == list(pending)
    if kind == "cpu":
        assert disturbed == []


def test_waiting_data_is_bounded(monkeypatch):
    monkeypatch.setattr(measure, "_MAX_WAITING_BYTES", 1)
    made = []

    def make(launch: Launch):
        made.append(launch)
        return {}

    pending = {str(i): increment(64 * (i + 1)) for i in range(5)}
    for number, (_, _, wait) in enumerate(measure._made_ahead(pending, make, plan("gpu", 3))):
        wait()
        assert len(made) == number + 1  # one launch over the bound is let in, or none ever would be


def test_impossible_budgets_are_refused():
    with pytest.raises(ConfigError, match="budget_s_per_launch=0, total_budget_s=inf, num_workers=4"):
        measure_many([], FAKE, budget_s_per_launch=0)
    with pytest.raises(ConfigError, match="num_workers=0"):
        measure_many([], FAKE, num_workers=0)


def test_a_crash_costs_one_launch():
    launches = [increment(4096), CRASHING, increment(8192), BROKEN]
    report = measure_many(launches, live_pocl(), is_isolated=True, **HERE)
    assert {measured.digest for measured in report.times} == {launches[0].digest, launches[2].digest}
    reasons = {failure.digest: failure.reason for failure in report.failures}
    assert reasons.keys() == {CRASHING.digest, BROKEN.digest}
    assert "ended with exit code" in reasons[CRASHING.digest]
    assert reasons[BROKEN.digest].startswith("SourceError")
    assert report.num_left == 0


def test_children_that_never_measure_end_the_campaign(monkeypatch):
    monkeypatch.setattr(isolated, "_run_child", lambda *args: isolated._End(cause="no such device"))
    with pytest.raises(OpenCLError, match=r"gave up: no such device\. Measure one launch without is_isolated"):
        measure_many([increment()], FAKE, is_isolated=True)


def test_a_launch_that_hangs_every_child_is_reported(monkeypatch):
    monkeypatch.setattr(
        isolated, "_run_child", lambda batch, plan, hear: isolated._End(begun=next(iter(batch)), cause="no answer")
    )
    report = measure_many([increment(64), increment(128)], FAKE, is_isolated=True, num_workers=1)
    assert [failure.reason for failure in report.failures] == ["no answer", "no answer"]


def silent_child(sender, batch, plan):
    time.sleep(60)


def test_a_silent_child_is_ended(monkeypatch):
    monkeypatch.setattr(isolated, "_child", silent_child)
    begin = time.monotonic()
    end = isolated._run_child({}, dataclasses.replace(plan("gpu", 1), hang_s=0.2, budget_s_per_launch=0.1), print)
    assert end == isolated._End(cause="no answer from the measuring process for 0.2 s: the launch hangs")
    assert time.monotonic() - begin < 30
