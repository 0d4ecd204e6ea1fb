"""Values of generated kernels: their OpenCL types, and the operations that a kernel may apply to them.

Every operation has a result that OpenCL C defines for every operand: signed arithmetic cannot overflow, no divisor is
zero, no shift reaches the width. Floats stay finite as long as their operands do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from perfvec.corpus.draw import Draw

NUMPY_NAMES = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "long": "int64", "ulong": "uint64", "half": "float16", "float": "float32", "double": "float64",
}  # fmt: skip
_BITS = {"half": 16, "float": 32, "double": 64, "char": 8, "short": 16, "int": 32, "long": 64}
_SUFFIX = {"float": "f", "double": "", "int": "", "uint": "u", "long": "l", "ulong": "ul"}
# What a buffer of a type holds.
_CONTENTS = {
    "float": ("uniform(0,1)", "uniform(-1,1)", "normal(0,1)"),
    "double": ("uniform(0,1)", "uniform(-1,1)", "normal(0,1)"),
    "half": ("uniform(0,1)", "uniform(-1,1)"),
    "uchar": ("uniform(0,255)",),
    "char": ("uniform(-128,127)",),
    "ushort": ("uniform(0,65535)",),
    "short": ("uniform(-1000,1000)",),
    "int": ("uniform(-100000,100000)", "uniform(0,1000)"),
    "uint": ("uniform(0,4294967295)", "uniform(0,1000)"),
    "long": ("uniform(-1000000000000,1000000000000)",),
    "ulong": ("uniform(0,1000000000000)",),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """An OpenCL scalar or vector type."""

    scalar: str
    width: int = 1

    @property
    def name(self) -> str:
        """As OpenCL C writes it."""
        return self.scalar if self.width == 1 else f"{self.scalar}{self.width}"

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.scalar in ("half", "float", "double")

    @property
    def bits(self) -> int:
        """Width of a scalar."""
        return _BITS[self.scalar.removeprefix("u")]

    @property
    def num_bytes(self) -> int:
        """Bytes in memory; a 3-vector takes the place of a 4-vector."""
        return self.bits // 8 * (4 if self.width == 3 else self.width)

    @property
    def element(self) -> str:
        """The same as `perfvec.arguments` writes it."""
        name = NUMPY_NAMES[self.scalar]
        return name if self.width == 1 else f"{name}x{self.width}"

    def literal(self, value: float | str) -> str:
        """A constant, or an expression of the scalar type, as a value of this type."""
        if isinstance(value, str):
            text = value
        else:
            text = repr(float(value)) if self.is_float else str(int(value))
            text += _SUFFIX[self.scalar]
        return text if self.width == 1 else f"({self.name})({text})"

    def of_int(self, text: str) -> str:
        """An int expression as a value of this type."""
        return self.literal(f"({self.scalar})({text})")

    def first(self, text: str) -> str:
        """The first scalar of a variable."""
        return text if self.width == 1 else f"{text}.s0"

    def small_int(self, text: str) -> str:
        """A variable of this type as an int from 0 to 1023."""
        if self.is_float:
            limit = ValueType(scalar=self.scalar).literal(1000.0)
            return f"(int)fmin(fabs({self.first(text)}), {limit})"
        return f"(int)({self.first(text)} & 1023)"

    def contents(self, draw: Draw) -> str:
        """An initialiser of a buffer of such values."""
        return draw.choice(_CONTENTS[self.scalar])


STORAGE = {  # value type: types that its buffers may have, by weight
    "float": {"float": 70, "half": 12, "uchar": 6, "short": 6, "int": 6},
    "double": {"double": 80, "float": 20},
    "int": {"int": 80, "short": 10, "char": 10},
    "uint": {"uint": 80, "uchar": 10, "ushort": 10},
    "long": {"long": 75, "int": 25},
    "ulong": {"ulong": 75, "uint": 25},
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation.

    Attributes:
        name: For weights.
        template: OpenCL C; `{a}` accumulator, `{b}` other operand, `{c}` constant, `{s}` shift, `{m}` mask.
        cost: About how many simple operations it takes.
    """

    name: str
    template: str
    cost: int = 1


def _table(*rows: tuple[str, str, int]) -> tuple[Operation, ...]:
    return tuple(Operation(name=name, template=template, cost=cost) for name, template, cost in rows)


_FLOAT_PLAIN = _table(
    ("fma", "fma({a}, {c}, {b})", 2),
    ("mad", "{a} * {c} + {b}", 2),
    ("mad_square", "{a} * {c} + {b} * {b}", 3),
    ("sub", "{b} - {a} * {c}", 2),
    ("add", "{a} + {b}", 1),
    ("fmax", "fmax({a} * {c}, {b})", 2),
    ("fmin", "fmin({a} + {c}, {b})", 2),
    ("distance", "fabs({a} - {b}) * {c}", 3),
    ("mix", "mix({a}, {b}, {c})", 3),
    ("clamp", "clamp({a} + {b}, -{c}, {c})", 3),
    ("select", "{a} < {b} ? {a} + {c} : {b}", 3),
    ("floor", "{a} - floor({a}) + {b} * {c}", 4),
    ("horner", "fma(fma({b}, {c}, {a}), {c}, {c})", 4),
)
_FLOAT_SPECIAL = _table(
    ("sqrt", "sqrt(fabs({a}) + {c}) * {b}", 6),
    ("rsqrt", "rsqrt(fabs({a}) + {c}) + {b}", 6),
    ("exp", "exp(-fabs({a})) + {b}", 10),
    ("exp2", "exp2(-fabs({a} * {c})) + {b}", 8),
    ("log", "log(fabs({a}) + {c}) * {c} + {b}", 12),
    ("sin", "sin({a}) * {c} + {b}", 16),
    ("cos", "cos({a} + {b})", 16),
    ("atan", "atan({a}) + {b} * {c}", 16),
    ("tanh", "tanh({a} * {c} + {b})", 18),
    ("pow", "pow(fabs({a}) + {c}, {c}) + {b}", 24),
    ("hypot", "hypot({a} * {c}, {b})", 14),
    ("erf", "erf({a}) + {b}", 24),
)
_FLOAT_NATIVE = _table(
    ("native_exp", "native_exp(-fabs({a})) + {b}", 4),
    ("native_sin", "native_sin({a}) * {c} + {b}", 4),
    ("native_log2", "native_log2(fabs({a}) + {c}) * {c} + {b}", 5),
    ("native_rsqrt", "native_rsqrt(fabs({a}) + {c}) + {b}", 4),
    ("native_recip", "native_recip(fabs({a}) + {c}) * {b}", 4),
    ("native_divide", "native_divide({b}, fabs({a}) + {c})", 4),
)
_FLOAT_DIVISION = _table(
    ("div", "{b} / (fabs({a}) + {c})", 8),
    ("div_by", "({a} + {c}) / (fabs({b}) + {c})", 9),
    ("fmod", "fmod({a} + {b}, {c})", 14),
)
_SHARED_INTEGER = _table(
    ("xor", "{a} ^ {b} ^ ({a} & {m})", 3),
    ("rotate", "rotate({a}, {s}) ^ {b}", 3),
    ("max", "max({a}, {b}) ^ {c}", 2),
    ("min", "min({a} ^ {c}, {b})", 2),
    ("add_sat", "add_sat({a}, {b})", 2),
    ("sub_sat", "sub_sat({a} ^ {c}, {b})", 3),
    ("hadd", "hadd({a}, {b}) ^ {c}", 4),
    ("mul_hi", "mul_hi({a}, {b} ^ {c}) ^ {a}", 4),
    ("xorshift", "{a} ^ ({a} >> {s}) ^ {b}", 3),
    ("popcount", "popcount({a} ^ {b}) ^ ({b} >> {s})", 4),
    ("clz", "clz({a} & {b}) ^ {a} ^ {b}", 4),
    ("bitselect", "bitselect({a}, {b}, {c}) ^ ({a} >> {s})", 4),
    ("select", "{a} < {b} ? {a} ^ {c} : {b}", 3),
)
_UNSIGNED = _table(
    ("lcg", "{a} * {c} + {b}", 2),
    ("add", "{a} + ({b} ^ {c})", 2),
    ("sub", "{b} - {a} * {c}", 2),
    ("shift_add", "({a} << {s}) + ({b} ^ {a})", 3),
    ("square", "{a} * ({a} | {c}) + {b}", 3),
    ("abs_diff", "abs_diff({a}, {b}) + {c}", 3),
)
_SIGNED = _table(
    ("mul", "({a} & {m}) * {c} ^ {b}", 3),
    ("add", "({a} & {m}) + ({b} & {m})", 3),
    ("square", "({a} & {m}) * ({b} & {m}) ^ {a}", 4),
    ("shift", "(({a} & {m}) << {t}) ^ {b}", 3),
)
_INTEGER_DIVISION = _table(
    ("div", "{a} / (({b} & {m}) + {c}) ^ {b}", 22),
    ("mod", "{a} % (({b} & {m}) + {c}) + {m}", 22),
)
_FLAVOURS = ("plain", "special", "native", "division")


def operations(value: ValueType, flavour: str) -> tuple[Operation, ...]:
    """The operations of a flavour on values of a type; the plain ones where the type has none of that flavour."""
    if value.is_float:
        tables = {"special": _FLOAT_SPECIAL, "division": _FLOAT_DIVISION}
        if value.scalar == "float":
            tables["native"] = _FLOAT_NATIVE
        return tables.get(flavour, _FLOAT_PLAIN)
    if flavour == "division":
        return _INTEGER_DIVISION
    return _SHARED_INTEGER + (_UNSIGNED if value.scalar.startswith("u") else _SIGNED)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Operations one after another on an accumulator.

    Attributes:
        templates: OpenCL C with `{a}` and `{b}` left open.
        cost: Simple operations of all on one scalar.
    """

    templates: tuple[str, ...]
    cost: int

    def lines(self, a: str, b: str) -> list[str]:
        """Statements that apply it to accumulator `a` with operand `b`."""
        return [f"{a} = {text.replace('{a}', a).replace('{b}', b)};" for text in self.templates]


def draw_recipe(draw: Draw, value: ValueType, length: int, *, flavour: str = "") -> Recipe:
    """Draw operations on values of a type.

    Args:
        draw: Where from.
        value: Type of accumulator and operand.
        length: How many.
        flavour: "plain", "special", "native" or "division" for the first of them; the others are mostly plain.
    """
    templates, cost = [], 0
    for place in range(length):
        chosen = (flavour or "plain") if place == 0 or draw.chance(25) else "plain"
        operation = draw.choice(operations(value, chosen))
        templates.append(_bind(draw, value, operation.template))
        cost += operation.cost
    return Recipe(templates=tuple(templates), cost=cost)


def _bind(draw: Draw, value: ValueType, template: str) -> str:
    """Put constants in."""
    if value.is_float:
        constant = draw.between(5, 15) / 16
        return template.replace("{c}", value.literal(constant))
    unsigned = ValueType(scalar=value.scalar if value.scalar.startswith("u") else f"u{value.scalar}", width=value.width)
    is_signed = unsigned != value
    constants = {
        "{c}": value.literal(2 * draw.between(1, 15_000) + 1),
        "{m}": value.literal(0x7FFF if is_signed else (1 << draw.between(6, 15)) - 1),
        "{s}": value.literal(draw.between(1, value.bits - 2)),
        "{t}": value.literal(draw.between(1, 15)),
    }
    for name, text in constants.items():
        template = template.replace(name, text)
    return template


def draw_flavour(draw: Draw) -> str:
    """Which operations a stage is made of."""
    return draw.weighted(dict(zip(_FLAVOURS, (60, 16, 10, 14), strict=True)))
