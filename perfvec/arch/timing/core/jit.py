"""How numba compiles the timing model's loops: kept on disk wherever numba finds a folder for it."""

from __future__ import annotations

from numba import njit


def _keeps_code() -> bool:
    try:
        njit(cache=True)(_keeps_code)
    except RuntimeError:  # numba's way to say that it may write to none of its folders
        return False
    return True


_CACHE = _keeps_code()
counted = njit(cache=_CACHE)
inlined = njit(cache=_CACHE, forceinline=True)
