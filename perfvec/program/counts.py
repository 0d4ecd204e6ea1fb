"""Counted resources: what each token, and a whole launch, uses of each unit of `perfvec.resources`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.resources import NUM_RESOURCES, RESOURCE_INDEX, SLOT_LADDER
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


def _class_mask(trace: Trace, names: tuple[str, ...]) -> NDArray[np.bool_]:
    wanted = np.array([name in names for name in OPCODE_CLASSES])
    return wanted[trace.static["opcode_class"]][trace.token_static]


def _outcome(trace: Trace, name: str) -> NDArray[np.float64]:
    """A field of each token's memory outcome; 0 where it has none."""
    values = np.append(trace.memory[name].astype(np.float64), 0.0)
    return values[trace.token_memory]


def count_token_units(trace: Trace) -> NDArray[np.float64]:
    """Units that one execution of each token uses.

    Args:
        trace: The trace.

    Returns:
        Shape `(tokens, len(TOKEN_UNITS))`. An instruction on a vector counts once a scalar, one on 64-bit integers
        twice.
    """
    units = np.zeros((trace.num_tokens, len(TOKEN_UNITS)))
    static = trace.static[trace.token_static]
    width = np.maximum(static["vector_width"], 1).astype(np.float64)
    is_float = static["value_kind"] == VALUE_KINDS.index("float")
    is_wide = static["bits"] == 64
    arithmetic, integer = _class_mask(trace, _ARITHMETIC), _class_mask(trace, _INTEGER)
    special = _class_mask(trace, _SPECIAL)
    fp32, fp64 = arithmetic & is_float & ~is_wide, arithmetic & is_float & is_wide
    whole = integer & ~fp32 & ~fp64
    for name, mask in (("fp32_issue", fp32), ("fp64_issue", fp64), ("special_issue", special)):
        units[mask, _COLUMN[name]] = width[mask]
    units[whole, _COLUMN["int_issue"]] = (width * (1 + is_wide))[whole]
    units[~(fp32 | fp64 | whole | special), _COLUMN["other_issue"]] = 1.0
    space = static["address_space"]
    is_local = space == ADDRESS_SPACES.index("local")
    atomic = _class_mask(trace, ("atomic",))
    same = np.maximum(_outcome(trace, "same_address"), 1.0)
    sectors = _outcome(trace, "sectors")
    units[:, _COLUMN["local_passes"]] = np.where(
        is_local, _outcome(trace, "bank_passes") * np.where(atomic, same, 1.0), 0.0
    )
    units[:, _COLUMN["l1_sectors"]] = sectors
    missed_l1 = np.where(
        _outcome(trace, "reuse_work_group") > L1_BUCKET, sectors, _outcome(trace, "cold_sectors_work_group")
    )
    units[:, _COLUMN["l2_sectors"]] = np.where(atomic & ~is_local, sectors, missed_l1)
    far = _outcome(trace, "reuse_device") > L2_BUCKET
    units[:, _COLUMN["dram_sectors"]] = _cold_share(trace) * np.where(
        far, missed_l1, _outcome(trace, "cold_sectors_device")
    )
    units[:, _COLUMN["atomic_passes"]] = np.where(atomic & ~is_local, same, 0.0)
    units[_class_mask(trace, ("barrier",)), _COLUMN["barriers"]] = 1.0
    return units


def _cold_share(trace: Trace) -> float:
    """By how much the sample overstates first touches: sampled work-groups lack neighbours that share their lines."""
    cold = float(_outcome(trace, "cold_sectors_device") @ trace.token_weight)
    return min(1.0, trace.context.footprint_bytes / SECTOR_BYTES / cold) if cold else 1.0


def count_resources(trace: Trace, units: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """What the whole launch uses: the counted coordinates of its program vector.

    Args:
        trace: The trace.
        units: `count_token_units(trace)`, if at hand.

    Returns:
        Shape `(NUM_RESOURCES,)`, in the units of `perfvec.resources`.
    """
    units = count_token_units(trace) if units is None else units
    totals = trace.token_weight @ units
    counted = np.zeros(NUM_RESOURCES)
    counted[RESOURCE_INDEX["launch"]] = 1.0
    counted[RESOURCE_INDEX["work_groups"]] = trace.context.num_work_groups
    for name, total in zip(TOKEN_UNITS, totals, strict=True):
        counted[RESOURCE_INDEX[name]] = total
    issue = sum(totals[_COLUMN[name]] for name in _ISSUE)
    is_global = np.isin(
        trace.static["address_space"], [ADDRESS_SPACES.index("global"), ADDRESS_SPACES.index("constant")]
    )[trace.token_static]
    accesses = float(trace.token_weight[is_global].sum())
    num_sub_groups = float(trace.sub_groups["weight"].sum())
    longest = trace.context.max_instructions / max(trace.context.mean_instructions, 1.0)
    for slots in SLOT_LADDER:
        resident = min(num_sub_groups, slots)
        # No slot ends before the longest sub-group does, however many there are.
        share = max(1.0 / resident, longest / num_sub_groups)
        counted[RESOURCE_INDEX[f"issue_per_slot_{slots}"]] = issue * share
        counted[RESOURCE_INDEX[f"access_per_slot_{slots}"]] = accesses * share
    return counted
