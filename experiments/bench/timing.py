"""`make bench-timing`: how fast the timing model is, on traces of ten kernels and 128 devices of a design space.

A trace is read and simulated on all devices in this one thread; tracing and compiling are left out. `stepped` are the
sub-group instructions that the model steps through one after another for each device: of each pair of windows that
follow each other those of the second, once however often the pair occurs; the first is stepped again before it, to
bring the scoreboard into its state, and not counted. `recorded` are all that stand in the trace's streams, which these
pairs make up. The last line is JSON: `sub_group_instructions_configs_per_s` is all stepped instructions times devices
over all seconds.
"""

from __future__ import annotations

import json
import sys
import time

from experiments.bench.trace import LAUNCHES, find
from perfvec.arch.space_files import find_space
from perfvec.arch.timing import read_workload, simulate
from perfvec.program.tracer import trace_launch

LEFT_OUT = {"scan", "sha-256"}  # of the tracer's benchmark: ten kernels say enough
NUM_DEVICES = 128
LOCAL_BYTES = 16_384  # of a work-group, at most
REPEATS = 3


def main() -> int:
    """Print a row a kernel, and the JSON line."""
    sample = [device.config for device in find_space("gpu-2010-today").sample(4 * NUM_DEVICES)]
    configs = [config for config in sample if config.max_group_local_bytes >= LOCAL_BYTES][:NUM_DEVICES]
    totals = {"stepped": 0, "recorded": 0, "seconds": 0.0}
    sys.stdout.write(f"{'kernel':15}{'recorded':>10}{'stepped':>10}{'seconds':>9}{'M stepped x devices/s':>23}\n")
    for kernel, name in LAUNCHES.items():
        if kernel in LEFT_OUT:
            continue
        trace = trace_launch(find(name))
        simulate(trace, configs[:2])  # compiles
        seconds = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            workload = read_workload(trace)
            simulate(workload, configs)
            seconds.append(time.perf_counter() - start)
        best = min(seconds)
        rate = workload.num_stepped * NUM_DEVICES / best / 1e6
        sys.stdout.write(f"{kernel:15}{trace.num_recorded:>10}{workload.num_stepped:>10}{best:>9.3f}{rate:>23.1f}\n")
        for key, value in (("stepped", workload.num_stepped), ("recorded", trace.num_recorded), ("seconds", best)):
            totals[key] += value
    rates = {key: totals[key] * NUM_DEVICES / totals["seconds"] for key in ("stepped", "recorded")}
    result = {
        "sub_group_instructions_configs_per_s": rates["stepped"],
        "recorded_sub_group_instructions_configs_per_s": rates["recorded"],
        "num_configs": NUM_DEVICES,
        **totals,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
