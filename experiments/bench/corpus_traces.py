"""`make bench-corpus`: a default trace of each launch of the suites, and which took longest and most memory.

Time is that of the whole: compile, execute the sampled work-groups, record, make features, write the file. Memory is
the process's peak resident size while it does, buffers, compiler and Python included. The time of the processor is
given beside the wall's, which a busy machine makes longer. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfvec.apply.encoding import launch_input
from perfvec.apply.tracing import trace
from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.errors import PerfVecError
from perfvec.report.tables import Column, Table, render

SLOWEST = 10
MOST_SECONDS = 2.0
MOST_BYTES = 1 << 30
_CHUNKS = 50  # of four launches, that a process traces


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one launch took."""

    name: str
    trace_s: float
    cpu_s: float
    peak_bytes: int
    failure: str = ""


def peak_bytes() -> int:
    """The process's peak resident size since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def forget_peak() -> None:
    """Let the peak begin at what is resident now (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def cost_of(entry: SuiteLaunch) -> Cost:
    """Trace one launch as `perfvec trace` does, make its features, write its file."""
    forget_peak()
    failure = ""
    with tempfile.TemporaryDirectory() as folder:
        start, cpu_start = time.perf_counter(), time.process_time()
        try:
            traced = trace(entry.launch)
            launch_input(traced)
            traced.save(Path(folder) / "trace.h5")
        except PerfVecError as error:
            failure = f"{type(error).__name__}: {error}"
        trace_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
    return Cost(name=entry.name, trace_s=trace_s, cpu_s=cpu_s, peak_bytes=peak_bytes(), failure=failure)


def table_of(costs: list[Cost], title: str) -> Table:
    """The table of a few costs."""
    titles = ("time", "processor", "peak")
    columns = (Column(title="launch"), *(Column(title=text, is_number=True) for text in titles))
    rows = tuple(
        (c.name, f"{c.trace_s:.2f} s", f"{c.cpu_s:.2f} s", f"{c.peak_bytes / (1 << 20):.0f} MiB") for c in costs
    )
    return Table(title=title, columns=columns, rows=rows)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="trace only each N-th launch")
    options = parser.parse_args()
    launches = load_suites()[:: options.every]
    # Each process loads its code first, that for atomics too; where numba has kept none yet, it compiles for seconds.
    first = [next(entry for entry in load_suites() if entry.name.startswith("scan/histogram_local/"))]
    # Memory that earlier launches left behind is not the present one's: processes do not get old.
    with multiprocessing.get_context("spawn").Pool(
        options.processes, initializer=cost_of, initargs=first, maxtasksperchild=_CHUNKS
    ) as pool:
        costs = pool.map(cost_of, launches, chunksize=4)
    by_time = sorted(costs, key=lambda cost: -cost.cpu_s)
    by_memory = sorted(costs, key=lambda cost: -cost.peak_bytes)
    seconds, cpu = (np.array([getattr(cost, name) for cost in costs]) for name in ("trace_s", "cpu_s"))
    for title, chosen in (("slowest", by_time), ("most memory", by_memory)):
        sys.stdout.write(render(table_of(chosen[:SLOWEST], title), is_terminal=False) + "\n")
    for cost in costs:
        if cost.failure:
            sys.stdout.write(f"{cost.name}: {cost.failure}\n")
    result = {
        "launches": len(costs),
        "failed": sum(bool(cost.failure) for cost in costs),
        "median_s": float(np.median(seconds)),
        "p99_s": float(np.quantile(seconds, 0.99)),
        "max_s": float(seconds.max()),
        "over_2_s": int((seconds > MOST_SECONDS).sum()),
        "median_cpu_s": float(np.median(cpu)),
        "max_cpu_s": float(cpu.max()),
        "over_2_cpu_s": int((cpu > MOST_SECONDS).sum()),
        "max_peak_bytes": by_memory[0].peak_bytes,
        "over_1_gib": sum(cost.peak_bytes > MOST_BYTES for cost in costs),
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
