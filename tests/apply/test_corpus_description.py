"""Descriptions: counted by hand over a small corpus, a small suite and tables made up for them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from perfvec.apply.corpus_description import describe, describe_shipped
from perfvec.arch.device import find_device
from perfvec.arch.measured import MeasuredTable
from perfvec.corpus.family_splits import split_of
from perfvec.corpus.generated import Corpus, build_corpus
from perfvec.corpus.times import CorpusTimes, times_path
from tests.apply.tiny import measured_time, suites
from tests.corpus.test_times import TIME


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return build_corpus(10, [find_device("nvidia-h200")], launches_per_kernel=3, seed=4)


def test_a_corpus_without_times(corpus: Corpus):
    found = describe(corpus)
    entries = list(corpus.entries())
    assert (found.kernels, found.launches) == (10, 30)
    assert found.families == len({entry.family for entry in entries}) == len(found.family_kernels)
    assert found.devices == {"nvidia-h200": {"launches": 30}}
    assert found.share_tied_to_global_size == pytest.approx(sum(entry.is_size_tied for entry in entries) / 30)
    for shares in (found.type_shares, found.width_shares, found.dim_shares, found.fill_shares):
        assert sum(shares.values()) == pytest.approx(1.0)
    families = {entry.kernel: entry.family for entry in entries}
    for split, count in found.split_kernels.items():
        assert count == sum(split_of(family) == split for family in families.values())


def test_times_are_told_by_device(corpus: Corpus):
    times = CorpusTimes(corpus_digest="x")
    for row, time_s in ((0, 5e-6), (1, 8e-6), (29, 2e-3), (28, 1e-4)):
        times.add(row, dataclasses.replace(TIME, kernel_time_s=time_s, min_s=time_s, num_repeats=10 + row % 2))
    times.fail(2, "nvidia-h200", "does not compile")
    device = describe(corpus, times).devices["nvidia-h200"]
    assert device["launches"] == 4
    assert device["kernels"] == 2
    assert device["median_s"] == pytest.approx(5.4e-5)
    assert (device["under_10_us"], device["over_1_ms"], device["failed"]) == (0.5, 0.25, 1)
    assert device["spread"] == pytest.approx(TIME.spread)
    assert device["repeats"] == 10.5
    assert device["launch_overhead_s"] == pytest.approx(TIME.launch_overhead_s)


def test_suites_and_corpora_together(tmp_path: Path, corpus: Corpus):
    entries = suites(tmp_path)
    for name in ("corpus", "measured"):
        (tmp_path / name).mkdir()
    MeasuredTable(times=tuple(measured_time(entry, "nvidia-h200", 1e-3) for entry in entries[:3])).save(
        tmp_path / "measured" / "x.h5"
    )
    path = tmp_path / "corpus" / "c.h5"
    corpus.save(path)
    times = CorpusTimes(corpus_digest=corpus.digest())
    times.add(4, TIME)
    times.add(5, dataclasses.replace(TIME, device="nvidia-tesla-t4"))
    times.save(times_path(path))
    found = describe_shipped(tmp_path)
    assert found.launches == 30 + len(entries)
    assert found.kernels == 10 + len({(entry.suite, entry.kernel) for entry in entries})
    assert {name: item["launches"] for name, item in found.devices.items()} == {
        "nvidia-h200": 4, "nvidia-tesla-t4": 1,
    }  # fmt: skip
    assert found.suites["generated"] == 30
    assert set(found.suites) == {"generated", "one", "two"}
