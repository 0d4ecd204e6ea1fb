"""How numba compiles what runs for each event of the record, and what runs over tables."""

from __future__ import annotations

import logging
from typing import Any

from numba import njit

logger = logging.getLogger(__name__)


def _keeps_code() -> bool:
    """Whether numba finds a folder for compiled code: beside the module, or the user's, or `NUMBA_CACHE_DIR`."""
    try:
        njit(cache=True)(_keeps_code)
    except RuntimeError:  # numba's way to say that it may write to none of them
        logger.warning(
            "numba finds no folder that it may keep compiled code in, so each start compiles anew for some 20 seconds; "
            "set NUMBA_CACHE_DIR to a folder that can be written"
        )
        return False
    return True


_CACHE = _keeps_code()
# Arrays are not counted as references: with counts, a third of the time of an irregular access goes into atomic
# increments for what is taken out of an array or handed to another function. Such functions cannot make arrays.
_UNCOUNTED: dict[str, Any] = {"_nrt": False}
compiled = njit(cache=_CACHE, **_UNCOUNTED)
# An array that is handed to a function costs nine words on the stack, unless the function becomes part of its caller.
inlined = njit(cache=_CACHE, forceinline=True, **_UNCOUNTED)
# For functions that make arrays.
counted = njit(cache=_CACHE)
