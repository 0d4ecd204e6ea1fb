"""A small writer of LLVM IR: values with operators, each of which appends one instruction.

Every operation works on scalars and, element by element, on vectors; only calls of libm take vectors apart.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias, final

from perfvec.program.builtins.cl_types import BOOL, SIGNED, UNSIGNED, Scalar, ValueType

# LLVM 15 (llvmlite 0.44) to 22 read this spelling of memory(none).
PURE = "nounwind willreturn readnone"

Operand: TypeAlias = "Value | int | float"


@final
class Emitter:
    """The body of one function under construction, and what that function needs declared."""

    __slots__ = ("_counter", "declarations", "lines")

    def __init__(self, declarations: dict[str, str]) -> None:
        """Begin an empty body.

        Args:
            declarations: Where to add the declarations, by name; shared between the functions of a module.
        """
        self.lines: list[str] = []
        self.declarations = declarations
        self._counter = 0

    def instruction(self, text: str, type_: ValueType) -> Value:
        """Append an instruction and name its result."""
        name = f"%v{self._counter}"
        self._counter += 1
        self.lines.append(f"  {name} = {text}")
        return Value(self, type_, name)

    def constant(self, number: int | float, type_: ValueType) -> Value:
        """A constant, in all elements of a vector."""
        text = _float_text(number, type_.scalar) if type_.scalar.kind == "float" else str(int(number))
        if type_.width > 1:
            text = f"<{', '.join([f'{type_.scalar.llvm} {text}'] * type_.width)}>"
        return Value(self, type_, text)

    def vector(self, elements: Sequence[Value]) -> Value:
        """A vector of scalars; the scalar itself where there is only one."""
        if len(elements) == 1:
            return elements[0]
        type_ = elements[0].type.wide(len(elements))
        result = Value(self, type_, "poison")
        for index, element in enumerate(elements):
            result = self.instruction(f"insertelement {result.typed}, {element.typed}, i32 {index}", type_)
        return result

    def call(self, name: str, result: ValueType, *arguments: Value, flag: str = "") -> Value:
        """Call a function whose value depends on its arguments alone.

        Args:
            name: LLVM intrinsic or libm function.
            result: Its type.
            arguments: What to pass.
            flag: A last, immediate argument with its type, such as `i1 false`.
        """
        types = [argument.type.llvm for argument in arguments] + flag.split()[:1]
        values = [argument.typed for argument in arguments] + [flag] * bool(flag)
        attributes = "" if name.startswith("llvm.") else f" {PURE}"
        self.declarations.setdefault(name, f"declare {result.llvm} @{name}({', '.join(types)}){attributes}")
        return self.instruction(f"call {result.llvm} @{name}({', '.join(values)})", result)

    def intrinsic(self, name: str, *arguments: Value, flag: str = "") -> Value:
        """Call an LLVM intrinsic that is overloaded on the type of its first argument."""
        type_ = arguments[0].type
        return self.call(f"llvm.{name}.{type_.suffix}", type_, *arguments, flag=flag)

    def libm(self, name: str, *arguments: Value) -> Value:
        """Call a libm function for each element, in the form for the first argument's type: `sinf` or `sin`.

        Only functions of numbers to a float; all of them are in glibc 2.31 and macOS.
        """
        scalar = arguments[0].type.scalar
        symbol = f"{name}f" if scalar.bits == 32 else name
        elements = [
            self.call(symbol, ValueType(scalar), *(argument.element(index) for argument in arguments))
            for index in range(arguments[0].type.width)
        ]
        return self.vector(elements)

    def pick(self, vector: Value, places: Sequence[Value]) -> Value:
        """The elements of a vector at places known only at run time.

        Through memory: LLVM 22 for AArch64 crashes on `extractelement` of bytes at such places.
        """
        element, slot = vector.type.wide(1), f"%slot{self._counter}"
        self.lines += [f"  {slot} = alloca {vector.type.llvm}", f"  store {vector.typed}, ptr {slot}"]
        picked = []
        for place in places:
            address = f"{slot}.{len(picked)}"
            self.lines.append(f"  {address} = getelementptr inbounds {element.llvm}, ptr {slot}, {place.typed}")
            picked.append(self.instruction(f"load {element.llvm}, ptr {address}", element))
        return self.vector(picked)

    def where(self, condition: Value, yes: Value, no: Operand) -> Value:
        """Choose by truth value, element by element."""
        return self.instruction(f"select {condition.typed}, {yes.typed}, {yes.same(no).typed}", yes.type)


@final
class Value:
    """An SSA value or a constant. Operators follow the signedness of the OpenCL type."""

    __slots__ = ("emitter", "ref", "type")

    def __init__(self, emitter: Emitter, type_: ValueType, ref: str) -> None:
        """Name a value.

        Args:
            emitter: Where instructions on it go.
            type_: Its OpenCL type.
            ref: Its name or constant in the IR.
        """
        self.emitter = emitter
        self.type = type_
        self.ref = ref

    @property
    def typed(self) -> str:
        """Type and name, as an instruction wants its operand."""
        return f"{self.type.llvm} {self.ref}"

    @property
    def scalar(self) -> Scalar:
        """Scalar of its type."""
        return self.type.scalar

    def same(self, other: Operand) -> Value:
        """The other operand: a number becomes a constant of this type."""
        return other if isinstance(other, Value) else self.emitter.constant(other, self.type)

    def _binary(self, integer: str, floating: str, other: Operand) -> Value:
        word = floating if self.scalar.kind == "float" else integer
        return self.emitter.instruction(f"{word} {self.typed}, {self.same(other).ref}", self.type)

    def __add__(self, other: Operand) -> Value:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("sub", "fsub", other)

    def __rsub__(self, other: int | float) -> Value:
        return self.same(other) - self

    def __mul__(self, other: Operand) -> Value:
        return self._binary("mul", "fmul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("", "fdiv", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.same(other) / self

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", "", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", "", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", "", other)

    def __invert__(self) -> Value:
        return self ^ (1 if self.scalar == BOOL else -1)

    def __neg__(self) -> Value:
        if self.scalar.kind == "int":
            return 0 - self
        return self.emitter.instruction(f"fneg {self.typed}", self.type)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary("shl", "", other)

    def __rshift__(self, other: Operand) -> Value:
        return self._binary("ashr" if self.scalar.is_signed else "lshr", "", other)

    def _compare(self, integer: str, floating: str, other: Operand) -> Value:
        if self.scalar.kind == "float":
            word = f"fcmp {floating}"
        elif integer in {"eq", "ne"}:
            word = f"icmp {integer}"
        else:
            word = f"icmp {'s' if self.scalar.is_signed else 'u'}{integer}"
        return self.emitter.instruction(f"{word} {self.typed}, {self.same(other).ref}", self.type.of(BOOL))

    def lt(self, other: Operand) -> Value:
        """Less; false for NaN."""
        return self._compare("lt", "olt", other)

    def le(self, other: Operand) -> Value:
        """Less or equal; false for NaN."""
        return self._compare("le", "ole", other)

    def gt(self, other: Operand) -> Value:
        """Greater; false for NaN."""
        return self._compare("gt", "ogt", other)

    def ge(self, other: Operand) -> Value:
        """Greater or equal; false for NaN."""
        return self._compare("ge", "oge", other)

    def eq(self, other: Operand) -> Value:
        """Equal; false for NaN."""
        return self._compare("eq", "oeq", other)

    def ne(self, other: Operand) -> Value:
        """Not equal; true for NaN."""
        return self._compare("ne", "une", other)

    def less_or_greater(self, other: Operand) -> Value:
        """Less or greater; false for NaN. For floats."""
        return self._compare("", "one", other)

    def unordered(self, other: Operand) -> Value:
        """Whether one of two floats is NaN."""
        return self._compare("", "uno", other)

    def is_nan(self) -> Value:
        """Whether a float is NaN."""
        return self.unordered(self)

    def is_inf(self) -> Value:
        """Whether a float is infinite."""
        return self.magnitude().eq(float("inf"))

    def magnitude(self) -> Value:
        """A float without its sign."""
        return self.emitter.intrinsic("fabs", self)

    def with_sign_of(self, other: Operand) -> Value:
        """A float with another float's sign."""
        return self.emitter.intrinsic("copysign", self, self.same(other))

    def relabel(self, scalar: Scalar) -> Value:
        """The same bits as an integer of the other signedness; no instruction."""
        return Value(self.emitter, self.type.of(scalar), self.ref)

    def unsigned(self) -> Value:
        """The same integer bits, unsigned."""
        return self.relabel(UNSIGNED[self.scalar.bits])

    def signed(self) -> Value:
        """The same integer bits, signed."""
        return self.relabel(SIGNED[self.scalar.bits])

    def bits(self) -> Value:
        """A float's bits as an unsigned integer; an integer as it is."""
        return self.bitcast(UNSIGNED[self.scalar.bits]) if self.scalar.kind == "float" else self

    def bitcast(self, scalar: Scalar) -> Value:
        """The same bits as another scalar of the same size."""
        if scalar.llvm == self.scalar.llvm:
            return self.relabel(scalar)
        type_ = self.type.of(scalar)
        return self.emitter.instruction(f"bitcast {self.typed} to {type_.llvm}", type_)

    def to(self, scalar: Scalar) -> Value:
        """The nearest value of another scalar type, ties to even. Integers wrap; float to integer saturates, NaN is 0.

        `half` does not pass here: some hosts lack the instruction (see `half.py`).
        """
        word = _conversion(self.scalar, scalar)
        type_ = self.type.of(scalar)
        if not word:
            return self.relabel(scalar)
        if word.startswith("llvm."):
            return self.emitter.call(f"{word}.{type_.suffix}.{self.type.suffix}", type_, self)
        return self.emitter.instruction(f"{word} {self.typed} to {type_.llvm}", type_)

    def element(self, index: int) -> Value:
        """One element of a vector; a scalar is its own only element."""
        if self.type.width == 1:
            return self
        return self.emitter.instruction(f"extractelement {self.typed}, i32 {index}", self.type.wide(1))

    def elements(self) -> list[Value]:
        """All elements."""
        return [self.element(index) for index in range(self.type.width)]

    def shuffled(self, indices: Sequence[int], other: Value | None = None) -> Value:
        """The elements at constant places of this vector, or of this and another one joined."""
        mask = ", ".join(f"i32 {index}" for index in indices)
        second = other.typed if other else f"{self.type.llvm} poison"
        type_ = self.type.wide(len(indices))
        return self.emitter.instruction(f"shufflevector {self.typed}, {second}, <{len(indices)} x i32> <{mask}>", type_)

    def broadcast(self, width: int) -> Value:
        """A scalar in all elements of a vector."""
        if width == self.type.width:
            return self
        type_ = self.type.wide(width)
        first = self.emitter.instruction(f"insertelement {type_.llvm} poison, {self.typed}, i32 0", type_)
        return first.shuffled([0] * width)


def _conversion(source: Scalar, target: Scalar) -> str:
    """The instruction or intrinsic that converts; empty where the bits stay."""
    if source.kind == "int" and target.kind == "int":
        if target.bits == source.bits:
            return ""
        return "trunc" if target.bits < source.bits else "sext" if source.is_signed else "zext"
    if source.kind == "int":
        return "sitofp" if source.is_signed else "uitofp"
    if target.kind == "int":
        return "llvm.fptosi.sat" if target.is_signed else "llvm.fptoui.sat"
    if target.bits == source.bits:
        return ""
    return "fptrunc" if target.bits < source.bits else "fpext"


def _float_text(number: float, scalar: Scalar) -> str:
    """A constant in LLVM's hexadecimal form, rounded to the type: the bits of the double that equals it."""
    if scalar.bits == 16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
    if scalar.bits == 32:
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
