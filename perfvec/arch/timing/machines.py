"""Many configurations as columns of numbers, with mechanisms switched off by what their columns become.

A mechanism that is switched off costs nothing: its rates are without end, its latencies are that of the level before.
Caches are the exception: without them nothing is kept, so that a launch is never faster for it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arch.timing.config import BACK, ROUND_ROBIN, WARM, TimingConfig
from perfvec.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

_ENDLESS = np.inf
# What becomes of columns where a mechanism is switched off. Columns that are no field of `TimingConfig` are below.
_OFF: dict[str, dict[str, float]] = {
    "issue": {"issue_width": _ENDLESS, "branch_latency_cycles": 0.0},
    "pipes": dict.fromkeys(("fp32_lanes", "fp64_lanes", "int_lanes", "special_lanes", "load_store_lanes"), _ENDLESS),
    "dependences": {"waits": 0.0},
    "in_order": {"lookahead_instructions": 256.0},
    "scheduling": {"is_round_robin": 0.0},
    "occupancy": {"limits_occupancy": 0.0},
    "divergence": {"counts_idle_lanes": 0.0},
    "coalescing": {"counts_scatter": 0.0},
    "bank_conflicts": {"counts_conflicts": 0.0},
    "local_bandwidth": {"local_banks": _ENDLESS},
    "l1_bandwidth": {"l1_bytes_per_cycle": _ENDLESS, "l1_lines_per_cycle": _ENDLESS},
    "l1_hits": {"l1_bytes": 0.0},
    "l2_bandwidth": {"l2_bytes_per_s": _ENDLESS, "l2_bytes_per_cycle_per_unit": _ENDLESS},
    "l2_hits": {"l2_bytes": 0.0},
    "stores": {"counts_stores": 0.0},
    "miss_limits": {"l1_miss_limit_sectors": _ENDLESS, "l2_miss_limit_sectors": _ENDLESS},
    "dram": {"dram_bytes_per_s": _ENDLESS, "dram_latency_s": 0.0},
    "atomics": {
        "local_atomic_cycles": 0.0, "l2_atomics_per_cycle": _ENDLESS, "l2_atomic_same_line_cycles": 0.0,
    },
    "barriers": {"barrier_cycles": 0.0},
    "dispatch": {"group_dispatch_s": 0.0, "group_start_cycles": 0.0},
    "launch": {"launch_overhead_s": 0.0},
    "tail": {"rounds_up": 0.0},
    "ramp": {"has_ramp": 0.0},
}  # fmt: skip
MECHANISMS = tuple(_OFF)
_SWITCHES = (
    "waits", "limits_occupancy", "counts_idle_lanes", "counts_scatter", "counts_conflicts", "counts_stores",
    "rounds_up", "has_ramp",
)  # fmt: skip
_TRUTHS = {
    "is_round_robin": ("scheduler_policy", ROUND_ROBIN),
    "l1_writes_back": ("l1_write_policy", BACK),
    "l2_writes_back": ("l2_write_policy", BACK),
    "is_warm": ("start", WARM),
}


@final
class Machines:
    """Columns of M configurations; `machines["l2_bytes"]` is float64 `(M,)`.

    Beside the fields that are numbers there are `is_round_robin`, `l1_writes_back`, `l2_writes_back`, `is_warm`, and
    the switches, all 0 or 1.
    """

    def __init__(self, configs: Sequence[TimingConfig], without: Collection[str] = ()) -> None:
        """Read the fields.

        Args:
            configs: One or more.
            without: Names in `MECHANISMS` that are switched off.

        Raises:
            ConfigError: There is no configuration, or a mechanism of that name.
        """
        if not configs:
            raise ConfigError("no configuration to simulate; give one TimingConfig or more")
        if unknown := sorted(set(without) - set(MECHANISMS)):
            raise ConfigError(f"no mechanism {', '.join(unknown)} to switch off; there are {', '.join(MECHANISMS)}")
        self._columns: dict[str, NDArray[np.float64]] = {
            entry.name: np.array([getattr(config, entry.name) for config in configs], dtype=np.float64)
            for entry in fields(TimingConfig)
            if entry.type != "str"
        }
        for name, (field, value) in _TRUTHS.items():
            self._columns[name] = np.array([float(getattr(config, field) == value) for config in configs])
        for name in _SWITCHES:
            self._columns[name] = np.ones(len(configs))
        self._configs = tuple(configs)
        for mechanism in without:
            for name, value in _OFF[mechanism].items():
                self._columns[name] = np.full(len(configs), value)

    def __len__(self) -> int:
        return len(self._configs)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._columns[name]

    @property
    def configs(self) -> tuple[TimingConfig, ...]:
        """The configurations."""
        return self._configs

    @property
    def dram_latency_cycles(self) -> NDArray[np.float64]:
        """Cycles of a load that misses everywhere; `(M,)`."""
        return np.maximum(self["dram_latency_s"] * self["clock_hz"], self["l2_latency_cycles"])
