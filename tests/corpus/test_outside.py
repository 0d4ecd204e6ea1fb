"""Outside sources: folders, tables, packages; and what comes of all their kernels together."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from perfvec.corpus.completion import complete
from perfvec.corpus.outside import OutsideSource, load_packages, load_sources
from perfvec.corpus.survey import NO_KERNEL, NOT_COMPILED, OK, TOO_LONG, count_reasons, survey
from perfvec.errors import ConfigError, SourceError
from perfvec.program.frontend import kernel_names
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


def test_a_kernel_that_takes_too_long_costs_itself_alone(tmp_path: Path, front_end: None):
    (tmp_path / "a.cl").write_text(ADD + ADD.replace("add", "more"))
    outcomes = list(survey(load_sources(tmp_path), num_processes=1, limit_s=100.0))
    assert [(outcome.kernel_name, outcome.reason) for outcome in outcomes] == [("add", OK), ("more", OK)]
    outcomes = list(survey(load_sources(tmp_path) * 2, num_processes=1, limit_s=1e-9))
    assert {outcome.reason for outcome in outcomes} == {TOO_LONG}
    assert all(outcome.cause for outcome in outcomes)


def test_an_image_that_would_fill_the_memory_is_no_launch(front_end: None):
    """Each check run finds texels outside: the image doubles until it is larger than allowed."""
    text = (
        "kernel void far(read_only image3d_t a, global float* b) { const sampler_t s = CLK_ADDRESS_NONE;"
        " int i = get_global_id(0); b[i] = read_imagef(a, s, (int4)(i * i * i - i, i, i, 0)).x; }"
    )
    (outcome,) = survey([OutsideSource(name="far.cl", text=text)])
    assert outcome.reason in ("leaves its buffers", "no launch of an allowed size")


# ---- completion -------------------------------------------------------------------------------------------------

TEMPLATE = """
#include "deep/one.h"
kernel void k(global DTYPE* a, global ${other.ctype}* b) {
  DTYPE sums[COUNT];
  for (int i = 0; i < COUNT; ++i) sums[i] = (CAST)b[i];
  a[get_global_id(0)] = twice(sums[0]) + ONE;
}
"""


def test_a_source_gets_what_it_lacks(tmp_path: Path, front_end: None):
    (tmp_path / "include" / "deep").mkdir(parents=True)
    (tmp_path / "include" / "deep" / "one.h").write_text("#define ONE 1.0f")
    (tmp_path / "more.cl").write_text("float twice(float x)\n{ return 2 * x; }\n")
    (tmp_path / "k.cl").write_text(TEMPLATE)
    source = next(source for source in load_sources(tmp_path) if source.name == "k.cl")
    completed = complete(source, [tmp_path])
    assert set(completed.added) == {
        "text that its package puts in", "header deep/one.h", "function twice of more.cl", "type DTYPE",
        "type other_ctype", "type CAST", "macro COUNT",
    }  # fmt: skip
    assert "-DCOUNT=8" in completed.source.build_options
    with quick_machine_code():
        (outcome,) = survey([source], completed_from=[tmp_path])
        (as_it_lies,) = survey([source])
    assert (outcome.kernel_name, outcome.reason) == ("k", OK)
    assert as_it_lies.reason == NOT_COMPILED


def test_what_cannot_be_completed_says_why(front_end: None):
    source = OutsideSource(name="bad.cl", text="% if x:\nkernel void k(global float* a) { a[0] = 1; }\n% endif")
    with pytest.raises(SourceError, match=r"bad\.cl does not compile"):
        complete(source)


def test_the_macros_of_clij_follow_the_images_dimensions(tmp_path: Path, front_end: None):
    reads = "".join(
        f"float read_buffer{dims}df(int w, int h, int d, global float* i, sampler_t s, int{2 * dims - 2} p) {{"
        " return i[p.x + w * p.y]; }\n"
        f"void write_buffer{dims}df(int w, int h, int d, global float* i, int{2 * dims - 2} p, float v) {{"
        " i[p.x + w * p.y] = v; }\n"
        for dims in (2, 3)
    )
    (tmp_path / "preamble.cl").write_text(reads + "#define clij_convert_float_sat convert_float\n")
    (tmp_path / "copy_3d_to_2d.cl").write_text(
        "constant sampler_t s = CLK_ADDRESS_CLAMP_TO_EDGE;\n"
        "kernel void copy(IMAGE_src_TYPE src, IMAGE_dst_TYPE dst) {\n"
        "  int x = get_global_id(0), y = get_global_id(1);\n"
        "  float v = READ_src_IMAGE(src, s, POS_src_INSTANCE(x, y, GET_IMAGE_DEPTH(src) - 1, 0));\n"
        "  WRITE_dst_IMAGE(dst, (int2)(x, y), CONVERT_dst_PIXEL_TYPE(v));\n}\n"
    )
    source = next(source for source in load_sources(tmp_path) if "copy" in source.name)
    text = complete(source, [tmp_path]).source.text
    assert "#define WRITE_dst_IMAGE(i, a, b) write_buffer2df" in text
    assert kernel_names(complete(source, [tmp_path]).module) == ("copy",)
