"""What a work-group that is only tried out need not compute: instructions that decide nothing.

Where a work-group goes follows from its branches, and whether it may from its addresses. Whatever reaches neither,
by values or through memory, is idle: most arithmetic of most kernels, and the stores of its results. Addresses are
checked also where nothing is loaded or stored.

Source:
    Weiser, "Program slicing", 1984; checked by tests/program/test_idle.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perfvec.program.accesses import atomic_parts, vector_access_parts
from perfvec.program.ir import LOCAL_NAME, Instruction
from perfvec.program.loops import ANYWHERE, Graph
from perfvec.program.segments import is_barrier, is_executed
from perfvec.program.sub_groups import is_collective, sub_group_function

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perfvec.program.accesses import Access
    from perfvec.program.native import NativeKernel

# Flags under which LLVM computes a number as suits what it is used for.
_LOOSE = re.compile(r"^(?:tail )?(?:f\w+|call|phi|select) (?:\w+ )*(?:fast|contract|reassoc|afn|arcp)\b")
_WITH_EFFECT = frozenset(("fence", "atomicrmw", "cmpxchg", "alloca"))


def idle_instructions(native: NativeKernel) -> frozenset[int]:
    """The `id` of each instruction whose result decides nothing; empty where that is not known."""
    if native.printf_sites or any(parameter.opaque for parameter in native.kernel.parameters):
        return frozenset()
    graph = Graph(native)
    everything = [i for block in native.kernel.blocks for i in block.instructions if is_executed(i)]
    if any(_LOOSE.match(i.text) for i in everything):
        return frozenset()
    return _Slice(graph, everything).idle()


class _Slice:
    """What reaches a branch or an address, found by following values and memory until nothing is new."""

    def __init__(self, graph: Graph, everything: list[Instruction]) -> None:
        self._graph, self._everything = graph, everything
        self._needed: set[str] = set()  # names of values
        self._read: set[str] = set()  # memories that needed values come from
        self._at_work: set[int] = set()  # instructions without a name that are needed
        self._may_idle = {id(i) for i in everything if _may_idle(i, graph.accesses[id(i)])}

    def idle(self) -> frozenset[int]:
        for instruction in self._everything:
            if instruction.targets:
                self._need(instruction.operands)
            for access in self._graph.accesses[id(instruction)]:
                self._need(LOCAL_NAME.findall(f"{access.pointer} {access.offset}"))
            if id(instruction) not in self._may_idle and not instruction.targets:
                self._put_to_work(instruction)
        writers = [i for i in self._everything if any(a.is_write for a in self._graph.accesses[id(i)])]
        is_new = True
        while is_new:
            before = len(self._at_work), len(self._needed), len(self._read)
            for writer in writers:
                if id(writer) not in self._at_work and any(
                    self._is_read(access) for access in self._graph.accesses[id(writer)] if access.is_write
                ):
                    self._put_to_work(writer)
            is_new = before != (len(self._at_work), len(self._needed), len(self._read))
        return frozenset(
            i
            for i in (id(i) for i in self._everything if i.name not in self._needed and not i.targets)
            if i in self._may_idle and i not in self._at_work
        )

    def _is_read(self, access: Access) -> bool:
        memory = self._graph.memory_of(access.pointer)
        return bool(self._read) and (memory in self._read or ANYWHERE in (memory, *self._read))

    def _put_to_work(self, instruction: Instruction) -> None:
        self._at_work.add(id(instruction))
        self._need(instruction.operands)
        accesses = self._graph.accesses[id(instruction)]
        # An atomic reads what it writes.
        self._read |= {self._graph.memory_of(a.pointer) for a in accesses if not a.is_write or instruction.name}
        if not accesses and instruction.opcode == "call" and "ptr" in instruction.text and not is_barrier(instruction):
            self._read.add(ANYWHERE)

    def _need(self, names: Iterable[str]) -> None:
        todo = list(names)
        while todo:
            name = todo.pop()
            made = self._graph.maker.get(name)
            if name in self._needed or made is None:
                continue
            self._needed.add(name)
            todo += made.operands
            self._read |= {self._graph.memory_of(access.pointer) for access in self._graph.accesses[id(made)]}


def _may_idle(instruction: Instruction, accesses: tuple[Access, ...]) -> bool:
    """Whether it does nothing but make its value, or read or write what `accesses` say."""
    if instruction.is_volatile or instruction.opcode in _WITH_EFFECT or " atomic " in instruction.text[:16]:
        return False
    if instruction.opcode != "call":
        return instruction.opcode == "store" or bool(instruction.name)
    if accesses:
        return vector_access_parts(instruction.callee) is not None or atomic_parts(instruction.callee) is not None
    is_alone = not is_barrier(instruction) and not is_collective(instruction)
    is_alone = is_alone and not sub_group_function(instruction.callee)
    return is_alone and bool(instruction.name) and not re.search(r"\bptr\b", instruction.text)
