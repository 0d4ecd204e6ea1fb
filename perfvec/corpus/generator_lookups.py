"""Stages of generated kernels whose next step hangs on data: rows, chains, searches, tables, loops that data end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from perfvec.corpus.draw import Draw
from perfvec.corpus.generator_access import (
    INT,
    Access,
    Place,
    Scope,
    Trip,
    draw_access,
    draw_trip,
    fixed_bound,
    open_loop,
    read_at,
)
from perfvec.corpus.generator_stages import AbstractStage, Setting, Trips, apply_recipe
from perfvec.corpus.generator_values import Recipe, ValueType, draw_flavour, draw_recipe


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(AbstractStage):
    """Rows of unequal length, one behind the other: a loop from one offset to the next, such as CSR has."""

    skew: int
    access: Access
    is_gathered: bool
    recipe: Recipe

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Rows:
        """Draw one."""
        access = draw_access(draw, setting.value, None, setting.dims)
        return cls(
            skew=draw.between(0, 4),
            access=Access(pattern="unit", storage=access.storage, stride=access.stride, is_vload=access.is_vload),
            is_gathered=draw.chance(60),
            recipe=draw_recipe(draw, setting.value, draw.between(1, 2), flavour=draw_flavour(draw)),
        )

    def write(self, scope: Scope) -> None:
        out = scope.out
        mean = out.size("most", "data", 1, 256)
        offsets = out.buffer("offsets", INT, "n + 1", f"offsets(n * {mean},{self.skew / 2})")
        k, first, step = out.fresh("k"), f"{offsets}[i]", "1"
        times = mean
        if scope.is_cooperative:
            items = scope.local_items()
            first, step, times = f"{first} + {scope.lane()}", items, f"max(1, {mean} // {items})"
        out.charge(accesses=2, num_bytes=8)
        with out.loop(f"for (int {k} = {first}; {k} < {offsets}[i + 1]; {k} += {step})", times):
            place = Place(index=k, count=f"n * {mean}")
            if self.is_gathered:
                extent, _ = out.extent(1 << 10, 1 << 24)
                columns = out.buffer("columns", INT, place.count, f"indices({extent})")
                place = Place(index=f"{columns}[{k}]", count=extent)
                out.charge(accesses=1, num_bytes=4)
            apply_recipe(scope, self.recipe, read_at(scope, self.access, place))

    @property
    def orders(self) -> tuple[str, ...]:
        return ("indirect" if self.is_gathered else "strided",)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (Trip(kind="data", low=1, high=256),)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chase(AbstractStage):
    """Reads of which each says where the next one is."""

    trip: Trip
    num_chains: int

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Chase:
        """Draw one."""
        return cls(trip=draw_trip(draw, setting.trips), num_chains=draw.weighted({1: 60, 2: 25, 4: 15}))

    def write(self, scope: Scope) -> None:
        out, value = scope.out, scope.value
        extent, mask = out.extent(1 << 8, 1 << 22)
        next_of = out.buffer("next", INT, extent, out.draw.choice(("permutation()", f"indices({extent})")))
        names = [out.fresh("p") for _ in range(self.num_chains)]
        for place, name in enumerate(names):
            out.line(f"int {name} = (i * {2 * place + 1} + {place}) & {mask};")
        with open_loop(scope, self.trip):
            for name in names:
                out.line(f"{name} = {next_of}[{name}];")
            out.charge(accesses=2, num_bytes=4 * self.num_chains)  # nothing overlaps
        for name in names:
            add = f"{scope.v} + " if value.is_float else f"{scope.v} ^ "
            out.line(f"{scope.v} = {add}{value.of_int(name)};")

    @property
    def orders(self) -> tuple[str, ...]:
        return ("indirect",)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (self.trip,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Search(AbstractStage):
    """Binary search of a key in a sorted table."""

    is_branchless: bool
    is_float: bool

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Search:
        """Draw one."""
        return cls(is_branchless=draw.chance(40), is_float=setting.value.is_float and draw.chance(60))

    def write(self, scope: Scope) -> None:
        out = scope.out
        key_type = ValueType(scalar="float") if self.is_float else INT
        most = "1" if self.is_float else "100000"
        extent, _ = out.extent(1 << 6, 1 << 20)
        table = out.buffer("table", key_type, extent, f"sorted(0,{most})")
        keys = out.buffer("keys", key_type, "n", f"uniform(0,{most})")
        count = out.scalar(out.fresh("count"), extent)
        low, key = out.fresh("low"), out.fresh("key")
        out.line(f"const {key_type.name} {key} = {keys}[i];")
        out.line(f"int {low} = 0;")
        out.charge(accesses=1, num_bytes=4)
        if self.is_branchless:
            half = out.fresh("span")
            with out.loop(f"for (int {half} = {count} / 2; {half} > 0; {half} /= 2)", f"log2({extent})"):
                out.line(f"{low} += {table}[{low} + {half} - 1] < {key} ? {half} : 0;")
                out.charge(operations=5, accesses=2, num_bytes=4)
        else:
            high, middle = out.fresh("high"), out.fresh("middle")
            out.line(f"int {high} = {count};")
            with out.loop(f"while ({low} < {high})", f"log2({extent})"):
                out.line(f"const int {middle} = ({low} + {high}) / 2;")
                with out.block(f"if ({table}[{middle}] < {key})"):
                    out.line(f"{low} = {middle} + 1;")
                with out.block("else"):
                    out.line(f"{high} = {middle};")
                out.charge(operations=6, accesses=2, num_bytes=4)
        join = "+" if scope.value.is_float else "^"
        out.line(f"{scope.v} = {scope.v} {join} {scope.value.of_int(low)};")
        out.is_integer = out.is_integer and not self.is_float

    @property
    def orders(self) -> tuple[str, ...]:
        return ("indirect",)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (Trip(kind="data", low=1, high=20),)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Escape(AbstractStage):
    """A loop that each work-item leaves when its own value says so, at the latest after so many trips."""

    trip: Trip
    is_float: bool
    part: int

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Escape:
        """Draw one."""
        kinds: Trips = setting.fixed_trips
        return cls(
            trip=draw_trip(draw, kinds, has_buffer=False),
            is_float=setting.value.is_float and draw.chance(70),
            part=draw.between(1, 7),
        )

    def write(self, scope: Scope) -> None:
        out, value = scope.out, scope.value
        state, count = out.fresh("state"), out.fresh("steps")
        bound = fixed_bound(scope, self.trip)
        out.line(f"int {count} = 0;")
        if self.is_float:
            scalar = ValueType(scalar=value.scalar)
            out.line(f"{scalar.name} {state} = {scalar.literal(0.01)} + fabs({value.first(scope.v)});")
            with out.loop(f"while ({count} < {bound} && {state} < {scalar.literal(1000.0)})", f"{bound} / 3 + 1"):
                out.line(f"{state} = fma({state}, {scalar.literal(1 + self.part / 64)}, {scalar.literal(0.125)});")
                out.line(f"++{count};")
                out.charge(operations=6)
        else:
            out.line(f"uint {state} = (uint)i * 2654435761u + (uint)({value.small_int(scope.v)});")
            with out.loop(
                f"while ({count} < {bound} && ({state} & {(1 << (self.part + 2)) - 1}u) != 1u)", f"{bound} / 3 + 1"
            ):
                out.line(f"{state} = ({state} & 1u) ? 3u * {state} + 1u : ({state} >> 1) ^ ({state} << 9);")
                out.line(f"++{count};")
                out.charge(operations=9)
        join = "+" if value.is_float else "^"
        out.line(f"{scope.v} = {scope.v} {join} {value.of_int(count)};")

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (Trip(kind="data", low=1, high=1), self.trip)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Private(AbstractStage):
    """An array of the work-item's own, read and written at places that are known when it is compiled, or are not."""

    length: int
    is_dynamic: bool
    trip: Trip
    recipe: Recipe

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Private:
        """Draw one."""
        return cls(
            length=draw.power_of_two(4, 64 // setting.value.width if setting.value.width <= 8 else 4),
            is_dynamic=draw.chance(60),
            trip=draw_trip(draw, setting.fixed_trips, has_buffer=False),
            recipe=draw_recipe(draw, setting.value, draw.between(1, 3), flavour=draw_flavour(draw)),
        )

    def write(self, scope: Scope) -> None:
        out, value = scope.out, scope.value
        array, q = out.fresh("own"), out.fresh("q")
        join = "+" if value.is_float else "^"
        out.line(f"{value.name} {array}[{self.length}];")
        with out.loop(f"for (int {q} = 0; {q} < {self.length}; ++{q})", str(self.length)):
            out.line(f"{array}[{q}] = {scope.v} {join} {value.of_int(q)};")
            out.charge(operations=2 * value.width)
        with open_loop(scope, self.trip, "r") as step:
            start = f"({step.k} * 5 + {value.small_int(scope.v)})" if self.is_dynamic else f"({step.k} * 3)"
            place = out.fresh("at")
            out.line(f"const int {place} = {start} & {self.length - 1};")
            apply_recipe(scope, self.recipe, f"{array}[{place}]")
            out.line(f"{array}[({place} + 1) & {self.length - 1}] = {scope.v};")
            out.charge(operations=8)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (self.trip,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table(AbstractStage):
    """Look-ups in constant memory, the same for all lanes or not."""

    length: int
    is_uniform: bool
    trip: Trip
    recipe: Recipe

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Table:
        """Draw one."""
        return cls(
            length=draw.power_of_two(16, 1024),
            is_uniform=draw.chance(50),
            trip=draw_trip(draw, setting.trips, has_buffer=False),
            recipe=draw_recipe(draw, setting.value, draw.between(1, 3), flavour=draw_flavour(draw)),
        )

    def write(self, scope: Scope) -> None:
        out, value = scope.out, scope.value
        contents = value.contents(out.draw)
        table = out.buffer("table", value, str(self.length), contents, space="__constant")
        with open_loop(scope, self.trip, "r") as step:
            place = step.k if self.is_uniform else f"({step.k} * 7 + {value.small_int(scope.v)})"
            apply_recipe(scope, self.recipe, f"{table}[{place} & {self.length - 1}]")
            out.charge(operations=3, accesses=0.25)

    @property
    def orders(self) -> tuple[str, ...]:
        return ("affine",) if self.is_uniform else ("indirect",)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (self.trip,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mix(AbstractStage):
    """Arithmetic in a type of another kind, with conversions there and back."""

    other: ValueType
    trip: Trip
    recipe: Recipe

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Mix:
        """Draw one."""
        scalars = ("uint", "int", "ulong") if setting.value.is_float else ("float", "double")
        weights = dict(zip(scalars, (60, 25, 15) if setting.value.is_float else (85, 15), strict=True))
        other = ValueType(scalar=draw.weighted(weights))
        return cls(
            other=other,
            trip=draw_trip(draw, setting.trips, has_buffer=False),
            recipe=draw_recipe(draw, other, draw.between(1, 6), flavour=draw_flavour(draw)),
        )

    def write(self, scope: Scope) -> None:
        out, value = scope.out, scope.value
        state = out.fresh("mixed")
        out.line(f"{self.other.name} {state} = {self.other.of_int(f'{value.small_int(scope.v)} + (i & 255)')};")
        with open_loop(scope, self.trip, "r") as step:
            for line in self.recipe.lines(state, self.other.of_int(f"{step.k} & 31")):
                out.line(line)
            out.charge(arithmetic=self.recipe.cost)
        join = "+" if value.is_float else "^"
        out.line(f"{scope.v} = {scope.v} {join} {value.of_int(self.other.small_int(state))};")
        out.is_integer = False

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (self.trip,)
