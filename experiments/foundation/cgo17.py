"""`python -m experiments.foundation.cgo17 launches|measure|evaluate`: the CGO'17 kernels, left out as a whole.

    launches FOLDER               infers launches of every kernel and stores them
    measure FOLDER OUT.h5         times stored launches on an OpenCL device; again until nothing is left
    evaluate                      predictions beside the measured times

The table of times holds digests, names and times, no kernel text: `evaluate` infers the launches again and takes those
whose digests are in the table; the others are counted and named. Each command ends in one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from experiments.foundation.cgo17_launches import Found, launches_of, read_folder, write_folder
from perfvec.corpus.outside import load_sources
from perfvec.errors import PerfVecError
from perfvec.files import whole_file
from perfvec.report.progress import progress_bar

_PLACE = Path(__file__).resolve().parent
DATA = _PLACE.parents[2] / "shared" / "data"
SOURCES = Path("cgo17_devmap") / "sources.csv.gz"
TABLE = _PLACE / "cgo17.nvidia-h200.h5"
RESULTS = _PLACE / "results" / "cgo17.json"


def write_launches(options: argparse.Namespace) -> dict[str, object]:
    """Infer launches and store them."""
    start = time.perf_counter()
    sources = load_sources(options.data / SOURCES)
    with progress_bar(sys.stderr) as on_progress:

        def watched() -> Iterator[list[Found]]:
            for done, found in enumerate(launches_of(sources, num_processes=options.processes), start=1):
                on_progress("inferring", done, len(sources))
                yield found

        counts = write_folder(options.folder, chain.from_iterable(watched()))
    return {**counts, "wall_s": round(time.perf_counter() - start, 1)}


def measure_launches(options: argparse.Namespace) -> dict[str, object]:
    """Time stored launches that the table lacks."""
    from perfvec.apply.corpus_measuring import Order, SuiteTarget, measure
    from perfvec.arch.opencl import choose_device

    entries = read_folder(options.folder)
    target = SuiteTarget(entries, options.table)
    device = choose_device(options.opencl_device)
    order = Order(num_launches=options.launches, num_workers=options.workers)
    with progress_bar(sys.stderr) as on_progress:
        summary = measure(target, device, order, options.budget, on_progress)
    times = target.kernel_time_s(summary.device)
    return {
        **asdict(summary),
        "without_a_time": [entry.name for row, entry in enumerate(entries) if row not in times],
    }


def evaluate_launches(options: argparse.Namespace) -> dict[str, object]:
    """Compare predictions with the table of times, and write the results."""
    from experiments.foundation.cgo17_accuracy import evaluate, measured_launches
    from perfvec.apply.models import load_model
    from perfvec.apply.splits import load_holdout
    from perfvec.apply.trace_cache import TraceCache
    from perfvec.arch.measured import MeasuredTable, load_measured
    from perfvec.corpus.suite import load_suites

    start = time.perf_counter()
    table, model = MeasuredTable.load(options.table), load_model(options.model)
    sources = load_sources(options.data / SOURCES)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with progress_bar(sys.stderr) as on_progress:
        measured = measured_launches(sources, table, num_processes=options.processes, on_progress=on_progress)
        found = evaluate(
            measured,
            table,
            load_suites(),
            load_measured(),
            model,
            load_holdout(),
            traces=TraceCache.open(),
            num_processes=options.processes,
            on_progress=on_progress,
        )
    record = {"model": options.model.name if options.model else "shipped", "code": model.code_version, **found}
    with whole_file(options.output) as temporary:
        temporary.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for name, device in found["devices"].items():
        for row in device["rows"]:
            sys.stdout.write(_line(name, row) + "\n")
    return {
        "missing": len(found["missing"]),
        "left_out": len(found["left_out"]),
        "mape": {name: device["rows"][0]["mape"] for name, device in found["devices"].items()},
        "is_met": {name: device["bar"]["is_met"] for name, device in found["devices"].items()},
        "wall_s": round(time.perf_counter() - start, 1),
    }


def _line(device: str, row: dict[str, Any]) -> str:
    """A row of a Markdown table."""
    shares = " | ".join(
        f"{100 * row[name]:.1f} %" for name in ("mape", "median_ape", "p90_ape", "share_near", "mean_of_kernels")
    )
    rank = "-" if row["rank_correlation"] is None else f"{row['rank_correlation']:.2f}"
    worst = f"{100 * row['worst_ape']:.0f} % | {row['worst_name']}"
    return f"| {device} | {row['subset']} | {row['predictor']} | {row['num_launches']} | {shares} | {rank} | {worst} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    launches = commands.add_parser("launches", help="infer launches and store them")
    launches.add_argument("folder", type=Path, help="where to store them")
    launches.add_argument("--data", type=Path, default=DATA, help="folder of measured data of others")
    launches.add_argument("--processes", type=int, default=1, help="processes that share the work")
    launches.set_defaults(run=write_launches)
    measuring = commands.add_parser("measure", help="time stored launches")
    measuring.add_argument("folder", type=Path, help="where they are stored")
    measuring.add_argument("table", type=Path, help="table of times, made or added to")
    measuring.add_argument("--opencl-device", type=int, default=None, metavar="N", help="as perfvec measure has it")
    measuring.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="begin none after it")
    measuring.add_argument("--workers", type=int, default=None, help="processes that prepare; one a core")
    measuring.add_argument("--launches", type=int, default=None, help="time no more than so many")
    measuring.set_defaults(run=measure_launches)
    evaluating = commands.add_parser("evaluate", help="compare predictions with measured times")
    evaluating.add_argument("--table", type=Path, default=TABLE, help="table of times")
    evaluating.add_argument("--data", type=Path, default=DATA, help="folder of measured data of others")
    evaluating.add_argument("--model", type=Path, default=None, help="model file; the shipped one unless given")
    evaluating.add_argument("--processes", type=int, default=1, help="processes that infer and trace")
    evaluating.add_argument("-o", "--output", type=Path, default=RESULTS, help="file of the results")
    evaluating.set_defaults(run=evaluate_launches)
    options = parser.parse_args(arguments)
    try:
        record = options.run(options)
    except PerfVecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
