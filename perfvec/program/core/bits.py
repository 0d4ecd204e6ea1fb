"""Bit masks of lanes: 32 bits in an int64."""

from __future__ import annotations

import numpy as np

from perfvec.program.core.jit import inlined

_DE_BRUIJN = 0x077CB531
# Place of the lowest bit by the top five bits of its product with the De Bruijn sequence.
_PLACES = np.zeros(32, np.int64)
for _place in range(32):
    _PLACES[((_DE_BRUIJN << _place) & 0xFFFF_FFFF) >> 27] = _place


@inlined
def lowest_lane(mask):
    """The lowest lane of a mask that has any.

    Source:
        Leiserson, Prokop, Randall, "Using de Bruijn sequences to index a 1 in a computer word", 1998.
    """
    return _PLACES[(((mask & -mask) * _DE_BRUIJN) & 0xFFFF_FFFF) >> 27]


@inlined
def count_lanes(mask):
    """How many lanes a mask has."""
    pairs = mask - ((mask >> 1) & 0x5555_5555)
    fours = (pairs & 0x3333_3333) + ((pairs >> 2) & 0x3333_3333)
    return ((((fours + (fours >> 4)) & 0x0F0F_0F0F) * 0x0101_0101) & 0xFFFF_FFFF) >> 24
