"""From the executor's record to windows: one pass over events and addresses.

A window is kept as words: one for each run of a part of a segment, with its number of lanes, and one for each memory
outcome of that part. What a part's tokens are is known from the static table, so that the cost of an instruction that
does not touch memory is nil; `expand_tokens` writes them out once there are many. Of windows that were written out only
two hash codes stay: windows with equal codes are taken for equal.

Columns of the two-dimensional arrays are named below.
"""

from __future__ import annotations

import numpy as np

from perfvec.program.core import lines as reuse
from perfvec.program.core import outcomes
from perfvec.program.core.bits import count_lanes, lowest_lane, unsigned
from perfvec.program.core.jit import compiled, counted, inlined

MIN_WINDOW = 32  # a window may end at a loop's start once it has as many tokens
MAX_WINDOW = 128  # and ends at the latest here
MAX_WORDS = 2 * MAX_WINDOW  # of a window: each token may be a part of its own and have an outcome
NO_MEMORY = -1
MARK_SUB_GROUP, MARK_GROUP_END = 0xFFFF_FFFF, 0xFFFF_FFFE  # as in the driver
PRIVATE, LOCAL = 1, 4  # as in ADDRESS_SPACES
EMPTY = np.int64(-1)
NUM_LANES = 32
ALL_LANES = 0xFFFF_FFFF

# Columns of `segments`, a row a segment: instructions, whether a loop begins here, address rows, first part, end.
SEG_SIZE, SEG_HEADER, SEG_SITES, SEG_PART, SEG_PART_END = range(5)
# Columns of `parts`, pieces of segments that fit into a window: first instruction, end, first site, end.
PART_FIRST, PART_END, PART_SITE, PART_SITE_END = range(4)
# Columns of `sites`, a row a memory access of a part: static instruction and address row of its segment.
SITE_ROW, SITE_ADDRESS = range(2)
# Columns of `rows`, a row a static instruction.
ROW_SPACE, ROW_BYTES, ROW_ATOMIC = range(3)
# Columns of `opened`, a row a sub-group of the work-group: tokens and words of the open window, all tokens.
OPEN_LENGTH, OPEN_WORDS, OPEN_TOTAL = range(3)
# Columns of `windows`: its two hash codes.
WINDOW_CODE, WINDOW_CHECK = range(2)
# Positions in `scalars`; WORDS are those of windows that have not been written out.
WINDOWS, OUTCOMES, STREAM, SUB_GROUP, EVENT, ROW, EPOCH, WORDS = range(8)
NUM_SCALARS = 8
# Columns of `shapes`, a row a static instruction: what its last access looked like, apart from where it was, and the
# outcome that it had last.
SHAPE_MASK, SHAPE_PHASE, SHAPE_KEY, SHAPE_MORE, SHAPE_LINES, LAST_KEY, LAST_MORE, LAST_OUTCOME = range(8)
NUM_SHAPE = 8
FEW_LANES = 4  # of an access whose shape is worked out anew each time, which is quicker than to compare it
# What `consume` returns.
FINISHED, NEEDS_WORDS, NEEDS_WINDOWS, NEEDS_OUTCOMES, NEEDS_STREAM, NEEDS_MARKS = range(6)
_LANES_SHIFT = 6  # of a part's word: lanes below
# A slot of a hash table holds the upper bits of a code, so that few others are looked at, and a number; its place
# depends on the bits from SLOT_SHIFT on, since lower bits of a window's code depend on few bits of its words.
SLOT_SHIFT, _TAG_SHIFT, _NUMBER = 24, 32, np.int64(0xFFFF_FFFF)
# Odd multipliers of a window's words, a row a code.
_KEYS = np.random.default_rng(0).integers(-(1 << 63), 1 << 63, (2, MAX_WORDS)) | 1
_LINES_SHIFT = 45  # of a packed outcome: sectors and lines above, what does not depend on the place in a line below
_KEY_SHIFT = 28  # of a packed outcome: what an access's shape says, above what its lines have been through


@inlined
def _mix(value, more):
    value = (value ^ more) * np.int64(-7046029254386353131)
    return value ^ (value >> 29)


@inlined
def pack_shape(sectors, num_lines, passes, same, stride):
    """The part of a packed outcome that does not depend on what was touched before."""
    key = np.int64(min(sectors, 255))
    key = key << 8 | min(num_lines, 255)
    key = key << 8 | min(passes, 255)
    key = key << 6 | min(same, 63)
    return (key << 3 | stride) << _KEY_SHIFT


@inlined
def pack_reuse(reuse_group, reuse_device, cold_group, cold_device):
    """The other part; both together have 61 bits, and `unpack_outcomes` of `perfvec.program.record` reads them."""
    key = np.int64(reuse_group) << 6 | reuse_device
    key = key << 8 | min(cold_group, 255)
    return key << 8 | min(cold_device, 255)


@inlined
def pack_more(distinct, sectors_8, lines_8, sectors_16, lines_16):
    """A second number with the rest of what an access's shape says, of 38 bits."""
    key = np.int64(distinct)
    key = key << 8 | min(sectors_8, 255)
    key = key << 8 | min(lines_8, 255)
    key = key << 8 | min(sectors_16, 255)
    return key << 8 | min(lines_16, 255)


@inlined
def _learn_shape(addresses, first_lane, mask, phase, row, rows, steps, shapes, lines, scratch, narrow, words, epoch):
    """Work out what an access looks like and remember it; `addresses` are its lanes'."""
    start = addresses[first_lane]
    for lane in range(NUM_LANES):
        steps[row, lane] = addresses[lane] - start
    space, num_bytes = rows[row, ROW_SPACE], rows[row, ROW_BYTES]
    stride = outcomes.stride_class(addresses, mask, num_bytes)
    same = distinct = 0
    if rows[row, ROW_ATOMIC]:
        same, distinct = outcomes.shared_addresses(addresses, mask)
    sectors = found = passes = 0
    narrow[:] = 0
    if space == LOCAL:
        passes = outcomes.bank_passes(addresses, mask, num_bytes, words, epoch)
    elif space == PRIVATE:
        sectors, found = outcomes.private_lines(addresses, mask, num_bytes, scratch)
    else:
        sectors, found = outcomes.distinct_lines(
            addresses, mask, num_bytes, start >> outcomes.LINE_SHIFT, lines[row], scratch, epoch, narrow
        )
    shapes[row, SHAPE_MASK] = mask
    shapes[row, SHAPE_PHASE] = phase
    shapes[row, SHAPE_LINES] = found
    shapes[row, SHAPE_KEY] = pack_shape(sectors, found, passes, same, stride)
    shapes[row, SHAPE_MORE] = pack_more(distinct, narrow[0], narrow[1], narrow[2], narrow[3])


@inlined
def _shape_of_few(addresses, first_lane, mask, row, rows, shapes, lines, narrow):
    """Work out what an access of few lanes to cached memory looks like; whether it can be done here."""
    num_bytes = rows[row, ROW_BYTES]
    sectors, found = outcomes.few_lines(
        addresses, mask, num_bytes, addresses[first_lane] >> outcomes.LINE_SHIFT, lines[row], narrow
    )
    if sectors == 0 or rows[row, ROW_ATOMIC]:
        return False
    shapes[row, SHAPE_MASK] = 0  # no other access is like this one
    shapes[row, SHAPE_LINES] = found
    stride = outcomes.stride_class(addresses, mask, num_bytes)
    shapes[row, SHAPE_KEY] = pack_shape(sectors, found, 0, 0, stride)
    shapes[row, SHAPE_MORE] = pack_more(0, narrow[0], narrow[1], narrow[2], narrow[3])
    return True


@inlined
def _move_shape(addresses, first_lane, mask, phase, row, rows, shapes, lines, scratch, narrow, epoch):
    """Work out the lines of an access that looks like the last one of its instruction, at another place in a line."""
    key = shapes[row, SHAPE_KEY]
    is_uniform = key >> _KEY_SHIFT & 7 == outcomes.STRIDE_UNIFORM  # all lanes touch what one does
    sectors, found = outcomes.distinct_lines(
        addresses, mask & -mask if is_uniform else mask, rows[row, ROW_BYTES],
        addresses[first_lane] >> outcomes.LINE_SHIFT, lines[row], scratch, epoch, narrow,
    )  # fmt: skip
    if is_uniform:
        halves = (mask & 0xFFFF != 0) + (mask >> 16 != 0)
        quarters = (mask & 0xFF != 0) + (mask >> 8 & 0xFF != 0) + (mask >> 16 & 0xFF != 0) + (mask >> 24 != 0)
        narrow[0], narrow[1] = narrow[0] * quarters, narrow[1] * quarters
        narrow[2], narrow[3] = narrow[2] * halves, narrow[3] * halves
    shapes[row, SHAPE_PHASE] = phase
    shapes[row, SHAPE_LINES] = found
    others = key & ((np.int64(1) << _LINES_SHIFT) - 1)
    shapes[row, SHAPE_KEY] = (np.int64(min(sectors, 255)) << 8 | min(found, 255)) << _LINES_SHIFT | others
    distinct = shapes[row, SHAPE_MORE] >> 32
    shapes[row, SHAPE_MORE] = pack_more(distinct, narrow[0], narrow[1], narrow[2], narrow[3])


@inlined
def outcome_code(key, more):
    """Hash code of a packed outcome."""
    return _mix(_mix(np.int64(1), key), more)


@inlined
def _number_of_outcome(outcome_key, outcome_slots, scalars, key, more):
    slot_mask = outcome_slots.shape[0] - 1
    code = outcome_code(key, more)
    slot = unsigned((code >> SLOT_SHIFT) & slot_mask)
    while outcome_slots[slot] != EMPTY:
        if (outcome_slots[slot] ^ code) >> _TAG_SHIFT == 0:
            number = outcome_slots[slot] & _NUMBER
            if outcome_key[unsigned(number), 0] == key and outcome_key[unsigned(number), 1] == more:
                return number
        slot = unsigned((np.int64(slot) + 1) & slot_mask)
    number = scalars[OUTCOMES]
    outcome_slots[slot] = (code & ~_NUMBER) | number
    outcome_key[number, 0], outcome_key[number, 1] = key, more
    scalars[OUTCOMES] = number + 1
    return number


@inlined
def window_codes(words, num_words):
    """Two hash codes of a window's words, shape `(MAX_WORDS,)`.

    Each is a sum of products with random odd multipliers, modulo 2^64; words and multipliers being independent, two
    windows have both codes in common with a probability of less than 2^-64.

    Source:
        Lemire and Kaser, "Strongly universal string hashing is fast", The Computer Journal 57, 2014: MULTILINEAR.
    """
    code = check = np.int64(0)
    for i in range(num_words):
        word = np.int64(words[unsigned(i)]) + 1  # so that the number of words counts
        code += word * _KEYS[0, unsigned(i)]
        check += word * _KEYS[1, unsigned(i)]
    return code, check


@inlined
def end_window(words, windows, sizes, window_slots, stream, scalars, open_words, opened, first_sub_group, sub_group):
    """End a sub-group's open window: find its equal or store it, and append it to the stream."""
    length = opened[sub_group, OPEN_LENGTH]
    if length == 0:
        return
    num_words = opened[sub_group, OPEN_WORDS]
    code, check = window_codes(open_words[sub_group], num_words)
    slot_mask = window_slots.shape[0] - 1
    slot = unsigned((code >> SLOT_SHIFT) & slot_mask)
    number = EMPTY
    while number == EMPTY and window_slots[slot] != EMPTY:
        if (window_slots[slot] ^ code) >> _TAG_SHIFT == 0:
            number = window_slots[slot] & _NUMBER
            found = unsigned(number)
            if windows[found, WINDOW_CODE] != code or windows[found, WINDOW_CHECK] != check:
                number = EMPTY
        if number == EMPTY:
            slot = unsigned((np.int64(slot) + 1) & slot_mask)
    if number == EMPTY:
        number = scalars[WINDOWS]
        start = scalars[WORDS]
        window_slots[slot] = (code & ~_NUMBER) | number
        windows[number, WINDOW_CODE], windows[number, WINDOW_CHECK] = code, check
        sizes[number] = length
        for i in range(num_words):
            words[unsigned(start + i)] = open_words[unsigned(sub_group), unsigned(i)]
        scalars[WORDS] = start + num_words
        scalars[WINDOWS] = number + 1
    stream[scalars[STREAM]] = (first_sub_group + sub_group) << 32 | number
    scalars[STREAM] += 1
    opened[sub_group, OPEN_TOTAL] += length
    opened[sub_group, OPEN_LENGTH] = opened[sub_group, OPEN_WORDS] = 0


@inlined
def lacking(words, window_slots, outcome_slots, stream, scalars, new_windows, num_sites):
    """Which array would be too small for so many more windows and accesses; FINISHED if none."""
    if scalars[WORDS] + new_windows * MAX_WORDS > words.shape[0]:
        return NEEDS_WORDS
    if 2 * (scalars[WINDOWS] + new_windows) > window_slots.shape[0]:
        return NEEDS_WINDOWS
    if 2 * (scalars[OUTCOMES] + num_sites) > outcome_slots.shape[0]:
        return NEEDS_OUTCOMES
    if scalars[STREAM] + new_windows > stream.shape[0]:
        return NEEDS_STREAM
    return FINISHED


@compiled
def consume(  # noqa: D417 (arguments that belong together are described together)
    events, addresses, segments, parts, sites, rows, steps, shapes, lines, scratch, narrow, bank_words, open_words,
    opened, words, windows, sizes, window_slots, outcome_key, outcome_slots, stream, lengths, places, seen, scalars,
    base, table, marks, blocks, line_at, groups, group_blocks, state, touched,
):  # fmt: skip
    """Take in events from where the last call stopped.

    Args:
        events: uint32 `(events, 2)`: segment and lane mask, MARK_SUB_GROUP and the sub-group that runs now, or
            MARK_GROUP_END.
        addresses: int64 `(rows, lane)`: a row a memory access, in order; anything for inactive lanes.
        segments: int64 `(segments, 5)`, columns SEG_*; parts: `(parts, 4)`, PART_*; sites: `(sites, 2)`, SITE_*.
        rows: int64 `(static, 3)`, columns ROW_*.
        steps: int64 `(static, lane)`, shapes: int64 `(static, NUM_SHAPE)`, lines: int64 `(static, MAX_LINES, 2)`: what
            each instruction's last access looked like.
        scratch, narrow: int64 scratch, see `outcomes.distinct_lines`; bank_words: see `outcomes.bank_passes`.
        open_words: int32 `(sub-groups, MAX_WORDS)`, opened: int64 `(sub-groups, 3)`: windows not yet ended.
        words: int32 `(capacity,)`: of the last distinct windows, one behind the other.
        windows: int64 `(capacity, 2)`, sizes: uint8 `(capacity,)`, window_slots: int64 `(power of two,)`: codes and
            tokens of each distinct window, and a hash table of them.
        outcome_key: int64 `(capacity, 2)`, outcome_slots: int64 `(power of two,)`: outcomes kept.
        stream: int64 `(capacity,)`: sub-group above bit 32, window below.
        lengths: int64 `(work-groups, sub-groups)`: receives the tokens of each.
        places, seen: see `lines.next_group`.
        scalars: int64 `(NUM_SCALARS,)`; EVENT and ROW say where to go on.
        base, table, marks, blocks, line_at, groups, group_blocks, state, touched: see `lines.touch`.

    Returns:
        FINISHED, or what must be enlarged before the next call.
    """
    # One long function: each array that is handed to another costs seven words on the stack, for every access.
    num_sub_groups = opened.shape[0]
    while scalars[EVENT] < events.shape[0]:
        event = unsigned(scalars[EVENT])
        segment, mask = np.int64(events[event, 0]), np.int64(events[event, 1])
        if segment == MARK_SUB_GROUP:
            scalars[SUB_GROUP] = mask
            scalars[EVENT] += 1
            continue
        first_sub_group = state[reuse.GROUP] * num_sub_groups
        if segment == MARK_GROUP_END:
            lack = lacking(words, window_slots, outcome_slots, stream, scalars, num_sub_groups, 0)
            if lack != FINISHED:
                return lack
            group = state[reuse.GROUP]
            for sub in range(num_sub_groups):
                end_window(
                    words, windows, sizes, window_slots, stream, scalars, open_words, opened, first_sub_group, sub
                )
                lengths[group, sub] = opened[sub, OPEN_TOTAL]
                opened[sub, OPEN_TOTAL] = 0
            reuse.next_group(state, seen, marks, blocks, line_at, places)
            scalars[EVENT] += 1
            continue
        here = unsigned(segment)
        size, num_sites = segments[here, SEG_SIZE], segments[here, SEG_SITES]
        lack = lacking(words, window_slots, outcome_slots, stream, scalars, 2 + size // MAX_WINDOW, num_sites)
        if lack != FINISHED:
            return lack
        more_lines = reuse.MAX_LINES * num_sites
        if state[reuse.NOW] + more_lines > line_at.shape[0] and not reuse.make_room(
            state, table, marks, blocks, line_at, more_lines
        ):
            return NEEDS_MARKS
        sub = scalars[SUB_GROUP]
        length = opened[unsigned(sub), OPEN_LENGTH]
        if (segments[here, SEG_HEADER] and length >= MIN_WINDOW) or length + size > MAX_WINDOW:
            end_window(
                words, windows, sizes, window_slots, stream, scalars, open_words, opened, first_sub_group, sub
            )  # fmt: skip
        lanes = count_lanes(mask)
        first_lane = lowest_lane(mask)
        for part in range(segments[here, SEG_PART], segments[here, SEG_PART_END]):
            if opened[unsigned(sub), OPEN_LENGTH] == MAX_WINDOW:
                end_window(
                    words, windows, sizes, window_slots, stream, scalars, open_words, opened, first_sub_group, sub
                )
            num_words = opened[unsigned(sub), OPEN_WORDS]
            open_words[unsigned(sub), unsigned(num_words)] = part << _LANES_SHIFT | lanes
            num_words += 1
            for site in range(parts[unsigned(part), PART_SITE], parts[unsigned(part), PART_SITE_END]):
                row = unsigned(sites[unsigned(site), SITE_ROW])
                at = unsigned(scalars[ROW] + sites[unsigned(site), SITE_ADDRESS])
                start = addresses[at, unsigned(first_lane)]
                space = rows[row, ROW_SPACE]
                # Where words lie in banks, or interleaved by lane, only the place in a word matters.
                is_cached = space != LOCAL and space != PRIVATE
                phase = start & (outcomes.LINE_BYTES - 1 if is_cached else 3)
                is_known = (
                    is_cached
                    and lanes <= FEW_LANES
                    and _shape_of_few(addresses[at], first_lane, mask, row, rows, shapes, lines, narrow)
                )
                differs = 0 if is_known else shapes[row, SHAPE_MASK] ^ mask
                if differs == 0 and not is_known:
                    if mask == ALL_LANES:
                        for lane in range(NUM_LANES):
                            differs |= addresses[at, lane] - start - steps[row, lane]
                    else:
                        for lane in range(NUM_LANES):
                            differs |= (addresses[at, lane] - start - steps[row, lane]) & -((mask >> lane) & 1)
                is_moved = not is_known and shapes[row, SHAPE_PHASE] != phase
                if differs or (is_moved and not is_cached):
                    scalars[EPOCH] += 1
                    _learn_shape(
                        addresses[at], first_lane, mask, phase, row, rows, steps, shapes, lines, scratch, narrow,
                        bank_words, scalars[EPOCH],
                    )  # fmt: skip
                elif is_moved:
                    scalars[EPOCH] += 1
                    _move_shape(
                        addresses[at], first_lane, mask, phase, row, rows, shapes, lines, scratch, narrow,
                        scalars[EPOCH],
                    )  # fmt: skip
                key = shapes[row, SHAPE_KEY]
                if is_cached:
                    reuse_group, reuse_device, cold_group, cold_device = reuse.touch(
                        lines[row], shapes[row, SHAPE_LINES], start >> outcomes.LINE_SHIFT, base, table, marks, blocks,
                        line_at, groups, group_blocks, state, touched,
                    )  # fmt: skip
                    key |= pack_reuse(reuse_group, reuse_device, cold_group, cold_device)
                more = shapes[row, SHAPE_MORE]
                if shapes[row, LAST_KEY] != key or shapes[row, LAST_MORE] != more:
                    shapes[row, LAST_KEY], shapes[row, LAST_MORE] = key, more
                    shapes[row, LAST_OUTCOME] = _number_of_outcome(outcome_key, outcome_slots, scalars, key, more)
                open_words[unsigned(sub), unsigned(num_words)] = shapes[row, LAST_OUTCOME]
                num_words += 1
            opened[unsigned(sub), OPEN_WORDS] = num_words
            opened[unsigned(sub), OPEN_LENGTH] += parts[unsigned(part), PART_END] - parts[unsigned(part), PART_FIRST]
        scalars[ROW] += num_sites
        scalars[EVENT] += 1
    return FINISHED


@compiled
def expand_tokens(words, parts, sites, token_static, token_lanes, token_memory):  # noqa: D417
    """Write out the tokens of windows.

    Args:
        words: int32 `(words,)`: the windows' words.
        parts, sites: As for `consume`.
        token_static: uint32, token_lanes: uint8, token_memory: int32, each `(tokens,)`: receive them.
    """
    token = at = 0
    while at < words.shape[0]:
        word = words[unsigned(at)]
        part, lanes = unsigned(word >> _LANES_SHIFT), word & ((1 << _LANES_SHIFT) - 1)
        at += 1
        first = parts[part, PART_FIRST]
        for row in range(first, parts[part, PART_END]):
            place = unsigned(token + row - first)
            token_static[place], token_lanes[place], token_memory[place] = row, lanes, NO_MEMORY
        for site in range(parts[part, PART_SITE], parts[part, PART_SITE_END]):
            token_memory[unsigned(token + sites[unsigned(site), SITE_ROW] - first)] = words[unsigned(at)]
            at += 1
        token += parts[part, PART_END] - first


@counted
def order_stream(stream, start, stream_window):
    """Put the windows of a stream in the order of sub-groups.

    Args:
        stream: int64 `(entries,)`: sub-group above bit 32, window below.
        start: int64 `(sub-groups + 1,)`: where each sub-group's windows begin.
        stream_window: uint32 `(entries,)`: receives them.
    """
    place = start.copy()
    for i in range(stream.shape[0]):
        sub_group = stream[i] >> 32
        stream_window[place[sub_group]] = stream[i] & 0xFFFF_FFFF
        place[sub_group] += 1


@compiled
def insert_all(slots, codes):
    """Fill an empty hash table with the numbers 0, 1, 2 ... under their codes."""
    slot_mask = slots.shape[0] - 1
    for number in range(codes.shape[0]):
        slot = (codes[number] >> SLOT_SHIFT) & slot_mask
        while slots[slot] != EMPTY:
            slot = (slot + 1) & slot_mask
        slots[slot] = (codes[number] & ~_NUMBER) | number


@counted
def outcome_codes(keys):
    """Hash codes of packed outcomes, shape `(outcomes, 2)`."""
    codes = np.empty(keys.shape[0], np.int64)
    for i in range(keys.shape[0]):
        codes[i] = outcome_code(keys[i, 0], keys[i, 1])
    return codes
