"""Counted resources: what each token, and a whole launch, uses of each unit of `perfvec.resources`.

What a token uses is the sum of what its static instruction always uses and of what its memory outcome adds, so both are
worked out once, by row of the trace's tables, and looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.resources import NUM_COUNTED, RESOURCE_INDEX, SLOT_LADDER
from perfvec.trace_data import ADDRESS_SPACES, OPCODE_CLASSES, SECTOR_BYTES, VALUE_KINDS, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Resources that add up over tokens, in the order of the columns of `count_token_units`.
TOKEN_UNITS = (
    "fp32_issue", "fp64_issue", "int_issue", "special_issue", "other_issue", "local_passes", "l1_sectors",
    "l2_sectors", "dram_sectors", "atomic_passes", "barriers",
)  # fmt: skip
_ISSUE = TOKEN_UNITS[:5]
_COLUMN = {name: column for column, name in enumerate(TOKEN_UNITS)}
_ARITHMETIC = ("add", "mul", "fma", "compare")
_INTEGER = ("add", "mul", "compare", "logic", "shift", "convert")
_SPECIAL = ("div", "sqrt", "special", "native")
# Reuse distances, as buckets of log2 lines of 128 B, past which a sector is not found again: in the first-level cache
# of a compute unit (64 KiB) and in the last level (32 MiB).
L1_BUCKET = 10
L2_BUCKET = 19


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTables:
    """Units by row of a trace's tables.

    Attributes:
        by_static: `(static, units)`: what each execution of an instruction uses.
        by_outcome: `(4, outcomes + 1, units)`: what its memory outcome adds, by kind of instruction; the last outcome
            is that of instructions without access.
        kind: `(static,)`: 2 if it accesses local memory, plus 1 if it is atomic.
        executed: `(static,)`: how often the launch executes the instruction.
        window_weight: `(windows,)`: how often it executes each window.
    """

    by_static: NDArray[np.float64]
    by_outcome: NDArray[np.float64]
    kind: NDArray[np.int64]
    executed: NDArray[np.float64]
    window_weight: NDArray[np.float64]


def _is_class(trace: Trace, names: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([name in names for name in OPCODE_CLASSES])[trace.static["opcode_class"]]


def _is_space(trace: Trace, *names: str) -> NDArray[np.bool_]:
    return np.array([name in names for name in ADDRESS_SPACES])[trace.static["address_space"]]


def unit_tables(trace: Trace) -> UnitTables:
    """Work out what instructions and memory outcomes of a trace use.

    An instruction on a vector counts once a scalar, one on 64-bit integers twice.
    """
    from perfvec.program.core.units import count_executions

    static = trace.static
    window_weight = trace.window_weight
    executed, outcomes = count_executions(
        trace.token_static, trace.token_memory, trace.window_start, window_weight, len(static), len(trace.memory)
    )
    units = np.zeros((len(static), len(TOKEN_UNITS)))
    width = np.maximum(static["vector_width"], 1).astype(np.float64)
    is_float = static["value_kind"] == VALUE_KINDS.index("float")
    is_wide = static["bits"] == 64
    arithmetic, integer, special = (_is_class(trace, names) for names in (_ARITHMETIC, _INTEGER, _SPECIAL))
    fp32, fp64 = arithmetic & is_float & ~is_wide, arithmetic & is_float & is_wide
    whole = integer & ~fp32 & ~fp64
    for name, mask in (("fp32_issue", fp32), ("fp64_issue", fp64), ("special_issue", special)):
        units[mask, _COLUMN[name]] = width[mask]
    units[whole, _COLUMN["int_issue"]] = (width * (1 + is_wide))[whole]
    units[~(fp32 | fp64 | whole | special), _COLUMN["other_issue"]] = 1.0
    units[_is_class(trace, ("barrier",)), _COLUMN["barriers"]] = 1.0
    kind = 2 * _is_space(trace, "local") + _is_class(trace, ("atomic",)).astype(np.int64)
    return UnitTables(
        by_static=units,
        by_outcome=_outcome_units(trace, outcomes),
        kind=kind,
        executed=executed,
        window_weight=window_weight,
    )


def _outcome_units(trace: Trace, executed: NDArray[np.float64]) -> NDArray[np.float64]:
    memory = {name: trace.memory[name].astype(np.float64) for name in trace.memory.dtype.names or ()}
    same = np.maximum(memory["same_address"], 1.0)
    missed_l1 = np.where(memory["reuse_work_group"] > L1_BUCKET, memory["sectors"], memory["cold_sectors_work_group"])
    far = memory["reuse_device"] > L2_BUCKET
    dram = _cold_share(trace, executed) * np.where(far, missed_l1, memory["cold_sectors_device"])
    units = np.zeros((4, len(trace.memory) + 1, len(TOKEN_UNITS)))
    for is_local in (0, 1):
        for is_atomic in (0, 1):
            table = units[2 * is_local + is_atomic, :-1]
            if is_local:
                table[:, _COLUMN["local_passes"]] = memory["bank_passes"] * (same if is_atomic else 1.0)
                continue
            table[:, _COLUMN["l1_sectors"]] = memory["sectors"]
            table[:, _COLUMN["l2_sectors"]] = memory["sectors"] if is_atomic else missed_l1
            table[:, _COLUMN["dram_sectors"]] = dram
            table[:, _COLUMN["atomic_passes"]] = same if is_atomic else 0.0
    return units


def _cold_share(trace: Trace, executed: NDArray[np.float64]) -> float:
    """By how much the sample overstates first touches: sampled work-groups lack neighbours that share their lines."""
    cold = float(trace.memory["cold_sectors_device"] @ executed)
    return min(1.0, trace.context.footprint_bytes / SECTOR_BYTES / cold) if cold else 1.0


def count_token_units(
    trace: Trace, tables: UnitTables, tokens: NDArray[np.int64] | slice = slice(None)
) -> NDArray[np.float64]:
    """Units that one execution of each token uses.

    Args:
        trace: The trace.
        tables: `unit_tables(trace)`.
        tokens: Which tokens; all unless given.

    Returns:
        Shape `(tokens, len(TOKEN_UNITS))`.
    """
    static, outcome = trace.token_static[tokens], trace.token_memory[tokens]
    return tables.by_static[static] + tables.by_outcome[tables.kind[static], outcome]


def count_window_units(trace: Trace, tables: UnitTables) -> NDArray[np.float64]:
    """Units that one execution of each window uses, shape `(windows, len(TOKEN_UNITS))`."""
    from perfvec.program.core.units import add_up_windows

    return add_up_windows(
        trace.token_static, trace.token_memory, trace.window_start, tables.by_static, tables.by_outcome, tables.kind
    )


def count_resources(trace: Trace, tables: UnitTables, window_units: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the whole launch uses: the counted coordinates of its program vector.

    Args:
        trace: The trace.
        tables: `unit_tables(trace)`.
        window_units: `count_window_units(trace, tables)`.

    Returns:
        Shape `(NUM_COUNTED,)`, in the units of `perfvec.resources`.
    """
    totals = tables.window_weight @ window_units
    counted = np.zeros(NUM_COUNTED)
    counted[RESOURCE_INDEX["launch"]] = 1.0
    counted[RESOURCE_INDEX["work_groups"]] = trace.context.num_work_groups
    counted[RESOURCE_INDEX["serial_atomics"]] = trace.context.hottest_atomics
    for name, total in zip(TOKEN_UNITS, totals, strict=True):
        counted[RESOURCE_INDEX[name]] = total
    issue = sum(totals[_COLUMN[name]] for name in _ISSUE)
    accesses = float(tables.executed[_is_space(trace, "global", "constant")].sum())
    num_sub_groups = float(trace.sub_groups["weight"].sum())
    longest = trace.context.max_instructions / max(trace.context.mean_instructions, 1.0)
    for slots in SLOT_LADDER:
        # No slot ends before the longest sub-group does, however many there are.
        share = max(1.0 / min(num_sub_groups, slots), longest / num_sub_groups)
        counted[RESOURCE_INDEX[f"issue_per_slot_{slots}"]] = issue * share
        counted[RESOURCE_INDEX[f"access_per_slot_{slots}"]] = accesses * share
    return counted
