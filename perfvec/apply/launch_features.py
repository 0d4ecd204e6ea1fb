"""What kind of launch it is: a few figures of a trace, for comparing corpora. All are device independent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.trace_data import ADDRESS_SPACES, OPCODE_CLASSES, SUB_GROUP_SIZE, VALUE_KINDS, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Floating-point operations of a scalar, by class of instruction.
FLOAT_COST = {"add": 1, "mul": 1, "fma": 2, "div": 1, "sqrt": 1, "special": 1, "native": 1}
_INTEGER = ("add", "mul", "div", "logic", "shift")
# Classes of instructions as a reader thinks of them.
CLASSES: dict[str, tuple[str, ...]] = {
    "arithmetic": ("add", "mul", "fma", "compare", "logic", "shift", "convert", "select", "vector"),
    "division and special functions": ("div", "sqrt", "special", "native"),
    "addresses": ("address", "work_item"),
    "memory": ("load", "store", "copy", "prefetch", "image"),
    "atomics": ("atomic",),
    "control": ("branch", "return"),
    "barriers": ("barrier", "fence"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFeatures:
    """A launch in a few figures.

    Attributes:
        arithmetic_intensity: FLOP (a fused multiply-add is two) a byte that lanes move to or from global memory.
        operations_per_byte: The same with integer arithmetic, that of addresses included.
        divergence: Share of lanes that stand idle, over all instructions; 0 to 1.
        sectors_per_access: Sectors of 32 B that a sub-group's access to global memory touches.
        footprint_bytes: Distinct bytes touched.
        instructions: Of the launch, by sub-groups.
        instructions_per_sub_group: On average.
        work_items: Of the launch.
        atomic_share: Of all instructions.
        local_share: Accesses to local memory, of all instructions.
        class_shares: Of all instructions, by `CLASSES`.
    """

    arithmetic_intensity: float
    operations_per_byte: float
    divergence: float
    sectors_per_access: float
    footprint_bytes: float
    instructions: float
    instructions_per_sub_group: float
    work_items: float
    atomic_share: float
    local_share: float
    class_shares: Mapping[str, float]


FEATURES = tuple(name for name in LaunchFeatures.__slots__ if name != "class_shares")
# Those that span decades.
LOGARITHMIC = frozenset(
    ("arithmetic_intensity", "operations_per_byte", "footprint_bytes", "instructions", "instructions_per_sub_group",
     "work_items")
)  # fmt: skip


def features_of(trace: Trace) -> LaunchFeatures:
    """Work the figures out from a trace."""
    static = trace.static[trace.token_static]
    weight = trace.token_weight
    lanes = weight * trace.token_lanes
    scalars = lanes * np.maximum(static["vector_width"], 1)
    classes = static["opcode_class"]
    is_global = _is(static["address_space"], ADDRESS_SPACES, ("global", "constant"))
    is_access = is_global & (trace.token_memory >= 0)
    num_bytes = max(float(lanes[is_access] @ static["access_bytes"][is_access]), 1.0)
    is_float = static["value_kind"] == VALUE_KINDS.index("float")
    cost = np.array([FLOAT_COST.get(name, 0) for name in OPCODE_CLASSES])[classes]
    flops = float(scalars[is_float] @ cost[is_float])
    whole = ~is_float & _is(classes, OPCODE_CLASSES, _INTEGER)
    total = float(weight.sum())
    sectors = trace.memory["sectors"][trace.token_memory[is_access]]
    accesses = float(weight[is_access].sum())
    is_local = static["address_space"] == ADDRESS_SPACES.index("local")
    return LaunchFeatures(
        arithmetic_intensity=flops / num_bytes,
        operations_per_byte=(flops + float(scalars[whole].sum())) / num_bytes,
        divergence=1.0 - float(lanes.sum()) / (SUB_GROUP_SIZE * total),
        sectors_per_access=float(weight[is_access] @ sectors) / accesses if accesses else 0.0,
        footprint_bytes=trace.context.footprint_bytes,
        instructions=total,
        instructions_per_sub_group=trace.context.mean_instructions,
        work_items=float(trace.context.num_work_items),
        atomic_share=_share(classes, ("atomic",), weight),
        local_share=float(weight[is_local].sum()) / total,
        class_shares={name: _share(classes, members, weight) for name, members in CLASSES.items()},
    )


def _is(values: NDArray[np.integer], names: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([name in wanted for name in names])[values]


def _share(classes: NDArray[np.integer], members: tuple[str, ...], weight: NDArray[np.float64]) -> float:
    return float(weight[_is(classes, OPCODE_CLASSES, members)].sum() / weight.sum())
