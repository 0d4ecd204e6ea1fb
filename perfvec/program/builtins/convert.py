"""Explicit conversions of OpenCL C 1.2, section 6.2.3: `convert_uchar4_sat_rte`.

Without `_sat` a float outside the integer type is implementation-defined; here it saturates, and NaN becomes 0.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial

from perfvec.program.builtins.builtin import Builtin
from perfvec.program.builtins.cl_types import (
    BOOL,
    DOUBLE,
    FLOAT,
    FLOATS,
    HALF,
    INTEGERS,
    SCALARS_BY_NAME,
    Scalar,
)
from perfvec.program.builtins.emit import Emitter, Value
from perfvec.program.builtins.half import Rounding, float_to_half, half_to_float

_CONVERSION = re.compile(
    r"convert_(u?char|u?short|u?int|u?long|half|float|double)(2|3|4|8|16)?(_sat)?(?:_(rte|rtz|rtp|rtn))?"
)
_ROUNDINGS: dict[str | None, Rounding | None] = {None: None, "rte": "rte", "rtz": "rtz", "rtp": "rtp", "rtn": "rtn"}
# Rounding to a whole number, before a conversion that truncates. rint rounds ties to even in the default mode.
_TO_WHOLE = {"rte": "rint", "rtz": "", "rtp": "ceil", "rtn": "floor"}


@lru_cache(maxsize=1024)
def conversion(base: str) -> Builtin | None:
    """The conversion of that name; None if it is no conversion.

    Args:
        base: Demangled base name: `convert_uchar4_sat_rte`.
    """
    match = _CONVERSION.fullmatch(base)
    if match is None:
        return None
    target = SCALARS_BY_NAME[match[1]]
    if match[3] and target.kind == "float":
        return None
    return Builtin(
        opcode_class="convert",
        pattern="v",
        scalars=(*INTEGERS, *FLOATS, BOOL),
        emit=partial(_convert, target=target, is_saturated=bool(match[3]), rounding=_ROUNDINGS[match[4]]),
        in_half_bits=True,
        widths=(int(match[2] or 1),),
    )


def _convert(_: Emitter, value: Value, *, target: Scalar, is_saturated: bool, rounding: Rounding | None) -> Value:
    if value.scalar == target:
        return value
    if value.scalar == HALF:
        value = half_to_float(value)
    if target == HALF:
        return float_to_half(_to_float_for_half(value), rounding or "rte")
    if target.kind == "int":
        if value.scalar.kind == "float":
            return _whole(value, rounding or "rtz").to(target)
        return (_saturated(value, target) if is_saturated else value).to(target)
    if rounding in (None, "rte"):
        return value.to(target)
    if value.scalar.kind == "float":
        return _narrow_directed(value, target, rounding) if target.bits < value.scalar.bits else value.to(target)
    return _integer_directed(value, target, rounding)


def _to_float_for_half(value: Value) -> Value:
    """A float that rounds to the same half as the value does."""
    if value.scalar == FLOAT:
        return value
    if value.scalar == DOUBLE:
        return round_to_odd(value)
    truncated, is_inexact = _truncated_magnitude(value, FLOAT)
    odd = (truncated.bits() | is_inexact.to(truncated.bits().scalar)).bitcast(FLOAT)
    return _with_sign(odd, value)


def _whole(value: Value, rounding: Rounding) -> Value:
    name = _TO_WHOLE[rounding]
    return value.emitter.intrinsic(name, value) if name else value


def _saturated(value: Value, target: Scalar) -> Value:
    """Clamp an integer to what the target holds; still in the value's own type."""
    kind = "s" if value.scalar.is_signed else "u"
    if value.scalar.low < target.low:
        value = value.emitter.intrinsic(f"{kind}max", value, value.same(target.low))
    if value.scalar.high > target.high:
        value = value.emitter.intrinsic(f"{kind}min", value, value.same(target.high))
    return value


def _narrow_directed(value: Value, target: Scalar, rounding: Rounding) -> Value:
    """Double to float, rounded up, down or towards 0."""
    nearest = value.to(target)
    back = nearest.to(value.scalar)
    bits, where = nearest.bits(), value.emitter.where
    is_outwards = _is_outwards(value, rounding)
    up = where(is_outwards & back.magnitude().lt(value.magnitude()), bits.same(1), 0)
    down = where(~is_outwards & back.magnitude().gt(value.magnitude()), bits.same(1), 0)
    return (bits + up - down).bitcast(target)


def _is_outwards(value: Value, rounding: Rounding) -> Value:
    """Whether rounding goes away from 0 for this value."""
    is_negative = value.bits().signed().lt(0) if value.scalar.kind == "float" else value.lt(0)
    constant = value.emitter.constant(0, value.type.of(BOOL))
    return {"rtz": constant, "rtp": ~is_negative, "rtn": is_negative}[rounding]


def round_to_odd(value: Value) -> Value:
    """Double to float, towards 0 with the last bit set where inexact: rounding once more from there is exact."""
    truncated = _narrow_directed(value, FLOAT, "rtz")
    is_inexact = truncated.to(DOUBLE).less_or_greater(value)
    bits = truncated.bits()
    return (bits | is_inexact.to(bits.scalar)).bitcast(FLOAT)


def _truncated_magnitude(value: Value, target: Scalar) -> tuple[Value, Value]:
    """An integer's magnitude as a float, rounded towards 0, and whether something was lost."""
    emitter = value.emitter
    magnitude = value
    if value.scalar.is_signed:
        magnitude = emitter.intrinsic("abs", value, flag="i1 false").unsigned()
    bits, kept = magnitude.scalar.bits, target.mantissa_bits + 1
    if bits <= kept:
        return magnitude.to(target), magnitude.ne(magnitude)
    leading = emitter.intrinsic("ctlz", magnitude, flag="i1 false")
    dropped = emitter.intrinsic("usub.sat", magnitude.same(bits - kept), leading)
    lost = magnitude & ((magnitude.same(1) << dropped) - 1)
    return (magnitude ^ lost).to(target), lost.ne(0)


def _with_sign(magnitude: Value, value: Value) -> Value:
    return value.emitter.where(value.lt(0), -magnitude, magnitude)


def _integer_directed(value: Value, target: Scalar, rounding: Rounding) -> Value:
    """Integer to float, rounded up, down or towards 0."""
    truncated, is_inexact = _truncated_magnitude(value, target)
    bits = truncated.bits()
    step = (is_inexact & _is_outwards(value, rounding)).to(bits.scalar)
    return _with_sign((bits + step).bitcast(target), value)
