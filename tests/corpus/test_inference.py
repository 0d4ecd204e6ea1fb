"""Inferred arguments: known answers for small kernels, repairs by check runs, and what cannot be inferred."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perfvec.corpus.inference import infer_launches
from perfvec.errors import BudgetError, KernelNotFoundError, LaunchError, MemoryAccessError, SourceError
from tests.corpus.inferred_kernels import KNOWN, Known
from tests.program.launching import execute, quick_machine_code

pytestmark = pytest.mark.usefixtures("front_end")


@pytest.mark.parametrize("name", KNOWN)
def test_arguments_of_small_kernels(name: str):
    known = KNOWN[name]
    with quick_machine_code():
        (inferred,) = infer_launches(known.source, "k", global_size=known.global_size, local_size=known.local_size)
    assert [str(argument.argument).split("~")[0] for argument in inferred.arguments] == list(known.args)
    assert tuple(argument.role for argument in inferred.arguments) == known.roles
    assert inferred.launch.args == tuple(argument.argument for argument in inferred.arguments)
    assert inferred.launch.global_offset == known.global_offset
    assert inferred.launch.local_size == (known.local_size or known.chosen)
    assert len(inferred.demands) == len(known.demands)
    assert all(part in demand for part, demand in zip(known.demands, inferred.demands, strict=True))
    assert inferred.repairs == ()  # the analysis alone was right


@pytest.mark.parametrize("name", ["guarded", "halo without guard", "sparse rows", "counter", "images"])
def test_all_work_groups_stay_within_the_buffers(name: str):
    known: Known = KNOWN[name]
    (inferred,) = infer_launches(known.source, "k", global_size=known.global_size, local_size=known.local_size)
    with quick_machine_code():
        assert execute(inferred.launch).keys() == {
            i for i, a in enumerate(inferred.launch.args) if str(a).startswith(("buffer", "image"))
        }


# ---- what the analysis cannot know ------------------------------------------------------------------------------


def infer(source: str, *, global_size: int = 256, **options: object):
    with quick_machine_code():
        (inferred,) = infer_launches(source, "k", global_size=global_size, **options)  # pyright: ignore
    return inferred


def test_a_check_run_lets_a_buffer_grow():
    # The index is made of a hash that no polynomial tells; & 1023 comes too late for its range to be known.
    source = """kernel void k(global float* a) {
        uint h = get_global_id(0); uint r = 0; for (int j = 0; j < 10; j++) { r = r * 2 + (h ^ (h >> 1)) % 2; h /= 2; }
        a[r] = 1.0f; }"""
    inferred = infer(source)
    assert "a grew to" in inferred.repairs[0]
    assert inferred.launch.buffer_bytes >= 4 * 256
    execute(inferred.launch)


def test_a_check_run_makes_numbers_smaller_that_the_program_s_arrays_cannot_hold():
    # The sum of what is loaded is an index of an array of 64: no more than 8 times a number.
    source = """kernel void k(global const int* a, global int* b) {
        local int t[64]; int s = 0; t[get_local_id(0)] = 0;
        for (int j = 0; j < 8; j++) s += a[(get_global_id(0) + j) % 256]; atomic_inc(&t[s]);
        b[get_global_id(0)] = s; }"""
    inferred = infer(source, local_size=(64,))
    assert any("numbers in buffers are at most" in text for text in inferred.repairs)
    execute(inferred.launch)


def test_loops_are_shortened_that_run_past_the_budget():
    source = """kernel void k(global float* a, int n, int m, int p, int q) { float s = 0.0f;
        for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) for (int l = 0; l < p; l++) for (int o = 0; o < q; o++)
          for (int r = 0; r < n; r++) s = s * 0.5f + a[i] + a[j] + a[l] + a[o] + a[r];
        a[get_global_id(0) + 64] = s; }"""
    inferred = infer(source, global_size=4096)
    assert "fewer iterations" in inferred.repairs[0]


def test_scalars_may_be_given():
    inferred = infer(KNOWN["guarded"].source, scalars={"n": 100})
    assert [str(a).split(":")[2] for a in inferred.launch.args[:2]] == ["100", "100"]
    assert (str(inferred.launch.args[2]), inferred.arguments[2].role) == ("int32:100", "given")


def test_several_sizes_and_default_sizes():
    several = infer_launches(KNOWN["guarded"].source, "k", global_size=[(64,), (128,)])
    assert [inferred.launch.global_size for inferred in several] == [(64,), (128,)]
    assert [str(inferred.launch.args[2]) for inferred in several] == ["int32:64", "int32:128"]
    dimensions = [
        infer_launches(KNOWN[name].source, "k", is_checked=False)[0].launch.global_size
        for name in ("guarded", "rows", "volume")
    ]
    assert dimensions == [(65536,), (256, 256), (32, 32, 32)]


def test_a_default_size_shrinks_until_the_buffers_fit():
    # n * n floats within 1 MiB: 512 work-items
    source = """kernel void k(global float* a, int n) { int i = get_global_id(0);
        if (i < n) for (int j = 0; j < n; j++) a[i * n + j] = 0.0f; }"""
    (inferred,) = infer_launches(source, "k", max_bytes=1 << 20)
    assert inferred.launch.global_size == (512,)
    with pytest.raises(LaunchError, match="need 4194304 bytes together; 1048576 are allowed"):
        infer(source, global_size=1024, max_bytes=1 << 20)


def test_a_local_size_that_no_array_fits_is_left_out():
    source = """kernel void k(global float* a) { local float t[48]; t[get_local_id(0)] = 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE); a[get_global_id(0)] = t[0]; }"""
    assert infer(source).launch.local_size == (32,)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("kernel void k(global float* a) { a[0] = x; }", SourceError, "does not compile"),
        ("kernel void other(global float* a) { a[0] = 1; }", KernelNotFoundError, "its kernels are: other"),
        ("kernel void k(global int* a) { while (1) atomic_inc(a); }", BudgetError, "ran past the budget"),
        (
            "kernel void k(global int* a) { local int t[4]; t[get_local_id(0) + 5] = 1; a[0] = t[3]; }",
            MemoryAccessError,
            "of local 't', which has 16 bytes",
        ),
    ],
)
def test_what_has_no_launch(source: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        infer(source)


def test_a_scalar_that_is_none_is_refused():
    with pytest.raises(LaunchError, match="no argument 'm'; its arguments are: a, b, n"):
        infer(KNOWN["guarded"].source, scalars={"m": 1})


def test_reasons_can_be_read():
    inferred = infer(KNOWN["early return"].source)
    assert [a.reason for a in inferred.arguments] == [
        "reads byte 4*get_global_id(0) (line 1)",
        "lets all work-items do n - 1 > get_global_id(0) (line 1)",
    ]


ROWS = """
__kernel void rows(__global const float* values, __global const int* first, const int num_rows, const int width,
                   __global float* out) {
  int lane = get_local_id(0) % width;
  int row = get_group_id(0) * (get_local_size(0) / width) + get_local_id(0) / width;
  if (row < num_rows) {
    float sum = 0;
    for (int at = first[row] + lane; at < first[row + 1]; at += width) sum += values[at];
    if (lane == 0) out[row] = sum;
  }
}
"""
_INFER_ROWS = (
    "import sys; from perfvec.corpus.inference import infer_launches; "
    "print(infer_launches(sys.stdin.read(), 'rows', global_size=4096)[0].launch.recipe()['args'])"
)


def test_every_process_infers_the_same(front_end: None):
    """Two divisions could decide `width`; which is looked at first must not follow from Python's hashes of texts."""
    told = {
        subprocess.run(
            [sys.executable, "-c", _INFER_ROWS],
            input=ROWS,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(told) == 1
    assert "int32:16" in told.pop()  # about the square root of the work-group's 256
