"""NDRanges for a device: how many work-items, in work-groups of which shape, so that all states of a device occur.

Of a hundred launches 25 leave compute units without a work-group ("idle"), 60 give each some but could be held by the
device beside more ("underused"), and 15 give it at least all that it can hold at once ("full"). What a device can hold
follows from its file: work-groups, sub-groups and local memory of a compute unit. Registers would hold down some
kernels further, but are not known before a compiler has chosen them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from perfvec.errors import ConfigError
from perfvec.launch import MAX_LOCAL_SIZE

if TYPE_CHECKING:
    from perfvec.arch.device import Device
    from perfvec.corpus.draw import Draw

Fill: TypeAlias = Literal["idle", "underused", "full"]
FILL_SHARES: dict[Fill, int] = {"idle": 5, "underused": 12, "full": 3}  # twentieths
MULTIPLE_SHARES: dict[bool, int] = {True: 7, False: 3}  # local sizes that are multiples of the sub-group width; tenths
MOST_WORK_ITEMS = 1 << 26
# The fullest launch holds so many times what the device can hold at once.
_MOST_WAVES = 64
# Local memory that a work-group may use, where a device has more: what OpenCL devices commonly offer.
_MOST_LOCAL_BYTES = 48 << 10
_ATTEMPTS = 40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What a kernel asks of an NDRange.

    Attributes:
        dims: Dimensions.
        is_power_of_two: Whether a work-group must have a power of two of work-items.
        local_item_bytes: Local memory for each work-item of a group.
        local_fixed_bytes: Other local memory of a group.
    """

    dims: int
    is_power_of_two: bool = False
    local_item_bytes: int = 0
    local_fixed_bytes: int = 0

    def local_bytes(self, local_items: int) -> int:
        """Local memory of a work-group."""
        return self.local_fixed_bytes + local_items * self.local_item_bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NDRange:
    """Sizes of a launch.

    Attributes:
        global_size: Work-items in each dimension.
        local_size: The same of a work-group.
    """

    global_size: tuple[int, ...]
    local_size: tuple[int, ...]

    @property
    def num_groups(self) -> int:
        """Work-groups."""
        return math.prod(self.global_size) // math.prod(self.local_size)

    @property
    def local_items(self) -> int:
        """Work-items of a work-group."""
        return math.prod(self.local_size)


def groups_held(device: Device, local_items: int, local_bytes: int) -> int:
    """Work-groups that a device holds at once, registers aside.

    Args:
        device: The device.
        local_items: Work-items of a work-group.
        local_bytes: Local memory of a work-group.
    """
    compute = device.compute
    sub_groups = -(-local_items // compute.sub_group_size)
    by_sub_groups = compute.max_sub_groups_per_compute_unit // sub_groups
    by_local = int(device.memory.local.capacity_bytes // local_bytes) if local_bytes else by_sub_groups
    per_unit = max(1, min(by_sub_groups, by_local, compute.max_work_groups_per_compute_unit))
    return per_unit * compute.compute_units


def fill_of(device: Device, ndrange: NDRange, demands: Demands) -> Fill:
    """What a launch does to a device."""
    if ndrange.num_groups < device.compute.compute_units:
        return "idle"
    held = groups_held(device, ndrange.local_items, demands.local_bytes(ndrange.local_items))
    return "full" if ndrange.num_groups >= held and held > 0 else "underused"


def deck(draw: Draw, count: int) -> list[tuple[Fill, bool]]:
    """For each of so many launches: its fill, and whether its local size is a multiple of the sub-group width.

    The shares are kept in every twenty launches, in a random order, not only on average.
    """
    cards: list[tuple[Fill, bool]] = []
    while len(cards) < count:
        fills: list[Fill] = [fill for fill, share in FILL_SHARES.items() for _ in range(share)]
        multiples = [is_multiple for is_multiple, share in MULTIPLE_SHARES.items() for _ in range(2 * share)]
        cards += zip(draw.shuffled(fills), draw.shuffled(multiples), strict=True)
    return cards[:count]


def sample_ndrange(
    draw: Draw,
    device: Device,
    demands: Demands,
    fill: Fill,
    *,
    is_multiple: bool,
    local_sizes: Sequence[tuple[int, ...]] = (),
) -> NDRange:
    """Draw an NDRange.

    Args:
        draw: Where from.
        device: What it is for.
        demands: What the kernel asks for.
        fill: What it shall do to the device. A device that holds one work-group a compute unit cannot be underused: it
            is full.
        is_multiple: Whether the local size shall be a multiple of the device's sub-group width.
        local_sizes: Local sizes to choose from, which must meet the demands; a new one is drawn where there are none.

    Raises:
        ConfigError: The kernel's local memory does not fit the device.
    """

    def local_size() -> tuple[int, ...]:
        if local_sizes:
            return draw.choice(local_sizes)
        return _draw_local_size(draw, demands.dims, _draw_local_items(draw, device, demands, is_multiple))

    for _ in range(_ATTEMPTS):
        local = local_size()
        low, high = _bounds(device, demands, math.prod(local), fill)
        if low > high:
            continue
        groups = _draw_groups(draw, demands.dims, draw.spread(low, high))
        if low <= math.prod(groups) <= high:
            return _ndrange(local, groups)
    # Some sizes cannot be split over the dimensions within narrow bounds: one row of groups always can.
    local = local_size()
    low, high = _bounds(device, demands, math.prod(local), fill)
    if low > high:
        low, high = _bounds(device, demands, math.prod(local), "full")
    return _ndrange(local, (draw.spread(low, high), *(1,) * (demands.dims - 1)))


def _ndrange(local: tuple[int, ...], groups: tuple[int, ...]) -> NDRange:
    sizes = tuple(side * count for side, count in zip(local, groups, strict=True))
    return NDRange(global_size=sizes, local_size=local)


def _most_local_items(device: Device, demands: Demands) -> int:
    limit = min(device.compute.max_local_bytes_per_work_group, _MOST_LOCAL_BYTES) - demands.local_fixed_bytes
    most = min(MAX_LOCAL_SIZE, device.compute.max_work_group_size)
    if demands.local_item_bytes:
        most = min(most, limit // demands.local_item_bytes)
    if limit < 0 or most < 1:
        raise ConfigError(
            f"a kernel that needs {demands.local_bytes(1)} bytes of local memory for a single work-item does not fit "
            f"{device.name}, whose work-groups may use {limit + demands.local_fixed_bytes}; leave it out"
        )
    return most


def _draw_local_items(draw: Draw, device: Device, demands: Demands, is_multiple: bool) -> int:
    width, most = device.compute.sub_group_size, _most_local_items(device, demands)
    if is_multiple and most >= width:
        if demands.is_power_of_two or draw.chance(60):
            top = 1 << (most.bit_length() - 1)
            step = 1 << (width - 1).bit_length()
            return draw.power_of_two(min(step, top), top)
        return width * draw.spread(1, most // width)
    if demands.is_power_of_two:
        return draw.power_of_two(1, min(max(width // 2, 1), 1 << (most.bit_length() - 1)))
    for _ in range(_ATTEMPTS):
        items = draw.choice((10, 20, 50, 100, 200, 250)) if draw.chance(30) else draw.spread(1, most)
        if items <= most and items % width:
            return items
    return 1


def _bounds(device: Device, demands: Demands, local_items: int, fill: Fill) -> tuple[int, int]:
    """Fewest and most work-groups; the fewest are more than the most where there is no such number."""
    units = device.compute.compute_units
    held = max(groups_held(device, local_items, demands.local_bytes(local_items)), units)
    most = max(MOST_WORK_ITEMS // local_items, 1)
    if fill == "idle":
        return 1, max(units - 1, 1)
    if fill == "underused":
        return units, held - 1
    return held, max(min(held * _MOST_WAVES, most), held)


def _draw_local_size(draw: Draw, dims: int, local_items: int) -> tuple[int, ...]:
    """Spread the work-items of a group over the dimensions."""
    sides = [local_items]
    for _ in range(dims - 1):
        side = draw.choice(_divisors(sides[0]))
        sides[0] //= side
        sides.append(side)
    return tuple(sides)


def _draw_groups(draw: Draw, dims: int, num_groups: int) -> tuple[int, ...]:
    """Spread work-groups over the dimensions; they may come out a few less."""
    sides = [num_groups]
    for _ in range(dims - 1):
        rows = draw.spread(1, max(math.isqrt(sides[0]) * 2, 1)) if sides[0] > 1 else 1
        rows = min(rows, sides[0])
        sides[0] //= rows
        sides.append(rows)
    return tuple(sides)


def _divisors(number: int) -> list[int]:
    """Divisors up to 64, so that work-groups are seldom higher than wide."""
    return [side for side in range(1, min(number, 64) + 1) if number % side == 0 and side * side <= 4 * number]
