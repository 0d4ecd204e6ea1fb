"""How the work-items of a generated kernel are given elements, and where they store what they make of them."""

from __future__ import annotations

from dataclasses import replace

from perfvec.corpus.generator_access import INT, Scope
from perfvec.corpus.generator_structure import Structure
from perfvec.corpus.generator_values import ValueType


def _start(scope: Scope) -> None:
    start = scope.value.literal(0.5 if scope.value.is_float else 1)
    scope.out.line(f"{scope.value.name} {scope.v} = {start};")


def _element(structure: Structure, scope: Scope, valid: str) -> None:
    """The stages of one element, and its store unless the work-item keeps one value for all."""
    if not structure.is_accumulating:
        _start(scope)
    for stage in structure.stages:
        stage.write(scope)
    if not structure.is_accumulating:
        _store(structure, scope, "i", "n", valid)


def _items(structure: Structure, scope: Scope) -> None:
    out, dims = scope.out, structure.dims
    if dims == 1:
        out.scalar("n", "n")
        valid = _index(scope, "get_global_id(0)")
        _element(structure, scope, valid)
        return
    axes, ends = ("x", "y", "z")[:dims], ("w", "h", "d")[:dims]
    for dim, (axis, end) in enumerate(zip(axes, ends, strict=True)):
        out.scalar(end, end)
        place = f"get_global_id({dim})"
        out.line(f"const int {axis} = {f'min((int){place}, {end} - 1)' if scope.is_grouped else place};")
    if not scope.is_grouped:
        outside = " || ".join(f"{axis} >= {end}" for axis, end in zip(axes, ends, strict=True))
        out.line(f"if ({outside})")
        out.line("    return;")
    _linear(scope)
    inside = " && ".join(f"get_global_id({dim}) < {end}" for dim, end in enumerate(ends))
    _element(structure, scope, inside if scope.is_grouped else "")


def _linear(scope: Scope) -> None:
    """Number of elements and of the element, from those of the dimensions."""
    scope.out.line(f"const int n = {' * '.join(('w', 'h', 'd')[: scope.dims])};")
    scope.out.line(f"const int i = {'y * w + x' if scope.dims == 2 else '(z * h + y) * w + x'};")


def _index(scope: Scope, place: str) -> str:
    """Set `i` to a place, or to the last element where the place is past the end and a barrier follows."""
    out = scope.out
    if not scope.is_grouped:
        out.line(f"const int i = {place};")
        out.line("if (i >= n)")
        out.line("    return;")
        return ""
    out.line(f"const int item = {place};")
    out.line("const int i = min(item, n - 1);")
    return "item < n"


def _coarse(structure: Structure, scope: Scope) -> None:
    out = scope.out
    out.scalar("n", "n")
    count = out.size("COARSE", "macro", 2, 16)
    if structure.is_accumulating:
        _start(scope)
    with out.loop(f"for (int c = 0; c < {count}; ++c)", count):
        place = (
            f"get_global_id(0) * {count} + c" if structure.is_blocked else "get_global_id(0) + c * get_global_size(0)"
        )
        if scope.is_grouped:
            valid = _index(scope, place)
            _element(structure, scope, valid)
        else:
            out.line(f"const int i = {place};")
            with out.block("if (i < n)"):
                _element(structure, scope, "")
    _finish(structure, scope)


def _grid(structure: Structure, scope: Scope) -> None:
    out, dims = scope.out, structure.dims
    if structure.is_accumulating:
        _start(scope)
    last = dims - 1
    axis, end = ("i", "n") if dims == 1 else (("x", "y", "z")[last], ("w", "h", "d")[last])
    global_name = out.size(end, "elements", 1, 256, base="items" if dims == 1 else f"G{last}")
    for dim in range(last):
        lower, lower_end = ("x", "y", "z")[dim], ("w", "h", "d")[dim]
        out.scalar(lower_end, lower_end)
        place = f"get_global_id({dim})"
        out.line(f"const int {lower} = {f'min((int){place}, {lower_end} - 1)' if scope.is_grouped else place};")
        if not scope.is_grouped and not structure.is_accumulating:
            out.line(f"if ({lower} >= {lower_end})")
            out.line("    return;")
    clamped = [f"get_global_id({dim}) < {('w', 'h')[dim]}" for dim in range(last)]
    times = f"max(1, {end} // {'items' if dims == 1 else f'G{last}'})"
    if scope.is_grouped:
        items = scope.local_items() if dims == 1 else f"get_local_size({last})"
        step = f"base += get_num_groups({last}) * {items}"
        head = f"for (int base = get_group_id({last}) * {items}; base < {global_name}; {step})"
        with out.loop(head, times):
            out.line(f"const int item = base + get_local_id({last});")
            out.line(f"const int {axis} = min(item, {end} - 1);")
            if dims > 1:
                _linear(scope)
            _element(structure, scope, " && ".join(("item < " + end, *clamped)))
    else:
        head = f"for (int {axis} = get_global_id({last}); {axis} < {global_name}; {axis} += get_global_size({last}))"
        with out.loop(head, times):
            if dims > 1:
                _linear(scope)
            if structure.is_accumulating and clamped:
                with out.block(f"if ({' && '.join(clamped)})"):
                    _element(structure, scope, "")
            else:
                _element(structure, scope, "")
    _finish(structure, scope)


def _groups(structure: Structure, scope: Scope) -> None:
    out = scope.out
    out.scalar("n", "n")
    out.line("const int i = get_group_id(0);")
    _element(structure, scope, "")


TRAVERSALS = {"item": _items, "coarse": _coarse, "grid": _grid, "group": _groups}


def _finish(structure: Structure, scope: Scope) -> None:
    """Store what a work-item has kept over its elements, one place for each work-item."""
    if not structure.is_accumulating:
        return
    linear = "get_global_id(0)"
    if structure.dims == 2:
        linear = "get_global_id(1) * get_global_size(0) + get_global_id(0)"
    if structure.dims == 3:
        linear = "(get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0)"
    _store(replace(structure, store="first" if structure.store == "first" else "unit"), scope, linear, "items", "")


def _store(structure: Structure, scope: Scope, index: str, count: str, valid: str) -> None:
    out, value, stored = scope.out, structure.value, structure.stored
    if structure.store == "first":
        index, count, valid = scope.group(), "groups", f"{scope.lane()} == 0"
    elif structure.store == "transposed":
        index = "x * h + y" if structure.dims == 2 else "(x * h + y) * d + z"
    elif structure.store == "scattered":
        targets = out.buffer("targets", INT, count, "permutation()")
        index = f"{targets}[{index}]"
        out.charge(accesses=1, num_bytes=4)
    elif structure.store == "strided":
        index, count = f"{index} * 4 + 1", f"{count} * 4"
    elif structure.store == "rare":
        rare = f"({value.small_int(scope.v)} & 7) == 0"
        valid = f"{valid} && {rare}" if valid else rare
    pointee, elements = stored, count
    if stored.scalar == "half":
        pointee = ValueType(scalar="half")
        elements = count if stored.width == 1 else f"({count}) * {stored.width}"
    name = out.buffer("out", pointee, elements, "constant(0)", is_written=True)
    suffix = "" if stored.width == 1 else str(stored.width)
    text = f"{name}[{index}] = {_converted(value, stored, scope.v)};"
    if stored.scalar == "half":
        text = f"vstore_half{suffix}({scope.v}, {index}, {name});"
    if valid:
        out.line(f"if ({valid})")
        text = f"    {text}"
    out.line(text)
    out.charge(operations=3, accesses=0.5, num_bytes=stored.num_bytes)


def _converted(value: ValueType, stored: ValueType, name: str) -> str:
    if stored.scalar == value.scalar:
        return name
    is_exact = stored.is_float or (value.scalar == "uint" and stored.scalar == "uchar")
    return f"convert_{stored.name}{'' if is_exact else '_sat'}({name})"
