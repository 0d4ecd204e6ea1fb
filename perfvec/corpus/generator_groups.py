"""What work-items of a generated kernel do together: local memory with barriers, reductions, scans, atomics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from perfvec.corpus.draw import Draw
from perfvec.corpus.generator_access import (
    UINT,
    Access,
    Scope,
    Trip,
    draw_access,
    draw_trip,
    open_loop,
    read,
)
from perfvec.corpus.generator_stages import AbstractStage, Setting, apply_recipe, orders_of
from perfvec.corpus.generator_values import Recipe, draw_flavour, draw_recipe

# About what atomics on one cell wait for each other: as they come, and where all who meet there must try again.
_ATOMIC_NS = 1.0
_EXCHANGE_NS = 10_000.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tile(AbstractStage):
    """Tiles of a buffer that a group loads into local memory, and that its work-items then read as they like.

    Attributes:
        tiles: How many tiles, one after another; None for one.
        access: What a work-item loads of each.
        reading: How it reads the tile: "neighbours", "broadcast", "strided", "transposed", "hashed".
        taps: How often; 0 for the whole tile.
        stride: Of "strided".
        padding: Elements after each 32, against bank conflicts.
    """

    communication: ClassVar[str] = "tile"
    needs_group: ClassVar[bool] = True

    tiles: Trip | None
    access: Access
    reading: str
    taps: int
    stride: int
    padding: int
    recipe: Recipe

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Tile:
        """Draw one."""
        tiles = draw_trip(draw, setting.fixed_trips) if draw.chance(75) else None
        return cls(
            tiles=tiles,
            access=draw_access(draw, setting.value, tiles, setting.dims),
            reading=draw.weighted({"neighbours": 30, "broadcast": 25, "strided": 20, "transposed": 15, "hashed": 10}),
            taps=draw.weighted({0: 25, 1: 10, 3: 15, 4: 15, 8: 15, 16: 20}),
            stride=draw.choice((2, 3, 4, 8, 16, 17, 32, 33)),
            padding=draw.weighted({0: 70, 1: 30}),
            recipe=draw_recipe(draw, setting.value, draw.between(1, 3), flavour=draw_flavour(draw)),
        )

    def write(self, scope: Scope) -> None:
        out, value, lane, items = scope.out, scope.value, scope.lane(), scope.local_items()
        count = f"{items} + {items} / 32" if self.padding else items
        tile = out.local("tile", value, count, item_bytes=value.num_bytes + self.padding)
        with open_loop(scope, self.tiles, "t", has_barrier=True) as step:
            loaded = read(scope, self.access, step)
            out.line(f"{tile}[{self._place(lane)}] = {loaded};")
            out.barrier()
            taps = str(self.taps) if self.taps else items
            tap = out.fresh("s")
            with out.loop(f"for (int {tap} = 0; {tap} < {taps}; ++{tap})", taps):
                place = out.fresh("at")
                out.line(f"const int {place} = {self._read(scope, tap)};")
                apply_recipe(scope, self.recipe, f"{tile}[{self._place(place)}]")
                out.charge(operations=6)
            out.barrier()

    def _place(self, index: str) -> str:
        return f"{index} + {index} / 32" if self.padding else index

    def _read(self, scope: Scope, tap: str) -> str:
        lane, items = scope.lane(), scope.local_items()
        if self.reading == "neighbours":
            return f"({lane} + {tap}) % {items}"
        if self.reading == "broadcast":
            return f"{tap} % {items}"
        if self.reading == "strided":
            return f"({lane} * {self.stride} + {tap}) % {items}"
        if self.reading == "transposed":
            scope.out.macros["LX"] = "LX"
            return f"({lane} % ({items} / LX) * LX + {lane} / ({items} / LX) + {tap}) % {items}"
        return f"(((uint){lane} * 40503u) ^ ((uint){tap} * 2654435761u >> 7)) % {items}"

    @property
    def orders(self) -> tuple[str, ...]:
        return orders_of((self.access,))

    @property
    def trips(self) -> tuple[Trip, ...]:
        inner = Trip(kind="literal", low=1, high=self.taps or 256)
        return (inner,) if self.tiles is None else (self.tiles, inner)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(AbstractStage):
    """One value from those of a group, or for each work-item one from those before it.

    Attributes:
        shape: "tree": half as many work-items each time. "interleaved": neighbours first, so that lanes part ways.
            "serial": the first work-item alone. "scan": sums of all before. "exchange": pairs at falling distance.
        rounds: How often, in a row.
        join: Two values into one, of `{a}` and `{b}`.
    """

    communication: ClassVar[str] = "reduce"
    needs_group: ClassVar[bool] = True

    shape: str
    rounds: Trip | None
    join: str

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Reduce:
        """Draw one."""
        joins = (
            ("{a} + {b}", "fmax({a}, {b})", "fmin({a}, {b})")
            if setting.value.is_float
            else ("{a} ^ {b}", "max({a}, {b})", "min({a}, {b})", "{a} & {b}", "add_sat({a}, {b})")
        )
        return cls(
            shape=draw.weighted({"tree": 30, "interleaved": 15, "serial": 10, "scan": 25, "exchange": 20}),
            rounds=draw_trip(draw, setting.fixed_trips, has_buffer=False) if draw.chance(35) else None,
            join=draw.choice(joins),
        )

    def write(self, scope: Scope) -> None:
        out, value, lane, items = scope.out, scope.value, scope.lane(), scope.local_items()
        out.is_power_of_two |= self.shape in ("tree", "interleaved", "exchange")
        shared = out.local("shared", value, items, item_bytes=value.num_bytes)
        with open_loop(scope, self.rounds, "r", has_barrier=True) as step:
            own = scope.v
            if step.k:
                own = f"{scope.v} {'+' if value.is_float else '^'} {value.of_int(f'{step.k} & 7')}"
            out.line(f"{shared}[{lane}] = {own};")
            out.barrier()
            _SHAPES[self.shape](self, scope, shared)
            out.barrier()

    def joined(self, a: str, b: str) -> str:
        """Two values joined."""
        return self.join.replace("{a}", a).replace("{b}", b)

    @property
    def trips(self) -> tuple[Trip, ...]:
        own = Trip(kind="literal", low=1, high=8)
        return (own,) if self.rounds is None else (self.rounds, own)


def _tree(stage: Reduce, scope: Scope, shared: str) -> None:
    out, lane, items = scope.out, scope.lane(), scope.local_items()
    half = out.fresh("half_size")
    with out.loop(f"for (int {half} = {items} / 2; {half} > 0; {half} /= 2)", "log2(L) + 1"):
        with out.block(f"if ({lane} < {half})"):
            out.line(f"{shared}[{lane}] = {stage.joined(f'{shared}[{lane}]', f'{shared}[{lane} + {half}]')};")
        out.charge(operations=8)
        out.barrier()
    out.line(f"{scope.v} = {shared}[0];")


def _interleaved(stage: Reduce, scope: Scope, shared: str) -> None:
    out, lane, items = scope.out, scope.lane(), scope.local_items()
    distance = out.fresh("distance")
    with out.loop(f"for (int {distance} = 1; {distance} < {items}; {distance} *= 2)", "log2(L) + 1"):
        with out.block(f"if ({lane} % (2 * {distance}) == 0)"):
            out.line(f"{shared}[{lane}] = {stage.joined(f'{shared}[{lane}]', f'{shared}[{lane} + {distance}]')};")
        out.charge(operations=20)
        out.barrier()
    out.line(f"{scope.v} = {shared}[0];")


def _serial(stage: Reduce, scope: Scope, shared: str) -> None:
    out, lane, items = scope.out, scope.lane(), scope.local_items()
    q = out.fresh("q")
    with (
        out.block(f"if ({lane} == 0)"),
        out.loop(f"for (int {q} = 1; {q} < {items}; ++{q})", items),
    ):
        out.line(f"{shared}[0] = {stage.joined(f'{shared}[0]', f'{shared}[{q}]')};")
        out.charge(operations=10)
    out.barrier()
    out.line(f"{scope.v} = {shared}[0];")


def _scan(stage: Reduce, scope: Scope, shared: str) -> None:
    out, value, lane, items = scope.out, scope.value, scope.lane(), scope.local_items()
    distance, before = out.fresh("distance"), out.fresh("before")
    with out.loop(f"for (int {distance} = 1; {distance} < {items}; {distance} *= 2)", "log2(L) + 1"):
        out.line(f"{value.name} {before} = {shared}[{lane}];")
        with out.block(f"if ({lane} >= {distance})"):
            out.line(f"{before} = {stage.joined(before, f'{shared}[{lane} - {distance}]')};")
        out.barrier()
        out.line(f"{shared}[{lane}] = {before};")
        out.charge(operations=8)
        out.barrier()
    out.line(f"{scope.v} = {shared}[{lane}];")


def _exchange(_stage: Reduce, scope: Scope, shared: str) -> None:
    out, value, lane, items = scope.out, scope.value, scope.lane(), scope.local_items()
    distance, other = out.fresh("distance"), out.fresh("other")
    greater, less = ("fmax", "fmin") if value.is_float else ("max", "min")
    with out.loop(f"for (int {distance} = {items} / 2; {distance} > 0; {distance} /= 2)", "log2(L) + 1"):
        out.line(f"const {value.name} {other} = {shared}[{lane} ^ {distance}];")
        out.barrier()
        out.line(
            f"{shared}[{lane}] = ({lane} & {distance}) ? {greater}({shared}[{lane}], {other}) "
            f": {less}({shared}[{lane}], {other});"
        )
        out.charge(operations=10)
        out.barrier()
    out.line(f"{scope.v} = {shared}[{lane}];")


_SHAPES = {
    "tree": _tree,
    "interleaved": _interleaved,
    "serial": _serial,
    "scan": _scan,
    "exchange": _exchange,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Atomic(AbstractStage):
    """Atomics on global memory.

    Attributes:
        operation: OpenCL's name without `atomic_`; "cmpxchg" is a sum of floats by compare and exchange.
        target: Whose cell: "one" for all, "group", "lane", "spread" by a hash, "data" by a buffer.
        bins: Cells for "spread" and "data", a power of two; fewer make more contention.
        trip: How often in a row; None for once.
        is_used: Whether what was there before is used.
    """

    communication: ClassVar[str] = "atomic"

    operation: str
    target: str
    bins: int
    trip: Trip | None
    is_used: bool

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Atomic:
        """Draw one."""
        trip = draw_trip(draw, setting.fixed_trips, has_buffer=False) if draw.chance(30) else None
        return cls(
            operation=draw.weighted(
                {"add": 40, "inc": 15, "min": 8, "max": 10, "or": 6, "xor": 6, "xchg": 5, "cmpxchg": 10}
            ),
            target=draw.weighted({"one": 12, "group": 15, "lane": 8, "spread": 35, "data": 30}),
            bins=draw.power_of_two(1, 1 << 20),
            trip=None if trip is None else Trip(kind=trip.kind, low=1, high=min(trip.high, 256)),
            is_used=draw.chance(20),
        )

    def write(self, scope: Scope) -> None:
        out = scope.out
        with open_loop(scope, self.trip, "r") as step:
            cell, count = self._cell(scope, step.k)
            cells = out.buffer("cells", UINT, count, "constant(0)", is_written=True)
            amount = f"(uint)({scope.value.small_int(scope.v)})" + (f" + (uint){step.k}" if step.k else "")
            cells_met = {"one": 1, "group": 128, "lane": 64}.get(self.target, self.bins)
            wait_ns = _EXCHANGE_NS if self.operation == "cmpxchg" else _ATOMIC_NS
            out.charge(operations=6, accesses=1, num_bytes=8, serial_ns=wait_ns / cells_met)
            if self.operation == "cmpxchg":
                self._add_float(scope, f"&{cells}[{cell}]", amount)
                continue_text = ""
            else:
                continue_text = f"atomic_{self.operation}(&{cells}[{cell}]" + (
                    ")" if self.operation == "inc" else f", {amount})"
                )
            if continue_text and self.is_used:
                join = "+" if scope.value.is_float else "^"
                before = out.fresh("before")
                out.line(f"const uint {before} = {continue_text};")
                out.line(f"{scope.v} = {scope.v} {join} {scope.value.of_int(f'{before} & 1u')};")
            elif continue_text:
                out.line(f"{continue_text};")
        out.is_deterministic &= not self.is_used and self.operation not in ("xchg", "cmpxchg")

    def _cell(self, scope: Scope, k: str) -> tuple[str, str]:
        out = scope.out
        if self.target == "one":
            return "0", "1"
        if self.target == "group":
            return scope.group(), "groups"
        if self.target == "lane":
            scope.local_items()
            return scope.lane(), "L"
        more = f" + (uint){k} * 97u" if k else ""
        if self.target == "data":
            picks = out.buffer("picks", UINT, "n", f"indices({self.bins})")
            out.charge(accesses=1, num_bytes=4)
            return f"({picks}[i]{more}) & {self.bins - 1}", str(self.bins)
        return f"(((uint)i * 2654435761u{more}) >> 9) & {self.bins - 1}", str(self.bins)

    @staticmethod
    def _add_float(scope: Scope, cell: str, amount: str) -> None:
        out = scope.out
        seen, want = out.fresh("seen"), out.fresh("want")
        out.line(f"uint {seen}, {want};")
        with out.block("do"):
            out.line(f"{seen} = *(volatile __global uint*){cell};")
            out.line(f"{want} = as_uint(as_float({seen}) + (float)({amount}) * 0.5f);")
        out.body[-1] += f" while (atomic_cmpxchg({cell}, {seen}, {want}) != {seen});"
        out.charge(operations=8, accesses=2)
        out.is_integer = False

    @property
    def trips(self) -> tuple[Trip, ...]:
        return () if self.trip is None else (self.trip,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(AbstractStage):
    """Counts in local memory by atomics, added to global ones at the end.

    Attributes:
        bins: Cells, a power of two.
        trip: Values that a work-item counts.
        is_skewed: Whether most values fall into few cells.
    """

    communication: ClassVar[str] = "atomic"
    needs_group: ClassVar[bool] = True

    bins: int
    trip: Trip
    is_skewed: bool

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Histogram:
        """Draw one."""
        return cls(
            bins=draw.power_of_two(8, 2048), trip=draw_trip(draw, setting.fixed_trips), is_skewed=draw.chance(40)
        )

    def write(self, scope: Scope) -> None:
        out, lane, items = scope.out, scope.lane(), scope.local_items()
        held = out.local("held", UINT, str(self.bins), fixed_bytes=4 * self.bins)
        b, times = out.fresh("b"), f"max(1, {self.bins} // L)"
        with out.loop(f"for (int {b} = {lane}; {b} < {self.bins}; {b} += {items})", times):
            out.line(f"{held}[{b}] = 0u;")
            out.charge(operations=4)
        out.barrier()
        with open_loop(scope, self.trip) as step:
            index, count = (f"{step.k} * n + i", f"n * ({step.size})")
            picks = out.buffer(
                "picks", UINT, count, f"indices({self.bins * self.bins if self.is_skewed else self.bins})"
            )
            pick = out.fresh("pick")
            out.line(f"uint {pick} = {picks}[{index}];")
            if self.is_skewed:  # about the square root: few large, many small would need a division
                out.line(f"{pick} = ({pick} & ({pick} >> {self.bins.bit_length() - 1})) & {self.bins - 1}u;")
            out.line(f"atomic_inc(&{held}[{pick}]);")
            out.charge(operations=6, accesses=1, num_bytes=4)
        out.barrier()
        cells = out.buffer("cells", UINT, str(self.bins), "constant(0)", is_written=True)
        with out.loop(f"for (int {b} = {lane}; {b} < {self.bins}; {b} += {items})", times):
            out.line(f"atomic_add(&{cells}[{b}], {held}[{b}]);")
            out.charge(operations=4, accesses=1, num_bytes=8)
        out.barrier()

    @property
    def orders(self) -> tuple[str, ...]:
        return ("affine",)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (self.trip,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Append(AbstractStage):
    """Work-items whose value says so write it to the end of one of several lists."""

    communication: ClassVar[str] = "atomic"

    lists: int
    part: int

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Append:
        """Draw one."""
        del setting
        return cls(lists=draw.power_of_two(1, 64), part=draw.between(1, 16))

    def write(self, scope: Scope) -> None:
        out = scope.out
        ends = out.buffer("ends", UINT, str(self.lists), "constant(0)", is_written=True)
        entries = out.buffer("entries", UINT, f"n * {self.lists}", "constant(0)", is_written=True)
        chosen, end = out.fresh("chosen"), out.fresh("end")
        out.line(f"const int {chosen} = {scope.value.small_int(scope.v)};")
        with out.block(f"if (({chosen} & 15) < {self.part})"):
            # A launch may be repeated without its buffers being filled anew; so lists begin again at their ends.
            out.line(f"const uint {end} = atomic_inc(&{ends}[i & {self.lists - 1}]) % (uint)n;")
            out.line(f"{entries}[(i & {self.lists - 1}) * n + {end}] = (uint){chosen};")
        out.charge(operations=20, accesses=2, num_bytes=8)
        out.is_deterministic = False

    @property
    def orders(self) -> tuple[str, ...]:
        return ("affine",)
