"""Native text of calls: work-item functions, atomics, vector loads and stores, intrinsics, built-ins."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from perfvec.errors import UnsupportedError
from perfvec.program.accesses import atomic_parts, vector_access_parts, writes_through_pointer
from perfvec.program.builtins import defined_name, is_value_builtin
from perfvec.program.driver import word
from perfvec.program.images import is_image_call, write_image_call
from perfvec.program.ir import Instruction, call_arguments, pointer_space, vector_parts, with_vector_width
from perfvec.program.printf import write_printf
from perfvec.program.segments import is_barrier
from perfvec.program.sub_group_functions import write_sub_group_call
from perfvec.program.sub_groups import sub_group_function
from perfvec.program.writer import Place, Writer

_WORK_ITEM_QUERY = re.compile(
    r"^_Z\d+(get_global_id|get_local_id|get_group_id|get_num_groups|get_global_size|get_local_size"
    r"|get_global_offset|get_enqueued_local_size)j$"
)
_NO_EFFECT = re.compile(
    r"^(_Z\d+(mem_fence|read_mem_fence|write_mem_fence|prefetch|atomic_work_item_fence)"
    r"|llvm\.prefetch)"
)
# Declared by the driver, or by every module.
_DECLARED = ("llvm.umin.i64", "llvm.cttz.i32")
_BLOCK_COPY = re.compile(r"llvm\.(memcpy|memmove|memset)\.")
# They end the process or change its state.
_DANGEROUS = re.compile(r"llvm\.(\w*trap$|set\.|experimental\.)")
Handler: TypeAlias = Callable[[Writer, Instruction, Sequence[Place]], list[str]]


def write_call(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    """Lines of a call.

    Raises:
        UnsupportedError: The function is not executed here; the message names it and its line.
    """
    if is_barrier(instruction) or _NO_EFFECT.match(instruction.callee):
        return [f"{instruction.name} = freeze {instruction.type} poison"] if instruction.name else []
    for applies, handler in _HANDLERS:
        if applies(instruction.callee):
            return handler(writer, instruction, places)
    raise _refusal(writer, instruction)


def _refusal(writer: Writer, instruction: Instruction) -> UnsupportedError:
    name = readable_name(instruction.callee)
    return UnsupportedError(
        f"kernel {writer.kernel_name!r}, line {instruction.line}: the function {name!r} is not executed by the tracer; "
        "allowed are functions that the program defines and the built-ins of OpenCL C 1.2 and its extensions"
    )


def readable_name(callee: str) -> str:
    """A built-in's own name out of its mangled one."""
    match = re.match(r"_Z(\d+)", callee)
    return callee[match.end() : match.end() + int(match[1])] if match else callee


def _value_call(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    del places
    text = writer.substitute(instruction.text)
    return [f"{instruction.name} = {text}" if instruction.name else text]


def _builtin(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    writer.builtins.add(instruction.callee)
    return _value_call(writer, instruction, places)


def _intrinsic(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    types = [type_text for type_text, _ in call_arguments(instruction)]
    is_value = all(pointer_space(t) < 0 and t != "metadata" for t in (*types, instruction.type))
    if not is_value or _DANGEROUS.match(instruction.callee):
        raise _refusal(writer, instruction)
    if instruction.callee not in _DECLARED:
        writer.declarations.add(f"declare {instruction.type} @{instruction.callee}({', '.join(types)})")
    return _value_call(writer, instruction, places)


def _block_copy(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    if not places:  # of no bytes
        return []
    (_, second), (_, length) = call_arguments(instruction)[1:3]
    if instruction.callee.startswith("llvm.memset"):
        value = writer.substitute(second)
        return [f"call void @llvm.memset.p0.i64(ptr {places[0].pointer}, i8 {value}, i64 {length}, i1 false)"]
    source, target = (place.pointer for place in places)
    return [f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {length}, i1 false)"]


def _work_item(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    del places
    match = _WORK_ITEM_QUERY.match(instruction.callee)
    assert match is not None
    dim = writer.substitute(call_arguments(instruction)[0][1])
    return [f"{instruction.name or writer.fresh('i')} = call i64 @pv.{match[1]}(ptr %.ctx, i32 {dim}, i64 %.pv.place)"]


def _work_dim(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    del places
    value = writer.fresh("w")
    return [f"{value} = {word('work_dim')}", f"{instruction.name or writer.fresh('i')} = load i32, ptr {value}"]


def _vector_access(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    parts = vector_access_parts(instruction.callee)
    assert parts is not None
    pointer, align = places[0].pointer, places[0].access.align
    if parts.is_store:
        value_type, value = call_arguments(instruction)[0]
        value, lines = writer.substitute(value), []
        if parts.is_half:
            narrow = writer.fresh("h")
            lines = convert_to_half(writer, narrow, value_type, value, parts.rounding)
            value_type, value = with_vector_width("half", parts.width), narrow
        return [*lines, f"store {value_type} {value}, ptr {pointer}, align {align}"]
    name = instruction.name or writer.fresh("v")
    if not parts.is_half:
        return [f"{name} = load {instruction.type}, ptr {pointer}, align {align}"]
    half, loaded = with_vector_width("half", parts.width), writer.fresh("h")
    convert = f"convert_float{'' if parts.width == 1 else parts.width}"
    callee = f"_Z{len(convert)}{convert}{_mangled('Dh', parts.width)}"
    writer.builtins.add(callee)
    return [
        f"{loaded} = load {half}, ptr {pointer}, align {align}",
        f"{name} = call {instruction.type} @{callee}({half} {loaded})",
    ]


def convert_to_half(writer: Writer, name: str, type_text: str, value: str, rounding: str = "rte") -> list[str]:
    """Lines that round floats or doubles to halves without the help of a run-time library.

    Args:
        writer: The code in the making.
        name: The result.
        type_text: LLVM type of the value.
        value: Text of the value.
        rounding: `rte`, `rtz`, `rtp` or `rtn`.
    """
    width, scalar = vector_parts(type_text)
    convert = f"convert_half{'' if width == 1 else width}_{rounding}"
    callee = f"_Z{len(convert)}{convert}{_mangled(scalar[0], width)}"
    writer.builtins.add(callee)
    return [f"{name} = call {with_vector_width('half', width)} @{callee}({type_text} {value})"]


def _mangled(scalar: str, width: int) -> str:
    return scalar if width == 1 else f"Dv{width}_{scalar}"


def _atomic(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    parts = atomic_parts(instruction.callee)
    assert parts is not None
    operation, letter = parts
    old, new = instruction.name or writer.fresh("old"), writer.fresh("new")
    type_text, pointer, align = instruction.type, places[0].pointer, places[0].access.align
    operands = [writer.substitute(value) for _, value in call_arguments(instruction)[1:]]
    return [
        f"{old} = load {type_text}, ptr {pointer}, align {align}",
        *_ATOMICS[operation](new, type_text, old, operands, "s" if letter in "il" else "u"),
        f"store {type_text} {new}, ptr {pointer}, align {align}",
    ]


def _two_results(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    writer.builtins.add(instruction.callee)
    arguments = call_arguments(instruction)[:-1]
    access = places[0].access
    width, scalar = vector_parts(instruction.type)
    stored = with_vector_width("i32" if re.search(r"frexp|lgamma_r|remquo", instruction.callee) else scalar, width)
    both, out = writer.fresh("b"), writer.fresh("o")
    text = ", ".join(f"{t} {writer.substitute(v)}" for t, v in arguments)
    pair = f"{{ {instruction.type}, {stored} }}"
    return [
        f"{both} = call {pair} @{defined_name(instruction.callee)}({text})",
        f"{instruction.name or writer.fresh('r')} = extractvalue {pair} {both}, 0",
        f"{out} = extractvalue {pair} {both}, 1",
        f"store {stored} {out}, ptr {places[0].pointer}, align {access.align}",
    ]


_HANDLERS: tuple[tuple[Callable[[str], object], Handler], ...] = (
    (_BLOCK_COPY.match, _block_copy),
    (lambda callee: callee.startswith("llvm."), _intrinsic),
    (_WORK_ITEM_QUERY.match, _work_item),
    (lambda callee: callee.startswith("_Z12get_work_dim"), _work_dim),
    (is_image_call, write_image_call),
    (sub_group_function, write_sub_group_call),
    (lambda callee: callee == "printf", write_printf),
    (vector_access_parts, _vector_access),
    (atomic_parts, _atomic),
    (writes_through_pointer, _two_results),
    (is_value_builtin, _builtin),
)


# ---- atomics: (new value, type, old value, operands, "s" or "u") -> lines ---------------------------------------

Step: TypeAlias = Callable[[str, str, str, list[str], str], list[str]]


def _binary(word: str) -> Step:
    return lambda new, type_text, old, operands, _: [f"{new} = {word} {type_text} {old}, {operands[0]}"]


def _step(word: str) -> Step:
    return lambda new, type_text, old, _operands, _sign: [f"{new} = {word} {type_text} {old}, 1"]


def _extreme(comparison: str) -> Step:
    return lambda new, type_text, old, operands, sign: [
        f"{new}.c = icmp {sign}{comparison} {type_text} {old}, {operands[0]}",
        f"{new} = select i1 {new}.c, {type_text} {old}, {type_text} {operands[0]}",
    ]


def _exchange(new: str, type_text: str, old: str, operands: list[str], sign: str) -> list[str]:
    del old, sign
    return [f"{new} = select i1 true, {type_text} {operands[0]}, {type_text} {operands[0]}"]


def _compare_exchange(new: str, type_text: str, old: str, operands: list[str], sign: str) -> list[str]:
    del sign
    return [
        f"{new}.c = icmp eq {type_text} {old}, {operands[0]}",
        f"{new} = select i1 {new}.c, {type_text} {operands[1]}, {type_text} {old}",
    ]


_ATOMICS: dict[str, Step] = {
    "add": _binary("add"),
    "sub": _binary("sub"),
    "and": _binary("and"),
    "or": _binary("or"),
    "xor": _binary("xor"),
    "inc": _step("add"),
    "dec": _step("sub"),
    "min": _extreme("lt"),
    "max": _extreme("gt"),
    "xchg": _exchange,
    "cmpxchg": _compare_exchange,
}
