"""What one memory access of a sub-group amounts to: sectors, lines, bank passes, strides.

Addresses are the executor's: a memory's number above bit 40, the offset below. Memories start at multiples of 128 bytes
on every device, so sectors and lines follow from the address alone.
"""

from __future__ import annotations

import numpy as np

from perfvec.program.core.bits import count_lanes, lowest_lane, unsigned
from perfvec.program.core.jit import compiled, inlined

SECTOR_SHIFT, SECTOR_BYTES = 5, 32
LINE_SHIFT = 7  # 128 B
LINE_BYTES = 1 << LINE_SHIFT
NUM_BANKS = 32
STRIDE_NONE, STRIDE_UNIFORM, STRIDE_UNIT, STRIDE_SMALL, STRIDE_LARGE, STRIDE_IRREGULAR = range(6)
SMALL_STRIDE = 4  # in access sizes
LOCAL_WORDS = 1 << 16  # words of the largest local array that is told apart: 256 KiB
MAX_SECTORS = 256  # of one access that are told apart: more than 32 lanes of 128 bytes touch
STAMP_SLOTS = 1024  # a power of two above that, with room
_EXACT = np.int64(1) << 52  # whole numbers below are floats, and so are their quotients where these are whole


@inlined
def stride_class(addresses, lanes_mask, access_bytes):
    """Class of the step between the addresses of neighbouring active lanes.

    Args:
        addresses: Address by lane, shape `(lane,)`.
        lanes_mask: Bit mask of the active lanes.
        access_bytes: Bytes that each lane moves.

    Returns:
        An index into `STRIDE_CLASSES` of `perfvec.trace_data`.
    """
    previous_lane = -1
    step = 0
    steps = 0
    rest = lanes_mask
    while rest:
        lane = lowest_lane(rest)
        rest &= rest - 1
        if previous_lane >= 0:
            gap = lane - previous_lane
            this = addresses[unsigned(lane)] - addresses[unsigned(previous_lane)]
            if gap > 1:  # the inactive lanes between would have made equal steps
                part = np.int64(this / gap) if abs(this) < _EXACT else this // gap  # dividing integers is slow
                if part * gap != this:
                    return STRIDE_IRREGULAR
                this = part
            if steps and this != step:
                return STRIDE_IRREGULAR
            step = this
            steps += 1
        previous_lane = lane
    if steps == 0 or step == 0:
        return STRIDE_UNIFORM
    if step == access_bytes:
        return STRIDE_UNIT
    return STRIDE_SMALL if abs(step) <= SMALL_STRIDE * access_bytes else STRIDE_LARGE


@inlined
def distinct_lines(addresses, lanes_mask, access_bytes, origin, lines, scratch, epoch, narrow):
    """Collect the distinct cache lines that an access touches, and of each its 32 B sectors.

    If sub-groups were of 8 or 16 lanes, each run of so many lanes would be an access of its own. What these touch is
    counted beside, and added up over the runs.

    Args:
        addresses: Address by lane, shape `(lane,)`.
        lanes_mask: Bit mask of the active lanes.
        access_bytes: Bytes that each lane moves.
        origin: The line that the others are told relative to.
        lines: Shape `(lines, 2)`; receives lines and masks of their sectors, in the order of lanes, as many as fit.
        scratch: Shape `(4 * MAX_SECTORS + 3 * STAMP_SLOTS,)`: of each line the sectors touched, the run of 8 lanes that
            touched it last, the sectors that this run and its run of 16 touched; a hash table behind them.
        epoch: A number never used before with this scratch.
        narrow: Shape `(4,)`; receives the sectors and lines of runs of 8 lanes, and of runs of 16.

    Returns:
        The number of distinct sectors, at most `MAX_SECTORS`, where counting ends, and of the lines that fit.
    """
    sectors = found = number = 0
    sectors_8 = lines_8 = sectors_16 = lines_16 = 0
    last_sector = last_line = last_run = np.int64(-1)
    rest = lanes_mask
    while rest and sectors < MAX_SECTORS:
        lane = lowest_lane(rest)
        rest &= rest - 1
        run = lane >> 3
        start = addresses[unsigned(lane)]
        end = (start + access_bytes - 1) >> SECTOR_SHIFT
        for sector in range(start >> SECTOR_SHIFT, end + 1):
            if sector == last_sector and run == last_run:
                continue
            last_sector, last_run = sector, run
            line, bit = sector >> 2, np.int64(1) << (sector & 3)
            if line != last_line:
                slot = ((line & 0x7FFF_FFFF) * 0x9E37_79B1 >> 7) & (STAMP_SLOTS - 1)
                at = 4 * MAX_SECTORS + 3 * slot
                while scratch[unsigned(at)] == epoch and scratch[unsigned(at + 1)] != line:
                    slot = (slot + 1) & (STAMP_SLOTS - 1)
                    at = 4 * MAX_SECTORS + 3 * slot
                if scratch[unsigned(at)] != epoch:
                    scratch[unsigned(at)], scratch[unsigned(at + 1)], scratch[unsigned(at + 2)] = epoch, line, 4 * found
                    scratch[unsigned(4 * found)], scratch[unsigned(4 * found + 1)] = 0, -2
                    found += 1
                last_line, number = line, scratch[unsigned(at + 2)]
            # What is kept of the line: its sectors, the run, and the sectors of the run and of its run of 16.
            here = unsigned(number)
            its_run, of_run, of_16 = unsigned(number + 1), unsigned(number + 2), unsigned(number + 3)
            if scratch[its_run] != run:
                scratch[of_run] = 0
                lines_8 += 1
                if scratch[its_run] >> 1 != run >> 1:
                    scratch[of_16] = 0
                    lines_16 += 1
                scratch[its_run] = run
            sectors_8 += scratch[of_run] & bit == 0
            scratch[of_run] |= bit
            if scratch[of_16] & bit:
                continue
            scratch[of_16] |= bit
            sectors_16 += 1
            if scratch[here] & bit == 0:
                sectors += 1
                scratch[here] |= bit
                if number >> 2 < lines.shape[0]:
                    lines[unsigned(number >> 2), 0] = line - origin
                    lines[unsigned(number >> 2), 1] = scratch[here]
                if sectors == MAX_SECTORS:
                    break
    narrow[0], narrow[1], narrow[2], narrow[3] = sectors_8, lines_8, sectors_16, lines_16
    return sectors, min(found, lines.shape[0])


@inlined
def few_lines(addresses, lanes_mask, access_bytes, origin, lines, narrow):
    """As `distinct_lines`, for few lanes: each is compared with those before it.

    Returns:
        The number of distinct sectors, 0 where a lane's access crosses a sector's end, which is not looked at here; and
        that of distinct lines.
    """
    sectors = found = 0
    sectors_8 = lines_8 = sectors_16 = lines_16 = 0
    rest = lanes_mask
    while rest:
        lane = lowest_lane(rest)
        rest &= rest - 1
        start = addresses[unsigned(lane)]
        if (start & (SECTOR_BYTES - 1)) + access_bytes > SECTOR_BYTES:
            return 0, 0
        sector, run = start >> SECTOR_SHIFT, lane >> 3
        line, bit = sector >> 2, np.int64(1) << (sector & 3)
        # The most that an earlier lane shares: 1 the launch's sub-group, 2 the run of 16 lanes, 3 that of 8.
        near_line = near_sector = 0
        before = lanes_mask & ((np.int64(1) << lane) - 1)
        while before:
            other = lowest_lane(before)
            before &= before - 1
            other_sector = addresses[unsigned(other)] >> SECTOR_SHIFT
            if other_sector >> 2 == line:
                near = 1 + (other >> 4 == lane >> 4) + (other >> 3 == run)
                near_line = max(near_line, near)
                if other_sector == sector:
                    near_sector = max(near_sector, near)
        sectors += near_sector == 0
        sectors_16 += near_sector < 2
        sectors_8 += near_sector < 3
        lines_16 += near_line < 2
        lines_8 += near_line < 3
        if near_line == 0:
            lines[unsigned(found), 0], lines[unsigned(found), 1] = line - origin, bit
            found += 1
        else:
            for i in range(found):
                if lines[unsigned(i), 0] == line - origin:
                    lines[unsigned(i), 1] |= bit
    narrow[0], narrow[1], narrow[2], narrow[3] = sectors_8, lines_8, sectors_16, lines_16
    return sectors, found


@compiled
def bank_passes(addresses, lanes_mask, access_bytes, words, epoch):
    """Passes that local memory of 32 banks of 4 B needs: the most distinct words that fall on one bank.

    Args:
        addresses: Address by lane, shape `(lane,)`; all in one local array of at most `4 * LOCAL_WORDS` bytes.
        lanes_mask: Bit mask of the active lanes.
        access_bytes: Bytes that each lane moves.
        words: Scratch, shape `(LOCAL_WORDS + NUM_BANKS,)`; words whose entry is `epoch` have been counted.
        epoch: A number never used before with this scratch.

    Returns:
        The passes, at least 1; an access of 8 or 16 bytes a lane needs more than one even without conflicts.
    """
    words[LOCAL_WORDS:] = 0
    most = 0
    rest = lanes_mask
    while rest:
        lane = lowest_lane(rest)
        rest &= rest - 1
        for word in range(addresses[lane] >> 2, ((addresses[lane] + access_bytes - 1) >> 2) + 1):
            slot = word & (LOCAL_WORDS - 1)
            if words[slot] != epoch:
                words[slot] = epoch
                bank = LOCAL_WORDS + (word & (NUM_BANKS - 1))
                words[bank] += 1
                most = max(most, words[bank])
    return most


@compiled
def shared_addresses(addresses, lanes_mask):
    """How the active lanes share addresses; shape of `addresses`: `(lane,)`.

    Returns:
        The most lanes on one address, and the number of distinct addresses.
    """
    most = distinct = 0
    rest = lanes_mask
    while rest:
        lane = lowest_lane(rest)
        same = 0
        for other in range(addresses.shape[0]):
            if (rest >> other) & 1 and addresses[other] == addresses[lane]:
                same |= 1 << other
        rest &= ~same
        distinct += 1
        most = max(most, count_lanes(same))
    return most, distinct


@compiled
def private_lines(addresses, lanes_mask, access_bytes, out):
    """Sectors and lines of an access to private arrays, whose words lie interleaved by lane on a device.

    Word `w` of all lanes fills one 128 B line; eight lanes' words fill one sector.

    Args:
        addresses: Address by lane, shape `(lane,)`; the same number space for all lanes.
        lanes_mask: Bit mask of the active lanes.
        access_bytes: Bytes that each lane moves.
        out: Scratch of at least `MAX_SECTORS`, for pairs of word and group of eight lanes.

    Returns:
        Distinct sectors and distinct lines.
    """
    sectors = 0
    lines = 0
    rest = lanes_mask
    while rest:
        lane = lowest_lane(rest)
        rest &= rest - 1
        for word in range(addresses[lane] >> 2, ((addresses[lane] + access_bytes - 1) >> 2) + 1):
            key = word * 4 + lane // 8
            is_new_sector = True
            is_new_line = True
            for i in range(sectors):
                if out[i] == key:
                    is_new_sector = False
                if out[i] >> 2 == word:
                    is_new_line = False
            if is_new_sector and sectors < MAX_SECTORS:
                out[sectors] = key
                sectors += 1
                lines += is_new_line
    return sectors, lines
