from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from perfvec.apply import measuring
from perfvec.apply.measuring import in_rounds, measure_launch, measure_suites
from perfvec.arch.measure import FailedLaunch, MeasureReport
from perfvec.arch.measured import MeasuredTable
from perfvec.arch.opencl import LiveDevice, device_key
from perfvec.corpus.suite import SuiteLaunch
from perfvec.errors import ConfigError, FormatError, KernelNotFoundError, OpenCLError
from tests.apply.tiny import measured_time, suites
from tests.arch.test_session import QUICK, increment, live_pocl

GPU = LiveDevice(
    number=0, platform="Test", name="NVIDIA H200", driver="1", type="gpu", compute_units=132, memory_bytes=1 << 37
)


class FakeMeasuring:
    """Stands in for `measure_many`: times each launch 1 ms until it is told to stop."""

    def __init__(self, stop_after: int = 1000, error: BaseException | None = None, failing: str = "") -> None:
        self.stop_after, self.error, self.failing = stop_after, error, failing
        self.asked: list[str] = []

    def __call__(self, launches, device, *, on_result, **settings) -> MeasureReport:
        self.asked = [launch.digest for launch in launches]
        times, failures = [], []
        for launch in launches[: self.stop_after]:
            if launch.kernel_name == self.failing:
                failures.append(
                    FailedLaunch(digest=launch.digest, device="nvidia-h200", reason="OpenCLError: broken\nx")
                )
                on_result(failures[-1])
            else:
                entry = SuiteLaunch(
                    suite="", kernel="", family="", variant="", parameters="", is_size_tied=True, launch=launch
                )
                times.append(measured_time(entry, "nvidia-h200", 1e-3))
                on_result(times[-1])
        if self.error is not None:
            raise self.error
        left = len(launches) - len(times) - len(failures)
        return MeasureReport(times=tuple(times), failures=tuple(failures), num_skipped=0, num_left=left)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMeasuring:
    fake = FakeMeasuring()
    monkeypatch.setattr(measuring, "measure_many", fake)
    return fake


def test_one_launch_is_timed():
    time = measure_launch(
        increment(), opencl_device=live_pocl().number, budget_s=0.02, protocol=QUICK, is_isolated=False
    )
    assert time.digest == increment().digest
    assert time.kernel_time_s > 0


def test_a_failure_keeps_its_kind():
    launch = replace(increment(), kernel_name="decrement")
    with pytest.raises(KernelNotFoundError, match="decrement"):
        measure_launch(launch, opencl_device=live_pocl().number, budget_s=0.02, protocol=QUICK, is_isolated=False)
    odd = FailedLaunch(digest="0" * 16, device="x", reason="KeyError: 3")
    assert isinstance(measuring._error(odd), OpenCLError)
    assert "the launch failed on x: KeyError: 3" in str(measuring._error(odd))


def test_any_beginning_has_about_equally_many_of_each_kernel(tmp_path: Path):
    entries = suites(tmp_path, sizes=tuple(64 * n for n in range(1, 8)))
    ordered = in_rounds(entries)
    assert sorted(entry.name for entry in ordered) == sorted(entry.name for entry in entries)
    for length in range(1, len(ordered) + 1):
        counts = Counter(entry.kernel for entry in ordered[:length])
        assert max(counts.values()) - min(counts.get(kernel, 0) for kernel in ("scale", "add", "power", "gather")) <= 1
    assert ordered == in_rounds(list(reversed(entries)))
    sizes = [entry.launch.global_size[0] for entry in ordered if entry.kernel == "scale"]
    assert sizes != sorted(sizes)  # not the smallest first


def test_a_campaign_goes_on_where_it_was_broken_off(tmp_path: Path, fake: FakeMeasuring):
    entries = suites(tmp_path / "suites")
    path = tmp_path / "times.h5"
    fake.stop_after = 3
    first = measure_suites(path, GPU, total_budget_s=1.0, launches=entries)
    assert (first.num_measured, first.num_known, first.num_left) == (3, 0, 5)
    assert first.num_kernels == 3
    assert first.device == device_key(GPU) == "nvidia-h200"
    fake.stop_after, fake.failing = 1000, "gather"
    second = measure_suites(path, GPU, total_budget_s=1.0, launches=entries)
    assert (second.num_known, second.num_left) == (3, 0)
    assert len(fake.asked) == 5
    assert second.num_measured + second.num_failed == 5
    assert second.failures[0][:2] == ("OpenCLError", second.num_failed)
    assert second.failures[0][2].startswith("two/gather/-/N=")
    assert second.failures[0][2].endswith("OpenCLError: broken")
    names = {time.name for time in MeasuredTable.load(path).times}
    assert names < {entry.name for entry in entries}
    assert len(names) == 8 - second.num_failed


def test_a_limit_is_kept(tmp_path: Path, fake: FakeMeasuring):
    entries = suites(tmp_path / "suites")
    assert measure_suites(tmp_path / "t.h5", GPU, total_budget_s=1.0, launches=entries, limit=2).num_measured == 2
    assert measure_suites(tmp_path / "t.h5", GPU, total_budget_s=1.0, launches=entries, limit=2).num_known == 2
    with pytest.raises(ConfigError, match="limit=0; allowed are whole numbers over 0"):
        measure_suites(tmp_path / "t.h5", GPU, total_budget_s=1.0, launches=entries, limit=0)


def test_what_was_measured_is_written_however_it_ends(tmp_path: Path, fake: FakeMeasuring):
    fake.stop_after, fake.error = 2, KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        measure_suites(tmp_path / "t.h5", GPU, total_budget_s=1.0, launches=suites(tmp_path / "suites"))
    assert len(MeasuredTable.load(tmp_path / "t.h5").times) == 2


def test_the_table_is_written_now_and_then(tmp_path: Path, fake: FakeMeasuring, monkeypatch: pytest.MonkeyPatch):
    saved: list[int] = []
    save = MeasuredTable.save
    monkeypatch.setattr(MeasuredTable, "save", lambda self, path: (saved.append(len(self.times)), save(self, path)))
    monkeypatch.setattr(measuring, "SAVE_EVERY_S", -1.0)
    measure_suites(tmp_path / "t.h5", GPU, total_budget_s=1.0, launches=suites(tmp_path / "suites"))
    assert saved == list(range(1, 9))


def test_where_nothing_can_be_written_nothing_is_measured(tmp_path: Path, fake: FakeMeasuring):
    entries = suites(tmp_path / "suites")
    with pytest.raises(FormatError, match=r"the folder .* does not exist"):
        measure_suites(tmp_path / "absent" / "t.h5", GPU, total_budget_s=1.0, launches=entries)
    (tmp_path / "bad.h5").write_bytes(b"damaged")
    with pytest.raises(FormatError, match="not a readable HDF5 file"):
        measure_suites(tmp_path / "bad.h5", GPU, total_budget_s=1.0, launches=entries)
    assert fake.asked == []
    assert (tmp_path / "bad.h5").read_bytes() == b"damaged"


def test_a_campaign_on_a_real_device(tmp_path: Path):
    entries = suites(tmp_path / "suites")[:2]
    summary = measure_suites(
        tmp_path / "t.h5",
        live_pocl(),
        total_budget_s=60.0,
        launches=entries,
        budget_s_per_launch=0.02,
        protocol=QUICK,
        is_isolated=False,
    )
    assert summary.num_measured == 2
    assert 0 < summary.busy_share < 1
    assert set(MeasuredTable.load(tmp_path / "t.h5").digests) == {entry.launch.digest for entry in entries}
