"""Names of built-ins. Expected types are those of the sources from which clang 14 for spir64 made the names."""

from __future__ import annotations

import pytest

from perfvec.errors import UnsupportedError
from perfvec.program.builtins import (
    OpaqueType,
    PointerType,
    ValueType,
    classify_builtin,
    defined_name,
    demangle,
    has_pointer_result,
    is_value_builtin,
)
from perfvec.trace_data import OPCODE_CLASSES


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("_Z3sinf", "sin(float)"),
        ("_Z3sinDh", "sin(half)"),
        ("_Z5clampDv4_fS_S_", "clamp(float4, float4, float4)"),
        ("_Z5clampDv4_fff", "clamp(float4, float, float)"),
        ("_Z6selectDv4_fS_Dv4_i", "select(float4, float4, int4)"),
        ("_Z3fmaDv16_DhS_S_", "fma(half16, half16, half16)"),
        ("_Z8upsampleDv2_cDv2_h", "upsample(char2, uchar2)"),
        ("_Z16convert_int4_satDv4_d", "convert_int4_sat(double4)"),
        ("_Z13get_global_idj", "get_global_id(uint)"),
        ("_Z12get_work_dimv", "get_work_dim()"),
        ("_Z5fractfPf", "fract(float, __private float *)"),
        ("_Z5fractDv4_fPU3AS3S_", "fract(float4, __local float4 *)"),
        ("_Z6sincosfPU3AS1f", "sincos(float, __global float *)"),
        ("_Z6remquoDv4_fS_PDv4_i", "remquo(float4, float4, __private int4 *)"),
        ("_Z4modfDv3_fPU3AS1S_", "modf(float3, __global float3 *)"),
        ("_Z6vload4mPU3AS1Ki", "vload4(ulong, __global const int *)"),
        ("_Z6vload4mPU3AS2Kh", "vload4(ulong, __constant const uchar *)"),
        ("_Z8atom_addPU3AS3Vii", "atom_add(__local volatile int *, int)"),
        ("_Z14atomic_cmpxchgPU3AS1Vjjj", "atomic_cmpxchg(__global volatile uint *, uint, uint)"),
        ("_Z6printfPU3AS2Kcz", "printf(__constant const char *, ...)"),
        (
            "_Z21async_work_group_copyPU3AS3Dv4_fPU3AS1KS_m9ocl_event",
            "async_work_group_copy(__local float4 *, __global const float4 *, ulong, event)",
        ),
        ("_Z17wait_group_eventsiP9ocl_event", "wait_group_events(int, __private event *)"),
        ("_Z3fooPU3AS1fS0_S_", None),  # the third argument would be a qualified type, which no argument can be
        ("_Z3fooPU3AS1fS0_", "foo(__global float *, __global float *)"),
        ("_Z3fooPvPKv", "foo(__private void *, __private const void *)"),
        ("_Z3fooPPf", "foo(__private __private float * *)"),
        ("_Z3fooDv2_fDv3_fDv4_fS_S0_S1_", "foo(float2, float3, float4, float2, float3, float4)"),
    ],
)
def test_demangled_name_reads_as_its_source(name, source):
    if source is None:
        with pytest.raises(UnsupportedError, match="is not the mangled name"):
            demangle(name)
    else:
        assert str(demangle(name)) == source


def test_types_carry_what_the_ir_needs():
    value, pointer = demangle("_Z5frexpDv3_fPU3AS1VDv3_i").arguments
    assert isinstance(value, ValueType)
    assert (value.llvm, value.suffix, value.scalar.bits) == ("<3 x float>", "v3f32", 32)
    assert isinstance(pointer, PointerType)
    assert (pointer.address_space, pointer.is_const, pointer.is_volatile) == (1, False, True)
    assert isinstance(pointer.pointee, ValueType)
    assert pointer.pointee.llvm == "<3 x i32>"
    assert isinstance(demangle("_Z6printfPU3AS2Kcz").arguments[1], OpaqueType)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sin", "does not start with _Z"),
        ("llvm.fmuladd.f32", "does not start with _Z"),
        ("_Z9sinf", "it ends early"),
        ("_Z3sin", "it ends early"),
        ("_Z3sinq", "no type starts at 'q'"),
        ("_Z3sinv1", "no type starts at"),
        ("_Z3sinDv4_PS_", "no type starts at"),
        ("_Z3sinS_", "no type starts at"),
        ("_Z3sin9ocl", "no type starts at"),
    ],
)
def test_other_names_are_refused(name, reason):
    with pytest.raises(UnsupportedError, match=reason):
        demangle(name)


@pytest.mark.parametrize(
    ("name", "opcode_class"),
    [
        ("_Z3sinf", "special"),
        ("_Z10native_sinf", "native"),
        ("_Z9half_powrff", "native"),
        ("_Z3fmafff", "fma"),
        ("_Z3maxii", "add"),
        ("_Z4fminDv4_ff", "add"),
        ("_Z14convert_uchar4Dv4_f", "convert"),
        ("_Z4sqrtd", "sqrt"),
        ("_Z4fmodff", "div"),
        ("_Z8popcountj", "logic"),
        ("_Z6rotateii", "shift"),
        ("_Z5isnanf", "compare"),
        ("_Z6selectffi", "select"),
        ("_Z7shuffleDv4_fDv4_j", "vector"),
        ("_Z6mul_hijj", "mul"),
    ],
)
def test_value_builtins_have_a_class(name, opcode_class):
    assert is_value_builtin(name)
    assert classify_builtin(name) == opcode_class
    assert opcode_class in OPCODE_CLASSES


@pytest.mark.parametrize(
    ("name", "opcode_class"),
    [
        ("_Z13get_global_idj", "work_item"),
        ("_Z12get_work_dimv", "work_item"),
        ("_Z14get_num_groupsj", "work_item"),
        ("_Z7barrierj", "barrier"),
        ("_Z17wait_group_eventsiP9ocl_event", "barrier"),
        ("_Z9mem_fencej", "fence"),
        ("_Z14read_mem_fencej", "fence"),
        ("_Z15write_mem_fencej", "fence"),
        ("_Z8atom_addPU3AS1Vii", "atomic"),
        ("_Z10atomic_incPU3AS3Vi", "atomic"),
        ("_Z6vload4mPU3AS1Kf", "load"),
        ("_Z11vload_half4mPU3AS1KDh", "load"),
        ("_Z7vstore4Dv4_fmPU3AS1f", "store"),
        ("_Z16vstorea_half_rtefmPU3AS1Dh", "store"),
        ("_Z21async_work_group_copyPU3AS3fPU3AS1Kfm9ocl_event", "copy"),
        ("_Z8prefetchPU3AS1Kfm", "prefetch"),
        ("_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i", "image"),
        ("_Z15get_image_width14ocl_image2d_ro", "image"),
        ("_Z20sub_group_reduce_addf", "sub_group"),
        ("_Z18get_sub_group_sizev", "work_item"),
        ("_Z21get_sub_group_eq_maskv", "work_item"),
        ("_Z17sub_group_barrierj", "fence"),
        ("_Z16sub_group_balloti", "sub_group"),
        ("_Z26sub_group_ballot_bit_countDv4_j", "logic"),
        ("_Z24sub_group_inverse_ballotDv4_j", "logic"),
        ("_Z6printfPU3AS2Kcz", "other"),
        ("printf", "other"),
        ("_Z9my_helperf", None),
        ("my_helper", None),
        ("llvm.fabs.f32", None),
    ],
)
def test_builtins_with_effects_are_classified_but_not_defined(name, opcode_class):
    assert not is_value_builtin(name)
    assert classify_builtin(name) == opcode_class


def test_second_results_go_through_the_value_variant():
    assert has_pointer_result("_Z5fractfPf")
    assert defined_name("_Z5fractfPf") == "_Z5fractfPf.value"
    assert not has_pointer_result("_Z3sinf")
    assert defined_name("_Z3sinf") == "_Z3sinf"
    assert not has_pointer_result("_Z6vload4mPU3AS1Kf")


@pytest.mark.parametrize(
    "name",
    [
        "_Z3sini",  # no such overload
        "_Z3sinff",
        "_Z3absf",
        "_Z5crossDv2_fS_",
        "_Z3fmaDv4_ffS_",  # a scalar where only vectors fit
        "_Z4fminfDv4_f",
        "_Z14convert_float4Dv3_f",  # widths differ
        "_Z17convert_float_satd",  # only integers saturate
        "_Z8upsamplelm",
        "_Z7shuffleDv4_fDv4_i",
        "_Z5fractfPd",
        "_Z5fractff",
        "_Z6selectffl",
        "_Z3nanh",
        "_Z3anyj",
    ],
)
def test_overloads_outside_the_standard_are_no_builtins(name):
    assert not is_value_builtin(name)
