"""The order of a kernel's blocks: what dominates what, its loops, and the conditions under which a block runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from perfvec.program.ir import Block, KernelIR


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A branch taken: where from, the condition's name and whether it held."""

    source: str
    condition: str
    holds: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A natural loop.

    Attributes:
        header: Label of its first block.
        latches: Labels of the blocks that go back to it.
        blocks: Labels of all its blocks.
    """

    header: str
    latches: tuple[str, ...]
    blocks: frozenset[str]


@final
class ControlFlow:
    """A kernel's control flow graph.

    Attributes:
        blocks: Blocks by label, those that can be reached.
        order: Their labels, each after those that dominate it.
        loops: Loops by header.
    """

    def __init__(self, kernel: KernelIR) -> None:
        every = {block.label: block for block in kernel.blocks}
        self.entry = kernel.blocks[0].label
        self.order = self._reverse_postorder(every)
        self.blocks: dict[str, Block] = {label: every[label] for label in self.order}
        self._position = {label: i for i, label in enumerate(self.order)}
        self.predecessors: dict[str, list[str]] = {label: [] for label in self.order}
        for label in self.order:
            for target in self._targets(self.blocks[label]):
                self.predecessors[target].append(label)
        self._dominator = self._dominators()
        self.loops = self._find_loops()
        self._conditions: dict[str, tuple[Edge, ...]] = {}

    @staticmethod
    def _targets(block: Block) -> tuple[str, ...]:
        return tuple(dict.fromkeys(block.instructions[-1].targets))

    def _reverse_postorder(self, blocks: dict[str, Block]) -> list[str]:
        done: list[str] = []
        seen = {self.entry}
        stack = [(self.entry, iter(self._targets(blocks[self.entry])))]
        while stack:
            label, targets = stack[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(self._targets(blocks[target]))))
                    break
            else:
                done.append(label)
                stack.pop()
        return done[::-1]

    def _dominators(self) -> dict[str, str]:
        """Immediate dominators.

        Source:
            Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm", 2001.
        """
        dominator = {self.entry: self.entry}

        def meet(a: str, b: str) -> str:
            while a != b:
                while self._position[a] > self._position[b]:
                    a = dominator[a]
                while self._position[b] > self._position[a]:
                    b = dominator[b]
            return a

        changed = True
        while changed:
            changed = False
            for label in self.order[1:]:
                known = [p for p in self.predecessors[label] if p in dominator]
                new = known[0]
                for other in known[1:]:
                    new = meet(new, other)
                if dominator.get(label) != new:
                    dominator[label] = new
                    changed = True
        return dominator

    def dominates(self, above: str, below: str) -> bool:
        """Whether every way to `below` leads through `above`."""
        while self._position[below] > self._position[above]:
            below = self._dominator[below]
        return above == below

    def _find_loops(self) -> dict[str, Loop]:
        latches: dict[str, list[str]] = {}
        for label in self.order:
            for target in self._targets(self.blocks[label]):
                if self.dominates(target, label):
                    latches.setdefault(target, []).append(label)
        loops = {}
        for header, ends in latches.items():
            body, stack = {header}, list(ends)
            while stack:
                label = stack.pop()
                if label not in body:
                    body.add(label)
                    stack.extend(self.predecessors[label])
            loops[header] = Loop(header=header, latches=tuple(ends), blocks=frozenset(body))
        return loops

    def loops_around(self, label: str) -> tuple[Loop, ...]:
        """The loops that a block is in, outermost first."""
        around = [loop for loop in self.loops.values() if label in loop.blocks]
        return tuple(sorted(around, key=lambda loop: -len(loop.blocks)))

    def edge(self, source: str, target: str) -> Edge | None:
        """The condition of going from one block to another; None where there is none."""
        last = self.blocks[source].instructions[-1]
        if last.opcode != "br" or len(set(last.targets)) != 2:
            return None
        condition = last.text.split(",")[0].removeprefix("br i1 ").strip()
        return Edge(source=source, condition=condition, holds=last.targets[0] == target)

    def conditions(self, label: str) -> tuple[Edge, ...]:
        """The branches that were taken whenever a block runs, outermost first."""
        if label not in self._conditions:
            above = self._dominator[label]
            if above == label:
                self._conditions[label] = ()
            else:
                self._conditions[label] = (*self.conditions(above), *self._from_dominator(above, label))
        return self._conditions[label]

    def _from_dominator(self, above: str, label: str) -> tuple[Edge, ...]:
        for target in self._targets(self.blocks[above]):
            others = [p for p in self.predecessors[target] if p != above and not self.dominates(target, p)]
            if not others and self.dominates(target, label):
                edge = self.edge(above, target)
                # A loop's own header is entered again from inside, where the condition need not hold any more.
                return (edge,) if edge is not None and self.predecessors[target] == [above] else ()
        return ()
