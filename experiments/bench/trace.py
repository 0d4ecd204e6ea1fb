"""`make bench-trace`: how many lane-instructions a second the tracer takes in, beside Oclgrind on the same launches.

Both run single-threaded on one core, in turns. Ours is the whole of `perfvec trace` and what the model needs: execute
every work-group, record, write the file, make features. Oclgrind's is the plain kernel run, without any plugin, of its
own default build. Compiling is left out of both. A lane-instruction is one executed by one work-item, never one that a
sample stands for; each side's own count is divided by its own time. The counts differ, since each side optimises in
its own way; the column `time` is the plain ratio of seconds. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np

from perfvec.apply.encoding import launch_input
from perfvec.corpus.suite import load_suites
from perfvec.launch import Launch
from perfvec.program.classify import make_static_table
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.tracer import trace_launch

LAUNCHES = {
    "matrix product": "dense/gemm_tiled/TILE=16/M=256,N=256,K=256",
    "stencil": "stencil/heat2d/-/NX=1024,NY=1024,LX=16,LY=16",
    "reduction": "scan/sum_strided/LOCAL=256/N=600000",
    "scan": "scan/scan_blelloch/LOCAL=256/N=500000",
    "spmv": "sparse/spmv_csr_scalar/-/R=100000,D=7,SKEW=0,SPREAD=300,LX=128",
    "bfs": "graph/bfs_top_down/-/V=400000,DEG=32,SKEW=1.5,DEPTH=1,L=128",
    "bitonic sort": "sorting/bitonic_local/TILE=512/N=10000",
    "mandelbrot": "image/mandelbrot/-/W=640,H=480,X=-2.2,Y=-1.1,S=3.0,MAX=100,LX=16,LY=16",
    "n-body": "nbody/gravity_tiled/TILE=64/N=1025",
    "histogram": "scan/histogram_local/BINS=256,LOCAL=256/N=3000000,GROUPS=100,SPREAD=0.01",
    "fft": "spectral/fft2_local/SIZE=1024/BATCH=700",
    "sha-256": "dynamic/sha256_messages/-/MESSAGES=30000,BLOCKS=4,L=128",
}
REPEATS = 3


def find(name: str) -> Launch:
    """The launch of that name in the suites."""
    return next(entry.launch for entry in load_suites() if entry.name == name)


def oclgrind_child(name: str) -> None:
    """Child process: run one launch on Oclgrind and print the seconds; its counter, if on, prints its counts."""
    import pyopencl as cl

    from perfvec.arch.replay import replay

    platform = next((p for p in cl.get_platforms() if p.name == "Oclgrind"), None)
    if platform is None:
        raise SystemExit("Oclgrind is not installed; it comes with pip install 'pyopencl[oclgrind]' on x86-64 Linux")
    sys.stdout.write(f"seconds {replay(find(name), platform.get_devices()[0]).kernel_time_s}\n")


def oclgrind(name: str, *, count: bool) -> tuple[float, int]:
    """Seconds and lane-instructions of a launch on Oclgrind; instructions only if `count`."""
    environment = {**os.environ, "OCLGRIND_NUM_THREADS": "1", **({"OCLGRIND_INST_COUNTS": "1"} if count else {})}
    output = subprocess.run(
        [sys.executable, __file__, "--oclgrind", name], env=environment, capture_output=True, text=True, check=True
    ).stdout
    seconds = float(re.search(r"^seconds (\S+)$", output, re.MULTILINE)[1])
    return seconds, sum(int(n.replace(",", "")) for n in re.findall(r"^\s*([\d,]+) - ", output, re.MULTILINE))


def ours(launch: Launch) -> tuple[float, int]:
    """Seconds that a whole trace takes, features and file included, and its lane-instructions."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        trace = trace_launch(launch, work_groups=None)
        launch_input(trace)
        trace.save(Path(folder) / "trace.h5")
        seconds = time.perf_counter() - start
    return seconds, count_lane_instructions(launch)


def count_lane_instructions(launch: Launch) -> int:
    """LLVM instructions that the work-items of a launch execute in our optimised IR."""
    compiled = compile_launch(launch)
    execution = Execution(compiled, launch)
    execution.run(range(execution.num_work_groups))
    sizes = [sum(counts.values()) for counts in make_static_table(compiled.native).opcode_counts]
    return int(execution.segment_lanes @ np.array(sizes))


def main() -> None:
    """Run the benchmark."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rates, ratios, time_ratios = {}, {}, {}
    sys.stdout.write(
        f"{'kernel':16}{'ours':>10}{'oclgrind':>11}{'ratio':>8}{'time':>8}   (M executed lane-instructions/s)\n"
    )
    for label, name in LAUNCHES.items():
        launch = find(name)
        ours(launch)  # compiles
        _, their_count = oclgrind(name, count=True)
        pairs = [(ours(launch), oclgrind(name, count=False)[0]) for _ in range(REPEATS)]
        our_seconds, our_count = median(pair[0][0] for pair in pairs), pairs[0][0][1]
        their_seconds = median(pair[1] for pair in pairs)
        rates[label] = our_count / our_seconds
        ratios[label] = rates[label] / (their_count / their_seconds)
        time_ratios[label] = their_seconds / our_seconds
        sys.stdout.write(
            f"{label:16}{rates[label] / 1e6:10.1f}{their_count / their_seconds / 1e6:11.2f}{ratios[label]:8.1f}"
            f"{time_ratios[label]:8.1f}\n"
        )
        sys.stdout.flush()
    result = {
        "ratio_geomean": geometric_mean(ratios.values()),
        "ratio_min": min(ratios.values()),
        "time_ratio_geomean": geometric_mean(time_ratios.values()),
        "lane_instructions_per_s": rates,
        "ratio": ratios,
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    if "--oclgrind" in sys.argv:
        oclgrind_child(sys.argv[-1])
    else:
        main()
