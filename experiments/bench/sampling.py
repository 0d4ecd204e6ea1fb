"""`make bench-sampling`: how far the default sample of work-groups is from a trace of all of them.

For each of 30 kernels of the suites: the largest relative error of the sample's weighted count over the classes of
instructions that make at least `SHARE` of the launch's, the error of its global-memory sectors requested, and that of
sectors from DRAM; and the seconds that the default trace takes. Compiling is left out.

The kernels: those of `CHOSEN` (irregular work, skew, edges, ragged sizes), and as many more at equal distances in the
sorted list of all other kernels as make 30. Of a kernel's launches that with the most work-groups up to `MOST_GROUPS`,
where the kernel has any with skewed data (SKEW over 0) only among those; kernels without a launch of more than
`FEWEST_GROUPS` are passed over, since nothing is sampled.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass

import numpy as np

from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.launch import Launch
from perfvec.program.counts import TOKEN_UNITS, count_resources, count_window_units, unit_tables
from perfvec.program.executor import compile_launch
from perfvec.program.tracer import trace_launch
from perfvec.resources import RESOURCE_INDEX
from perfvec.trace_data import OPCODE_CLASSES, Trace

CHOSEN = (
    "graph/bfs_top_down", "graph/bfs_bottom_up", "graph/sssp_push", "graph/triangles_merge", "sparse/spmv_csr_scalar",
    "sparse/spmv_csr_vector", "sparse/spmm_csr", "sparse/spgemm_symbolic", "scan/histogram_global",
    "scan/histogram_local", "image/histogram_global", "stencil/heat2d", "stencil/box27", "stencil/lbm_obstacles",
    "stencil/line_window", "image/mandelbrot", "image/bilateral_exp", "dense/gemm_naive", "dense/transpose_naive",
    "nbody/tree_walk",
)  # fmt: skip
NUM_KERNELS = 30
MOST_GROUPS, FEWEST_GROUPS = 2500, 64
SHARE = 0.01
CLASS_BOUND, SECTORS_BOUND = 0.02, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors of a launch's sample, as fractions, and the seconds that the sample's trace took.

    Attributes:
        opcode_class: The class of instructions with the largest error.
        instructions: That error.
        sectors: Error of the 32 B sectors that global accesses ask for.
        dram_sectors: Error of those that come from DRAM.
        seconds: Wall time of the default trace.
    """

    opcode_class: str
    instructions: float
    sectors: float
    dram_sectors: float
    seconds: float


def choose_launches() -> list[SuiteLaunch]:
    """The launches that the module's docstring describes."""
    by_kernel: dict[str, list[SuiteLaunch]] = defaultdict(list)
    for entry in load_suites():
        if FEWEST_GROUPS < math.prod(entry.launch.num_groups) <= MOST_GROUPS:
            by_kernel[f"{entry.suite}/{entry.kernel}"].append(entry)
    others = sorted(set(by_kernel) - set(CHOSEN))
    places = np.linspace(0, len(others) - 1, NUM_KERNELS - len(CHOSEN)).round().astype(int)
    names = (*CHOSEN, *(others[place] for place in places))
    return [max(by_kernel[name], key=_skew_and_size) for name in names]


def _skew_and_size(entry: SuiteLaunch) -> tuple[bool, int]:
    is_skewed = re.search(r"\bSKEW=(?!0(?:,|$))", entry.parameters) is not None
    return is_skewed, math.prod(entry.launch.num_groups)


def count_classes(trace: Trace) -> np.ndarray:
    """Sub-group instructions of the launch by opcode class, float64 `(len(OPCODE_CLASSES),)`."""
    return np.bincount(
        trace.static["opcode_class"][trace.token_static], weights=trace.token_weight, minlength=len(OPCODE_CLASSES)
    )


def compare(launch: Launch) -> Errors:
    """Trace a launch by default and in full, and compare the counts."""
    compile_launch(launch)
    start = time.perf_counter()
    sample = trace_launch(launch)
    seconds = time.perf_counter() - start
    whole = trace_launch(launch, work_groups=None)
    expected, found = count_classes(whole), count_classes(sample)
    large = np.flatnonzero(expected >= SHARE * expected.sum())
    errors = np.abs(found[large] / expected[large] - 1)
    sectors, dram = (_unit_error(sample, whole, name) for name in ("l1_sectors", "dram_sectors"))
    worst = int(errors.argmax())
    return Errors(
        opcode_class=OPCODE_CLASSES[large[worst]],
        instructions=float(errors[worst]),
        sectors=sectors,
        dram_sectors=dram,
        seconds=seconds,
    )


def _resources(trace: Trace) -> np.ndarray:
    tables = unit_tables(trace)
    return count_resources(trace, tables, count_window_units(trace, tables))


def _unit_error(sample: Trace, whole: Trace, name: str) -> float:
    assert name in TOKEN_UNITS
    found, expected = (_resources(trace)[RESOURCE_INDEX[name]] for trace in (sample, whole))
    return float(abs(found / expected - 1)) if expected else float(found > 0)


def main() -> None:
    """Run the benchmark."""
    entries = choose_launches()
    trace_launch(entries[0].launch)  # loads the compiled numba code
    rows: dict[str, Errors] = {}
    sys.stdout.write(f"{'launch':86}{'instructions':>24}{'sectors':>9}{'DRAM':>8}{'s':>7}\n")
    for entry in entries:
        row = rows[entry.name] = compare(entry.launch)
        sys.stdout.write(
            f"{entry.name[:84]:86}{row.instructions:14.2%} {row.opcode_class:>9}{row.sectors:9.2%}"
            f"{row.dram_sectors:8.1%}{row.seconds:7.2f}\n"
        )
        sys.stdout.flush()
    result = {
        "launches": len(rows),
        "instructions_within_bound": sum(row.instructions <= CLASS_BOUND for row in rows.values()),
        "sectors_within_bound": sum(row.sectors <= SECTORS_BOUND for row in rows.values()),
        "worst_instructions": max(row.instructions for row in rows.values()),
        "worst_sectors": max(row.sectors for row in rows.values()),
        "most_seconds": max(row.seconds for row in rows.values()),
        "rows": {name: asdict(row) for name, row in rows.items()},
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
