"""Writing a generated kernel down: lines of OpenCL C, and beside them its arguments, sizes and what each line costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, final

if TYPE_CHECKING:
    from perfvec.corpus.draw import Draw
    from perfvec.corpus.generator_values import ValueType

SizeKind: TypeAlias = Literal["argument", "macro", "data", "extent", "elements"]
_INDENT = "    "
# What the traversals call their variables and macros.
_RESERVED = ("n", "w", "h", "d", "i", "x", "y", "z", "v", "c", "item", "base", "lane", "group", "L", "LX", "LY")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A number that each launch of a kernel chooses.

    Attributes:
        name: In the kernel's arguments and macros.
        kind: "argument": a trip count passed as argument. "macro": one that a build option gives. "data": the most
            trips that data ask for. "extent": elements of a table, a power of two. "elements": elements that the
            launch works on, as a multiple of `base`.
        low: The least.
        high: The most.
        base: What "elements" are a multiple of.
    """

    name: str
    kind: SizeKind
    low: int
    high: int
    base: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a line costs a work-item each time.

    Attributes:
        times: How often a work-item runs it, an expression over the launch's names.
        operations: Simple operations on scalars.
        arithmetic: Of those, operations on the kernel's values, not on indices.
        accesses: Accesses to global memory.
        num_bytes: Bytes of them.
        serial_ns: What all work-items of the launch together wait for each other, for each of them.
    """

    times: str
    operations: float = 0.0
    arithmetic: float = 0.0
    accesses: float = 0.0
    num_bytes: float = 0.0
    serial_ns: float = 0.0


@final
@dataclass(slots=True, kw_only=True)
class Writer:
    """A kernel while it is written.

    Attributes:
        draw: For choices that belong to the writing, such as what a buffer holds.
        body: Lines, without those of `locals` and `prologue`.
        locals: Declarations of local memory.
        prologue: Variables by name that are set before the body.
        parameters: Declarations of parameters.
        args: The same as arguments in a suite's form (see `perfvec.corpus.suite`).
        buffers: Count and bytes of an element of each buffer.
        sizes: What a launch chooses.
        macros: Names that build options must define.
        costs: What the lines cost.
        local_item_bytes: Local memory for each work-item of a group.
        local_fixed_bytes: Other local memory.
        is_power_of_two: Whether work-groups must have a power of two of work-items.
        is_integer: Whether no float takes part.
        is_deterministic: Whether results do not depend on the order of work-items.
    """

    draw: Draw
    body: list[str] = field(default_factory=list)
    locals: list[str] = field(default_factory=list)
    prologue: dict[str, str] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    buffers: list[tuple[str, int]] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    macros: dict[str, str] = field(default_factory=dict)
    costs: list[Cost] = field(default_factory=list)
    local_item_bytes: int = 0
    local_fixed_bytes: int = 0
    is_power_of_two: bool = False
    is_integer: bool = True
    is_deterministic: bool = True
    _depth: int = 1
    _times: list[str] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_RESERVED, 1))
    _scalars: dict[str, str] = field(default_factory=dict)

    # ---- lines --------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Write a line."""
        self.body.append(_INDENT * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head {`, what the block writes, and `}`."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def loop(self, head: str, times: str) -> Iterator[None]:
        """A block that each work-item runs so many times, an expression over the launch's names."""
        self._times.append(times)
        with self.block(head):
            yield
        self._times.pop()

    def charge(
        self,
        *,
        operations: float = 0.0,
        arithmetic: float = 0.0,
        accesses: float = 0.0,
        num_bytes: float = 0.0,
        serial_ns: float = 0.0,
    ) -> None:
        """Note what a line costs here; arithmetic is counted among the operations."""
        times = "*".join(f"({text})" for text in self._times) or "1"
        self.costs.append(
            Cost(
                times=times,
                operations=operations + arithmetic,
                arithmetic=arithmetic,
                accesses=accesses,
                num_bytes=num_bytes,
                serial_ns=serial_ns,
            )
        )

    def barrier(self) -> None:
        """A barrier for local memory."""
        self.line("barrier(CLK_LOCAL_MEM_FENCE);")
        self.charge(operations=8)

    # ---- names --------------------------------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        """A name that nothing has yet."""
        number = self._taken[stem] = self._taken.get(stem, 0) + 1
        return stem if number == 1 else f"{stem}{number}"

    def buffer(
        self,
        stem: str,
        value: ValueType,
        count: str,
        contents: str,
        *,
        space: str = "__global",
        is_written: bool = False,
    ) -> str:
        """Add a buffer parameter.

        Args:
            stem: Its name, or the beginning of it.
            value: Type of its elements; the pointer is to scalars where the type is half, as vload_half wants it.
            count: Elements, an expression over the launch's names.
            contents: Initialiser.
            space: `__global` or `__constant`.
            is_written: Whether the kernel writes to it.
        """
        name = self.fresh(stem)
        const = "" if is_written else "const "
        self.parameters.append(f"{space} {const}{value.name}* {'' if space == '__constant' else 'restrict '}{name}")
        self.args.append(f"buffer:{value.element}:{count}:{contents}")
        self.buffers.append((count, value.num_bytes))
        return name

    def scalar(self, name: str, value: str, *, type_name: str = "int") -> str:
        """Add an int or uint parameter, once a name."""
        if name not in self._scalars:
            self._scalars[name] = value
            self.parameters.append(f"const {type_name} {name}")
            self.args.append(f"{type_name}32:{value}")
        return name

    def size(self, stem: str, kind: SizeKind, low: int, high: int, *, base: str = "") -> str:
        """Add a number that launches choose; arguments and macros are declared, too."""
        name = stem if kind == "elements" else self.fresh(stem)
        self.sizes.append(Size(name=name, kind=kind, low=low, high=high, base=base))
        if kind in ("argument", "elements"):
            self.scalar(name, name)
        elif kind == "macro":
            self.macros[name] = name
        return name

    def extent(self, low: int = 1 << 8, high: int = 1 << 25) -> tuple[str, str]:
        """Elements of a table, a power of two: the name of the size, and of the parameter that is one less."""
        name = self.size("extent", "extent", low, high)
        return name, self.scalar(self.fresh("mask"), f"{name} - 1")

    def local(self, stem: str, value: ValueType, count: str, *, item_bytes: int = 0, fixed_bytes: int = 0) -> str:
        """Add an array in local memory, declared in the kernel or passed as an argument."""
        name = self.fresh(stem)
        self.local_item_bytes += item_bytes
        self.local_fixed_bytes += fixed_bytes
        if self.draw.chance(20):
            self.parameters.append(f"__local {value.name}* {name}")
            self.args.append(f"local:{value.element}:{count}")
        else:
            self.locals.append(f"__local {value.name} {name}[{count}];")
        return name
