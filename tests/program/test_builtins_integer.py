"""Integer built-ins against Python's integers, which have no width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.program.builtin_calls import DTYPES, INTEGERS, call, compiled, integer_range, mangle

SIZES = {name: np.dtype(DTYPES[name]).itemsize * 8 for name in INTEGERS}


def clamped(value: int, kind: str) -> int:
    low, high = integer_range(kind)
    return min(max(value, low), high)


def rotated(value: int, amount: int, bits: int) -> int:
    pattern, amount = value % 2**bits, amount % bits
    return (pattern << amount | pattern >> (bits - amount)) % 2**bits


def leading_zeros(value: int, bits: int) -> int:
    return bits - (value % 2**bits).bit_length()


def trailing_zeros(value: int, bits: int) -> int:
    pattern = value % 2**bits
    return (pattern & -pattern).bit_length() - 1 if pattern else bits


# Built-in: number of arguments and result from type and arguments; the result is taken modulo the type's size.
REFERENCES = {
    "abs": (1, lambda _, x: abs(x)),
    "abs_diff": (2, lambda _, x, y: abs(x - y)),
    "add_sat": (2, lambda kind, x, y: clamped(x + y, kind)),
    "clamp": (3, lambda _, x, low, high: min(max(x, low), high)),
    "clz": (1, lambda kind, x: leading_zeros(x, SIZES[kind])),
    "ctz": (1, lambda kind, x: trailing_zeros(x, SIZES[kind])),
    "hadd": (2, lambda _, x, y: (x + y) >> 1),
    "mad_hi": (3, lambda kind, a, b, c: (a * b >> SIZES[kind]) + c),
    "mad_sat": (3, lambda kind, a, b, c: clamped(a * b + c, kind)),
    "max": (2, lambda _, x, y: max(x, y)),
    "min": (2, lambda _, x, y: min(x, y)),
    "mul_hi": (2, lambda kind, x, y: x * y >> SIZES[kind]),
    "popcount": (1, lambda kind, x: (x % 2 ** SIZES[kind]).bit_count()),
    "rhadd": (2, lambda _, x, y: (x + y + 1) >> 1),
    "rotate": (2, lambda kind, x, n: rotated(x, n, SIZES[kind])),
    "sub_sat": (2, lambda kind, x, y: clamped(x - y, kind)),
    "bitselect": (3, lambda _, a, b, mask: (a & ~mask) | (b & mask)),
}


def integers(kind: str) -> st.SearchStrategy[int]:
    """Any value of the type, and its ends often."""
    low, high = integer_range(kind)
    return st.integers(low, high) | st.sampled_from([low, low + 1, high, high - 1, 0, 1, high // 2])


def unsigned(values: np.ndarray) -> list[int]:
    """The bits of integers, as numbers without sign."""
    return [int(value) % 2 ** (8 * values.dtype.itemsize) for value in values]


@pytest.fixture(scope="module")
def functions():
    return compiled(mangle(name, *[kind] * count) for name, (count, _) in REFERENCES.items() for kind in INTEGERS)


@pytest.mark.parametrize("kind", INTEGERS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_integer_builtins_agree_with_python(functions, kind, data):
    rows = data.draw(st.lists(st.tuples(*[integers(kind)] * 3), min_size=1, max_size=20))
    for name, (count, reference) in REFERENCES.items():
        used = [row[:count] if name != "clamp" else (row[0], *sorted(row[1:])) for row in rows]
        columns = [np.array(column, dtype=DTYPES[kind]) for column in zip(*used, strict=True)]
        actual = unsigned(functions.call(mangle(name, *[kind] * count), *columns))
        expected = [reference(kind, *row) % 2 ** SIZES[kind] for row in used]
        assert actual == expected, (name, used)


@given(rows=st.lists(st.tuples(*[st.integers(-(2**23), 2**23 - 1)] * 2, integers("int")), min_size=1, max_size=20))
@settings(max_examples=25, deadline=None)
def test_products_of_24_bits(rows):
    x, y, z = zip(*rows, strict=True)
    product = unsigned(call(mangle("mul24", "int", "int"), x, y))
    assert product == [a * b % 2**32 for a, b in zip(x, y, strict=True)]
    total = unsigned(call(mangle("mad24", "int", "int", "int"), x, y, z))
    assert total == [(a * b + c) % 2**32 for a, b, c in rows]


def test_unsigned_products_of_24_bits():
    assert unsigned(call(mangle("mul24", "uint", "uint"), [2**24 - 1], [2**24 - 1])) == [(2**24 - 1) ** 2 % 2**32]


@pytest.mark.parametrize("kind", ["char", "uchar", "short", "ushort", "int", "uint"])
def test_upsample_joins_high_and_low_part(kind):
    low_kind = f"u{kind.removeprefix('u')}"
    bits = SIZES[kind]
    low, high = integer_range(kind)
    highs, lows = np.meshgrid([low, high, 0, 5], [0, 1, 2**bits - 1])
    actual = unsigned(call(mangle("upsample", kind, low_kind), highs.ravel(), lows.ravel()))
    expected = [(int(a) << bits | int(b)) % 4**bits for a, b in zip(highs.ravel(), lows.ravel(), strict=True)]
    assert actual == expected


def test_results_written_out():
    # The tests above would not see an oracle that is wrong in the same way.
    assert unsigned(call(mangle("abs", "char"), [-128])) == [128]
    assert unsigned(call(mangle("abs_diff", "int", "int"), [-(2**31)], [2**31 - 1])) == [2**32 - 1]
    assert call(mangle("hadd", "char", "char"), [-1], [0]).tolist() == [-1]
    assert call(mangle("rhadd", "char", "char"), [-1], [0]).tolist() == [0]
    assert call(mangle("mul_hi", "long", "long"), [-1], [1]).tolist() == [-1]
    assert unsigned(call(mangle("mul_hi", "ulong", "ulong"), [2**64 - 1], [2**64 - 1])) == [2**64 - 2]
    assert call(mangle("mad_sat", "long", "long", "long"), [2**62], [4], [-1]).tolist() == [2**63 - 1]
    assert call(mangle("rotate", "char", "char"), [0b0000_0011], [-1]).tolist() == [-127]
    assert call(mangle("clz", "short"), [0, 1, -1]).tolist() == [16, 15, 0]
