"""`make bench-generated`: how many launches of the generated corpus the tracer takes a second, on one core.

Twice: all launches of some kernels, as a training traces them (a program is compiled once for its launches), and single
launches from all over, each of which has its program compiled. Seconds are the processor's. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

import numpy as np

from perfvec.apply.tracing import trace
from perfvec.content import content_folder
from perfvec.corpus.generated import Corpus
from perfvec.launch import Launch
from perfvec.report.tables import Column, Table, render

SEED = 1
WARM_UP = 3


def seconds_of(launches: Sequence[Launch]) -> list[float]:
    """Processor time of a default trace of each."""
    seconds = []
    for launch in launches:
        start = time.process_time()
        trace(launch)
        seconds.append(time.process_time() - start)
    return seconds


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=16, help="kernels of which all launches are traced")
    parser.add_argument("--launches", type=int, default=120, help="single launches")
    options = parser.parse_args()
    corpus = Corpus.load(content_folder("traces") / "corpus" / "nvidia-h200.h5")
    rng = np.random.default_rng(SEED)
    kernels = set(rng.choice(len(corpus.kernel_seeds), options.kernels, replace=False).tolist())
    single = rng.choice(len(corpus), options.launches + WARM_UP, replace=False).tolist()
    samples = {
        "all of a kernel": [number for number, recipe in enumerate(corpus.recipes) if recipe.kernel in kernels],
        "single": single[WARM_UP:],
    }
    seconds_of([corpus.entry(number).launch for number in single[:WARM_UP]])  # loads the code
    result: dict[str, dict[str, float]] = {}
    for name, numbers in samples.items():
        seconds = np.array(seconds_of([corpus.entry(number).launch for number in numbers]))
        result[name] = {
            "launches": len(seconds),
            "per_s": len(seconds) / float(seconds.sum()),
            "median_s": float(np.median(seconds)),
            "p90_s": float(np.quantile(seconds, 0.9)),
            "p99_s": float(np.quantile(seconds, 0.99)),
            "max_s": float(seconds.max()),
        }
    columns = (
        Column(title="launches"),
        *(Column(title=text, is_number=True) for text in ("number", "a second", "median", "90 %", "99 %", "longest")),
    )
    rows = tuple(
        (
            name,
            f"{row['launches']:.0f}",
            f"{row['per_s']:.1f}",
            *(f"{row[key]:.3f} s" for key in ("median_s", "p90_s", "p99_s", "max_s")),
        )
        for name, row in result.items()
    )
    table = Table(title="default traces on one core", columns=columns, rows=rows)
    sys.stdout.write(render(table, is_terminal=False) + "\n" + json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
