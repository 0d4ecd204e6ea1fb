"""Explicit conversions against exact rational arithmetic (OpenCL 1.2, section 6.2.3)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.program.builtin_calls import DTYPES, INTEGERS, call, compiled, integer_range, mangle

FLOATS = ("half", "float", "double")
TYPES = (*INTEGERS, *FLOATS)
ROUNDINGS = ("", "_rte", "_rtz", "_rtp", "_rtn")
NAN, INF = math.nan, math.inf


def round_to_whole(value: Fraction, rounding: str) -> int:
    """Round to an integer."""
    return {"_rte": round, "_rtz": math.trunc, "_rtp": math.ceil, "_rtn": math.floor}[rounding](value)


def round_to_float(value: Fraction, kind: str, rounding: str) -> float:
    """The number of a float type next to an exact value, in the direction asked for."""
    if not value:
        return 0.0
    info = np.finfo(DTYPES[kind])
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= abs(value) < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, int(info.minexp)) - info.nmant)
    result = round_to_whole(value / unit, rounding) * unit
    largest = Fraction(float(info.max))
    if abs(result) > largest:
        outwards = {"_rte": True, "_rtz": False, "_rtp": value > 0, "_rtn": value < 0}[rounding]
        return math.copysign(INF if outwards else float(largest), value)
    return float(result)


def expected(value: float | int, target: str, rounding: str, *, is_saturated: bool) -> float | int | None:
    """What a conversion gives; None where the standard leaves it open."""
    if target in FLOATS:
        if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
            return value
        return round_to_float(Fraction(value), target, rounding or "_rte")
    low, high = integer_range(target)
    if isinstance(value, float):
        if math.isnan(value):
            return 0 if is_saturated else None
        if math.isinf(value):
            return (high if value > 0 else low) if is_saturated else None
        value = round_to_whole(Fraction(value), rounding or "_rtz")
        if not low <= value <= high and not is_saturated:
            return None
    if is_saturated:
        return min(max(value, low), high)
    return (value - low) % (high - low + 1) + low  # integers wrap


def values(kind: str) -> np.ndarray:
    """Numbers at which conversions go wrong."""
    dtype = DTYPES[kind]
    whole = {s * (2**power + d) for power in range(65) for d in (-1, 0, 1) for s in (1, -1)}
    # One bit below a tie in half, float and double, far from the leading one.
    whole |= {s * (2**62 + 2 ** (62 - bits) + d) for bits in (11, 24, 53) for d in (-1, 0, 1) for s in (1, -1)}
    whole |= {s * (2**30 + 2 ** (30 - bits) + d) for bits in (11, 24) for d in (-1, 0, 1) for s in (1, -1)}
    if kind in INTEGERS:
        low, high = integer_range(kind)
        return np.array(sorted(value for value in whole if low <= value <= high), dtype=dtype)
    limit = float(np.finfo(dtype).max)
    parts = [s * (n + f) for n in (0, 1, 2, 126, 127, 254, 255, 32767) for f in (0.25, 0.5, 0.75) for s in (1, -1)]
    tiny = [
        2.0**-14,
        2.0**-24,
        2.0**-25,
        2.0**-25 * (1 + 2.0**-10),
        1.5 * 2.0**-25,
        3 * 2.0**-26,
        2.0**-149,
        65519.0,
        65520.0,
    ]
    near = [
        1 + 2.0**-11,
        1 + 2.0**-11 + 2.0**-23,
        1 + 2.0**-11 + 2.0**-40,
        1 + 2.0**-24,
        1 + 3 * 2.0**-24,
        1e300,
        3.4028236e38,
    ]
    numbers = [float(value) for value in whole] + parts + [s * t for t in tiny + near for s in (1, -1)]
    finite = [value for value in numbers if abs(value) <= limit]
    return np.array([*finite, INF, -INF, NAN, limit, -limit], dtype=dtype)


def forms(source: str) -> list[tuple[str, str, bool]]:
    """Targets, roundings and saturation that the language has."""
    return [
        (target, rounding, is_saturated)
        for target in TYPES
        for rounding in ROUNDINGS
        for is_saturated in (False, True)
        if not (is_saturated and target in FLOATS)
    ]


@pytest.mark.parametrize("source", TYPES)
def test_conversions_are_exact_in_every_rounding(source):
    names = {form: mangle(f"convert_{form[0]}{'_sat' * form[2]}{form[1]}", source) for form in forms(source)}
    functions = compiled(names.values())
    arguments = values(source)
    plain = arguments.tolist()
    for (target, rounding, is_saturated), name in names.items():
        actual = functions.call(name, arguments).view(DTYPES[target]).tolist()
        for value, got in zip(plain, actual, strict=True):
            want = expected(value, target, rounding, is_saturated=is_saturated)
            if want is None or (isinstance(want, float) and math.isnan(want)):
                assert want is None or math.isnan(got), (name, value)
            else:
                assert got == want, (name, value)


def test_conversions_written_out():
    # 6.2.3.3: rounds to nearest even, saturates, and NaN is 0.
    assert call(mangle("convert_uchar_sat_rte", "float"), [0.5, 1.5, 2.5, -3.0, 300.0, NAN]).tolist() == [
        0,
        2,
        2,
        0,
        -1,
        0,
    ]
    assert call(mangle("convert_int", "float"), [-1.9, 1.9]).tolist() == [-1, 1]
    assert call(mangle("convert_float_rtp", "int"), [2**24 + 1, -(2**24) - 1]).tolist() == [2.0**24 + 2, -(2.0**24)]
    assert call(mangle("convert_float_rtn", "int"), [2**24 + 1, -(2**24) - 1]).tolist() == [2.0**24, -(2.0**24) - 2]
    assert call(mangle("convert_half", "float"), [65519.0, 65520.0]).tolist() == [65504.0, INF]


def test_minus_zero_survives_between_floats():
    for source in FLOATS:
        for target in FLOATS:
            for rounding in ROUNDINGS:
                result = call(mangle(f"convert_{target}{rounding}", source), [-0.0])
                assert np.signbit(result[0]), (source, target, rounding)


def test_a_conversion_outside_the_range_does_not_poison_what_follows():
    # In C the result is undefined and an optimiser may drop the code; here it is some number of the type.
    result = call(mangle("convert_uchar4", "float4"), [[1e9, -1e9, NAN, 7.0]])
    assert result[0, 3] == 7


@pytest.mark.parametrize(
    ("source", "target"), [("float", "uchar"), ("uchar", "float"), ("long", "half"), ("half", "int")]
)
@pytest.mark.parametrize("width", [2, 3, 4, 8, 16])
def test_vector_conversions_convert_each_element(source, target, width):
    rows = values(source)
    rows = np.resize(rows[np.abs(rows.astype(float)) < 120], (12, width))
    vector = call(mangle(f"convert_{target}{width}_rte", f"{source}{width}"), rows)
    scalar = call(mangle(f"convert_{target}_rte", source), rows.ravel())
    assert vector.ravel().tolist() == scalar.tolist()
