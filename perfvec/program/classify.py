"""From LLVM instructions to the rows of a trace's static table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.program.accesses import atomic_parts, vector_access_parts
from perfvec.program.builtins import classify_builtin
from perfvec.program.ir import Instruction, vector_parts
from perfvec.program.segments import Segment, is_barrier
from perfvec.trace_data import ADDRESS_SPACES, OPCODE_CLASSES, STATIC_DTYPE, VALUE_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.program.accesses import Access
    from perfvec.program.native import NativeKernel

CLASS_INDEX = {name: index for index, name in enumerate(OPCODE_CLASSES)}
KIND_INDEX = {name: index for index, name in enumerate(VALUE_KINDS)}
# OpenCL's address space numbers in SPIR, and what is no memory at all.
SPACE_INDEX = {
    number: ADDRESS_SPACES.index(name)
    for number, name in enumerate(("private", "global", "constant", "local", "generic"))
}

_BY_OPCODE = {
    **dict.fromkeys(("add", "sub", "fadd", "fsub", "fneg"), "add"),
    **dict.fromkeys(("mul", "fmul"), "mul"),
    **dict.fromkeys(("udiv", "sdiv", "urem", "srem", "fdiv", "frem"), "div"),
    **dict.fromkeys(("icmp", "fcmp"), "compare"),
    **dict.fromkeys(("and", "or", "xor"), "logic"),
    **dict.fromkeys(("shl", "lshr", "ashr"), "shift"),
    **dict.fromkeys(("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp"), "convert"),
    "select": "select",
    **dict.fromkeys(("insertelement", "extractelement", "shufflevector", "insertvalue", "extractvalue"), "vector"),
    "getelementptr": "address",
    **dict.fromkeys(("br", "switch"), "branch"),
    "ret": "return",
    "fence": "fence",
    "load": "load",
    "store": "store",
}
# These are names for the same bits: they cost nothing on any device.
_FREE_OPCODES = frozenset(
    ("bitcast", "ptrtoint", "inttoptr", "addrspacecast", "freeze", "unreachable", "phi", "alloca")
)
_INTRINSICS = (
    (re.compile(r"llvm\.(fma|fmuladd)\."), "fma"),
    (re.compile(r"llvm\.(memcpy|memmove|memset)\."), "copy"),
    (re.compile(r"llvm\.([su](min|max)|abs|fabs|copysign|(min|max)(num|imum)|[su](add|sub)\.sat)\."), "add"),
    (re.compile(r"llvm\.(ctpop|ctlz|cttz|bitreverse|bswap)\."), "logic"),
    (re.compile(r"llvm\.(fshl|fshr)\."), "shift"),
    (re.compile(r"llvm\.sqrt\."), "sqrt"),
    (re.compile(r"llvm\.(floor|ceil|trunc|rint|round|nearbyint|fpto[su]i\.sat)"), "convert"),
)  # fmt: skip
_FUNCTIONS = (
    (re.compile(r"_Z\d+get_"), "work_item"),
    (re.compile(r"_Z\d+(mem_fence|read_mem_fence|write_mem_fence)"), "fence"),
    (re.compile(r"_Z\d+prefetch"), "prefetch"),
    (re.compile(r"_Z\d+(read|write)_image"), "image"),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTable:
    """The static instructions of a kernel, segment after segment.

    Attributes:
        rows: `STATIC_DTYPE`, one row a token that an execution of the segment makes.
        start: First row of each segment, and the end of the last; shape `(segments + 1,)`.
        site: Row of the segment's address block that the instruction fills; -1 if none; shape `(rows,)`.
        opcode_counts: Instructions of each segment by LLVM opcode, the free ones included.
    """

    rows: NDArray[np.void]
    start: NDArray[np.int64]
    site: NDArray[np.int64]
    opcode_counts: tuple[dict[str, int], ...]


def opcode_class(instruction: Instruction) -> str:
    """Class of an instruction: a name in `OPCODE_CLASSES`; "" if it costs nothing."""
    if instruction.opcode in _FREE_OPCODES or (instruction.opcode == "br" and len(instruction.targets) == 1):
        return ""
    if instruction.opcode != "call":
        return _BY_OPCODE.get(instruction.opcode, "other")
    callee = instruction.callee
    if is_barrier(instruction):
        return "barrier"
    if atomic_parts(callee):
        return "atomic"
    if parts := vector_access_parts(callee):
        return "store" if parts.is_store else "load"
    for pattern, name in _INTRINSICS if callee.startswith("llvm.") else _FUNCTIONS:
        if pattern.match(callee):
            return name
    return classify_builtin(callee) or "other"


def make_static_table(native: NativeKernel) -> StaticTable:
    """Make the static table of a kernel."""
    rows: list[tuple[object, ...]] = []
    sites: list[int] = []
    start = [0]
    row_of: dict[str, int] = {}
    pending: list[tuple[int, Instruction]] = []
    counts: list[dict[str, int]] = []
    accesses: dict[int, list[Access]] = {}  # by identity: equal instructions may stand in several places
    used = {name for block in native.kernel.blocks for i in block.instructions for name in i.operands}
    for site in native.sites:
        accesses.setdefault(id(site.instruction), []).append(site.access)
    for segment in native.segments:
        counts.append(_count_opcodes(segment, native))
        site_number = 0
        for instruction in (*segment.body, *((segment.terminator,) if segment.terminator else ())):
            name = opcode_class(instruction)
            if not name:
                continue
            for access in accesses.get(id(instruction), [None]):
                rows.append(_row(instruction, name, segment, access, used))
                sites.append(site_number if access else -1)
                site_number += access is not None
                pending.append((len(rows) - 1, instruction))
            if instruction.name:
                row_of[instruction.name] = len(rows) - 1
        start.append(len(rows))
    table = np.array(rows, STATIC_DTYPE) if rows else np.zeros(0, STATIC_DTYPE)
    made_by = _look_through_free(native, row_of)
    for row, instruction in pending:
        producers = [made_by[name] for name in dict.fromkeys(instruction.operands) if made_by.get(name, -1) >= 0]
        table["producers"][row] = [*producers, -1, -1, -1][:3]
    return StaticTable(
        rows=table, start=np.array(start, np.int64), site=np.array(sites, np.int64), opcode_counts=tuple(counts)
    )


def _row(
    instruction: Instruction, name: str, segment: Segment, access: Access | None, used: set[str]
) -> tuple[object, ...]:
    width, scalar = vector_parts(instruction.type)
    kind, bits = "none", 0
    if scalar in ("float", "double", "half"):
        kind, bits = "float", {"half": 16, "float": 32, "double": 64}[scalar]
    elif scalar.startswith("ptr"):
        kind, bits = "pointer", 64
    elif match := re.fullmatch(r"i(\d+)", scalar):
        kind, bits = "int", min(int(match[1]), 64)
    if name == "compare":  # what matters is what is compared
        is_float = instruction.opcode == "fcmp"
        kind, bits = (
            ("float" if is_float else "int"),
            64 if re.search(r"\b(double|i64|ptr)\b", instruction.text) else 32,
        )
    return (
        CLASS_INDEX[name],
        KIND_INDEX[kind],
        bits,
        width,
        SPACE_INDEX[access.space] if access else 0,
        access.num_bytes if access else 0,
        0.0,
        instruction.name in used,
        segment.index,
        instruction.line,
        (-1, -1, -1),
    )


def _look_through_free(native: NativeKernel, row_of: dict[str, int]) -> dict[str, int]:
    """Which row makes each value; casts and phis stand for (the first of) their operands' makers."""
    made_by = dict(row_of)
    free = [i for b in native.kernel.blocks for i in b.instructions if i.name and i.name not in row_of]
    for _ in range(2):  # twice, because a loop's phi reads a value that comes later
        for instruction in free:
            makers = [made_by[name] for name in instruction.operands if name in made_by]
            if makers:
                made_by[instruction.name] = max(makers)
    return made_by


def _count_opcodes(segment: Segment, native: NativeKernel) -> dict[str, int]:
    counts: dict[str, int] = {}
    block = next(b for b in native.kernel.blocks if b.label == segment.label)
    free = [i for i in block.instructions if i.opcode in ("phi", "alloca")] if segment.is_first else []
    for instruction in (*free, *segment.body, *((segment.terminator,) if segment.terminator else ())):
        counts[instruction.opcode] = counts.get(instruction.opcode, 0) + 1
    return counts
