"""How numba compiles what runs for each event of the record.

Arrays are not counted as references there: with counts, a third of the time of an irregular access goes into atomic
increments of what is taken out of an array or handed to another function. Such functions cannot make arrays.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_UNCOUNTED: dict[str, Any] = {"_nrt": False}
compiled = njit(cache=True, **_UNCOUNTED)
# An array that is handed to a function costs nine words on the stack, unless the function becomes part of its caller.
inlined = njit(cache=True, forceinline=True, **_UNCOUNTED)
