"""The records that a generated kernel is drawn as, and how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from perfvec.corpus.draw import Draw
from perfvec.corpus.generator_access import ORDERS, TripKind, draw_trip
from perfvec.corpus.generator_groups import Append, Atomic, Histogram, Reduce, Tile
from perfvec.corpus.generator_lookups import Chase, Escape, Mix, Private, Rows, Search, Table
from perfvec.corpus.generator_stages import AbstractStage, Branch, Compute, Copy, Setting, Stencil, Stream
from perfvec.corpus.generator_values import ValueType

COMMUNICATIONS = ("none", "tile", "reduce", "atomic")
TRIPS = ("straight", "constant", "argument", "data")
_STAGES: dict[type[AbstractStage], int] = {
    Stream: 36, Copy: 6, Stencil: 7, Compute: 11, Branch: 9, Rows: 4, Chase: 4, Search: 3, Escape: 4, Private: 5,
    Table: 4, Mix: 5, Tile: 12, Reduce: 7, Atomic: 6, Histogram: 3, Append: 2,
}  # fmt: skip
_TIED: dict[TripKind, int] = {"literal": 12, "macro": 55, "data": 20, "lane": 13}
_UNTIED: dict[TripKind, int] = {"literal": 6, "macro": 14, "argument": 60, "data": 12, "lane": 8}
_VALUES = {"float": 52, "double": 6, "uint": 16, "int": 14, "long": 6, "ulong": 6}
_WIDTHS = {1: 66, 2: 11, 4: 15, 8: 4, 16: 2, 3: 2}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A kernel as it was drawn.

    Attributes:
        traversal: How work-items are given elements: "item", "coarse", "grid" or "group".
        dims: Dimensions of the NDRange.
        value: Type of the accumulator.
        stages: What is done with each element, in order.
        store: Where results go: "unit", "transposed", "scattered", "strided", "rare" or "first" of each group.
        stored: Type in memory.
        is_accumulating: Whether one value is kept over all elements of a work-item and stored once.
        is_blocked: Whether the elements of a "coarse" work-item are neighbours.
        is_size_tied: Whether no trip count is an argument: the work follows from the global size, the build, the data.
    """

    traversal: str
    dims: int
    value: ValueType
    stages: tuple[AbstractStage, ...]
    store: str
    stored: ValueType
    is_accumulating: bool
    is_blocked: bool
    is_size_tied: bool

    @property
    def needs_group(self) -> bool:
        """Whether a stage has barriers."""
        return any(stage.needs_group for stage in self.stages)

    @property
    def family(self) -> str:
        """Its structure class: communication, most irregular read, what trip counts depend on, as in `tile/halo/data`.

        Constants, types, arithmetic and dimensions do not count, so that kernels of two families do different things.
        """
        communication = max((stage.communication for stage in self.stages), key=COMMUNICATIONS.index)
        order = max((order for stage in self.stages for order in stage.orders), key=ORDERS.index, default="affine")
        kinds = {trip.kind for stage in self.stages for trip in stage.trips}
        if kinds & {"data", "lane"}:
            trips = "data"
        elif "argument" in kinds or self.traversal == "grid":
            trips = "argument"
        else:
            trips = "constant" if kinds else "straight"
        return f"{communication}/{order}/{trips}"


def draw_structure(draw: Draw) -> Structure:
    """Draw the records of a kernel."""
    is_size_tied = draw.chance(50)
    value = ValueType(scalar=draw.weighted(_VALUES), width=draw.weighted(_WIDTHS))
    if is_size_tied:
        traversal = draw.weighted({"item": 70, "coarse": 20, "group": 10})
    else:
        traversal = draw.weighted({"item": 50, "grid": 38, "group": 12})
    dims = draw.weighted({1: 55, 2: 33, 3: 12}) if traversal in ("item", "grid") else 1
    setting = Setting(value=value, dims=dims, trips=_TIED if is_size_tied else _UNTIED)
    stages = _draw_stages(draw, setting, traversal, is_size_tied)
    stores = {"unit": 62, "scattered": 8, "strided": 8, "rare": 12}
    if dims > 1:
        stores["transposed"] = 20
    if traversal == "group":
        stores = {"first": 100}
    elif isinstance(stages[-1], Reduce):
        stores["first"] = 60
    return Structure(
        traversal=traversal,
        dims=dims,
        value=value,
        stages=stages,
        store=draw.weighted(stores),
        stored=_draw_stored(draw, value),
        is_accumulating=traversal in ("coarse", "grid") and draw.chance(50),
        is_blocked=draw.chance(40),
        is_size_tied=is_size_tied,
    )


def _draw_stages(draw: Draw, setting: Setting, traversal: str, is_size_tied: bool) -> tuple[AbstractStage, ...]:
    weights = dict(_STAGES)
    count = draw.weighted({1: 42, 2: 36, 3: 22})
    if traversal == "group":  # its work-items have parts of one element's result, which only a reduction joins
        weights = {Stream: 60, Copy: 5, Rows: 20, Compute: 10, Table: 10}
        count = min(count, 2)
    stages: list[AbstractStage] = []
    for _ in range(count):
        kind = draw.weighted(weights)
        stages.append(kind.draw(draw, setting))  # pyright: ignore[reportAttributeAccessIssue]
        if kind not in (Stream, Compute, Branch):
            del weights[kind]
    if not any(stage.orders for stage in stages):
        stages.insert(0, Stream.draw(draw, setting))
    if traversal == "group":
        stages.append(Reduce.draw(draw, replace(setting, trips={"literal": 1})))
    has_argument = any(trip.kind == "argument" for stage in stages for trip in stage.trips)
    if not is_size_tied and traversal != "grid" and not has_argument:
        compute = Compute.draw(draw, setting)
        trip = draw_trip(draw, {"argument": 1}, has_buffer=False)
        stages.insert(len(stages) - (traversal == "group"), replace(compute, trip=trip))
    return tuple(stages)


def _draw_stored(draw: Draw, value: ValueType) -> ValueType:
    narrower = {"float": ("half", "uchar", "short"), "double": ("float",), "int": ("short",), "uint": ("uchar",)}
    scalar = value.scalar
    if scalar in narrower and draw.chance(15):
        scalar = draw.choice(narrower[scalar])
    return replace(value, scalar=scalar)
