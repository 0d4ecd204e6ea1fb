"""Features: what the encoder sees of each token and of the launch. All are device independent.

The names below are the schema. `FEATURES_VERSION` changes with them; a model refuses features of another version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.program.counts import UnitTables, count_resources, count_token_units, count_window_units, unit_tables
from perfvec.resources import COUNTED
from perfvec.trace_data import (
    ADDRESS_SPACES,
    CONTEXT_FIELDS,
    OPCODE_CLASSES,
    STRIDE_CLASSES,
    SUB_GROUP_SIZE,
    VALUE_KINDS,
    Trace,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES_VERSION = 3
_MEMORY_LOGS = (
    "sectors", "lines", "sectors_8", "lines_8", "sectors_16", "lines_16", "bank_passes", "same_address",
    "distinct_addresses", "cold_sectors_work_group", "cold_sectors_device",
)  # fmt: skip
_REUSE = ("reuse_work_group", "reuse_device")
_MOST_BUCKETS = 32.0
# Fields of the context that are no counts: from 0 to about 1.
SHARES = ("split_share", "branch_entropy")

FEATURE_NAMES: tuple[str, ...] = (
    *(f"class_{name}" for name in OPCODE_CLASSES),
    *(f"kind_{name}" for name in VALUE_KINDS),
    *(f"space_{name}" for name in ADDRESS_SPACES),
    *(f"stride_{name}" for name in STRIDE_CLASSES),
    "is_used",  # 1 if another instruction reads the result
    "log_bits",  # log2(1 + bits of one scalar) / 6
    "log_vector_width",  # log2(scalars) / 4
    "log_access_bytes",  # log2(1 + bytes a lane moves) / 7
    "log_contention",  # of atomics: log2(1 + operations on the address of one, on average) / 16
    "lanes",  # active lanes / 32
    *(f"log_{name}" for name in _MEMORY_LOGS),  # log2(1 + value) / 8
    *_REUSE,  # bucket / 32; 0 at first touch and where there is no access
    "producer_distance",  # 1 / tokens back to the nearest producer in the window; 0 if none is in it
    "producer_is_load",  # whether that producer is a load or atomic
    "num_producers",  # producers in the window / 3
)
CONTEXT_NAMES: tuple[str, ...] = (
    *(f"log_{name}" for name in CONTEXT_FIELDS if name not in SHARES),  # log2(1 + value) / 16
    *SHARES,  # as they are
    *(f"log_{resource.name}" for resource in COUNTED),  # log2(1 + count) / 32
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """A launch as the model sees it: arrays and nothing else.

    Attributes:
        token_features: float32 `(tokens, len(FEATURE_NAMES))`.
        token_units: float32 `(tokens, len(TOKEN_UNITS))`: units that one execution of the token uses.
        window_start: int64 `(windows + 1,)`: first token of each window.
        window_weight: float64 `(windows,)`: executions of each window in the launch.
        context: float32 `(len(CONTEXT_NAMES),)`.
        resources: float64 `(NUM_COUNTED,)`: the launch's counted resources.
    """

    token_features: NDArray[np.float32]
    token_units: NDArray[np.float32]
    window_start: NDArray[np.int64]
    window_weight: NDArray[np.float64]
    context: NDArray[np.float32]
    resources: NDArray[np.float64]


def make_features(
    trace: Trace,
    windows: NDArray[np.int64] | None = None,
    *,
    tables: UnitTables | None = None,
    window_units: NDArray[np.float64] | None = None,
) -> Features:
    """Turn a trace into features.

    Args:
        trace: The trace.
        windows: Which windows to make token features of, rising; all of them where it is None. Context and counted
            resources are the whole launch's in any case.
        tables: `unit_tables(trace)`, if at hand.
        window_units: `count_window_units(trace, tables)`, if at hand.
    """
    tables = unit_tables(trace) if tables is None else tables
    window_units = count_window_units(trace, tables) if window_units is None else window_units
    resources = count_resources(trace, tables, window_units)
    chosen = np.arange(trace.num_windows) if windows is None else windows
    start, tokens = tokens_of_windows(trace.window_start, chosen)
    return Features(
        token_features=_token_features(trace, start, tokens),
        token_units=count_token_units(trace, tables, tokens).astype(np.float32),
        window_start=start,
        window_weight=tables.window_weight[chosen],
        context=_context(trace, resources),
        resources=resources,
    )


def tokens_of_windows(
    window_start: NDArray[np.int64], windows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where chosen windows start once they stand one behind the other, and which tokens they have."""
    lengths = np.diff(window_start)[windows]
    start = np.concatenate([[0], np.cumsum(lengths)])
    return start, np.repeat(window_start[:-1][windows] - start[:-1], lengths) + np.arange(start[-1])


def _one_hot(values: NDArray[np.integer], size: int) -> NDArray[np.float32]:
    return np.eye(size, dtype=np.float32)[values]


def _log2(values: NDArray[np.generic], scale: float) -> NDArray[np.float32]:
    return np.asarray(np.log2(1.0 + values.astype(np.float64)) / scale, np.float32)


def _token_features(trace: Trace, start: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.float32]:
    static, token_static = trace.static, trace.token_static[tokens]
    by_static = np.concatenate(
        [
            _one_hot(static["opcode_class"], len(OPCODE_CLASSES)),
            _one_hot(static["value_kind"], len(VALUE_KINDS)),
            _one_hot(static["address_space"], len(ADDRESS_SPACES)),
        ],
        axis=1,
    )[token_static]
    sizes = np.stack(
        [
            static["is_used"].astype(np.float32),
            _log2(static["bits"], 6.0),
            _log2(np.maximum(static["vector_width"], 1) - 1, 4.0),
            _log2(static["access_bytes"], 7.0),
            _log2(static["contention"], 16.0),
        ],
        axis=1,
    )[token_static]
    memory = np.append(trace.memory, np.zeros(1, trace.memory.dtype))[trace.token_memory[tokens]]
    by_memory = np.stack(
        [
            *(_log2(memory[name], 8.0) for name in _MEMORY_LOGS),
            *(memory[name].astype(np.float32) / _MOST_BUCKETS for name in _REUSE),
        ],
        axis=1,
    )
    lanes = (trace.token_lanes[tokens] / SUB_GROUP_SIZE).astype(np.float32)[:, None]
    strides = _one_hot(memory["stride_class"], len(STRIDE_CLASSES))
    features: NDArray[np.float32] = np.concatenate(
        [by_static, strides, sizes, lanes, by_memory, _dependences(trace, start, token_static)], axis=1
    )
    assert features.shape[1] == len(FEATURE_NAMES)
    return features


def _dependences(trace: Trace, start: NDArray[np.int64], token_static: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Where in its window each token's operands come from."""
    is_load = np.isin(trace.static["opcode_class"], [OPCODE_CLASSES.index("load"), OPCODE_CLASSES.index("atomic")])
    distance, is_from_load, count = nearest_producers(token_static, start, trace.static["producers"], is_load)
    near = np.divide(1.0, distance, out=np.zeros(len(distance)), where=distance > 0)
    return np.stack([near, is_from_load, count / 3.0], axis=1).astype(np.float32)


def nearest_producers(
    token_static: NDArray[np.uint32],
    window_start: NDArray[np.int64],
    producers: NDArray[np.int32],
    is_load: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Distance to each token's nearest producer in its window, whether that is a load, and how many are in it.

    Args:
        token_static: Static instruction of each token; shape `(tokens,)`.
        window_start: First token of each window; shape `(windows + 1,)`.
        producers: Static instructions that make the operands; shape `(static, 3)`; -1 where none.
        is_load: By static instruction.

    Returns:
        Three arrays of shape `(tokens,)`; distance 0 where no producer is in the window.
    """
    from perfvec.program.core.dependences import find_producers

    return find_producers(token_static, window_start, np.ascontiguousarray(producers), is_load)


def _context(trace: Trace, resources: NDArray[np.float64]) -> NDArray[np.float32]:
    counts = np.array([float(getattr(trace.context, name)) for name in CONTEXT_FIELDS if name not in SHARES])
    shares = np.array([getattr(trace.context, name) for name in SHARES], np.float32)
    return np.concatenate([_log2(counts, 16.0), shares, _log2(resources, 32.0)])
