"""What kernels and launches must not do ends in an error that says what was wrong and where, never in a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from perfvec.errors import (
    BarrierDivergenceError,
    BudgetError,
    KernelNotFoundError,
    LaunchError,
    MemoryAccessError,
    PerfVecError,
    SourceError,
    UnsupportedError,
)
from perfvec.launch import Launch
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.frontend import keep_kernel
from perfvec.program.machine_code import CompiledKernel
from tests.program import risky_kernels
from tests.program.launching import execute, make_launch
from tests.program.test_counts import SAXPY

pytestmark = pytest.mark.usefixtures("front_end")

BUFFER = "buffer:int32:64"


def _kernel(body: str, *args: str, parameters: str = "", **sizes: int) -> Launch:
    """A kernel with an int buffer `o`, the global id `i` and the local id `l`."""
    source = f"""kernel void k(global int *o{parameters}) {{
        int i = get_global_id(0), l = get_local_id(0);
        {body}
    }}"""
    return make_launch(source, BUFFER, *args, **sizes)


SOURCES = {
    "compiler's message": (_kernel("o[i] = 1 + ;"), SourceError, r"kernel\.cl:3:\d+: error: expected expression"),
    "undeclared name": (_kernel("o[i] = nothing;"), SourceError, "use of undeclared identifier 'nothing'"),
    "inline assembly": (_kernel('__asm__("nop");'), SourceError, "inline_assembly_is_not_OpenCL_C"),
    "kernel name": (
        make_launch("kernel void a(void) {} kernel void b(void) {}"),
        KernelNotFoundError,
        "no kernel 'k' in the program; its kernels are: a, b",
    ),
    "no kernel": (make_launch("int f(void) { return 1; }"), KernelNotFoundError, "its kernels are: none"),
    "image": (
        make_launch(
            "kernel void k(read_only image2d_t m, sampler_t s, global float4 *o) "
            "{ o[0] = read_imagef(m, s, (int2)(1, 2)); }",
            BUFFER,
            "int32:0",
            "buffer:float32x4:64",
        ),
        LaunchError,
        r"argument 0 \(m\) of kernel 'k' is image2d; found buffer:",
    ),
    "recursion": (
        make_launch(
            "int f(int x) { return x < 2 ? 1 : f(x - 1) + f(x - 2); } kernel void k(global int *o) { o[0] = f(o[1]); }",
            BUFFER,
        ),
        UnsupportedError,
        r"line 1 of kernel\.cl: 'f' calls 'f': recursion, which OpenCL C does not allow",
    ),
    "function without body": (
        make_launch("int f(int x); kernel void k(global int *o) { o[0] = f(1); }", BUFFER),
        UnsupportedError,
        r"kernel\.cl: the function 'f' is declared, but the program has no body of it",
    ),
    "generic pointer": (
        make_launch(
            "int f(int *p) { return *p; } kernel void k(global int *o) { int x = 3; o[0] = f(&x) + f(o); }",
            BUFFER,
            build_options=("-cl-std=CL2.0",),
        ),
        UnsupportedError,
        r"line 1: address space 4, a generic pointer \(OpenCL C 2\.0\); allowed are private \(0\), global \(1\)",
    ),
    "address space": (
        make_launch(
            "typedef __attribute__((address_space(7))) int far; kernel void k(global int *o) { o[1] = *(far *)o[0]; }",
            BUFFER,
        ),
        UnsupportedError,
        "line 1: address space 7, a pointer to one that is none; allowed are private",
    ),
    "overloaded function without body": (
        make_launch("int __attribute__((overloadable)) f(int); kernel void k(global int *o) { o[0] = f(1); }", BUFFER),
        UnsupportedError,
        "the function 'f' is not executed by the tracer; allowed are functions that the program defines",
    ),
    "required local size": (
        make_launch("kernel __attribute__((reqd_work_group_size(64, 1, 1))) void k(global int *o) {}", BUFFER),
        LaunchError,
        r"reqd_work_group_size\(64, 1, 1\); found the local size \(32,\); give --local 64",
    ),
    "trap": (_kernel("if (o[i]) __builtin_trap();"), UnsupportedError, "'llvm.trap' is not executed"),
    "private memory": (
        _kernel("int a[200000000]; a[o[i]] = i; o[i] = a[l];"),
        UnsupportedError,
        r"private arrays of 800000\d\d\d bytes a work-item, too many for a work-group of 32",
    ),
    "local memory": (
        _kernel("local int a[100000]; a[o[i]] = i; barrier(1); o[i] = a[l];"),
        LaunchError,
        "kernel 'k' needs 400000 bytes of local memory .* no GPU has more than 262144",
    ),
}

ARGUMENTS = {
    "too few": (_kernel("", parameters=", int n"), "takes 2 arguments, 1 were given; it takes: o .*, n"),
    "too many": (_kernel("", "int32:1"), "takes 1 arguments, 2 were given"),
    "value for a buffer": (make_launch("kernel void k(global int *o) {}", "int32:1"), "is a pointer; found the value"),
    "buffer for a value": (make_launch("kernel void k(int n) {}", BUFFER), "is passed by value .*give DTYPE:VALUE"),
    "local for a buffer": (make_launch("kernel void k(global int *o) {}", "local:int32:4"), "is a buffer: give buffer"),
    "buffer for local": (make_launch("kernel void k(local int *t) {}", BUFFER), "is local memory: give local"),
    "size": (make_launch("kernel void k(long n) {}", "int32:1"), r"argument 0 \(n\) .* i64 of 8 bytes; found int32:1"),
    "float for int": (make_launch("kernel void k(int n) {}", "float32:1"), "LLVM type i32; found float32:1"),
    "int for float": (make_launch("kernel void k(float4 n) {}", "int32x4:1"), r"<4 x float>; found int32x4"),
    "struct": (
        make_launch("typedef struct { int a[3]; } S; kernel void k(S s) {}", "int32x4:1"),
        r"%struct\.S\S* of 12 bytes; found int32x4:1,1,1,1, 16 bytes",
    ),
}

MEMORY = {
    "write past": ("o[i + 60] = 1;", r"work-item 4 of the group, line 3 .*writes 4 bytes at byte 256 \(index 64\)"),
    "read past": (
        "o[i] = o[i * 2];",
        r"\(1,\), work-item 0 .*reads 4 bytes at byte 256 .*'o', which has 256",
    ),
    "before": ("o[i - 1] = 1;", r"work-item 0 .*at byte -4 \(index -1\) of buffer 'o'"),
    "far": ("o[((long)i << 54) + (i == 1 ? 1L << 54 : 0)] = 1;", "work-item 1 .*at an address in no buffer"),
    "local": ("local int t[32]; t[l + o[i] + 1] = 1; barrier(1); o[i] = t[l];", r"of local 't', which has 128 bytes"),
    "local, before": ("local int t[32]; t[l - 1 - o[i]] = 1; barrier(1); o[i] = t[l];", r"index -\d+\) of local 't'"),
    "private": ("int a[4] = {1, 2, 3, 4}; a[o[i] & 1] = 2; o[i] = a[o[i] + 4];", "reads 4 bytes .* of private 'a'"),
    "table": ("o[i] = t[i + 1];", r"reads 4 bytes at byte 12 \(index 3\) of constant 't', which has 12 bytes"),
    "vload": ("o[i] = vload4(i, o).y;", r"work-item 16 .*reads 16 bytes at byte 256 \(index 16\)"),
    "atomic": ("atomic_add(&o[i + 64], 1);", "writes 4 bytes at byte 256"),
    "block": ("((global S *)o)[i] = ((global S *)o)[0];", r"writes 240 bytes at byte 240 \(index 1\)"),
    "alignment": (
        "*(global int *)((global char *)o + i) = 1;",
        "work-item 1 .*byte 1 .*multiple of 4, the alignment of .*Align the index",
    ),
    "null": ("global int *p = 0; if (o[i] > 99) p = o; p[i] = 1;", "in no buffer .*is a pointer null or not set"),
    "other space": (
        "int a[2]; a[o[i] & 1] = 1; *(global int *)(size_t)a = 2;",
        "private 'a' through a pointer to another",
    ),
}


@pytest.mark.parametrize("optimise", [True, False])
@pytest.mark.parametrize("name", SOURCES)
def test_source(name: str, optimise: bool):
    launch, error, message = SOURCES[name]
    with pytest.raises(error, match=message):
        execute(launch, optimise=optimise)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str):
    launch, message = ARGUMENTS[name]
    with pytest.raises(LaunchError, match=message):
        execute(launch)


@pytest.mark.parametrize("optimise", [True, False])
@pytest.mark.parametrize("name", MEMORY)
def test_memory_access(name: str, optimise: bool):
    body, message = MEMORY[name]
    launch = _kernel(body)
    launch = make_launch(f"typedef struct {{ int a[60]; }} S; constant int t[3] = {{1, 2, 3}}; {launch.source}", BUFFER)
    with pytest.raises(MemoryAccessError, match=f"kernel 'k', work-group .*{message}"):
        execute(launch, optimise=optimise)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if (l < 8) barrier(CLK_LOCAL_MEM_FENCE); o[i] = 1;", "8 of 32 work-items reached the barrier at line 3"),
        ("if (l < 8) return; barrier(CLK_LOCAL_MEM_FENCE);", "24 of 32 .* reached the barrier at line 3 .*8 had ended"),
        ("if (l & 1) barrier(CLK_LOCAL_MEM_FENCE); else barrier(CLK_GLOBAL_MEM_FENCE);", "16 of 32"),
        ("for (int j = 0; j < l; j++) barrier(CLK_LOCAL_MEM_FENCE);", "31 of 32"),
    ],
)
def test_barrier_divergence(body: str, message: str):
    for optimise in (True, False):
        with pytest.raises(BarrierDivergenceError, match=rf"kernel 'k', work-group \(0,\): {message}"):
            execute(_kernel(body), optimise=optimise)


def test_the_second_sub_group_may_miss_a_barrier_too():
    with pytest.raises(BarrierDivergenceError, match="32 of 64 work-items"):
        execute(_kernel("if (l < 32) barrier(CLK_LOCAL_MEM_FENCE);", local_size=64))


def test_budget_is_exact():
    """Two sub-groups of ten instructions, by hand in test_counts."""
    execute(SAXPY, budget=20)
    with pytest.raises(BudgetError, match=r"work-group \(1,\): .* budget of 19 sub-group instructions"):
        execute(SAXPY, budget=19)


@pytest.mark.parametrize("body", ["while (1) o[i]++;", "while (1);", "while (atomic_add(&o[0], 0) < 1000);"])
def test_endless_loop(body: str):
    with pytest.raises(BudgetError, match=r"kernel 'k', work-group \(0,\): .* budget of 10,000 sub-group instructions"):
        execute(_kernel(body), budget=10_000)


def test_module_that_is_no_module():
    with pytest.raises(SourceError, match=r"cannot read kernel.cl as .*"):
        keep_kernel(b"BC no bitcode", "k")
    with pytest.raises(SourceError, match=r"cannot read kernel.cl as .*"):
        keep_kernel("define void @k( {", "k")


def test_function_that_the_process_lacks():
    """LLVM calls functions of the compiler's library for numbers such as 128-bit quotients, be they there or not."""
    native = compile_launch(_kernel("o[i] = l;")).native
    more = "declare void @pv.absent()\ndefine void @pv.user() {\n  call void @pv.absent()\n  ret void\n}\n"
    with pytest.raises(UnsupportedError, match=r"kernel 'k' computes with numbers .* would need pv\.absent"):
        CompiledKernel(replace(native, ir=native.ir + more))


def test_risky_kernels_end_well_or_in_an_error_of_ours():
    # PoCL, once loaded, would skip an instruction that divides by zero.
    environment = {**os.environ, "POCL_SIGFPE_HANDLER": "0"}
    command = [sys.executable, "-m", risky_kernels.__name__]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)
    outcomes = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert result.returncode == 0, f"died after {outcomes[-1:]}: {result.stderr[-1000:]}"
    assert len(outcomes) == 2 * len(risky_kernels.risky_kernels())
    allowed = {"ends"} | {error.__name__ for error in PerfVecError.__subclasses__()}
    assert {outcome["found"] for outcome in outcomes} <= allowed
    wrong = [outcome for outcome in outcomes if outcome["expected"] not in ("", outcome["found"])]
    assert not wrong


def test_a_wide_vector_out_of_bounds():
    """It is stored by an instruction that wants 64 B of alignment, wherever memory happens to lie."""
    source = "kernel void k(global int16 *a) { int i = get_global_id(0); a[i] = (int16)(i); }"
    launch = make_launch(source, "buffer:int32x16:9:constant(0)", global_size=10, local_size=5)
    compiled = compile_launch(launch)
    kept = []  # so that each finds another place
    for _ in range(16):
        kept.append(Execution(compiled, launch))
        with pytest.raises(MemoryAccessError, match="writes 64 bytes at byte 576"):
            kept[-1].run(range(2))
