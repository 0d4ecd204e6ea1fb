"""Polynomials and conditions in words, for the reasons that a person reads."""

from __future__ import annotations

from fractions import Fraction

from perfvec.corpus.analysis.conditions import Condition
from perfvec.corpus.analysis.polynomial import Atom, Polynomial
from perfvec.corpus.analysis.symbolic import SymbolicKernel

MOST_CHARACTERS = 100
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SYMBOLS = {"div": "/", "rem": "%", "quotient": "/", "and": "&", "or": "|"}
_AXES = ("width", "height", "depth")


def in_words(kernel: SymbolicKernel, polynomial: Polynomial) -> str:
    """A polynomial as OpenCL C would write it, cut where it is long."""
    text = _sum(kernel, polynomial, 0)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 3] + "..."


def condition_in_words(kernel: SymbolicKernel, condition: Condition) -> str:
    """A comparison as OpenCL C would write it, with its line."""
    sign = _SIGNS[condition.predicate[-2:]]
    left, right = in_words(kernel, condition.left), in_words(kernel, condition.right)
    return f"{left} {sign} {right}" + (f" (line {condition.line})" if condition.line else "")


def scalar_name(kernel: SymbolicKernel, index: int, component: int) -> str:
    """A scalar argument, a component of it, by name."""
    parameter = kernel.kernel.parameters[index]
    if parameter.byval:
        return f"{parameter.name[1:]}.byte{component}"
    is_vector = parameter.type.startswith("<")
    return parameter.name[1:] + (f".s{component:x}" if is_vector else "")


def _sum(kernel: SymbolicKernel, polynomial: Polynomial, depth: int) -> str:
    if depth > 3:
        return "..."
    parts = []
    for product, coefficient in sorted(polynomial.terms.items(), key=lambda item: not item[0]):
        factors = [_atom(kernel, atom, depth) for atom in product]
        size = abs(coefficient)
        if size != 1 or not factors:
            factors.insert(0, str(size) if isinstance(size, int) or size.denominator == 1 else f"{float(size):.6g}")
        sign = "-" if coefficient < 0 else "+"
        parts.append(f"{sign} {'*'.join(factors)}")
    text = " ".join(parts).removeprefix("+ ") or "0"
    return "-" + text[2:] if text.startswith("- ") else text


def _atom(kernel: SymbolicKernel, atom: Atom, depth: int) -> str:
    key = atom.key
    if atom.kind == "id":
        return "get_work_dim()" if key[0] == "work_dim" else f"get_{key[0]}({key[1]})"
    if atom.kind == "scalar":
        return scalar_name(kernel, int(str(key[0])), int(str(key[1])))
    if atom.kind == "image":
        name = kernel.kernel.parameters[int(str(key[0]))].name[1:]
        return f"get_image_{_AXES[int(str(key[1]))]}({name})"
    if atom.kind == "phi":
        return str(key[0])[1:].split(".")[0]
    if atom.kind in ("load", "atomic"):
        pointer, _ = kernel.values.loads[atom]
        return f"{pointer[0][0].name or 'memory'}[...]"
    if atom.kind in _SYMBOLS:
        left, right = (_sum(kernel, part, depth + 1) for part in atom.polynomials)
        return f"(({left}) {_SYMBOLS[atom.kind]} ({right}))"
    if atom.polynomials and atom.kind not in ("merge", "select"):
        return f"{atom.kind}({', '.join(_sum(kernel, part, depth + 1) for part in atom.polynomials)})"
    return str(key[0]).lstrip("%") if key and isinstance(key[0], str) else atom.kind


def number_in_words(value: int | Fraction | float) -> str:
    """A number, whole where it is."""
    return str(int(value)) if value == int(value) else f"{float(value):.6g}"
