"""How numba compiles the timing model's loops: kept on disk wherever numba finds a folder for it."""

from __future__ import annotations

from typing import Any

from numba import njit


def _keeps_code() -> bool:
    try:
        njit(cache=True)(_keeps_code)
    except RuntimeError:  # numba's way to say that it may write to none of its folders
        return False
    return True


_CACHE = _keeps_code()
# No value here is ever NaN, which lets a maximum be one machine instruction.
_MATH = {"nnan", "nsz"}
_UNCOUNTED: dict[str, Any] = {"_nrt": False}
counted = njit(cache=_CACHE, fastmath=_MATH)
# Without counts of references, so that a row of an array costs nothing to name. Such functions cannot make arrays.
compiled = njit(cache=_CACHE, fastmath=_MATH, **_UNCOUNTED)
inlined = njit(cache=_CACHE, fastmath=_MATH, **_UNCOUNTED, forceinline=True)
