"""The kernel's segments as native code: LLVM IR text in which each segment is a function that loops over its lanes.

The instructions are the kernel's own, hardly changed: values that live longer than a segment are kept in memory, one
array of lanes a value; pointers are the executor's addresses and are checked and turned into real ones at each access;
divisions are guarded, because the processor would trap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

from perfvec.errors import UnsupportedError
from perfvec.program.accesses import (
    PRIVATE,
    Access,
    TypeSizes,
    accesses_of,
    atomic_parts,
    vector_access_parts,
    writes_through_pointer,
)
from perfvec.program.builtins import define_builtins, is_value_builtin
from perfvec.program.driver import DRIVER_IR, EXITED, FINAL_METADATA, SUB_GROUP_SIZE, TAG_SHIFT, WAITING, word
from perfvec.program.ir import (
    GLOBAL_NAME,
    LOCAL_NAME,
    Instruction,
    KernelIR,
    call_arguments,
    read_type,
    split_top,
    vector_parts,
    with_vector_width,
)
from perfvec.program.segments import Segment, is_barrier, make_segments

PRIVATE_ALIGN = 128
_WORK_ITEM_QUERY = re.compile(
    r"^_Z\d+(get_global_id|get_local_id|get_group_id|get_num_groups|get_global_size|get_local_size"
    r"|get_global_offset|get_enqueued_local_size)j$"
)
_INTRINSIC_DECLARATION_SKIP = ("llvm.memcpy", "llvm.memmove", "llvm.memset", "llvm.umin.i64", "llvm.cttz.i32")
_NO_EFFECT = re.compile(
    r"^(_Z\d+(mem_fence|read_mem_fence|write_mem_fence|prefetch|wait_group_events|atomic_work_item_fence)|printf$)"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory that a kernel can address: a private array, a local array or a constant table.

    Attributes:
        number: What its addresses are tagged with.
        name: The variable, for messages.
        num_bytes: Its size.
        symbol: The module symbol that holds its data (constants), "" if none.
    """

    number: int
    name: str
    num_bytes: int
    symbol: str = ""

    @property
    def address(self) -> int:
        """Its first address."""
        return self.number << TAG_SHIFT


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place in the kernel that accesses memory."""

    segment: int
    instruction: Instruction
    access: Access


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NativeKernel:
    """A kernel as native code, before it is compiled."""

    kernel: KernelIR
    ir: str
    segments: tuple[Segment, ...]
    sites: tuple[Site, ...]
    private: tuple[Memory, ...]
    private_offsets: tuple[int, ...]
    private_bytes: int
    local: tuple[Memory, ...]
    constants: tuple[Memory, ...]
    first_free_memory: int


def translate(kernel: KernelIR) -> NativeKernel:
    """Translate a kernel into native code.

    Raises:
        UnsupportedError: It uses something that the executor does not know; the message names it and its line.
    """
    return _Translator(kernel).run()


@final
class _Translator:
    def __init__(self, kernel: KernelIR) -> None:
        self.kernel = kernel
        types = dict(line.split(" = type ", 1) for line in kernel.type_definitions.splitlines())
        self.sizes = TypeSizes(types)
        self.segments = make_segments(kernel)
        self.sites: list[Site] = []
        self.declarations: set[str] = set()
        self.builtins: set[str] = set()
        self.substitutes: dict[str, str] = {}
        self.counter = 0
        self.type_of = {p.name: p.type for p in kernel.parameters}
        self.type_of |= {i.name: i.type for b in kernel.blocks for i in b.instructions if i.name}
        self.phis = {b.label: [i for i in b.instructions if i.opcode == "phi"] for b in kernel.blocks}
        self.last_segment_of = {s.label: s for s in self.segments if s.terminator is not None}
        self._lay_out_memories()
        self._find_slots()

    # ---- memories and values that outlive a segment -------------------------------------------------------------

    def _lay_out_memories(self) -> None:
        number, offset = 1, 0
        private: list[Memory] = []
        offsets: list[int] = []
        allocas = [i for b in self.kernel.blocks for i in b.instructions if i.opcode == "alloca"]
        entries = [(i.name, self._alloca_bytes(i)) for i in allocas]
        entries += [(p.name, self.sizes.bytes_of(p.byval)) for p in self.kernel.parameters if p.byval]
        for name, num_bytes in entries:
            memory = Memory(number=number, name=name[1:].removesuffix(".addr"), num_bytes=num_bytes)
            private.append(memory)
            offsets.append(offset)
            self.substitutes[name] = f"inttoptr (i64 {memory.address} to ptr)"
            number, offset = number + 1, offset + -(-num_bytes // PRIVATE_ALIGN) * PRIVATE_ALIGN
        by_space: dict[int, list[Memory]] = {2: [], 3: []}
        for variable in self.kernel.variables:
            if variable.address_space not in by_space:
                raise UnsupportedError(f"program-scope variable {variable.name} in address space {variable.address_space}")
            symbol = f"pv.constant.{number}" if variable.address_space == 2 else ""
            memory = Memory(
                number=number,
                name=variable.name[1:].split(".")[-1],
                num_bytes=self.sizes.bytes_of(variable.type),
                symbol=symbol,
            )
            by_space[variable.address_space].append(memory)
            pointer = f"ptr addrspace({variable.address_space})"
            self.substitutes[variable.name] = f"inttoptr (i64 {memory.address} to {pointer})"
            number += 1
        self.private, self.private_offsets, self.private_bytes = tuple(private), tuple(offsets), offset
        self.local, self.constants = tuple(by_space[3]), tuple(by_space[2])
        self.first_free_memory = number

    def _alloca_bytes(self, instruction: Instruction) -> int:
        parts = split_top(instruction.text.removeprefix("alloca "))
        if len(parts) > 1 and re.match(r"i\d+ %", parts[1]):
            raise UnsupportedError(f"line {instruction.line}: an array whose length is not constant")
        return self.sizes.bytes_of(parts[0])

    def _find_slots(self) -> None:
        """Number the values that need an array of lanes in memory: phis, and what another segment reads."""
        made_in = {i.name: s.index for s in self.segments for i in s.body if i.name}
        arguments = {p.name for p in self.kernel.parameters}
        phi_names = {phi.name for phis in self.phis.values() for phi in phis}
        self.reads: list[list[str]] = []
        kept: dict[str, None] = {}
        for segment in self.segments:
            read: dict[str, None] = {}
            for name in self._names_read(segment):
                if name in self.substitutes or made_in.get(name) == segment.index:
                    continue
                read[name] = None
                if name not in arguments:
                    kept[name] = None
            self.reads.append(list(read))
        kept.update(dict.fromkeys(phi_names))
        self.slots = {name: number for number, name in enumerate(kept)}
        self.arguments = {p.name: number for number, p in enumerate(self.kernel.parameters)}

    def _names_read(self, segment: Segment) -> Iterable[str]:
        for instruction in segment.body:
            yield from instruction.operands
        if segment.terminator is not None:
            yield from segment.terminator.operands
            for target in dict.fromkeys(segment.terminator.targets):
                for phi in self.phis[target]:
                    yield from LOCAL_NAME.findall(self._incoming(phi, segment.label))

    @staticmethod
    def _incoming(phi: Instruction, label: str) -> str:
        """Text of the value that a phi takes when it is reached from `label`."""
        _, position = read_type(phi.text, re.match(r"phi (?:\w+ )*?(?=[\[<{%ipfdhb])", phi.text).end())  # pyright: ignore
        for part in split_top(phi.text[position:].strip()):
            value, _, source = part.strip("[] ").rpartition(",")
            if source.strip() == label:
                return value.strip()
        raise UnsupportedError(f"phi {phi.text!r} has no value from {label}")

    # ---- module -------------------------------------------------------------------------------------------------

    def run(self) -> NativeKernel:
        """Write the module."""
        functions = [self._segment_function(segment) for segment in self.segments]
        num = len(self.segments)
        costs = ", ".join(f"i32 {max(1, len(s.body) + (s.terminator is not None))}" for s in self.segments)
        sites = ", ".join(f"i32 {sum(x.segment == s.index for x in self.sites)}" for s in self.segments)
        table = ", ".join(f"ptr @pv.segment.{s.index}" for s in self.segments)
        constants = "\n".join(
            f"@{memory.symbol} = constant {self._substitute(variable.type)} {self._substitute(variable.initialiser)}"
            for memory, variable in zip(
                self.constants, [v for v in self.kernel.variables if v.address_space == 2], strict=True
            )
        )
        ir = "\n".join(
            (
                self.kernel.type_definitions,
                self._register_type(),
                f"@pv.costs = private constant [{num} x i32] [{costs}]",
                f"@pv.sites = private constant [{num} x i32] [{sites}]",
                f"@pv.segments = private constant [{num} x ptr] [{table}]",
                constants,
                DRIVER_IR,
                "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                *sorted(self.declarations),
                *functions,
                FINAL_METADATA,
            )
        )
        return NativeKernel(
            kernel=self.kernel,
            ir=_join(ir, define_builtins(sorted(self.builtins))) if self.builtins else ir,
            segments=self.segments,
            sites=tuple(self.sites),
            private=self.private,
            private_offsets=self.private_offsets,
            private_bytes=self.private_bytes,
            local=self.local,
            constants=self.constants,
            first_free_memory=self.first_free_memory,
        )

    def _register_type(self) -> str:
        fields = ", ".join(f"[{SUB_GROUP_SIZE} x {self.type_of[name]}]" for name in self.slots)
        arguments = ", ".join(p.byval or p.type for p in self.kernel.parameters)
        size = "ptrtoint (ptr getelementptr ({0}, ptr null, i32 1) to i64)"
        offsets = "".join(
            f"define i64 @pv.arg_offset.{number}() {{ ret i64 ptrtoint (ptr getelementptr "
            f"(%pv.args, ptr null, i32 0, i32 {number}) to i64) }}\n"
            for number in range(len(self.kernel.parameters))
        )
        return (
            f"%pv.regs = type {{ {fields} }}\n%pv.args = type {{ {arguments} }}\n"
            f"define i64 @pv.regs_bytes() {{ ret i64 {size.format('%pv.regs')} }}\n"
            f"define i64 @pv.args_bytes() {{ ret i64 {size.format('%pv.args')} }}\n{offsets}"
        )

    # ---- a segment ----------------------------------------------------------------------------------------------

    def _segment_function(self, segment: Segment) -> str:
        first_site = len(self.sites)
        body: list[str] = []
        for instruction in segment.body:
            body += self._emit(segment, instruction, first_site)
            if instruction.name in self.slots:
                body += self._keep(instruction.name, instruction.name)
        if segment.index == 0:
            body = [*self._copy_structs(), *body]
        reads = self.reads[segment.index]
        head = [line for name in reads if name in self.arguments for line in self._load_argument(name)]
        load = [line for name in reads if name in self.slots for line in self._load_slot(name)]
        end, finish = self._terminate(segment)
        return "\n".join(
            (
                f"define internal i32 @pv.segment.{segment.index}(ptr noalias %ctx, ptr noalias %pv.regs, ptr noalias %pv.pcs, "
                "ptr noalias readonly %pv.idx, i64 %pv.num, ptr noalias %pv.row) {",
                "pv.entry:",
                "  %pv.base.p = " + word("lane_base"),
                "  %pv.base = load i64, ptr %pv.base.p",
                *head,
                "  br label %pv.loop",
                "pv.loop:",
                "  %pv.j = phi i64 [ 0, %pv.entry ], [ %pv.j.next, %pv.latch ]",
                "  %pv.or = phi i32 [ 0, %pv.entry ], [ %pv.or.next, %pv.latch ]",
                "  %pv.and = phi i32 [ -1, %pv.entry ], [ %pv.and.next, %pv.latch ]",
                "  %pv.lane.p = getelementptr i8, ptr %pv.idx, i64 %pv.j",
                "  %pv.lane.8 = load i8, ptr %pv.lane.p",
                "  %pv.lane = zext i8 %pv.lane.8 to i64",
                "  %pv.place = add i64 %pv.base, %pv.lane",
                *load,
                *body,
                *end,
                "pv.latch:",
                *finish,
                "  %pv.or.next = or i32 %pv.or, %pv.next",
                "  %pv.and.next = and i32 %pv.and, %pv.next",
                "  %pv.j.next = add i64 %pv.j, 1",
                "  %pv.more = icmp ult i64 %pv.j.next, %pv.num",
                "  br i1 %pv.more, label %pv.loop, label %pv.exit",
                "pv.exit:",
                "  %pv.same = icmp eq i32 %pv.or.next, %pv.and.next",
                "  %pv.result = select i1 %pv.same, i32 %pv.or.next, i32 -1",
                "  ret i32 %pv.result",
                "}",
            )
        )

    def _load_argument(self, name: str) -> list[str]:
        number = self.arguments[name]
        return [
            f"  %pv.args.{number}.p = " + word("args"),
            f"  %pv.args.{number} = load ptr, ptr %pv.args.{number}.p",
            f"  %pv.arg.{number}.p = getelementptr %pv.args, ptr %pv.args.{number}, i32 0, i32 {number}",
            f"  {name} = load {self.type_of[name]}, ptr %pv.arg.{number}.p",
        ]

    def _slot(self, name: str) -> tuple[str, str]:
        pointer = self._fresh("s")
        return pointer, f"  {pointer} = getelementptr %pv.regs, ptr %pv.regs, i32 0, i32 {self.slots[name]}, i64 %pv.lane"

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
            number, start = self.arguments[parameter.name], self._fresh("c")
            memory = next(m for m in self.private if self.substitutes[parameter.name].startswith(f"inttoptr (i64 {m.address} "))
            lines += [
                f"  {start}.args.p = " + word("args"),
                f"  {start}.args = load ptr, ptr {start}.args.p",
                f"  {start}.from = getelementptr %pv.args, ptr {start}.args, i32 0, i32 {number}",
                f"  {start}.to = call ptr @pv.at.private(ptr %ctx, i64 {memory.address}, i64 {memory.num_bytes}, i64 0, "
                "i64 %pv.lane, i64 0)",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr {start}.to, ptr {start}.from, i64 {memory.num_bytes}, i1 false)",
            ]
        return lines

    def _terminate(self, segment: Segment) -> tuple[list[str], list[str]]:
        """Lines that end the lane's body, and lines that find its next program counter."""
        terminator = segment.terminator
        if terminator is None:
            target = segment.successors[0] + (WAITING if segment.is_barrier else 0)
            return ["  br label %pv.latch"], [f"  %pv.next = add i32 0, {target}"]
        if not terminator.targets:  # ret, unreachable
            return ["  br label %pv.latch"], [f"  %pv.next = add i32 0, {EXITED}"]
        targets = dict(zip(terminator.targets, segment.successors, strict=True))
        edges = {label: f"pv.edge.{number}" for number, label in enumerate(targets)}
        jump = terminator.text
        for label, edge in edges.items():
            jump = re.sub(rf"label {re.escape(label)}(?![-\w$.])", f"label %{edge}", jump)
        lines = ["  " + self._substitute(jump)]
        for label, edge in edges.items():
            lines.append(f"{edge}:")
            for phi in self.phis[label]:
                lines += self._keep(phi.name, self._substitute(self._incoming(phi, segment.label)))
            lines.append("  br label %pv.latch")
        incoming = ", ".join(f"[ {targets[label]}, %{edge} ]" for label, edge in edges.items())
        finish = [f"  %pv.next = phi i32 {incoming}"]
        if len(targets) > 1:
            finish += [
                "  %pv.pc.p = getelementptr i32, ptr %pv.pcs, i64 %pv.lane",
                "  store i32 %pv.next, ptr %pv.pc.p",
            ]
        return lines, finish

    # ---- instructions -------------------------------------------------------------------------------------------

    def _emit(self, segment: Segment, instruction: Instruction, first_site: int) -> list[str]:
        lines: list[str] = []
        pointers: list[str] = []
        for access in accesses_of(instruction, self.sizes):
            if access.space not in (0, 1, 2, 3):
                raise UnsupportedError(f"line {instruction.line}: a generic pointer (OpenCL C 2.0); cast to an address space")
            pointer, more = self._point(access, len(self.sites), len(self.sites) - first_site)
            self.sites.append(Site(segment=segment.index, instruction=instruction, access=access))
            pointers.append(pointer)
            lines += more
        handler = _HANDLERS.get(instruction.opcode, _Translator._plain)
        return [*lines, *(f"  {line}" for line in handler(self, instruction, pointers))]

    def _point(self, access: Access, site: int, row: int) -> tuple[str, list[str]]:
        """Lines that record an access's address and make it a real pointer."""
        value = self._fresh("a")
        pointer = self._substitute(access.pointer)
        lines = [f"  {value}.base = ptrtoint {access.pointer_type} {pointer} to i64"]
        if access.offset:
            lines += [
                f"  {value}.skip = mul i64 {self._substitute(access.offset)}, {access.offset_bytes}",
                f"  {value} = add i64 {value}.base, {value}.skip",
            ]
        else:
            lines.append(f"  {value} = add i64 {value}.base, 0")
        function = "@pv.at.private" if access.space == PRIVATE else "@pv.at"
        lines += [
            f"  {value}.r = getelementptr [{SUB_GROUP_SIZE} x i64], ptr %pv.row, i64 {row}, i64 %pv.lane",
            f"  store i64 {value}, ptr {value}.r",
            f"  {value}.p = call ptr {function}(ptr %ctx, i64 {value}, i64 {access.num_bytes}, i64 {access.align - 1}, "
            f"i64 %pv.lane, i64 {site})",
        ]
        return f"{value}.p", lines

    def _fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"%pv.{prefix}{self.counter}"

    def _substitute(self, text: str) -> str:
        """Put addresses in the place of variables."""
        if "@" in text:
            text = GLOBAL_NAME.sub(lambda m: self.substitutes.get(m[0], m[0]), text)
        return LOCAL_NAME.sub(lambda m: self.substitutes.get(m[0], m[0]), text)

    def _plain(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        del pointers
        text = self._substitute(instruction.text)
        return [f"{instruction.name} = {text}" if instruction.name else text]

    def _address(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        del pointers
        # Without promises: the addresses are not the machine's, and the bounds are checked at the access.
        text = re.sub(r"getelementptr (?:inbounds |nuw |nusw )+", "getelementptr ", instruction.text)
        return [f"{instruction.name} = {self._substitute(text)}"]

    def _load(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        return [f"{instruction.name} = load {instruction.type}, ptr {pointers[0]}, align {instruction.align}"]

    def _store(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        text = re.sub(r"^store (atomic |volatile )*", "", instruction.text)
        return [f"store {self._substitute(split_top(text)[0])}, ptr {pointers[0]}, align {instruction.align}"]

    def _divide(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        """Division by zero, and of the least number by -1, are undefined in OpenCL but trap on a processor."""
        del pointers
        match = re.match(r"(sdiv|udiv|srem|urem) (?:exact )?", instruction.text)
        assert match is not None
        type_text, position = read_type(instruction.text, match.end())
        left, right = (self._substitute(part) for part in split_top(instruction.text[position:].strip()))
        value, bits = self._fresh("d"), with_vector_width("i1", vector_parts(type_text)[0])
        zero, one = _constant(type_text, 0), _constant(type_text, 1)
        lines = [f"{value}.z = icmp eq {type_text} {right}, {zero}"]
        if match[1] in ("sdiv", "srem"):
            minus = _constant(type_text, -1)
            least = _constant(type_text, -(1 << (int(vector_parts(type_text)[1][1:]) - 1)))
            lines += [
                f"{value}.m = icmp eq {type_text} {right}, {minus}",
                f"{value}.l = icmp eq {type_text} {left}, {least}",
                f"{value}.o = and {bits} {value}.m, {value}.l",
                f"{value}.b = or {bits} {value}.z, {value}.o",
            ]
        else:
            lines.append(f"{value}.b = or {bits} {value}.z, {value}.z")
        return [
            *lines,
            f"{value}.r = select {bits} {value}.b, {type_text} {one}, {type_text} {right}",
            f"{instruction.name} = {match[1]} {type_text} {left}, {value}.r",
        ]

    def _nothing(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        del pointers
        return [f"{instruction.name} = freeze {instruction.type} poison"] if instruction.name else []

    # ---- calls --------------------------------------------------------------------------------------------------

    def _call(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        callee = instruction.callee
        if is_barrier(instruction) or _NO_EFFECT.match(callee):
            return self._nothing(instruction, [])
        for applies, handler in _CALL_HANDLERS:
            if applies(callee):
                return handler(self, instruction, pointers)
        if is_value_builtin(callee):
            self.builtins.add(callee)
            return self._plain(instruction, [])
        raise UnsupportedError(
            f"kernel {self.kernel.name!r}, line {instruction.line}: the function {readable_name(callee)!r} is not executed "
            "by the tracer; it is neither defined in the program nor a built-in of OpenCL C 1.2 that PerfVec knows"
        )

    def _intrinsic(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        if instruction.callee.startswith("llvm.mem"):
            length = call_arguments(instruction)[2][1]
            if instruction.callee.startswith("llvm.memset"):
                value = self._substitute(call_arguments(instruction)[1][1])
                return [f"call void @llvm.memset.p0.i64(ptr {pointers[0]}, i8 {value}, i64 {length}, i1 false)"]
            return [f"call void @llvm.memcpy.p0.p0.i64(ptr {pointers[1]}, ptr {pointers[0]}, i64 {length}, i1 false)"]
        types = ", ".join(t for t, _ in call_arguments(instruction))
        if instruction.callee not in _INTRINSIC_DECLARATION_SKIP:
            self.declarations.add(f"declare {instruction.type} @{instruction.callee}({types})")
        return self._plain(instruction, [])

    def _work_item(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        del pointers
        match = _WORK_ITEM_QUERY.match(instruction.callee)
        assert match is not None
        dim = self._substitute(call_arguments(instruction)[0][1])
        return [f"{instruction.name} = call i64 @pv.{match[1]}(ptr %ctx, i32 {dim}, i64 %pv.place)"]

    def _work_dim(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        del pointers
        value = self._fresh("w")
        return [f"{value} = {word('work_dim')}", f"{instruction.name} = load i32, ptr {value}"]

    def _vector_access(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        parts = vector_access_parts(instruction.callee)
        assert parts is not None
        is_store, is_half = parts
        site = self.sites[-1].access
        value_type, value = call_arguments(instruction)[0] if is_store else (instruction.type, instruction.name)
        half = with_vector_width("half", vector_parts(value_type)[0])
        if is_store:
            value = self._substitute(value)
            lines = []
            if is_half and value_type != half:
                narrow = self._fresh("h")
                lines.append(f"{narrow} = fptrunc {value_type} {value} to {half}")
                value, value_type = narrow, half
            return [*lines, f"store {value_type} {value}, ptr {pointers[0]}, align {site.align}"]
        if is_half and value_type != half:
            wide = self._fresh("h")
            return [
                f"{wide} = load {half}, ptr {pointers[0]}, align {site.align}",
                f"{value} = fpext {half} {wide} to {value_type}",
            ]
        return [f"{value} = load {value_type}, ptr {pointers[0]}, align {site.align}"]

    def _atomic(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        parts = atomic_parts(instruction.callee)
        assert parts is not None
        operation, letter = parts
        old = instruction.name or self._fresh("old")
        type_text, pointer = instruction.type, pointers[0]
        operands = [self._substitute(value) for _, value in call_arguments(instruction)[1:]]
        new = self._fresh("new")
        return [
            f"{old} = load {type_text}, ptr {pointer}, align {self.sites[-1].access.align}",
            *_ATOMICS[operation](new, type_text, old, operands, "s" if letter in "il" else "u"),
            f"store {type_text} {new}, ptr {pointer}, align {self.sites[-1].access.align}",
        ]

    def _two_results(self, instruction: Instruction, pointers: list[str]) -> list[str]:
        name = f"{instruction.callee}.value"
        self.builtins.add(instruction.callee)
        arguments = call_arguments(instruction)[:-1]
        access = self.sites[-1].access
        width, scalar = vector_parts(instruction.type)
        if access.num_bytes // width != self.sizes.stored_bytes(scalar) or "remquo" in name or "frexp" in name or "lgamma_r" in name:
            scalar = "i32"
        out_type = with_vector_width(scalar, width)
        both, out = self._fresh("b"), self._fresh("o")
        text = ", ".join(f"{t} {self._substitute(v)}" for t, v in arguments)
        pair = f"{{ {instruction.type}, {out_type} }}"
        return [
            f"{both} = call {pair} @{name}({text})",
            f"{instruction.name or self._fresh('r')} = extractvalue {pair} {both}, 0",
            f"{out} = extractvalue {pair} {both}, 1",
            f"store {out_type} {out}, ptr {pointers[0]}, align {access.align}",
        ]


Handler: TypeAlias = Callable[[_Translator, Instruction, list[str]], list[str]]
_HANDLERS: dict[str, Handler] = {
    "getelementptr": _Translator._address,
    "load": _Translator._load,
    "store": _Translator._store,
    **dict.fromkeys(("sdiv", "udiv", "srem", "urem"), _Translator._divide),
    "fence": _Translator._nothing,
    "call": _Translator._call,
}
_CALL_HANDLERS: tuple[tuple[Callable[[str], bool], Handler], ...] = (
    (lambda callee: callee.startswith("llvm."), _Translator._intrinsic),
    (lambda callee: bool(_WORK_ITEM_QUERY.match(callee)), _Translator._work_item),
    (lambda callee: callee.startswith("_Z12get_work_dim"), _Translator._work_dim),
    (lambda callee: vector_access_parts(callee) is not None, _Translator._vector_access),
    (lambda callee: atomic_parts(callee) is not None, _Translator._atomic),
    (writes_through_pointer, _Translator._two_results),
)


def _binary(word: str) -> Callable[[str, str, str, list[str], str], list[str]]:
    return lambda new, type_text, old, operands, _: [f"{new} = {word} {type_text} {old}, {operands[0]}"]


def _step(word: str) -> Callable[[str, str, str, list[str], str], list[str]]:
    return lambda new, type_text, old, _operands, _sign: [f"{new} = {word} {type_text} {old}, 1"]


def _extreme(comparison: str) -> Callable[[str, str, str, list[str], str], list[str]]:
    return lambda new, type_text, old, operands, sign: [
        f"{new}.c = icmp {sign}{comparison} {type_text} {old}, {operands[0]}",
        f"{new} = select i1 {new}.c, {type_text} {old}, {type_text} {operands[0]}",
    ]


_ATOMICS: dict[str, Callable[[str, str, str, list[str], str], list[str]]] = {
    "add": _binary("add"),
    "sub": _binary("sub"),
    "and": _binary("and"),
    "or": _binary("or"),
    "xor": _binary("xor"),
    "inc": _step("add"),
    "dec": _step("sub"),
    "min": _extreme("lt"),
    "max": _extreme("gt"),
    "xchg": lambda new, type_text, _old, operands, _: [f"{new} = select i1 true, {type_text} {operands[0]}, {type_text} {operands[0]}"],
    "cmpxchg": lambda new, type_text, old, operands, _: [
        f"{new}.c = icmp eq {type_text} {old}, {operands[0]}",
        f"{new} = select i1 {new}.c, {type_text} {operands[1]}, {type_text} {old}",
    ],
}  # fmt: skip


def _constant(type_text: str, value: int) -> str:
    width, scalar = vector_parts(type_text)
    return str(value) if width == 1 else f"<{', '.join([f'{scalar} {value}'] * width)}>"


def readable_name(callee: str) -> str:
    """A built-in's own name out of its mangled one."""
    match = re.match(r"_Z(\d+)", callee)
    return callee[match.end() : match.end() + int(match[1])] if match else callee


def _join(ir: str, builtins: str) -> str:
    """Put two modules' texts together; declarations that both have are kept once."""
    declared = set(re.findall(r"^(declare .*)$", ir, flags=re.MULTILINE))
    names = {re.search(r"@([-\w$.]+)\(", line)[1] for line in declared}  # pyright: ignore[reportOptionalSubscript]
    kept = [
        line
        for line in builtins.splitlines()
        if not (line.startswith("declare ") and re.search(r"@([-\w$.]+)\(", line)[1] in names)  # pyright: ignore[reportOptionalSubscript]
    ]
    return "\n".join((ir, *kept))
