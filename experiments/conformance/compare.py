"""Compares results with what a test expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from experiments.conformance.reader import Buffer, Image, Tolerance

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIGNIFICAND_BITS = {2: 11, 4: 24, 8: 53}  # by bytes


def find_mismatch(expected: Buffer | Image, found: bytes) -> str:
    """Say where a result differs by more than is tolerated.

    NaN must come out where it is expected, whatever its bits; infinities must agree in sign; both zeros are equal. A
    tolerance of as many units in the last place as the significand has values accepts anything.

    Args:
        expected: What the buffer or image must hold; padding of 3-vectors is not looked at.
        found: What it holds.

    Returns:
        The first place that differs, "" if none does.
    """
    assert expected.data is not None
    if len(found) != expected.data.nbytes:
        return f"argument {expected.index} has {len(found)} bytes, expected {expected.data.nbytes}"
    shape = (expected.count, expected.element.num_lanes_stored)
    lanes = slice(0, expected.element.width)
    want = expected.data.reshape(shape)[:, lanes]
    have = np.frombuffer(found, expected.data.dtype).reshape(shape)[:, lanes]
    check = _float_differs if want.dtype.kind == "f" else _integer_differs
    differs = check(have, want, expected.tolerance)
    if not differs.any():
        return ""
    element, lane = np.argwhere(differs)[0]
    place = f"[{element}]" if expected.element.width == 1 else f"[{element}].s{lane:x}"
    return (
        f"argument {expected.index}{place} is {have[element, lane]!s}, expected {want[element, lane]!s}"
        f"{_allowed(expected.tolerance)}; {int(differs.sum())} of {differs.size} numbers differ"
    )


def _allowed(tolerance: Tolerance) -> str:
    unit = " ulp" if tolerance.is_ulp else ""
    return f" give or take {tolerance.amount:g}{unit}" if tolerance.amount else ""


def _integer_differs(have: NDArray[np.generic], want: NDArray[np.generic], tolerance: Tolerance) -> NDArray[np.bool_]:
    larger, smaller = np.maximum(have, want), np.minimum(have, want)
    distance = larger.view(f"uint{8 * want.itemsize}") - smaller.view(f"uint{8 * want.itemsize}")  # wraps rightly
    return distance.astype(np.uint64) > np.uint64(tolerance.amount)


def _float_differs(have: NDArray[np.generic], want: NDArray[np.generic], tolerance: Tolerance) -> NDArray[np.bool_]:
    if tolerance.is_ulp and tolerance.amount >= 2 ** _SIGNIFICAND_BITS[want.itemsize]:
        return np.zeros(want.shape, np.bool_)
    with np.errstate(all="ignore"):
        is_same = (have == want) | (np.isnan(have) & np.isnan(want))
        is_finite = np.isfinite(have) & np.isfinite(want)
        distance = np.abs(have.astype(np.float64) - want.astype(np.float64))
        unit = _unit_in_last_place(want) if tolerance.is_ulp else 1.0
        return ~is_same & ~(is_finite & (distance <= tolerance.amount * unit))


def _unit_in_last_place(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Distance to the next number away from 0; for the largest number, to the one before."""
    infinity = np.array(np.inf, values.dtype)
    last_but_one = np.nextafter(np.nextafter(infinity, 0), 0)
    return np.spacing(np.minimum(np.abs(values), last_but_one)).astype(np.float64)
