"""Native text of single instructions: the kernel's own, hardly changed.

Loads and stores go through checked pointers; divisions are guarded, because the processor would trap; what the kernel
left undefined is frozen before anything depends on it, because LLVM may do as it likes otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from perfvec.program.calls import convert_to_half, write_call
from perfvec.program.ir import LOCAL_NAME, Instruction, read_type, split_top, vector_parts, with_vector_width
from perfvec.program.writer import Place, Writer

Handler: TypeAlias = Callable[[Writer, Instruction, Sequence[Place]], list[str]]


def write_instruction(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    """Lines that do what the instruction does for one lane.

    Args:
        writer: The code in the making.
        instruction: Not a phi, not a terminator.
        places: Its memory accesses, in the order of `accesses_of`.

    Raises:
        UnsupportedError: The executor does not know it; the message names it and its line.
    """
    return _HANDLERS.get(instruction.opcode, _plain)(writer, instruction, places)


def write_jump(writer: Writer, terminator: Instruction, edges: dict[str, str]) -> list[str]:
    """Lines of a branch or switch whose targets are replaced.

    Args:
        writer: The code in the making.
        terminator: A terminator with targets.
        edges: New label of each target, both with `%`.
    """
    text = re.sub(
        rf"label ({LOCAL_NAME.pattern})", lambda m: f"label {edges[m[1]]}", writer.substitute(terminator.text)
    )
    match = re.match(r"(br|switch) (i\d+) (.+?), label ", text)
    if match is None:  # br without a condition
        return [text]
    value = writer.fresh("c")
    return [f"{value} = freeze {match[2]} {match[3]}", text.replace(f" {match[3]},", f" {value},", 1)]


def _plain(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    del places
    text = writer.substitute(instruction.text)
    return [f"{instruction.name} = {text}" if instruction.name else text]


def _address(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    del places
    # Without promises: the addresses are not the machine's, and the bounds are checked at the access.
    text = re.sub(r"getelementptr (?:inbounds |nuw |nusw )+", "getelementptr ", instruction.text)
    return [f"{instruction.name} = {writer.substitute(text)}"]


def _load(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    del writer
    return [f"{instruction.name} = load {instruction.type}, ptr {places[0].pointer}, align {instruction.align}"]


def _store(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    text = re.sub(r"^store (atomic |volatile )*", "", instruction.text)
    return [f"store {writer.substitute(split_top(text)[0])}, ptr {places[0].pointer}, align {instruction.align}"]


def _divide(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    """Division by zero, and of the least number by -1, are undefined in OpenCL but trap on a processor."""
    del places
    match = re.match(r"(sdiv|udiv|srem|urem) (?:exact )?", instruction.text)
    assert match is not None
    type_text, position = read_type(instruction.text, match.end())
    left, right = (writer.substitute(part) for part in split_top(instruction.text[position:].strip()))
    width, scalar = vector_parts(type_text)
    value, bits = writer.fresh("d"), with_vector_width("i1", width)
    lines = [
        f"{value}.n = freeze {type_text} {left}",
        f"{value}.d = freeze {type_text} {right}",
        f"{value}.z = icmp eq {type_text} {value}.d, {_constant(type_text, 0)}",
    ]
    if match[1] in ("sdiv", "srem"):
        lines += [
            f"{value}.m = icmp eq {type_text} {value}.d, {_constant(type_text, -1)}",
            f"{value}.l = icmp eq {type_text} {value}.n, {_constant(type_text, -(1 << (int(scalar[1:]) - 1)))}",
            f"{value}.o = and {bits} {value}.m, {value}.l",
            f"{value}.b = or {bits} {value}.z, {value}.o",
        ]
    else:
        lines.append(f"{value}.b = or {bits} {value}.z, {value}.z")
    return [
        *lines,
        f"{value}.r = select {bits} {value}.b, {type_text} {_constant(type_text, 1)}, {type_text} {value}.d",
        f"{instruction.name} = {match[1]} {type_text} {value}.n, {value}.r",
    ]


def _constant(type_text: str, value: int) -> str:
    width, scalar = vector_parts(type_text)
    return str(value) if width == 1 else f"<{', '.join([f'{scalar} {value}'] * width)}>"


def _narrow(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    """Of the conversions between floats only this one may need a helper that the process lacks."""
    if not instruction.type.endswith(("half", "half>")):
        return _plain(writer, instruction, places)
    position = re.match(r"fptrunc (?:fast |nnan |ninf |nsz |arcp |contract |afn |reassoc )*", instruction.text)
    assert position is not None
    type_text, end = read_type(instruction.text, position.end())
    value = writer.substitute(instruction.text[end:].rsplit(" to ", 1)[0].strip())
    return convert_to_half(writer, instruction.name, type_text, value)


def _nothing(writer: Writer, instruction: Instruction, places: Sequence[Place]) -> list[str]:
    del writer, instruction, places
    return []


_HANDLERS: dict[str, Handler] = {
    "getelementptr": _address,
    "load": _load,
    "store": _store,
    **dict.fromkeys(("sdiv", "udiv", "srem", "urem"), _divide),
    "fptrunc": _narrow,
    "fence": _nothing,
    "call": write_call,
}
