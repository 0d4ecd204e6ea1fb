"""Sub-group functions against references in NumPy that take one lane at a time, in divergent and partial sub-groups."""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from perfvec.arguments import BufferArg, parse_argument
from perfvec.errors import SourceError, UnsupportedError
from perfvec.program.classify import make_static_table
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.frontend import compile_source, keep_kernel
from perfvec.program.ir import parse_kernel
from perfvec.program.native import translate
from perfvec.program.sub_groups import FUNCTIONS, SubGroupFunction, declarations
from perfvec.program.tracer import trace_launch
from perfvec.trace_data import OPCODE_CLASSES, SUB_GROUP_SIZE
from tests.opencl import other_clangs
from tests.program.builtin_calls import DTYPES, INTEGERS
from tests.program.launching import execute, make_launch

WIDTH = SUB_GROUP_SIZE
LOCAL, ITEMS = 40, 120  # three work-groups of a whole sub-group and one of 8 work-items
WHO = np.random.default_rng(3).random(ITEMS) < 0.6
WHO[LOCAL + WIDTH : 2 * LOCAL] = False  # a sub-group of which nobody takes part
WHO[2 * LOCAL : 2 * LOCAL + WIDTH] = True  # and one in which all do
PRAGMAS = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n"
SCALARS = tuple(DTYPES)
Lane = tuple[int, int]  # number of the work-item, its lane
# Takes the active lanes of a sub-group and the values; result of each active lane.
Reference = Callable[[Sequence[Lane], np.ndarray], Sequence[Any]]


def sub_groups() -> list[list[Lane]]:
    """Active work-items of each sub-group, with their lanes."""
    found: dict[tuple[int, int], list[Lane]] = {}
    for item in range(ITEMS):
        group, place = divmod(item, LOCAL)
        if WHO[item]:
            found.setdefault((group, place // WIDTH), []).append((item, place % WIDTH))
    return list(found.values())


def given_buffer(values: np.ndarray) -> BufferArg:
    argument = parse_argument(f"buffer:{values.dtype.name}:{values.size}", position=0)
    assert isinstance(argument, BufferArg)
    return BufferArg(
        element=argument.element, count=argument.count, initialiser=argument.initialiser, data=values.tobytes()
    )


def values_of(type_name: str, seed: int = 1) -> np.ndarray:
    rng, dtype = np.random.default_rng(seed), np.dtype(DTYPES[type_name])
    if dtype.kind == "f":
        return rng.normal(size=ITEMS).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, ITEMS, dtype, endpoint=True)


def run(expression: str, type_name: str, *, result: str = "", values: np.ndarray | None = None) -> np.ndarray:
    """Value of an expression of `x` (a value of the type) and `i` in the work-items that take part."""
    result = result or type_name
    values = values_of(type_name) if values is None else values
    source = f"""{PRAGMAS}kernel void k(global const {type_name} *in, global {result} *out, global const int *who) {{
        int i = get_global_id(0);
        {type_name} x = in[i];
        if (who[i]) out[i] = {expression};
    }}"""
    out = np.zeros(ITEMS, DTYPES[result])
    launch = make_launch(
        source, *map(given_buffer, (values, out, WHO.astype(np.int32))), global_size=ITEMS, local_size=LOCAL
    )
    first = np.asarray(execute(launch)[1])
    assert np.array_equal(first, np.asarray(execute(launch, optimise=False)[1]), equal_nan=first.dtype.kind == "f")
    return first


def check(expression: str, type_name: str, reference: Reference, *, result: str = "") -> None:
    values = values_of(type_name)
    expected = np.zeros(ITEMS, DTYPES[result or type_name])
    with np.errstate(over="ignore"):
        for lanes in sub_groups():
            for (item, _), value in zip(lanes, reference(lanes, values), strict=True):
                expected[item] = value
    np.testing.assert_array_equal(run(expression, type_name, result=result), expected)


# ---- reductions and scans ---------------------------------------------------------------------------------------


def _logical(combine: Callable[[bool, bool], bool]) -> Callable[[Any, Any], Any]:
    return lambda left, right: int(combine(bool(left), bool(right)))


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "logical_and": _logical(lambda left, right: left and right),
    "logical_or": _logical(lambda left, right: left or right),
    "logical_xor": _logical(operator.ne),
}


def identity(operation: str, dtype: np.dtype) -> Any:
    if operation in ("min", "max"):
        if dtype.kind == "f":
            return dtype.type(np.inf if operation == "min" else -np.inf)
        return np.iinfo(dtype).max if operation == "min" else np.iinfo(dtype).min
    number = {"mul": 1, "and": -1, "logical_and": 1}.get(operation, 0)
    return np.array(number).astype(dtype)[()]


def fold(kind: str, operation: str, cluster: int = WIDTH) -> Reference:
    def reference(lanes: Sequence[Lane], values: np.ndarray) -> list[Any]:
        results: list[Any] = []
        start = identity(operation, values.dtype)
        for position, (_, lane) in enumerate(lanes):
            mates = [item for item, other in lanes if other // cluster == lane // cluster]
            before = [item for item, _ in lanes[:position]]
            taken = {"reduce": mates, "scan_inclusive": [*before, lanes[position][0]], "scan_exclusive": before}[kind]
            results.append(functools.reduce(COMBINE[operation], (values[item] for item in taken), start))
        return results

    return reference


def folds() -> list[tuple[str, str, str, str]]:
    found = []
    for name, function in FUNCTIONS.items():
        match = re.fullmatch(r"sub_group_(non_uniform_)?(reduce|scan_inclusive|scan_exclusive)_(\w+)", name)
        if match:
            found += [(name, match[2], match[3], str(type_)) for type_ in function.types]
    return found


def test_the_table_of_folds_is_that_of_the_specification():
    by_name: dict[str, set[str]] = {}
    for name, _, _, type_name in folds():
        by_name.setdefault(name, set()).add(type_name)
    assert len(by_name) == 3 * (3 + 10)
    assert by_name["sub_group_reduce_add"] == by_name["sub_group_non_uniform_scan_inclusive_mul"] == set(SCALARS)
    assert by_name["sub_group_non_uniform_reduce_xor"] == set(INTEGERS)
    assert by_name["sub_group_non_uniform_scan_exclusive_logical_or"] == {"int"}


@pytest.mark.parametrize("type_name", SCALARS)
@pytest.mark.parametrize("kind", ["reduce", "scan_inclusive", "scan_exclusive"])
def test_reductions_and_scans(kind: str, type_name: str):
    chosen = [(name, operation) for name, k, operation, t in folds() if (k, t) == (kind, type_name)]
    assert len(chosen) >= 7
    values = values_of(type_name)
    arguments = ", ".join(f"global {type_name} *o{n}" for n in range(len(chosen)))
    body = "\n".join(f"o{n}[i] = {name}(x);" for n, (name, _) in enumerate(chosen))
    source = f"""{PRAGMAS}kernel void k(global const {type_name} *in, global const int *who, {arguments}) {{
        int i = get_global_id(0);
        {type_name} x = in[i];
        if (who[i]) {{ {body} }}
    }}"""
    buffers = [values, WHO.astype(np.int32), *[np.zeros(ITEMS, values.dtype)] * len(chosen)]
    results = execute(make_launch(source, *map(given_buffer, buffers), global_size=ITEMS, local_size=LOCAL))
    with np.errstate(over="ignore"):
        for number, (name, operation) in enumerate(chosen):
            expected = np.zeros(ITEMS, values.dtype)
            for lanes in sub_groups():
                expected[[item for item, _ in lanes]] = fold(kind, operation)(lanes, values)
            np.testing.assert_array_equal(np.asarray(results[2 + number]), expected, err_msg=name)


@pytest.mark.parametrize("cluster", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize(
    ("operation", "type_name"),
    [("add", "int"), ("mul", "float"), ("min", "half"), ("max", "ulong"), ("and", "uchar"), ("or", "short"),
     ("xor", "uint"), ("logical_and", "int"), ("logical_or", "int"), ("logical_xor", "int")],
)  # fmt: skip
def test_clustered_reductions(operation: str, type_name: str, cluster: int):
    call = f"sub_group_clustered_reduce_{operation}(x, {cluster}u)"
    check(call, type_name, fold("reduce", operation, cluster))


def test_nan_and_identities_of_floats():
    values = np.zeros(ITEMS, np.float32)
    values[::2] = np.nan
    lowest = run("sub_group_scan_exclusive_min(x)", "float", values=values)
    firsts = [lanes[0][0] for lanes in sub_groups()]
    assert np.isposinf(lowest[firsts]).all()
    assert not np.isnan(lowest).any()


# ---- moves ------------------------------------------------------------------------------------------------------


def moved(source: Callable[[int, int], int]) -> Reference:
    """`source` tells the lane that a value comes from, of lane and work-item; its own where that one is not active."""

    def reference(lanes: Sequence[Lane], values: np.ndarray) -> list[Any]:
        item_of = {lane: item for item, lane in lanes}
        return [values[item_of.get(source(lane, item), item)] for item, lane in lanes]

    return reference


def first_lane(lanes: Sequence[Lane], values: np.ndarray) -> list[Any]:
    return [values[lanes[0][0]]] * len(lanes)


MOVES: dict[str, tuple[str, Reference]] = {
    "sub_group_broadcast": ("(x, 5)", moved(lambda lane, item: 5)),
    "sub_group_non_uniform_broadcast": ("(x, 3)", moved(lambda lane, item: 3)),
    "sub_group_broadcast_first": ("(x)", first_lane),
    "sub_group_shuffle": ("(x, (i * 7 + 3) % 40)", moved(lambda lane, item: (item * 7 + 3) % 40)),
    "sub_group_shuffle_xor": ("(x, i % 3 + 1)", moved(lambda lane, item: lane ^ (item % 3 + 1))),
    "sub_group_shuffle_up": ("(x, i % 4)", moved(lambda lane, item: lane - item % 4)),
    "sub_group_shuffle_down": ("(x, i % 5)", moved(lambda lane, item: lane + item % 5)),
    "sub_group_rotate": ("(x, -3)", moved(lambda lane, item: (lane - 3) % WIDTH)),
    "sub_group_clustered_rotate": ("(x, 5, 8)", moved(lambda lane, item: lane // 8 * 8 + (lane + 5) % 8)),
}


def test_every_move_is_tested():
    moves = {n for n, f in FUNCTIONS.items() if f.result == "T" and not re.search("reduce|scan", n)}
    assert moves == set(MOVES)


@pytest.mark.parametrize("type_name", SCALARS)
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str, type_name: str):
    arguments, reference = MOVES[name]
    check(name + arguments, type_name, reference)


@pytest.mark.parametrize("width", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("name", ["sub_group_broadcast", "sub_group_non_uniform_broadcast"])
@pytest.mark.parametrize("type_name", ["uchar", "int", "half", "double"])
def test_broadcasts_of_vectors(name: str, type_name: str, width: int):
    expression = f"convert_{type_name}({name}(({type_name}{width})(x, {', '.join(['x'] * (width - 2) + ['x'])}), 5).s1)"
    check(expression, type_name, MOVES["sub_group_broadcast"][1])


def test_an_argument_may_be_one_of_the_kernel():
    source = """kernel void k(global uint *o, uint delta, uint value) {
        int i = get_global_id(0);
        o[i] = sub_group_shuffle_down(i, delta) + 1000 * sub_group_reduce_add(value) + sub_group_shuffle(delta, i);
    }"""
    result = execute(make_launch(source, "buffer:uint32:64", "uint32:2", "uint32:3"))[0]
    lane = np.arange(64) % 32
    assert result.tolist() == [int(i + 2 * (n < 30) + 96000 + 2) for i, n in zip(range(64), lane, strict=True)]


# ---- votes and ballots ------------------------------------------------------------------------------------------

VOTES: dict[str, tuple[str, Reference]] = {
    "sub_group_all": ("(x > -(1 << 30))", lambda lanes, v: [all(v[i] > -(1 << 30) for i, _ in lanes)] * len(lanes)),
    "sub_group_any": ("(x > 1 << 30)", lambda lanes, v: [any(v[i] > 1 << 30 for i, _ in lanes)] * len(lanes)),
    "sub_group_non_uniform_all": ("(i < 115)", lambda lanes, v: [all(i < 115 for i, _ in lanes)] * len(lanes)),
    "sub_group_non_uniform_any": ("(i == 118)", lambda lanes, v: [any(i == 118 for i, _ in lanes)] * len(lanes)),
    "sub_group_elect": ("()", lambda lanes, v: [n == 0 for n in range(len(lanes))]),
    "sub_group_inverse_ballot": ("(sub_group_ballot(x & 1))", lambda lanes, v: [v[i] & 1 for i, _ in lanes]),
    "sub_group_ballot_bit_extract": (
        "(sub_group_ballot(x & 1), (i + 1) % 32)",
        lambda lanes, v: [
            next((v[j] & 1 for j, lane in lanes if lane == (i + 1) % WIDTH), 0) for i, _ in lanes
        ],
    ),
    "sub_group_ballot_bit_count": (
        "(sub_group_ballot(x & 1))",
        lambda lanes, v: [sum(v[j] & 1 for j, _ in lanes)] * len(lanes),
    ),
    "sub_group_ballot_inclusive_scan": (
        "(sub_group_ballot(x & 1))",
        lambda lanes, v: list(itertools.accumulate(v[j] & 1 for j, _ in lanes)),
    ),
    "sub_group_ballot_exclusive_scan": (
        "(sub_group_ballot(x & 1))",
        lambda lanes, v: [0, *itertools.accumulate(v[j] & 1 for j, _ in lanes[:-1])],
    ),
    "sub_group_ballot_find_lsb": (
        "(sub_group_ballot(1))",
        lambda lanes, v: [lanes[0][1]] * len(lanes),
    ),
    "sub_group_ballot_find_msb": (
        "(sub_group_ballot(1))",
        lambda lanes, v: [lanes[-1][1]] * len(lanes),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VOTES)
def test_votes_and_what_is_made_of_ballots(name: str):
    arguments, reference = VOTES[name]
    is_truth = re.search("(all|any|elect|inverse_ballot|bit_extract)$", name)
    check(f"({name}{arguments} != 0)" if is_truth else name + arguments, "int", reference)


def masks(test: Callable[[int, int], bool]) -> Reference:
    def reference(lanes: Sequence[Lane], values: np.ndarray) -> list[int]:
        del values
        return [sum(1 << bit for bit in range(WIDTH) if test(bit, lane)) for _, lane in lanes]

    return reference


@pytest.mark.parametrize("relation", ["eq", "ge", "gt", "le", "lt"])
def test_masks(relation: str):
    check(f"get_sub_group_{relation}_mask().x", "uint", masks(getattr(operator, relation)))
    call = f"get_sub_group_{relation}_mask()"
    check(f"{call}.y | {call}.z | {call}.w", "uint", masks(lambda bit, lane: False))


def test_a_ballot_has_the_active_lanes():
    def reference(lanes: Sequence[Lane], values: np.ndarray) -> list[int]:
        return [sum(1 << lane for item, lane in lanes if values[item] & 1)] * len(lanes)

    check("sub_group_ballot(x & 1).x", "uint", reference)
    check("sub_group_ballot(1).y", "uint", masks(lambda bit, lane: False))


@pytest.mark.parametrize("type_name", SCALARS)
def test_all_equal(type_name: str):
    values = np.repeat(np.array([1, 2, 3]), 40).astype(DTYPES[type_name])
    values[[lanes[-1][0] for lanes in sub_groups()][-1]] = 7
    equal = run("sub_group_non_uniform_all_equal(x)", type_name, result="int", values=values)
    for lanes in sub_groups():
        items = [item for item, _ in lanes]
        assert set((equal[items] != 0).tolist()) == {len(set(values[items].tolist())) == 1}
    if values.dtype.kind == "f":  # ordered: NaN is not equal to itself
        values[:] = np.nan
        assert not run("sub_group_non_uniform_all_equal(x)", type_name, result="int", values=values).any()


# ---- queries and barriers ---------------------------------------------------------------------------------------


def test_queries():
    source = """kernel void k(global uint *o) {
        o += get_global_linear() * 6;
        o[0] = get_sub_group_size(); o[1] = get_max_sub_group_size(); o[2] = get_num_sub_groups();
        o[3] = get_enqueued_num_sub_groups(); o[4] = get_sub_group_id(); o[5] = get_sub_group_local_id();
    }""".replace("get_global_linear()", "(get_global_id(1) * 10 + get_global_id(0))")
    result = execute(make_launch(source, "buffer:uint32:480", global_size=(10, 8), local_size=(10, 4)))[0]
    for number, row in enumerate(np.asarray(result).reshape(-1, 6).tolist()):
        place = number % 40
        assert row == [8 if place >= 32 else 32, 32, 2, 2, place // 32, place % 32]


def test_a_sub_group_barrier_orders_memory_between_lanes():
    source = """kernel void k(global int *o) {
        local int line[64];
        int i = get_local_id(0), first = i & ~31;
        global int *mine = o + 64 + get_global_id(0);
        line[i] = i; *mine = i;
        sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        o[get_global_id(0)] = line[first + (i + 1) % 32] + 100 * *(mine - i + first + (i + 5) % 32);
    }"""
    result = execute(make_launch(source, "buffer:int32:128", local_size=64))[0]
    lane = np.arange(64)
    first = lane & ~31
    assert result[:64].tolist() == (first + (lane + 1) % 32 + 100 * (first + (lane + 5) % 32)).tolist()


def test_lanes_of_a_loop_meet_again():
    """Each lane leaves the loop after as many rounds as its number says; those that are left vote."""
    source = """kernel void k(global int *o) {
        int lane = get_sub_group_local_id(), seen = 0;
        for (int n = 0; n <= lane; n++) seen += sub_group_non_uniform_reduce_add(1);
        o[get_global_id(0)] = seen * 100 + sub_group_reduce_add(1);
    }"""
    result = execute(make_launch(source, INTS := "buffer:int32:64", local_size=64))[0]
    assert INTS
    expected = [sum(32 - n for n in range(lane + 1)) * 100 + 32 for lane in range(32)]
    assert result.tolist() == expected * 2


def test_a_reduction_by_shuffles_is_that_of_the_function():
    source = """inline float total(float x) {
        for (uint d = 16; d > 0; d /= 2) x += sub_group_shuffle_xor(x, d);
        return x;
    }
    kernel void k(global float *o, global int *same) {
        int i = get_global_id(0);
        float x = i % 7;
        same[i] = total(x) == sub_group_reduce_add(x);
    }"""
    assert execute(make_launch(source, "buffer:float32:64", "buffer:int32:64"))[1].tolist() == [1] * 64


# ---- how the tracer and the front end take them -----------------------------------------------------------------


def test_features_see_communication_queries_and_fences_apart():
    source = """kernel void k(global uint *o) {
        uint i = get_sub_group_local_id();
        uint4 votes = sub_group_ballot(o[i] & 1);
        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
        o[i] = sub_group_ballot_bit_count(votes) + sub_group_shuffle_xor(i, 1u);
    }"""
    trace = trace_launch(make_launch(source, "buffer:uint32:64"))
    classes = [OPCODE_CLASSES[number] for number in trace.static["opcode_class"]]
    counts = {name: classes.count(name) for name in ("sub_group", "work_item", "fence", "barrier")}
    assert counts == {"sub_group": 2, "work_item": 1, "fence": 1, "barrier": 0}
    assert trace.token_weight.sum() == trace.sub_groups["num_instructions"].sum() == 2 * len(trace.static)


def test_only_sources_that_speak_of_sub_groups_get_declarations():
    source = "kernel void k(global int *o) { o[0] = 1; }"
    assert not declarations(source)
    assert declarations(source, ("-DREDUCE=sub_group_reduce_add",))
    assert declarations("#ifdef cl_khr_subgroups")


@pytest.mark.parametrize("clang", other_clangs())
def test_any_clang_compiles_them(clang: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PERFVEC_CLANG", clang)
    source = f"""{PRAGMAS}kernel void k(global int *o, global half *h) {{
        int i = get_sub_group_local_id();
        h[i] = sub_group_scan_inclusive_add(h[i]);
        double d = sub_group_broadcast((double2)(i, 2 * i), 3).s1;
        o[i] = sub_group_reduce_add(i) + sub_group_clustered_reduce_max(i, 4) + (int)d + sub_group_ballot(i & 1).x
            + sub_group_rotate(i, 1);
        sub_group_barrier(CLK_LOCAL_MEM_FENCE);
    }}"""
    program = keep_kernel(compile_source(source), "k")
    called = set(re.findall(r"call .*@(_Z\w*sub_group\w*)\(", program.ir))
    assert {"_Z20sub_group_reduce_addi", "_Z28sub_group_scan_inclusive_addDh", "_Z16sub_group_rotateii"} <= called
    native = translate(parse_kernel(program.ir, "k", is_optimised=True))
    assert len(native.ir) > 1000


def test_errors_keep_their_lines_and_say_what_is_allowed():
    source = "\n\nkernel void k(global int *o) { o[0] = sub_group_shuffle((int4)(1), 3); }"
    with pytest.raises(SourceError) as caught:
        compile_source(source, source_name="mine.cl")
    lines = str(caught.value).splitlines()
    assert lines[0] == "mine.cl does not compile:"
    assert lines[1].startswith("mine.cl:3:")
    assert "no matching function for call to 'sub_group_shuffle'" in lines[1]
    candidates = [line for line in lines if re.search(r"sub_groups.h:\d+:\d+: note: candidate function", line)]
    assert len(candidates) >= 4
    with pytest.raises(SourceError, match=r"\nkernel.cl:1:53: error: use of undeclared identifier 'x'"):
        compile_source("kernel void k(global int *o) { o[0] = sub_group_all(x); }")


def test_a_program_may_define_such_a_function_itself():
    source = """int sub_group_rotate(int x, int by) { return x + by; }
    kernel void k(global int *o) { o[get_global_id(0)] = sub_group_rotate(1, 7) + 100 * sub_group_all(1); }"""
    assert execute(make_launch(source, "buffer:int32:64"))[0].tolist() == [108] * 64


def test_extensions_are_defined():
    names = (
        "subgroups subgroup_extended_types subgroup_non_uniform_vote subgroup_ballot subgroup_non_uniform_arithmetic "
        "subgroup_shuffle subgroup_shuffle_relative subgroup_clustered_reduce subgroup_rotate"
    )
    tests = "".join(f"#ifndef cl_khr_{name}\n#error {name}\n#endif\n" for name in names.split())
    compile_source(f"{tests}kernel void k(void) {{}}")


@pytest.mark.parametrize(
    ("cluster", "found"),
    [("3", "3"), ("64", "64"), ("0", "0"), ("get_local_size(0)", "a value known only at run time")],
)
def test_the_size_of_a_cluster_is_a_power_of_two_and_constant(cluster: str, found: str):
    source = f"kernel void k(global int *o) {{\no[0] = sub_group_clustered_reduce_add(1, {cluster}); }}"
    with pytest.raises(
        UnsupportedError,
        match=f"'k', line 2: the cluster size of sub_group_clustered_reduce_add is {found}; .* 1, 2, 4, 8",
    ):
        compile_launch(make_launch(source, "buffer:int32:64"))


@pytest.mark.parametrize(
    ("declaration", "call", "message"),
    [
        ("<4 x i32> @_Z20sub_group_reduce_addDv4_i(<4 x i32>)", "<4 x i32> zeroinitializer",
         r"sub_group_reduce_add\(int4\) is not a function of OpenCL C; it is .*\(T\); T is one of char,"),
        ("float @_Z32sub_group_non_uniform_reduce_andf(float)", "float 1.0", r"T is one of char, uchar, .*, ulong$"),
        ("i32 @_Z13sub_group_alll(i64)", "i64 1", r"sub_group_all\(long\) .* it is sub_group_all\(int\)$"),
        ("i32 @_Z24sub_group_inverse_ballotj(i32)", "i32 1", r"it is sub_group_inverse_ballot\(uint4\)$"),
    ],
)  # fmt: skip
def test_types_that_a_function_does_not_take(declaration: str, call: str, message: str):
    result, _, rest = declaration.partition(" @")
    ir = (
        f"define spir_kernel void @k() {{\nentry:\n  %x = call spir_func {result} @{rest.partition('(')[0]}({call})\n"
        f"  ret void\n}}\ndeclare spir_func {declaration}\n"
    )
    kernel = parse_kernel(keep_kernel(ir, "k", optimise=False).ir, "k", is_optimised=False)
    with pytest.raises(UnsupportedError, match=message):
        translate(kernel)


def test_a_kernel_for_sub_groups_of_another_size_is_refused_if_they_exchange():
    source = """__attribute__((intel_reqd_sub_group_size({0})))
    kernel void k(global int *o) {{ int i = get_global_id(0); o[i] = {1}; }}"""
    with pytest.raises(UnsupportedError, match=r"line 2: .* sub-groups of 8 work-items .*; the traced ones have 32"):
        compile_launch(make_launch(source.format(8, "sub_group_reduce_add(i)"), "buffer:int32:64"))
    for body, size in (("sub_group_reduce_add(1)", 32), ("32", 8)):
        assert execute(make_launch(source.format(size, body), "buffer:int32:64"))[0].tolist() == [32] * 64


def test_functions_of_a_vendor_are_refused():
    source = "kernel void k(global int *o) { o[0] = intel_sub_group_shuffle(o[0], 3); }"
    with pytest.raises(UnsupportedError, match=r"_shuffle' is not executed.*OpenCL C 1.2 and its extensions"):
        compile_launch(make_launch(source, "buffer:int32:64"))


def test_every_function_is_declared_once_for_each_type():
    declared = declarations("sub_group").splitlines()
    for name, function in FUNCTIONS.items():
        assert isinstance(function, SubGroupFunction)
        lines = [line for line in declared if f" {name}(" in line]
        expected = 2 if name == "sub_group_barrier" else max(1, len(function.types))  # with a scope and without
        assert len(lines) == len(set(lines)) == expected, name


def test_static_rows_of_a_kernel_that_exchanges_only():
    launch = make_launch("kernel void k(global int *o) { o[0] = sub_group_reduce_add(3); }", "buffer:int32:64")
    compiled = compile_launch(launch)
    rows = make_static_table(compiled.native).rows
    assert [OPCODE_CLASSES[number] for number in rows["opcode_class"]] == ["sub_group", "store", "return"]
    execution = Execution(compiled, launch, budget=1000)
    execution.run([0])
    assert execution.results()[0][0] == 96
