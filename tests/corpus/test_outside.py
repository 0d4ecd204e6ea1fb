"""Outside sources: folders, tables, packages; and what comes of all their kernels together."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from perfvec.corpus.outside import load_packages, load_sources
from perfvec.corpus.survey import NO_KERNEL, NOT_COMPILED, OK, count_reasons, survey
from perfvec.errors import ConfigError
from tests.opencl import shared_file
from tests.program.cgo17 import SOURCES
from tests.program.launching import quick_machine_code

ADD = "kernel void add(global float* a, int n) { int i = get_global_id(0); if (i < n) a[i] += 1.0f; }"
ENDLESS = "kernel void endless(global int* a) { while (1) atomic_inc(a); }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.cl").write_text(ADD)
    (tmp_path / "b" / "one.h").write_text("#define ONE 1.0f")
    (tmp_path / "b" / "c.cl").write_text(
        '#include "one.h"\nkernel void k(global float* a) { a[get_global_id(0)] = ONE; }'
    )
    (tmp_path / "readme.txt").write_text("kernel void not_read()")
    return tmp_path


def test_a_folder(folder: Path):
    sources = load_sources(folder)
    assert [source.name for source in sources] == ["a.cl", "b/c.cl"]
    assert sources[0].text == ADD
    assert sources[1].build_options == (f"-I{folder / 'b'}",)
    assert load_sources(folder / "a.cl")[0].text == ADD


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_table(tmp_path: Path, suffix: str):
    text = f'suite,id,src,note\nx,one,"{ADD}",\nx,two,"{ENDLESS}",y\nx,three,,z\n'
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    assert [(source.name, source.text) for source in load_sources(path)] == [("one", ADD), ("two", ENDLESS)]


def test_a_package_and_texts_in_its_modules(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "b" / "__init__.py").write_text("raise RuntimeError('packages are not imported')")
    (folder / "b" / "kernels.py").write_text(f'A = 1\nB = """{ADD}"""\nC = "kernel"\n')
    monkeypatch.syspath_prepend(folder)
    sources, missing = load_packages(["b", "absent_package", "absent.part"])
    assert [(source.name, source.text == ADD) for source in sources] == [("b/c.cl", False), ("b/kernels.py:2", True)]
    assert missing == ("absent_package", "absent.part")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent", None, "absent is no file and no folder"),
        ("empty", (), "holds no OpenCL sources; files of them end in .cl"),
        ("t.csv", "a,b\n1,2\n", "has no column with OpenCL kernels; its columns are: a, b"),
        ("t.csv", "", "its columns are: none"),
        ("t.csv.gz", "not compressed", "cannot read the table"),
    ],
)
def test_what_is_no_source(tmp_path: Path, name: str, content: str | tuple[()] | None, message: str):
    path = tmp_path / name
    if content == ():
        path.mkdir()
    elif content is not None:
        path.write_text(str(content))
    with pytest.raises(ConfigError, match=message):
        load_sources(path)


def test_each_kernel_is_counted_by_what_came_of_it(folder: Path, front_end: None):
    (folder / "d.cl").write_text("kernel void broken(global float* a) { a[0] = x; }")
    (folder / "e.cl").write_text("float helper(float x) { return x; }")
    (folder / "f.cl").write_text(ENDLESS + ADD.replace("add", "more"))
    with quick_machine_code():
        outcomes = list(survey(load_sources(folder), global_sizes=((256,), (16, 16), (4, 4, 4)), verified_groups=4))
    assert [(o.source, o.kernel_name, o.reason) for o in outcomes] == [
        ("a.cl", "add", OK),
        ("b/c.cl", "k", OK),
        ("d.cl", "", NOT_COMPILED),
        ("e.cl", "", NO_KERNEL),
        ("f.cl", "endless", "does not end within the budget"),
        ("f.cl", "more", OK),
    ]
    assert count_reasons(outcomes) == {OK: 3, NOT_COMPILED: 1, NO_KERNEL: 1, "does not end within the budget": 1}
    assert all((o.inferred is not None) == (o.reason == OK) == (not o.cause) or o.reason == NO_KERNEL for o in outcomes)
    assert "use of undeclared identifier" in outcomes[2].cause


def test_kernels_of_the_cgo17_data_set(front_end: None):
    """Every twelfth source; `python -m experiments.corpus.infer_outside` takes all."""
    sources = load_sources(shared_file(SOURCES))[::12]
    with quick_machine_code():
        outcomes = list(survey(sources, verified_groups=16))
    counts = count_reasons(outcomes)
    assert set(counts) == {OK, NOT_COMPILED}, [o.cause for o in outcomes if o.reason not in (OK, NOT_COMPILED)]
    assert counts[OK] >= 8


def test_the_command_ends_in_one_line_of_json(folder: Path, front_end: None):
    command = [sys.executable, "-m", "experiments.corpus.infer_outside", str(folder), "--groups", "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    record = json.loads(ran.stdout.splitlines()[-1])
    assert (record["sources_compiled"], record["sources_with_launches"], record["share"]) == (2, 2, 1.0)
