"""Pipes and latencies by opcode class: what a device's own instructions an instruction of the trace becomes.

The trace has LLVM's instructions. A device has none for a division or a sine; it runs a sequence for them, whose
length is a field of the configuration. Addresses are often part of the access, conversions often free.

Source:
    Pipes of a unit and their rates by class: NVIDIA, "CUDA C++ Programming Guide", table "Throughput of Native
    Arithmetic Instructions". Dependent latency and initiation interval of each class as separate numbers: Jia et al.,
    "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.arch.timing.core.orders import (
    BARRIER,
    BRANCH,
    LOAD_GLOBAL,
    LOAD_LOCAL,
    PLAIN,
    WRITE_GLOBAL,
    WRITE_LOCAL,
)
from perfvec.trace_data import ADDRESS_SPACES, OPCODE_CLASSES, VALUE_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.machines import Machines
    from perfvec.arch.timing.workload import Workload

PIPES = ("fp32", "fp64", "int", "special", "load_store", "none")
_FP32, _FP64, _INT, _SPECIAL, _LOAD_STORE, _NONE = range(len(PIPES))
ACCESS_CLASSES = ("load", "store", "atomic", "copy", "prefetch", "image")
# Widest access of a lane that is one instruction.
_WIDEST_BYTES = 16
# By class and type: pipe, how many instructions of it, and the field of the configuration that they are times.
_Recipe = tuple[tuple[int, float, str], ...]
_DIVISION: dict[str, _Recipe] = {
    "fp32": ((_SPECIAL, 1.0, ""), (_FP32, 1.0, "division_instructions")),
    "fp64": ((_SPECIAL, 1.0, ""), (_FP64, 1.0, "fp64_special_instructions")),
    "int32": ((_INT, 1.0, "integer_division_instructions"),),
    "int64": ((_INT, 4.0, "integer_division_instructions"),),
}
_FUNCTION: dict[str, _Recipe] = _DIVISION | {
    "fp32": ((_SPECIAL, 1.0, ""), (_FP32, 1.0, "special_instructions")),
    "fp64": ((_SPECIAL, 1.0, ""), (_FP64, 2.0, "fp64_special_instructions")),
}
_PLAIN: dict[str, _Recipe] = {
    "fp32": ((_FP32, 1.0, ""),),
    "fp64": ((_FP64, 1.0, ""),),
    "int32": ((_INT, 1.0, ""),),
    "int64": ((_INT, 2.0, ""),),
}
_BITS: dict[str, _Recipe] = _PLAIN | {"fp32": ((_INT, 1.0, ""),), "fp64": ((_INT, 2.0, ""),)}


def _always(*recipe: tuple[int, float, str]) -> dict[str, _Recipe]:
    return dict.fromkeys(_PLAIN, recipe)


_RECIPES: dict[str, dict[str, _Recipe]] = {
    "add": _PLAIN,
    "mul": _PLAIN | {"int64": ((_INT, 4.0, ""),)},
    "fma": _PLAIN,
    "compare": _PLAIN,
    "div": _DIVISION,
    "sqrt": _DIVISION,
    "special": _FUNCTION,
    "native": _PLAIN | {"fp32": ((_SPECIAL, 1.0, ""),), "fp64": ((_FP64, 2.0, "fp64_special_instructions"),)},
    "logic": _BITS,
    "shift": _BITS,
    "select": _BITS,
    "convert": _always((_INT, 1.0, "convert_instructions")),
    "address": _always((_INT, 1.0, "address_instructions")),
    "work_item": _always((_INT, 1.0, "")),
    "other": _always((_INT, 16.0, "")),
    "sub_group": _always((_LOAD_STORE, 1.0, "")),
    **dict.fromkeys(ACCESS_CLASSES, _always((_LOAD_STORE, 1.0, ""))),
    # Vectors of a lane are names for registers; branches, returns, barriers and fences are issued and no more.
    **dict.fromkeys(("vector",), _always()),
    **dict.fromkeys(("branch", "return", "barrier", "fence"), _always((_NONE, 1.0, ""))),
}
_LANES = ("fp32_lanes", "fp64_lanes", "int_lanes", "special_lanes", "load_store_lanes")
_LATENCIES = ("fp32_latency_cycles", "fp64_latency_cycles", "int_latency_cycles", "special_latency_cycles")


def is_class(static: NDArray[np.void], *names: str) -> NDArray[np.bool_]:
    """Which static instructions are of one of these opcode classes."""
    return np.array([name in names for name in OPCODE_CLASSES])[static["opcode_class"]]


def is_space(static: NDArray[np.void], *names: str) -> NDArray[np.bool_]:
    """Which static instructions access one of these address spaces."""
    return np.array([name in names for name in ADDRESS_SPACES])[static["address_space"]]


def instructions(workload: Workload, machines: Machines) -> NDArray[np.float64]:
    """Device instructions that each instruction of the trace becomes; none where a private array is in registers.

    Args:
        workload: The launch, of S static instructions.
        machines: M configurations.

    Returns:
        By pipe, `(len(PIPES), S, M)`.
    """
    static = workload.trace.static
    is_free = workload.in_registers | _keeps_its_bits(static)
    is_narrow = _divides_narrow(static)
    counts = np.zeros((len(PIPES), len(static), len(machines)))
    for row, entry in enumerate(static):
        if is_free[row]:
            continue
        for pipe, number, field in _recipe(entry, is_narrow[row]):
            counts[pipe, row] += number * _repeats(entry) * (machines[field] if field else 1.0)
    counts[:, _is_scalar(static)] *= machines["uniform_share"]
    return counts


def result_latency(static: NDArray[np.void], machines: Machines) -> NDArray[np.float64]:
    """Cycles until the result of each instruction is there, accesses left out; `(S, M)`.

    The instructions of a sequence wait for each other; those of a vector's scalars do not.
    """
    latency, is_narrow = np.zeros((len(static), len(machines))), _divides_narrow(static)
    for row, entry in enumerate(static):
        for pipe, number, field in _recipe(entry, is_narrow[row]):
            if pipe < len(_LATENCIES):
                latency[row] += number * (machines[field] if field else 1.0) * machines[_LATENCIES[pipe]]
    latency[is_class(static, "sub_group")] += machines["local_latency_cycles"]
    return latency * machines["waits"]


def pipe_cycles(counts: NDArray[np.float64], machines: Machines) -> NDArray[np.float64]:
    """Cycles for which one device sub-group keeps a unit's pipes busy, `(len(PIPES) - 1, S, M)`."""
    lanes = np.stack([machines[name] for name in _LANES])
    return counts[:-1] * (machines["sub_group_size"] / lanes)[:, None, :]


def sub_group_intervals(counts: NDArray[np.float64], machines: Machines) -> NDArray[np.float64]:
    """Cycles until a scheduler can start an instruction on the same pipe again, `(S, M)`.

    Each scheduler has its share of the arithmetic pipes; the load/store pipe is the whole unit's.
    """
    cycles = pipe_cycles(counts, machines)
    cycles[:_LOAD_STORE] *= machines["schedulers"]
    return cycles.max(axis=0)


def main_pipe(static: NDArray[np.void]) -> NDArray[np.int64]:
    """The pipe that an instruction takes first, `(S,)`."""
    return np.array([(_recipe(entry) or ((_NONE, 0.0, ""),))[0][0] for entry in static], dtype=np.int64)


def issue_order(static: NDArray[np.void]) -> NDArray[np.int64]:
    """What instructions may not be brought forward past each other, `(S,)`; see `core.scoreboard`."""
    order = np.full(len(static), PLAIN)
    is_local, is_global = is_space(static, "local"), is_space(static, "global", "generic")
    reads, writes = is_class(static, "load", "copy", "image"), is_class(static, "store", "atomic")
    order[reads & is_local], order[reads & is_global] = LOAD_LOCAL, LOAD_GLOBAL
    order[writes & is_local], order[writes & is_global] = WRITE_LOCAL, WRITE_GLOBAL
    order[is_class(static, "branch")] = BRANCH
    order[_has_unknown_count(static)] = BARRIER
    order[is_class(static, "barrier", "fence")] = BARRIER
    return order


def varies(static: NDArray[np.void]) -> NDArray[np.bool_]:
    """Whether a result may differ between lanes, `(S,)`: it follows from an id or from what is loaded."""
    found = is_class(static, "work_item", "load", "atomic", "sub_group", "image")
    while True:
        reached = found | _any_producer(static["producers"], found)
        if np.array_equal(reached, found):
            return found
        found = reached


def _is_scalar(static: NDArray[np.void]) -> NDArray[np.bool_]:
    """Integer instructions and branches of all lanes alike, but for loops that are not unrolled."""
    is_kind = is_class(static, "add", "mul", "compare", "logic", "shift", "select", "convert", "address", "div")
    is_int = is_kind & (static["value_kind"] != VALUE_KINDS.index("float"))
    return (is_int | is_class(static, "branch")) & ~varies(static) & ~_has_unknown_count(static)


def _keeps_its_bits(static: NDArray[np.void]) -> NDArray[np.bool_]:
    """Conversions between integers: they are registers, or halves of them."""
    is_int = static["value_kind"] == VALUE_KINDS.index("int")
    return is_class(static, "convert") & is_int & ~_any_producer(static["producers"], ~is_int)


def _has_unknown_count(static: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which branches end loops whose counter rises by what is only known when they run: compilers do not unroll them.

    Such a branch depends on a comparison with a sum of itself and another value.
    """
    producers = static["producers"]
    is_sum = is_class(static, "add") & (static["value_kind"] == VALUE_KINDS.index("int"))
    counts = is_sum & (producers == np.arange(len(static))[:, None]).any(axis=1) & ((producers >= 0).sum(axis=1) > 1)
    decides = is_class(static, "compare") & _any_producer(producers, counts)
    return is_class(static, "branch") & _any_producer(producers, decides)


def _any_producer(producers: NDArray[np.int32], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray((chosen[producers] & (producers >= 0)).any(axis=1))


def _divides_narrow(static: NDArray[np.void]) -> NDArray[np.bool_]:
    """Divisions of 64 bits whose operands are ids, sizes or have been made of 32 bits: they take a short way."""
    is_short = is_class(static, "convert", "work_item")
    known = static["producers"] >= 0
    return is_class(static, "div") & known.any(axis=1) & (is_short[static["producers"]] | ~known).all(axis=1)


def _recipe(entry: np.void, is_narrow: np.bool_ | bool = False) -> _Recipe:
    kind, is_wide = VALUE_KINDS[entry["value_kind"]], entry["bits"] == 64 and not is_narrow
    family = "fp" if kind == "float" else "int"
    return _RECIPES[OPCODE_CLASSES[entry["opcode_class"]]][f"{family}{64 if is_wide else 32}"]


def _repeats(entry: np.void) -> int:
    """Instructions of an access by its bytes, of others by the scalars of their vector."""
    if OPCODE_CLASSES[entry["opcode_class"]] in ACCESS_CLASSES:
        return max(1, -(-int(entry["access_bytes"]) // _WIDEST_BYTES))
    return max(1, int(entry["vector_width"]))
