"""From the executor's record to where the lanes went: one pass over its events."""

from __future__ import annotations

from perfvec.program.core.bits import count_lanes, unsigned
from perfvec.program.core.jit import compiled
from perfvec.program.core.windows import MARK_GROUP_END, MARK_SUB_GROUP

# Columns of `counts`, a row a segment; behind them come the lanes that went to each successor.
RUNS, LANES, SPLITS, TO_FIRST = range(4)
# Positions in `scalars`: the sub-group that runs, and how many work-groups have ended.
SUB_GROUP, GROUP = range(2)
# Columns of `waiting`, a row a branch whose lanes have not all gone on: lanes left, segment, where the first went.
_MASK, _SEGMENT, _TO = range(3)
_NOWHERE, _SEVERAL = -1, -2


@compiled
def consume(events, successors, weights, counts, totals, waiting, num_waiting, scalars):
    """Count the runs of each segment, and which ways its lanes go on.

    A lane goes to the segment of the next event of its sub-group that it is part of.

    Args:
        events: uint32 `(events, 2)`: segment and lane mask, MARK_SUB_GROUP and the sub-group that runs now, or
            MARK_GROUP_END.
        successors: int64 `(segments, ways)`: distinct successors of segments that end in a branch; else -1.
        weights: float64 `(work-groups,)`: how many of the launch each stands for.
        counts: int64 `(segments, TO_FIRST + ways)`: of the present work-group.
        totals: float64, likewise: of those that have ended, weighted.
        waiting: int64 `(sub-groups, lane, 3)`: branches under way.
        num_waiting: int64 `(sub-groups,)`: how many.
        scalars: int64 `(2,)`.
    """
    sub_group = unsigned(scalars[SUB_GROUP])
    for event in range(events.shape[0]):
        segment, mask = int(events[unsigned(event), 0]), int(events[unsigned(event), 1])
        if segment == MARK_SUB_GROUP:
            sub_group = unsigned(mask)
            continue
        if segment == MARK_GROUP_END:
            for row in range(counts.shape[0]):
                for column in range(counts.shape[1]):
                    totals[row, column] += weights[scalars[GROUP]] * counts[row, column]
                    counts[row, column] = 0
            scalars[GROUP] += 1
            continue
        left, place = mask, num_waiting[sub_group]
        while left and place:  # from the last, which is mostly the one; a lane waits at one branch at most
            place -= 1
            here = waiting[sub_group, unsigned(place), _MASK] & left
            if here:
                left ^= here
                origin = unsigned(waiting[sub_group, unsigned(place), _SEGMENT])
                to = waiting[sub_group, unsigned(place), _TO]
                for way in range(successors.shape[1]):
                    if successors[origin, way] == segment:
                        counts[origin, TO_FIRST + way] += count_lanes(here)
                counts[origin, SPLITS] += to >= 0
                waiting[sub_group, unsigned(place), _TO] = segment if to == _NOWHERE else _SEVERAL
                waiting[sub_group, unsigned(place), _MASK] ^= here
                if waiting[sub_group, unsigned(place), _MASK] == 0:
                    num_waiting[sub_group] -= 1
                    last = unsigned(num_waiting[sub_group])
                    for column in range(3):
                        waiting[sub_group, unsigned(place), column] = waiting[sub_group, last, column]
        counts[unsigned(segment), RUNS] += 1
        counts[unsigned(segment), LANES] += count_lanes(mask)
        if successors[unsigned(segment), 0] >= 0:
            end = unsigned(num_waiting[sub_group])
            waiting[sub_group, end, _MASK] = mask
            waiting[sub_group, end, _SEGMENT] = segment
            waiting[sub_group, end, _TO] = _NOWHERE
            num_waiting[sub_group] += 1
    scalars[SUB_GROUP] = sub_group
