"""What each command loads before it does its work, and where compiled code is kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfvec
from tests.opencl import oclgrind_device

HEAVY = {"torch", "numba", "llvmlite", "h5py", "sklearn", "scipy", "pandas", "lightning", "pyopencl", "matplotlib"}
MAIN = """
import json, sys
from perfvec.cli import main
main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    json.dump(sorted({name.split(".")[0] for name in sys.modules}), file)
"""
SAXPY = "kernel void saxpy(global float *y, global const float *x) { y[get_global_id(0)] += x[get_global_id(0)]; }"
LAUNCH = ("--kernel", "saxpy", "--global", "64", "--local", "32", *("--arg", "buffer:float32:64") * 2)


def loaded(folder: Path, *words: str) -> set[str]:
    """Heavy packages that a process has loaded once a command has ended."""
    names = folder / "names.json"
    subprocess.run([sys.executable, "-c", MAIN, str(names), *words], check=True, capture_output=True, cwd=folder)
    found = set(json.loads(names.read_text()))
    assert "perfvec" in found
    return found & HEAVY


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("predict", "--help"), ("trace", "--help")])
def test_help_loads_nothing_heavy(words: tuple[str, ...], tmp_path: Path):
    assert loaded(tmp_path, *words) == set()


def test_devices_loads_the_model_for_its_expected_errors(tmp_path: Path):
    assert loaded(tmp_path, "devices") <= {"h5py", "torch"}


def test_trace_and_predict_load_what_they_use(tmp_path: Path):
    oclgrind_device()
    (tmp_path / "saxpy.cl").write_text(SAXPY)
    traced = loaded(tmp_path, "trace", "saxpy.cl", *LAUNCH, "--output", "trace.h5")
    assert (tmp_path / "trace.h5").is_file()
    # numba loads SciPy where it is installed; pyopencl reaches the front end.
    assert traced <= {"numba", "llvmlite", "h5py", "scipy", "pyopencl"}
    assert loaded(tmp_path, "predict", "saxpy.cl", *LAUNCH) <= {*traced, "torch"}


@pytest.fixture
def unwritable(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the inner loops beside which nothing can be written, for the super-user neither; its environment."""
    package = Path(perfvec.__file__).parent
    core = tmp_path / "perfvec" / "program" / "core"
    shutil.copytree(package / "program" / "core", core, ignore=shutil.ignore_patterns("__pycache__"))
    (core / "__pycache__").write_text("a file where a folder would have to be")
    for name in ("__init__.py", "version.py", "program/__init__.py"):
        shutil.copy(package / name, tmp_path / "perfvec" / name)
    nowhere = "/proc/nowhere"
    changed = {"PYTHONPATH": str(tmp_path), "HOME": nowhere, "XDG_CACHE_HOME": nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
    return tmp_path, {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | changed


COUNT = "from perfvec.program.core import bits; print(bits.__file__, bits.count_lanes(0b1011))"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder in which nobody can write")
def test_inner_loops_run_where_no_folder_can_be_written(unwritable: tuple[Path, dict[str, str]]):
    folder, environment = unwritable
    run = [sys.executable, "-c", COUNT]
    ended = subprocess.run(run, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    assert ended.stdout.split() == [str(folder / "perfvec" / "program" / "core" / "bits.py"), "3"]
    assert "set NUMBA_CACHE_DIR" in ended.stderr


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder in which nobody can write")
def test_compiled_code_goes_to_the_users_cache_where_the_package_is_read_only(
    unwritable: tuple[Path, dict[str, str]], tmp_path: Path
):
    folder, environment = unwritable
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    run = [sys.executable, "-c", COUNT]
    ended = subprocess.run(run, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    assert ended.stdout.split()[1] == "3"
    assert ended.stderr == ""
    assert list((tmp_path / "cache").rglob("*.nbi"))
