"""Counted resources and classes of instructions: hand arithmetic for small kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfvec.launch import Launch
from perfvec.program.classify import make_static_table, opcode_class
from perfvec.program.counts import count_resources, count_token_units, count_window_units, unit_tables
from perfvec.program.executor import compile_launch
from perfvec.program.tracer import trace_launch
from perfvec.resources import COUNTED
from perfvec.trace_data import OPCODE_CLASSES, Trace
from tests.program.ir_text import kernel_from_ir
from tests.program.launching import make_launch

pytestmark = pytest.mark.usefixtures("front_end")

SAXPY = make_launch(
    """kernel void k(float a, global const float *x, global float *y) {
        int i = get_global_id(0); y[i] = a * x[i] + y[i]; }""",
    "float32:2",
    "buffer:float32:64",
    "buffer:float32:64",
)
TILED = make_launch(
    """kernel void k(global const float *a, global const float *b, global float *c, int n) {
        local float s[16][16], t[16][16];
        int x = get_local_id(0), y = get_local_id(1), i = get_global_id(1), j = get_global_id(0);
        float sum = 0;
        for (int p = 0; p < n; p += 16) {
            s[y][x] = a[i * n + p + x]; t[y][x] = b[(p + y) * n + j]; barrier(CLK_LOCAL_MEM_FENCE);
            for (int q = 0; q < 16; q++) sum += s[y][q] * t[q][x];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        c[i * n + j] = sum; }""",
    "buffer:float32:1024",
    "buffer:float32:1024",
    "buffer:float32:1024",
    "int32:32",
    global_size=(32, 32),
    local_size=(16, 16),
)


def trace(launch: Launch) -> Trace:
    return trace_launch(launch, work_groups=None)


def resources(launch: Launch) -> dict[str, float]:
    found = trace(launch)
    tables = unit_tables(found)
    counted = count_resources(found, tables, count_window_units(found, tables))
    return dict(zip((r.name for r in COUNTED), counted.tolist(), strict=True))


def kernel(body: str, *args: str, parameters: str = "", **sizes: Any) -> Launch:
    return make_launch(f"kernel void k({parameters}) {{ int i = get_global_id(0); {body} }}", *args, **sizes)


def test_saxpy():
    """2 sub-groups; each loads x and y and stores y: 4 sectors of 32 B each; y is stored where it was just loaded."""
    counted = resources(SAXPY)
    expected = {
        "launch": 1, "work_groups": 2, "fp32_issue": 2, "fp64_issue": 0, "special_issue": 0, "local_passes": 0,
        "l1_sectors": 2 * 3 * 4, "l2_sectors": 2 * 2 * 4, "dram_sectors": 2 * 2 * 4, "atomic_passes": 0, "barriers": 0,
        "access_per_slot_16": 3,
    }  # fmt: skip
    assert {name: counted[name] for name in expected} == expected
    # get_global_id, its sign extension from int in two shifts, two addresses, two loads, fma, store, return
    assert counted["int_issue"] == 2 * 2 * 2  # two shifts of 64 bits, each worth two
    assert counted["other_issue"] == 2 * (1 + 2 + 2 + 1 + 1)
    assert counted["issue_per_slot_16"] == (2 + 8 + 14) / 2


def test_tiled_matrix_product():
    """32 sub-groups of two rows of 16; two tiles; a row of 16 floats is two sectors."""
    counted = resources(TILED)
    expected = {
        "work_groups": 4,
        "fp32_issue": 32 * 2 * 16,  # fma
        # A tile: 2 stores of 32 words, and 32 loads; rows of 16 words lie on the two halves of the banks.
        "local_passes": 32 * 2 * (2 + 32),
        "l1_sectors": 32 * (2 * 2 * 4 + 4),
        "l2_sectors": 32 * (2 * 2 * 4 + 4),  # a work-group reads each element once
        "dram_sectors": 3 * 1024 * 4 / 32,  # every byte of the three matrices once
        "barriers": 32 * 2 * 2,
        "special_issue": 0,
    }
    assert {name: counted[name] for name in expected} == expected
    context = trace(TILED).context
    assert (context.local_mem_bytes, context.local_size, context.num_dims) == (2 * 16 * 16 * 4, 256, 2)
    assert (context.sub_groups_per_group, context.num_work_groups, context.num_work_items) == (8, 4, 1024)
    assert context.footprint_bytes == context.buffer_bytes == 3 * 4096
    assert context.instructions_spread == 0
    assert context.max_instructions == context.mean_instructions


def test_bank_conflicts():
    body = "local float t[1024]; int l = get_local_id(0); t[l * {0}] = o[i]; barrier(CLK_LOCAL_MEM_FENCE); o[i] = t[l];"
    for stride in (1, 2, 32):
        counted = resources(kernel(body.format(stride), "buffer:float32:64", parameters="global float *o"))
        assert counted["local_passes"] == 2 * (stride + 1)


def test_atomics():
    """Lanes on 4 counters: 8 on each. In local memory the 4 words lie on different banks: one pass, times 8."""
    counted = resources(kernel("atomic_add(&o[i & 3], 1);", "buffer:int32:64", parameters="global int *o"))
    assert counted["atomic_passes"] == 2 * 8
    assert counted["l1_sectors"] == counted["l2_sectors"] == 2
    assert counted["dram_sectors"] == 1
    body = "local int t[4]; atomic_add(&t[i & 3], 1); barrier(CLK_LOCAL_MEM_FENCE); o[i] = t[i & 3];"
    counted = resources(kernel(body, "buffer:int32:64", parameters="global int *o"))
    assert counted["atomic_passes"] == 0
    assert counted["local_passes"] == 2 * (8 + 1)


@pytest.mark.parametrize(
    ("type_name", "expression", "unit", "each"),
    [
        ("float", "v * 1.5f", "fp32_issue", 1),
        ("float4", "v * 1.5f", "fp32_issue", 4),
        ("float", "fma(v, v, 2.0f)", "fp32_issue", 1),
        ("double", "v + 1.5", "fp64_issue", 1),
        ("double2", "v + 1.5", "fp64_issue", 2),
        ("float", "v / 1.7f", "special_issue", 1),
        ("float", "sqrt(v)", "special_issue", 1),
        ("float", "native_exp(v)", "special_issue", 1),
        ("double4", "sin(v)", "special_issue", 4),
        ("int", "v ^ 77", "int_issue", 1),
        ("int4", "v * 77", "int_issue", 4),
        ("long", "v + 77", "int_issue", 2),
        ("int", "v / 7", "special_issue", 1),
        ("char16", "v | (char)3", "int_issue", 16),
    ],
)
def test_arithmetic(type_name: str, expression: str, unit: str, each: int):
    """What a kernel with the expression uses beyond one that only copies."""
    found = []
    for text in ("v", expression):
        launch = kernel(
            f"{type_name} v = o[i]; o[64 + i] = {text};", "buffer:uint8:16384", parameters=f"global {type_name} *o"
        )
        found.append(resources(launch)[unit])
    assert found[1] - found[0] == 2 * each


def test_a_lone_long_sub_group_holds_up_its_slot():
    """One of 64 sub-groups runs a loop of 1000 turns: more slots than one do not help it."""
    launch = kernel(
        "int n = i < 32 ? 1000 : 1; int x = o[i]; for (int j = 0; j < n; j++) x = x * 5 + j; o[i] = x;",
        "buffer:int32:2048",
        parameters="global int *o",
        global_size=2048,
    )
    counted = resources(launch)
    issue = sum(counted[f"{name}_issue"] for name in ("fp32", "fp64", "int", "special", "other"))
    assert counted["issue_per_slot_16"] > 0.8 * issue
    assert counted["issue_per_slot_16384"] <= issue


def test_reuse_within_a_work_group_and_among_work_groups():
    """Every work-item reads the same 4 KiB twice: once cold in each work-group, once cold in all."""
    launch = kernel(
        "float s = 0; for (int r = 0; r < 2; r++) for (int j = 0; j < 32; j++) s += t[j * 32 + get_local_id(0)];"
        "o[i] = s;",
        "buffer:float32:1024",
        "buffer:float32:64",
        parameters="global const float *t, global float *o",
    )
    counted = resources(launch)
    assert counted["l1_sectors"] == 2 * (2 * 32 * 4 + 4)
    assert counted["l2_sectors"] == 2 * (32 * 4 + 4)
    assert counted["dram_sectors"] == 32 * 4 + 2 * 4


def test_tokens_windows_and_launch_add_up():
    found = trace(TILED)
    tables = unit_tables(found)
    units, by_window = count_token_units(found, tables), count_window_units(found, tables)
    assert np.allclose(np.add.reduceat(units, found.window_start[:-1]), by_window)
    assert np.allclose(found.token_weight @ units, found.window_weight @ by_window)
    issue = units[:, :5].sum(axis=1)
    assert (issue >= 1).all()


# ---- classes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%x = fsub float %a, %b", "add"),
        ("%x = fneg float %a", "add"),
        ("%x = call i32 @llvm.smax.i32(i32 %a, i32 %b)", "add"),
        ("%x = call float @llvm.minnum.f32(float %a, float %b)", "add"),
        ("%x = mul i32 %a, %b", "mul"),
        ("%x = call float @llvm.fmuladd.f32(float %a, float %b, float %c)", "fma"),
        ("%x = urem i32 %a, %b", "div"),
        ("%x = call float @_Z4sqrtf(float %a)", "sqrt"),
        ("%x = call float @_Z3sinf(float %a)", "special"),
        ("%x = call float @_Z10native_cosf(float %a)", "native"),
        ("%x = fcmp olt float %a, %b", "compare"),
        ("%x = xor i32 %a, %b", "logic"),
        ("%x = call i32 @llvm.ctpop.i32(i32 %a)", "logic"),
        ("%x = ashr i32 %a, %b", "shift"),
        ("%x = call i32 @llvm.fshl.i32(i32 %a, i32 %a, i32 %b)", "shift"),
        ("%x = sitofp i32 %a to float", "convert"),
        ("%x = call float @llvm.floor.f32(float %a)", "convert"),
        ("%x = select i1 %a, i32 %b, i32 0", "select"),
        ("%x = shufflevector <2 x i32> %a, <2 x i32> %b, <2 x i32> zeroinitializer", "vector"),
        ("%x = getelementptr i32, ptr %a, i64 1", "address"),
        ("br i1 %a, label %entry, label %entry", "branch"),
        ("br label %entry", ""),
        ("ret void", "return"),
        ("call void @_Z7barrierj(i32 1)", "barrier"),
        ("call void @_Z9mem_fencej(i32 1)", "fence"),
        ("%x = load i32, ptr %a, align 4", "load"),
        ("call void @_Z7vstore4Dv4_fmPU3AS1f(<4 x float> %a, i64 0, ptr addrspace(1) %b)", "store"),
        ("%x = call i32 @_Z10atomic_incPU3AS1Vi(ptr addrspace(1) %a)", "atomic"),
        ("call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 40, i1 false)", "copy"),
        ("call void @_Z8prefetchPU3AS1Kfm(ptr addrspace(1) %a, i64 1)", "prefetch"),
        ("%x = call i64 @_Z12get_local_idj(i32 0)", "work_item"),
        ("%x = call i32 @_Z12get_work_dimv()", "work_item"),
        ("%x = bitcast i32 %a to float", ""),
        ("%x = freeze i32 %a", ""),
        ("unreachable", ""),
    ],
)
def test_classes(line: str, expected: str):
    kernel_ir = kernel_from_ir(f"entry:\n  {line}\n  ret void")
    assert opcode_class(kernel_ir.blocks[0].instructions[0]) == expected


def test_static_table_of_saxpy():
    table = make_static_table(compile_launch(SAXPY).native)
    names = [OPCODE_CLASSES[row["opcode_class"]] for row in table.rows]
    assert names == [
        "work_item", "shift", "shift", "address", "load", "address", "load", "fma", "store", "return",
    ]  # fmt: skip
    assert table.rows["producers"].tolist() == [
        [-1, -1, -1], [0, -1, -1], [1, -1, -1], [2, -1, -1], [3, -1, -1], [2, -1, -1], [5, -1, -1], [4, 6, -1],
        [7, 5, -1], [-1, -1, -1],
    ]  # fmt: skip
    assert table.site.tolist() == [-1, -1, -1, -1, 0, -1, 1, -1, 2, -1]
    assert set(table.rows["source_line"]) == {2}
    assert table.opcode_counts == (
        {"call": 2, "shl": 1, "ashr": 1, "getelementptr": 2, "load": 2, "store": 1, "ret": 1},
    )
