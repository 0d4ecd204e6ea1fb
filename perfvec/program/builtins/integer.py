"""Integer functions of OpenCL C 1.2, section 6.12.3, and `ctz` of 2.0."""

from __future__ import annotations

from collections.abc import Callable

from perfvec.program.builtins.builtin import Builtin, Emit
from perfvec.program.builtins.cl_types import INT, INTEGERS, SIGNED, UINT, UNSIGNED, Scalar
from perfvec.program.builtins.emit import Emitter, Value

_BELOW_LONG = tuple(scalar for scalar in INTEGERS if scalar.bits < 64)


def by_sign(name: str) -> Callable[..., Value]:
    """An LLVM intrinsic with a signed and an unsigned form: `smax` and `umax`."""

    def emit(emitter: Emitter, *arguments: Value) -> Value:
        letter = "s" if arguments[0].scalar.is_signed else "u"
        return emitter.intrinsic(f"{letter}{name}", *arguments)

    return emit


def _abs(emitter: Emitter, x: Value) -> Value:
    magnitude = emitter.intrinsic("abs", x, flag="i1 false") if x.scalar.is_signed else x
    return magnitude.unsigned()


def _abs_diff(emitter: Emitter, x: Value, y: Value) -> Value:
    return emitter.where(x.gt(y), x - y, y - x).unsigned()


def _hadd(_: Emitter, x: Value, y: Value) -> Value:
    return (x & y) + ((x ^ y) >> 1)


def _rhadd(_: Emitter, x: Value, y: Value) -> Value:
    return (x | y) - ((x ^ y) >> 1)


def clamp_integer(emitter: Emitter, x: Value, low: Value, high: Value) -> Value:
    """Limit an integer to `low`..`high`."""
    return by_sign("min")(emitter, by_sign("max")(emitter, x, low), high)


def _twice(scalar: Scalar) -> Scalar:
    return (SIGNED if scalar.is_signed else UNSIGNED)[2 * scalar.bits]


def _mul_hi(_: Emitter, x: Value, y: Value) -> Value:
    wide = _twice(x.scalar)
    return ((x.to(wide) * y.to(wide)) >> x.scalar.bits).to(x.scalar)


def _mad_hi(emitter: Emitter, a: Value, b: Value, c: Value) -> Value:
    return _mul_hi(emitter, a, b) + c


def _mad_sat(emitter: Emitter, a: Value, b: Value, c: Value) -> Value:
    wide = _twice(a.scalar)
    exact = a.to(wide) * b.to(wide) + c.to(wide)
    low, high = exact.same(a.scalar.low), exact.same(a.scalar.high)
    return clamp_integer(emitter, exact, low, high).to(a.scalar)


def _upsample(_: Emitter, high: Value, low: Value) -> Value:
    wide = _twice(high.scalar)
    return (high.to(wide) << high.scalar.bits) | low.to(wide)


def _rotate(emitter: Emitter, x: Value, amount: Value) -> Value:
    return emitter.intrinsic("fshl", x, x, amount)


def _integer(pattern: str, opcode_class: str, emit: Emit, scalars: tuple[Scalar, ...] = INTEGERS) -> Builtin:
    return Builtin(opcode_class=opcode_class, pattern=pattern, scalars=scalars, emit=emit)


INTEGER: dict[str, Builtin] = {
    "abs": _integer("T", "add", _abs),
    "abs_diff": _integer("TT", "add", _abs_diff),
    "add_sat": _integer("TT", "add", by_sign("add.sat")),
    "clz": _integer("T", "logic", lambda emitter, x: emitter.intrinsic("ctlz", x, flag="i1 false")),
    "ctz": _integer("T", "logic", lambda emitter, x: emitter.intrinsic("cttz", x, flag="i1 false")),
    "hadd": _integer("TT", "add", _hadd),
    "mad24": _integer("TTT", "fma", lambda _, a, b, c: a * b + c, (INT, UINT)),
    "mad_hi": _integer("TTT", "fma", _mad_hi),
    "mad_sat": _integer("TTT", "fma", _mad_sat),
    "mul24": _integer("TT", "mul", lambda _, a, b: a * b, (INT, UINT)),
    "mul_hi": _integer("TT", "mul", _mul_hi),
    "popcount": _integer("T", "logic", lambda emitter, x: emitter.intrinsic("ctpop", x)),
    "rhadd": _integer("TT", "add", _rhadd),
    "rotate": _integer("TT", "shift", _rotate),
    "sub_sat": _integer("TT", "add", by_sign("sub.sat")),
    "upsample": _integer("Tu", "logic", _upsample, _BELOW_LONG),
}
