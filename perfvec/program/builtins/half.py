"""`half` to `float` and back in integer arithmetic: not every host has the instruction, and the process may lack the
compiler's helper function.
"""

from __future__ import annotations

from typing import Literal

from perfvec.program.builtins.cl_types import BOOL, FLOAT, HALF, UINT, USHORT
from perfvec.program.builtins.emit import Emitter, Value

Rounding = Literal["rte", "rtz", "rtp", "rtn"]

_INFINITY = 0x7C00
_LARGEST = 0x7BFF
_FLOAT_INFINITY = 0x7F800000
_BIAS_DIFFERENCE = 127 - 15


def half_to_float(value: Value) -> Value:
    """Widen `half`; exact."""
    where = value.emitter.where
    bits = value.bitcast(USHORT).to(UINT)
    sign = (bits & 0x8000) << 16
    magnitude = bits & 0x7FFF
    normal = (magnitude << 13) + (_BIAS_DIFFERENCE << 23)
    special = normal + (_BIAS_DIFFERENCE << 23)  # infinity and NaN have the greatest exponent in both types
    subnormal = (magnitude.to(FLOAT) * 2.0**-24).bits()
    number = where(magnitude.lt(0x0400), subnormal, where(magnitude.lt(_INFINITY), normal, special))
    return (number | sign).bitcast(FLOAT)


def float_to_half(value: Value, rounding: Rounding = "rte") -> Value:
    """Round `float` to `half`."""
    where = value.emitter.where
    bits = value.bits()
    sign = (bits >> 16) & 0x8000
    magnitude = bits & 0x7FFFFFFF
    exponent = magnitude >> 23
    is_normal = exponent.gt(_BIAS_DIFFERENCE)
    # A number below the normals is its significand, shifted until the exponent is that of the subnormals.
    hidden = where(exponent.gt(0), (magnitude & 0x7FFFFF) | 0x800000, magnitude & 0x7FFFFF)
    distance = value.emitter.intrinsic("umin", 126 - exponent, bits.same(31))
    shift = where(is_normal, bits.same(13), distance)
    number = where(is_normal, magnitude - (_BIAS_DIFFERENCE << 23), hidden)
    quotient = number >> shift
    rest = number - (quotient << shift)
    rounded = quotient + _increment(rounding, quotient, rest, shift, sign).to(UINT)
    overflow = where(_rounds_up(rounding, sign), bits.same(_INFINITY), _LARGEST)
    finite = where(quotient.ge(_INFINITY), overflow, rounded)
    nan = ((magnitude >> 13) & 0x3FF) | 0x7E00
    special = where(magnitude.gt(_FLOAT_INFINITY), nan, _INFINITY)
    result = where(magnitude.ge(_FLOAT_INFINITY), special, finite)
    return (result | sign).to(USHORT).bitcast(HALF)


def _rounds_up(rounding: Rounding, sign: Value) -> Value:
    """Whether an overflow becomes infinite."""
    if rounding in {"rte", "rtz"}:
        return sign.emitter.constant(rounding == "rte", sign.type.of(BOOL))
    return sign.eq(0) if rounding == "rtp" else sign.ne(0)


def _increment(rounding: Rounding, quotient: Value, rest: Value, shift: Value, sign: Value) -> Value:
    """Whether the magnitude goes up by one unit in the last place."""
    if rounding == "rte":
        middle = rest.same(1) << (shift - 1)
        return rest.gt(middle) | (rest.eq(middle) & (quotient & 1).ne(0))
    return rest.ne(0) & _rounds_up(rounding, sign)


def half_nextafter(emitter: Emitter, x: Value, y: Value) -> Value:
    """The next `half` after `x` in the direction of `y`."""
    from_float, to_float = half_to_float(x), half_to_float(y)
    bits, target = x.bitcast(USHORT), y.bitcast(USHORT)
    is_outwards = emitter.where(from_float.gt(0.0), to_float.gt(from_float), to_float.lt(from_float))
    step = emitter.where(is_outwards, bits + 1, bits - 1)
    off_zero = (target & 0x8000) | 1
    moved = emitter.where(from_float.eq(0.0), off_zero, step)
    stay = emitter.where(from_float.eq(to_float), target, moved)
    return emitter.where(from_float.unordered(to_float), bits.same(0x7E00), stay).bitcast(HALF)
