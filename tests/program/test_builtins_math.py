"""Math built-ins against mpmath within the bounds of OpenCL 1.2, section 7.4, and their edge cases of section 7.5.1."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.program.builtin_calls import DTYPES, call, compiled, mangle

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed (pip install mpmath; PyTorch brings it)")
mp = mpmath.mp

INF, NAN = math.inf, math.nan
# Enough to reduce a double of 1e30 by pi and still know its sine to the last bit.
WORKING_BITS = 300


def root(x, n):
    positive = mp.root(x, abs(n))
    return positive if n > 0 else 1 / positive


# Built-in: reference; greatest error in ulp, single and double (tables 7.1 and 7.2); range of each argument.
EVERY = (-1e30, 1e30)
POSITIVE = (0.0, 1e30)
BOUNDS = {
    "acos": (mp.acos, 4, [(-1, 1)]),
    "acosh": (mp.acosh, 4, [(1, 1e30)]),
    "acospi": (lambda x: mp.acos(x) / mp.pi, 5, [(-1, 1)]),
    "asin": (mp.asin, 4, [(-1, 1)]),
    "asinh": (mp.asinh, 4, [EVERY]),
    "asinpi": (lambda x: mp.asin(x) / mp.pi, 5, [(-1, 1)]),
    "atan": (mp.atan, 5, [EVERY]),
    "atan2": (mp.atan2, 6, [EVERY, EVERY]),
    "atan2pi": (lambda y, x: mp.atan2(y, x) / mp.pi, 6, [EVERY, EVERY]),
    "atanh": (mp.atanh, 5, [(-0.999, 0.999)]),
    "atanpi": (lambda x: mp.atan(x) / mp.pi, 5, [EVERY]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), 2, [EVERY]),
    "cos": (mp.cos, 4, [EVERY]),
    "cosh": (mp.cosh, 4, [(-80, 80)]),
    "cospi": (mp.cospi, 4, [(-1e6, 1e6)]),
    "erf": (mp.erf, 16, [(-6, 6)]),
    "erfc": (mp.erfc, 16, [(-6, 9)]),
    "exp": (mp.exp, 3, [(-80, 80)]),
    "exp10": (lambda x: mp.power(10, x), 3, [(-37, 37)]),
    "exp2": (lambda x: mp.power(2, x), 3, [(-120, 120)]),
    "expm1": (mp.expm1, 3, [(-80, 80)]),
    "fdim": (lambda x, y: max(x - y, mp.mpf(0)), 0.5, [EVERY, EVERY]),
    "fma": (lambda a, b, c: a * b + c, 0.5, [(-1e15, 1e15), (-1e15, 1e15), EVERY]),
    "hypot": (mp.hypot, 4, [(-1e15, 1e15), (-1e15, 1e15)]),
    "log": (mp.log, 3, [POSITIVE]),
    "log10": (mp.log10, 3, [POSITIVE]),
    "log1p": (mp.log1p, 2, [(-0.999, 1e30)]),
    "log2": (lambda x: mp.log(x, 2), 3, [POSITIVE]),
    "pow": (mp.power, 16, [(0, 1e6), (-6, 6)]),
    "powr": (mp.power, 16, [(0, 1e6), (-6, 6)]),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), 2, [POSITIVE]),
    "sin": (mp.sin, 4, [EVERY]),
    "sinh": (mp.sinh, 4, [(-80, 80)]),
    "sinpi": (mp.sinpi, 4, [(-1e6, 1e6)]),
    "sqrt": (mp.sqrt, 0.5, [POSITIVE]),
    "tan": (mp.tan, 5, [EVERY]),
    "tanh": (mp.tanh, 5, [EVERY]),
    "tanpi": (lambda x: mp.sinpi(x) / mp.cospi(x) if mp.cospi(x) else mp.inf, 6, [(-1e6, 1e6)]),
    "tgamma": (mp.gamma, 16, [(0, 30)]),
}
# native_ and half_ may err more (implementation-defined, and 8192 ulp); here they do not.
DEVICE = ["cos", "exp", "exp2", "exp10", "log", "log2", "log10", "sin", "tan", "sqrt", "rsqrt", "powr"]
BOUNDS |= {f"{prefix}_{name}": BOUNDS[name] for name in DEVICE for prefix in ("native", "half")}
INTEGER_POWER = {
    "pown": (lambda x, n: mp.power(x, int(n)), 16, (-20, 20), (1, 20)),
    "rootn": (root, 16, (0, 1e30), (1, 3000)),
}


def samples(limits: tuple[float, float], count: int, rng: np.random.Generator) -> np.ndarray:
    """Half of them uniform in the range, half of them in its magnitudes down to 1e-30."""
    low, high = limits
    uniform = rng.uniform(low, high, count)
    magnitudes = 10 ** rng.uniform(-30, math.log10(max(-low, high)), count)
    spread = magnitudes * np.where(rng.random(count) < 0.5, -1, 1) if low < 0 else magnitudes
    inside = np.clip(spread, low, high)
    return np.where(rng.random(count) < 0.5, uniform, inside)


def check_error(actual: np.ndarray, reference: list, *, bound_ulp: float) -> None:
    """Compare with the real result, in units of its own last place (section 7.4); overflow is for the edge cases."""
    info = np.finfo(actual.dtype)
    compared = 0
    for got, exact in zip(actual, reference, strict=True):
        if abs(exact) > float(info.max):
            continue
        exponent = mp.frexp(exact)[1] - 1 if exact else info.minexp
        ulp = mp.ldexp(1, max(exponent, info.minexp) - info.nmant)
        error = abs(mp.mpf(float(got)) - exact) / ulp
        assert error <= bound_ulp, f"got {got}, expected {mp.nstr(exact, 20)}: {mp.nstr(error, 5)} ulp"
        compared += 1
    assert compared >= len(actual) / 2


@pytest.fixture(scope="module")
def functions():
    names = [mangle(name, *[kind] * len(row[2])) for name, row in BOUNDS.items() for kind in ("float", "double")]
    return compiled(names + [mangle(name, kind, "int") for name in INTEGER_POWER for kind in ("float", "double")])


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("name", BOUNDS)
def test_error_is_within_the_bound_of_the_standard(functions, name, kind):
    reference, bound, limits = BOUNDS[name]
    rng = np.random.default_rng(0)
    arguments = [samples(limit, 120, rng).astype(DTYPES[kind]) for limit in limits]
    actual = functions.call(mangle(name, *[kind] * len(limits)), *arguments)
    with mp.workprec(WORKING_BITS):
        expected = [reference(*(mp.mpf(float(x)) for x in row)) for row in zip(*arguments, strict=True)]
        check_error(actual, expected, bound_ulp=bound)


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("name", INTEGER_POWER)
def test_integer_powers_and_roots_are_within_the_bound(functions, name, kind):
    reference, bound, limits, degrees = INTEGER_POWER[name]
    rng = np.random.default_rng(1)
    x = samples(limits, 120, rng).astype(DTYPES[kind])
    n = rng.integers(*degrees, 120) * rng.choice([-1, 1], 120)
    actual = functions.call(mangle(name, kind, "int"), x, n)
    with mp.workprec(WORKING_BITS):
        expected = [reference(mp.mpf(float(a)), int(b)) for a, b in zip(x, n, strict=True)]
        check_error(actual, expected, bound_ulp=bound)


def test_roots_of_huge_and_tiny_doubles():
    # The logarithm is large here: a power with the rounded exponent 1/n alone would be 100 ulp off.
    x, n = (
        grid.ravel() for grid in np.meshgrid([1e300, 3e-300, 5e-324, 7e200, 1.7e308], [2, 3, -3, 5, 7, -11, 1023, 1025])
    )
    actual = call(mangle("rootn", "double", "int"), x, n)
    with mp.workprec(WORKING_BITS):
        check_error(actual, [root(mp.mpf(a), int(b)) for a, b in zip(x, n, strict=True)], bound_ulp=16)


EDGES = {
    # C99, section F.9, to which section 7.5.1 refers, and 7.5.1 itself.
    "acospi": [(1.0, 0.0), (1.5, NAN)],
    "asinpi": [(-0.0, -0.0), (1.5, NAN)],
    "atanpi": [(-0.0, -0.0), (INF, 0.5), (-INF, -0.5)],
    "acos": [(1.0, 0.0), (2.0, NAN)],
    "cbrt": [(-0.0, -0.0), (-INF, -INF), (NAN, NAN), (-27.0, -3.0)],
    "cospi": [(0.0, 1.0), (-0.0, 1.0), (0.5, 0.0), (1.5, 0.0), (-2.5, 0.0), (3.0, -1.0), (INF, NAN), (1e30, 1.0)],
    "exp10": [(-INF, 0.0), (INF, INF), (NAN, NAN), (2.0, 100.0)],
    "ceil": [(-0.5, -0.0), (2.5, 3.0), (INF, INF)],
    "floor": [(-0.5, -1.0), (-0.0, -0.0), (2.5, 2.0)],
    "logb": [(0.0, -INF), (-INF, INF), (NAN, NAN), (1.0, 0.0), (0.75, -1.0), (-8.0, 3.0)],
    "rint": [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0)],
    "round": [(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (0.25, 0.0), (-0.25, -0.0), (INF, INF)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN)],
    "sign": [(3.0, 1.0), (-3.0, -1.0), (0.0, 0.0), (-0.0, -0.0), (NAN, 0.0), (-INF, -1.0)],
    "sinpi": [(0.0, 0.0), (-0.0, -0.0), (3.0, 0.0), (-3.0, -0.0), (2.0, 0.0), (0.5, 1.0), (1.5, -1.0), (INF, NAN)],
    "sqrt": [(-0.0, -0.0), (-1.0, NAN), (INF, INF)],
    "tanpi": [
        (0.0, 0.0),
        (-0.0, -0.0),
        (1.0, -0.0),
        (-1.0, 0.0),
        (2.0, 0.0),
        (-2.0, -0.0),
        (0.5, INF),
        (1.5, -INF),
        (-0.5, -INF),
        (2.5, INF),
        (0.25, 1.0),
        (-0.25, -1.0),
        (0.75, -1.0),
        (INF, NAN),
    ],
    "tgamma": [(5.0, 24.0), (-1.0, NAN), (INF, INF), (0.0, INF), (-0.0, -INF)],
    "trunc": [(-0.5, -0.0), (1.9, 1.0)],
    "atan2pi": [(0.0, -1.0, 1.0), (-0.0, -1.0, -1.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.5), (INF, INF, 0.25)],
    "copysign": [(1.0, -0.0, -1.0), (-INF, 1.0, INF)],
    "fdim": [(3.0, 1.0, 2.0), (1.0, 3.0, 0.0), (INF, INF, 0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN)],
    "fmax": [(NAN, 1.0, 1.0), (1.0, NAN, 1.0), (NAN, NAN, NAN), (-1.0, 2.0, 2.0), (-INF, NAN, -INF)],
    "fmin": [(NAN, 1.0, 1.0), (1.0, NAN, 1.0), (NAN, NAN, NAN), (-1.0, 2.0, -1.0)],
    "fmod": [(5.5, 2.0, 1.5), (-5.5, 2.0, -1.5), (1.0, INF, 1.0), (INF, 1.0, NAN), (1.0, 0.0, NAN), (-0.0, 1.0, -0.0)],
    "hypot": [(INF, NAN, INF), (3.0, -4.0, 5.0), (0.0, -0.0, 0.0)],
    "max": [(1.0, 2.0, 2.0), (2.0, 1.0, 2.0), (-INF, 1.0, 1.0)],
    "maxmag": [(-3.0, 2.0, -3.0), (2.0, -3.0, -3.0), (-2.0, 2.0, 2.0), (NAN, 1.0, 1.0)],
    "min": [(1.0, 2.0, 1.0), (2.0, 1.0, 1.0), (INF, 1.0, 1.0)],
    "minmag": [(-3.0, 2.0, 2.0), (2.0, -3.0, 2.0), (-2.0, 2.0, -2.0), (1.0, NAN, 1.0)],
    "pow": [
        (0.0, -1.0, INF),
        (-0.0, -1.0, -INF),
        (-8.0, 3.0, -512.0),
        (-8.0, 0.5, NAN),
        (NAN, 0.0, 1.0),
        (1.0, NAN, 1.0),
        (-1.0, INF, 1.0),
    ],
    "powr": [
        (2.0, 0.0, 1.0),
        (0.0, -1.0, INF),
        (-0.0, -3.0, INF),
        (0.0, -INF, INF),
        (0.0, 2.0, 0.0),
        (-0.0, 3.0, 0.0),
        (1.0, 5.0, 1.0),
        (1.0, INF, NAN),
        (1.0, -INF, NAN),
        (-1.0, 2.0, NAN),
        (0.0, 0.0, NAN),
        (-0.0, 0.0, NAN),
        (INF, 0.0, NAN),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
        (0.0, NAN, NAN),
        (NAN, 0.0, NAN),
        (INF, 2.0, INF),
    ],
    "remainder": [
        (5.0, 3.0, -1.0),
        (-5.0, 3.0, 1.0),
        (3.0, 2.0, -1.0),
        (1.0, 2.0, 1.0),
        (1.0, 0.0, NAN),
        (6.0, 3.0, 0.0),
        (-6.0, 3.0, -0.0),
        (1.0, INF, 1.0),
    ],
    "step": [(1.0, 0.5, 0.0), (1.0, 1.0, 1.0), (1.0, 2.0, 1.0)],
    "clamp": [(5.0, 0.0, 1.0, 1.0), (-5.0, 0.0, 1.0, 0.0), (0.5, 0.0, 1.0, 0.5), (INF, -1.0, 1.0, 1.0)],
    "fma": [(INF, 0.0, 1.0, NAN), (2.0, 3.0, -6.0, 0.0), (INF, 1.0, -INF, NAN)],
    "mad": [(2.0, 3.0, 4.0, 10.0)],
    "mix": [(1.0, 3.0, 0.5, 2.0), (1.0, 3.0, 0.0, 1.0)],
    "smoothstep": [(0.0, 2.0, -1.0, 0.0), (0.0, 2.0, 3.0, 1.0), (0.0, 2.0, 1.0, 0.5), (0.0, 1.0, 0.25, 0.15625)],
    "degrees": [(math.pi, 180.0)],
    "radians": [(90.0, math.pi / 2)],
    "native_recip": [(4.0, 0.25), (-0.0, -INF)],
    "half_recip": [(-2.0, -0.5)],
    "native_divide": [(1.0, 4.0, 0.25), (0.0, 0.0, NAN)],
    "half_divide": [(3.0, -2.0, -1.5)],
    "nextafter": [(0.0, -0.0, -0.0), (1.0, 1.0, 1.0), (NAN, 1.0, NAN), (1.0, NAN, NAN)],
}


def check_same(actual, expected, *, rounded: bool = False) -> None:
    """Equal, NaN to NaN, and zeros of the same sign."""
    expected = np.asarray(expected).astype(np.asarray(actual).dtype)
    if rounded:
        np.testing.assert_allclose(actual, expected, rtol=4 * np.finfo(expected.dtype).eps)
    else:
        np.testing.assert_array_equal(actual, expected)
    signed = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[signed], np.signbit(expected)[signed])


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_edge_cases_of_the_standard(kind):
    names = {name: mangle(name, *[kind] * (len(rows[0]) - 1)) for name, rows in EDGES.items()}
    functions = compiled(names.values())
    for name, rows in EDGES.items():
        # 1e30 is no half; its infinity would be another case.
        rows = [row for row in rows if kind != "half" or 1e30 not in row]
        *arguments, expected = np.array(rows).T
        actual = functions.call(names[name], *arguments)
        try:
            check_same(actual, expected, rounded=name in {"degrees", "radians", "tanpi"})
        except AssertionError as error:
            raise AssertionError(f"{names[name]}: {error}") from error


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_ilogb(kind):
    # FP_ILOGB0 and FP_ILOGBNAN are INT_MIN and INT_MAX in clang's header; infinity gives INT_MAX (C99, 7.12.6.5).
    tiny = float(np.finfo(DTYPES[kind]).smallest_subnormal)
    x = [0.0, -0.0, NAN, INF, -INF, 1.0, -0.75, 8.5, tiny]
    high, low = 2**31 - 1, -(2**31)
    assert call(mangle("ilogb", kind), x).tolist() == [low, low, high, high, high, 0, -1, 3, math.frexp(tiny)[1] - 1]


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_ldexp_rounds_once_and_scales_by_any_integer(kind):
    x = np.array([1.0, 3.0, -0.75, 1.0, 1.0, 0.0, INF, 1.5])
    n = np.array([3, -1, 0, 2**31 - 1, -(2**31), 99, -99, -25])
    expected = [8.0, 1.5, -0.75, INF, 0.0, 0.0, INF, 1.5 * 2.0**-25]  # the last is below the least half
    check_same(call(mangle("ldexp", kind, "int"), x, n), expected)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_pown_and_rootn_edge_cases(kind):
    least = -(2**31)
    power = [
        *[(0.0, 0, 1.0), (NAN, 0, 1.0), (-0.0, -1, -INF), (-0.0, -2, INF), (0.0, 3, 0.0), (-0.0, 3, -0.0)],
        *[(-2.0, 3, -8.0), (-1.0, 2**31 - 1, -1.0), (-1.0, least, 1.0), (INF, least, 0.0)],
    ]
    x, n, expected = zip(*power, strict=True)
    check_same(call(mangle("pown", kind, "int"), x, n), expected)
    root = [
        *[(4.0, 0, NAN), (0.0, -3, INF), (-0.0, -3, -INF), (-0.0, -2, INF), (0.0, 3, 0.0), (-0.0, 3, -0.0)],
        *[(-0.0, 2, 0.0), (-8.0, 3, -2.0), (-8.0, 2, NAN), (1.0, least, 1.0), (16.0, -2, 0.25), (7.0, 1, 7.0)],
        *[(INF, 3, INF), (-INF, -3, -0.0), (NAN, 3, NAN), (1.0, 2**31 - 1, 1.0)],
    ]
    x, n, expected = zip(*root, strict=True)
    check_same(call(mangle("rootn", kind, "int"), x, n), expected)


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_nan_carries_its_code(kind):
    code, bits = {"half": ("ushort", "u2"), "float": ("uint", "u4"), "double": ("ulong", "u8")}[kind]
    result = call(mangle("nan", code), [0, 5])
    assert np.isnan(result).all()
    patterns = result.view(bits)
    assert int(patterns[1]) - int(patterns[0]) == 5


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_nextafter_agrees_with_numpy(kind):
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, INF, -INF, 1e-7, -6e-8, 65504.0], dtype=DTYPES[kind])
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    with np.errstate(over="ignore", under="ignore"):
        expected = np.where(x == y, y, np.nextafter(x, y))  # C99: y where they are equal; NumPy's half differs
    check_same(call(mangle("nextafter", kind, kind), x, y), expected)


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_fract_and_modf(kind):
    x = [1.5, -1.25, -1e-7, 0.0, -0.0, INF, -INF, NAN, 3.0]
    near_one = 1 - 2.0**-11 if kind == "half" else 1 - 1e-7  # the greatest half below 1
    fraction, floor = call(mangle("fract", kind, f"{kind}*"), x)
    check_same(fraction, [0.5, 0.75, near_one, 0.0, -0.0, 0.0, -0.0, NAN, 0.0])
    check_same(floor, [1.0, -2.0, -1.0, 0.0, -0.0, INF, -INF, NAN, 3.0])
    fraction, whole = call(mangle("modf", kind, f"{kind}*"), x)
    check_same(fraction, [0.5, -0.25, -1e-7, 0.0, -0.0, 0.0, -0.0, NAN, 0.0])
    check_same(whole, [1.0, -1.0, -0.0, 0.0, -0.0, INF, -INF, NAN, 3.0])


def test_fract_of_a_tiny_negative_number_stays_below_one():
    fraction, _ = call(mangle("fract", "double", "double*"), [-1e-30])
    assert fraction[0] == np.nextafter(1.0, 0.0)


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_frexp_agrees_with_python(kind):
    info = np.finfo(DTYPES[kind])
    x = np.array([8.0, -0.375, 1.0, info.max, info.tiny, info.smallest_subnormal, -0.0, INF, NAN], dtype=info.dtype)
    mantissa, exponent = call(mangle("frexp", kind, "int*"), x)
    expected = [math.frexp(float(value)) for value in x]
    check_same(mantissa, [m for m, _ in expected])
    assert exponent.tolist() == [e for _, e in expected]


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_remquo_keeps_seven_bits_of_the_quotient(kind):
    rng = np.random.default_rng(2)
    x = np.append(rng.uniform(-1000, 1000, 200), [5.0, 7.0, -7.0, 1.0, 6e4, 65504.0]).astype(DTYPES[kind])
    y = np.append(rng.uniform(-9, 9, 200), [2.0, 2.0, 2.0, INF, 0.5, 600.0]).astype(DTYPES[kind])
    remainder, quotient = call(mangle("remquo", kind, kind, "int*"), x, y)
    for a, b, r, q in zip(x, y, remainder, quotient, strict=True):
        exact = 0 if np.isinf(b) else round(Fraction(float(a)) / Fraction(float(b)))  # ties to even
        assert q == int(math.copysign(abs(exact) % 128, exact))
        assert r == math.remainder(float(a), float(b))


def test_remquo_of_huge_and_undefined_arguments():
    largest = float(np.finfo(np.float64).max)
    remainder, quotient = call(
        mangle("remquo", "double", "double", "int*"), [largest, INF, 1.0], [largest / 100, 1.0, 0.0]
    )
    assert remainder[0] == math.remainder(largest, largest / 100)
    assert quotient.tolist() == [100, 0, 0]
    assert np.isnan(remainder[1:]).all()


@pytest.mark.parametrize("kind", ["float", "double"])
def test_sincos_and_lgamma(kind):
    x = np.linspace(-9, 9, 50).astype(DTYPES[kind])
    tolerance = 4 * np.finfo(x.dtype).eps
    sine, cosine = call(mangle("sincos", kind, f"{kind}*"), x)
    np.testing.assert_allclose(sine, np.sin(x.astype(float)), rtol=tolerance)
    np.testing.assert_allclose(cosine, np.cos(x.astype(float)), rtol=tolerance)
    x = np.array([0.5, 3.5, 100.0, -0.5, -1.5, -2.5, INF])
    value, sign = call(mangle("lgamma_r", kind, "int*"), x)
    # No bound in the standard; libm errs by a few ulp, next to a zero of the logarithm absolutely.
    expected = [math.lgamma(v) for v in x]
    tolerance = 8 * np.finfo(value.dtype).eps
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(call(mangle("lgamma", kind), x), value)
    assert sign.tolist() == [1, 1, 1, -1, 1, -1, 1]


def test_lgamma_r_has_no_sign_at_the_poles():
    assert call(mangle("lgamma_r", "double", "int*"), [0.0, -0.0, -1.0, -4.0])[1].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["sin", "exp2", "log", "tanh", "rsqrt", "native_sin", "cbrt", "atan"])
def test_every_half_is_the_rounded_result(name):
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    reference = {"native_sin": np.sin, "rsqrt": lambda v: 1 / np.sqrt(v), "atan": np.arctan}.get(name) or getattr(
        np, name
    )
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64)).astype(np.float16)
    actual = call(mangle(name, "half"), x)
    # Through float, so a result next to a tie may round the other way; it stays within one unit.
    different = ~((actual == expected) | (np.isnan(actual) & np.isnan(expected)))
    assert different.mean() < 1e-3
    assert np.isin(actual[different], np.nextafter(expected[different], np.float16([[INF], [-INF]]))).all()


def test_half_fma_rounds_once():
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(0, 0x7C00, 3000).astype(np.uint16).view(np.float16) for _ in range(3))
    c = c * rng.choice(np.float16([-1, 1]), 3000)
    # (1 + 2^-5)(1 + 2^-6) is a tie between two halves, which c decides with a bit that a float would lose.
    x, y, least = np.float16(1 + 2.0**-5), np.float16(1 + 2.0**-6), np.float16(2.0**-24)
    a, b, c = np.append(a, [x, x]), np.append(b, [y, y]), np.append(c, [least, -least])
    actual = call(mangle("fma", "half", "half", "half"), a, b, c)
    for x, y, z, got in zip(a, b, c, actual, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if abs(exact) < 65000:
            error = abs(Fraction(float(got)) - exact)
            neighbours = np.nextafter(got, np.float16([INF, -INF]))
            assert all(error <= abs(Fraction(float(other)) - exact) for other in neighbours), (x, y, z)
