"""Native text of the sub-group functions: what a lane computes alone, and functions over all active lanes.

A function in which lanes exchange values takes the list of active lanes, where to put the lanes' results, and for each
argument an array of the lanes' values and the step from one to the next (0 where all have the same). Inactive lanes
take no part. Reductions and scans go from the lowest lane to the highest. What OpenCL leaves undefined, the value of a
lane that is inactive or past the end, is the lane's own value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from perfvec.program.builtins import ValueType
from perfvec.program.builtins.cl_types import BOOL, FLOAT, HALF, INT
from perfvec.program.builtins.emit import Emitter, Value
from perfvec.program.builtins.half import float_to_half, half_to_float
from perfvec.program.builtins.integer import by_sign
from perfvec.program.driver import SUB_GROUP_SIZE, word
from perfvec.program.ir import Instruction, call_arguments
from perfvec.program.sub_groups import SubGroupCall, check_types, sub_group_function
from perfvec.program.writer import Place, Writer

_LAST = SUB_GROUP_SIZE - 1


# ---- what a lane computes alone ---------------------------------------------------------------------------------

_SIZE = f"""\
{{n}}.p = {word("num_lanes")}
{{n}}.lanes = load i64, ptr {{n}}.p
{{n}}.rest = sub i64 {{n}}.lanes, %.pv.base
{{n}}.size = call i64 @llvm.umin.i64(i64 {{n}}.rest, i64 {SUB_GROUP_SIZE})
{{r}} = trunc i64 {{n}}.size to i32"""
_COUNT = f"""\
{{n}}.p = {word("num_sub_groups")}
{{n}}.count = load i64, ptr {{n}}.p
{{r}} = trunc i64 {{n}}.count to i32"""
# The lane's own bit, and all below it, in 64 bits so that nothing is shifted out.
_BIT = """\
{n}.bit = shl i64 1, %.pv.lane
{n}.below = sub i64 {n}.bit, 1
{n}.up.to = or i64 {n}.bit, {n}.below
"""


def _mask(lines: str) -> str:
    return (
        f"{_BIT}{lines}\n{{n}}.word = trunc i64 {{n}}.mask to i32\n"
        "{r} = insertelement <4 x i32> zeroinitializer, i32 {n}.word, i64 0"
    )


def _first_word(lines: str) -> str:
    return f"{{n}}.word = extractelement <4 x i32> {{a}}, i64 0\n{lines}"


def _bits_up_to(end: str) -> str:
    return _BIT + _first_word(
        f"{{n}}.mask = trunc i64 {{n}}.{end} to i32\n{{n}}.bits = and i32 {{n}}.word, {{n}}.mask\n"
        "{r} = call i32 @llvm.ctpop.i32(i32 {n}.bits)"
    )


# Lines by name: {r} is the result, {a} and {b} are the arguments, {n} is a name that nothing else has.
_ALONE = {
    "get_sub_group_size": _SIZE,
    "get_max_sub_group_size": f"{{r}} = add i32 0, {SUB_GROUP_SIZE}",
    "get_num_sub_groups": _COUNT,
    "get_enqueued_num_sub_groups": _COUNT,
    "get_sub_group_id": f"{{n}}.id = udiv i64 %.pv.place, {SUB_GROUP_SIZE}\n{{r}} = trunc i64 {{n}}.id to i32",
    "get_sub_group_local_id": "{r} = trunc i64 %.pv.lane to i32",
    "get_sub_group_eq_mask": _mask("{n}.mask = or i64 {n}.bit, 0"),
    "get_sub_group_ge_mask": _mask("{n}.mask = xor i64 {n}.below, -1"),
    "get_sub_group_gt_mask": _mask("{n}.mask = xor i64 {n}.up.to, -1"),
    "get_sub_group_le_mask": _mask("{n}.mask = or i64 {n}.up.to, 0"),
    "get_sub_group_lt_mask": _mask("{n}.mask = or i64 {n}.below, 0"),
    "sub_group_barrier": "",
    "sub_group_inverse_ballot": _first_word(
        "{n}.lane = trunc i64 %.pv.lane to i32\n{n}.bit = lshr i32 {n}.word, {n}.lane\n{r} = and i32 {n}.bit, 1"
    ),
    "sub_group_ballot_bit_extract": _first_word(
        f"{{n}}.place = and i32 {{b}}, {_LAST}\n{{n}}.bit = lshr i32 {{n}}.word, {{n}}.place\n"
        "{r} = and i32 {n}.bit, 1"
    ),
    "sub_group_ballot_bit_count": _first_word("{r} = call i32 @llvm.ctpop.i32(i32 {n}.word)"),
    "sub_group_ballot_inclusive_scan": _bits_up_to("up.to"),
    "sub_group_ballot_exclusive_scan": _bits_up_to("below"),
    "sub_group_ballot_find_lsb": _first_word("{r} = call i32 @llvm.cttz.i32(i32 {n}.word, i1 false)"),
    "sub_group_ballot_find_msb": _first_word(
        "{n}.zeros = call i32 @llvm.ctlz.i32(i32 {n}.word, i1 false)\n{r} = sub i32 31, {n}.zeros"
    ),
}
_INTRINSICS = {"llvm.ctpop.i32": "i32", "llvm.ctlz.i32": "i32, i1"}


def write_sub_group_call(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    """Lines of a sub-group function that a lane computes alone.

    Raises:
        UnsupportedError: It has no overload for these argument types.
    """
    del places
    check_types(instruction.callee, f"kernel {writer.kernel_name!r}, line {instruction.line}")
    name = writer.fresh("g")
    arguments = [writer.substitute(value) for _, value in call_arguments(instruction)]
    words = dict(zip("ab", arguments, strict=False))
    text = _ALONE[sub_group_function(instruction.callee)].format(n=name, r=instruction.name or f"{name}.r", **words)
    writer.declarations |= {f"declare i32 @{n}({types})" for n, types in _INTRINSICS.items() if n in text}
    return text.splitlines()


# ---- what lanes exchange ----------------------------------------------------------------------------------------

Body: TypeAlias = Callable[[SubGroupCall], "list[str]"]
_LANES = """
define internal i64 @pv.active(ptr %idx, i64 %num) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %mask = phi i64 [ 0, %entry ], [ %mask.next, %loop ]
  %lane.p = getelementptr i8, ptr %idx, i64 %i
  %lane.8 = load i8, ptr %lane.p
  %lane = zext i8 %lane.8 to i64
  %bit = shl i64 1, %lane
  %mask.next = or i64 %mask, %bit
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %num
  br i1 %more, label %loop, label %end
end:
  ret i64 %mask.next
}
"""


def define_sub_group_functions(calls: Iterable[SubGroupCall]) -> str:
    """Define the functions in which lanes exchange values, as text of a module."""
    declarations: dict[str, str] = {}
    functions = []
    for call in calls:
        arguments = "".join(f", ptr %in{i}, i64 %step{i}" for i in range(len(check_types(call.callee, call.name))))
        head = f"define internal void @{call.symbol}(ptr %idx, i64 %num, ptr %out{arguments}) {{\nentry:"
        functions.append("\n".join([head, *_body(call, declarations), "  ret void", "}"]))
    return "\n".join([_LANES, *functions, *declarations.values(), ""])


def _body(call: SubGroupCall, declarations: dict[str, str]) -> list[str]:
    name = call.name.removeprefix("sub_group_").removeprefix("non_uniform_").removeprefix("clustered_")
    emitter = Emitter(declarations)
    for prefix in ("reduce_", "scan_inclusive_", "scan_exclusive_"):
        if name.startswith(prefix):
            return _fold(call, emitter, name.removeprefix(prefix), prefix.strip("_"))
    if name in ("all", "any"):
        return _fold(call, emitter, {"all": "logical_and", "any": "logical_or"}[name], "reduce")
    if name in _VOTES:
        return _VOTES[name](call)
    return _move(call, name)


def _each(label: str, lines: list[str]) -> list[str]:
    """A loop over the active lanes: `%LABEL.lane` is the lane."""
    return [
        f"  br label %{label}.head",
        f"{label}.head:",
        f"  br label %{label}.loop",
        f"{label}.loop:",
        f"  %{label}.i = phi i64 [ 0, %{label}.head ], [ %{label}.next, %{label}.loop ]",
        f"  %{label}.p = getelementptr i8, ptr %idx, i64 %{label}.i",
        f"  %{label}.8 = load i8, ptr %{label}.p",
        f"  %{label}.lane = zext i8 %{label}.8 to i64",
        *lines,
        f"  %{label}.next = add i64 %{label}.i, 1",
        f"  %{label}.more = icmp ult i64 %{label}.next, %num",
        f"  br i1 %{label}.more, label %{label}.loop, label %{label}.end",
        f"{label}.end:",
    ]


def _load(name: str, type_text: str, argument: int, lane: str) -> list[str]:
    """The value of an argument in a lane. Undefined ones are as good as any, but the same wherever they are read."""
    return [
        f"  {name}.skip = mul i64 {lane}, %step{argument}",
        f"  {name}.p = getelementptr {type_text}, ptr %in{argument}, i64 {name}.skip",
        f"  {name}.raw = load {type_text}, ptr {name}.p",
        f"  {name} = freeze {type_text} {name}.raw",
    ]


def _store(label: str, type_text: str, value: str) -> list[str]:
    return [
        f"  %{label}.out = getelementptr {type_text}, ptr %out, i64 %{label}.lane",
        f"  store {type_text} {value}, ptr %{label}.out",
    ]


def _extreme(which: str) -> Callable[[Value, Value], Value]:
    def emit(left: Value, right: Value) -> Value:
        if left.scalar.kind == "int":
            return by_sign(which)(left.emitter, left, right)
        return left.emitter.intrinsic(f"{which}num", left, right)

    return emit


def _logical(combine: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    return lambda left, right: combine(left.ne(0), right.ne(0)).relabel(BOOL).to(INT)


def _greatest(type_: ValueType) -> float | int:
    return type_.scalar.high if type_.scalar.kind == "int" else float("inf")


def _least(type_: ValueType) -> float | int:
    return type_.scalar.low if type_.scalar.kind == "int" else float("-inf")


# By name: what combines two values, and the identity that a fold begins with.
_COMBINE: dict[str, tuple[Callable[[Value, Value], Value], Callable[[ValueType], float | int]]] = {
    "add": (lambda left, right: left + right, lambda _: 0),
    "mul": (lambda left, right: left * right, lambda _: 1),
    "min": (_extreme("min"), _greatest),
    "max": (_extreme("max"), _least),
    "and": (lambda left, right: left & right, lambda _: -1),
    "or": (lambda left, right: left | right, lambda _: 0),
    "xor": (lambda left, right: left ^ right, lambda _: 0),
    "logical_and": (_logical(lambda left, right: left & right), lambda _: 1),
    "logical_or": (_logical(lambda left, right: left | right), lambda _: 0),
    "logical_xor": (_logical(lambda left, right: left ^ right), lambda _: 0),
}


def _fold(call: SubGroupCall, emitter: Emitter, operation: str, kind: str) -> list[str]:
    """Reductions and scans: one running value a cluster."""
    combine, identity = _COMBINE[operation]
    text, number = call.type.llvm, SUB_GROUP_SIZE // call.cluster
    first = emitter.constant(identity(call.type), call.type)
    old, value = Value(emitter, call.type, "%old"), Value(emitter, call.type, "%value")
    if call.type.scalar == HALF:
        new = float_to_half(combine(half_to_float(old), half_to_float(value)))
    else:
        new = combine(old, value)
    held = {"scan_inclusive": new.ref, "scan_exclusive": "%old"}.get(kind)
    place = [
        f"  %{{0}}.cluster = udiv i64 %{{0}}.lane, {call.cluster}",
        f"  %{{0}}.held = getelementptr {text}, ptr %held, i64 %{{0}}.cluster",
    ]
    folding = [
        *(line.format("fold") for line in place),
        f"  %old = load {text}, ptr %fold.held",
        *_load("%value", text, 0, "%fold.lane"),
        *emitter.lines,
        f"  store {new.typed}, ptr %fold.held",
        *(_store("fold", text, held) if held else ()),
    ]
    lines = [
        f"  %held = alloca [{number} x {text}]",
        f"  store [{number} x {text}] [{', '.join([first.typed] * number)}], ptr %held",
        *_each("fold", folding),
    ]
    if held:
        return lines
    giving = [
        *(line.format("give") for line in place),
        f"  %total = load {text}, ptr %give.held",
        *_store("give", text, "%total"),
    ]
    return [*lines, *_each("give", giving)]


_FIRST_LANE = ["  %first.8 = load i8, ptr %idx", "  %first = zext i8 %first.8 to i64"]


def _elect(call: SubGroupCall) -> list[str]:
    del call
    chosen = ["  %is.first = icmp eq i64 %all.lane, %first", "  %chosen = zext i1 %is.first to i32"]
    return [*_FIRST_LANE, *_each("all", [*chosen, *_store("all", "i32", "%chosen")])]


def _all_equal(call: SubGroupCall) -> list[str]:
    text = call.type.llvm
    scalar = "%one", "%value"
    compare = f"icmp eq {text}"
    widen: list[str] = []
    if call.type.scalar == HALF:  # not every host compares halves
        emitter = Emitter({})
        one, value = (half_to_float(Value(emitter, call.type, name)) for name in scalar)
        widen, scalar, compare = emitter.lines, (one.ref, value.ref), f"fcmp oeq {FLOAT.llvm}"
    elif call.type.scalar.kind == "float":
        compare = f"fcmp oeq {text}"
    comparing = [
        *_load("%value", text, 0, "%test.lane"),
        *widen,
        f"  %is.equal = {compare} {scalar[0]}, {scalar[1]}",
        "  %so.far = load i32, ptr %held",
        "  %now = select i1 %is.equal, i32 %so.far, i32 0",
        "  store i32 %now, ptr %held",
    ]
    return [
        "  %held = alloca i32",
        "  store i32 1, ptr %held",
        *_FIRST_LANE,
        *_load("%one", text, 0, "%first"),
        *_each("test", comparing),
        "  %verdict = load i32, ptr %held",
        *_each("all", _store("all", "i32", "%verdict")),
    ]


def _ballot(call: SubGroupCall) -> list[str]:
    del call
    voting = [
        *_load("%value", "i32", 0, "%vote.lane"),
        "  %is.set = icmp ne i32 %value, 0",
        "  %set = zext i1 %is.set to i64",
        "  %bit = shl i64 %set, %vote.lane",
        "  %so.far = load i64, ptr %held",
        "  %now = or i64 %so.far, %bit",
        "  store i64 %now, ptr %held",
    ]
    return [
        "  %held = alloca i64",
        "  store i64 0, ptr %held",
        *_each("vote", voting),
        "  %mask = load i64, ptr %held",
        "  %mask.32 = trunc i64 %mask to i32",
        "  %ballot = insertelement <4 x i32> zeroinitializer, i32 %mask.32, i64 0",
        *_each("all", _store("all", "<4 x i32>", "%ballot")),
    ]


_VOTES: dict[str, Body] = {"elect": _elect, "all_equal": _all_equal, "ballot": _ballot}

# By name: lines that make `%from`, the lane that a value comes from, of `%to.lane` and the second argument.
_OF_INDEX = ["  %from = zext i32 %where to i64"]
_FROM = {
    "broadcast": _OF_INDEX,
    "shuffle": _OF_INDEX,
    "broadcast_first": ["  %from = or i64 %first, 0"],
    "shuffle_xor": ["  %mask = zext i32 %where to i64", "  %from = xor i64 %to.lane, %mask"],
    "shuffle_up": ["  %delta = zext i32 %where to i64", "  %from = sub i64 %to.lane, %delta"],
    "shuffle_down": ["  %delta = zext i32 %where to i64", "  %from = add i64 %to.lane, %delta"],
    "rotate": [
        "  %delta = sext i32 %where to i64",
        "  %sum = add i64 %to.lane, %delta",
        "  %inside = and i64 %sum, {last}",
        "  %cluster = and i64 %to.lane, {others}",
        "  %from = or i64 %cluster, %inside",
    ],
}


def _move(call: SubGroupCall, name: str) -> list[str]:
    """Broadcasts, shuffles and rotations."""
    text = call.type.llvm
    last = call.cluster - 1
    moving = [
        *(_load("%where", "i32", 1, "%to.lane") if name != "broadcast_first" else ()),
        *(line.format(last=last, others=~last) for line in _FROM[name]),
        f"  %is.there = icmp ule i64 %from, {_LAST}",
        f"  %near = and i64 %from, {_LAST}",
        "  %shifted = lshr i64 %active, %near",
        "  %is.active = trunc i64 %shifted to i1",
        "  %is.good = and i1 %is.there, %is.active",
        "  %source = select i1 %is.good, i64 %from, i64 %to.lane",
        *_load("%value", text, 0, "%source"),
        *_store("to", text, "%value"),
    ]
    return ["  %active = call i64 @pv.active(ptr %idx, i64 %num)", *_FIRST_LANE, *_each("to", moving)]
