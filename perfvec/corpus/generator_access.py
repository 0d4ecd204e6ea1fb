"""Loops and memory accesses of generated kernels: how often, and which element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from perfvec.corpus.generator_values import STORAGE, ValueType

if TYPE_CHECKING:
    from perfvec.corpus.draw import Draw
    from perfvec.corpus.generator_writer import Writer

TripKind: TypeAlias = Literal["literal", "macro", "argument", "data", "lane"]
INT = ValueType(scalar="int")
UINT = ValueType(scalar="uint")
_MOST_TRIPS = 8192
_MOST_BUFFER_TRIPS = 1024


@final
@dataclass(slots=True, kw_only=True)
class Scope:
    """Where a stage is written: the names around it.

    Attributes:
        out: The kernel.
        value: Type of the accumulator `v`.
        dims: Dimensions of the NDRange.
        is_grouped: Whether a barrier may stand here: no work-item has left, and elements past the end are clamped.
        is_cooperative: Whether a work-group shares an element, so that loops are split among its work-items.
        v: The accumulator.
    """

    out: Writer
    value: ValueType
    dims: int
    is_grouped: bool
    is_cooperative: bool
    v: str = "v"

    def lane(self) -> str:
        """The work-item's place in its group, first dimension fastest."""
        text = "get_local_id(0)"
        if self.dims > 1:
            text = f"get_local_id(1) * LX + {text}"
            self.out.macros["LX"] = "LX"
        if self.dims > 2:
            text = "(get_local_id(2) * LY + get_local_id(1)) * LX + get_local_id(0)"
            self.out.macros["LY"] = "LY"
        self.out.prologue.setdefault("lane", text)
        return "lane"

    def group(self) -> str:
        """The work-group's number, first dimension fastest."""
        text = "get_group_id(0)"
        for dim in range(1, self.dims):
            inner = " * ".join(f"get_num_groups({lower})" for lower in range(dim))
            text = f"get_group_id({dim}) * {inner} + {text}"
        self.out.prologue.setdefault("group", text)
        return "group"

    def local_items(self) -> str:
        """Work-items of a group, a macro."""
        self.out.macros["L"] = "L"
        return "L"


# ---- loops ------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One trip of a loop, or of none.

    Attributes:
        k: Its number, OpenCL C; "" outside loops.
        bound: The most there can be, OpenCL C; "" where only the data know.
        size: The same over the launch's names.
    """

    k: str = ""
    bound: str = "1"
    size: str = "1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """A trip count.

    Attributes:
        kind: "literal": in the source. "macro": from a build option. "argument": from a kernel argument. "data": from
            a buffer, by element. "lane": from the work-item's place in its group.
        low: The least that a launch may choose.
        high: The most; the count itself of a "literal".
        unroll: Written so often in a row; 0 leaves that to the compiler.
    """

    kind: TripKind
    low: int
    high: int
    unroll: int = 0

    @property
    def is_fixed(self) -> bool:
        """Whether all work-items make as many trips."""
        return self.kind in ("literal", "macro", "argument")


def draw_trip(draw: Draw, kinds: Mapping[TripKind, int], *, has_buffer: bool = True) -> Trip:
    """Draw a trip count.

    Args:
        draw: Where from.
        kinds: Weights of the kinds.
        has_buffer: Whether a buffer grows with it.
    """
    kind = draw.weighted(kinds)
    if kind == "literal":
        return Trip(kind=kind, low=1, high=draw.spread(2, 64), unroll=draw.weighted({0: 80, 1: 10, 4: 10}))
    if kind == "lane":
        return Trip(kind=kind, low=1, high=draw.power_of_two(4, 64))
    return Trip(kind=kind, low=draw.choice((1, 2, 4, 16)), high=_MOST_BUFFER_TRIPS if has_buffer else _MOST_TRIPS)


@contextmanager
def open_loop(scope: Scope, trip: Trip | None, stem: str = "k", *, has_barrier: bool = False) -> Iterator[Step]:
    """Write a loop; nothing where there is no trip count. One with a barrier is never split among work-items."""
    if trip is None:
        yield Step()
        return
    out, k = scope.out, scope.out.fresh(stem)
    is_shared = scope.is_cooperative and trip.is_fixed and not has_barrier
    bound, size, times = _bound(scope, trip)
    first, step = "0", f"++{k}"
    if is_shared:
        items = scope.local_items()
        first, step, times = scope.lane(), f"{k} += {items}", f"max(1, {size} // {items})"
    if trip.unroll and not has_barrier:  # clang refuses, loudly, to unroll over barriers
        out.line(f"#pragma unroll {trip.unroll}")
    with out.loop(f"for (int {k} = {first}; {k} < {bound}; {step})", times):
        out.charge(operations=2)
        yield Step(k=k, bound=bound if trip.is_fixed else "", size=size)


def fixed_bound(scope: Scope, trip: Trip) -> str:
    """The bound of a loop that all work-items run as often; the same text in OpenCL C and over the launch's names."""
    if trip.kind == "literal":
        return str(trip.high)
    if trip.kind == "macro":
        return scope.out.size("TRIPS", "macro", trip.low, trip.high)
    return scope.out.size("m", "argument", trip.low, trip.high)


def _bound(scope: Scope, trip: Trip) -> tuple[str, str, str]:
    """The bound in OpenCL C, the most that it can be, and how often the loop runs on average."""
    if trip.is_fixed:
        bound = fixed_bound(scope, trip)
        return bound, bound, bound
    out = scope.out
    name = out.fresh("trips")
    if trip.kind == "lane":
        bound = f"1 + ({scope.lane()} & {trip.high - 1}) * {out.draw.between(1, 4)}"
        most = 1 + 4 * trip.high
        out.line(f"const int {name} = {bound};")
        return name, str(most), str(trip.high)
    most = out.size("most", "data", trip.low, trip.high)
    counts = out.buffer("counts", INT, "n", f"uniform({out.draw.choice((0, 1))},{most})")
    out.line(f"const int {name} = {counts}[i];")
    out.charge(accesses=1, num_bytes=4)
    return name, most, f"{most} / 2 + 1"


# ---- which element ----------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An element of a buffer.

    Attributes:
        index: OpenCL C.
        count: Elements that the buffer must have, over the launch's names.
    """

    index: str
    count: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A read of global or constant memory.

    Attributes:
        pattern: A key of `PATTERNS`.
        storage: Type of the buffer's elements.
        stride: A small number that the pattern uses.
        is_vload: Whether vectors are read through a pointer to scalars.
    """

    pattern: str
    storage: ValueType
    stride: int
    is_vload: bool = False


def _unit(_scope: Scope, step: Step, _access: Access) -> Place:
    if not step.k:
        return Place(index="i", count="n")
    return Place(index=f"{step.k} * n + i", count=f"n * ({step.size})")


def _rows(_scope: Scope, step: Step, _access: Access) -> Place:
    if not step.k:
        return Place(index="i", count="n")
    return Place(index=f"i * {step.bound} + {step.k}", count=f"n * ({step.size})")


def _strided(_scope: Scope, step: Step, access: Access) -> Place:
    part = f"{step.k} % {access.stride}" if step.k else str(access.stride // 2)
    return Place(index=f"i * {access.stride} + {part}", count=f"n * {access.stride}")


def _broadcast(_scope: Scope, step: Step, _access: Access) -> Place:
    return Place(index=step.k or "0", count=step.size)


def _wrapped(scope: Scope, step: Step, access: Access) -> Place:
    extent, mask = scope.out.extent()
    more = f" + (uint){step.k} * {scope.out.draw.choice((1, 32, 33, 1024, 4099))}u" if step.k else ""
    return Place(index=f"((uint)i * {access.stride}u{more}) & {mask}", count=extent)


def _shifted(_scope: Scope, step: Step, access: Access) -> Place:
    return Place(index=f"i + {step.k or access.stride}", count=f"n + ({step.size if step.k else access.stride})")


def _clamped(_scope: Scope, step: Step, access: Access) -> Place:
    shift = f"{step.k} - {access.stride}" if step.k else f"{access.stride}"
    return Place(index=f"clamp(i + {shift}, 0, n - 1)", count="n")


def _transposed(scope: Scope, step: Step, _access: Access) -> Place:
    index = "x * h + y" if scope.dims == 2 else "(x * h + y) * d + z"
    if not step.k:
        return Place(index=index, count="n")
    return Place(index=f"{step.k} * n + {index}", count=f"n * ({step.size})")


def _indirect(scope: Scope, step: Step, access: Access) -> Place:
    out = scope.out
    extent, _ = out.extent(1 << 10, 1 << 24)
    through = _unit(scope, step, access)
    contents = f"near_indices({extent},{access.stride * 8})" if access.stride % 3 == 0 else f"indices({extent})"
    places = out.buffer("places", INT, through.count, contents)
    place = out.fresh("place")
    out.line(f"const int {place} = {places}[{through.index}];")
    out.charge(accesses=2, num_bytes=4)  # the second access waits for the first
    return Place(index=place, count=extent)


def _hashed(scope: Scope, step: Step, _access: Access) -> Place:
    out = scope.out
    extent, mask = out.extent()
    name = out.fresh("hash")
    more = f" + (uint){step.k} * 40503u" if step.k else ""
    out.line(f"uint {name} = (uint)i * 2654435761u{more};")
    out.line(f"{name} = ({name} ^ ({name} >> {out.draw.between(11, 17)})) * 739982445u;")
    out.charge(operations=6)
    return Place(index=f"({name} ^ ({name} >> {out.draw.between(11, 17)})) & {mask}", count=extent)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A way to choose the element.

    Attributes:
        place: The element that a work-item reads in a trip.
        order: What family it makes: the key of `ORDERS`.
        weight: How often it is drawn.
        is_fixed: Whether it needs a trip count that is the same for all.
        min_dims: Dimensions that it needs.
    """

    place: Callable[[Scope, Step, Access], Place]
    order: str
    weight: int
    is_fixed: bool = False
    min_dims: int = 1


# From regular to irregular.
ORDERS = ("affine", "strided", "transposed", "halo", "indirect")
PATTERNS: dict[str, Pattern] = {
    "unit": Pattern(place=_unit, order="affine", weight=34),
    "broadcast": Pattern(place=_broadcast, order="affine", weight=8),
    "rows": Pattern(place=_rows, order="strided", weight=10, is_fixed=True),
    "strided": Pattern(place=_strided, order="strided", weight=8),
    "wrapped": Pattern(place=_wrapped, order="strided", weight=8),
    "transposed": Pattern(place=_transposed, order="transposed", weight=24, min_dims=2),
    "shifted": Pattern(place=_shifted, order="halo", weight=7),
    "clamped": Pattern(place=_clamped, order="halo", weight=5),
    "indirect": Pattern(place=_indirect, order="indirect", weight=9),
    "hashed": Pattern(place=_hashed, order="indirect", weight=6),
}


def draw_access(draw: Draw, value: ValueType, trip: Trip | None, dims: int) -> Access:
    """Draw a read that makes values of a type."""
    weights = {
        name: pattern.weight
        for name, pattern in PATTERNS.items()
        if pattern.min_dims <= dims and (trip is None or trip.is_fixed or not pattern.is_fixed)
    }
    storage = ValueType(scalar=draw.weighted(STORAGE[value.scalar]), width=value.width)
    return Access(
        pattern=draw.weighted(weights),
        storage=storage,
        stride=draw.weighted({2: 20, 3: 20, 4: 20, 5: 5, 7: 5, 8: 10, 16: 10, 32: 6, 33: 4}),
        is_vload=value.width > 1 and draw.chance(25),
    )


def read(scope: Scope, access: Access, step: Step, stem: str = "a") -> str:
    """Write a read of a buffer of its own; the name of the variable that holds the value."""
    place = PATTERNS[access.pattern].place(scope, step, access)
    return read_at(scope, access, place, stem)


def read_at(scope: Scope, access: Access, place: Place, stem: str = "a") -> str:
    """Write a read at a place; the name of the variable that holds the value, of the scope's type."""
    out, storage, value = scope.out, access.storage, scope.value
    as_scalars = storage.scalar == "half" or access.is_vload
    if as_scalars:
        pointee = ValueType(scalar=storage.scalar)
        count = place.count if storage.width == 1 else f"({place.count}) * {storage.width}"
    else:
        pointee, count = storage, place.count
    name = out.buffer("data", pointee, count, pointee.contents(out.draw))
    text = load_text(name, storage, place.index, as_scalars=as_scalars)
    if storage.scalar not in (value.scalar, "half"):  # vload_half makes floats
        text = f"convert_{value.name}({text})"
    variable = out.fresh(stem)
    out.line(f"const {value.name} {variable} = {text};")
    out.charge(accesses=1, num_bytes=storage.num_bytes, operations=2)
    return variable


def load_text(name: str, storage: ValueType, index: str, *, as_scalars: bool) -> str:
    """The expression that reads an element."""
    suffix = "" if storage.width == 1 else str(storage.width)
    if storage.scalar == "half":
        return f"vload_half{suffix}({index}, {name})"
    return f"vload{suffix}({index}, {name})" if as_scalars else f"{name}[{index}]"
