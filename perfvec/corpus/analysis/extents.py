"""How far each buffer, local memory and image is reached, and which numbers an index buffer may hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from perfvec.corpus.analysis.intervals import Bound, Range
from perfvec.corpus.analysis.memory import ARGUMENT, KernelAccess, MemoryObject
from perfvec.corpus.analysis.polynomial import Atom, Polynomial, all_atoms
from perfvec.corpus.analysis.ranges import Ranges, Setting
from perfvec.corpus.analysis.symbolic import SymbolicKernel
from perfvec.corpus.analysis.wording import in_words

COUNT_RANGE: Range = (0, 8)  # what is loaded to bound a loop
ITEMS_PER_ROW = 8  # of what row offsets divide
_MOST_INDEX = (1 << 20) - 1
_MOST_OFFSET = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How far a memory is reached.

    Attributes:
        num_bytes: Bytes from its start to the last one that is accessed; infinite where the analysis cannot say.
        lowest: The first byte that is accessed: negative where an access is before the start.
        reason: The access that reaches furthest, in words.
        is_read: Whether it is read.
        is_written: Whether it is written.
    """

    num_bytes: Bound
    lowest: Bound
    reason: str
    is_read: bool
    is_written: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DataRole:
    """What the numbers in a buffer are for.

    Attributes:
        role: "index" (reaches an address), "offsets" (two that follow each other bound a loop), "count" (bounds a loop)
            or "counter" (an atomic function's result reaches an address).
        reason: Why, in words.
    """

    role: str
    reason: str


@final
class Extents:
    """Extents and data of one setting.

    Attributes:
        setting: The setting, with the ranges of the data.
        roles: What the numbers in a buffer are for, by argument.
    """

    def __init__(self, kernel: SymbolicKernel, setting: Setting, *, limits: Mapping[int, int]) -> None:
        """Choose the data and find the extents.

        Args:
            kernel: The kernel.
            setting: NDRange and scalars.
            limits: Greatest number that a buffer may hold, by argument, where it is known.
        """
        self.kernel, self._limits = kernel, limits
        self.roles = self._find_roles(Ranges(kernel, setting))
        self.setting = replace(setting, data=self._first_data(setting))
        self._ranges = Ranges(kernel, self.setting)
        if self.roles:
            self._fit()

    # ---- roles of data ------------------------------------------------------------------------------------------

    def _find_roles(self, ranges: Ranges) -> dict[int, DataRole]:
        roles: dict[int, DataRole] = {}
        for header in self.kernel.flow.loops:
            for index, role in self._roles_in_loop(ranges, header):
                if index not in roles or role.role == "offsets":
                    roles[index] = role
        for access in self.kernel.accesses:
            for atom in all_atoms([ranges.numeric(access.offset)]):
                for memory in self._sources(atom):
                    role = "counter" if atom.kind == "atomic" else "index"
                    reason = f"reaches an address in {access.memory.name} (line {access.line})"
                    if memory.index not in roles:
                        roles[memory.index] = DataRole(role=role, reason=reason)
        return roles

    def _roles_in_loop(self, ranges: Ranges, header: str) -> Iterator[tuple[int, DataRole]]:
        firsts = [r.first for r in self.kernel.recurrences.values() if r.header == header and r.step is not None]
        starts = {atom for first in firsts for atom in all_atoms([first]) if atom.kind == "load"}
        for guard in self._loop_guards(ranges, header):
            for atom in all_atoms([guard]):
                for memory in self._sources(atom):
                    pairs = [s for s in starts if memory in self._sources(s) and self._follows(atom, s)]
                    if pairs:
                        yield memory.index, DataRole(role="offsets", reason="its neighbours begin and end a loop")
                    elif atom not in starts:
                        yield memory.index, DataRole(role="count", reason="bounds a loop")

    def _loop_guards(self, ranges: Ranges, header: str) -> list[Polynomial]:
        trip = Atom("trip", (header,))
        guards = [
            guard.polynomial
            for latch in self.kernel.flow.loops[header].latches
            for guard in ranges.guards(self.kernel.values.conditions_on_edge(latch, header))
        ]
        return [guard for guard in guards if trip in guard.atoms]

    @staticmethod
    def _follows(later: Atom, earlier: Atom) -> bool:
        """Whether a load is from right behind another one."""
        if later.kind != "load" or len(later.polynomials) != 1 or len(earlier.polynomials) != 1:
            return False
        distance = later.polynomials[0] - earlier.polynomials[0]
        return distance.is_constant and 0 < distance.constant <= 16

    def _sources(self, atom: Atom) -> list[MemoryObject]:
        """The arguments that a loaded value comes from, directly or through memory that it was stored to."""
        if atom.kind not in ("load", "atomic"):
            return []
        return list(self._origins([memory for memory, _ in self.kernel.values.loads[atom][0]], set()))

    def _origins(self, memories: list[MemoryObject], seen: set[MemoryObject]) -> Iterator[MemoryObject]:
        for memory in memories:
            if memory in seen:
                continue
            seen.add(memory)
            if memory.kind == ARGUMENT and not self.kernel.is_local(memory.index):
                yield memory
                continue
            for atom in all_atoms(self.kernel.stores.get(memory, ())):
                if atom.kind == "load":
                    yield from self._origins([m for m, _ in self.kernel.values.loads[atom][0]], seen)

    # ---- choosing data ------------------------------------------------------------------------------------------

    def _first_data(self, setting: Setting) -> dict[int, Range]:
        total = math.prod(setting.global_size)
        ranges: dict[str, Range] = {
            "index": (0, min(total - 1, _MOST_INDEX)),
            "offsets": (0, min(total * ITEMS_PER_ROW, _MOST_INDEX)),
            "count": COUNT_RANGE,
            "counter": (0, 0),
        }
        return {
            index: (0, min(int(ranges[role.role][1]), self._limits.get(index, _MOST_INDEX)))
            for index, role in self.roles.items()
        }

    def _fit(self) -> None:
        """Let indices stay within what is reached without them, and within what the program declares."""
        direct: dict[MemoryObject, Bound] = {}
        for access in self.kernel.accesses:
            if not self._data_behind(access):
                high = self._ranges.range(access.offset, self._ranges.guards_at(access.block))[1]
                if high >= 0:
                    direct[access.memory] = max(direct.get(access.memory, 0), high + access.num_bytes)
        for access in self.kernel.accesses:
            behind = self._data_behind(access)
            limit = access.memory.num_bytes if access.memory.is_fixed else direct.get(access.memory, 0)
            for index in behind:
                self._fit_access(access, index, limit)

    def _data_behind(self, access: KernelAccess) -> list[int]:
        """The buffers whose numbers an address depends on, through what loops carry and how often they go round."""
        seen: set[Atom] = set()
        stack = [self._ranges.numeric(access.offset)]
        found: set[int] = set()
        while stack:
            for atom in all_atoms([stack.pop()]):
                if atom in seen:
                    continue
                seen.add(atom)
                found.update(memory.index for memory in self._sources(atom))
                if atom.kind == "trip":
                    stack += self._loop_guards(self._ranges, str(atom.key[0]))
                elif atom in self.kernel.values.phis:
                    stack += self.kernel.values.phis[atom][1:]
        return sorted(found)

    def _reach(self, access: KernelAccess, index: int, data: Range) -> Range:
        setting = replace(self.setting, data={**self.setting.data, index: data})
        ranges = Ranges(self.kernel, setting)
        return ranges.range(access.offset, ranges.guards_at(access.block))

    def _fit_access(self, access: KernelAccess, index: int, limit: Bound) -> None:
        if index not in self.roles or self.roles[index].role == "counter":
            return
        low, high = (int(end) for end in self.setting.data[index])
        reached = self._reach(access, index, (low, high))
        if reached[0] < 0 and self._reach(access, index, (high, high))[0] >= 0:
            low = next(n for n in range(low, high + 1) if n > 64 or self._reach(access, index, (n, high))[0] >= 0)
        if limit and reached[1] + access.num_bytes > limit:
            below, above = low, high  # the greatest number that fits lies between
            while below < above:
                middle = (below + above + 1) // 2
                fits = self._reach(access, index, (low, middle))[1] + access.num_bytes <= limit
                below, above = (middle, above) if fits else (below, middle - 1)
            is_of_use = below > low or access.memory.is_fixed
            high = below if is_of_use else high
        if (low, high) != self.setting.data[index]:
            self.setting = replace(self.setting, data={**self.setting.data, index: (low, high)})
            self._ranges = Ranges(self.kernel, self.setting)

    # ---- results ------------------------------------------------------------------------------------------------

    def of_argument(self, index: int) -> Extent | None:
        """How far a buffer or local memory is reached; None where it is not."""
        found = [access for access in self.kernel.accesses if access.memory.index == index]
        return self._extent(found)

    def violations(self) -> list[tuple[KernelAccess, Range]]:
        """Accesses that may leave what the program declares, each with its range."""
        found = []
        for access in self.kernel.accesses:
            if access.memory.is_fixed:
                low, high = self._ranges.range(access.offset, self._ranges.guards_at(access.block))
                if low <= high and (low < 0 or high + access.num_bytes > access.memory.num_bytes):
                    found.append((access, (low, high)))
        return found

    def _extent(self, accesses: list[KernelAccess]) -> Extent | None:
        furthest, end, lowest = None, 0, math.inf
        for access in accesses:
            low, high = self._ranges.range(access.offset, self._ranges.guards_at(access.block))
            if low > high:
                continue  # never reached in this setting
            lowest = min(lowest, low)
            if furthest is None or high + access.num_bytes > end:
                furthest, end = access, high + access.num_bytes
        if furthest is None:
            return None
        words = in_words(self.kernel, furthest.offset)
        return Extent(
            num_bytes=end if math.isinf(end) else max(math.ceil(end), 1),
            lowest=lowest,
            reason=f"{'writes' if furthest.is_write else 'reads'} byte {words} (line {furthest.line})",
            is_read=any(not access.is_write for access in accesses),
            is_written=any(access.is_write for access in accesses),
        )

    def missing_before(self, index: int) -> Iterator[tuple[int, int]]:
        """Dimensions, and by how much their global ids fall short where an access begins before an argument's start.

        Only for accesses of a neighbour: ids at 0 reach at most a few elements before the start.
        """
        for access in self.kernel.accesses:
            if access.memory.index != index:
                continue
            offset = self._ranges.numeric(access.offset)
            low, high = self._ranges.range(access.offset, self._ranges.guards_at(access.block))
            if low > high or low >= 0 or math.isinf(low):
                continue
            for dimension in range(len(self.setting.global_size) - 1, -1, -1):
                step = offset.terms.get((Atom("id", ("global_id", dimension)),), 0)
                if step > 0 and -low >= step:
                    need = math.ceil(-low / step) if dimension == 0 else math.floor(-low / step)
                    if need <= _MOST_OFFSET:
                        yield dimension, need
                    low += need * step
                elif step > 0 and low < 0:
                    yield dimension, 1
                    low = 0

    def of_image(self, index: int, num_axes: int) -> tuple[int, ...]:
        """Texels of an image along each axis that are reached; 0 where that is not known."""
        sizes = [0] * num_axes
        for texel in self.kernel.texels:
            if texel.index != index:
                continue
            guards = self._ranges.guards_at(texel.block)
            for axis, coordinate in enumerate(texel.coordinates[:num_axes]):
                low, high = self._ranges.range(coordinate, guards)
                if low <= high and not math.isinf(high):
                    sizes[axis] = max(sizes[axis], math.floor(high) + 1)
        for axis in range(num_axes):
            asked = self.setting.scalars.get(("image", index, axis), 0)
            sizes[axis] = max(sizes[axis], math.ceil(asked))
        return tuple(sizes)

    def data_behind(self, name: str, line: int) -> list[int]:
        """The buffers whose numbers reach an address in a memory at a source line."""
        return sorted(
            {
                index
                for access in self.kernel.accesses
                if access.memory.name == name and line in (access.line, 0)
                for index in self._data_behind(access)
            }
        )
