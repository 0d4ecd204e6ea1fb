"""Definitions of the functions that find, read and write texels, as LLVM IR text.

Source:
    OpenCL 1.2 specification, sections 6.12.14 (functions) and 8.2 (addressing and filtering); checked against PoCL and
    Oclgrind by tests/program/test_images.py and test_image_oracles.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import final

from perfvec.arguments import ADDRESSING_MODES, FILTER_MODES
from perfvec.program.builtins import ValueType
from perfvec.program.builtins.cl_types import FLOAT, INT, LONG
from perfvec.program.builtins.emit import Emitter, Value
from perfvec.program.driver import TAG_SHIFT, word
from perfvec.program.images import (
    OUTSIDE,
    ImageCall,
    bits_of_coordinate,
    header_word,
    image_call,
    index_name,
    texel_name,
)
from perfvec.program.texels import BORDER, HEADER_BYTES, HEADER_WORDS, HELD_BYTES, NOWHERE

_HELD = ValueType(INT, 4)
_IMAGE = f"""
define internal ptr @pv.image(ptr %.ctx, ptr addrspace(1) %image) alwaysinline {{
  %table.p = {word("table")}
  %table = load ptr, ptr %table.p, !invariant.load !0
  %address = ptrtoint ptr addrspace(1) %image to i64
  %number = lshr i64 %address, {TAG_SHIFT}
  %base.p = getelementptr {{ i64, i64 }}, ptr %table, i64 %number, i32 1
  %base = load i64, ptr %base.p, !invariant.load !0
  %real = add i64 %base, {HEADER_BYTES}
  %result = inttoptr i64 %real to ptr
  ret ptr %result
}}
"""


def define_image_functions(callees: Iterable[str]) -> str:
    """Define what the calls of images need, as text of a module."""
    declarations: dict[str, str] = {}
    functions = [text for callee in callees for text in _define(callee, declarations)]
    return "\n".join([_IMAGE, *functions, *declarations.values(), ""])


def _define(callee: str, declarations: dict[str, str]) -> list[str]:
    call = image_call(callee)
    if call is None:  # a query
        return []
    index = _Function(call, declarations)
    index.returns(index.index())
    head = f"ptr %image, {call.coordinates.llvm} %coordinates, i32 %sampler"
    texel = _Function(call, declarations)
    if call.is_write:
        texel.write()
        return [
            index.text("i64", index_name(callee), head),
            texel.text("void", texel_name(callee), f"{head}, {_HELD.of(call.texel).llvm} %texel"),
        ]
    result = texel.read()
    texel.returns(result)
    return [
        index.text("i64", index_name(callee), head),
        texel.text(result.type.llvm, texel_name(callee), head),
    ]


@final
@dataclass(frozen=True, slots=True)
class _Axis:
    """Where on an axis a read lies: the texel `at` that place, whether there is one or not, and what the sampler takes.

    That is the texel `low`; where it filters, `high` as well, by its weight.
    """

    at: Value
    low: Value
    high: Value
    weight: Value
    size: Value


@final
class _Function:
    """A function of an image, coordinates and sampler in the making."""

    def __init__(self, call: ImageCall, declarations: dict[str, str]) -> None:
        self._call = call
        self._emitter = Emitter(declarations)
        # Undefined ones are as good as any: what comes of them is checked or kept inside the image.
        coordinates = self._emitter.instruction(f"freeze {call.coordinates.llvm} %coordinates", call.coordinates)
        self._coordinates = coordinates.elements()
        self._sampler = self._emitter.instruction("freeze i32 %sampler", ValueType(INT))
        self._mode = self._sampler & 0xE

    def text(self, result: str, name: str, parameters: str) -> str:
        """The whole definition."""
        return "\n".join([f"define internal {result} @{name}({parameters}) {{", *self._emitter.lines, "}"])

    def returns(self, value: Value) -> None:
        """End it."""
        self._emitter.lines.append(f"  ret {value.typed}")

    # ---- places -------------------------------------------------------------------------------------------------

    def index(self) -> Value:
        """Number of the texel; `BORDER`, or one from `OUTSIDE` on where the program must not read or write."""
        axes, where = self._axes(), self._emitter.where
        place, is_inside = self._place([axis.at for axis in axes], axes)
        checked = where(is_inside, place, self._outside([axis.at for axis in axes]))
        if not self._call.has_sampler:
            return checked
        place, is_inside = self._place([axis.low for axis in axes], axes)
        return where(self._has_mode("none"), checked, where(is_inside, place, place.same(BORDER)))

    def _outside(self, at: Sequence[Value]) -> Value:
        """A number that no texel has and that tells the coordinates (see `images.coordinates_outside`)."""
        layer = self._layer()
        where = [*at, *([layer[0]] if layer else [])]
        bits = bits_of_coordinate(len(where))
        number = where[0].to(LONG).same(OUTSIDE)
        for place, coordinate in enumerate(where):
            wide = coordinate.to(LONG) + (1 << bits - 1)
            wide = self._emitter.intrinsic("smin", wide, wide.same((1 << bits) - 2))
            number = number + (self._emitter.intrinsic("smax", wide, wide.same(0)) << bits * place)
        return number

    def _place(self, at: Sequence[Value], axes: Sequence[_Axis]) -> tuple[Value, Value]:
        """Number of a texel, and whether the image has it."""
        layer = self._layer()
        where = [*zip(at, (axis.size for axis in axes), strict=True), *([layer] if layer else [])]
        place, is_inside = None, None
        for coordinate, size in reversed(where):
            is_between = coordinate.unsigned().lt(size.unsigned())
            is_inside = is_between if is_inside is None else is_inside & is_between
            wide = coordinate.to(LONG)
            place = wide if place is None else place * size.to(LONG) + wide
        assert place is not None and is_inside is not None
        return place, is_inside

    def _axes(self) -> list[_Axis]:
        sizes = [self._size(name) for name in HEADER_WORDS[: self._call.axes]]
        make = self._sampled if self._call.coordinates.scalar == FLOAT else self._whole
        return [make(coordinate, size) for coordinate, size in zip(self._coordinates, sizes, strict=False)]

    def _size(self, name: str) -> Value:
        emitter = self._emitter
        place = header_word(name)
        pointer = f"%size{len(emitter.lines)}"
        emitter.lines.append(f"  {pointer} = getelementptr i32, ptr %image, i64 {place}")
        return emitter.instruction(f"load i32, ptr {pointer}", ValueType(INT))

    def _layer(self) -> tuple[Value, Value] | None:
        if not self._call.has_layers:
            return None
        number, layers = self._coordinates[self._call.axes], self._size("layers")
        if number.scalar == FLOAT:
            number = self._emitter.intrinsic("rint", number).to(INT)
        return number if self._call.is_write else self._clamped(number, layers), layers

    def _whole(self, coordinate: Value, size: Value) -> _Axis:
        """A coordinate that is a whole number: no filter, and no way but to clamp."""
        low = self._addressed(coordinate, size) if self._call.has_sampler else coordinate
        return _Axis(coordinate, low, low, low, size)

    def _sampled(self, coordinate: Value, size: Value) -> _Axis:
        emitter = self._emitter
        floor, rint = (lambda v: emitter.intrinsic("floor", v)), (lambda v: emitter.intrinsic("rint", v))
        repeated = coordinate - floor(coordinate)
        mirrored = (coordinate - rint(coordinate * 0.5) * 2.0).magnitude()
        part = emitter.where(self._has_mode("mirrored_repeat"), mirrored, coordinate)
        part = emitter.where(self._has_mode("repeat"), repeated, part)
        is_normalized = (self._sampler & 1).ne(0)
        place = emitter.where(is_normalized, part * size.to(FLOAT), coordinate)
        at = floor(place).to(INT)
        place = emitter.where(self._is_linear(), place - 0.5, place)
        below = floor(place)
        low = below.to(INT)
        return _Axis(at, self._addressed(low, size), self._addressed(low + 1, size), place - below, size)

    def _has_mode(self, addressing: str) -> Value:
        return self._mode.eq(ADDRESSING_MODES[addressing])

    def _is_linear(self) -> Value:
        return (self._sampler & FILTER_MODES["linear"]).ne(0)

    def _addressed(self, place: Value, size: Value) -> Value:
        """The texel that the sampler takes for one at `place`, which may lie outside."""
        where = self._emitter.where
        wrapped = where(place.lt(0), place + size, where(place.ge(size), place - size, place))
        clamped = self._clamped(place, size)
        return where(self._has_mode("clamp"), place, where(self._has_mode("repeat"), wrapped, clamped))

    def _clamped(self, place: Value, size: Value) -> Value:
        return self._emitter.intrinsic("smax", self._emitter.intrinsic("smin", place, size - 1), place.same(0))

    # ---- texels -------------------------------------------------------------------------------------------------

    def read(self) -> Value:
        """The texel, or the mean of several."""
        axes = self._axes()
        nearest = self._load([axis.low for axis in axes], axes)
        if not self._call.can_filter:
            return nearest
        mean = None
        for corner in product((False, True), repeat=len(axes)):
            at = [axis.high if is_high else axis.low for axis, is_high in zip(axes, corner, strict=True)]
            weight = None
            for axis, is_high in zip(axes, corner, strict=True):
                factor = axis.weight if is_high else 1.0 - axis.weight
                weight = factor if weight is None else weight * factor
            assert weight is not None
            term = self._load(at, axes) * weight.broadcast(4)
            mean = term if mean is None else mean + term
        assert mean is not None
        return self._emitter.where(self._is_linear().broadcast(4), mean, nearest)

    def _load(self, at: Sequence[Value], axes: Sequence[_Axis]) -> Value:
        type_ = _HELD.of(self._call.texel)
        pointer = self._pointer(at, axes, BORDER)
        return self._emitter.instruction(f"load {type_.llvm}, ptr {pointer}, align {HELD_BYTES}", type_)

    def write(self) -> None:
        """Store the texel."""
        axes = self._axes()
        pointer = self._pointer([axis.low for axis in axes], axes, NOWHERE)
        type_text = _HELD.of(self._call.texel).llvm
        self._emitter.lines += [f"  store {type_text} %texel, ptr {pointer}, align {HELD_BYTES}", "  ret void"]

    def _pointer(self, at: Sequence[Value], axes: Sequence[_Axis], outside: int) -> str:
        place, is_inside = self._place(at, axes)
        index = self._emitter.where(is_inside, place, outside)
        pointer = f"%texel{len(self._emitter.lines)}"
        self._emitter.lines.append(f"  {pointer} = getelementptr [{HELD_BYTES} x i8], ptr %image, {index.typed}")
        return pointer
