"""Reuse between work-groups: how many distinct cache lines other work-groups touched since one touched a line last.

The tracer runs work-groups one after another, a device runs them together, so only the order of work-groups is kept,
not that inside them. A line counts for the last work-group that touched it; the distance of a touch is the number of
lines that count for later work-groups, the present one included. Counts by work-group are summed by a Fenwick tree.

Source:
    Fenwick, "A new data structure for cumulative frequency tables", 1994; checked against a list-based twin by
    tests/program/test_footprint.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from perfvec.program.core.reuse import EMPTY, LINE, slot_of

# Scalars of a footprint, in its `state` array: the present work-group's number among the traced, and the lines.
GROUP, NUM_LINES = 0, 1
# Second column of its table, behind the line: work-group and touched sectors in one number.
GROUP_AND_SECTORS = 1
_SECTOR_BITS = 4
_ALL_SECTORS = (1 << _SECTOR_BITS) - 1


def new_footprint(num_slots: int, num_groups: int):
    """Make an empty footprint.

    Args:
        num_slots: Slots of the hash table, a power of two; it holds up to half as many lines before it must grow.
        num_groups: Most work-groups that will be traced.

    Returns:
        `(state, table, tree)`: int64 `(2,)`, int64 `(num_slots, 2)`, int64 `(num_groups + 1,)`.
    """
    return np.zeros(2, np.int64), np.full((num_slots, 2), EMPTY, np.int64), np.zeros(num_groups + 1, np.int64)


@njit(cache=True)
def _add(tree, group, amount):
    i = group + 1
    while i < tree.shape[0]:
        tree[i] += amount
        i += i & -i


@njit(cache=True)
def _sum_to(tree, group):
    total = 0
    i = group + 1
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(cache=True)
def is_crowded(state, table, more):
    """Whether `more` further lines would crowd the table."""
    return 2 * (state[NUM_LINES] + more) > table.shape[0]


@njit(cache=True)
def enlarged(table):
    """A table with four times the slots and the same lines."""
    new_table = np.full((table.shape[0] * 4, 2), EMPTY, np.int64)
    for slot in range(table.shape[0]):
        if table[slot, LINE] != EMPTY:
            new_table[slot_of(new_table, table[slot, LINE])] = table[slot]
    return new_table


@njit(cache=True)
def touch(state, table, tree, line, sector_bits):
    """Touch a line from the present work-group.

    Args:
        state: Scalars of the footprint.
        table: Its hash table; not crowded.
        tree: Its Fenwick tree.
        line: The line's number, 0 or more.
        sector_bits: Mask of the four sectors that are touched.

    Returns:
        Distance in lines: -1 where no work-group has touched the line, 0 where the present one has; and the mask of
        sectors never touched before.
    """
    group = state[GROUP]
    slot = slot_of(table, line)
    if table[slot, LINE] == EMPTY:
        table[slot, LINE] = line
        table[slot, GROUP_AND_SECTORS] = group << _SECTOR_BITS | sector_bits
        state[NUM_LINES] += 1
        _add(tree, group, 1)
        return np.int64(-1), sector_bits
    before = table[slot, GROUP_AND_SECTORS] >> _SECTOR_BITS
    touched = table[slot, GROUP_AND_SECTORS] & _ALL_SECTORS
    fresh = sector_bits & ~touched
    table[slot, GROUP_AND_SECTORS] = group << _SECTOR_BITS | touched | sector_bits
    if before == group:
        return np.int64(0), fresh
    distance = state[NUM_LINES] - _sum_to(tree, before)
    _add(tree, before, -1)
    _add(tree, group, 1)
    return distance, fresh
