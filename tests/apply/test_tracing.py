from __future__ import annotations

from pathlib import Path

import h5py
import pytest

from perfvec.apply.tracing import launch_of, read_stored, trace
from perfvec.arguments import parse_argument
from perfvec.errors import BudgetError, ConfigError, FormatError
from perfvec.launch import Launch
from perfvec.trace_data import Trace
from tests.apply.tiny import suites


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
