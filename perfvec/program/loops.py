"""Which loops of a kernel may be taken by weight: iterations whose number is known and whose values decide nothing.

Skipping iterations of a loop leaves the values that they would have computed out. That is harmless where

- the loop ends by one test, made in every iteration, of an induction variable (affine: a constant or loop-invariant
  step) against a bound that does not change in the loop, so that the iterations left are known at its header;
- whatever reaches an address or a branch anywhere in the kernel (a backward slice over all instructions, phis
  included) and is carried from one iteration to the next is affine, so that it can be set to what it would have been;
- no memory that the loop writes is read for an address or a branch anywhere in the kernel. Pointers are followed to
  their buffer or array; one that cannot be followed may be any.

Source:
    Weiser, "Program slicing", 1984; natural loops and dominators as in Aho, Lam, Sethi, Ullman, "Compilers", 2nd ed.,
    section 9.6. Checked by tests/program/test_loops.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

from perfvec.program.accesses import accesses_of
from perfvec.program.ir import GLOBAL_NAME, LOCAL_NAME, Instruction, phi_values, read_type, split_top
from perfvec.program.segments import is_barrier, is_executed

if TYPE_CHECKING:
    from perfvec.program.accesses import Access
    from perfvec.program.native import NativeKernel

ANYWHERE = "?"  # stands for a pointer that cannot be followed to its memory
_STAYS = {  # by LLVM's word: whether signed, and how the tested value stands to the bound
    "eq": (False, "=="), "ne": (False, "!="), "ult": (False, "<"), "ule": (False, "<="), "ugt": (False, ">"),
    "uge": (False, ">="), "slt": (True, "<"), "sle": (True, "<="), "sgt": (True, ">"), "sge": (True, ">="),
}  # fmt: skip
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_THROUGH = ("getelementptr", "bitcast", "addrspacecast", "freeze")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A loop-invariant summand: a constant or the name of a value, times a factor."""

    value: str
    factor: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Induction:
    """A phi of a loop's header that grows by the same step in each iteration.

    Attributes:
        name: The phi.
        bits: Width of its value.
        step: What an iteration adds, modulo 2^bits; a sum.
    """

    name: str
    bits: int
    step: tuple[Term, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExitTest:
    """The test that ends a loop: it goes on while `induction + terms` stands so to `bound`."""

    induction: Induction
    terms: tuple[Term, ...]
    relation: str
    is_signed: bool
    bound: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop that may be taken by weight.

    Attributes:
        header: Its first segment.
        segments: All of its segments.
        inductions: What must be set forward when iterations are skipped.
        test: How many iterations are left.
        has_barrier: Whether the work-group waits in it.
    """

    header: int
    segments: frozenset[int]
    inductions: tuple[Induction, ...]
    test: ExitTest
    has_barrier: bool


def weighable_loops(native: NativeKernel) -> tuple[Loop, ...]:
    """The kernel's loops that may be taken by weight, outer ones before those inside them."""
    graph = Graph(native)
    found = [loop for header, body in graph.natural_loops() if (loop := graph.loop(header, body)) is not None]
    return tuple(sorted(found, key=lambda loop: (-len(loop.segments), loop.header)))


def iterations_left(value: int, step: int, bound: int, *, bits: int, relation: str, is_signed: bool) -> int | None:
    """How many iterations in a row pass the test, the one at hand included.

    Args:
        value: What the test of the iteration at hand looks at, modulo 2^bits.
        step: What each iteration adds to it, modulo 2^bits.
        bound: What it is compared with, modulo 2^bits.
        bits: Width of the three.
        relation: How value must stand to bound for the loop to go on.
        is_signed: Whether the comparison is.

    Returns:
        The number; None where it cannot be told without going through them.
    """
    size = 1 << bits
    step = (step + size // 2) % size - size // 2
    if relation == "!=":
        distance = (bound - value if step > 0 else value - bound) % size
        return distance // abs(step) if step and distance % abs(step) == 0 else None
    if relation == "==" or not step:
        return None
    shift = size // 2 if is_signed else 0
    value, bound = ((number + shift) % size - shift for number in (value, bound))
    if relation in (">", ">="):
        value, bound, step = -value, -bound, -step
    if step <= 0:
        return None
    return max(0, -((value - bound - relation.endswith("=")) // step))


@final
class Graph:
    """A kernel's control flow and where its values come from."""

    def __init__(self, native: NativeKernel) -> None:
        self.native, self.blocks = native, {block.label: block for block in native.kernel.blocks}
        self.targets = {label: block.instructions[-1].targets for label, block in self.blocks.items()}
        self.maker = {i.name: i for b in native.kernel.blocks for i in b.instructions if i.name}
        self.home = {i.name: b.label for b in native.kernel.blocks for i in b.instructions if i.name}
        self.arguments = {p.name for p in native.kernel.parameters}
        self.accesses: dict[int, tuple[Access, ...]] = {
            id(i): accesses_of(i, native.sizes) for b in native.kernel.blocks for i in b.instructions
        }

    # ---- loops --------------------------------------------------------------------------------------------------

    @cached_property
    def dominators(self) -> dict[str, frozenset[str]]:
        """The blocks that every way from the entry to a block goes through."""
        entry = next(iter(self.blocks))
        sources: dict[str, list[str]] = {label: [] for label in self.blocks}
        for label, targets in self.targets.items():
            for target in targets:
                sources[target].append(label)
        everything = frozenset(self.blocks)
        found = dict.fromkeys(self.blocks, everything) | {entry: frozenset((entry,))}
        changed = True
        while changed:
            changed = False
            for label in self.blocks:
                if label == entry:
                    continue
                above = [found[source] for source in sources[label]]
                new = frozenset.intersection(*above) | {label} if above else everything
                changed = changed or new != found[label]
                found[label] = new
        return found

    def natural_loops(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Header and blocks of each loop that one jump back makes."""
        back: dict[str, list[str]] = {}
        for label, targets in self.targets.items():
            for target in dict.fromkeys(targets):
                if target in self.dominators[label]:
                    back.setdefault(target, []).append(label)
        for header, latches in back.items():
            body, todo = {header, *latches}, [latch for latch in latches if latch != header]
            while todo:
                inside = todo.pop()
                for source, targets in self.targets.items():
                    if inside in targets and source not in body:
                        body.add(source)
                        todo.append(source)
            if len(latches) == 1:
                yield header, frozenset(body)

    def loop(self, header: str, body: frozenset[str]) -> Loop | None:
        """The loop, if it may be taken by weight."""
        latch = next(label for label in body if header in self.targets[label])
        inside = [i for label in body for i in self.blocks[label].instructions if is_executed(i)]
        if any(i.is_volatile or self._is_opaque(i) for i in inside) or self._writes_what_decides(inside):
            return None
        inductions = []
        for phi in self.blocks[header].instructions:
            if phi.opcode != "phi":
                break
            found = self._induction(phi, latch, body)
            if found is not None:
                inductions.append(found)
            elif phi.name in self.deciding:
                return None
        test = self._exit_test(latch, body, {induction.name: induction for induction in inductions})
        if test is None:
            return None
        segments = frozenset(s.index for s in self.native.segments if s.label in body)
        first = next(s.index for s in self.native.segments if s.label == header and s.is_first)
        return Loop(
            header=first,
            segments=segments,
            inductions=tuple(inductions),
            test=test,
            has_barrier=any(is_barrier(i) for i in inside),
        )

    # ---- induction variables ------------------------------------------------------------------------------------

    def _is_invariant(self, value: str, body: frozenset[str]) -> bool:
        return re.fullmatch(r"-?\d+", value) is not None or value in self.arguments or (
            value in self.home and self.home[value] not in body and self.maker[value].opcode != "alloca"
        )  # fmt: skip

    def _sum(self, value: str, body: frozenset[str], phis: dict[str, int]) -> tuple[str, tuple[Term, ...]] | None:
        """A value as one of the phis plus invariant terms."""
        if value in phis:
            return value, ()
        made = self.maker.get(value)
        if made is None or self.home[value] not in body:
            return None
        if made.opcode in ("add", "sub"):
            _, end = read_type(re.sub(r"^(add|sub) (nuw |nsw )*", "", made.text))
            left, right = split_top(re.sub(r"^(add|sub) (nuw |nsw )*", "", made.text)[end:])
            if made.opcode == "add" and self._is_invariant(left, body):
                left, right = right, left
            if not self._is_invariant(right, body):
                return None
            term = Term(value=right, factor=1 if made.opcode == "add" else -1)
            inner = self._sum(left, body, phis)
        elif made.opcode == "getelementptr":
            parts = split_top(re.sub(r"^getelementptr (inbounds |nuw |nusw )*", "", made.text))
            index = parts[2].split()[-1] if len(parts) == 3 else ""
            if not re.match(r"i64 ", parts[2] if index else "") or not self._is_invariant(index, body):
                return None
            term = Term(value=index, factor=self.native.sizes.bytes_of(parts[0]))
            inner = self._sum(parts[1].split()[-1], body, phis)
        else:
            return None
        return None if inner is None else (inner[0], (*inner[1], term))

    @staticmethod
    def _bits(type_text: str) -> int:
        match = re.fullmatch(r"i(8|16|32|64)|ptr(?: addrspace\(\d+\))?", type_text)
        return 0 if match is None else int(match[1] or 64)

    def _induction(self, phi: Instruction, latch: str, body: frozenset[str]) -> Induction | None:
        bits = self._bits(phi.type)
        grown = self._sum(phi_values(phi)[latch], body, {phi.name: bits}) if bits else None
        return None if grown is None else Induction(name=phi.name, bits=bits, step=grown[1])

    def _exit_test(self, latch: str, body: frozenset[str], inductions: dict[str, Induction]) -> ExitTest | None:
        exits = [label for label in body if not set(self.targets[label]) <= body or not self.targets[label]]
        if len(exits) != 1 or exits[0] not in self.dominators[latch]:
            return None
        jump = self.blocks[exits[0]].instructions[-1]
        match = re.match(rf"br i1 ({LOCAL_NAME.pattern}),", jump.text)
        test = self.maker.get(match[1]) if match else None
        if test is None or test.opcode != "icmp" or len(jump.targets) != 2:
            return None
        found = re.match(r"icmp (?:samesign )?(\w+) (.*)", test.text)
        if found is None or found[1] not in _STAYS:
            return None
        type_text, end = read_type(found[2])
        left, right = split_top(found[2][end:])
        is_signed, relation = _STAYS[found[1]]
        relation = relation if jump.targets[0] in body else _OPPOSITE[relation]
        phis = {name: induction.bits for name, induction in inductions.items()}
        tested = self._sum(left, body, phis)
        if tested is None:
            left, right, relation = right, left, _MIRRORED[relation]
            tested = self._sum(left, body, phis)
        if tested is None or not self._is_invariant(right, body) or not self._bits(type_text):
            return None
        return ExitTest(
            induction=inductions[tested[0]], terms=tested[1], relation=relation, is_signed=is_signed, bound=right
        )

    # ---- what decides -------------------------------------------------------------------------------------------

    @cached_property
    def deciding(self) -> frozenset[str]:
        """Values that reach an address or a branch anywhere in the kernel."""
        todo: list[str] = []
        for block in self.blocks.values():
            todo += block.instructions[-1].operands if block.instructions[-1].targets else ()
            for instruction in block.instructions:
                for access in self.accesses[id(instruction)]:
                    todo += LOCAL_NAME.findall(f"{access.pointer} {access.offset}")
        found: set[str] = set()
        while todo:
            name = todo.pop()
            if name not in found and name in self.maker:
                found.add(name)
                todo += self.maker[name].operands
        return frozenset(found)

    @cached_property
    def deciding_memory(self) -> frozenset[str]:
        """Memories that such values are read from."""
        return frozenset(
            self.memory_of(access.pointer) for name in self.deciding for access in self.accesses[id(self.maker[name])]
        )

    def _writes_what_decides(self, inside: list[Instruction]) -> bool:
        written = {self.memory_of(access.pointer) for i in inside for access in self.accesses[id(i)] if access.is_write}
        decides = self.deciding_memory
        return bool(written and decides) and bool(written & decides or ANYWHERE in written or ANYWHERE in decides)

    def memory_of(self, pointer: str) -> str:
        """The argument, array or variable that a pointer points into; ANYWHERE if that is not known."""
        seen: set[str] = set()
        found: set[str] = set()
        todo = [pointer]
        while todo:
            text = todo.pop()
            if match := GLOBAL_NAME.search(text):
                found.add(match[0])
                continue
            name = next(iter(LOCAL_NAME.findall(text)), "")
            made = self.maker.get(name)
            if name in seen:
                continue
            seen.add(name)
            if name in self.arguments or (made is not None and made.opcode == "alloca"):
                found.add(name)
            elif made is not None and made.opcode in _THROUGH:
                todo.append(made.operands[0] if made.operands else made.text)
            elif made is not None and made.opcode == "phi":
                todo += phi_values(made).values()
            elif made is not None and made.opcode == "select":
                todo += (part.split()[-1] for part in split_top(made.text)[1:])
            else:
                found.add(ANYWHERE)
        return found.pop() if len(found) == 1 else ANYWHERE

    def _is_opaque(self, instruction: Instruction) -> bool:
        """Whether it is a call that may touch memory in a way not listed as an access."""
        if instruction.opcode != "call" or is_barrier(instruction) or self.accesses[id(instruction)]:
            return False
        return bool(re.search(r"\bptr\b", instruction.text))
