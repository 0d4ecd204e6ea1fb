"""A kernel as its accesses, conditions, loops and scalars, in polynomials over its unknowns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from perfvec.corpus.analysis.conditions import Condition
from perfvec.corpus.analysis.control_flow import ControlFlow
from perfvec.corpus.analysis.memory import NOWHERE, KernelAccess, MemoryObject, TexelAccess
from perfvec.corpus.analysis.polynomial import Atom, Polynomial, all_atoms, polynomial_of
from perfvec.corpus.analysis.values import Values
from perfvec.errors import UnsupportedError
from perfvec.program.accesses import LOCAL, Access, accesses_of
from perfvec.program.images import image_call
from perfvec.program.ir import Instruction, KernelIR, call_arguments, pointer_space, vector_parts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A value that a loop carries: `first + step * trip`, or a halving or doubling one.

    Attributes:
        header: The loop.
        first: Its value at first.
        step: What an iteration adds; None where it does not add the same each time.
        factor: What an iteration multiplies it with: 2, 1/2 and the like; 0 where it does not.
    """

    header: str
    first: Polynomial
    step: Polynomial | None
    factor: float = 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A conditional branch.

    Attributes:
        condition: Its condition.
        work_if_true: Memory accesses that run only where it holds.
        work_if_false: Those that run only where it does not.
        block: The block that ends in it.
        ends_loop: Header of the loop that one of its ways leaves; "" if none.
        stays_if: Whether that loop goes on where the condition holds.
    """

    condition: Condition
    work_if_true: int
    work_if_false: int
    block: str
    ends_loop: str = ""
    stays_if: bool = True


@final
class SymbolicKernel:
    """The analysis of a kernel that does not depend on its launch.

    Attributes:
        accesses: Accesses of buffers, arrays and tables.
        texels: Accesses of images.
        branches: Conditional branches, in order.
        recurrences: What loops carry.
        stores: For each memory, what integers are stored into it.
        has_barrier: Whether it waits at a barrier.
        dimensions: How many dimensions of the NDRange it looks at, at least 1.
    """

    def __init__(self, kernel: KernelIR) -> None:
        self.kernel = kernel
        self.flow = ControlFlow(kernel)
        self.values = Values(kernel, self.flow)
        self.accesses: list[KernelAccess] = []
        self.texels: list[TexelAccess] = []
        self.stores: dict[MemoryObject, list[Polynomial]] = {}
        self.has_barrier = False
        for label in self.flow.order:
            for instruction in self.flow.blocks[label].instructions:
                self._read(instruction, label)
        self.recurrences = {atom: self._recurrence(atom, *parts) for atom, parts in self.values.phis.items()}
        self.branches = list(self._branches())
        self.dimensions = self._dimensions()

    # ---- accesses -----------------------------------------------------------------------------------------------

    def _read(self, instruction: Instruction, label: str) -> None:
        self.has_barrier |= "barrier" in instruction.callee
        if instruction.opcode == "call" and (call := image_call(instruction.callee)) is not None:
            self._read_texel(instruction, label, call.has_sampler, call.num_coordinates)
            return
        try:
            found = accesses_of(instruction, self.values.sizes)
        except UnsupportedError:
            return  # the executor will say so
        for access in found:
            self._read_access(instruction, access, label)

    def _read_access(self, instruction: Instruction, access: Access, label: str) -> None:
        index = self.values.lanes("i64", access.offset)[0].times(access.offset_bytes) if access.offset else None
        type_text = call_arguments(instruction)[0][0] if instruction.type == "void" else instruction.type
        scalar = vector_parts(type_text)[1]
        for memory, start in self.values.pointer(access.pointer):
            offset = start if index is None else start + index
            self.accesses.append(
                KernelAccess(
                    memory=memory,
                    offset=offset,
                    num_bytes=access.num_bytes,
                    is_write=access.is_write,
                    block=label,
                    line=instruction.line,
                    scalar="" if scalar.startswith("ptr") else scalar,
                )
            )
            if instruction.opcode == "store" and re.fullmatch(r"i\d+", scalar):
                text = instruction.text.removeprefix("store ").removeprefix("volatile ").split(", ptr")[0]
                lanes = self.values.lanes(type_text, text[len(type_text) :].strip())
                self.stores.setdefault(memory, []).extend(lanes)

    def _read_texel(self, instruction: Instruction, label: str, has_sampler: bool, count: int) -> None:
        image, *rest = call_arguments(instruction)
        type_text, text = rest[has_sampler]
        memory = self.values.pointer(image[1])[0][0]
        if memory is NOWHERE:
            return
        match = re.search(r"image(f|ui|i)", instruction.callee)
        self.texels.append(
            TexelAccess(
                index=memory.index,
                coordinates=self.values.lanes(type_text, text)[:count],
                is_exact=not has_sampler,
                is_integer=vector_parts(type_text)[1].startswith("i"),
                channel=match[1] if match else "f",
                block=label,
                line=instruction.line,
            )
        )

    # ---- loops and branches -------------------------------------------------------------------------------------

    def _recurrence(self, atom: Atom, header: str, first: Polynomial, following: Polynomial) -> Recurrence:
        own = polynomial_of(atom)
        step = following - own
        carried = {other for other, (place, *_) in self.values.phis.items() if place == header}
        if not carried & set(all_atoms([step])) and not self._changes_in(step, header):
            return Recurrence(header=header, first=first, step=step)
        factor, rest = following.split(atom)
        if rest.is_constant and factor.is_constant:
            return Recurrence(header=header, first=first, step=None, factor=float(factor.constant))
        (shrunk, *more) = following.terms
        if len(following.terms) == 1 and not more and len(shrunk) == 1:
            maker = shrunk[0]
            if maker.kind in ("div", "lshr") and maker.key[0] == own and isinstance(maker.key[1], Polynomial):
                by = maker.key[1]
                if by.is_constant and by.constant:
                    divisor = float(by.constant) if maker.kind == "div" else 2.0 ** float(by.constant)
                    return Recurrence(header=header, first=first, step=None, factor=1 / divisor)
        return Recurrence(header=header, first=first, step=None)

    def _changes_in(self, step: Polynomial, header: str) -> bool:
        """Whether a value is made anew in each iteration of a loop."""
        blocks = self.flow.loops[header].blocks
        made = {i.name for label in blocks for i in self.flow.blocks[label].instructions if i.name}
        return any(atom.key and atom.key[0] in made for atom in all_atoms([step]))

    def _branches(self) -> Iterator[Branch]:
        work: dict[str, int] = {}
        for access in (*self.accesses, *self.texels):
            work[access.block] = work.get(access.block, 0) + 1
        for label in self.flow.order:
            last = self.flow.blocks[label].instructions[-1]
            if last.opcode != "br" or len(set(last.targets)) != 2:
                continue
            name = last.text.split(",")[0].removeprefix("br i1 ").strip()
            condition = self.values.condition(name)
            counts = [self._only_behind(label, target, work) for target in last.targets]
            loop = next(
                (x for x in reversed(self.flow.loops_around(label)) if self._leaves(x.blocks, last.targets)), None
            )
            yield Branch(
                condition=condition,
                work_if_true=counts[0],
                work_if_false=counts[1],
                block=label,
                ends_loop=loop.header if loop else "",
                stays_if=loop is None or last.targets[0] in loop.blocks,
            )

    @staticmethod
    def _leaves(blocks: frozenset[str], targets: tuple[str, ...]) -> bool:
        return any(target not in blocks for target in targets)

    def _only_behind(self, source: str, target: str, work: dict[str, int]) -> int:
        if self.flow.predecessors[target] != [source]:
            return 0
        return sum(count for label, count in work.items() if self.flow.dominates(target, label))

    def _dimensions(self) -> int:
        every = [access.offset for access in self.accesses]
        every += [c for texel in self.texels for c in texel.coordinates]
        every += [p for branch in self.branches for c in branch.condition.every_comparison() for p in (c.left, c.right)]
        every += [p for r in self.recurrences.values() for p in (r.first, r.step) if p is not None]
        ids = [atom.key for atom in all_atoms(every) if atom.kind == "id" and atom.key[0] != "work_dim"]
        return min(3, 1 + max((int(str(dimension)) for _, dimension in ids), default=0))

    def is_local(self, index: int) -> bool:
        """Whether an argument is local memory."""
        return pointer_space(self.kernel.parameters[index].type) == LOCAL

    def conditions_at(self, label: str) -> tuple[Condition, ...]:
        """What holds whenever a block runs."""
        return self.values.conditions_at(label)
