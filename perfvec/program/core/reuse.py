"""Exact reuse distances: how many distinct cache lines were touched since a line was touched last.

Source:
    Bennett and Kruskal, "LRU stack processing", IBM J. Res. Dev. 19, 1975: a tree over time in which each line's last
    touch is marked; the distance is the number of marks after it. Here a Fenwick tree (Fenwick 1994), compacted when
    time runs out. Checked against a list-based twin by tests/program/test_reuse.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

EMPTY = np.int64(-1)
# Scalars of a stack, in its `state` array.
NOW, NUM_LINES = 0, 1
# Columns of its table: the line, the time of its last touch, the mask of its sectors touched, the owner's number.
LINE, TIME, SECTORS, OWNER = 0, 1, 2, 3


def new_stack(num_slots: int):
    """Make an empty stack.

    Args:
        num_slots: Slots of the hash table, a power of two; it holds up to half as many lines before it must grow.

    Returns:
        `(state, table, tree)`: shapes `(2,)`, `(num_slots, 4)`, `(2 * num_slots + 1,)`.
    """
    table = np.full((num_slots, 4), EMPTY, np.int64)
    return np.zeros(2, np.int64), table, np.zeros(2 * num_slots + 1, np.int32)


@njit(cache=True)
def slot_of(table, line):
    """Where a line is in a hash table whose first column holds lines, or where it would go.

    Eight neighbouring lines share a place of eight slots: accesses that lie together are looked up together.
    """
    mask = table.shape[0] - 1
    block = line >> 3
    slot = ((((block ^ block >> 28) & 0x7FFF_FFFF) * 0x9E37_79B1 >> 11 << 3) | (line & 7)) & mask
    while table[slot, LINE] != EMPTY and table[slot, LINE] != line:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _add(tree, time, amount):
    i = time + 1
    while i < tree.shape[0]:
        tree[i] += amount
        i += i & -i


@njit(cache=True)
def _sum_to(tree, time):
    total = 0
    i = time + 1
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(cache=True)
def _compact(state, table, tree):
    """Renumber the last touches 0, 1, 2 ... in order, so that time can go on."""
    times = np.empty(state[NUM_LINES], np.int64)
    slots = np.empty(state[NUM_LINES], np.int64)
    n = 0
    for slot in range(table.shape[0]):
        if table[slot, LINE] != EMPTY:
            times[n] = table[slot, TIME]
            slots[n] = slot
            n += 1
    order = np.argsort(times[:n])
    tree[:] = 0
    for new in range(n):
        table[slots[order[new]], TIME] = new
        _add(tree, new, 1)
    state[NOW] = n


@njit(cache=True)
def is_crowded(state, table, more):
    """Whether `more` further lines would crowd the table."""
    return 2 * (state[NUM_LINES] + more) > table.shape[0]


@njit(cache=True)
def enlarged(state, table):
    """A stack with four times the slots and the same history."""
    new_table = np.full((table.shape[0] * 4, 4), EMPTY, np.int64)
    new_tree = np.zeros(2 * new_table.shape[0] + 1, np.int32)
    for slot in range(table.shape[0]):
        if table[slot, LINE] != EMPTY:
            at = slot_of(new_table, table[slot, LINE])
            new_table[at] = table[slot]
    _compact(state, new_table, new_tree)
    return new_table, new_tree


@njit(cache=True)
def touch(state, table, tree, line, sector_bits):
    """Touch a line.

    Args:
        state: Scalars of the stack.
        table: Its hash table; not crowded.
        tree: Its Fenwick tree.
        line: The line's number, 0 or more.
        sector_bits: Mask of the four sectors that are touched.

    Returns:
        Reuse distance in lines, -1 at the first touch; and the mask of sectors never touched before.
    """
    if state[NOW] + 1 >= tree.shape[0]:
        _compact(state, table, tree)
    slot = slot_of(table, line)
    now = state[NOW]
    if table[slot, LINE] == EMPTY:
        table[slot, LINE] = line
        table[slot, TIME] = now
        table[slot, SECTORS] = sector_bits
        state[NUM_LINES] += 1
        state[NOW] = now + 1
        _add(tree, now, 1)
        return np.int64(-1), sector_bits
    before = table[slot, TIME]
    fresh = sector_bits & ~table[slot, SECTORS]
    table[slot, SECTORS] |= sector_bits
    if before == now - 1:  # the most recent line: nothing moves
        return np.int64(0), fresh
    distance = np.int64(state[NUM_LINES] - _sum_to(tree, before))
    _add(tree, before, -1)
    _add(tree, now, 1)
    table[slot, TIME] = now
    state[NOW] = now + 1
    return distance, fresh


@njit(cache=True)
def clear(state, table, tree):
    """Forget everything."""
    state[:] = 0
    table[:, LINE] = EMPTY
    tree[:] = 0
