"""From the executor's record to how many atomic operations went to each address: one pass over its events."""

from __future__ import annotations

import numpy as np

from perfvec.program.core.bits import count_lanes, lowest_lane
from perfvec.program.core.jit import counted
from perfvec.program.core.windows import MARK_GROUP_END, MARK_SUB_GROUP

# Scalars of a count, in its `state` array: the next event, its first address row, entries, rows counted so far.
EVENT, ROW, ENTRIES, STAMP = range(4)
# Columns of its table. Counts are of one instruction's operations on one address; see `count_row`.
ADDRESS, INSTRUCTION, BY_SUB_GROUP, BY_LANE, SERIAL, LAST_STAMP = range(6)
EMPTY = np.int64(-1)
# What `consume` returns.
FINISHED, NEEDS_ROOM, GROUP_ENDED = range(3)


def new_table(num_slots: int):
    """An empty table of so many slots, a power of two; it takes half as many entries before it must grow."""
    return np.full((num_slots, 6), EMPTY, np.int64)


@counted
def _slot_of(table, address, instruction):
    mask = table.shape[0] - 1
    code = address ^ (address >> 28) ^ (instruction * 0x2545_F491)
    slot = ((code & 0x7FFF_FFFF) * 0x9E37_79B1 >> 11) & mask
    while table[slot, ADDRESS] != EMPTY and (
        table[slot, ADDRESS] != address or table[slot, INSTRUCTION] != instruction
    ):
        slot = (slot + 1) & mask
    return slot


@counted
def enlarged(table):
    """A table with four times the slots and the same entries."""
    new = np.full((4 * table.shape[0], table.shape[1]), EMPTY, np.int64)
    for old in range(table.shape[0]):
        if table[old, ADDRESS] != EMPTY:
            new[_slot_of(new, table[old, ADDRESS], table[old, INSTRUCTION])] = table[old]
    return new


@counted
def count_row(addresses, mask, instruction, state, table):
    """Count the operations of one execution by a sub-group.

    Each distinct address counts once by sub-group, and once a lane by lane. Serial operations are those that a device
    carries out one after another: one where all lanes have one address, since they are then combined, whether the
    result is used or not (docs/decisions.md, 12); otherwise one a lane.

    Args:
        addresses: Address by lane, shape `(lane,)`.
        mask: Bit mask of the active lanes.
        instruction: Number of the atomic instruction.
        state: Scalars of the count.
        table: Its hash table, with room for 32 more entries.
    """
    state[STAMP] += 1
    first = addresses[lowest_lane(mask)]
    is_combined = True
    rest = mask
    while rest and is_combined:
        is_combined = addresses[lowest_lane(rest)] == first
        rest &= rest - 1
    rest = mask
    while rest:
        lane = lowest_lane(rest)
        rest &= rest - 1
        slot = _slot_of(table, addresses[lane], instruction)
        if table[slot, ADDRESS] == EMPTY:
            state[ENTRIES] += 1
            table[slot, ADDRESS] = addresses[lane]
            table[slot, INSTRUCTION] = instruction
            table[slot, BY_SUB_GROUP:] = 0
        if table[slot, LAST_STAMP] != state[STAMP]:
            table[slot, LAST_STAMP] = state[STAMP]
            table[slot, BY_SUB_GROUP] += 1
        if is_combined:
            table[slot, BY_LANE] += count_lanes(mask)
            table[slot, SERIAL] += 1
            return
        table[slot, BY_LANE] += 1
        table[slot, SERIAL] += 1


@counted
def sum_by_pair(pair, count, weight, num_pairs):
    """Plain and weighted sums of counts; float64 `(pairs,)` each.

    Args:
        pair: int64 `(entries,)`: the pair of each, from 0 to before `num_pairs`.
        count: int64 or bool times int64 `(entries,)`.
        weight: float64 `(entries,)`.
        num_pairs: How many pairs there are.
    """
    plain, weighted = np.zeros(num_pairs), np.zeros(num_pairs)
    for entry in range(pair.shape[0]):
        plain[pair[entry]] += count[entry]
        weighted[pair[entry]] += count[entry] * weight[entry]
    return plain, weighted


@counted
def consume(events, addresses, num_sites, first_atomic, site, state, table):
    """Count the atomics of a piece of the record, from where the last call stopped.

    Args:
        events: uint32 `(events, 2)`: segment and lane mask, or a mark of the driver.
        addresses: int64 `(rows, lane)`: a row a memory access, in order.
        num_sites: int64 `(segments,)`: rows of each segment's address block.
        first_atomic: int64 `(segments + 1,)`: first atomic instruction of each segment, and the end of the last.
        site: int64 `(atomics,)`: row of the segment's address block that the instruction fills.
        state: int64 `(4,)`: scalars of the count.
        table: int64 `(power of two, 6)`: its hash table.

    Returns:
        FINISHED, or NEEDS_ROOM if the table must grow before the next call, or GROUP_ENDED if it must be emptied.
    """
    while state[EVENT] < events.shape[0]:
        segment, mask = events[state[EVENT], 0], np.int64(events[state[EVENT], 1])
        if segment == MARK_GROUP_END:
            state[EVENT] += 1
            return GROUP_ENDED
        if segment != MARK_SUB_GROUP:
            first, end = first_atomic[segment], first_atomic[segment + 1]
            if 2 * (state[ENTRIES] + 32 * (end - first)) > table.shape[0]:
                return NEEDS_ROOM
            for atomic in range(first, end):
                count_row(addresses[state[ROW] + site[atomic]], mask, atomic, state, table)
            state[ROW] += num_sites[segment]
        state[EVENT] += 1
    return FINISHED
