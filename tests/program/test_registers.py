"""Registers: by hand, and against liveness by definition on straight code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.executor import compile_launch
from perfvec.program.registers import most_live_registers
from tests.opencl import oclgrind_device
from tests.program.ir_text import kernel_from_ir
from tests.program.launching import make_launch

G = "ptr addrspace(1)"


def registers(body: str, parameters: str = f"{G} %o, i32 %n") -> int:
    return most_live_registers(kernel_from_ir(body, parameters))


def test_straight_code():
    # %a takes one register and %b, a double, two; both live until %c and %d are made.
    assert (
        registers(f"""entry:
  %a = load i32, {G} %o, align 4
  %b = load double, {G} %o, align 8
  %c = add i32 %a, %a
  %d = fptosi double %b to i32
  %e = add i32 %c, %d
  store i32 %e, {G} %o, align 4
  ret void""")
        == 3
    )


@pytest.mark.parametrize(
    ("type_text", "expected"),
    [
        ("i1", 0), ("i8", 1), ("i32", 1), ("i64", 2), ("<3 x float>", 3), ("<16 x double>", 32), ("<4 x i8>", 1),
        (G, 2), ("ptr addrspace(3)", 1), ("ptr", 2),
    ],
)  # fmt: skip
def test_weights_of_types(type_text: str, expected: int):
    assert (
        registers(f"""entry:
  %v = load {type_text}, {G} %o, align 1
  store {type_text} %v, {G} %o, align 1
  ret void""")
        == expected
    )


def test_a_value_that_lives_through_a_loop():
    # In the loop: %keep, the counter, the sum; %x for a moment beside them.
    assert (
        registers(f"""entry:
  %keep = load float, {G} %o, align 4
  br label %loop
loop:
  %j = phi i32 [ 0, %entry ], [ %j.next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %sum.next, %loop ]
  %x = load float, {G} %o, align 4
  %sum.next = fadd float %sum, %x
  %j.next = add i32 %j, 1
  %more = icmp slt i32 %j.next, %n
  br i1 %more, label %loop, label %end
end:
  %all = fadd float %sum.next, %keep
  store float %all, {G} %o, align 4
  ret void""")
        == 4
    )


def test_what_a_phi_reads_lives_to_the_end_of_the_block_that_it_comes_from():
    # In `then`: %b, which only the phi reads, beside %x and %y.
    assert (
        registers(
            f"""entry:
  %a = load i32, {G} %o, align 4
  %b = load i32, {G} %o, align 4
  br i1 %c, label %then, label %join
then:
  %x = load i32, {G} %o, align 4
  %y = load i32, {G} %o, align 4
  %z = add i32 %x, %y
  store i32 %z, {G} %o, align 4
  br label %join
join:
  %p = phi i32 [ %a, %entry ], [ %b, %then ]
  store i32 %p, {G} %o, align 4
  ret void""",
            f"{G} %o, i1 %c",
        )
        == 3
    )


def test_parameters_and_values_never_read_take_none():
    assert registers("entry:\n  %a = add i32 %n, 1\n  ret void") == 0


def test_unrolling_costs_registers():
    oclgrind_device()
    body = """kernel void k(global float *o, int n) {{
        int i = get_global_id(0); float x[{0}]; for (int j = 0; j < {0}; j++) x[j] = o[i + j];
        for (int r = 0; r < n; r++) for (int j = 0; j < {0}; j++) x[j] = x[j] * x[({0} - 1) - j];
        float s = 0; for (int j = 0; j < {0}; j++) s += x[j]; o[i] = s; }}"""
    few, many = (
        most_live_registers(compile_launch(make_launch(body.format(n), "buffer:float32:128", "int32:2")).native.kernel)
        for n in (4, 16)
    )
    assert 4 <= few < 16 <= many


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=30))
def test_equal_to_liveness_by_definition(pairs: list[tuple[int, int]]):
    """Value `i` adds two earlier values; alive between two instructions is what was made before and is read after."""
    lines, reads = [f"  %v0 = load i32, {G} %o, align 4"], [[]]
    for number, (left, right) in enumerate(pairs, 1):
        operands = [left % number, right % number]
        lines.append(f"  %v{number} = add i32 %v{operands[0]}, %v{operands[1]}")
        reads.append(operands)
    lines.append(f"  store i32 %v{len(pairs)}, {G} %o, align 4")
    reads.append([len(pairs)])
    alive = [{value for later in reads[place:] for value in later if value < place} for place in range(len(reads) + 1)]
    assert registers("\n".join(["entry:", *lines, "  ret void"])) == max(map(len, alive))
