"""The kernel's segments as native code: LLVM IR text in which each segment is a function that loops over its lanes.

The instructions are the kernel's own, hardly changed: values that live longer than a segment are kept in memory, one
array of lanes a value; pointers are the executor's addresses and are checked and turned into real ones at each access.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from perfvec.errors import UnsupportedError
from perfvec.program.accesses import GENERIC, PRIVATE, Access, TypeSizes, accesses_of
from perfvec.program.builtins import define_builtins
from perfvec.program.driver import (
    EXITED,
    FAULT,
    FINAL_METADATA,
    MAX_MEMORIES,
    SPLIT,
    SUB_GROUP_SIZE,
    TAG_SHIFT,
    WAITING,
    WORK_ITEM_IR,
    word,
)
from perfvec.program.image_functions import define_image_functions
from perfvec.program.images import image_call, texel_access
from perfvec.program.instructions import write_instruction, write_jump
from perfvec.program.ir import LOCAL_NAME, Instruction, KernelIR, call_arguments, phi_values, split_top
from perfvec.program.memories import Memories, lay_out_memories
from perfvec.program.printf import PRINTF_IR, string_literals
from perfvec.program.segments import Segment, make_segments
from perfvec.program.sub_group_functions import define_sub_group_functions
from perfvec.program.sub_groups import is_collective, sub_group_call
from perfvec.program.texels import HELD_BYTES
from perfvec.program.writer import OWN, Place, PrintfSite, Writer

_HEADER = """\
define internal i32 @pv.segment.{index}(ptr noalias %.ctx, ptr noalias %.pv.regs, ptr noalias %.pv.pcs, \
ptr noalias readonly %.pv.idx, i64 %.pv.num, ptr noalias %.pv.row) {{
.pv.entry:
  %.pv.base.p = {lane_base}
  %.pv.base = load i64, ptr %.pv.base.p
  %.pv.scratch.p = {scratch}
  %.pv.scratch = load ptr, ptr %.pv.scratch.p
  %.pv.table.p = {table}
  %.pv.table = load ptr, ptr %.pv.table.p
  %.pv.private.p = {private}
  %.pv.private.now = load i64, ptr %.pv.private.p
  %.pv.stride.p = {stride}
  %.pv.stride = load i64, ptr %.pv.stride.p"""
_LOOP = """\
  br label %.pv.loop
.pv.loop:
  %.pv.j = phi i64 [ 0, %.pv.entry ], [ %.pv.j.next, %.pv.latch ]
  %.pv.or = phi i32 [ 0, %.pv.entry ], [ %.pv.or.next, %.pv.latch ]
  %.pv.and = phi i32 [ -1, %.pv.entry ], [ %.pv.and.next, %.pv.latch ]
  %.pv.good = phi i1 [ true, %.pv.entry ], [ %.pv.good.next, %.pv.latch ]
  %.pv.lane.p = getelementptr i8, ptr %.pv.idx, i64 %.pv.j
  %.pv.lane.8 = load i8, ptr %.pv.lane.p
  %.pv.lane = zext i8 %.pv.lane.8 to i64
  %.pv.place = add i64 %.pv.base, %.pv.lane
  %.pv.skip = mul i64 %.pv.lane, %.pv.stride
  %.pv.private = add i64 %.pv.skip, %.pv.private.now"""
_FOOTER = """\
  %.pv.good.next = and i1 %.pv.good, {good}
  %.pv.or.next = or i32 %.pv.or, %.pv.next
  %.pv.and.next = and i32 %.pv.and, %.pv.next
  %.pv.j.next = add i64 %.pv.j, 1
  %.pv.more = icmp ult i64 %.pv.j.next, %.pv.num
  br i1 %.pv.more, label %.pv.loop, label %.pv.exit
.pv.exit:
  %.pv.same = icmp eq i32 %.pv.or.next, %.pv.and.next
  %.pv.where = select i1 %.pv.same, i32 %.pv.or.next, i32 {split}
  %.pv.result = select i1 %.pv.good.next, i32 %.pv.where, i32 {fault}
  ret i32 %.pv.result
}}"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place in the kernel that accesses memory.

    Attributes:
        segment: Index of its segment.
        instruction: What accesses it.
        access: How.
        memories: Numbers of the memories that it may access; one where its pointer follows from one alone.
    """

    segment: int
    instruction: Instruction
    access: Access
    memories: range


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NativeKernel:
    """A kernel as native code, before it is compiled; `slots` numbers the values that are kept in memory."""

    kernel: KernelIR
    ir: str
    segments: tuple[Segment, ...]
    sites: tuple[Site, ...]
    memories: Memories
    sizes: TypeSizes
    slots: dict[str, int]
    printf_sites: tuple[PrintfSite, ...]


def translate(
    kernel: KernelIR, *, texel_bytes: Mapping[int, int] | None = None, idle: frozenset[int] = frozenset()
) -> NativeKernel:
    """Translate a kernel into native code.

    Args:
        kernel: What to translate.
        texel_bytes: Bytes of a texel of each parameter that is an image, by the parameter's position.
        idle: The `id` of each instruction that is left out, but for the checks of its accesses; all else is as before.

    Raises:
        UnsupportedError: It uses something that the executor does not know; the message names it and its line.
    """
    return _Translator(kernel, texel_bytes or {}, idle).run()


@final
class _Translator:
    def __init__(self, kernel: KernelIR, texel_bytes: Mapping[int, int], idle: frozenset[int]) -> None:
        self.kernel, self.texel_bytes, self.idle = kernel, texel_bytes, idle
        self.idle_names = {i.name for b in kernel.blocks for i in b.instructions if id(i) in idle}
        self.sizes = TypeSizes(kernel.types)
        self.memories = lay_out_memories(kernel, self.sizes)
        literals = string_literals({m.address: variable.initialiser for m, variable in self.memories.tables})
        self.writer = Writer(kernel.name, self.sizes, self.memories.addresses, literals)
        self.segments = make_segments(kernel)
        self.sites: list[Site] = []
        self.type_of = {p.name: p.type for p in kernel.parameters}
        self.type_of |= {i.name: i.type for b in kernel.blocks for i in b.instructions if i.name}
        phis = {b.label: [i for i in b.instructions if i.opcode == "phi"] for b in kernel.blocks}
        # By block: the phis at its start, each with its values by the block that control comes from.
        self.phis = {label: [(i.name, phi_values(i)) for i in found] for label, found in phis.items()}
        # What is only read may lie in memory once and be read as often as it repeats: see `Contents.mask`.
        self.may_repeat = {
            self.memories.first_free + number for number, p in enumerate(kernel.parameters) if p.use == "readonly"
        }
        self.arguments = {p.name: number for number, p in enumerate(kernel.parameters)}
        self.memory_of = self._find_memories()
        self.reads: list[list[str]] = []
        self.slots = self._find_slots()
        self.good = "true"  # whether all accesses of the segment so far were sound
        self.bounds: dict[str, str] = {}  # of memories that the segment is known to access

    def _find_memories(self) -> dict[str, int]:
        """Number of the memory of each pointer that follows from one alone, by a chain of getelementptr."""
        found = {
            name: int(match[1]) >> TAG_SHIFT
            for name, text in self.memories.addresses.items()
            if (match := re.search(r"i64 (\d+)", text))
        }
        first = self.memories.first_free
        found |= {
            p.name: first + position
            for position, p in enumerate(self.kernel.parameters)
            if p.type.startswith("ptr") and not p.byval and not p.opaque
        }
        steps = {
            i.name: split_top(i.text)[1].rpartition(" ")[2]
            for b in self.kernel.blocks
            for i in b.instructions
            if i.opcode == "getelementptr" and i.type.startswith("ptr")
        }
        for name in steps:
            chain = [name]
            while chain[-1] in steps and chain[-1] not in found:
                chain.append(steps[chain[-1]])
            if chain[-1] in found:
                found |= dict.fromkeys(chain, found[chain[-1]])
        return found

    def _find_slots(self) -> dict[str, int]:
        """Number the values that need an array of lanes in memory: phis, and what another segment reads."""
        made_in = {i.name: s.index for s in self.segments for i in s.body if i.name}
        kept: dict[str, None] = {}
        for segment in self.segments:
            read = [
                name
                for name in dict.fromkeys(self._names_read(segment))
                if name in self.type_of and name not in self.memories.addresses and made_in.get(name) != segment.index
            ]
            self.reads.append(read)
            kept |= dict.fromkeys(name for name in read if name not in self.arguments)
        kept |= dict.fromkeys(name for phis in self.phis.values() for name, _ in phis)
        kept |= dict.fromkeys(i.name for s in self.segments for i in s.body if i.name and is_collective(i))
        return {name: number for number, name in enumerate(kept)}

    def _names_read(self, segment: Segment) -> Iterator[str]:
        for instruction in segment.body:
            yield from instruction.operands
        if segment.terminator is not None:
            yield from segment.terminator.operands
            for target in dict.fromkeys(segment.terminator.targets):
                for _, values in self.phis[target]:
                    yield from LOCAL_NAME.findall(values[segment.label])

    # ---- module -------------------------------------------------------------------------------------------------

    def run(self) -> NativeKernel:
        """Write the module."""
        functions = [self._segment_function(segment) for segment in self.segments]
        pointers = ", ".join(f"ptr @pv.segment.{s.index}" for s in self.segments)
        tables = (
            f"@{memory.symbol} = constant {variable.type} {self.writer.substitute(variable.initialiser)}"
            for memory, variable in self.memories.tables
        )
        types = (f"{name} = type {body}" for name, body in self.kernel.types.items())
        ir = "\n".join(
            (
                *types,
                self._layout(),
                f"@pv.segments = constant [{len(self.segments)} x ptr] [{pointers}]",
                *tables,
                WORK_ITEM_IR,
                *sorted(self.writer.declarations),
                *functions,
                FINAL_METADATA,
            )
        )
        if self.writer.images:
            ir = _join(ir, define_image_functions(sorted(self.writer.images)))
        if self.writer.printf_sites:
            ir = _join(ir, PRINTF_IR)
        if self.writer.sub_groups:
            ir = _join(ir, define_sub_group_functions(self.writer.sub_groups.values()))
        builtins = sorted(self.writer.builtins)
        return NativeKernel(
            kernel=self.kernel,
            ir=_join(ir, define_builtins(builtins)) if builtins else ir,
            segments=self.segments,
            sites=tuple(self.sites),
            memories=self.memories,
            sizes=self.sizes,
            slots=self.slots,
            printf_sites=tuple(self.writer.printf_sites),
        )

    def _layout(self) -> str:
        """The types of the values that are kept and of the arguments, and a table of their layout.

        Bytes of both; where each argument lies; where each value lies.
        """
        fields = ", ".join(f"[{SUB_GROUP_SIZE} x {self.type_of[name]}]" for name in self.slots)
        arguments = ", ".join(p.byval or p.type for p in self.kernel.parameters)
        places = [f"%pv.{which}, ptr null, i32 1" for which in ("regs", "args")]
        places += [f"%pv.args, ptr null, i32 0, i32 {number}" for number in range(len(self.kernel.parameters))]
        places += [f"%pv.regs, ptr null, i32 0, i32 {number}" for number in self.slots.values()]
        numbers = ", ".join(f"i64 ptrtoint (ptr getelementptr ({place}) to i64)" for place in places)
        return (
            f"%pv.regs = type {{ {fields} }}\n%pv.args = type {{ {arguments} }}\n"
            f"@pv.layout = constant [{len(places)} x i64] [{numbers}]"
        )

    # ---- a segment ----------------------------------------------------------------------------------------------

    def _segment_function(self, segment: Segment) -> str:
        first_site = len(self.sites)
        self.good, self.bounds = "true", {}
        body: list[str] = self._copy_structs() if segment.index == 0 else []
        for instruction in segment.body:
            body += self._write(segment, instruction, first_site)
            if instruction.name in self.slots and not is_collective(instruction) and id(instruction) not in self.idle:
                body += self._keep(instruction.name, instruction.name)
        reads = self.reads[segment.index]
        end, finish = self._terminate(segment)
        return "\n".join(
            (
                _HEADER.format(
                    index=segment.index,
                    lane_base=word("lane_base"),
                    scratch=word("scratch"),
                    table=word("table"),
                    private=word("private_now"),
                    stride=word("private_lane_bytes"),
                ),
                *self.bounds.values(),
                *(line for name in reads if name in self.arguments for line in self._load_argument(name)),
                *self._exchange(segment),
                _LOOP,
                *(line for name in reads if name in self.slots for line in self._load_slot(name)),
                *body,
                *end,
                ".pv.latch:",
                *finish,
                _FOOTER.format(good=self.good, split=SPLIT, fault=FAULT),
            )
        )

    def _load_argument(self, name: str) -> list[str]:
        number, value = self.arguments[name], self.writer.fresh("g")
        return [
            f"  {value} = " + word("args"),
            f"  {value}.args = load ptr, ptr {value}",
            f"  {value}.p = getelementptr %pv.args, ptr {value}.args, i32 0, i32 {number}",
            f"  {name} = load {self.type_of[name]}, ptr {value}.p",
        ]

    def _slot(self, name: str) -> tuple[str, str]:
        pointer = self.writer.fresh("s")
        return (
            pointer,
            f"  {pointer} = getelementptr %pv.regs, ptr %.pv.regs, i32 0, i32 {self.slots[name]}, i64 %.pv.lane",
        )

    def _load_slot(self, name: str) -> list[str]:
        pointer, line = self._slot(name)
        return [line, f"  {name} = load {self.type_of[name]}, ptr {pointer}"]

    def _keep(self, name: str, value: str) -> list[str]:
        pointer, line = self._slot(name)
        return [line, f"  store {self.type_of[name]} {value}, ptr {pointer}"]

    def _copy_structs(self) -> list[str]:
        """Copy structs passed by value into each lane's private memory, where the kernel expects them."""
        lines = []
        for parameter in self.kernel.parameters:
            if not parameter.byval:
                continue
            number, start = self.arguments[parameter.name], self.writer.fresh("c")
            memory = self.memories.of_parameter(parameter.name)
            lines += [
                f"  {start} = " + word("args"),
                f"  {start}.args = load ptr, ptr {start}",
                f"  {start}.from = getelementptr %pv.args, ptr {start}.args, i32 0, i32 {number}",
                *self._real_pointer(
                    start, str(memory.address), memory.num_bytes, 1, range(memory.number, memory.number + 1)
                ),
                f"  call void @llvm.memmove.p0.p0.i64(ptr {start}.p, ptr {start}.from, i64 {memory.num_bytes}, "
                "i1 false)",
            ]
        return lines

    def _exchange(self, segment: Segment) -> list[str]:
        """Lines of the sub-group function that a segment begins with: they put each lane's result into its slot."""
        call = segment.body[0] if segment.body else None
        if call is None or not is_collective(call):
            return []
        arguments = call_arguments(call)
        where = f"kernel {self.kernel.name!r}, line {call.line}"
        if self.kernel.sub_group_size not in (None, SUB_GROUP_SIZE):
            raise UnsupportedError(
                f"{where}: the kernel asks for sub-groups of {self.kernel.sub_group_size} work-items and exchanges "
                f"values in them; the traced ones have {SUB_GROUP_SIZE}. Trace a variant for {SUB_GROUP_SIZE}."
            )
        parts = sub_group_call(call.callee, arguments, where)
        if not call.name:
            return []
        self.writer.sub_groups[parts.symbol] = parts
        lines, passed = [], [f"ptr {self.writer.fresh('x')}"]
        lines.append(f"  {passed[0][4:]} = getelementptr %pv.regs, ptr %.pv.regs, i32 0, i32 {self.slots[call.name]}")
        for type_text, value in arguments:
            pointer = self.writer.fresh("x")
            passed += [f"ptr {pointer}", f"i64 {int(value in self.slots)}"]
            if value in self.slots:
                lines.append(f"  {pointer} = getelementptr %pv.regs, ptr %.pv.regs, i32 0, i32 {self.slots[value]}")
            else:  # the same for all lanes
                lines.append(f"  {pointer} = alloca {type_text}")
                lines.append(f"  store {type_text} {self.writer.substitute(value)}, ptr {pointer}")
        return [*lines, f"  call void @{parts.symbol}(ptr %.pv.idx, i64 %.pv.num, {', '.join(passed)})"]

    def _terminate(self, segment: Segment) -> tuple[list[str], list[str]]:
        """Lines that end the lane's body, and lines that find its next program counter."""
        terminator = segment.terminator
        if terminator is None:
            target = segment.successors[0] + (WAITING if segment.is_barrier else 0)
            return ["  br label %.pv.latch"], [f"  %.pv.next = add i32 0, {target}"]
        if not terminator.targets:  # ret, unreachable
            return ["  br label %.pv.latch"], [f"  %.pv.next = add i32 0, {EXITED}"]
        targets = dict(zip(terminator.targets, segment.successors, strict=True))
        edges = {label: f"{OWN}edge.{number}" for number, label in enumerate(targets)}
        lines = [f"  {line}" for line in write_jump(self.writer, terminator, edges)]
        for label, edge in edges.items():
            lines.append(f"{edge[1:]}:")
            for name, values in self.phis[label]:
                if name in self.idle_names:
                    continue
                lines += self._keep(name, self.writer.substitute(values[segment.label]))
            lines.append("  br label %.pv.latch")
        incoming = ", ".join(f"[ {targets[label]}, {edge} ]" for label, edge in edges.items())
        finish = [f"  %.pv.next = phi i32 {incoming}"]
        if len(targets) > 1:
            finish += [
                "  %.pv.pc.p = getelementptr i32, ptr %.pv.pcs, i64 %.pv.lane",
                "  store i32 %.pv.next, ptr %.pv.pc.p",
            ]
        return lines, finish

    # ---- instructions and their accesses ------------------------------------------------------------------------

    def _write(self, segment: Segment, instruction: Instruction, first_site: int) -> list[str]:
        if is_collective(instruction):  # done for all lanes before the first: see `_exchange`
            return self._load_slot(instruction.name) if instruction.name else []
        lines: list[str] = []
        places: list[Place] = []
        accesses, finding = self._accesses(instruction)
        lines += (f"  {line}" for line in finding)
        for access in accesses:
            if not PRIVATE <= access.space < GENERIC:
                kind = (
                    "a generic pointer (OpenCL C 2.0)" if access.space == GENERIC else "a pointer to one that is none"
                )
                raise UnsupportedError(
                    f"kernel {self.kernel.name!r}, line {instruction.line}: address space {access.space}, {kind}; "
                    "allowed are private (0), global (1), constant (2) and local (3): cast the pointer to one of them"
                )
            memories = self._memories_of(access)
            pointer, more = self._point(access, memories, len(self.sites) - first_site)
            self.sites.append(Site(segment=segment.index, instruction=instruction, access=access, memories=memories))
            places.append(Place(pointer=pointer, access=access))
            lines += more
        if id(instruction) in self.idle:
            return lines
        return [*lines, *(f"  {line}" for line in write_instruction(self.writer, instruction, places))]

    def _accesses(self, instruction: Instruction) -> tuple[tuple[Access, ...], list[str]]:
        """The accesses of an instruction, and lines that must come before they are made."""
        if instruction.opcode != "call" or image_call(instruction.callee) is None:
            return accesses_of(instruction, self.sizes), []
        number = self._image_parameter(instruction)
        access, lines = texel_access(self.writer, instruction, self.texel_bytes.get(number, HELD_BYTES))
        return (access,), lines

    def _image_parameter(self, instruction: Instruction) -> int:
        """Position of the image that a read or write is of; in unoptimised code it has been through memory."""
        name = call_arguments(instruction)[0][1]
        if name not in self.arguments:
            everything = [i for b in self.kernel.blocks for i in b.instructions]
            kept = {i.operands[-1]: i.operands[0] for i in everything if i.opcode == "store" and len(i.operands) == 2}
            loaded = {i.name: i.operands[0] for i in everything if i.opcode == "load" and i.operands}
            while name in loaded:  # once for each function that it was handed to
                name = kept.get(loaded[name], "")
        if name not in self.arguments:
            raise UnsupportedError(
                f"kernel {self.kernel.name!r}, line {instruction.line}: an image that is not one of the kernel's "
                "parameters; OpenCL C has no others"
            )
        return self.arguments[name]

    def _memories_of(self, access: Access) -> range:
        """Numbers of the memories that an access may touch, known from where its pointer comes from."""
        number = self.memory_of.get(access.pointer)
        if number is not None:
            return range(number, number + 1)
        num_private = len(self.memories.private)
        return range(1, 1 + num_private) if access.space == PRIVATE else range(1 + num_private, MAX_MEMORIES + 1)

    def _point(self, access: Access, memories: range, row: int) -> tuple[str, list[str]]:
        """Lines that record an access's address and make it a real pointer."""
        value = self.writer.fresh("a")
        total = f"{value}.base"
        lines = [f"  {total} = ptrtoint {access.pointer_type} {self.writer.substitute(access.pointer)} to i64"]
        if access.offset:
            lines += [
                f"  {value}.skip = mul i64 {self.writer.substitute(access.offset)}, {access.offset_bytes}",
                f"  {value}.sum = add i64 {total}, {value}.skip",
            ]
            total = f"{value}.sum"
        lines += [
            f"  {value} = freeze i64 {total}",
            f"  {value}.r = getelementptr [{SUB_GROUP_SIZE} x i64], ptr %.pv.row, i64 {row}, i64 %.pv.lane",
            f"  store i64 {value}, ptr {value}.r",
            *self._real_pointer(value, value, access.num_bytes, access.align, memories),
        ]
        return f"{value}.p", lines

    def _real_pointer(self, name: str, address: str, num_bytes: int, align: int, memories: range) -> list[str]:
        """Lines that make an address the real pointer `name`.p, or one to scratch memory where it must not be accessed.

        Without a branch, for all accesses of a segment then lie in one block. Which of them it was is found out
        afterwards: see `perfvec.program.executor.Execution`.
        """
        find = self._known_bounds if len(memories) == 1 else self._looked_up_bounds
        lines = find(name, address, num_bytes, memories)
        if align > 1:
            lines += [
                f"  {name}.low = and i64 {address}, {align - 1}",
                f"  {name}.aligned = icmp eq i64 {name}.low, 0",
                f"  {name}.good = and i1 {name}.inside, {name}.aligned",
            ]
        good = f"{name}.good" if align > 1 else f"{name}.inside"
        start = f"{name}.start"
        if memories.start <= len(self.memories.private):
            lines.append(f"  {name}.own = getelementptr i8, ptr {start}, i64 %.pv.private")
            start = f"{name}.own"
        before, self.good = self.good, f"{name}.so.far"
        return [
            *lines,
            f"  {name}.p = select i1 {good}, ptr {start}, ptr %.pv.scratch",
            f"  {self.good} = and i1 {before}, {good}",
        ]

    def _known_bounds(self, name: str, address: str, num_bytes: int, memories: range) -> list[str]:
        """Lines that find `name`.start in a memory that is known, and whether it is `name`.inside; looked up once."""
        number = memories.start
        memory, first = f"%.pv.memory.{number}", f"%.pv.end.{number}.{num_bytes}"
        self.bounds[memory] = (
            f"  {memory}.limit.p = getelementptr {{ i64, ptr }}, ptr %.pv.table, i64 {number}\n"
            f"  {memory}.limit = load i64, ptr {memory}.limit.p\n"
            f"  {memory}.base.p = getelementptr i64, ptr {memory}.limit.p, i64 1\n"
            f"  {memory}.base = load ptr, ptr {memory}.base.p"
        )
        if number in self.may_repeat:
            self.bounds[f"{memory}.mask"] = (
                f"  {memory}.mask.p = getelementptr {{ i64, ptr }}, ptr %.pv.table, i64 {MAX_MEMORIES + number}\n"
                f"  {memory}.mask = load i64, ptr {memory}.mask.p"
            )
        # The first offset at which so many bytes do not fit.
        self.bounds[first] = f"  {first} = call i64 @llvm.usub.sat.i64(i64 {memory}.limit, i64 {num_bytes - 1})"
        lines = [
            f"  {name}.offset = sub i64 {address}, {number << TAG_SHIFT}",
            f"  {name}.inside = icmp ult i64 {name}.offset, {first}",
        ]
        place = f"{name}.offset"
        if number in self.may_repeat:
            place = f"{name}.place"
            lines.append(f"  {place} = and i64 {name}.offset, {memory}.mask")
        return [*lines, f"  {name}.start = getelementptr i8, ptr {memory}.base, i64 {place}"]

    def _looked_up_bounds(self, name: str, address: str, num_bytes: int, memories: range) -> list[str]:
        """As `_known_bounds` for an address of any of some memories."""
        return [
            f"  {name}.tag = lshr i64 {address}, {TAG_SHIFT}",
            f"  {name}.offset = and i64 {address}, {(1 << TAG_SHIFT) - 1}",
            f"  {name}.rank = sub i64 {name}.tag, {memories.start}",
            f"  {name}.is = icmp ult i64 {name}.rank, {len(memories)}",
            f"  {name}.number = and i64 {name}.tag, {MAX_MEMORIES - 1}",
            f"  {name}.limit.p = getelementptr {{ i64, ptr }}, ptr %.pv.table, i64 {name}.number",
            f"  {name}.limit = load i64, ptr {name}.limit.p",
            f"  {name}.end = add i64 {name}.offset, {num_bytes}",
            f"  {name}.fits = icmp ule i64 {name}.end, {name}.limit",
            f"  {name}.inside = and i1 {name}.is, {name}.fits",
            f"  {name}.begin.p = getelementptr i64, ptr {name}.limit.p, i64 1",
            f"  {name}.begin = load ptr, ptr {name}.begin.p",
            f"  {name}.entry = add i64 {name}.number, {MAX_MEMORIES}",
            f"  {name}.mask.p = getelementptr {{ i64, ptr }}, ptr %.pv.table, i64 {name}.entry",
            f"  {name}.mask = load i64, ptr {name}.mask.p",
            f"  {name}.place = and i64 {name}.offset, {name}.mask",
            f"  {name}.start = getelementptr i8, ptr {name}.begin, i64 {name}.place",
        ]


def _join(ir: str, builtins: str) -> str:
    """Put two modules' texts together; declarations that both have are kept once."""
    declared = {name for line in ir.splitlines() if (name := _declared_name(line))}
    return "\n".join((ir, *(line for line in builtins.splitlines() if _declared_name(line) not in declared)))


def _declared_name(line: str) -> str:
    match = re.match(r"declare .*?@([-\w$.]+)\(", line)
    return match[1] if match else ""
