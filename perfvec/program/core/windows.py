"""From the executor's record to windows: one pass over events and addresses.

Arrays are passed one by one, not in tuples: numba counts references of what it takes out of a tuple, which would cost
more than the work. Columns of the two-dimensional ones are named below.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from perfvec.program.core import footprint, outcomes, reuse
from perfvec.program.core.bits import count_lanes, lowest_lane

MIN_WINDOW = 32  # a window may end at a loop's start once it has as many tokens
MAX_WINDOW = 128  # and ends at the latest here
NO_MEMORY = -1
MARK_SUB_GROUP = 0xFFFF_FFFF
PRIVATE, LOCAL = 1, 4  # as in ADDRESS_SPACES
EMPTY = np.int64(-1)
NUM_LANES = 32
MAX_LINES = 64  # lines of one access that its shape remembers

# Columns of `segments`, a row a segment.
SEG_FIRST, SEG_END, SEG_HEADER, SEG_SITES = range(4)
# Columns of `rows`, a row a static instruction.
ROW_SITE, ROW_SPACE, ROW_BYTES, ROW_ATOMIC = range(4)
# Columns of `opened`, a row a sub-group of the work-group.
OPEN_LENGTH, OPEN_TOTAL = range(2)
# Columns of `windows`: first token, hash code.
WINDOW_START, WINDOW_HASH = range(2)
# Positions in `scalars`.
TOKENS, WINDOWS, OUTCOMES, STREAM, SUB_GROUP, EVENT, ROW, EPOCH, FIRST_SUB_GROUP = range(9)
# Columns of `shapes`, a row a static instruction: what its last access looked like, apart from where it was.
SHAPE_MASK, SHAPE_PHASE, SHAPE_STRIDE, SHAPE_SECTORS, SHAPE_LINES, SHAPE_PASSES, SHAPE_SAME = range(7)
NUM_SHAPE = 7
# What `consume` returns.
FINISHED, NEEDS_TOKENS, NEEDS_WINDOWS, NEEDS_OUTCOMES, NEEDS_STREAM, NEEDS_GROUP_STACK, NEEDS_FOOTPRINT = range(7)
# A token in one number: static instruction, lanes, outcome + 1.
TOKEN_STATIC_SHIFT, TOKEN_LANES_SHIFT = 38, 32


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
def _learn_shape(addresses, first_lane, mask, phase, row, rows, steps, shapes, lines, scratch, words, epoch):
    """Work out what an access looks like and remember it; `addresses` are its lanes'."""
    start = addresses[first_lane]
    for lane in range(NUM_LANES):
        steps[row, lane] = addresses[lane] - start
    space, num_bytes = rows[row, ROW_SPACE], rows[row, ROW_BYTES]
    shapes[row, SHAPE_MASK] = mask
    shapes[row, SHAPE_PHASE] = phase
    shapes[row, SHAPE_STRIDE] = outcomes.stride_class(addresses, mask, num_bytes)
    shapes[row, SHAPE_SAME] = outcomes.same_address(addresses, mask) if rows[row, ROW_ATOMIC] else 0
    sectors = found = passes = 0
    if space == LOCAL:
        passes = outcomes.bank_passes(addresses, mask, num_bytes, words, epoch)
    elif space == PRIVATE:
        sectors, found = outcomes.private_lines(addresses, mask, num_bytes, scratch)
    else:
        sectors = outcomes.distinct_sectors(addresses, mask, num_bytes, scratch, epoch)
        found = _lines_of(scratch, sectors, start >> outcomes.LINE_SHIFT, lines[row])
    shapes[row, SHAPE_SECTORS] = sectors
    shapes[row, SHAPE_LINES] = found
    shapes[row, SHAPE_PASSES] = passes


@njit(cache=True)
def _lines_of(sectors, count, origin, lines):
    """Lines of sectors, with the sectors of each as a mask, relative to a line; at most MAX_LINES are kept."""
    found = 0
    for i in range(count):
        line = (sectors[i] >> 2) - origin
        bit = np.int64(1) << (sectors[i] & 3)
        k = found - 1
        while k >= 0 and lines[k, 0] != line:
            k -= 1
        if k >= 0:
            lines[k, 1] |= bit
        elif found < MAX_LINES:
            lines[found, 0] = line
            lines[found, 1] = bit
            found += 1
    return found


@njit(cache=True)
def _touch(origin, lines, row, count, gs, gt, gf, ds, dt, df):
    """Touch the lines of an access; the last four fields of its packed outcome."""
    reuse_group = reuse_device = 0
    cold_group = cold_device = 0
    for i in range(count):
        line, bits = origin + lines[row, i, 0], lines[row, i, 1]
        distance, fresh = reuse.touch(gs, gt, gf, line, bits)
        if distance >= 0:
            reuse_group = max(reuse_group, _log_bucket(distance))
        if fresh:
            cold_group += count_lanes(fresh)
            far, new = footprint.touch(ds, dt, df, line, fresh)
            if distance < 0 and far >= 0:
                reuse_device = max(reuse_device, _log_bucket(far))
            cold_device += count_lanes(new)
    return reuse_group, reuse_device, cold_group, cold_device


@njit(cache=True)
def outcome_code(key):
    """Hash code of a packed outcome."""
    return _mix(np.int64(1), key)


@njit(cache=True)
def _number_of_outcome(outcome_key, outcome_slots, scalars, key):
    slot_mask = outcome_slots.shape[0] - 1
    slot = outcome_code(key) & slot_mask
    while outcome_slots[slot] != EMPTY:
        number = outcome_slots[slot]
        if outcome_key[number] == key:
            return number
        slot = (slot + 1) & slot_mask
    number = scalars[OUTCOMES]
    outcome_slots[slot] = number
    outcome_key[number] = key
    scalars[OUTCOMES] = number + 1
    return number


@njit(cache=True)
def end_window(tokens, windows, window_slots, stream, scalars, open_tokens, opened, sub_group):
    """End a sub-group's open window: find its equal or store it, and append it to the stream."""
    length = opened[sub_group, OPEN_LENGTH]
    if length == 0:
        return
    code = length
    for i in range(length):
        code = _mix(code, open_tokens[sub_group, i])
    slot_mask = window_slots.shape[0] - 1
    slot = code & slot_mask
    found = EMPTY
    while window_slots[slot] != EMPTY and found == EMPTY:
        number = window_slots[slot]
        start = windows[number, WINDOW_START]
        if windows[number, WINDOW_HASH] == code and windows[number + 1, WINDOW_START] - start == length:
            differs = np.int64(0)
            for i in range(length):
                differs |= tokens[start + i] ^ open_tokens[sub_group, i]
            if differs == 0:
                found = number
        slot = (slot + 1) & slot_mask
    if found == EMPTY:
        found = scalars[WINDOWS]
        start = scalars[TOKENS]
        window_slots[slot] = found
        windows[found, WINDOW_HASH] = code
        windows[found, WINDOW_START] = start
        windows[found + 1, WINDOW_START] = start + length
        for i in range(length):
            tokens[start + i] = open_tokens[sub_group, i]
        scalars[WINDOWS] = found + 1
        scalars[TOKENS] = start + length
    stream[scalars[STREAM]] = (scalars[FIRST_SUB_GROUP] + sub_group) << 32 | found
    scalars[STREAM] += 1
    opened[sub_group, OPEN_TOTAL] += length
    opened[sub_group, OPEN_LENGTH] = 0


@njit(cache=True)
def lacking(tokens, window_slots, outcome_slots, stream, scalars, gs, gt, ds, dt, new_tokens, new_windows, sites):
    """Which array would be too small for so many more tokens, windows and accesses; FINISHED if none."""
    if scalars[TOKENS] + new_tokens > tokens.shape[0]:
        return NEEDS_TOKENS
    if 2 * (scalars[WINDOWS] + new_windows) > window_slots.shape[0]:
        return NEEDS_WINDOWS
    if 2 * (scalars[OUTCOMES] + sites) > outcome_slots.shape[0]:
        return NEEDS_OUTCOMES
    if scalars[STREAM] + new_windows > stream.shape[0]:
        return NEEDS_STREAM
    if sites and reuse.is_crowded(gs, gt, MAX_LINES * sites):
        return NEEDS_GROUP_STACK
    if sites and footprint.is_crowded(ds, dt, MAX_LINES * sites):
        return NEEDS_FOOTPRINT
    return FINISHED


@njit(cache=True)
def consume(  # noqa: D417 (arguments that belong together are described together)
    events, addresses, segments, rows, steps, shapes, lines, scratch, words, open_tokens, opened, tokens, windows,
    window_slots, outcome_key, outcome_slots, stream, scalars, gs, gt, gf, ds, dt, df,
):  # fmt: skip
    """Take in events from where the last call stopped.

    Args:
        events: uint32 `(events, 2)`: segment and lane mask, or MARK_SUB_GROUP and the sub-group that runs now.
        addresses: int64 `(rows, lane)`: a row a memory access, in order; -1 for inactive lanes.
        segments: int64 `(segments, 4)`, columns SEG_*.
        rows: int64 `(static, 4)`, columns ROW_*.
        steps: int64 `(static, lane)`, shapes: int64 `(static, NUM_SHAPE)`, lines: int64 `(static, MAX_LINES, 2)`: what
            each instruction's last access looked like.
        scratch: int64 scratch, see `outcomes.distinct_sectors`.
        words: int64 `(LOCAL_WORDS,)` scratch.
        open_tokens: int64 `(sub-groups, MAX_WINDOW)`, opened: int64 `(sub-groups, 2)`: windows not yet ended.
        tokens: int64 `(capacity,)`, windows: int64 `(capacity, 2)`, window_slots: int64 `(power of two,)`: kept.
        outcome_key: int64 `(capacity,)`, outcome_slots: int64 `(power of two,)`: outcomes kept.
        stream: int64 `(capacity,)`: sub-group above bit 32, window below.
        scalars: int64 `(9,)`; EVENT and ROW say where to go on.
        gs, gt, gf: reuse stack of the work-group; ds, dt, df: footprint of all traced work-groups.

    Returns:
        FINISHED, or what must be enlarged before the next call.
    """
    # One long function: each array that is handed to another costs seven words on the stack, for every access.
    while scalars[EVENT] < events.shape[0]:
        segment = np.int64(events[scalars[EVENT], 0])
        mask = np.int64(events[scalars[EVENT], 1])
        if segment == MARK_SUB_GROUP:
            scalars[SUB_GROUP] = mask
            scalars[EVENT] += 1
            continue
        first, end, sites = segments[segment, SEG_FIRST], segments[segment, SEG_END], segments[segment, SEG_SITES]
        size = end - first
        lack = lacking(
            tokens, window_slots, outcome_slots, stream, scalars, gs, gt, ds, dt, size + 2 * MAX_WINDOW,
            2 + size // MAX_WINDOW, sites,
        )  # fmt: skip
        if lack != FINISHED:
            return lack
        sub = scalars[SUB_GROUP]
        length = opened[sub, OPEN_LENGTH]
        if (segments[segment, SEG_HEADER] and length >= MIN_WINDOW) or length + size > MAX_WINDOW:
            end_window(tokens, windows, window_slots, stream, scalars, open_tokens, opened, sub)
        lanes = count_lanes(mask)
        first_lane = lowest_lane(mask)
        length = opened[sub, OPEN_LENGTH]
        for row in range(first, end):
            if length == MAX_WINDOW:
                opened[sub, OPEN_LENGTH] = length
                end_window(tokens, windows, window_slots, stream, scalars, open_tokens, opened, sub)
                length = 0
            memory = NO_MEMORY
            if rows[row, ROW_SITE] >= 0:
                at = scalars[ROW] + rows[row, ROW_SITE]
                start = addresses[at, first_lane]
                space = rows[row, ROW_SPACE]
                phase = start & (3 if space == LOCAL else outcomes.LINE_BYTES - 1)
                differs = (shapes[row, SHAPE_MASK] ^ mask) | (shapes[row, SHAPE_PHASE] ^ phase)
                if differs == 0:
                    for lane in range(NUM_LANES):
                        differs |= (addresses[at, lane] - start - steps[row, lane]) & -((mask >> lane) & 1)
                if differs:
                    scalars[EPOCH] += 1
                    _learn_shape(
                        addresses[at], first_lane, mask, phase, row, rows, steps, shapes, lines, scratch, words,
                        scalars[EPOCH],
                    )  # fmt: skip
                reuse_group = reuse_device = cold_group = cold_device = 0
                if space != LOCAL and space != PRIVATE:
                    reuse_group, reuse_device, cold_group, cold_device = _touch(
                        start >> outcomes.LINE_SHIFT, lines, row, shapes[row, SHAPE_LINES], gs, gt, gf, ds, dt, df
                    )
                key = pack(
                    shapes[row, SHAPE_SECTORS], shapes[row, SHAPE_LINES], shapes[row, SHAPE_PASSES],
                    shapes[row, SHAPE_SAME], shapes[row, SHAPE_STRIDE], reuse_group, reuse_device, cold_group,
                    cold_device,
                )  # fmt: skip
                memory = _number_of_outcome(outcome_key, outcome_slots, scalars, key)
            open_tokens[sub, length] = row << TOKEN_STATIC_SHIFT | lanes << TOKEN_LANES_SHIFT | (memory + 1)
            length += 1
        opened[sub, OPEN_LENGTH] = length
        scalars[ROW] += sites
        scalars[EVENT] += 1
    return FINISHED


@njit(cache=True)
def insert_all(slots, codes):
    """Fill an empty hash table with the numbers 0, 1, 2 ... under their codes."""
    slot_mask = slots.shape[0] - 1
    for number in range(codes.shape[0]):
        slot = codes[number] & slot_mask
        while slots[slot] != EMPTY:
            slot = (slot + 1) & slot_mask
        slots[slot] = number


@njit(cache=True)
def outcome_codes(keys):
    """Hash codes of packed outcomes."""
    codes = np.empty_like(keys)
    for i in range(keys.shape[0]):
        codes[i] = outcome_code(keys[i])
    return codes
