"""The memories of a kernel besides its buffers: private arrays, local arrays and tables, each with its addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from perfvec.errors import UnsupportedError
from perfvec.program.accesses import CONSTANT, GLOBAL, LOCAL, TypeSizes
from perfvec.program.driver import TAG_SHIFT
from perfvec.program.ir import GlobalVariable, Instruction, KernelIR, split_top

PRIVATE_ALIGN = 128
# Where a module variable may lie; those in global memory are tables that the optimiser made of a switch.
_TABLES = (CONSTANT, GLOBAL)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory that a kernel can address: a private array, a local array or a table of constants.

    Attributes:
        number: What its addresses are tagged with.
        name: The variable, for messages.
        num_bytes: Its size.
        symbol: The module symbol that holds its data (tables), "" if none.
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
class BoundMemory:
    """A memory with its number, name and size, as messages and the consumer need it."""

    number: int
    name: str
    num_bytes: int
    space: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """All of them. Private memories have the lowest numbers, from 1; number 0 is what a null pointer points to.

    Attributes:
        private: Private arrays and structs passed by value.
        private_offsets: Where each begins in a lane's private bytes.
        private_bytes: Bytes of a lane.
        local: Local arrays that the kernel declares.
        tables: Program-scope constants, with the variable of each.
        addresses: What stands for a variable's name in native code: its address as a constant expression.
    """

    private: tuple[Memory, ...]
    private_offsets: tuple[int, ...]
    private_bytes: int
    local: tuple[Memory, ...]
    tables: tuple[tuple[Memory, GlobalVariable], ...]
    addresses: dict[str, str]

    @property
    def first_free(self) -> int:
        """The number of the first buffer."""
        return 1 + len(self.private) + len(self.local) + len(self.tables)

    def of_parameter(self, name: str) -> Memory:
        """The private memory of a struct passed by value."""
        return next(memory for memory in self.private if self.addresses[name] == _pointer(memory, ""))


def lay_out_memories(kernel: KernelIR, sizes: TypeSizes) -> Memories:
    """Number the memories of a kernel.

    Raises:
        UnsupportedError: A variable is of a kind that OpenCL C 1.2 does not have.
    """
    addresses: dict[str, str] = {}
    private: list[Memory] = []
    offsets: list[int] = []
    offset = 0
    entries = [(i.name, _alloca_bytes(i, sizes)) for b in kernel.blocks for i in b.instructions if i.opcode == "alloca"]
    entries += [(p.name, sizes.bytes_of(p.byval)) for p in kernel.parameters if p.byval]
    for name, num_bytes in entries:
        memory = Memory(number=1 + len(private), name=name[1:].removesuffix(".addr"), num_bytes=num_bytes)
        private.append(memory)
        offsets.append(offset)
        addresses[name] = _pointer(memory, "")
        offset += -(-num_bytes // PRIVATE_ALIGN) * PRIVATE_ALIGN
    local: list[Memory] = []
    tables: list[tuple[Memory, GlobalVariable]] = []
    for number, variable in enumerate(kernel.variables, 1 + len(private)):
        is_table = variable.address_space in _TABLES
        if not is_table and variable.address_space != LOCAL:
            raise UnsupportedError(
                f"kernel {kernel.name!r}: program-scope variable {variable.name} in address space "
                f"{variable.address_space}; OpenCL C 1.2 has constant and local ones"
            )
        memory = Memory(
            number=number,
            name=variable.name[1:].strip('"').split(".")[-1],
            num_bytes=sizes.bytes_of(variable.type),
            symbol=f"pv.table.{number}" if is_table else "",
        )
        addresses[variable.name] = _pointer(memory, f" addrspace({variable.address_space})")
        if is_table:
            tables.append((memory, variable))
        else:
            local.append(memory)
    return Memories(
        private=tuple(private),
        private_offsets=tuple(offsets),
        private_bytes=offset,
        local=tuple(local),
        tables=tuple(tables),
        addresses=addresses,
    )


def _pointer(memory: Memory, space: str) -> str:
    return f"inttoptr (i64 {memory.address} to ptr{space})"


def _alloca_bytes(instruction: Instruction, sizes: TypeSizes) -> int:
    type_text, *more = split_top(instruction.text.removeprefix("alloca "))
    count = re.fullmatch(r"i\d+ (\S+)", more[0]) if more else None
    if count is None:
        return sizes.bytes_of(type_text)
    if not count[1].isdigit():
        raise UnsupportedError(f"line {instruction.line}: an array whose length is not constant")
    return sizes.bytes_of(type_text) * int(count[1])
