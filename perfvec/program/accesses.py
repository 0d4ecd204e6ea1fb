"""Which memory an instruction touches: the one place that knows, for code generation, bounds checks and features."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

from perfvec.errors import UnsupportedError
from perfvec.program.ir import Instruction, call_arguments, pointer_space, read_type, split_top, vector_parts

PRIVATE, GLOBAL, CONSTANT, LOCAL, GENERIC = range(5)
_SCALAR_BYTES = {"half": 2, "float": 4, "double": 8, "bfloat": 2}
_POINTER_BYTES = 8
_ATOMIC = re.compile(r"^_Z\d+(atomic|atom)_(add|sub|xchg|inc|dec|cmpxchg|min|max|and|or|xor)PU3AS(\d)V([a-z])")
_VECTOR_ACCESS = re.compile(r"^_Z\d+v(load|store)(a?)(_half)?(\d*)(?:_(rt[ezpn]))?(?=m|D|[a-z])")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorAccess:
    """What the name of a vload or vstore says; `rounding` is `rte`, `rtz`, `rtp` or `rtn`."""

    is_store: bool
    is_aligned: bool
    is_half: bool
    width: int
    rounding: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One memory access of an instruction, as each lane makes it.

    Attributes:
        pointer: Text of the pointer value, or of the base pointer where `offset` is given.
        pointer_type: Its LLVM type.
        space: Address space number.
        num_bytes: Bytes that a lane moves.
        align: Alignment that the address must have, in bytes.
        is_write: Whether the access writes.
        offset: Text of an i64 element offset (vload and vstore), "" if none.
        offset_bytes: Bytes of one step of `offset`.
    """

    pointer: str
    pointer_type: str
    space: int
    num_bytes: int
    align: int
    is_write: bool
    offset: str = ""
    offset_bytes: int = 0


@final
class TypeSizes:
    """Sizes and alignments of LLVM types under the SPIR-64 data layout."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types

    def bytes_of(self, type_text: str) -> int:
        """Bytes that a value takes in memory, padding included; a 3-vector takes as much as a 4-vector."""
        size, align = self._layout(type_text)
        return -(-size // align) * align

    def stored_bytes(self, type_text: str) -> int:
        """Bytes that a load or store of the type moves: without tail padding."""
        width, scalar = vector_parts(type_text)
        bits = re.fullmatch(r"i(\d+)", scalar)
        return (width * int(bits[1]) + 7) // 8 if bits else width * self._layout(scalar)[0]

    def align_of(self, type_text: str) -> int:
        """Natural alignment in bytes."""
        return self._layout(type_text)[1]

    def _layout(self, type_text: str) -> tuple[int, int]:
        if type_text in _SCALAR_BYTES:
            return _SCALAR_BYTES[type_text], _SCALAR_BYTES[type_text]
        if type_text.startswith("ptr"):
            return _POINTER_BYTES, _POINTER_BYTES
        if match := re.fullmatch(r"i(\d+)", type_text):
            size = 1 << max(0, (int(match[1]) + 7) // 8 - 1).bit_length()
            return size, size
        if match := re.fullmatch(r"\[(\d+) x (.+)\]", type_text):
            return int(match[1]) * self.bytes_of(match[2]), self.align_of(match[2])
        if match := re.fullmatch(r"<(\d+) x (.+)>", type_text):
            size = self.stored_bytes(type_text)
            return size, 1 << (size - 1).bit_length()
        if type_text in self._types:
            return self._layout(self._types[type_text])
        if type_text.startswith(("{", "<{")):
            return self._struct_layout(type_text)
        raise UnsupportedError(f"a value of LLVM type {type_text} has no size here; the tracer does not execute it")

    def _struct_layout(self, type_text: str) -> tuple[int, int]:
        is_packed = type_text.startswith("<")
        size, widest = 0, 1
        for member in split_top(type_text.strip("<>")[1:-1]):
            align = 1 if is_packed else self.align_of(member)
            size = -(-size // align) * align + self.bytes_of(member)
            widest = max(widest, align)
        return size, widest


def accesses_of(instruction: Instruction, sizes: TypeSizes) -> tuple[Access, ...]:
    """The memory accesses that an instruction makes, in order; empty for most."""
    if instruction.opcode in ("load", "store"):
        return (_load_or_store(instruction, sizes),)
    if instruction.opcode != "call":
        if instruction.opcode in ("atomicrmw", "cmpxchg"):
            raise UnsupportedError(
                f"line {instruction.line}: {instruction.opcode} comes from OpenCL C 2.0; use atomic_*"
            )
        return ()
    for matches, make in _CALLS:
        if matches(instruction.callee):
            return make(instruction, sizes)
    return ()


def _load_or_store(instruction: Instruction, sizes: TypeSizes) -> Access:
    text = re.sub(r"^(load|store) (atomic |volatile )*", "", instruction.text)
    parts = split_top(text)
    pointer_type, position = read_type(parts[1])
    return Access(
        pointer=parts[1][position:].strip(),
        pointer_type=pointer_type,
        space=pointer_space(pointer_type),
        num_bytes=sizes.stored_bytes(instruction.type),
        align=instruction.align,
        is_write=instruction.opcode == "store",
    )


def _block_copy(instruction: Instruction, sizes: TypeSizes) -> tuple[Access, ...]:
    del sizes
    arguments = call_arguments(instruction)
    is_set = instruction.callee.startswith("llvm.memset")
    length = arguments[2][1]
    if not length.isdigit():
        raise UnsupportedError(f"line {instruction.line}: a block copy of a length that is not constant")
    if length == "0":
        return ()
    pointers = arguments[:1] if is_set else [arguments[1], arguments[0]]
    return tuple(
        Access(
            pointer=value,
            pointer_type=type_text,
            space=pointer_space(type_text),
            num_bytes=int(length),
            align=1,
            is_write=is_set or number == 1,
        )
        for number, (type_text, value) in enumerate(pointers)
    )


def _atomic(instruction: Instruction, sizes: TypeSizes) -> tuple[Access, ...]:
    type_text, value = call_arguments(instruction)[0]
    size = sizes.stored_bytes(instruction.type)
    return (
        Access(
            pointer=value,
            pointer_type=type_text,
            space=pointer_space(type_text),
            num_bytes=size,
            align=size,
            is_write=True,
        ),
    )


def _vector_access(instruction: Instruction, sizes: TypeSizes) -> tuple[Access, ...]:
    parts = vector_access_parts(instruction.callee)
    assert parts is not None
    arguments = call_arguments(instruction)
    (_, offset), (pointer_type, pointer) = arguments[-2:]
    value_type = arguments[0][0] if parts.is_store else instruction.type
    element = 2 if parts.is_half else sizes.stored_bytes(vector_parts(value_type)[1])
    step = element * (4 if parts.is_aligned and parts.width == 3 else parts.width)
    return (
        Access(
            pointer=pointer,
            pointer_type=pointer_type,
            space=pointer_space(pointer_type),
            num_bytes=element * parts.width,
            align=step if parts.is_aligned else element,
            is_write=parts.is_store,
            offset=offset,
            offset_bytes=step,
        ),
    )


def _through_pointer(instruction: Instruction, sizes: TypeSizes) -> tuple[Access, ...]:
    """fract, modf and the like, which return a second value through their last argument."""
    type_text, value = call_arguments(instruction)[-1]
    width, scalar = vector_parts(instruction.type)
    if re.search(r"(frexp|lgamma_r|remquo)", instruction.callee):
        scalar = "i32"
    size = width * sizes.stored_bytes(scalar)
    return (
        Access(
            pointer=value,
            pointer_type=type_text,
            space=pointer_space(type_text),
            num_bytes=size,
            align=sizes.stored_bytes(scalar),
            is_write=True,
        ),
    )


def atomic_parts(callee: str) -> tuple[str, str] | None:
    """Operation and element letter of an atomic built-in, such as `add` and `i`; None for any other."""
    match = _ATOMIC.match(callee)
    return (match[2], match[4]) if match else None


def vector_access_parts(callee: str) -> VectorAccess | None:
    """The parts of the name of a vload or vstore; None for any other built-in."""
    match = _VECTOR_ACCESS.match(callee)
    if match is None:
        return None
    return VectorAccess(
        is_store=match[1] == "store",
        is_aligned=bool(match[2]),
        is_half=bool(match[3]),
        width=int(match[4] or 1),
        rounding=match[5] or "rte",
    )


def writes_through_pointer(callee: str) -> bool:
    """Whether a maths built-in returns a second value through a pointer."""
    return bool(re.match(r"_Z\d+(fract|frexp|lgamma_r|modf|remquo|sincos)[^P]*P", callee))


_CALLS: tuple[tuple[Callable[[str], bool], Callable[[Instruction, TypeSizes], tuple[Access, ...]]], ...] = (
    (lambda callee: callee.startswith(("llvm.memcpy", "llvm.memmove", "llvm.memset")), _block_copy),
    (lambda callee: atomic_parts(callee) is not None, _atomic),
    (lambda callee: vector_access_parts(callee) is not None, _vector_access),
    (writes_through_pointer, _through_pointer),
)
