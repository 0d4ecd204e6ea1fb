"""Reading LLVM IR: types, instructions, phis, parameters, variables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.errors import UnsupportedError
from perfvec.program.ir import (
    Instruction,
    call_arguments,
    phi_values,
    pointer_space,
    read_type,
    split_top,
    vector_parts,
    with_vector_width,
)
from tests.program.ir_text import kernel_from_ir


def one(line: str, parameters: str = "", *, before: str = "") -> Instruction:
    """Read one instruction."""
    kernel = kernel_from_ir(f"entry:\n  {line}\n  ret void", parameters, before=before)
    return kernel.blocks[0].instructions[0]


_SCALARS = st.sampled_from(
    ("i1", "i8", "i33", "half", "float", "double", "ptr", "ptr addrspace(1)", "%struct.S", '%"a b"')
)


def _types() -> st.SearchStrategy[str]:
    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        members = st.lists(inner, min_size=1, max_size=4).map(", ".join)
        return st.one_of(
            st.builds("[{} x {}]".format, st.integers(0, 99), inner),
            st.builds("<{} x {}>".format, st.sampled_from((2, 3, 16)), _SCALARS),
            members.map("{{ {} }}".format),
            members.map("<{{ {} }}>".format),
        )

    return st.recursive(_SCALARS, extend, max_leaves=8)


@settings(deadline=None, derandomize=True)
@given(st.lists(_types(), min_size=1, max_size=4), st.sampled_from(("", " %x", " zeroinitializer", ", i32 0")))
def test_types_are_read_to_their_end(types: list[str], rest: str):
    assert read_type(types[0] + rest) == (types[0], len(types[0]))
    assert split_top(", ".join(types)) == types


def test_what_is_no_type_is_refused():
    with pytest.raises(UnsupportedError, match="cannot read the LLVM type at '!dbg"):
        read_type("!dbg")
    with pytest.raises(UnsupportedError, match="unbalanced brackets"):
        read_type("[4 x i32")


def test_vectors_and_pointers():
    assert vector_parts("<4 x float>") == (4, "float")
    assert vector_parts("[4 x float]") == (1, "[4 x float]")
    assert with_vector_width("i1", 8) == "<8 x i1>"
    assert with_vector_width("i1", 1) == "i1"
    assert [pointer_space(t) for t in ("ptr", "ptr addrspace(3)", "<2 x ptr addrspace(1)>", "i64")] == [0, 3, 1, -1]


@pytest.mark.parametrize(
    ("line", "opcode", "result", "operands"),
    [
        ("%s = add nuw nsw i32 %a, %b, !dbg !7", "add", "i32", ("%a", "%b")),
        ("%s = fadd fast <4 x float> %a, splat (float 1.000000e+00)", "fadd", "<4 x float>", ("%a",)),
        ("%s = icmp samesign ult <2 x i64> %a, %b", "icmp", "<2 x i1>", ("%a", "%b")),
        ("%s = fcmp nnan olt double %a, 0.000000e+00", "fcmp", "i1", ("%a",)),
        ("%s = select i1 %c, ptr addrspace(3) %p, ptr addrspace(3) null", "select", "ptr addrspace(3)", ("%c", "%p")),
        ("%s = getelementptr inbounds nuw [4 x i32], ptr %p, i64 0, i64 %i", "getelementptr", "ptr", ("%p", "%i")),
        ("%s = getelementptr i32, ptr %p, <4 x i64> %i", "getelementptr", "<4 x ptr>", ("%p", "%i")),
        ("%s = extractelement <3 x i8> %v, i64 1", "extractelement", "i8", ("%v",)),
        ("%s = insertelement <2 x i8> poison, i8 %x, i64 0", "insertelement", "<2 x i8>", ("%x",)),
        ("%s = shufflevector <2 x i8> %v, <2 x i8> poison, <4 x i32> <i32 0, i32 1, i32 1, i32 0>", "shufflevector",
         "<4 x i8>", ("%v",)),
        ("%s = extractvalue { i32, { i8, [2 x float] } } %v, 1, 1, 0", "extractvalue", "float", ("%v",)),
        ("%s = insertvalue { i32, i1 } %v, i1 %x, 1", "insertvalue", "{ i32, i1 }", ("%v", "%x")),
        ("%s = zext nneg i32 %a to i64", "zext", "i64", ("%a",)),
        ("%s = ptrtoaddr ptr %p to i64", "ptrtoaddr", "i64", ("%p",)),
        ("%s = freeze i32 %a", "freeze", "i32", ("%a",)),
        ("%s = fneg float %a", "fneg", "float", ("%a",)),
        ("%s = load volatile <3 x float>, ptr addrspace(1) %p, align 16, !tbaa !3", "load", "<3 x float>", ("%p",)),
        ("store i32 %a, ptr %p, align 4, !dbg !3", "store", "i32", ("%a", "%p")),
        ("%s = alloca [4 x i32], align 16", "alloca", "ptr", ()),
        ('%"odd name" = or disjoint i32 %"a, b", 1', "or", "i32", ('%"a, b"',)),
    ],
)  # fmt: skip
def test_instruction(line: str, opcode: str, result: str, operands: tuple[str, ...]):
    found = one(line)
    assert (found.opcode, found.type, found.operands) == (opcode, result, operands)
    assert "!" not in found.text


def test_alignment_and_volatility():
    load = one("%s = load volatile i32, ptr %p, align 8")
    assert (load.align, load.is_volatile) == (8, True)
    assert one("%s = load i32, ptr %p").align == 1


@pytest.mark.parametrize(
    "line",
    [
        "%s = call i32 @_Z3minii(i32 %a, i32 %b)",
        "%s = tail call spir_func noundef i32 @_Z3minii(i32 noundef %a, i32 noundef signext %b) #4, !dbg !9",
        "%s = call fast range(i32 0, 8) i32 @_Z3minii(i32 %a, i32 range(i32 0, 8) %b)",
    ],
)
def test_calls_lose_what_only_the_optimiser_needs(line: str):
    call = one(line)
    assert call.text == "call i32 @_Z3minii(i32 %a, i32 %b)"
    assert (call.callee, call.type, call.operands) == ("_Z3minii", "i32", ("%a", "%b"))
    assert call_arguments(call) == [("i32", "%a"), ("i32", "%b")]


def test_names_that_are_also_attributes_stay():
    call = one("%s = call i32 @f(i32 noundef %returned, ptr readonly align 4 %ccc, i32 %x.nonnull, ptr %readonly)")
    assert call.operands == ("%returned", "%ccc", "%x.nonnull", "%readonly")


def test_printf_is_a_call_although_variadic():
    call = one("%s = call spir_func i32 (ptr addrspace(2), ...) @printf(ptr addrspace(2) @.str, i32 %a)")
    assert (call.callee, call.type, call.operands) == ("printf", "i32", ("%a",))


@pytest.mark.parametrize("line", ["%s = call i32 %f(i32 1)", 'call void asm sideeffect "nop", ""()'])
def test_a_call_of_no_function_is_refused(line: str):
    with pytest.raises(UnsupportedError, match="a call through a pointer"):
        one(line)


def test_type_names_are_no_operands():
    found = one("%s = getelementptr %struct.S, ptr %p, i64 %i, i32 1", before="%struct.S = type { i32, float }")
    assert found.operands == ("%p", "%i")
    member = one("%s = extractvalue %struct.S %v, 1", before="%struct.S = type { i32, float }")
    assert member.type == "float"


@pytest.mark.parametrize("flags", ["", "fast ", "nnan ninf "])
def test_phi(flags: str):
    kernel = kernel_from_ir(
        f'entry:\n  br label %"a b"\n"a b":\n  %s = phi {flags}float [ 0x7FF8000000000000, %entry ], [ %t, %"a b" ]\n'
        '  %t = fadd float %s, 1.0\n  br i1 %c, label %"a b", label %end\nend:\n  ret void'
    )
    phi = kernel.blocks[1].instructions[0]
    assert phi_values(phi) == {"%entry": "0x7FF8000000000000", '%"a b"': "%t"}
    assert (phi.type, phi.operands) == ("float", ("%t",))
    assert [block.label for block in kernel.blocks] == ["%entry", '%"a b"', "%end"]
    assert kernel.blocks[1].instructions[-1].targets == ('%"a b"', "%end")


def test_phi_of_constants_with_commas_and_brackets():
    kernel = kernel_from_ir(
        "entry:\n  br label %a\na:\n"
        "  %s = phi <2 x i32> [ <i32 1, i32 2>, %entry ], [ splat (i32 3), %a ]\n"
        "  %p = phi ptr [ getelementptr ([4 x i32], ptr %q, i64 0, i64 1), %entry ], [ null, %a ]\n  br label %a"
    )
    vector, pointer = kernel.blocks[1].instructions[:2]
    assert phi_values(vector) == {"%entry": "<i32 1, i32 2>", "%a": "splat (i32 3)"}
    assert phi_values(pointer) == {"%entry": "getelementptr ([4 x i32], ptr %q, i64 0, i64 1)", "%a": "null"}


def test_switch_on_several_lines():
    kernel = kernel_from_ir(
        "entry:\n  switch i32 %x, label %c [\n    i32 0, label %a\n    i32 7, label %b\n    i32 9, label %a\n"
        "  ], !dbg !3\n"
        "a:\n  ret void\nb:\n  ret void\nc:\n  unreachable"
    )
    switch = kernel.blocks[0].instructions[-1]
    assert (switch.opcode, switch.operands, switch.targets) == ("switch", ("%x",), ("%c", "%a", "%b", "%a"))
    assert len(kernel.blocks) == 4


def test_debug_records_are_no_instructions():
    kernel = kernel_from_ir("entry:\n    #dbg_declare(ptr %x, !1, !DIExpression(), !2)\n  ret void")
    assert [i.opcode for i in kernel.blocks[0].instructions] == ["ret"]


def test_lines_come_from_the_debug_nodes():
    kernel = kernel_from_ir(
        "entry:\n  fence acquire, !dbg !5\n  ret void", before="!5 = !DILocation(line: 42, column: 3, scope: !1)"
    )
    assert [i.line for i in kernel.blocks[0].instructions] == [42, 0]


def test_parameters_and_variables():
    kernel = kernel_from_ir(
        "entry:\n  ret void",
        "ptr addrspace(1) noundef captures(none) %a, ptr noundef byval(%struct.S) align 4 %s, <3 x float> noundef %v",
        before="%struct.S = type { i32, [3 x float] }\n"
        "@k.t = internal unnamed_addr addrspace(3) global [16 x float] undef, align 4\n"
        "@c = private unnamed_addr addrspace(2) constant [2 x i32] [i32 1, i32 2], align 4, !dbg !3\n"
        '@.str = private addrspace(2) constant [4 x i8] c"a,\\0A\\00", align 1\n',
    )
    assert [(p.name, p.type, p.byval) for p in kernel.parameters] == [
        ("%a", "ptr addrspace(1)", ""),
        ("%s", "ptr", "%struct.S"),
        ("%v", "<3 x float>", ""),
    ]
    assert [(v.name, v.address_space, v.type, v.initialiser) for v in kernel.variables] == [
        ("@k.t", 3, "[16 x float]", "undef"),
        ("@c", 2, "[2 x i32]", "[i32 1, i32 2]"),
        ("@.str", 2, "[4 x i8]", 'c"a,\\0A\\00"'),
    ]
    assert kernel.types == {"%struct.S": "{ i32, [3 x float] }"}
