"""Exact reuse distances of cache lines: how many distinct lines were touched since a line was touched last.

Within a work-group distances follow the order of touches. Between work-groups only the order of work-groups is kept,
not that inside them, for the tracer runs them one after another, a device together: a line counts for the last
work-group that touched it, and the distance of a work-group's first touch is the number of lines that count for later
ones, the present one included.

A line's place in the table follows from its address, because the sizes of all memories are known. In time, a bit marks
the last touch of each line of the present work-group; marks are counted by block, so that a touch changes
two numbers, and a distance is a sum over what lies between. What counts for each work-group is kept the same way.

All lines of an access are touched in one call, and only its largest distances are wanted, as buckets of log2. Of two
lines of an access the one touched longer ago has the larger distance, but for lines in between that are new; where
these cannot change the bucket, one sum suffices.

Source:
    Bennett and Kruskal, "LRU stack processing", IBM J. Res. Dev. 19, 1975: last touches marked in time. Checked against
    list-based twins by tests/program/test_lines.py.
"""

from __future__ import annotations

import numpy as np

from perfvec.program.core.bits import count_lanes, num_digits, unsigned
from perfvec.program.core.jit import compiled, inlined
from perfvec.program.core.pages import sparse_zeros

MAX_LINES = 64  # of one access
MEMORY_SHIFT = 33  # a line's number is its memory's above this, its place in the memory below
# Columns of the table: the last work-group that touched the line + 1, the sectors touched by any and by it; when.
OWNER, TIME = range(2)
# Of what is kept of the work-groups that have ended: the last that touched a line + 1, and how many places in the grid
# did, at most 3.
_SEEN_SHIFT, _MOST_SEEN = 2, 3
NEAR = 2  # places that lie no further apart, in their order, are one: lines at their edges are shared
_OWNER_SHIFT, _DEVICE_SHIFT, _ALL_SECTORS = 8, 4, 15
_WORD_SHIFT, _BLOCK_SHIFT, _WORD_MASK = 6, 10, 63
_GROUP_BLOCK_SHIFT = 6
# Scalars of the stack, in its `state`: the moment, the work-group's lines, all lines, the work-group.
NOW, GROUP_LINES, ALL_LINES, GROUP = range(4)
_NEVER = np.int64(1) << 62


def new_table(memory_bytes: dict[int, int]):
    """Make the table of all lines of the memories.

    Args:
        memory_bytes: Size of each memory by its number.

    Returns:
        `(table, base)`: int64 `(lines, 2)`, all of it 0 and untouched, so that only what the kernel touches is ever
        in memory; and the row of each memory's first line, by number.
    """
    base = np.zeros(max(memory_bytes, default=0) + 1, np.int64)
    total = 0
    for number, num_bytes in memory_bytes.items():
        base[number] = total
        total += -(-num_bytes // 128)
    return sparse_zeros(16 * total).view(np.int64).reshape(total, 2), base


def new_marks(num_moments: int):
    """Make marks for so many moments, a power of two of 1,024 or more.

    Returns:
        `(marks, blocks, line_at)`: int64 `(moments / 64,)`: a bit a moment; int64 `(moments / 1024,)`: how many are
        set; int64 `(moments,)`: the row of the line that was touched in each moment.
    """
    return (
        np.zeros(num_moments >> _WORD_SHIFT, np.int64),
        np.zeros(num_moments >> _BLOCK_SHIFT, np.int64),
        np.zeros(num_moments, np.int64),
    )


def new_groups(num_groups: int):
    """Make counts of lines by work-group, and by block of work-groups."""
    return np.zeros(num_groups, np.int64), np.zeros((num_groups >> _GROUP_BLOCK_SHIFT) + 1, np.int64)


def enlarged(marks, blocks, line_at):
    """Marks for four times the moments, with the same history."""
    larger = new_marks(4 * len(line_at))
    for new, old in zip(larger, (marks, blocks, line_at), strict=True):
        new[: len(old)] = old
    return larger


@inlined
def log_bucket(distance):
    """1 + floor(log2(1 + distance)), at most 31."""
    return min(num_digits(distance + 1), 31)


@inlined
def _marks_after(marks, blocks, time, now):
    """How many marks lie between two moments."""
    word, end = time >> _WORD_SHIFT, (now + _WORD_MASK) >> _WORD_SHIFT
    total = count_lanes(marks[unsigned(word)] & (np.int64(-2) << (time & _WORD_MASK)))
    word += 1
    block_end = min(((time >> _BLOCK_SHIFT) + 1) << (_BLOCK_SHIFT - _WORD_SHIFT), end)
    for i in range(word, block_end):
        total += count_lanes(marks[unsigned(i)])
    for i in range((time >> _BLOCK_SHIFT) + 1, ((now - 1) >> _BLOCK_SHIFT) + 1):
        total += blocks[unsigned(i)]
    return total


@inlined
def _lines_after(groups, group_blocks, before, group):
    """How many lines count for later work-groups than one, up to the present one."""
    total = np.int64(0)
    block = before >> _GROUP_BLOCK_SHIFT
    for i in range(before + 1, min((block + 1) << _GROUP_BLOCK_SHIFT, group + 1)):
        total += groups[unsigned(i)]
    for i in range(block + 1, (group >> _GROUP_BLOCK_SHIFT) + 1):
        total += group_blocks[unsigned(i)]
    return total


@inlined
def _clear_mark(marks, blocks, time):
    marks[unsigned(time >> _WORD_SHIFT)] &= ~(np.int64(1) << (time & _WORD_MASK))
    blocks[unsigned(time >> _BLOCK_SHIFT)] -= 1


@inlined
def _set_mark(marks, blocks, time):
    marks[unsigned(time >> _WORD_SHIFT)] |= np.int64(1) << (time & _WORD_MASK)
    blocks[unsigned(time >> _BLOCK_SHIFT)] += 1


@compiled
def make_room(state, table, marks, blocks, line_at, more):
    """Renumber the last touches 0, 1, 2 ... if there are not `more` moments left; whether there are now."""
    if state[NOW] + more <= line_at.shape[0]:
        return True
    if 2 * (state[GROUP_LINES] + more) > line_at.shape[0]:
        return False
    now = 0
    for time in range(state[NOW]):
        if marks[time >> _WORD_SHIFT] >> (time & _WORD_MASK) & 1:
            row = line_at[time]
            line_at[now] = row
            table[row, TIME] = now
            now += 1
    _forget(state, marks, blocks)
    for time in range(now):
        _set_mark(marks, blocks, time)
    state[NOW] = now
    return True


@compiled
def _forget(state, marks, blocks):
    marks[: (state[NOW] >> _WORD_SHIFT) + 1] = 0
    blocks[: (state[NOW] >> _BLOCK_SHIFT) + 1] = 0


@inlined
def next_group(state, seen, marks, blocks, line_at, places):  # noqa: D417
    """Begin the next work-group.

    Args:
        seen: int64 `(lines,)`, by row of the table, 0 at first: what `count_seen` counts; if empty, nothing is kept.
        places: `(work-groups,)`: the neighbourhood that each belongs to.
    """
    group = state[GROUP]
    for time in range(state[NOW] if seen.shape[0] else 0):
        if marks[time >> _WORD_SHIFT] >> (time & _WORD_MASK) & 1:
            before = seen[line_at[time]]
            num_places = before & _MOST_SEEN
            if num_places == 0 or abs(places[group] - places[(before >> _SEEN_SHIFT) - 1]) > NEAR:
                num_places = min(num_places + 1, _MOST_SEEN)
            seen[line_at[time]] = (group + 1) << _SEEN_SHIFT | num_places
    _forget(state, marks, blocks)
    state[NOW] = state[GROUP_LINES] = 0
    state[GROUP] += 1


@compiled
def count_seen(seen, weights):
    """Which lines of a memory the ended work-groups touched.

    Args:
        seen: The memory's part of `seen`, as `next_group` keeps it.
        weights: `(work-groups,)`.

    Returns:
        How many lines; how many of these one place touched, the same each times the weight of the last work-group that
        did; how many two places touched.
    """
    lines = single = double = 0
    weighted = 0.0
    for row in range(seen.shape[0]):
        num_places = seen[row] & _MOST_SEEN
        lines += num_places > 0
        double += num_places == 2
        if num_places == 1:
            single += 1
            weighted += weights[(seen[row] >> _SEEN_SHIFT) - 1]
    return lines, single, weighted, double


@inlined
def touch(lines, count, origin, base, table, marks, blocks, line_at, groups, group_blocks, state, rows):  # noqa: D417
    """Touch the lines of one access of the present work-group, one after another.

    Args:
        lines: `(MAX_LINES, 2)`: distinct lines relative to `origin`, and which of its four sectors each touches.
        count: How many of them.
        origin: A line's number.
        base, table: See `new_table`.
        marks, blocks, line_at: See `new_marks`; there is room for the access.
        groups, group_blocks: See `new_groups`.
        state: Scalars.
        rows: Scratch, `(MAX_LINES,)`.

    Returns:
        Buckets of the largest distance within the work-group and of the largest distance between work-groups among the
        work-group's first touches, 0 where no line has been touched before; sectors that the work-group, and that any
        work-group, touches for the first time.
    """
    now, group = state[NOW], state[GROUP]
    stamp = group + 1
    # What was before. The oldest of this work-group's lines and of the others, and how many new ones stand behind it.
    oldest = oldest_group = _NEVER
    num_new = num_new_behind = num_first = num_first_behind = num_equal = 0
    cold_group = cold_device = 0
    for i in range(count):
        k = unsigned(i)
        line, bits = origin + lines[k, 0], lines[k, 1]
        row = unsigned(base[unsigned(line >> MEMORY_SHIFT)] + (line & ((np.int64(1) << MEMORY_SHIFT) - 1)))
        rows[k] = row
        word = table[row, OWNER]
        owner = word >> _OWNER_SHIFT
        if owner == stamp:
            cold_group += count_lanes(bits & ~word)
            cold_device += count_lanes(bits & ~word & ~(word >> _DEVICE_SHIFT))
            if table[row, TIME] < oldest:
                oldest = table[row, TIME]
                num_new_behind = num_new
        else:
            num_new += 1
            cold_group += count_lanes(bits)
            cold_device += count_lanes(bits & ~(word >> _DEVICE_SHIFT))
            if owner == 0:
                num_first += 1
            elif owner < oldest_group:
                oldest_group = owner
                num_first_behind = num_first
                num_equal = 0
            elif owner == oldest_group:
                num_first_behind = num_first
                num_equal += 1
    reuse_group = reuse_device = 0
    if oldest != _NEVER:
        least = _marks_after(marks, blocks, oldest, now) + num_new_behind
        reuse_group = log_bucket(least)
        if log_bucket(least + num_new - num_new_behind) != reuse_group:
            reuse_group = log_bucket(_largest_in_group(rows, count, table, marks, blocks, stamp, now))
    if oldest_group != _NEVER:
        least = _lines_after(groups, group_blocks, oldest_group - 1, group) + num_first_behind + num_equal
        reuse_device = log_bucket(least)
        if log_bucket(least + num_first - num_first_behind) != reuse_device:
            reuse_device = log_bucket(_largest_between(rows, count, table, groups, group_blocks, group))
    _move(lines, count, rows, table, marks, blocks, line_at, groups, group_blocks, state)
    return reuse_group, reuse_device, cold_group, cold_device


@inlined
def _touch_one(line, bits, base, table, marks, blocks, line_at, groups, group_blocks, state):
    """`touch` for an access of one line."""
    now, group = state[NOW], state[GROUP]
    row = base[line >> MEMORY_SHIFT] + (line & ((np.int64(1) << MEMORY_SHIFT) - 1))
    word = table[row, OWNER]
    owner, device = word >> _OWNER_SHIFT, word >> _DEVICE_SHIFT & _ALL_SECTORS
    cold_device = count_lanes(bits & ~device)
    device_bits = (device | bits) << _DEVICE_SHIFT
    if owner == group + 1:
        cold_group = count_lanes(bits & ~word)
        cold_device = count_lanes(bits & ~word & ~device)
        table[row, OWNER] = word | device_bits | bits
        time = table[row, TIME]
        if time == now - 1:  # the most recent line: nothing moves
            return np.int64(1), np.int64(0), cold_group, cold_device
        reuse_group, reuse_device = log_bucket(_marks_after(marks, blocks, time, now)), np.int64(0)
        _clear_mark(marks, blocks, time)
    else:
        cold_group = count_lanes(bits)
        reuse_group = reuse_device = np.int64(0)
        if owner == 0:
            state[ALL_LINES] += 1
        else:
            reuse_device = log_bucket(_lines_after(groups, group_blocks, owner - 1, group))
            groups[owner - 1] -= 1
            group_blocks[(owner - 1) >> _GROUP_BLOCK_SHIFT] -= 1
        table[row, OWNER] = (group + 1) << _OWNER_SHIFT | device_bits | bits
        groups[group] += 1
        group_blocks[group >> _GROUP_BLOCK_SHIFT] += 1
        state[GROUP_LINES] += 1
    table[row, TIME] = now
    line_at[now] = row
    _set_mark(marks, blocks, now)
    state[NOW] = now + 1
    return reuse_group, reuse_device, cold_group, cold_device


@inlined
def _move(lines, count, rows, table, marks, blocks, line_at, groups, group_blocks, state):
    """Let the lines of an access be the last that were touched."""
    now, group = state[NOW], state[GROUP]
    stamp = group + 1
    num_new = 0
    for i in range(count):
        row, bits = unsigned(rows[unsigned(i)]), lines[unsigned(i), 1]
        word = table[row, OWNER]
        owner = word >> _OWNER_SHIFT
        if owner == stamp:
            _clear_mark(marks, blocks, table[row, TIME])
            table[row, OWNER] = word | bits << _DEVICE_SHIFT | bits
        else:
            num_new += 1
            if owner == 0:
                state[ALL_LINES] += 1
            else:
                groups[unsigned(owner - 1)] -= 1
                group_blocks[unsigned((owner - 1) >> _GROUP_BLOCK_SHIFT)] -= 1
            device = (word >> _DEVICE_SHIFT | bits) & _ALL_SECTORS
            table[row, OWNER] = stamp << _OWNER_SHIFT | device << _DEVICE_SHIFT | bits
        table[row, TIME] = now + i
        line_at[unsigned(now + i)] = row
        _set_mark(marks, blocks, now + i)
    groups[unsigned(group)] += num_new
    group_blocks[unsigned(group >> _GROUP_BLOCK_SHIFT)] += num_new
    state[GROUP_LINES] += num_new
    state[NOW] = now + count


@compiled
def _largest_in_group(rows, count, table, marks, blocks, stamp, now):
    """The largest distance within the work-group, line by line."""
    largest = np.int64(0)
    for i in range(count):
        if table[rows[i], OWNER] >> _OWNER_SHIFT != stamp:
            continue
        time = table[rows[i], TIME]
        distance = _marks_after(marks, blocks, time, now)
        for j in range(i):
            if table[rows[j], OWNER] >> _OWNER_SHIFT != stamp or table[rows[j], TIME] < time:
                distance += 1
        largest = max(largest, distance)
    return largest


@compiled
def _largest_between(rows, count, table, groups, group_blocks, group):
    """The largest distance between work-groups, line by line."""
    largest = np.int64(0)
    for i in range(count):
        owner = table[rows[i], OWNER] >> _OWNER_SHIFT
        if owner == 0 or owner == group + 1:
            continue
        distance = _lines_after(groups, group_blocks, owner - 1, group)
        for j in range(i):
            distance += table[rows[j], OWNER] >> _OWNER_SHIFT <= owner
        largest = max(largest, distance)
    return largest
