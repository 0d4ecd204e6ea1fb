"""Launches of a data set of sources: made, stored, timed, found again by name, compared. The sources are ours."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.foundation.cgo17 import TABLE, main
from experiments.foundation.cgo17_accuracy import compare, evaluate, measured_launches
from experiments.foundation.cgo17_launches import (
    EVERY_ASK,
    EXPONENTS,
    SUITE,
    Ask,
    LeftOut,
    again,
    launches_of,
    make,
    read_folder,
    write_folder,
)
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.splits import Holdout
from perfvec.apply.trace_cache import TraceCache
from perfvec.arch.measured import MeasuredTable
from perfvec.corpus.outside import OutsideSource, load_sources
from perfvec.corpus.suite import SuiteLaunch
from perfvec.errors import FormatError, LaunchError, ModelError
from tests.apply.tiny import measured_table, suites, tiny_model
from tests.arch.test_session import live_pocl
from tests.opencl import oclgrind_device, shared_file
from tests.program.cgo17 import SOURCES as DATA_SET

DOUBLE = "__kernel void twice(__global float* a, const int n) { int i = get_global_id(0); if (i < n) a[i] *= 2; }"
POWER = """
__kernel void power(__global float* a, const int rounds) {
  float x = a[get_global_id(0)];
  for (int i = 0; i < rounds; ++i) x *= 1.5f;
  a[get_global_id(0)] = x;
}
"""
FIXED = """
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void fixed(__global int* a) { a[get_global_id(0)] = 1; }
"""
PAIRS = """
__kernel void pairs(__global float* a, const int n) {
  float sum = 0;
  int i = get_global_id(0);
  if (i < n) {
    for (int j = 0; j < n; ++j) sum += a[j] * a[j];
    a[i] = sum;
  }
}
"""
SOURCES = [OutsideSource(name=name, text=text) for name, text in (("d", DOUBLE), ("p", POWER))]


@pytest.fixture(scope="module")
def entries(front_end_once: None) -> list[SuiteLaunch]:
    """The smaller launches of both kernels."""
    asks = [Ask(12), Ask(14), Ask(16), Ask(14, "other local size")]
    made = [make(source, name, ask) for source, name in zip(SOURCES, ("twice", "power"), strict=True) for ask in asks]
    return [*made, make(SOURCES[1], "power", Ask(14, "longer loops"))]


@pytest.fixture(scope="module")
def front_end_once() -> None:
    oclgrind_device()


@pytest.mark.parametrize("ask", EVERY_ASK, ids=str)
def test_sizes_have_the_work_items_that_are_asked_for(ask: Ask):
    sizes = ask.sizes()
    assert [len(size) for size in sizes] == [1, 2, 3]
    for size in sizes:
        assert np.prod(size) == 2**ask.exponent
        assert max(size) <= 2 * min(size)


def test_what_differs_is_what_was_asked_for(entries: list[SuiteLaunch]):
    by_name = {entry.name: entry for entry in entries}
    usual = by_name["cgo17/p.power/-/2^14"]
    other = by_name["cgo17/p.power/-/2^14 other local size"]
    longer = by_name["cgo17/p.power/-/2^14 longer loops"]
    assert (usual.launch.global_size, usual.launch.local_size) == ((1 << 14,), (256,))
    assert other.launch.local_size == (64,)
    assert other.launch.args == usual.launch.args
    usual_rounds, longer_rounds = (int(str(entry.launch.args[1]).split(":")[1]) for entry in (usual, longer))
    assert longer_rounds == 8 * usual_rounds
    # Its rounds do not follow from the global size; the size of `twice` does.
    assert [entry.is_size_tied for entry in entries] == 4 * [True] + 5 * [False]
    assert {entry.suite for entry in entries} == {SUITE}


def test_there_is_not_always_something_to_vary(front_end: None):
    with pytest.raises(LaunchError, match="no scalar bounds a loop alone"):
        make(SOURCES[0], "twice", Ask(14, "longer loops"))
    with pytest.raises(LaunchError, match="local size must be"):
        make(OutsideSource(name="f", text=FIXED), "fixed", Ask(14, "other local size"))


def test_a_kernel_gets_the_sizes_that_end_in_time(front_end: None):
    """Work that grows with the square of the size: 2^20 work-items would make 2^40 iterations."""
    (found,) = launches_of([OutsideSource(name="q", text=PAIRS)])
    made = [item.parameters for item in found if isinstance(item, SuiteLaunch)]
    assert made == ["2^12", "2^16", "2^14", "2^16 other local size"]
    left_out = {item.name: item.reason for item in found if isinstance(item, LeftOut)}
    assert list(left_out) == ["cgo17/q.pairs/-/2^18", "cgo17/q.pairs/-/2^16 longer loops"]
    assert "instructions of sub-groups" in left_out["cgo17/q.pairs/-/2^18"]


def test_sources_that_do_not_compile_are_named_without_their_text():
    (found,) = launches_of([OutsideSource(name="bad", text="__kernel void secret(__global float* a) { helper(a); }")])
    assert found == [LeftOut(name="cgo17/bad", reason="SourceError")]


def test_every_kernel_gets_four_sizes_and_more(front_end: None):
    found = [item for part in launches_of(SOURCES) for item in part]
    made = [item.name for item in found if isinstance(item, SuiteLaunch)]
    sizes = [f"2^{exponent}" for exponent in EXPONENTS]
    assert made == [
        *(f"cgo17/d.twice/-/{ask}" for ask in (*sizes, "2^20 other local size")),
        *(f"cgo17/p.power/-/{ask}" for ask in (*sizes, "2^20 other local size", "2^16 longer loops")),
    ]


def test_a_folder_is_read_back_and_names_no_text(entries: list[SuiteLaunch], tmp_path: Path):
    left_out = LeftOut(name="cgo17/x.y/-/2^12", reason="why")
    counts = write_folder(tmp_path / "made", [*entries, left_out, entries[0]])
    assert (counts["launches"], counts["kernels"], counts["not_tied"]) == (9, 2, 5)
    assert (counts["repeated"], counts["left_out"]) == (1, 1)
    assert read_folder(tmp_path / "made") == entries
    manifest = (tmp_path / "made" / "manifest.json").read_text(encoding="utf-8")
    assert "float" not in manifest
    assert json.loads(manifest)["left_out"] == [{"name": "cgo17/x.y/-/2^12", "reason": "why"}]


def test_a_folder_that_was_changed_is_refused(entries: list[SuiteLaunch], tmp_path: Path):
    with pytest.raises(FormatError, match="write the folder again"):
        read_folder(tmp_path)
    write_folder(tmp_path, entries[:2])
    first, second = (tmp_path / f"{entry.launch.digest}.h5" for entry in entries[:2])
    first.write_bytes(second.read_bytes())
    with pytest.raises(FormatError, match="holds the launch"):
        read_folder(tmp_path)


def test_launches_are_found_again_by_name(entries: list[SuiteLaunch]):
    names = [entry.name for entry in entries[2:6]]
    found = [entry for part in again(SOURCES, [*names, "cgo17/p.other/-/2^14"]) for entry in part]
    assert sorted(found, key=lambda entry: names.index(entry.name)) == entries[2:6]


def test_launches_that_are_no_longer_inferred_are_named(entries: list[SuiteLaunch]):
    table = measured_table(entries, ("nvidia-h200",))
    gone = replace(table.times[0], digest="0" * 16, name="cgo17/d.gone/-/2^12")
    other = replace(table.times[1], digest="1" * 16)
    changed = MeasuredTable(times=(gone, other, *table.times[2:]))
    measured = measured_launches(SOURCES, changed)
    assert len(measured.entries) == 7
    assert measured.missing == {
        "cgo17/d.gone/-/2^12": "the inference gives no launch",
        "cgo17/d.twice/-/2^14": "the inference gives another launch",
    }
    with pytest.raises(ModelError, match="none of the 1 measured launches"):
        measured_launches(SOURCES, MeasuredTable(times=(gone,)))


def test_figures_by_hand(entries: list[SuiteLaunch]):
    """Two launches of one kernel and one of another; the model is 10 %, 50 % and 100 % off."""
    chosen = [entries[0], entries[1], entries[4], entries[5]]
    measured = np.array([10e-6, 100e-6, 40e-6, np.nan])
    model = np.array([11e-6, 50e-6, 80e-6, 1.0])
    other = np.array([np.nan, 100e-6, 40e-6, 1.0])
    record = compare(chosen, measured, {"perfvec": model, "timing model": other})
    rows = {(row["predictor"], row["subset"]): row for row in record["rows"]}
    every = rows["perfvec", "all"]
    assert (record["launches"], record["kernels"], every["num_launches"]) == (3, 2, 3)
    assert every["mape"] == pytest.approx((0.1 + 0.5 + 1.0) / 3)
    assert every["mean_of_kernels"] == pytest.approx(((0.1 + 0.5) / 2 + 1.0) / 2)
    assert every["median_log_ratio"] == pytest.approx(np.log(1.1))
    assert every["rank_correlation"] is None  # no kernel has three launches
    assert record["bar"] == {"mape": 0.35, "is_met": False}
    assert rows["perfvec", "over 20 us"]["mape"] == pytest.approx(0.75)
    assert rows["perfvec", "sizes tied to the global size"]["mape"] == pytest.approx(0.3)
    assert rows["perfvec", "sizes not tied"]["mape"] == pytest.approx(1.0)
    assert rows["timing model", "all"]["num_launches"] == 2
    assert rows["timing model", "all"]["mape"] == pytest.approx(0.0)
    assert record["mape_by_launch"]["2^12"] == pytest.approx({"launches": 2, "median_us": 25, "perfvec": 0.55,
                                                             "timing model": 0.0})  # fmt: skip
    assert [item["name"] for item in record["worst"]] == [chosen[2].name, chosen[1].name, chosen[0].name]
    assert record["worst"][0]["perfvec_us"] == pytest.approx(80)


def test_predictors_are_fitted_to_the_suites_and_judged_on_the_data_set(entries: list[SuiteLaunch], tmp_path: Path):
    table = measured_table(entries, ("nvidia-h200",))
    training = suites(tmp_path / "suites", sizes=(64, 256, 512))
    holdout = Holdout(name="test", families=(("one", ("scale",)),))
    settings = {"cache": FeatureCache.open(tmp_path), "traces": TraceCache.open(tmp_path), "num_processes": 0}
    measured = measured_launches(SOURCES, table)
    record = evaluate(measured, table, training, measured_table(training), tiny_model(), holdout, **settings)  # type: ignore[arg-type]
    assert record["baselines_fitted_to"] == 9  # of four kernels one is held out
    told = record["devices"]["nvidia-h200"]
    assert told["launches"] == 9
    assert [row["predictor"] for row in told["rows"] if row["subset"] == "all"] == [
        "perfvec", "constant", "row + column effect", "random forest", "datasheet roofline", "timing model",
    ]  # fmt: skip
    json.dumps(record, allow_nan=False)
    with pytest.raises(ModelError, match="was trained on d"):
        evaluate(measured, table, training, measured_table(training), tiny_model(families=("d",)), holdout, **settings)  # type: ignore[arg-type]


def test_the_command_line_makes_and_times_launches(tmp_path: Path, front_end: None, capsys: pytest.CaptureFixture[str]):
    live_pocl()
    folder = tmp_path / "data" / "cgo17_devmap"
    folder.mkdir(parents=True)
    with gzip.open(folder / "sources.csv.gz", "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("src_id", "src"), ("d", DOUBLE)])
    assert main(["launches", str(tmp_path / "made"), "--data", str(tmp_path / "data")]) == 0
    assert json.loads(capsys.readouterr().out)["launches"] == 5
    number = str(live_pocl().number)
    command = ["measure", str(tmp_path / "made"), str(tmp_path / "t.h5"), "--workers", "1", "--opencl-device", number]
    assert main([*command, "--launches", "2"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (record["num_measured"], record["num_left"], len(record["without_a_time"])) == (2, 3, 3)
    times = MeasuredTable.load(tmp_path / "t.h5").times
    assert {time.digest for time in times} <= {path.stem for path in (tmp_path / "made").glob("*.h5")}
    assert all(time.name.startswith("cgo17/d.twice/-/2^") for time in times)
    assert main(["measure", str(tmp_path), str(tmp_path / "t.h5")]) == 2
    assert "write the folder again" in capsys.readouterr().err


def test_the_measured_launches_are_those_of_the_data_set(front_end: None):
    """Of every sixteenth source; `evaluate` takes all, and names what is missing."""
    if not TABLE.is_file():
        pytest.skip(f"{TABLE.name} is not there: it is made on an H200")
    sources = load_sources(shared_file(DATA_SET))[::16]
    table = MeasuredTable.load(TABLE)
    begin = tuple(f"cgo17/{source.name}." for source in sources)
    asked = MeasuredTable(times=tuple(time for time in table.times if time.name.startswith(begin)))
    measured = measured_launches(sources, asked)
    assert len(measured.entries) >= 20
    assert measured.missing == {}


def test_a_table_that_is_not_there_is_an_error_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["evaluate", "--table", str(tmp_path / "none.h5")]) == 2
    assert "none.h5" in capsys.readouterr().err
