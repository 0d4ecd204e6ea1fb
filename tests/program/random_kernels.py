"""Random small kernels that end, touch only their own memory, and whose result OpenCL C defines to the last bit.

What C leaves undefined is kept out: signed arithmetic is done on unsigned operands, divisors are small and odd, floats
become integers by saturation. A kernel is made of bodies, which know nothing of each other: PoCL takes longer to begin
with a kernel than with a body more. In each, a work-item writes its variables into a row of the buffer `out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

WIDTHS = (1, 2, 3, 4, 8, 16)
LANES = 64
GROUP = 32
ROW_BYTES = 2048
INPUT_BYTES = 4096
NUMBER = "@"  # in names: the number of the body
DIGITS = "0123456789abcdef"
ROUNDINGS = ("", "_rte", "_rtz", "_rtp", "_rtn")
Draw = Callable[[st.SearchStrategy], object]


@dataclass(frozen=True)
class Type:
    """A scalar or vector type of OpenCL C."""

    base: str
    width: int = 1

    @property
    def name(self) -> str:
        return self.base if self.width == 1 else f"{self.base}{self.width}"

    @property
    def bits(self) -> int:
        return {"char": 8, "short": 16, "int": 32, "long": 64, "float": 32, "double": 64}[self.base.removeprefix("u")]

    @property
    def is_float(self) -> bool:
        return self.base in ("float", "double")

    @property
    def is_signed(self) -> bool:
        return not self.base.startswith("u")

    @property
    def stored_bytes(self) -> int:
        return self.bits // 8 * self.width

    def wide(self, width: int) -> Type:
        return Type(self.base, width)

    def of(self, base: str) -> Type:
        return Type(base, self.width)

    @property
    def unsigned(self) -> Type:
        return self if not self.is_signed else self.of(f"u{self.base}")

    @property
    def signed(self) -> Type:
        """The signed integer of the same size: what comparisons of vectors give."""
        return self.of({8: "char", 16: "short", 32: "int", 64: "long"}[self.bits])


INT = Type("int")
INTEGERS = tuple(sign + base for base in ("char", "short", "int", "long") for sign in ("", "u"))
FLOATS = ("float", "double")
# Built-ins of integers with operands of one type; `{n}` is an operand.
PLAIN = (
    "mul_hi({0}, {1})", "mad_hi({0}, {1}, {2})", "mad_sat({0}, {1}, {2})", "rotate({0}, {1})", "clz({0})",
    "popcount({0})", "hadd({0}, {1})", "rhadd({0}, {1})", "add_sat({0}, {1})", "sub_sat({0}, {1})", "min({0}, {1})",
    "max({0}, {1})", "bitselect({0}, {1}, {2})", "clamp({0}, min({1}, {2}), max({1}, {2}))",
)  # fmt: skip
ROUNDED = ("({0} + {1})", "({0} - {1})", "({0} * {1})", "fma({0}, {1}, {2})", "fabs({0})", "(-{0})", "trunc({0})",
           "floor({0})", "ceil({0})", "rint({0})", "round({0})", "copysign({0}, {1})")  # fmt: skip


@dataclass
class Kernel:
    """A kernel in the making."""

    draw: Draw
    bases: Sequence[str]
    lines: list[str] = field(default_factory=list)
    variables: dict[str, Type] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    num_names: int = 0
    depth: int = 0

    # ---- choices ------------------------------------------------------------------------------------------------

    def number(self, low: int, high: int) -> int:
        return int(str(self.draw(st.integers(low, high))))

    def one_of(self, options: Sequence):
        return self.draw(st.sampled_from(options))

    def type(self) -> Type:
        return Type(self.one_of(self.bases), self.one_of(WIDTHS))

    def name(self, prefix: str = "v") -> str:
        self.num_names += 1
        return f"{prefix}{self.num_names}{NUMBER}"

    def line(self, text: str) -> None:
        self.lines.append("  " * (self.depth + 1) + text)

    # ---- expressions --------------------------------------------------------------------------------------------

    def expression(self, type_: Type, budget: int) -> str:
        if budget <= 0:
            return self.leaf(type_)
        makers = [self.leaf, self.converted, self.conditional, self.vector_of, self.swizzled]
        makers += [self.rounded, self.rounded, self.from_bits] if type_.is_float else [
            self.arithmetic, self.arithmetic, self.built_in, self.built_in, self.shift, self.division, self.compared,
            self.with_other_sign, self.upsampled, self.counted,
        ]  # fmt: skip
        make = self.one_of(makers)
        return self.leaf(type_) if make == self.leaf else make(type_, budget)

    def leaf(self, type_: Type, budget: int = 0) -> str:
        found = [name for name, kind in self.variables.items() if kind == type_]
        if found and self.number(0, 3):
            return self.one_of(found)
        if type_.is_float:
            literal = self.one_of(
                ("0.0", "-0.0", "1.0", "-2.5", "3.0e38", "1.0e-40", "16777217.0", "0.333", "INFINITY")
            )
            suffix = "f" if type_.base == "float" and literal != "INFINITY" else ""
            return f"({type_.name})({literal}{suffix})"
        if self.number(0, 2):
            index = self.number(0, 15)
            place = f"(i + {index})"
            if type_.width == 1:
                return f"((global const {type_.name} *)in)[{place}]"
            # Both forms of a load: by elements, and aligned where the buffer holds whole vectors.
            if type_.width == 3 or self.number(0, 1):
                return f"vload{type_.width}({place} & 31, (global const {type_.base} *)in)"
            return f"((global const {type_.name} *)in)[{place} & 31]"
        value = self.one_of(
            (0, 1, 2, 3, 7, 8, 31, 32, 63, 100, 127, 128, 255, 256, 32767, 65535, 0x7FFFFFFF, 0xFFFFFFFF)
        )
        return f"({type_.name}){value}u" if type_.width == 1 else f"({type_.name})(({type_.base}){value}u)"

    def _on_unsigned(self, type_: Type, text: str, *operands: str) -> str:
        """Arithmetic that wraps: on unsigned operands at least as wide as an int."""
        if type_.width == 1:
            wide = "ulong" if type_.bits == 64 else "uint"
            return f"({type_.name})({text.format(*(f'({wide}){x}' for x in operands))})"
        unsigned = type_.unsigned.name
        return f"as_{type_.name}({text.format(*(f'as_{unsigned}({x})' for x in operands))})"

    def arithmetic(self, type_: Type, budget: int) -> str:
        form = self.one_of(
            (
                "({0} + {1})",
                "({0} - {1})",
                "({0} * {1})",
                "({0} & {1})",
                "({0} | {1})",
                "({0} ^ {1})",
                "(~{0})",
                "(-{0})",
            )
        )
        return self._on_unsigned(type_, form, *(self.expression(type_, budget - 2) for _ in range(2)))

    def shift(self, type_: Type, budget: int) -> str:
        value, amount = self.expression(type_, budget - 2), self.expression(type_.unsigned, budget - 2)
        if self.number(0, 1):
            if type_.width == 1:
                return f"({type_.name})({value} >> {amount})"
            return f"({value} >> as_{type_.name}({amount}))"
        return self._on_unsigned(type_, "({0} << {1})", value, amount)

    def division(self, type_: Type, budget: int) -> str:
        operator = self.one_of("/%")
        value, divisor = self.expression(type_, budget - 2), self.expression(type_, budget - 3)
        return f"({type_.name})({value} {operator} (({divisor} & ({type_.name})6) | ({type_.name})1))"

    def compared(self, type_: Type, budget: int) -> str:
        operator = self.one_of(("<", "<=", ">", ">=", "==", "!=", "&&", "||"))
        left, right = self._pair(type_, budget)
        result = f"({left} {operator} {right})"
        if type_.width == 1:
            return f"({type_.name}){result}"
        return f"as_{type_.name}({result})"

    def _pair(self, type_: Type, budget: int) -> tuple[str, str]:
        return self.expression(type_, budget - 2), self.expression(type_, budget - 2)

    def built_in(self, type_: Type, budget: int) -> str:
        form = self.one_of(PLAIN)
        return form.format(*(self.expression(type_, budget - 2) for _ in range(3)))

    def counted(self, type_: Type, budget: int) -> str:
        """abs and abs_diff, which return the unsigned type; mul24 and mad24 on operands that they are defined for."""
        if type_.bits == 32 and self.number(0, 1):
            cut = "({0} >> 8)" if type_.is_signed else "({0} & 0xffffffu)"
            a, b = (cut.format(self.expression(type_, budget - 3)) for _ in range(2))
            if type_.is_signed:
                a, b = f"({a} >> 8)", f"({b} >> 9)"  # the product must fit
            return f"mul24({a}, {b})"
        if type_.is_signed:
            return f"as_{type_.name}({self.counted_unsigned(type_.unsigned, budget)})"
        return self.counted_unsigned(type_, budget)

    def counted_unsigned(self, type_: Type, budget: int) -> str:
        source = self.one_of((type_, type_.signed))
        form = self.one_of(("abs({0})", "abs_diff({0}, {1})"))
        return form.format(*self._pair(source, budget))

    def with_other_sign(self, type_: Type, budget: int) -> str:
        other = type_.unsigned if type_.is_signed else type_.signed
        return f"as_{type_.name}({self.expression(other, budget - 1)})"

    def upsampled(self, type_: Type, budget: int) -> str:
        if type_.bits == 8:
            return self.leaf(type_)
        half = {"short": "char", "int": "short", "long": "int"}[type_.base.removeprefix("u")]
        high = type_.of(half if type_.is_signed else f"u{half}")
        return f"upsample({self.expression(high, budget - 3)}, {self.expression(type_.of(f'u{half}'), budget - 3)})"

    def converted(self, type_: Type, budget: int) -> str:
        source = type_.of(self.one_of(self.bases))
        must_saturate = source.is_float and not type_.is_float
        saturation = "_sat" if must_saturate or (not type_.is_float and self.number(0, 1)) else ""
        rounding = self.one_of(ROUNDINGS) if source.is_float != type_.is_float or type_.is_float else ""
        return f"convert_{type_.name}{saturation}{rounding}({self.expression(source, budget - 1)})"

    def from_bits(self, type_: Type, budget: int) -> str:
        return f"as_{type_.name}({self.expression(type_.signed, budget - 1)})"

    def rounded(self, type_: Type, budget: int) -> str:
        return self.one_of(ROUNDED).format(*(self.expression(type_, budget - 2) for _ in range(3)))

    def condition(self, type_: Type, budget: int) -> str:
        """Something to decide on: as many elements of as many bits as the type."""
        compared = type_ if type_.is_float and self.number(0, 1) else type_.signed
        left, right = self._pair(compared, budget)
        return f"({left} {self.one_of(('<', '>=', '==', '!='))} {right})"

    def conditional(self, type_: Type, budget: int) -> str:
        left, right = self._pair(type_, budget)
        if self.number(0, 1):
            cast = f"({type_.name})" if type_.width == 1 else ""
            return f"{cast}({self.condition(type_, budget - 2)} ? {left} : {right})"
        chooser = self.expression(self.one_of((type_.signed, type_.signed.unsigned)), budget - 2)
        return f"select({left}, {right}, {chooser})"

    def vector_of(self, type_: Type, budget: int) -> str:
        if type_.width == 1:
            return self.swizzled(type_, budget)
        parts, left = [], type_.width
        while left:
            width = self.one_of([w for w in WIDTHS if w <= left and w < type_.width and w <= 8])
            if len(parts) >= 3:
                width = max(w for w in WIDTHS if w <= left and w < type_.width)
            parts.append(self.expression(type_.wide(width), budget - 3))
            left -= width
        return f"({type_.name})({', '.join(parts)})"

    def swizzled(self, type_: Type, budget: int) -> str:
        source = type_.wide(self.one_of(WIDTHS[1:]))
        value = self.expression(source, budget - 2)
        value = f"({value})"
        if source.width == 2 * type_.width and self.number(0, 1):
            return f"{value}.{self.one_of(('lo', 'hi', 'even', 'odd'))}"
        if source.width == type_.width * 2 or source.width == 3 or type_.width == 3 or self.number(0, 1):
            return f"{value}.s{''.join(self.one_of(DIGITS[: source.width]) for _ in range(type_.width))}"
        if type_.width == 1:
            return f"{value}.{self.one_of('xyzw'[: min(source.width, 4)])}"
        mask = type_.unsigned if not type_.is_float else type_.signed.unsigned
        return f"shuffle({value}, {self.expression(mask, budget - 3)})"

    # ---- statements ---------------------------------------------------------------------------------------------

    def statement(self, budget: int, *, is_uniform: bool) -> None:
        makers = [self.declare, self.declare, self.assign, self.assign, self.assign_elements]
        if budget > 0:
            makers += [self.branch, self.loop, self.choose, self.through_array]
        if is_uniform:
            makers += [self.exchange]
        self.one_of(makers)(budget)

    def block(self, budget: int) -> None:
        before, self.depth = dict(self.variables), self.depth + 1
        for _ in range(self.number(1, 3)):
            self.statement(budget - 1, is_uniform=False)
        self.variables, self.depth = before, self.depth - 1

    def declare(self, budget: int) -> None:
        type_ = self.type()
        value, name = self.expression(type_, 7), self.name()
        self.line(f"{type_.name} {name} = {value};")
        self.variables[name] = type_

    def _target(self) -> str | None:
        return self.one_of([name for name in self.variables if name not in self.constants] or [None])

    def assign(self, budget: int) -> None:
        name = self._target()
        if name is None:
            return self.declare(budget)
        return self.line(f"{name} = {self.expression(self.variables[name], 7)};")

    def assign_elements(self, budget: int) -> None:
        name = self._target()
        if name is None or self.variables[name].width == 1:
            return self.assign(budget)
        type_ = self.variables[name]
        width = self.one_of([w for w in WIDTHS if w <= type_.width])
        digits = self.draw(st.permutations(DIGITS[: type_.width]))
        assert isinstance(digits, list)
        return self.line(f"{name}.s{''.join(digits[:width])} = {self.expression(type_.wide(width), 5)};")

    def branch(self, budget: int) -> None:
        self.line(f"if ({self.condition(Type(self.one_of(self.bases)), 3)}) {{")
        self.block(budget)
        if self.number(0, 1):
            self.line("} else {")
            self.block(budget)
        self.line("}")

    def loop(self, budget: int) -> None:
        counter, end = self.name("n"), self.expression(INT, 3)
        self.line(f"for (int {counter} = 0; {counter} < (({end}) & 7); {counter}++) {{")
        self.variables[counter] = INT
        self.constants.add(counter)
        before = len(self.lines)
        self.block(budget)
        if self.number(0, 2) == 0:
            self.lines.insert(before, f"    if ({self.condition(INT, 2)}) {self.one_of(('break', 'continue'))};")
        del self.variables[counter]
        self.line("}")

    def choose(self, budget: int) -> None:
        self.line(f"switch (({self.expression(INT, 3)}) & 3) {{")
        for label in ("case 0:", "case 1: case 3:", "default:"):
            self.line(f"{label} {{")
            self.block(budget)
            self.line("}" + self.one_of((" break;", "")))
        self.line("}")

    def through_array(self, budget: int) -> None:
        type_, name, index = self.type(), self.name("a"), self.name("x")
        self.line(f"{type_.name} {name}[4] = {{{', '.join(self.expression(type_, 2) for _ in range(4))}}};")
        self.line(f"int {index} = ({self.expression(INT, 3)}) & 3;")
        self.line(f"{name}[{index}] = {self.expression(type_, 3)};")
        got = self.name()
        self.line(f"{type_.name} {got} = {name}[({self.expression(INT, 2)}) & 3];")
        self.variables[got] = type_

    def exchange(self, budget: int) -> None:
        type_, shared, got = self.type(), self.name("t"), self.name()
        self.line(f"local {type_.name} {shared}[{GROUP}];")
        self.line(f"{shared}[l] = {self.expression(type_, 4)};")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);")
        self.line(f"{type_.name} {got} = {shared}[(l + {self.number(0, 31)}) & {GROUP - 1}];")
        self.line("barrier(CLK_LOCAL_MEM_FENCE);")
        self.variables[got] = type_

    # ---- the whole ----------------------------------------------------------------------------------------------

    def body(self) -> str:
        for _ in range(self.number(2, 6)):
            self.statement(2, is_uniform=True)
        at = 0
        for name, type_ in self.variables.items():
            at = -(-at // 8) * 8
            if name not in ("i", "l") and at + type_.stored_bytes <= ROW_BYTES:
                self.store(name, type_, at)
                at += type_.stored_bytes
        return "\n".join(
            (f"  global uchar *row{NUMBER} = out + ({NUMBER} * {LANES} + i) * {ROW_BYTES};", *self.lines, "")
        )

    def store(self, name: str, type_: Type, at: int) -> None:
        if type_.is_float:  # one not-a-number is like another
            bits = type_.signed
            nan = f"({bits.name})-1"
            name = (
                f"select(as_{bits.name}({name}), {nan}, ({bits.name})(isnan({name})))"
                if type_ != Type("double")
                else (f"(isnan({name}) ? -1l : as_long({name}))")
            )
            type_ = bits
        place = f"(global {type_.base} *)(row{NUMBER} + {at})"
        if type_.width == 1:
            self.line(f"*{place} = {name};")
        else:
            self.line(f"vstore{type_.width}({name}, 0, {place});")


def _body(draw: Draw, bases: Sequence[str]) -> str:
    return Kernel(draw=draw, bases=bases, variables={"i": INT, "l": INT}, constants={"i", "l"}).body()


@st.composite
def integer_bodies(draw: Draw) -> str:
    """Bodies over all integer types."""
    return _body(draw, INTEGERS)


@st.composite
def float_bodies(draw: Draw) -> str:
    """Bodies over floats, with the operations that IEEE 754 rounds correctly, and integers to convert from and to."""
    return _body(draw, (*FLOATS, *FLOATS, "int", "uint", "long", "uchar", "short"))


def kernel_of(bodies: Sequence[str]) -> str:
    """The source of a kernel `k` of these bodies."""
    text = "".join(body.replace(NUMBER, str(number)) for number, body in enumerate(bodies))
    return (
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF\n"
        "kernel void k(global const uchar *in, global uchar *out) {\n"
        f"  int i = get_global_id(0), l = get_local_id(0);\n{text}}}\n"
    )
