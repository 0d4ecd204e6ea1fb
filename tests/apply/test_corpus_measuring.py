"""Campaigns over corpora and suites: what is known is not timed again, what was timed is written however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from perfvec.apply import corpus_measuring
from perfvec.apply.corpus_measuring import CorpusTarget, Order, SuiteTarget, check_times, measure, target_of
from perfvec.arch.campaign import CampaignReport, reason_of
from perfvec.arch.device import find_device
from perfvec.arch.measure import FailedLaunch
from perfvec.arch.measured import MeasuredTable, MeasuredTime
from perfvec.arch.opencl import LiveDevice
from perfvec.corpus.generated import Corpus, build_corpus
from perfvec.corpus.times import CorpusTimes
from perfvec.errors import ConfigError, FormatError
from tests.apply.tiny import suites
from tests.arch.test_session import live_pocl

GPU = LiveDevice(
    number=0, platform="Test", name="NVIDIA H200", driver="1", type="gpu", compute_units=132, memory_bytes=1 << 37
)


class FakeCampaign:
    """Stands in for `run_campaign`: makes each launch, says that it takes 1 ms, and stops when it is told."""

    def __init__(self) -> None:
        self.stop_after = 10**9
        self.error: BaseException | None = None
        self.failing: frozenset[int] = frozenset()
        self.factor = 1.0
        self.asked: list[int] = []

    def __call__(self, jobs, device, *, total_budget_s, on_outcome, num_workers) -> CampaignReport:
        pairs = [(row, launch) for job in jobs for row, launch in zip(job.rows, job.make(job.rows), strict=True)]
        self.asked = [row for row, _ in pairs]
        failures: Counter[str] = Counter()
        done = pairs[: self.stop_after]
        for row, launch in done:
            if row in self.failing:
                outcome = FailedLaunch(digest="", device="nvidia-h200", reason="SourceError: no\nmore")
                failures[reason_of(outcome)] += 1
            else:
                outcome = MeasuredTime(
                    digest=launch.digest, device="nvidia-h200", kernel_time_s=1e-3 * self.factor * (1 + row),
                    spread=0.0, num_repeats=3, min_s=9e-4 * self.factor * (1 + row), launch_overhead_s=5e-6, driver="1",
                    date="2026-12-01",
                )  # fmt: skip
            on_outcome(row, outcome)
        if self.error is not None:
            raise self.error
        num_failed = sum(failures.values())
        return CampaignReport(
            num_measured=len(done) - num_failed, failures=failures, num_left=len(pairs) - len(done), num_workers=4,
            num_restarts=0,
            wall_s=2.0, busy_s=1.0, turn_s=1.5, worker_s={"compiling": 2.0},
        )  # fmt: skip


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCampaign:
    fake = FakeCampaign()
    monkeypatch.setattr(corpus_measuring, "run_campaign", fake)
    return fake


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return build_corpus(6, [find_device("nvidia-h200")], launches_per_kernel=4, seed=5)


def test_a_campaign_goes_on_where_it_was_broken_off(tmp_path: Path, corpus: Corpus, fake: FakeCampaign):
    path = tmp_path / "t.h5"
    fake.stop_after, fake.failing = 7, frozenset(range(0, 24, 5))
    first = measure(CorpusTarget(corpus, path), GPU)
    assert first.num_launches == len(corpus) == 24
    assert (first.num_measured + first.num_failed, first.num_known, first.num_left) == (7, 0, 17)
    begun = set(fake.asked[:7])
    fake.stop_after, fake.failing = 10**9, frozenset()
    second = measure(CorpusTarget(corpus, path), GPU)
    assert set(fake.asked) == set(range(24)) - begun  # failures are known, too
    assert (second.num_known, second.num_left, second.num_kernels) == (7, 0, 6)
    table = CorpusTimes.load(path, corpus_digest=corpus.digest())
    assert set(table.known("nvidia-h200")) == set(range(24))
    assert len(table.failures) == first.num_failed > 0
    assert measure(CorpusTarget(corpus, path), GPU).num_known == 24
    assert fake.asked == []


def test_failures_are_counted_with_an_example(tmp_path: Path, corpus: Corpus, fake: FakeCampaign):
    fake.failing = frozenset({3, 4})
    summary = measure(CorpusTarget(corpus, tmp_path / "t.h5"), GPU)
    assert summary.failures == {"does not compile": 2}
    assert summary.examples["does not compile"].endswith(": SourceError: no\nmore")
    assert summary.worker_shares == {"compiling": 0.25}
    assert summary.busy_share == 0.5 and summary.turn_share == 0.75 and summary.launches_per_s == 11.0


def test_kernels_come_whole_and_in_a_random_order(tmp_path: Path, corpus: Corpus, fake: FakeCampaign):
    def order_of(**limits: int) -> list[int]:
        measure(CorpusTarget(corpus, tmp_path / "absent.h5"), GPU, Order(**limits))
        (tmp_path / "absent.h5").unlink()
        return [corpus.recipes[row].kernel for row in fake.asked]

    kernels = order_of(seed=1)
    assert kernels == [kernel for kernel in dict.fromkeys(kernels) for _ in range(4)]
    assert list(dict.fromkeys(kernels)) != sorted(set(kernels))
    assert order_of(seed=1) == kernels != order_of(seed=2)
    assert order_of(seed=1, num_kernels=2) == kernels[:8]
    assert order_of(seed=1, num_launches=6) == kernels[:6]
    with pytest.raises(ConfigError, match="num_kernels=0; allowed are whole numbers over 0"):
        Order(num_kernels=0)


def test_what_two_devices_drew_alike_is_timed_once(tmp_path: Path, corpus: Corpus, fake: FakeCampaign):
    twice = Corpus(
        seed=corpus.seed,
        devices=("nvidia-h200", "nvidia-tesla-t4"),
        kernel_seeds=corpus.kernel_seeds,
        recipes=(*corpus.recipes, replace(corpus.recipes[2], device=1)),
    )
    assert measure(CorpusTarget(twice, tmp_path / "t.h5"), GPU).num_measured == 24


def test_what_was_timed_is_written_however_it_ends(tmp_path: Path, corpus: Corpus, fake: FakeCampaign):
    fake.stop_after, fake.error = 3, KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        measure(CorpusTarget(corpus, tmp_path / "t.h5"), GPU)
    assert len(CorpusTimes.load(tmp_path / "t.h5").times) == 3


def test_the_table_is_written_now_and_then(
    tmp_path: Path, corpus: Corpus, fake: FakeCampaign, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(corpus_measuring, "SAVE_EVERY_S", -1.0)
    saved = []
    monkeypatch.setattr(CorpusTarget, "save", lambda self: saved.append(len(self.times.times)))
    measure(CorpusTarget(corpus, tmp_path / "t.h5"), GPU)
    assert saved[:24] == list(range(1, 25))


def test_suites_go_into_a_table_of_suites(tmp_path: Path, fake: FakeCampaign):
    entries = suites(tmp_path / "suites")
    path = tmp_path / "t.h5"
    fake.stop_after = 3
    measure(SuiteTarget(entries, path), GPU)
    fake.stop_after = 10**9
    summary = measure(SuiteTarget([*entries, entries[0]], path), GPU)
    assert (summary.num_known, summary.num_left) == (3, 0)
    times = MeasuredTable.load(path).times
    assert {time.name for time in times} == {entry.name for entry in entries}
    assert {time.digest for time in times} == {entry.launch.digest for entry in entries}


def test_checking_compares_and_changes_nothing(tmp_path: Path, corpus: Corpus, fake: FakeCampaign):
    path = tmp_path / "t.h5"
    with pytest.raises(ConfigError, match=r"t\.h5 has 0 times on nvidia-h200 to check 5 of; measure first"):
        check_times(CorpusTarget(corpus, path), GPU, 5)
    measure(CorpusTarget(corpus, path), GPU)
    before = path.read_bytes()
    fake.factor = 1.1
    record = check_times(CorpusTarget(corpus, path), GPU, 10).record()
    assert path.read_bytes() == before
    assert record["launches"] == 10
    assert record["median_ratio"] == pytest.approx(1.1, rel=1e-6)
    assert record["share_within_5_percent"] == 0.0


def test_what_is_asked_for_must_be_clear(tmp_path: Path, corpus: Corpus):
    corpus.save(tmp_path / "c.h5")
    for arguments in ((None, None, False), (tmp_path / "c.h5", None, True)):
        with pytest.raises(ConfigError, match="give either a corpus file or --suites"):
            target_of(arguments[0], arguments[1], is_suites=arguments[2])
    with pytest.raises(ConfigError, match="suites need --out FILE"):
        target_of(None, None, is_suites=True)
    assert target_of(tmp_path / "c.h5", None, is_suites=False).path == tmp_path / "c.times.h5"
    CorpusTimes(corpus_digest="another").save(tmp_path / "c.times.h5")
    with pytest.raises(FormatError, match="has times of the corpus another, not of"):
        target_of(tmp_path / "c.h5", None, is_suites=False)


SCRIPT = """
import sys
from pathlib import Path
from perfvec.apply import corpus_measuring
from perfvec.apply.corpus_measuring import Order, measure, target_of
from perfvec.arch.opencl import choose_device

if __name__ == "__main__":
    corpus_measuring.SAVE_EVERY_S = 0.0
    device = choose_device(int(sys.argv[2]))
    measure(target_of(Path(sys.argv[1]), None, is_suites=False), device, Order(num_workers=1, num_launches=12))
"""


@pytest.mark.skipif(os.name == "nt", reason="kills a process group")
def test_a_killed_run_loses_what_it_had_not_written(tmp_path: Path):
    number = live_pocl().number
    build_corpus(6, [find_device("amd-epyc-2core-pocl")], launches_per_kernel=3, seed=5).save(tmp_path / "c.h5")
    table = tmp_path / "c.times.h5"
    (tmp_path / "run.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "c.h5"), str(number)]
    with subprocess.Popen(command, start_new_session=True) as process:
        end_s = time.monotonic() + 200
        while not table.exists() and time.monotonic() < end_s and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    kept = CorpusTimes.load(table)
    assert kept.times
    subprocess.run(command, check=True, timeout=300)
    after = CorpusTimes.load(table)
    assert len(after.times) + len(after.failures) >= 12
    assert {key: after.times[key] for key in kept.times} == kept.times  # none was timed again
