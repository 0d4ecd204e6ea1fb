"""The kernel's LLVM IR as records: blocks of instructions with their names, types and operands.

Only the kernel function is read; everything it calls has been inlined or is a built-in. The text of an instruction is
kept, because the executor's native code is made from it with few words changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import final

from perfvec.errors import UnsupportedError

LOCAL_NAME = re.compile(r'%(?:"[^"]*"|[-\w$.]+)')
GLOBAL_NAME = re.compile(r'@(?:"[^"]*"|[-\w$.]+)')
_FLAGS = re.compile(
    r"^(?:(?:nuw|nsw|exact|disjoint|nneg|samesign|inbounds|nusw|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|volatile"
    r"|atomic|tail|musttail|notail|inrange\(\S+ \S+\)) )+"
)
_BARE = r"(?<![-%@\w$.\"])"  # a word, and not the end of a name
_CALLING = re.compile(_BARE + r"(?:spir_func|ccc|fastcc)\b ?")
_ATTRIBUTE = re.compile(
    _BARE
    + r"(?:noundef|nonnull|noalias|captures\([^)]*\)|nocapture|readonly|writeonly|readnone|returned|signext|zeroext"
    r"|immarg|inreg|noext|range\([^)]*\)|dereferenceable(?:_or_null)?\(\d+\)|nofpclass\([^)]*\)|dead_on_unwind|writable"
    r"|initializes\(\([^)]*\)\))(?![-\w$.]) ?"
)
_METADATA = re.compile(r"(?:, ![\w.]+ !\d+)+(?= |$)|(?: #\d+)(?=[, ]|$)")
_DBG = re.compile(r"!dbg !(\d+)")
_ALIGN = re.compile(r", align (\d+)")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction.

    Attributes:
        name: The value it makes, such as `%add`; "" if none.
        opcode: LLVM's word.
        type: Type of the value it makes, or of the value stored; "void" if neither.
        text: The instruction without its name, metadata and attributes.
        operands: Local names that it reads, in order, labels left out.
        targets: Labels that it may go to, in order.
        callee: The function that it calls, without `@`; "" if none.
        line: Source line; 0 where unknown.
        is_volatile: Whether a load or store is volatile.
    """

    name: str
    opcode: str
    type: str
    text: str
    operands: tuple[str, ...]
    targets: tuple[str, ...] = ()
    callee: str = ""
    line: int = 0
    is_volatile: bool = False

    @property
    def align(self) -> int:
        """Alignment in bytes that a load or store promises; 1 where it promises none."""
        match = _ALIGN.search(self.text)
        return int(match[1]) if match else 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A basic block; the last instruction is its terminator."""

    label: str
    instructions: tuple[Instruction, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A kernel parameter.

    Attributes:
        name: Its local name.
        type: LLVM type.
        byval: Type of a struct that is passed by value, else "".
        opaque: OpenCL's type of an image or sampler without its `_t`, such as `image2d` or `sampler`, else "".
        opencl_type: OpenCL's own name of its type, such as `float*`, else "".
        use: `readonly`, `writeonly` or `readnone` where the optimiser has found that the kernel does no more with what
            it points to, else "".
    """

    name: str
    type: str
    byval: str
    opaque: str = ""
    opencl_type: str = ""
    use: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalVariable:
    """A module variable: constant or local memory."""

    name: str
    address_space: int
    type: str
    initialiser: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelIR:
    """A kernel ready to be translated.

    Attributes:
        name: The kernel function.
        parameters: Its parameters.
        blocks: Its basic blocks.
        variables: The module's variables.
        types: Definitions of the module's named types.
        is_optimised: Whether the fixed pass pipeline has run.
        required_local_size: The only local size that the kernel allows (`reqd_work_group_size`); empty where it does
            not say.
        sub_group_size: The sub-group size that it asks for (`intel_reqd_sub_group_size`); None where it does not say.
    """

    name: str
    parameters: tuple[Parameter, ...]
    blocks: tuple[Block, ...]
    variables: tuple[GlobalVariable, ...]
    types: dict[str, str]
    is_optimised: bool
    required_local_size: tuple[int, ...] = ()
    sub_group_size: int | None = None


# ---- types ------------------------------------------------------------------------------------------------------

_CLOSING = {"[": "]", "<": ">", "{": "}", "(": ")"}


def read_type(text: str, start: int = 0) -> tuple[str, int]:
    """Read the LLVM type that begins at `start`; return it and the position after it."""
    i = start
    if text[i] in "[<{":
        i = _skip_brackets(text, i)
    elif text[i] == "%":
        match = LOCAL_NAME.match(text, i)
        assert match is not None
        i = match.end()
    else:
        match = re.compile(r"ptr addrspace\(\d+\)|\w+").match(text, i)
        if match is None:
            raise UnsupportedError(f"cannot read the LLVM type at {text[i : i + 60]!r}")
        i = match.end()
    return text[start:i], i


def _skip_brackets(text: str, start: int) -> int:
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "[<{(":
            depth += 1
        elif text[i] in "]>})":
            depth -= 1
            if depth == 0:
                return i + 1
    raise UnsupportedError(f"unbalanced brackets in LLVM text {text[start : start + 60]!r}")


def split_top(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "[<{(":
            depth += 1
        elif char in "]>})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def vector_parts(type_text: str) -> tuple[int, str]:
    """Split `<4 x float>` into 4 and `float`; any other type into 1 and itself."""
    match = re.fullmatch(r"<(\d+) x (.+)>", type_text)
    return (int(match[1]), match[2]) if match else (1, type_text)


def pointer_space(type_text: str) -> int:
    """Address space of a pointer type (or vector of pointers); -1 if it is none."""
    _, scalar = vector_parts(type_text)
    match = re.fullmatch(r"ptr(?: addrspace\((\d+)\))?", scalar)
    return -1 if match is None else int(match[1] or 0)


def with_vector_width(scalar: str, width: int) -> str:
    """`float` and 4 make `<4 x float>`; a width of 1 leaves it alone."""
    return scalar if width == 1 else f"<{width} x {scalar}>"


# ---- functions --------------------------------------------------------------------------------------------------


def parse_kernel(ir: str, kernel_name: str, *, is_optimised: bool) -> KernelIR:
    """Read the kernel function out of textual LLVM IR.

    Raises:
        UnsupportedError: It uses something that is not OpenCL C, or calls a function that could not be inlined.
    """
    lines = ir.splitlines()
    reader = _Reader(lines)
    head = re.compile(rf"^define .*@{re.escape(kernel_name)}\(")
    start = next(i for i, line in enumerate(lines) if head.match(line))
    end = next(i for i in range(start, len(lines)) if lines[i] == "}")
    return KernelIR(
        name=kernel_name,
        parameters=_parse_parameters(lines[start], kernel_name, _opencl_types(lines, lines[start])),
        blocks=tuple(reader.blocks(lines[start + 1 : end])),
        variables=tuple(_parse_variables(lines)),
        types=reader.types,
        is_optimised=is_optimised,
        required_local_size=tuple(
            map(int, re.findall(r"i32 (\d+)", _metadata("reqd_work_group_size", lines[start], lines)))
        ),
        sub_group_size=next(
            map(int, re.findall(r"i32 (\d+)", _metadata("intel_reqd_sub_group_size", lines[start], lines))), None
        ),
    )


def _opencl_types(lines: list[str], define: str) -> list[str]:
    """OpenCL's own names of the parameters' types, out of the kernel's metadata; empty where it has none."""
    return re.findall(r'!"([^"]*)"', _metadata("kernel_arg_base_type", define, lines))


def _metadata(name: str, define: str, lines: list[str]) -> str:
    """A node of a kernel's metadata as text; "" where it has none of that name."""
    node = re.search(rf"!{name} (!\d+)", define)
    return "" if node is None else next(line for line in lines if line.startswith(f"{node[1]} = "))


def _parse_parameters(line: str, kernel_name: str, opencl_types: list[str]) -> tuple[Parameter, ...]:
    opening = line.index(f"@{kernel_name}(") + len(kernel_name) + 1
    body = line[opening + 1 : _skip_brackets(line, opening) - 1]
    parameters = []
    for part, opencl_type in zip_longest(split_top(body), opencl_types, fillvalue=""):
        byval = re.search(r"byval\(([^)]*)\)", part)
        type_text, _ = read_type(part)
        names = LOCAL_NAME.findall(part)
        opaque = re.fullmatch(r"(image\w+|sampler)_t", opencl_type)
        use = re.search(r"\b(readonly|writeonly|readnone)\b", part.removesuffix(names[-1]))
        parameters.append(
            Parameter(
                name=names[-1],
                type=type_text,
                byval=byval[1] if byval else "",
                opaque=opaque[1] if opaque else "",
                opencl_type=opencl_type,
                use=use[1] if use else "",
            )
        )
    return tuple(parameters)


_VARIABLE = re.compile(
    rf"^({GLOBAL_NAME.pattern}) = (?:.*? )?addrspace\((\d+)\) (?:externally_initialized )?(?:global|constant) (.*)$"
)


def _parse_variables(lines: list[str]) -> Iterator[GlobalVariable]:
    for line in lines:
        match = _VARIABLE.match(line)
        if match is None:
            continue
        rest = _METADATA.sub("", match[3])
        type_text, position = read_type(rest)
        initialiser = split_top(rest[position:].strip() or "undef")[0]
        yield GlobalVariable(name=match[1], address_space=int(match[2]), type=type_text, initialiser=initialiser)


class _Reader:
    """Reads instructions; knows the module's named types and the source lines of its debug nodes."""

    def __init__(self, lines: list[str]) -> None:
        definition = re.compile(rf"^({LOCAL_NAME.pattern}) = type (.*)$")
        location = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
        self.types: dict[str, str] = {}
        self._source_lines: dict[str, int] = {}
        for line in lines:
            if match := definition.match(line):
                self.types[match[1]] = match[2]
            elif match := location.match(line):
                self._source_lines[match[1]] = int(match[2])

    def blocks(self, lines: list[str]) -> Iterator[Block]:
        """Read the body of a function."""
        label = "%entry"
        body: list[Instruction] = []
        for line in _logical_lines(lines):
            match = re.match(r'^("[^"]*"|[-\w$.]+):', line)
            if match:
                if body:
                    yield Block(label=label, instructions=tuple(body))
                label, body = f"%{match[1]}", []
            elif line.strip() and not line.startswith("    #dbg_"):
                body.append(self.instruction(line.strip()))
        yield Block(label=label, instructions=tuple(body))

    def instruction(self, line: str) -> Instruction:
        """Read one instruction from its text, on one line."""
        dbg = _DBG.search(line)
        source_line = self._source_lines.get(dbg[1], 0) if dbg else 0
        text = _METADATA.sub("", line)
        name = ""
        match = re.match(rf"({LOCAL_NAME.pattern}) = (.*)", text)
        if match:
            name, text = match[1], match[2]
        text = re.sub(r"^(?:tail|musttail|notail) call", "call", text)
        opcode, _, rest = text.partition(" ")
        if opcode == "call":
            return self._call(name, text, source_line)
        label = rf"label ({LOCAL_NAME.pattern})"
        value_text = re.sub(rf", ({LOCAL_NAME.pattern}) \]", " ]", text) if opcode == "phi" else re.sub(label, "", text)
        return Instruction(
            name=name,
            opcode=opcode,
            type=self._result_type(opcode, _FLAGS.sub("", rest)),
            text=text,
            operands=self._operands(value_text),
            targets=tuple(re.findall(label, text)),
            line=source_line,
            is_volatile=rest.startswith("volatile "),
        )

    def _operands(self, text: str) -> tuple[str, ...]:
        return tuple(name for name in LOCAL_NAME.findall(text) if name not in self.types)

    def _call(self, name: str, text: str, line: int) -> Instruction:
        body = _FLAGS.sub("", _CALLING.sub("", text[len("call ") :]))
        while (cut := _ATTRIBUTE.match(body)) is not None:
            body = body[cut.end() :]
        type_text, position = read_type(body)
        rest = body[position:].strip()
        if rest.startswith("("):  # a function type where the callee is variadic: printf
            rest = rest[_skip_brackets(rest, 0) :].strip()
        match = re.match(rf"({GLOBAL_NAME.pattern})\(", rest)
        if match is None:
            raise UnsupportedError(f"line {line}: a call through a pointer ({text}); OpenCL C 1.2 does not allow it")
        arguments = rest[match.end() : _skip_brackets(rest, match.end() - 1) - 1]
        arguments = _ATTRIBUTE.sub("", re.sub(r"\balign \d+ ", "", arguments))
        return Instruction(
            name=name,
            opcode="call",
            type=type_text,
            text=f"call {type_text} {match[1]}({arguments})",
            operands=self._operands(arguments),
            callee=match[1][1:].strip('"'),
            line=line,
        )

    def _result_type(self, opcode: str, rest: str) -> str:
        if opcode == "extractvalue":
            return self._member_type(split_top(rest))
        if opcode in _TYPE_RULES:
            return _TYPE_RULES[opcode](rest)
        return read_type(rest)[0] if rest else "void"

    def _member_type(self, parts: list[str]) -> str:
        type_text = read_type(parts[0])[0]
        for index in parts[1:]:
            type_text = self.types.get(type_text, type_text)
            array = re.fullmatch(r"\[\d+ x (.*)\]", type_text)
            type_text = array[1] if array else split_top(type_text.strip("<>")[1:-1])[int(index)]
        return type_text


def _logical_lines(lines: list[str]) -> Iterator[str]:
    """Join the lines of a switch, the one instruction that LLVM prints on several."""
    pending = ""
    for line in lines:
        pending = f"{pending} {line.strip()}" if pending else line
        if pending.lstrip().startswith("switch ") and "]" not in pending:
            continue
        yield pending
        pending = ""


def call_arguments(instruction: Instruction) -> list[tuple[str, str]]:
    """Type and value text of each argument of a call."""
    opening = instruction.text.index("(", instruction.text.index("@"))
    inside = instruction.text[opening + 1 : _skip_brackets(instruction.text, opening) - 1]
    pairs = []
    for part in split_top(inside):
        type_text, position = read_type(part)
        pairs.append((type_text, part[position:].strip()))
    return pairs


def phi_values(phi: Instruction) -> dict[str, str]:
    """Text of the value that a phi takes, by the label of the block that control comes from."""
    rest = _FLAGS.sub("", phi.text.removeprefix("phi "))
    _, position = read_type(rest)
    parts = (part.strip()[1:-1].rpartition(",") for part in split_top(rest[position:]))
    return {label.strip(): value.strip() for value, _, label in parts}


def _compare_type(rest: str) -> str:
    _, _, operands = rest.partition(" ")
    width, _ = vector_parts(read_type(operands)[0])
    return with_vector_width("i1", width)


def _second_type(rest: str) -> str:
    return read_type(split_top(rest)[1])[0]


def _shuffle_type(rest: str) -> str:
    parts = split_top(rest)
    _, scalar = vector_parts(read_type(parts[0])[0])
    width, _ = vector_parts(read_type(parts[2])[0])
    return with_vector_width(scalar, width)


def _address_type(rest: str) -> str:
    """A pointer; a vector of them where the pointer or an index is a vector."""
    types = [read_type(part)[0] for part in split_top(rest)[1:]]
    widths = [width for width, _ in map(vector_parts, types)]
    return with_vector_width(vector_parts(types[0])[1], max(widths))


_TYPE_RULES: dict[str, Callable[[str], str]] = {
    "icmp": _compare_type,
    "fcmp": _compare_type,
    "select": _second_type,
    "extractelement": lambda rest: vector_parts(read_type(rest)[0])[1],
    "shufflevector": _shuffle_type,
    "getelementptr": _address_type,
    **{word: lambda _: "void" for word in ("br", "switch", "ret", "unreachable", "fence")},
    "alloca": lambda _: "ptr",
    **{
        cast: lambda rest: rest.rsplit(" to ", 1)[1]
        for cast in (
            "trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint",
            "inttoptr", "bitcast", "addrspacecast", "ptrtoaddr",
        )
    },
}  # fmt: skip
