from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from perfvec.apply.corpus_data import measured_corpus
from perfvec.arch.device import find_device
from perfvec.arch.measured import MeasuredTime
from perfvec.corpus.generated import Corpus, build_corpus
from perfvec.corpus.times import TIMES_SUFFIX, CorpusTimes
from perfvec.errors import ConfigError, FormatError


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Three kernels, all launches but every fourth with a time on one device, some on a second."""
    build_corpus(3, [find_device("h200")], launches_per_kernel=6, seed=5).save(tmp_path / "c.h5")
    corpus = Corpus.load(tmp_path / "c.h5")
    times = CorpusTimes(corpus_digest=corpus.stored_digest)
    for row in range(len(corpus)):
        for device, is_measured in (("nvidia-h200", row % 4 != 3), ("xeon-16core-pocl", row % 8 == 0)):
            if is_measured:
                times.add(row, a_time(device, 1e-3 * (1 + row)))
    times.save(tmp_path / f"c{TIMES_SUFFIX}")
    return corpus


def a_time(device: str, seconds: float) -> MeasuredTime:
    return MeasuredTime(
        digest="0" * 16, device=device, kernel_time_s=seconds, spread=0.01, num_repeats=9, min_s=seconds,
        launch_overhead_s=5e-6, driver="1", date="2026-12-01",
    )  # fmt: skip


def test_launches_with_a_time_come_with_all_their_times(corpus: Corpus, tmp_path: Path):
    entries, times = measured_corpus(str(tmp_path / "c.h5"))
    rows = [row for row in range(len(corpus)) if row % 4 != 3]
    assert [entry.launch.digest for entry in entries] == [corpus.entry(row).launch.digest for row in rows]
    assert {entry.suite for entry in entries} == {"generated"}
    by_digest = {entry.launch.digest: row for entry, row in zip(entries, rows, strict=True)}
    for time in times:
        assert time.kernel_time_s == pytest.approx(1e-3 * (1 + by_digest[time.digest]), rel=1e-6)
    counts = Counter(time.device for time in times)
    assert counts == {"nvidia-h200": len(rows), "xeon-16core-pocl": sum(row % 8 == 0 for row in rows)}


def test_a_few_of_each_kernel_are_the_same_each_time_and_spread(corpus: Corpus, tmp_path: Path):
    every, _ = measured_corpus(str(tmp_path / "c.h5"))
    few, times = measured_corpus(str(tmp_path / "c.h5"), launches_per_kernel=2)
    assert max(Counter(entry.kernel for entry in few).values()) == 2
    for kernel in {entry.kernel for entry in every}:
        names = [entry.name for entry in every if entry.kernel == kernel]
        assert [entry.name for entry in few if entry.kernel == kernel] == [names[0], names[-1]]
    assert {time.digest for time in times} == {entry.launch.digest for entry in few}
    assert measured_corpus(str(tmp_path / "c.h5"), launches_per_kernel=2)[0] == few


def test_shipped_corpora_have_names(tmp_path: Path):
    entries, times = measured_corpus("nvidia-h200", launches_per_kernel=1)
    assert len(entries) == len({entry.kernel for entry in entries}) > 1000
    assert {time.device for time in times} == {"nvidia-h200"}
    with pytest.raises(ConfigError, match=r"no corpus 'h100'; give a file FILE.h5, or one of nvidia-h200"):
        measured_corpus("h100")
    with pytest.raises(ConfigError, match="launches_per_kernel is -1"):
        measured_corpus("nvidia-h200", launches_per_kernel=-1)


def test_times_of_another_corpus_are_refused(corpus: Corpus, tmp_path: Path):
    build_corpus(2, [find_device("h200")], launches_per_kernel=2, seed=6).save(tmp_path / "c.h5")
    with pytest.raises(FormatError, match="has times of the corpus"):
        measured_corpus(str(tmp_path / "c.h5"))
