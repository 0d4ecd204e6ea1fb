"""Memories that a kernel's pointers reach, and its accesses to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias, final

from perfvec.corpus.analysis.polynomial import Polynomial
from perfvec.program.ir import GlobalVariable

ARGUMENT, VALUE, LOCAL, TABLE, PRIVATE, UNKNOWN = "argument", "value", "local", "table", "private", "unknown"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryObject:
    """A memory.

    Attributes:
        kind: "argument" (a buffer, image or local memory passed in), "value" (a struct passed by value), "local",
            "table" or "private" (declared by the program), "unknown".
        name: The variable.
        index: Place among the kernel's arguments; -1 for what the program declares.
        num_bytes: Its size; 0 where the launch gives it.
        lowest: Least integer that a table holds.
        highest: Greatest integer that a table holds.
    """

    kind: str
    name: str
    index: int = -1
    num_bytes: int = 0
    lowest: int = 0
    highest: int = 0

    @property
    def is_fixed(self) -> bool:
        """Whether the program fixes its size."""
        return self.kind in (LOCAL, TABLE, PRIVATE)


NOWHERE = MemoryObject(kind=UNKNOWN, name="")

# Where a pointer may point: memories, each with the offset in bytes.
Pointer: TypeAlias = tuple[tuple[MemoryObject, Polynomial], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAccess:
    """One access of an instruction to one memory.

    Attributes:
        memory: What is accessed.
        offset: Its first byte.
        num_bytes: Bytes that a work-item moves.
        is_write: Whether it writes.
        block: Label of the block that it is in.
        line: Source line; 0 where unknown.
        scalar: LLVM type of what is moved, without its vector width; "" where unknown.
    """

    memory: MemoryObject
    offset: Polynomial
    num_bytes: int
    is_write: bool
    block: str
    line: int
    scalar: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TexelAccess:
    """One read or write of an image.

    Attributes:
        index: The image's place among the arguments.
        coordinates: One polynomial an axis, layers last.
        is_exact: Whether coordinates outside are an error: no sampler takes care of them.
        is_integer: Whether coordinates are integers.
        channel: "f", "i" or "ui".
        block: Label of the block that it is in.
        line: Source line; 0 where unknown.
    """

    index: int
    coordinates: tuple[Polynomial, ...]
    is_exact: bool
    is_integer: bool
    channel: str
    block: str
    line: int


def table_range(variable: GlobalVariable) -> tuple[int, int]:
    """Least and greatest integer of a program-scope variable's contents."""
    numbers = [int(text) for text in re.findall(r"\bi\d+ (-?\d+)", variable.initialiser)]
    string = re.search(r'c"(.*)"', variable.initialiser)
    if string or "i" not in variable.type:
        return 0, 255
    return min((0, *numbers)), max((0, *numbers))
