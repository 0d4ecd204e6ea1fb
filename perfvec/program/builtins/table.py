"""All built-ins by base name: those that only compute a value, and what the others are."""

from __future__ import annotations

import re
from functools import lru_cache

from perfvec.errors import UnsupportedError
from perfvec.program.builtins.builtin import Builtin
from perfvec.program.builtins.common import COMMON, GEOMETRIC
from perfvec.program.builtins.convert import conversion
from perfvec.program.builtins.demangle import Demangled, demangle
from perfvec.program.builtins.integer import INTEGER
from perfvec.program.builtins.math_functions import MATH
from perfvec.program.builtins.relational import RELATIONAL, SHUFFLES

VALUE_BUILTINS: dict[str, Builtin] = {**MATH, **INTEGER, **COMMON, **GEOMETRIC, **RELATIONAL, **SHUFFLES}

# Built-ins that touch memory, other work-items or the launch, and their opcode class; the executor's own business.
_OTHER_BUILTINS = {
    "barrier": "barrier",
    "work_group_barrier": "barrier",
    "wait_group_events": "barrier",
    "mem_fence": "fence",
    "read_mem_fence": "fence",
    "write_mem_fence": "fence",
    "atomic_work_item_fence": "fence",
    "sub_group_barrier": "fence",
    "prefetch": "prefetch",
    "printf": "other",
}
_OTHER_PATTERNS = tuple(
    (re.compile(pattern), opcode_class)
    for pattern, opcode_class in (
        (r"get_(work_dim|(global|local|group|enqueued|num_groups)\w*|\w*sub_group\w*)", "work_item"),
        (r"atom(ic)?_\w+", "atomic"),
        (r"vloada?(_half)?\d*", "load"),
        (r"vstorea?(_half)?\d*(_rt[ezpn])?", "store"),
        (r"async_work_group_\w+", "copy"),
        (r"(read|write)_image\w+|get_image_\w+", "image"),
        (r"sub_group_(inverse_ballot|ballot_\w+)", "logic"),
        (r"((intel_)?sub_group|work_group)_\w+", "sub_group"),
    )
)


@lru_cache(maxsize=4096)
def find_value_builtin(name: str) -> tuple[Builtin, Demangled] | None:
    """The definition of a mangled name, and the name taken apart; None if it is no value built-in."""
    try:
        demangled = demangle(name)
    except UnsupportedError:
        return None
    builtin = VALUE_BUILTINS.get(demangled.base) or conversion(demangled.base)
    if builtin is None or not builtin.accepts(demangled.arguments):
        return None
    return builtin, demangled


def is_value_builtin(name: str) -> bool:
    """Whether `define_builtins` defines this mangled name."""
    return find_value_builtin(name) is not None


def has_pointer_result(name: str) -> bool:
    """Whether a value built-in has a second result, which it stores through its last argument."""
    found = find_value_builtin(name)
    return found is not None and found[0].has_pointer_result


def classify_builtin(name: str) -> str | None:
    """The opcode class of a call.

    Args:
        name: Mangled name of the callee.

    Returns:
        Name in `trace_data.OPCODE_CLASSES`, also for built-ins that are not values, such as `barrier`; None if the
        name is no OpenCL built-in.
    """
    found = find_value_builtin(name)
    if found is not None:
        return found[0].opcode_class
    try:
        base = demangle(name).base
    except UnsupportedError:
        return "other" if name == "printf" else None
    if base in _OTHER_BUILTINS:
        return _OTHER_BUILTINS[base]
    return next((opcode_class for pattern, opcode_class in _OTHER_PATTERNS if pattern.fullmatch(base)), None)
