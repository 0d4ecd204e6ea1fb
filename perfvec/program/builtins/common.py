"""Common and geometric functions of OpenCL C 1.2, sections 6.12.4 and 6.12.5; `min`, `max` and `clamp` of all types."""

from __future__ import annotations

import math

from perfvec.program.builtins.builtin import Builtin, Emit
from perfvec.program.builtins.cl_types import DOUBLE, FLOAT, FLOATS, INTEGERS
from perfvec.program.builtins.emit import Emitter, Value
from perfvec.program.builtins.integer import by_sign, clamp_integer

# Double vectors whose longest element is outside 2^-500..2^500 are scaled, so that squares neither overflow nor vanish.
_LARGE, _SMALL, _SCALE = 2.0**500, 2.0**-500, 2.0**600


def _min(emitter: Emitter, x: Value, y: Value) -> Value:
    if x.scalar.kind == "int":
        return by_sign("min")(emitter, x, y)
    return emitter.where(y.lt(x), y, x)


def _max(emitter: Emitter, x: Value, y: Value) -> Value:
    if x.scalar.kind == "int":
        return by_sign("max")(emitter, x, y)
    return emitter.where(x.lt(y), y, x)


def _clamp(emitter: Emitter, x: Value, low: Value, high: Value) -> Value:
    if x.scalar.kind == "int":
        return clamp_integer(emitter, x, low, high)
    return emitter.intrinsic("minnum", emitter.intrinsic("maxnum", x, low), high)


def _times(factor: float) -> Emit:
    return lambda _, x: x * factor


def _mix(_: Emitter, x: Value, y: Value, amount: Value) -> Value:
    return x + (y - x) * amount


def _step(emitter: Emitter, edge: Value, x: Value) -> Value:
    return emitter.where(x.lt(edge), x.same(0.0), 1.0)


def _smoothstep(emitter: Emitter, low: Value, high: Value, x: Value) -> Value:
    place = _clamp(emitter, (x - low) / (high - low), x.same(0.0), x.same(1.0))
    return place * place * (3.0 - place * 2.0)


def _sign(emitter: Emitter, x: Value) -> Value:
    one = x.same(1.0).with_sign_of(x)
    return emitter.where(x.is_nan(), x.same(0.0), emitter.where(x.eq(0.0), x, one))


def _dot(_: Emitter, x: Value, y: Value) -> Value:
    return _sum((x * y).elements())


def _sum(terms: list[Value]) -> Value:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _cross(emitter: Emitter, x: Value, y: Value) -> Value:
    rest = list(range(3, x.type.width))
    forward, backward = [1, 2, 0, *rest], [2, 0, 1, *rest]
    product = x.shuffled(forward) * y.shuffled(backward) - x.shuffled(backward) * y.shuffled(forward)
    if not rest:
        return product
    return emitter.vector([*product.elements()[:3], emitter.constant(0.0, x.type.wide(1))])


def _norm(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    """A double vector scaled so that its length is neither too large nor too small, that length, and the factor."""
    extreme = x.element(0).magnitude()
    for element in x.elements()[1:]:
        extreme = emitter.intrinsic("maxnum", extreme, element.magnitude())
    small = emitter.where(extreme.lt(_SMALL), extreme.same(_SCALE), 1.0)
    factor = emitter.where(extreme.gt(_LARGE), extreme.same(1.0 / _SCALE), small)
    scaled = x * factor.broadcast(x.type.width)
    return emitter.intrinsic("sqrt", _dot(emitter, scaled, scaled)), factor


def _length(emitter: Emitter, x: Value) -> Value:
    scalar = x.scalar
    if x.type.width == 1:
        return x.magnitude()
    if scalar == FLOAT:
        x = x.to(DOUBLE)
        return emitter.intrinsic("sqrt", _dot(emitter, x, x)).to(scalar)
    norm, factor = _norm(emitter, x)
    return norm / factor


def _distance(emitter: Emitter, x: Value, y: Value) -> Value:
    if x.scalar == FLOAT:
        return _length(emitter, x.to(DOUBLE) - y.to(DOUBLE)).to(FLOAT)
    return _length(emitter, x - y)


def _normalize(emitter: Emitter, x: Value) -> Value:
    scalar, width = x.scalar, x.type.width
    x = x.to(DOUBLE)
    # Where an element is infinite, the infinite elements count as 1 and the others as 0 (OpenCL 1.2, section 7.5.1).
    infinite = x.is_inf()
    any_infinite = _any([infinite.element(index) for index in range(width)]).broadcast(width)
    unit = emitter.where(infinite, x.same(1.0), 0.0).with_sign_of(x)
    direction = emitter.where(any_infinite, emitter.where(x.is_nan(), x, unit), x)
    norm, factor = _norm(emitter, direction)
    quotient = direction * factor.broadcast(width) / norm.broadcast(width)
    return emitter.where(norm.eq(0.0).broadcast(width), direction, quotient).to(scalar)


def _any(truths: list[Value]) -> Value:
    found = truths[0]
    for truth in truths[1:]:
        found = found | truth
    return found


def _fast_normalize(emitter: Emitter, x: Value) -> Value:
    square = _dot(emitter, x, x)
    inverse = 1.0 / emitter.intrinsic("sqrt", square)
    width = x.type.width
    return emitter.where(square.eq(0.0).broadcast(width), x, x * inverse.broadcast(width))


def _fast_length(emitter: Emitter, x: Value) -> Value:
    return emitter.intrinsic("sqrt", _dot(emitter, x, x))


def _common(pattern: str, opcode_class: str, emit: Emit) -> Builtin:
    return Builtin(opcode_class=opcode_class, pattern=pattern, scalars=FLOATS, emit=emit)


def _ordered(pattern: str, emit: Emit) -> Builtin:
    return Builtin(opcode_class="add", pattern=pattern, scalars=(*INTEGERS, *FLOATS), emit=emit)


def _geometric(pattern: str, opcode_class: str, emit: Emit, widths: tuple[int, ...]) -> Builtin:
    return Builtin(opcode_class=opcode_class, pattern=pattern, scalars=FLOATS, emit=emit, widths=widths)


_TO_4 = (1, 2, 3, 4)
COMMON: dict[str, Builtin] = {
    "clamp": _ordered("Ttt", _clamp),
    "degrees": _common("T", "mul", _times(180 / math.pi)),
    "max": _ordered("Tt", _max),
    "min": _ordered("Tt", _min),
    "mix": _common("TTt", "fma", _mix),
    "radians": _common("T", "mul", _times(math.pi / 180)),
    "sign": _common("T", "select", _sign),
    "smoothstep": _common("ttT", "fma", _smoothstep),
    "step": _common("tT", "compare", _step),
}
GEOMETRIC: dict[str, Builtin] = {
    "cross": _geometric("TT", "fma", _cross, (3, 4)),
    "distance": _geometric("TT", "sqrt", _distance, _TO_4),
    "dot": _geometric("TT", "fma", _dot, _TO_4),
    "fast_distance": _geometric("TT", "native", lambda emitter, x, y: _fast_length(emitter, x - y), _TO_4),
    "fast_length": _geometric("T", "native", _fast_length, _TO_4),
    "fast_normalize": _geometric("T", "native", _fast_normalize, _TO_4),
    "length": _geometric("T", "sqrt", _length, _TO_4),
    "normalize": _geometric("T", "sqrt", _normalize, _TO_4),
}
