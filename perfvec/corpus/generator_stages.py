"""What the work-items of a generated kernel do by themselves: stages without barriers or atomics.

A stage is drawn as a record and written into a kernel; it reads and changes the accumulator `v` of its scope.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, final

from perfvec.corpus.draw import Draw
from perfvec.corpus.generator_access import (
    PATTERNS,
    Access,
    Place,
    Scope,
    Step,
    Trip,
    TripKind,
    draw_access,
    draw_trip,
    open_loop,
    read,
    read_at,
)
from perfvec.corpus.generator_values import Recipe, ValueType, draw_flavour, draw_recipe

Trips: TypeAlias = Mapping[TripKind, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is fixed before the stages of a kernel are drawn.

    Attributes:
        value: Type of the accumulator.
        dims: Dimensions of the NDRange.
        trips: Weights of the kinds of trip counts.
    """

    value: ValueType
    dims: int
    trips: Trips

    @property
    def fixed_trips(self) -> Trips:
        """The kinds whose loops all work-items of a group run as often, so that a barrier may stand in them."""
        return {kind: weight for kind, weight in self.trips.items() if kind in ("literal", "macro", "argument")}


class AbstractStage(ABC):
    """A stage of a kernel.

    Attributes:
        communication: How work-items meet in it: one of `perfvec.corpus.generator_structure.COMMUNICATIONS`.
        needs_group: Whether it has barriers, which all work-items of a group must reach.
    """

    __slots__ = ()
    communication: ClassVar[str] = "none"
    needs_group: ClassVar[bool] = False

    @abstractmethod
    def write(self, scope: Scope) -> None:
        """Write it into a kernel."""

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders of its reads, of `perfvec.corpus.generator_access.ORDERS`."""
        return ()

    @property
    def trips(self) -> tuple[Trip, ...]:
        """Its trip counts."""
        return ()


def apply_recipe(scope: Scope, recipe: Recipe, operand: str, accumulator: str = "") -> None:
    """Write operations on the accumulator `v`, or on another one."""
    for line in recipe.lines(accumulator or scope.v, operand):
        scope.out.line(line)
    scope.out.charge(arithmetic=recipe.cost * scope.value.width)


def orders_of(accesses: tuple[Access, ...]) -> tuple[str, ...]:
    """The orders of reads."""
    return tuple(PATTERNS[access.pattern].order for access in accesses)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(AbstractStage):
    """Reads of one to three buffers, in a loop, a nest of two, or none, each followed by arithmetic."""

    outer: Trip | None
    inner: Trip | None
    accesses: tuple[Access, ...]
    recipes: tuple[Recipe, ...]

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Stream:
        """Draw one."""
        depth = draw.weighted({0: 42, 1: 46, 2: 12})
        outer = draw_trip(draw, setting.trips) if depth == 2 else None
        inner = draw_trip(draw, setting.fixed_trips if depth == 2 else setting.trips) if depth else None
        if depth == 2 and inner is not None:
            inner = Trip(kind="literal", low=1, high=draw.between(2, 9))
        steered = outer or inner
        count = draw.weighted({1: 55, 2: 30, 3: 15})
        return cls(
            outer=outer,
            inner=inner,
            accesses=tuple(draw_access(draw, setting.value, steered, setting.dims) for _ in range(count)),
            recipes=tuple(
                draw_recipe(draw, setting.value, draw.weighted({1: 60, 2: 25, 4: 15}), flavour=draw_flavour(draw))
                for _ in range(count)
            ),
        )

    def write(self, scope: Scope) -> None:
        with open_loop(scope, self.outer, "j") as outer, open_loop(scope, self.inner) as inner:
            step = inner
            if outer.k:
                bound = f"({outer.bound} * {inner.bound})" if outer.bound else ""
                step = Step(
                    k=f"({outer.k} * {inner.bound} + {inner.k})", bound=bound, size=f"{outer.size} * {inner.size}"
                )
            for access, recipe in zip(self.accesses, self.recipes, strict=True):
                apply_recipe(scope, recipe, read(scope, access, step))

    @property
    def orders(self) -> tuple[str, ...]:
        return orders_of(self.accesses)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return tuple(trip for trip in (self.outer, self.inner) if trip is not None)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(AbstractStage):
    """Elements that are moved from one buffer to another as they are."""

    trip: Trip
    access: Access
    to_rows: bool

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Copy:
        """Draw one."""
        trip = draw_trip(draw, setting.fixed_trips)
        return cls(trip=trip, access=draw_access(draw, setting.value, trip, setting.dims), to_rows=draw.chance(25))

    def write(self, scope: Scope) -> None:
        out, value = scope.out, scope.value
        with open_loop(scope, self.trip) as step:
            moved = read(scope, self.access, step)
            place = PATTERNS["rows" if self.to_rows else "unit"].place(scope, step, self.access)
            target = out.buffer("copy", value, place.count, "constant(0)", is_written=True)
            out.line(f"{target}[{place.index}] = {moved};")
            out.charge(operations=3, accesses=0.5, num_bytes=value.num_bytes)

    @property
    def orders(self) -> tuple[str, ...]:
        return orders_of((self.access,))

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (self.trip,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stencil(AbstractStage):
    """Reads of an element's neighbours, clamped at the edges or only where there are all."""

    radius: int
    is_star: bool
    is_clamped: bool
    access: Access
    recipe: Recipe

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Stencil:
        """Draw one."""
        access = draw_access(draw, setting.value, None, setting.dims)
        return cls(
            radius=draw.between(1, {1: 8, 2: 3, 3: 1}[setting.dims]),
            is_star=draw.chance(50),
            is_clamped=draw.chance(50),
            access=Access(pattern="clamped", storage=access.storage, stride=1, is_vload=access.is_vload),
            recipe=draw_recipe(draw, setting.value, draw.between(1, 2), flavour=draw_flavour(draw)),
        )

    def write(self, scope: Scope) -> None:
        axes = ("x", "y", "z")[: scope.dims] if scope.dims > 1 else ("i",)
        ends = ("w", "h", "d")[: scope.dims] if scope.dims > 1 else ("n",)
        shifts = [f"s{axis}" for axis in axes]
        if not self.is_clamped:
            inside = " && ".join(
                f"{axis} >= {self.radius} && {axis} < {end} - {self.radius}"
                for axis, end in zip(axes, ends, strict=True)
            )
            with scope.out.block(f"if ({inside})"):
                self._loops(scope, axes, ends, shifts)
        else:
            self._loops(scope, axes, ends, shifts)

    def _loops(self, scope: Scope, axes: tuple[str, ...], ends: tuple[str, ...], shifts: list[str]) -> None:
        out, span = scope.out, str(2 * self.radius + 1)
        if self.is_star:  # along each axis in turn
            for axis, shift in zip(axes, shifts, strict=True):
                with out.loop(f"for (int {shift} = -{self.radius}; {shift} <= {self.radius}; ++{shift})", span):
                    self._read(scope, {a: f"{a} + {shift}" if a == axis else a for a in axes}, axes, ends)
            return
        names = {axis: f"{axis} + {shift}" for axis, shift in zip(axes, shifts, strict=True)}
        self._nest(scope, list(shifts), span, names, axes, ends)

    def _nest(
        self,
        scope: Scope,
        shifts: list[str],
        span: str,
        names: dict[str, str],
        axes: tuple[str, ...],
        ends: tuple[str, ...],
    ) -> None:
        if not shifts:
            self._read(scope, names, axes, ends)
            return
        shift = shifts.pop()
        with scope.out.loop(f"for (int {shift} = -{self.radius}; {shift} <= {self.radius}; ++{shift})", span):
            self._nest(scope, shifts, span, names, axes, ends)

    def _read(self, scope: Scope, names: dict[str, str], axes: tuple[str, ...], ends: tuple[str, ...]) -> None:
        parts = [
            f"clamp({names[axis]}, 0, {end} - 1)" if self.is_clamped and names[axis] != axis else f"({names[axis]})"
            for axis, end in zip(axes, ends, strict=True)
        ]
        index = parts[-1]
        for part, end in zip(reversed(parts[:-1]), reversed(ends[:-1]), strict=True):
            index = f"({index} * {end} + {part})"
        scope.out.charge(operations=3 * len(axes))
        apply_recipe(scope, self.recipe, read_at(scope, self.access, Place(index=index, count="n")))

    @property
    def orders(self) -> tuple[str, ...]:
        return ("halo",)

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (Trip(kind="literal", low=1, high=2 * self.radius + 1),)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(AbstractStage):
    """Arithmetic in a loop, in one to four chains that do not wait for each other."""

    trip: Trip
    recipe: Recipe
    num_chains: int

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Compute:
        """Draw one."""
        return cls(
            trip=draw_trip(draw, setting.trips, has_buffer=False),
            recipe=draw_recipe(
                draw, setting.value, draw.spread(1, max(12 // setting.value.width, 2)), flavour=draw_flavour(draw)
            ),
            num_chains=draw.weighted({1: 50, 2: 25, 4: 25}),
        )

    def write(self, scope: Scope) -> None:
        out, value = scope.out, scope.value
        chains = [scope.v, *(out.fresh("chain") for _ in range(self.num_chains - 1))]
        factors = [value.literal(place + 2) for place in range(len(chains))]
        for name, factor in zip(chains[1:], factors, strict=False):
            start = f"{scope.v} + {factor}" if value.is_float else f"{scope.v} ^ {factor}"
            out.line(f"{value.name} {name} = {start};")
        with open_loop(scope, self.trip, "r") as step:
            operand = out.fresh("u")
            scaled = f"({value.scalar})({step.k} & 15)" + (
                f" * {ValueType(scalar=value.scalar).literal(0.0625)}" if value.is_float else ""
            )
            out.line(f"const {value.name} {operand} = {value.literal(scaled)};")
            for name in chains:
                apply_recipe(scope, self.recipe, operand, name)
        for name in chains[1:]:
            out.line(f"{scope.v} = {scope.v} {'+' if value.is_float else '^'} {name};")

    @property
    def trips(self) -> tuple[Trip, ...]:
        return (self.trip,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(AbstractStage):
    """Work-items that part ways by lane, by group, by place or by data."""

    by: str
    part: int
    then: Compute
    otherwise: Compute | None

    @classmethod
    def draw(cls, draw: Draw, setting: Setting) -> Branch:
        """Draw one."""
        inner = Setting(value=setting.value, dims=setting.dims, trips=setting.fixed_trips)
        return cls(
            by=draw.weighted({"lane": 25, "modulo": 15, "group": 15, "place": 10, "data": 25, "value": 10}),
            part=draw.between(1, 15),
            then=Compute.draw(draw, inner),
            otherwise=Compute.draw(draw, inner) if draw.chance(60) else None,
        )

    def write(self, scope: Scope) -> None:
        with scope.out.block(f"if ({self._condition(scope)})"):
            self.then.write(scope)
        if self.otherwise is not None:
            with scope.out.block("else"):
                self.otherwise.write(scope)

    def _condition(self, scope: Scope) -> str:
        if self.by == "lane":
            return f"({scope.lane()} & 31) < {2 * self.part}"
        if self.by == "modulo":
            return f"{scope.lane()} % {self.part + 1} == 0"
        if self.by == "group":
            return f"({scope.group()} & 15) < {self.part}"
        if self.by == "place":
            return f"(i & 1023) >= {64 * self.part}"
        if self.by == "value":
            return f"({scope.value.small_int(scope.v)} & 15) < {self.part}"
        flags = scope.out.buffer("flags", ValueType(scalar="uchar"), "n", "uniform(0,15)")
        scope.out.charge(accesses=1, num_bytes=1)
        return f"{flags}[i] < {self.part}"

    @property
    def trips(self) -> tuple[Trip, ...]:
        own = Trip(kind="data" if self.by in ("data", "value") else "literal", low=1, high=1)
        more = () if self.otherwise is None else self.otherwise.trips
        return (*self.then.trips, *more, *((own,) if self.by in ("data", "value") else ()))
