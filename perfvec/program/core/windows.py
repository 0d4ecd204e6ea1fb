"""From the executor's record to windows: one pass over events and addresses.

The state is a handful of arrays (named tuples of them below), so that a pass can stop when one is full, be enlarged
by its Python owner and go on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from perfvec.program.core import outcomes, reuse

MIN_WINDOW = 32  # a window may end at a loop's start once it has as many tokens
MAX_WINDOW = 128  # and ends at the latest here
NO_MEMORY = -1
MARK_SUB_GROUP = 0xFFFF_FFFF
PRIVATE, GLOBAL, CONSTANT, LOCAL = 1, 2, 3, 4  # as in ADDRESS_SPACES
OFFSET_MASK = (1 << 40) - 1
EMPTY = np.int64(-1)
MAX_SECTORS = 192

# Positions in `Progress.scalars`.
TOKENS, WINDOWS, OUTCOMES, STREAM, SUB_GROUP, EVENT, ROW, EPOCH, FIRST_SUB_GROUP = range(9)
# What `consume` returns.
FINISHED, NEEDS_TOKENS, NEEDS_WINDOWS, NEEDS_OUTCOMES, NEEDS_STREAM, NEEDS_GROUP_STACK, NEEDS_DEVICE_STACK = range(7)


class Kernel(NamedTuple):
    """What the pass knows of the kernel. Rows are rows of the static table."""

    start: np.ndarray  # int64 (segments + 1,): first row of each segment
    is_header: np.ndarray  # bool (segments,): a loop jumps back to the segment
    num_sites: np.ndarray  # int64 (segments,): address rows that an event of the segment has
    site: np.ndarray  # int64 (rows,): address row of the instruction in the segment, -1 if none
    space: np.ndarray  # uint8 (rows,): address space
    access_bytes: np.ndarray  # int64 (rows,)
    is_atomic: np.ndarray  # bool (rows,)


class Open(NamedTuple):
    """Windows not yet ended, one a sub-group of the work-group."""

    static: np.ndarray  # uint32 (sub-groups, MAX_WINDOW)
    lanes: np.ndarray  # uint8 (sub-groups, MAX_WINDOW)
    memory: np.ndarray  # int32 (sub-groups, MAX_WINDOW)
    length: np.ndarray  # int64 (sub-groups,)
    total: np.ndarray  # int64 (sub-groups,): tokens of the sub-group so far


class Store(NamedTuple):
    """What is kept."""

    token_static: np.ndarray  # uint32 (capacity,)
    token_lanes: np.ndarray  # uint8
    token_memory: np.ndarray  # int32
    window_start: np.ndarray  # int64 (capacity,)
    window_hash: np.ndarray  # int64 (capacity,)
    window_slots: np.ndarray  # int64 (power of two,): window numbers by hash
    outcome_key: np.ndarray  # int64 (capacity,)
    outcome_slots: np.ndarray  # int64 (power of two,)
    stream_sub_group: np.ndarray  # int64 (capacity,)
    stream_window: np.ndarray  # uint32 (capacity,)


class Progress(NamedTuple):
    """Scalars and scratch."""

    scalars: np.ndarray  # int64 (9,)
    stamps: np.ndarray  # int64 (STAMP_SLOTS,)
    values: np.ndarray  # int64 (STAMP_SLOTS,)
    sectors: np.ndarray  # int64 (MAX_SECTORS,)
    words: np.ndarray  # int64 (LOCAL_WORDS,)
    per_bank: np.ndarray  # int64 (NUM_BANKS,)


class Stack(NamedTuple):
    """A reuse stack; see `perfvec.program.core.reuse`."""

    state: np.ndarray
    table: np.ndarray
    tree: np.ndarray


@njit(cache=True)
def _mix(value, more):
    value = (value ^ more) * np.int64(-7046029254386353131)
    return value ^ (value >> 29)


@njit(cache=True)
def _log_bucket(distance):
    """1 + floor(log2(1 + distance))."""
    bucket = 1
    while distance > 0 and bucket < 31:
        distance = (distance - 1) >> 1
        bucket += 1
    return bucket


@njit(cache=True)
def pack(sectors, lines, passes, same, stride, reuse_group, reuse_device, cold_group, cold_device):
    """One access outcome in 61 bits; `unpack_outcomes` of `perfvec.program.record` reads it."""
    key = np.int64(min(sectors, 255))
    key = key << 8 | min(lines, 255)
    key = key << 8 | min(passes, 255)
    key = key << 6 | min(same, 63)
    key = key << 3 | stride
    key = key << 6 | reuse_group
    key = key << 6 | reuse_device
    key = key << 8 | min(cold_group, 255)
    return key << 8 | min(cold_device, 255)


@njit(cache=True)
def _touch_lines(progress, count, group_stack, device_stack):
    """Touch the lines of the sectors just collected; they need not be sorted, but a line's sectors are near each other."""
    sectors = progress.sectors
    lines = 0
    reuse_group = 0
    reuse_device = 0
    cold_group = 0
    cold_device = 0
    i = 0
    while i < count:
        line = sectors[i] >> 2
        bits = np.int64(0)
        j = i
        while j < count and sectors[j] >> 2 == line:
            bits |= np.int64(1) << (sectors[j] & 3)
            j += 1
        i = j
        lines += 1
        distance, fresh = reuse.touch(group_stack.state, group_stack.table, group_stack.tree, line, bits)
        if distance >= 0:
            reuse_group = max(reuse_group, _log_bucket(distance))
        if fresh:
            for b in range(4):
                cold_group += (fresh >> b) & 1
            # Lines that the work-group already has keep their place among all: it ran without a break.
            far, new = reuse.touch(device_stack.state, device_stack.table, device_stack.tree, line, fresh)
            if far >= 0 and distance < 0:
                reuse_device = max(reuse_device, _log_bucket(far))
            for b in range(4):
                cold_device += (new >> b) & 1
    return lines, reuse_group, reuse_device, cold_group, cold_device


@njit(cache=True)
def _outcome(kernel, row, mask, addresses, progress, group_stack, device_stack):
    """The packed outcome of one access."""
    access_bytes = kernel.access_bytes[row]
    space = kernel.space[row]
    progress.scalars[EPOCH] += 1
    epoch = progress.scalars[EPOCH]
    stride = outcomes.stride_class(addresses, mask, access_bytes)
    same = outcomes.same_address(addresses, mask) if kernel.is_atomic[row] else 0
    if space == LOCAL:
        passes = outcomes.bank_passes(addresses, mask, access_bytes, progress.words, epoch, progress.per_bank)
        return pack(0, 0, passes, same, stride, 0, 0, 0, 0)
    if space == PRIVATE:
        sectors, lines = outcomes.private_lines(addresses & OFFSET_MASK, mask, access_bytes, progress.sectors)
        return pack(sectors, lines, 0, same, stride, 0, 0, 0, 0)
    count = outcomes.distinct_sectors(
        addresses, mask, access_bytes, progress.stamps, progress.values, epoch, progress.sectors
    )
    lines, reuse_group, reuse_device, cold_group, cold_device = _touch_lines(
        progress, count, group_stack, device_stack
    )
    return pack(count, lines, 0, same, stride, reuse_group, reuse_device, cold_group, cold_device)


@njit(cache=True)
def _number_of_outcome(store, scalars, key):
    mask = store.outcome_slots.shape[0] - 1
    slot = _mix(np.int64(1), key) & mask
    while store.outcome_slots[slot] != EMPTY:
        number = store.outcome_slots[slot]
        if store.outcome_key[number] == key:
            return number
        slot = (slot + 1) & mask
    number = scalars[OUTCOMES]
    store.outcome_slots[slot] = number
    store.outcome_key[number] = key
    scalars[OUTCOMES] = number + 1
    return number


@njit(cache=True)
def _is_window(store, number, opened, sub_group):
    start = store.window_start[number]
    length = opened.length[sub_group]
    if store.window_start[number + 1] - start != length:
        return False
    for i in range(length):
        if (
            store.token_static[start + i] != opened.static[sub_group, i]
            or store.token_lanes[start + i] != opened.lanes[sub_group, i]
            or store.token_memory[start + i] != opened.memory[sub_group, i]
        ):
            return False
    return True


@njit(cache=True)
def end_window(store, scalars, opened, sub_group):
    """End a sub-group's open window: find its equal or store it, and append it to the stream."""
    length = opened.length[sub_group]
    if length == 0:
        return
    code = np.int64(length)
    for i in range(length):
        code = _mix(code, np.int64(opened.static[sub_group, i]))
        code = _mix(code, np.int64(opened.memory[sub_group, i]) << 8 | np.int64(opened.lanes[sub_group, i]))
    mask = store.window_slots.shape[0] - 1
    slot = code & mask
    found = EMPTY
    while store.window_slots[slot] != EMPTY:
        number = store.window_slots[slot]
        if store.window_hash[number] == code and _is_window(store, number, opened, sub_group):
            found = number
            break
        slot = (slot + 1) & mask
    if found == EMPTY:
        found = scalars[WINDOWS]
        start = scalars[TOKENS]
        store.window_slots[slot] = found
        store.window_hash[found] = code
        store.window_start[found] = start
        store.window_start[found + 1] = start + length
        for i in range(length):
            store.token_static[start + i] = opened.static[sub_group, i]
            store.token_lanes[start + i] = opened.lanes[sub_group, i]
            store.token_memory[start + i] = opened.memory[sub_group, i]
        scalars[WINDOWS] = found + 1
        scalars[TOKENS] = start + length
    store.stream_sub_group[scalars[STREAM]] = scalars[FIRST_SUB_GROUP] + sub_group
    store.stream_window[scalars[STREAM]] = found
    scalars[STREAM] += 1
    opened.total[sub_group] += length
    opened.length[sub_group] = 0


@njit(cache=True)
def _lack(store, scalars, windows, tokens, sites, group_stack, device_stack):
    """Which array would be too small for the next event, if any."""
    if scalars[TOKENS] + tokens > store.token_static.shape[0]:
        return NEEDS_TOKENS
    if 2 * (scalars[WINDOWS] + windows) > store.window_slots.shape[0]:
        return NEEDS_WINDOWS
    if 2 * (scalars[OUTCOMES] + sites) > store.outcome_slots.shape[0]:
        return NEEDS_OUTCOMES
    if scalars[STREAM] + windows > store.stream_window.shape[0]:
        return NEEDS_STREAM
    if sites and reuse.is_crowded(group_stack.state, group_stack.table, 64 * sites):
        return NEEDS_GROUP_STACK
    if sites and reuse.is_crowded(device_stack.state, device_stack.table, 64 * sites):
        return NEEDS_DEVICE_STACK
    return FINISHED


@njit(cache=True)
def consume(kernel, events, addresses, opened, store, progress, group_stack, device_stack):
    """Take in events from where the last call stopped.

    Args:
        kernel: `Kernel`.
        events: uint32 `(events, 2)`: segment and lane mask, or MARK_SUB_GROUP and the sub-group that runs now.
        addresses: int64 `(rows, lane)`: a row a memory access, in order.
        opened: `Open`.
        store: `Store`.
        progress: `Progress`; its scalars EVENT and ROW say where to go on.
        group_stack: `Stack` of the work-group.
        device_stack: `Stack` of all traced work-groups.

    Returns:
        FINISHED, or what must be enlarged before the next call.
    """
    scalars = progress.scalars
    while scalars[EVENT] < events.shape[0]:
        segment = np.int64(events[scalars[EVENT], 0])
        mask = np.int64(events[scalars[EVENT], 1])
        if segment == MARK_SUB_GROUP:
            scalars[SUB_GROUP] = mask
            scalars[EVENT] += 1
            continue
        first, end = kernel.start[segment], kernel.start[segment + 1]
        size = end - first
        windows = 2 + size // MAX_WINDOW
        lack = _lack(
            store, scalars, windows, size + 2 * MAX_WINDOW, kernel.num_sites[segment], group_stack, device_stack
        )
        if lack != FINISHED:
            return lack
        sub_group = scalars[SUB_GROUP]
        length = opened.length[sub_group]
        if (kernel.is_header[segment] and length >= MIN_WINDOW) or (length and length + size > MAX_WINDOW):
            end_window(store, scalars, opened, sub_group)
        lanes = 0
        bits = mask
        while bits:
            bits &= bits - 1
            lanes += 1
        for row in range(first, end):
            if opened.length[sub_group] == MAX_WINDOW:
                end_window(store, scalars, opened, sub_group)
            memory = NO_MEMORY
            if kernel.site[row] >= 0:
                key = _outcome(
                    kernel, row, mask, addresses[scalars[ROW] + kernel.site[row]], progress, group_stack, device_stack
                )
                memory = _number_of_outcome(store, scalars, key)
            at = opened.length[sub_group]
            opened.static[sub_group, at] = row
            opened.lanes[sub_group, at] = lanes
            opened.memory[sub_group, at] = memory
            opened.length[sub_group] = at + 1
        scalars[ROW] += kernel.num_sites[segment]
        scalars[EVENT] += 1
    return FINISHED


@njit(cache=True)
def insert_all(slots, codes):
    """Fill an empty hash table with the numbers 0, 1, 2 ... under their codes."""
    mask = slots.shape[0] - 1
    for number in range(codes.shape[0]):
        slot = codes[number] & mask
        while slots[slot] != EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = number
