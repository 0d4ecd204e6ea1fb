"""Sizes of types, and the memory that instructions touch."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.errors import UnsupportedError
from perfvec.program.accesses import (
    CONSTANT,
    GLOBAL,
    LOCAL,
    PRIVATE,
    Access,
    TypeSizes,
    accesses_of,
    atomic_parts,
    vector_access_parts,
    writes_through_pointer,
)
from tests.program.ir_text import kernel_from_ir

# Clang's layout for spir64, without the address space of variables, which sizes do not depend on.
SPIR = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024"
SIZES = TypeSizes({"%struct.S": "{ i8, i32, [3 x i16] }", "%struct.T": "{ %struct.S, double }"})
_SCALARS = st.sampled_from(("i8", "i16", "i32", "i64", "half", "float", "double", "ptr", "ptr addrspace(3)"))
_ELEMENTS = st.sampled_from(("i8", "i16", "i32", "i64", "float", "double"))


def _types() -> st.SearchStrategy[str]:
    vectors = st.builds("<{} x {}>".format, st.sampled_from((2, 3, 4, 8, 16)), _ELEMENTS)

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        members = st.lists(inner, max_size=4).map(", ".join)
        return st.one_of(
            st.builds("[{} x {}]".format, st.integers(1, 9), inner),
            members.map("{{ {} }}".format),
            members.map("<{{ {} }}>".format),
        )

    return st.recursive(st.one_of(_SCALARS, vectors), extend, max_leaves=6)


@settings(deadline=None, derandomize=True)
@given(st.lists(_types(), min_size=1, max_size=5))
def test_sizes_are_those_of_llvm(types: list[str]):
    """Under SPIR's layout, and under this machine's, which the native code is compiled with."""
    text = "\n".join(f"@g{i} = external global {type_text}" for i, type_text in enumerate(types))
    module = llvm.parse_assembly(text)
    llvm.initialize_native_target()
    machine = llvm.Target.from_default_triple().create_target_machine()
    for data in (llvm.create_target_data(SPIR), machine.target_data):
        found = [data.get_abi_size(module.get_global_variable(f"g{i}").global_value_type) for i in range(len(types))]
        assert [SIZES.bytes_of(type_text) for type_text in types] == found
        aligned = [
            data.get_abi_alignment(module.get_global_variable(f"g{i}").global_value_type) for i in range(len(types))
        ]
        assert [SIZES.align_of(type_text) for type_text in types] == aligned


def test_sizes_by_hand():
    assert SIZES.bytes_of("%struct.S") == 16  # 1, padded to 4, + 4 + 6, padded to 4
    assert SIZES.bytes_of("%struct.T") == 24
    assert SIZES.bytes_of("<3 x float>") == 16
    assert SIZES.stored_bytes("<3 x float>") == 12
    assert SIZES.stored_bytes("i24") == 3
    assert SIZES.bytes_of("i24") == 4
    assert SIZES.stored_bytes("<8 x i1>") == 1
    assert SIZES.bytes_of("i128") == 16
    with pytest.raises(UnsupportedError, match="LLVM type target"):
        SIZES.bytes_of('target("spirv.Image")')


def accesses(line: str) -> tuple[Access, ...]:
    kernel = kernel_from_ir(f"entry:\n  {line}\n  ret void")
    return accesses_of(kernel.blocks[0].instructions[0], SIZES)


def access(pointer: str, pointer_type: str, space: int, num_bytes: int, align: int, **more: object) -> Access:
    return Access(
        pointer=pointer,
        pointer_type=pointer_type,
        space=space,
        num_bytes=num_bytes,
        align=align,
        **{"is_write": False, **more},  # type: ignore[arg-type]
    )


G, L, C = "ptr addrspace(1)", "ptr addrspace(3)", "ptr addrspace(2)"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%x = load volatile float, ptr %p, align 4", [access("%p", "ptr", PRIVATE, 4, 4)]),
        (f"%x = load <3 x float>, {C} @t, align 16", [access("@t", C, CONSTANT, 12, 16)]),
        (f"store <4 x i16> zeroinitializer, {L} %p, align 8", [access("%p", L, LOCAL, 8, 8, is_write=True)]),
        (f"store ptr %q, {G} %p", [access("%p", G, GLOBAL, 8, 1, is_write=True)]),
        (f"%x = call i32 @_Z10atomic_addPU3AS1Vii({G} %p, i32 1)", [access("%p", G, GLOBAL, 4, 4, is_write=True)]),
        (f"%x = call i64 @_Z8atom_maxPU3AS3Vll({L} %p, i64 1)", [access("%p", L, LOCAL, 8, 8, is_write=True)]),
        (
            f"%x = call <3 x float> @_Z6vload3mPU3AS1Kf(i64 %i, {G} %p)",
            [access("%p", G, GLOBAL, 12, 4, offset="%i", offset_bytes=12)],
        ),
        (
            f"call void @_Z7vstore8Dv8_smPU3AS3s(<8 x i16> %v, i64 5, {L} %p)",
            [access("%p", L, LOCAL, 16, 2, is_write=True, offset="5", offset_bytes=16)],
        ),
        (
            f"%x = call <4 x float> @_Z11vload_half4mPU3AS1KDh(i64 %i, {G} %p)",
            [access("%p", G, GLOBAL, 8, 2, offset="%i", offset_bytes=8)],
        ),
        (
            f"call void @_Z17vstorea_half3_rtzDv3_fmPU3AS1Dh(<3 x float> %v, i64 %i, {G} %p)",
            [access("%p", G, GLOBAL, 6, 8, is_write=True, offset="%i", offset_bytes=8)],
        ),
        ("%x = call float @_Z5fractfPf(float %a, ptr %p)", [access("%p", "ptr", PRIVATE, 4, 4, is_write=True)]),
        (
            "%x = call <2 x double> @_Z5frexpDv2_dPDv2_i(<2 x double> %a, ptr %p)",
            [access("%p", "ptr", PRIVATE, 8, 4, is_write=True)],
        ),
        (
            f"call void @llvm.memcpy.p0.p1.i64(ptr align 4 %d, {G} align 4 %s, i64 40, i1 false)",
            [access("%s", G, GLOBAL, 40, 1), access("%d", "ptr", PRIVATE, 40, 1, is_write=True)],
        ),
        (
            "call void @llvm.memset.p0.i64(ptr %d, i8 0, i64 9, i1 false)",
            [access("%d", "ptr", PRIVATE, 9, 1, is_write=True)],
        ),
        ("call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %s, i64 0, i1 false)", []),
        ("%x = call float @_Z4sqrtf(float %a)", []),
        ("%x = add i32 %a, %b", []),
    ],
)
def test_accesses(line: str, expected: list[Access]):
    assert list(accesses(line)) == expected


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="block copy of a length that is not constant"):
        accesses("call void @llvm.memset.p0.i64(ptr %d, i8 0, i64 %n, i1 false)")
    with pytest.raises(UnsupportedError, match=r"atomicrmw comes from OpenCL C 2\.0"):
        accesses("%x = atomicrmw add ptr addrspace(1) %p, i32 1 seq_cst, align 4")


def test_parts_of_names():
    assert atomic_parts("_Z14atomic_cmpxchgPU3AS1Vjjj") == ("cmpxchg", "j")
    assert atomic_parts("_Z10atomic_incPU3AS3Vi") == ("inc", "i")
    assert atomic_parts("_Z11atomic_loadPU3AS1Vi") is None
    parts = vector_access_parts("_Z16vstore_half4_rtnDv4_dmPU3AS1Dh")
    assert parts is not None
    assert (parts.is_store, parts.is_aligned, parts.is_half, parts.width, parts.rounding) == (
        True,
        False,
        True,
        4,
        "rtn",
    )
    assert vector_access_parts("_Z6vload_x") is None
    assert [writes_through_pointer(n) for n in ("_Z6sincosfPf", "_Z3sinf", "_Z6remquoffPU3AS1i")] == [True, False, True]
