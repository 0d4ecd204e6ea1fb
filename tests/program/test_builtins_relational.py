"""Relational built-ins and shuffles against Python, element by element (OpenCL 1.2, sections 6.12.6 and 6.12.12)."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.program.builtin_calls import DTYPES, INTEGERS, call, compiled, integer_range, mangle

NAN, INF = math.nan, math.inf
FLOATS = ("half", "float", "double")
INTEGER_OF = {"half": "short", "float": "int", "double": "long"}


def ordered(x, y):
    return not (math.isnan(x) or math.isnan(y))


BINARY = {
    "isequal": operator.eq,
    "isnotequal": operator.ne,
    "isgreater": operator.gt,
    "isgreaterequal": operator.ge,
    "isless": operator.lt,
    "islessequal": operator.le,
    "islessgreater": lambda x, y: x < y or x > y,
    "isordered": ordered,
    "isunordered": lambda x, y: not ordered(x, y),
}
UNARY = {
    "isfinite": lambda x, _: math.isfinite(x),
    "isinf": lambda x, _: math.isinf(x),
    "isnan": lambda x, _: math.isnan(x),
    "isnormal": lambda x, tiny: math.isfinite(x) and abs(x) >= tiny,
    "signbit": lambda x, _: math.copysign(1, x) < 0,
}


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("width", ["", "2", "3", "4", "8", "16"])
def test_tests_of_floats(kind, width):
    info = np.finfo(DTYPES[kind])
    tiny = float(info.tiny)
    numbers = [
        0.0,
        -0.0,
        1.0,
        -2.5,
        INF,
        -INF,
        NAN,
        -NAN,
        tiny,
        tiny / 2,
        float(info.max),
        -float(info.smallest_subnormal),
    ]
    x, y = (np.resize(grid, (12 * 16,)) for grid in np.meshgrid(numbers, numbers))
    size = int(width or 1)
    shape = (-1, size) if width else (-1,)
    true = -1 if width else 1  # section 6.12.6: all bits set in vectors
    names = {name: mangle(name, *[kind + width] * 2) for name in BINARY}
    names |= {name: mangle(name, kind + width) for name in UNARY}
    functions = compiled(names.values())
    for name, test in BINARY.items():
        actual = functions.call(names[name], x[: 12 * size * 4].reshape(shape), y[: 12 * size * 4].reshape(shape))
        assert actual.dtype == DTYPES[INTEGER_OF[kind] if width else "int"]
        rows = zip(x.tolist(), y.tolist(), actual.ravel().tolist(), strict=False)
        assert all(got == true * test(a, b) for a, b, got in rows), name
    for name, test in UNARY.items():
        actual = functions.call(names[name], x[: 12 * size].reshape(shape)).ravel().tolist()
        assert actual == [true * test(a, tiny) for a in x[: 12 * size].tolist()], name


@pytest.mark.parametrize("kind", ["char", "short", "int", "long"])
def test_any_and_all_look_at_the_top_bit(kind):
    low, high = integer_range(kind)
    rows = [[low, low, low], [-1, low, 1], [high, 1, 0], [0, 0, low]]
    assert call(mangle("any", f"{kind}3"), rows).tolist() == [1, 1, 0, 1]
    assert call(mangle("all", f"{kind}3"), rows).tolist() == [1, 0, 0, 0]
    assert call(mangle("any", kind), [low, -1, high, 0, 1]).tolist() == [1, 1, 0, 0, 0]
    assert call(mangle("all", kind), [low, -1, high, 0, 1]).tolist() == [1, 1, 0, 0, 0]
    assert call(mangle("all", f"{kind}16"), [[-1] * 16, [-1] * 15 + [1]]).tolist() == [1, 0]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
def test_select_is_by_zero_on_scalars_and_by_top_bit_on_vectors(kind):
    size = np.dtype(DTYPES[kind]).itemsize
    signed = {1: "char", 2: "short", 4: "int", 8: "long"}[size]
    low, high = integer_range(signed)
    condition = np.array([0, 1, high, low, -1], dtype=DTYPES[signed])
    a, b = np.arange(5), np.arange(5) + 10
    for mask in (signed, f"u{signed}"):
        bits = condition.view(DTYPES[mask])
        assert call(mangle("select", kind, kind, mask), a, b, bits).tolist() == [0, 11, 12, 13, 14]
        rows = [np.resize(array, (2, 8)) for array in (a, b, bits)]
        vector = call(mangle("select", f"{kind}8", f"{kind}8", f"{mask}8"), *rows)
        assert vector.ravel().tolist() == [0, 1, 2, 13, 14, 0, 1, 2, 13, 14, 0, 1, 2, 13, 14, 0]


@pytest.mark.parametrize("kind", FLOATS)
def test_bitselect_of_floats_moves_bits(kind):
    bits = np.dtype(DTYPES[kind]).itemsize * 8
    ones = np.array([-1], dtype=DTYPES[INTEGER_OF[kind]]).view(DTYPES[kind])
    top = np.array([-(2 ** (bits - 1))], dtype=DTYPES[INTEGER_OF[kind]]).view(DTYPES[kind])
    name = mangle("bitselect", *[kind] * 3)
    assert call(name, [1.5, 1.5, 1.5], [-2.0, -2.0, -2.0], [0.0, ones[0], top[0]]).tolist() == [1.5, -2.0, -1.5]


@pytest.mark.parametrize("kind", ["char", "ushort", "half", "float", "int", "double"])
@pytest.mark.parametrize(("from_width", "to_width"), [(2, 4), (4, 4), (8, 2), (16, 16), (4, 16)])
def test_shuffles_use_the_low_bits_of_the_mask(kind, from_width, to_width):
    mask_kind = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[np.dtype(DTYPES[kind]).itemsize]
    rng = np.random.default_rng(4)
    mask = rng.integers(0, 200, (20, to_width))
    x, y = np.arange(from_width), np.arange(from_width) + 50
    one = mangle("shuffle", f"{kind}{from_width}", f"{mask_kind}{to_width}")
    two = mangle("shuffle2", f"{kind}{from_width}", f"{kind}{from_width}", f"{mask_kind}{to_width}")
    functions = compiled([one, two])
    rows_x, rows_y = np.resize(x, (20, from_width)), np.resize(y, (20, from_width))
    assert functions.call(one, rows_x, mask).tolist() == x[mask % from_width].tolist()
    both = np.concatenate([x, y])
    assert functions.call(two, rows_x, rows_y, mask).tolist() == both[mask % (2 * from_width)].tolist()


@given(rows=st.lists(st.tuples(*[st.floats(width=32)] * 2), min_size=1, max_size=30))
@settings(max_examples=30, deadline=None)
def test_comparisons_of_any_floats(rows):
    x, y = zip(*rows, strict=True)
    for name, test in BINARY.items():
        assert call(mangle(name, "float", "float"), x, y).tolist() == [int(test(a, b)) for a, b in rows], name
