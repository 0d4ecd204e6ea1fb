"""Basic blocks cut into segments, the pieces that a sub-group runs in lockstep, and their order: lanes meet again.

A segment ends at a barrier, before lanes exchange values, and between accesses to local memory whose order between
lanes matters: within a segment each lane runs all instructions before the next lane does, so a lane must not read what
an earlier lane just wrote. It also ends where it is long, because LLVM's time grows with the square of a function's
length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from perfvec.program.ir import Block, Instruction, KernelIR, pointer_space, read_type, split_top
from perfvec.program.sub_groups import orders_lanes

LOCAL_SPACE = 3
MOST_ACCESSES = 128  # of a segment, about
_FREE = frozenset(("phi", "alloca"))
_ACCESSES = frozenset(("load", "store", "call"))
_NOT_EXECUTED = (
    "llvm.dbg",
    "llvm.lifetime",
    "llvm.assume",
    "llvm.experimental.noalias",
    "llvm.invariant",
    "llvm.donothing",
)
_BARRIERS = ("_Z7barrierj", "_Z18work_group_barrierj", "_Z18work_group_barrierj12memory_scope")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of instructions without phis.

    Attributes:
        index: Its place in the order of execution; among lanes, the lowest index runs first.
        label: The basic block that it is part of.
        body: Instructions, the terminator left out.
        terminator: The block's last instruction, or None where the block goes on in the next segment.
        successors: Indices of the segments that may follow.
        is_barrier: Whether the lanes wait for the work-group after it.
        is_first: Whether it begins its block.
        is_loop_header: Whether a later segment jumps back to it.
    """

    index: int
    label: str
    body: tuple[Instruction, ...]
    terminator: Instruction | None
    successors: tuple[int, ...]
    is_barrier: bool
    is_first: bool
    is_loop_header: bool = False


def is_barrier(instruction: Instruction) -> bool:
    """Whether the instruction is a work-group barrier."""
    return instruction.opcode == "call" and instruction.callee.startswith(_BARRIERS)


def is_executed(instruction: Instruction) -> bool:
    """Whether the instruction exists at run time: debug and lifetime marks do not."""
    return not (instruction.opcode == "call" and instruction.callee.startswith(_NOT_EXECUTED))


def make_segments(kernel: KernelIR) -> tuple[Segment, ...]:
    """Cut the blocks of a kernel into segments and put them into execution order."""
    raw: list[Segment] = []
    first_of: dict[str, int] = {}
    for block in kernel.blocks:
        first_of[block.label] = len(raw)
        pieces = list(_cut(block))
        for number, (body, ends_in_barrier) in enumerate(pieces):
            is_last = number == len(pieces) - 1
            raw.append(
                Segment(
                    index=len(raw),
                    label=block.label,
                    body=tuple(body),
                    terminator=block.instructions[-1] if is_last else None,
                    successors=() if is_last else (len(raw) + 1,),
                    is_barrier=ends_in_barrier,
                    is_first=number == 0,
                )
            )
    raw = [
        s if s.terminator is None else replace(s, successors=tuple(first_of[t] for t in s.terminator.targets))
        for s in raw
    ]
    order = execution_order({s.index: s.successors for s in raw}, entry=0)
    rank = {old: new for new, old in enumerate(order)}
    headers = {t for s in raw if s.index in rank for t in s.successors if rank[t] <= rank[s.index]}
    return tuple(
        replace(
            raw[old],
            index=new,
            successors=tuple(rank[t] for t in raw[old].successors),
            is_loop_header=old in headers,
        )
        for new, old in enumerate(order)
    )


def _cut(block: Block) -> Iterator[tuple[list[Instruction], bool]]:
    body: list[Instruction] = []
    loaded = stored = False
    accesses = 0
    for instruction in block.instructions[:-1]:
        if instruction.opcode in _FREE or not is_executed(instruction):
            continue
        reads, writes = _touches_local(instruction)
        must_meet = bool(body) and orders_lanes(instruction)
        if must_meet or (reads and stored) or (writes and loaded) or accesses == MOST_ACCESSES:
            yield body, False
            body, loaded, stored, accesses = [], False, False, 0
        loaded, stored = loaded or reads, stored or writes
        accesses += instruction.opcode in _ACCESSES
        body.append(instruction)
        if is_barrier(instruction):
            yield body, True
            body, loaded, stored, accesses = [], False, False, 0
    yield body, False


def _touches_local(instruction: Instruction) -> tuple[bool, bool]:
    """Whether the instruction reads and writes local memory that other lanes see."""
    if instruction.opcode == "load":
        is_local = pointer_space(read_type(split_top(instruction.text)[1])[0]) == LOCAL_SPACE
        return is_local, False
    if instruction.opcode == "store":
        is_local = pointer_space(read_type(split_top(instruction.text)[1])[0]) == LOCAL_SPACE
        return False, is_local
    if instruction.opcode == "call" and "addrspace(3)" in instruction.text:
        if instruction.callee.startswith(("_Z5vload", "_Z6vload", "_Z7vload")):
            return True, False
        return True, True
    return False, False


# ---- order ------------------------------------------------------------------------------------------------------


def execution_order(successors: Mapping[int, Iterable[int]], *, entry: int) -> list[int]:
    """Order nodes so that every loop is one run of nodes and, cut at loop headers, edges point forward.

    If diverged lanes always run the lowest node first, they meet again where their paths join and no lane leaves a
    loop before the others have caught up. Unreachable nodes are left out.

    Source:
        Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993, section 4 (weak topological order);
        checked by tests/program/test_segments.py.
    """
    reachable = _reachable(successors, entry)
    entered_from: dict[int, set[int]] = {n: set() for n in reachable}
    for node in reachable:
        for target in successors[node]:
            entered_from[target].add(node)
    order: list[int] = []
    stack: list[int | frozenset[int]] = [reachable]
    while stack:
        item = stack.pop()
        if isinstance(item, int):
            order.append(item)
            continue
        parts: list[int | frozenset[int]] = []
        for component in reversed(
            strong_components({n: [t for t in successors[n] if t in item] for n in sorted(item)})
        ):
            inside = frozenset(component)
            header = min(n for n in inside if n == entry or not entered_from[n] <= inside)
            parts.append(header)
            if len(inside) > 1:
                parts.append(inside - {header})
        stack.extend(reversed(parts))
    return order


def _reachable(successors: Mapping[int, Iterable[int]], entry: int) -> frozenset[int]:
    seen, todo = {entry}, [entry]
    while todo:
        for target in successors[todo.pop()]:
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return frozenset(seen)


def strong_components(edges: Mapping[int, list[int]]) -> list[list[int]]:
    """Strongly connected components in reverse topological order.

    Args:
        edges: Successors of every node; all of them are nodes.

    Source:
        Tarjan, "Depth-first search and linear graph algorithms", 1972; without recursion, for deep graphs.
    """
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    components: list[list[int]] = []
    position: dict[int, int] = defaultdict(int)
    for root in edges:
        calls = [] if root in number else [root]
        while calls:
            node = calls[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                stack.append(node)
                on_stack.add(node)
            descended = False
            while position[node] < len(edges[node]):
                target = edges[node][position[node]]
                if target not in number:
                    calls.append(target)
                    descended = True
                    break
                if target in on_stack:
                    low[node] = min(low[node], low[target])
                position[node] += 1
            if descended:
                continue
            calls.pop()
            if calls:
                low[calls[-1]] = min(low[calls[-1]], low[node])
            if low[node] == number[node]:
                cut = stack.index(node)
                components.append(stack[cut:])
                on_stack.difference_update(stack[cut:])
                del stack[cut:]
    return components
