from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import h5py
import numpy as np
import pytest

from perfvec.arch.measured import MeasuredTime
from perfvec.corpus.times import CorpusTimes
from perfvec.errors import FormatError

TIME = MeasuredTime(
    digest="00000000000000ab",
    device="nvidia-h200",
    kernel_time_s=1.25e-5,
    spread=0.0125,
    num_repeats=17,
    min_s=1.2e-5,
    launch_overhead_s=5.9e-6,
    driver="580.1",
    date="2026-12-01",
)
OTHER = dataclasses.replace(TIME, device="cpu", kernel_time_s=3.0, min_s=3.0, spread=math.nan, num_repeats=1)


def table() -> CorpusTimes:
    times = CorpusTimes(corpus_digest="abc")
    times.add(7, TIME)
    times.add(3, dataclasses.replace(TIME, kernel_time_s=2.5e-5, min_s=2.5e-5))
    times.add(7, OTHER)
    times.fail(4, "nvidia-h200", "does not compile")
    times.fail(5, "nvidia-h200", "does not compile")
    times.fail(3, "cpu", "ends its process")
    return times


def test_round_trip(tmp_path: Path):
    table().save(tmp_path / "t.h5")
    again = CorpusTimes.load(tmp_path / "t.h5", corpus_digest="abc")
    assert again.times.keys() == table().times.keys()
    for key, time in table().times.items():
        assert again.times[key].session == time.session
        assert again.times[key].num_repeats == time.num_repeats
        assert again.times[key].kernel_time_s == pytest.approx(time.kernel_time_s, rel=1e-7)  # float32
        assert again.times[key].min_share == time.min_share  # float16 before and after
        assert again.times[key].spread == pytest.approx(time.spread, rel=1e-3, nan_ok=True)
    assert again.failures == table().failures
    assert again.devices == ("cpu", "nvidia-h200")
    assert again.known("nvidia-h200") == {3, 4, 5, 7}
    assert again.reasons("nvidia-h200") == {"does not compile": 2}
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["kernel_time_s"].attrs["units"] == "s"


def test_an_empty_table_round_trips(tmp_path: Path):
    CorpusTimes(corpus_digest="abc").save(tmp_path / "t.h5")
    assert CorpusTimes.load(tmp_path / "t.h5") == CorpusTimes(corpus_digest="abc")


def test_times_by_row_and_as_records_of_suites():
    times = table()
    np.testing.assert_array_equal(times.kernel_time_s("nvidia-h200", 9)[[3, 7]], [2.5e-5, 1.25e-5])
    assert np.isnan(times.kernel_time_s("nvidia-h200", 9)).sum() == 7
    record = times.measured(7, "nvidia-h200", TIME.digest)
    assert record is not None
    assert record.min_s == pytest.approx(TIME.min_s, rel=1e-3)  # float16
    assert dataclasses.replace(record, min_s=TIME.min_s, launch_overhead_s=TIME.launch_overhead_s) == TIME
    assert times.measured(4, "nvidia-h200", TIME.digest) is None


def test_a_time_takes_the_place_of_a_failure():
    times = table()
    times.add(4, TIME)
    assert (("nvidia-h200", 4) in times.times, ("nvidia-h200", 4) in times.failures) == (True, False)


def test_a_hundred_thousand_times_stay_small(tmp_path: Path):
    rng = np.random.default_rng(0)
    times = CorpusTimes(corpus_digest="abc")
    for row, value in enumerate(rng.lognormal(-9, 2, 10_000).tolist()):
        spread, share = rng.uniform(0, 0.03, 2).tolist()
        repeats = int(rng.integers(2, 40))
        times.add(
            row,
            dataclasses.replace(
                TIME, kernel_time_s=value, min_s=value * (1 - share), spread=spread, num_repeats=repeats
            ),
        )
    times.save(tmp_path / "t.h5")
    assert (tmp_path / "t.h5").stat().st_size < 12 * 10_000  # so 120,000 of them take 1.4 MB


def test_other_files_are_refused(tmp_path: Path):
    table().save(tmp_path / "t.h5")
    with pytest.raises(FormatError, match="has times of the corpus abc, not of abd; give the corpus that was measured"):
        CorpusTimes.load(tmp_path / "t.h5", corpus_digest="abd")
    with h5py.File(tmp_path / "t.h5", "a") as file:
        file["kernel_time_s"][0] = -1.0
    with pytest.raises(FormatError, match=r"is damaged: kernel_time_s=-1\.0"):
        CorpusTimes.load(tmp_path / "t.h5")
    with pytest.raises(FormatError, match="does not exist"):
        CorpusTimes.load(tmp_path / "absent.h5")
