from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import h5py
import numpy as np
import pytest

from perfvec.apply.tracing import launch_of, read_stored, trace, trace_to_file
from perfvec.arguments import parse_argument
from perfvec.errors import BudgetError, ConfigError, FormatError
from perfvec.launch import Launch
from perfvec.program.core import windows
from perfvec.trace_data import Trace, TraceSummary
from tests.apply.tiny import suites
from tests.opencl import oclgrind_device


def test_a_stored_launch_and_a_stored_trace_are_told_apart(tmp_path: Path):
    launch = suites(tmp_path / "suites")[0].launch
    launch.save(tmp_path / "launch.h5")
    traced = trace(launch)
    traced.save(tmp_path / "trace.h5")
    assert read_stored(tmp_path / "launch.h5") == launch
    stored = read_stored(tmp_path / "trace.h5")
    assert isinstance(stored, Trace)
    assert launch_of(stored) == launch_of(launch) == launch


def test_files_of_another_kind_are_refused(tmp_path: Path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.attrs["format"] = "perfvec-measured"
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(FormatError, match="holds 'perfvec-measured'; allowed are perfvec-launch and perfvec-trace"):
        read_stored(tmp_path / "other.h5")
    with pytest.raises(FormatError, match="not a readable HDF5 file"):
        read_stored(tmp_path / "text.h5")
    with pytest.raises(FormatError, match="does not exist"):
        read_stored(tmp_path / "absent.h5")


def test_the_number_of_work_groups_and_the_budget_are_passed_on(tmp_path: Path):
    launch = suites(tmp_path, sizes=(64 * 40,))[0].launch
    traced = trace(launch, work_groups=10)
    assert len(set(traced.sub_groups["work_group"].tolist())) <= 12
    assert len(set(trace(launch, work_groups="all").sub_groups["work_group"].tolist())) == 40
    with pytest.raises(ConfigError, match="work_groups is 0; give 1 or more, or all"):
        trace(launch, work_groups=0)
    with pytest.raises(BudgetError, match="ran past the budget of 10 "):
        trace(launch, budget=10)


def test_what_a_kernel_prints_is_handed_on():
    launch = Launch(
        source='kernel void k(global int *o) { printf("%d;", o[0]); }',
        kernel_name="k",
        args=(parse_argument("buffer:int32:1:constant(7)", position=0),),
        global_size=(3,),
        local_size=(3,),
    )
    texts: list[str] = []
    trace(launch, on_printf=texts.append)
    assert texts == ["7;7;7;"]
    trace(launch)
    assert texts == ["7;7;7;"]


IRREGULAR = """
kernel void chase(global const int *next, global int *out) {
    int at = get_global_id(0), steps = next[at] & 15;
    for (int i = 0; i < steps; ++i)
        at = next[at] % 5000;
    out[get_global_id(0)] = at;
}
"""


def irregular() -> Launch:
    """A launch with many distinct windows."""
    return Launch(
        source=IRREGULAR,
        kernel_name="chase",
        args=(parse_argument("buffer:int32:5000:indices(5000)~3"), parse_argument("buffer:int32:5000")),
        global_size=(4992,),
        local_size=(64,),
    )


@pytest.mark.parametrize("piece", [1 << 10, 1 << 16])
def test_a_trace_that_goes_to_its_file_piece_by_piece_is_the_trace(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    oclgrind_device()
    whole = trace(irregular(), work_groups="all")
    assert len(whole.token_static) > 2 << 10
    monkeypatch.setattr("perfvec.program.record._MANY_WORDS", 2 * windows.MAX_WORDS + piece)
    monkeypatch.setattr("perfvec.program.record._MANY_ENTRIES", piece >> 6)
    monkeypatch.setattr("perfvec.trace_data._CHUNK_ROWS", piece)
    summary = trace_to_file(irregular(), tmp_path / "trace.h5", work_groups="all")
    stored = Trace.load(tmp_path / "trace.h5")
    for field in fields(Trace):
        assert np.array_equal(getattr(stored, field.name), getattr(whole, field.name)), field.name
    for field in fields(TraceSummary):
        assert np.array_equal(getattr(summary, field.name), getattr(whole.summary, field.name)), field.name
    assert summary.num_launch_instructions == whole.token_weight.sum()


def test_a_trace_that_fails_leaves_no_file(tmp_path: Path):
    oclgrind_device()
    with pytest.raises(BudgetError, match="past the budget of 100 "):
        trace_to_file(irregular(), tmp_path / "trace.h5", work_groups="all", budget=100)
    assert list(tmp_path.iterdir()) == []
