"""Math functions of OpenCL C 1.2, section 6.12.2, with the edge cases of section 7.5.1.

Functions whose name libm shares call it; its float forms in glibc and macOS keep the bounds of section 7.4. The rest is
written out here.
"""

from __future__ import annotations

import math

from perfvec.program.builtins.builtin import Builtin, Emit
from perfvec.program.builtins.cl_types import DOUBLE, FLOAT, FLOATS, HALF, INT, UINT, ULONG, USHORT
from perfvec.program.builtins.convert import round_to_odd
from perfvec.program.builtins.emit import Emitter, Value
from perfvec.program.builtins.half import half_nextafter

_SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}
_BELOW_ONE = {16: 1 - 2.0**-11, 32: 1 - 2.0**-24, 64: 1 - 2.0**-53}


def _libm(name: str) -> Emit:
    return lambda emitter, *arguments: emitter.libm(name, *arguments)


def _intrinsic(name: str) -> Emit:
    return lambda emitter, *arguments: emitter.intrinsic(name, *arguments)


def in_double(emit: Emit) -> Emit:
    """Compute a float function in double and round once."""

    def emit_in_double(emitter: Emitter, *arguments: Value) -> Value:
        scalar = arguments[0].scalar
        wide = [a.to(DOUBLE) if a.scalar.kind == "float" else a for a in arguments]
        result = emit(emitter, *wide)
        assert isinstance(result, Value)
        return result.to(scalar)

    return emit_in_double


def _over_pi(name: str) -> Emit:
    return in_double(lambda emitter, *arguments: emitter.libm(name, *arguments) / math.pi)


def _exp10(emitter: Emitter, x: Value) -> Value:
    return emitter.libm("pow", x.same(10.0), x)


def _rsqrt(emitter: Emitter, x: Value) -> Value:
    return 1.0 / emitter.intrinsic("sqrt", x)


def _cbrt(emitter: Emitter, x: Value) -> Value:
    root = emitter.libm("cbrt", x)
    if x.scalar != DOUBLE:
        return root
    # glibc before 2.41 errs by 3.7 ulp, OpenCL allows 2: one step of Newton's method.
    square = root * root
    square_error = emitter.intrinsic("fma", root, root, -square)
    error = emitter.intrinsic("fma", square, root, -x) + square_error * root
    better = root - error / (square * 3.0)
    return emitter.where(root.less_or_greater(0.0) & ~root.is_inf(), better, root)


def _quarter_turns(emitter: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """Split |x| half turns: the angle left over in -0.25..0.25 half turns, in radians, and quarter turns modulo 4."""
    magnitude = x.magnitude()
    quarters = emitter.intrinsic("rint", magnitude * 2.0)
    rest = magnitude - quarters * 0.5
    turns = quarters - emitter.intrinsic("floor", quarters * 0.25) * 4.0
    return rest * math.pi, turns.to(INT), rest.eq(0.0)


def _negate_if(condition: Value, x: Value) -> Value:
    return condition.emitter.where(condition, -x, x)


def _sign_of(x: Value) -> Value:
    """Whether the sign bit of a float is set."""
    return x.bits().signed().lt(0)


def _sinpi(emitter: Emitter, x: Value) -> Value:
    angle, quarters, _ = _quarter_turns(emitter, x)
    odd = (quarters & 1).ne(0)
    wave = emitter.where(odd, emitter.libm("cos", angle), emitter.libm("sin", angle))
    # Adding 0 makes the zero of a negated sine positive: sinpi(n) has the sign of n.
    return _negate_if(_sign_of(x), _negate_if(quarters.gt(1), wave) + 0.0)


def _cospi(emitter: Emitter, x: Value) -> Value:
    angle, quarters, _ = _quarter_turns(emitter, x)
    odd = (quarters & 1).ne(0)
    wave = emitter.where(odd, emitter.libm("sin", angle), emitter.libm("cos", angle))
    return _negate_if(quarters.eq(1) | quarters.eq(2), wave) + 0.0


def _tanpi(emitter: Emitter, x: Value) -> Value:
    angle, quarters, is_exact = _quarter_turns(emitter, x)
    odd = (quarters & 1).ne(0)
    tangent = emitter.libm("tan", angle)
    inner = emitter.where(odd, -1.0 / tangent, tangent)
    # At whole quarters: 0, infinity, -0, -infinity.
    exact = _negate_if(quarters.gt(1), emitter.where(odd, x.same(math.inf), 0.0))
    return _negate_if(_sign_of(x), emitter.where(is_exact, exact, inner))


def _sincos(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    return emitter.libm("sin", x), emitter.libm("cos", x)


def _fract(below_one: float | None = None) -> Emit:
    def emit(emitter: Emitter, x: Value) -> tuple[Value, Value]:
        floor = emitter.intrinsic("floor", x)
        limit = below_one or _BELOW_ONE[x.scalar.bits]
        difference = x - floor
        inside = emitter.where(difference.gt(limit), x.same(limit), difference)
        zero = x.same(0.0).with_sign_of(x)
        return emitter.where(x.eq(0.0) | x.is_inf(), zero, inside), floor

    return emit


def _modf(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    whole = emitter.intrinsic("trunc", x)
    rest = emitter.where(x.is_inf(), x.same(0.0), x - whole)
    return rest.with_sign_of(x), whole


def _frexp(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    scalar = x.scalar
    where = emitter.where
    is_subnormal = x.magnitude().lt(_SMALLEST_NORMAL[scalar.bits])
    bits = where(is_subnormal, x * 2.0**64, x).bits()
    field = (1 << (scalar.bits - 1 - scalar.mantissa_bits)) - 1
    exponent = ((bits >> scalar.mantissa_bits) & field).to(INT) - (scalar.exponent_bias - 1)
    exponent = where(is_subnormal, exponent - 64, exponent)
    half = (scalar.exponent_bias - 1) << scalar.mantissa_bits
    kept = ((1 << scalar.bits) - 1) ^ (field << scalar.mantissa_bits)
    mantissa = ((bits & kept) | half).bitcast(scalar)
    has_none = x.eq(0.0) | x.is_inf() | x.is_nan()
    return where(has_none, x, mantissa), where(has_none, exponent.same(0), exponent)


def _ilogb(emitter: Emitter, x: Value) -> Value:
    _, exponent = _frexp(emitter, x)
    special = emitter.where(x.eq(0.0), exponent.same(INT.low), INT.high)  # FP_ILOGB0, FP_ILOGBNAN of the front end
    return emitter.where(x.eq(0.0) | x.is_inf() | x.is_nan(), special, exponent - 1)


def _logb(emitter: Emitter, x: Value) -> Value:
    _, exponent = _frexp(emitter, x)
    special = emitter.where(x.eq(0.0), x.same(-math.inf), x * x)  # infinity and NaN stay
    return emitter.where(x.eq(0.0) | x.is_inf() | x.is_nan(), special, (exponent - 1).to(x.scalar))


def _ldexp(emitter: Emitter, x: Value, exponent: Value) -> Value:
    return emitter.libm("ldexp", x, exponent)


def _nan(_: Emitter, code: Value) -> Value:
    scalar = {16: HALF, 32: FLOAT, 64: DOUBLE}[code.scalar.bits]
    quiet = ((1 << (scalar.bits - 1 - scalar.mantissa_bits)) - 1) << scalar.mantissa_bits
    quiet |= 1 << (scalar.mantissa_bits - 1)
    return ((code & ((1 << scalar.mantissa_bits) - 1)) | quiet).bitcast(scalar)


def _nextafter(emitter: Emitter, x: Value, y: Value) -> Value:
    return half_nextafter(emitter, x, y) if x.scalar == HALF else emitter.libm("nextafter", x, y)


def _fma(emitter: Emitter, a: Value, b: Value, c: Value) -> Value:
    return emitter.intrinsic("fma", a, b, c)


def _half_fma(emitter: Emitter, a: Value, b: Value, c: Value) -> Value:
    # The double result is exact enough to find every tie between two halves; rounding to odd keeps that in float.
    return round_to_odd(_fma(emitter, a.to(DOUBLE), b.to(DOUBLE), c.to(DOUBLE)))


def _fdim(emitter: Emitter, x: Value, y: Value) -> Value:
    return emitter.where(x.le(y), x.same(0.0), x - y)


def _extreme_magnitude(order: str, extreme: str) -> Emit:
    def emit(emitter: Emitter, x: Value, y: Value) -> Value:
        first, second = x.magnitude(), y.magnitude()
        is_first = first.gt(second) if order == "gt" else first.lt(second)
        is_second = second.gt(first) if order == "gt" else second.lt(first)
        return emitter.where(is_first, x, emitter.where(is_second, y, emitter.intrinsic(extreme, x, y)))

    return emit


def _pow_in_double(emitter: Emitter, x: Value, y: Value) -> Value:
    return emitter.libm("pow", x.to(DOUBLE), y.to(DOUBLE)).to(x.scalar)


def _powr(emitter: Emitter, x: Value, y: Value) -> Value:
    power = emitter.libm("pow", x.magnitude(), y)
    one_to_infinity = x.eq(1.0) & y.is_inf()
    zero_or_infinity_to_zero = y.eq(0.0) & (x.eq(0.0) | x.is_inf())
    is_undefined = x.lt(0.0) | x.unordered(y) | one_to_infinity | zero_or_infinity_to_zero
    return emitter.where(is_undefined, x.same(math.nan), power)


def _rootn(emitter: Emitter, x: Value, n: Value) -> Value:
    where, scalar = emitter.where, x.scalar
    x = x.to(DOUBLE)
    degree = n.to(DOUBLE).magnitude()
    # x = m 2^e with e = q n + r: the root is 2^q (m 2^r)^(1/n). The power's base stays near 1, where the error of 1/n
    # does no harm. Above degree 1024 it does none at any base.
    mantissa, exponent = _frexp(emitter, x.magnitude())
    is_split = degree.lt(1024.0) & degree.gt(0.0)
    divisor = where(is_split, degree, 1.0)
    whole = where(is_split, emitter.intrinsic("floor", exponent.to(DOUBLE) / divisor), 0.0)
    rest = exponent - (whole * divisor).to(INT)
    base = where(is_split, emitter.libm("ldexp", mantissa, rest), x.magnitude())
    root = emitter.libm("ldexp", emitter.libm("pow", base, 1.0 / degree), whole.to(INT))
    root = where(n.lt(0), 1.0 / root, root)
    even = where(x.lt(0.0), x.same(math.nan), root)
    signed = where((n & 1).ne(0), root.with_sign_of(x), even)
    return where(n.eq(0), x.same(math.nan), signed).to(scalar)


def _remquo(emitter: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """Remainder, and the low seven bits of the quotient with its sign; libm promises only three."""
    dividend, divisor = x.magnitude(), y.magnitude()
    # Where 128 y overflows, x < 128 y, and fmod by infinity leaves x.
    modulo = emitter.libm("fmod", dividend, divisor * 128.0)
    quotient = modulo / divisor - emitter.libm("remainder", dividend, divisor) / divisor
    bits = emitter.intrinsic("rint", quotient).to(INT) & 127
    return emitter.libm("remainder", x, y), _negate_if((x.bits() ^ y.bits()).signed().lt(0), bits)


def _lgamma_r(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    # The sign of gamma below 0 alternates between whole numbers; 0 at the poles.
    floor = emitter.intrinsic("floor", x)
    half = floor * 0.5
    is_odd = half.ne(emitter.intrinsic("floor", half))
    sign = emitter.where(x.lt(0.0) & is_odd, emitter.constant(-1, x.type.of(INT)), 1)
    return emitter.libm("lgamma", x), emitter.where(x.le(0.0) & x.eq(floor), sign.same(0), sign)


def _math(pattern: str, emit: Emit, opcode_class: str = "special", emit_half: Emit | None = None) -> Builtin:
    return Builtin(opcode_class=opcode_class, pattern=pattern, scalars=FLOATS, emit=emit, emit_half=emit_half)


_LIBM_UNARY = (
    "acos acosh asin asinh atan atanh cos cosh erf erfc exp exp2 expm1 lgamma log log10 log1p log2 sin sinh tan tanh "
    "tgamma"
)
_UNARY: dict[str, Emit] = {
    **{name: _libm(name) for name in _LIBM_UNARY.split()},
    "acospi": _over_pi("acos"),
    "asinpi": _over_pi("asin"),
    "atanpi": _over_pi("atan"),
    "cbrt": _cbrt,
    "cospi": in_double(_cospi),
    "exp10": in_double(_exp10),
    "sinpi": in_double(_sinpi),
    "tanpi": in_double(_tanpi),
}
_DEVICE_UNARY: dict[str, Emit] = {
    **{name: _UNARY[name] for name in ["cos", "exp", "exp2", "exp10", "log", "log2", "log10", "sin", "tan"]},
    "recip": lambda _, x: 1.0 / x,
    "rsqrt": _rsqrt,
    "sqrt": _intrinsic("sqrt"),
}
_DEVICE_BINARY: dict[str, Emit] = {"divide": lambda _, x, y: x / y, "powr": _powr}

MATH: dict[str, Builtin] = {
    **{name: _math("T", emit) for name, emit in _UNARY.items()},
    **{
        f"{precision}_{name}": _math("T" * (1 + (name in _DEVICE_BINARY)), emit, "native")
        for precision in ("half", "native")
        for name, emit in (_DEVICE_UNARY | _DEVICE_BINARY).items()
    },
    **{name: _math("T", _intrinsic(name), "convert") for name in ("ceil", "floor", "rint", "round", "trunc")},
    "atan2": _math("TT", _libm("atan2")),
    "atan2pi": _math("TT", _over_pi("atan2")),
    "copysign": _math("TT", _intrinsic("copysign"), "logic"),
    "fabs": _math("T", _intrinsic("fabs"), "add"),
    "fdim": _math("TT", _fdim, "add"),
    "fma": _math("TTT", _fma, "fma", emit_half=_half_fma),
    "fmax": _math("Tt", _intrinsic("maxnum"), "add"),
    "fmin": _math("Tt", _intrinsic("minnum"), "add"),
    "fmod": _math("TT", _libm("fmod"), "div"),
    "fract": _math("TP", _fract(), "convert", emit_half=_fract(_BELOW_ONE[16])),
    "frexp": _math("TI", _frexp, "logic"),
    "hypot": _math("TT", _libm("hypot"), "sqrt"),
    "ilogb": _math("T", _ilogb, "logic"),
    "ldexp": _math("Ti", _ldexp, "logic"),
    "lgamma_r": _math("TI", _lgamma_r),
    "logb": _math("T", _logb, "logic"),
    "mad": _math("TTT", _fma, "fma", emit_half=_half_fma),
    "maxmag": _math("TT", _extreme_magnitude("gt", "maxnum"), "add"),
    "minmag": _math("TT", _extreme_magnitude("lt", "minnum"), "add"),
    "modf": _math("TP", _modf, "convert"),
    "nan": Builtin(opcode_class="logic", pattern="T", scalars=(USHORT, UINT, ULONG), emit=_nan, in_half_bits=True),
    "nextafter": Builtin(opcode_class="logic", pattern="TT", scalars=FLOATS, emit=_nextafter, in_half_bits=True),
    "pow": _math("TT", _libm("pow")),
    "pown": _math("Ti", _pow_in_double),
    "powr": _math("TT", _powr),
    "remainder": _math("TT", _libm("remainder"), "div"),
    "remquo": _math("TTI", _remquo, "div"),
    "rootn": _math("Ti", _rootn),
    "rsqrt": _math("T", _rsqrt, "sqrt"),
    "sincos": _math("TP", _sincos),
    "sqrt": _math("T", _intrinsic("sqrt"), "sqrt"),
}
