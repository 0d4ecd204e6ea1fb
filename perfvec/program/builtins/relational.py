"""Relational functions of OpenCL C 1.2, section 6.12.6, and vector shuffles of section 6.12.12."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from perfvec.program.builtins.builtin import Builtin, Emit
from perfvec.program.builtins.cl_types import FLOATS, HALF, INT, INTEGERS, SIGNED, ULONG
from perfvec.program.builtins.emit import Emitter, Value
from perfvec.program.builtins.half import half_to_float

_SMALLEST_NORMAL = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}


def _truth(test: Callable[..., Value]) -> Emit:
    """A test of floats: 1 for true on scalars, all bits set on vectors of integers as wide as the floats."""

    def emit(_: Emitter, *arguments: Value) -> Value:
        bits = arguments[0].scalar.bits
        numbers = [half_to_float(argument) if bits == HALF.bits else argument for argument in arguments]
        truth = test(*numbers)
        if truth.type.width == 1:
            return truth.to(INT)
        return -truth.to(SIGNED[bits])

    return emit


def _is_normal(emitter: Emitter, x: Value) -> Value:
    smallest = _SMALLEST_NORMAL[x.scalar.bits]

    def test(number: Value) -> Value:
        return number.magnitude().ge(smallest) & number.magnitude().lt(math.inf)

    result = _truth(test)(emitter, x)
    assert isinstance(result, Value)
    return result


def _sign_bits(*, is_any: bool) -> Emit:
    """Whether any, or all, elements have their top bit set."""

    def emit(_: Emitter, x: Value) -> Value:
        combined = reduce(lambda a, b: a | b if is_any else a & b, x.elements())
        return combined.signed().lt(0).to(INT)

    return emit


def _bitselect(_: Emitter, a: Value, b: Value, mask: Value) -> Value:
    chosen = mask.bits()
    return ((a.bits() & ~chosen) | (b.bits() & chosen)).bitcast(a.scalar)


def _select(emitter: Emitter, a: Value, b: Value, condition: Value) -> Value:
    truth = condition.ne(0) if condition.type.width == 1 else condition.signed().lt(0)
    return emitter.where(truth, b, a)


def _shuffle(emitter: Emitter, x: Value, mask: Value) -> Value:
    places = (mask & (x.type.width - 1)).to(ULONG)  # an index into memory is signed
    return emitter.pick(x.bits(), places.elements()).bitcast(x.scalar)


def _shuffle2(emitter: Emitter, x: Value, y: Value, mask: Value) -> Value:
    return _shuffle(emitter, x.shuffled(range(2 * x.type.width), y), mask)


def _test(pattern: str, test: Callable[..., Value]) -> Builtin:
    return Builtin(opcode_class="compare", pattern=pattern, scalars=FLOATS, emit=_truth(test), in_half_bits=True)


def _any_type(pattern: str, opcode_class: str, emit: Emit) -> Builtin:
    return Builtin(
        opcode_class=opcode_class, pattern=pattern, scalars=(*INTEGERS, *FLOATS), emit=emit, in_half_bits=True
    )


def _shuffling(pattern: str, emit: Emit) -> Builtin:
    return Builtin(
        opcode_class="vector",
        pattern=pattern,
        scalars=(*INTEGERS, *FLOATS),
        emit=emit,
        in_half_bits=True,
        widths=(2, 4, 8, 16),
        broadcasts=False,
    )


_SIGNED_INTEGERS = tuple(scalar for scalar in INTEGERS if scalar.is_signed)
RELATIONAL: dict[str, Builtin] = {
    "all": Builtin(opcode_class="logic", pattern="T", scalars=_SIGNED_INTEGERS, emit=_sign_bits(is_any=False)),
    "any": Builtin(opcode_class="logic", pattern="T", scalars=_SIGNED_INTEGERS, emit=_sign_bits(is_any=True)),
    "bitselect": _any_type("TTT", "logic", _bitselect),
    "isequal": _test("TT", Value.eq),
    "isfinite": _test("T", lambda x: x.magnitude().lt(math.inf)),
    "isgreater": _test("TT", Value.gt),
    "isgreaterequal": _test("TT", Value.ge),
    "isinf": _test("T", Value.is_inf),
    "isless": _test("TT", Value.lt),
    "islessequal": _test("TT", Value.le),
    "islessgreater": _test("TT", Value.less_or_greater),
    "isnan": _test("T", Value.is_nan),
    "isnormal": Builtin(opcode_class="compare", pattern="T", scalars=FLOATS, emit=_is_normal, in_half_bits=True),
    "isnotequal": _test("TT", Value.ne),
    "isordered": _test("TT", lambda x, y: ~x.unordered(y)),
    "isunordered": _test("TT", Value.unordered),
    "select": _any_type("TTc", "select", _select),
    "signbit": _test("T", lambda x: x.bits().signed().lt(0)),
}
SHUFFLES: dict[str, Builtin] = {
    "shuffle": _shuffling("Tm", _shuffle),
    "shuffle2": _shuffling("TTm", _shuffle2),
}
