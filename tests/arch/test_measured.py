from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import h5py
import numpy as np
import pytest

from perfvec.arch import measured
from perfvec.arch.measured import MeasuredTable, MeasuredTime, load_measured
from perfvec.errors import FormatError

A = MeasuredTime(
    digest="00000000000000ab",
    device="nvidia-h200",
    kernel_time_s=1.25e-5,
    spread=0.0125,
    num_repeats=17,
    min_s=1.2e-5,
    launch_overhead_s=5.9e-6,
    driver="580.1",
    date="2026-12-01",
    name="dense/gemm/TILE=16/M=1,µ=2",
)
B = dataclasses.replace(A, digest="f" * 16, name="", kernel_time_s=3.0, min_s=3.0, spread=math.nan, num_repeats=1)
C = dataclasses.replace(A, device="amd-epyc-2core-pocl", driver="3.1", launch_overhead_s=2e-5, kernel_time_s=1e-3)
TABLE = MeasuredTable(times=(A, B, C))


def assert_same(left: MeasuredTime, right: MeasuredTime) -> None:
    for item in dataclasses.fields(MeasuredTime):
        one, other = getattr(left, item.name), getattr(right, item.name)
        if item.name in ("kernel_time_s", "min_s", "launch_overhead_s"):
            assert one == pytest.approx(other, rel=1e-7)  # float32
        elif item.name == "spread":
            assert one == pytest.approx(other, rel=1e-3, nan_ok=True)  # float16
        else:
            assert one == other


def test_round_trip(tmp_path: Path):
    TABLE.save(tmp_path / "x.h5")
    loaded = MeasuredTable.load(tmp_path / "x.h5")
    assert len(loaded.times) == 3
    for left, right in zip(loaded.times, TABLE.times, strict=True):
        assert_same(left, right)
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["kernel_time_s"].attrs["units"] == "s"
        assert set(file) == set(measured._DATASETS)


def test_an_empty_table_round_trips(tmp_path: Path):
    MeasuredTable().save(tmp_path / "x.h5")
    assert MeasuredTable.load(tmp_path / "x.h5") == MeasuredTable()


def test_ten_thousand_times_stay_small(tmp_path: Path):
    rng = np.random.default_rng(0)
    digests, values = rng.integers(0, 2**62, 10_000), rng.lognormal(-9, 2, 10_000)
    times = [
        dataclasses.replace(A, digest=f"{digest:016x}", name=f"dense/gemm/TILE=16/M={i},N=256", kernel_time_s=value)
        for i, (digest, value) in enumerate(zip(digests, values, strict=True))
    ]
    MeasuredTable(times=tuple(times)).save(tmp_path / "x.h5")
    assert (tmp_path / "x.h5").stat().st_size < 300_000


def test_lookup_and_matrix():
    assert TABLE.lookup(A.digest, "nvidia-h200") is A
    assert TABLE.lookup(B.digest, "amd-epyc-2core-pocl") is None
    assert TABLE.devices == ("amd-epyc-2core-pocl", "nvidia-h200")
    assert TABLE.digests == (A.digest, B.digest)
    matrix = TABLE.matrix(TABLE.digests, ("nvidia-h200", "amd-epyc-2core-pocl"))
    np.testing.assert_array_equal(matrix.kernel_time_s, [[1.25e-5, 1e-3], [3.0, np.nan]])
    np.testing.assert_array_equal(matrix.spread, [[0.0125, 0.0125], [np.nan, np.nan]])
    np.testing.assert_array_equal(matrix.launch_overhead_s, [[5.9e-6, 2e-5], [5.9e-6, np.nan]])


def test_merge_keeps_the_later_day():
    older = dataclasses.replace(A, date="2026-11-30", kernel_time_s=9.0)
    newer = dataclasses.replace(A, date="2026-12-02", kernel_time_s=9.0)
    same_day = dataclasses.replace(A, kernel_time_s=9.0)
    assert TABLE.merge([older]).lookup(A.digest, A.device) is A
    assert TABLE.merge(MeasuredTable(times=(newer,))).lookup(A.digest, A.device) is newer
    assert TABLE.merge([same_day]).lookup(A.digest, A.device) is same_day
    assert len(TABLE.merge([newer]).times) == 3


def test_several_files_load_together(tmp_path: Path):
    MeasuredTable(times=(A, B)).save(tmp_path / "a.h5")
    MeasuredTable(times=(C,)).save(tmp_path / "b.h5")
    assert len(load_measured(tmp_path).times) == 3
    with pytest.raises(FormatError, match=r"measured times .* does not exist; give one that holds"):
        load_measured(tmp_path / "none")


def test_the_shipped_times_load():
    assert isinstance(load_measured(), MeasuredTable)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"digest": "AB"}, "digest 'AB'; allowed are 16 hex digits"),
        ({"kernel_time_s": 0.0}, "kernel_time_s=0.0.*profiling timer does not resolve"),
        ({"kernel_time_s": math.nan}, "kernel_time_s=nan"),
        ({"num_repeats": 0}, "num_repeats=0; allowed are 1 to 65535"),
        ({"name": "a\nb"}, "has a line break"),
    ],
)
def test_impossible_times_are_refused(changes, message):
    with pytest.raises(FormatError, match=message):
        dataclasses.replace(A, **changes)


def test_two_times_of_one_launch_are_refused():
    with pytest.raises(FormatError, match="two times on nvidia-h200; a table holds one"):
        MeasuredTable(times=(A, dataclasses.replace(A, kernel_time_s=1.0)))


def damage(file: h5py.File, name: str, data) -> None:
    del file[name]
    file[name] = data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.attrs.modify("format_version", 2), "format version 2; this release reads 1"),
        (lambda file: file.attrs.modify("format", "perfvec-trace"), "holds 'perfvec-trace', not 'perfvec-measured'"),
        (lambda file: file.__delitem__("min_s"), "is damaged.*min_s"),
        (lambda file: damage(file, "min_s", np.ones(2, "f4")), "is damaged"),
        (lambda file: damage(file, "time_launch", np.full(3, 7, "u4")), "is damaged"),
        (lambda file: damage(file, "session", np.frombuffer(b"[{}]", np.uint8)), "is damaged"),
        (lambda file: damage(file, "session", np.frombuffer(b"{", np.uint8)), "is damaged"),
        (lambda file: damage(file, "name", np.frombuffer(b"a", np.uint8)), "is damaged: 1 names for 2 launches"),
        (lambda file: damage(file, "kernel_time_s", np.zeros(3, "f4")), "is damaged: launch .* kernel_time_s=0.0"),
    ],
)
def test_damaged_and_future_files_are_refused(tmp_path: Path, change, message):
    path = tmp_path / "x.h5"
    TABLE.save(path)
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(FormatError, match=message):
        MeasuredTable.load(path)


def test_cut_and_missing_files_are_refused(tmp_path: Path):
    path = tmp_path / "x.h5"
    TABLE.save(path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(FormatError, match="not a readable HDF5 file"):
        MeasuredTable.load(path)
    with pytest.raises(FormatError, match="does not exist"):
        MeasuredTable.load(tmp_path / "y.h5")
