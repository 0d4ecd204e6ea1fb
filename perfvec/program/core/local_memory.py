"""Which bytes of local memory have been written, and the first read that found none of its own."""

from __future__ import annotations

from numba import njit

NOTHING, ENDED, FOUND = range(3)


@njit(cache=True)
def find_unwritten(events, addresses, segments, sites, base, written, group_end, tag_shift, found):
    """Follow the local accesses of one work-group through a piece of the executor's record.

    Args:
        events: Segment and lane mask, or a mark; shape `(event, 2)`.
        addresses: A row for each memory access; shape `(row, lane)`.
        segments: First site and end of the sites of each segment; shape `(segment, 2)`.
        sites: Bytes that a lane moves, whether it reads and whether it writes local memory; shape `(site, 3)`.
        base: By a memory's number, where its bytes begin in `written`, or -1; shape `(memory,)`.
        written: Whether each byte has been written; filled here.
        group_end: The mark that ends a work-group.
        tag_shift: Bits of an address below the memory's number.
        found: Receives site, address and lane of a read of which no byte had been written; shape `(3,)`.

    Returns:
        `FOUND`, `ENDED` where the work-group has ended, or `NOTHING`.
    """
    row = 0
    for event in range(len(events)):
        segment, mask = events[event, 0], events[event, 1]
        if segment == group_end:
            return ENDED
        if segment >= len(segments):
            continue
        for site in range(segments[segment, 0], segments[segment, 1]):
            num_bytes, reads, writes = sites[site]
            if reads or writes:
                for lane in range(addresses.shape[1]):
                    address = addresses[row, lane]
                    if (mask >> lane) & 1 == 0 or base[address >> tag_shift] < 0:
                        continue
                    first = base[address >> tag_shift] + (address & ((1 << tag_shift) - 1))
                    # Padding is read without having been written: one byte that was is enough.
                    if reads and not written[first : first + num_bytes].any():
                        found[0], found[1], found[2] = site, address, lane
                        return FOUND
                    if writes:
                        written[first : first + num_bytes] = True
            row += 1
    return NOTHING
