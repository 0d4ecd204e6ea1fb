"""Conversions at the edges. Inside there are only seconds, bytes, hertz and cycles."""

from __future__ import annotations

import math

NS_PER_S = 1e9
US_PER_S = 1e6
MS_PER_S = 1e3
BYTES_PER_GB = 1e9
BYTES_PER_KIB = 2**10
BYTES_PER_GIB = 2**30

_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTE_STEPS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def format_time(seconds: float) -> str:
    """Show a time with three significant digits in the unit that suits it, such as `12.3 µs`."""
    if not math.isfinite(seconds):
        return str(seconds)
    for scale, unit in _TIME_STEPS:
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds / scale < 999.5 else f"{seconds / scale:.0f} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def format_bytes(num_bytes: float) -> str:
    """Show a size in the largest binary unit that it reaches, such as `1.5 MiB`."""
    for scale, unit in _BYTE_STEPS:
        if num_bytes >= scale:
            return f"{num_bytes / scale:.3g} {unit}"
    return f"{num_bytes:.0f} B"


def format_percent(fraction: float) -> str:
    """Show a fraction as a percentage with one decimal, such as `12.3 %`."""
    return f"{100 * fraction:.1f} %"
