"""`python -m experiments.devices.rates DATA`: peaks of the device files against rates that clpeak measured.

DATA is the folder of measured data of others, with `clpeak/results.csv.gz`: logs of many people, overclocked cards and
old drivers among them. A GPU's largest rate of each test is divided by the file's peak. The last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from perfvec.arch.device import Device, load_devices

# clpeak's test, and the peak that it is about, in the test's unit (10^9 a second).
PEAKS: dict[str, Callable[[Device], float]] = {
    "global_memory_bandwidth": lambda device: device.memory.dram.bandwidth_bytes_per_s / 1e9,
    "fp32_compute": lambda device: device.compute.fp32_flops / 1e9,
    "fp64_compute": lambda device: device.compute.fp64_flops / 1e9,
}


def ratios(data: Path) -> dict[str, dict[str, float]]:
    """Measured rate over peak, by test and GPU."""
    known = {name: device for device in load_devices().values() for name in (device.name, *device.aliases)}
    best: dict[str, dict[str, float]] = {test: {} for test in PEAKS}
    with gzip.open(data / "clpeak" / "results.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            device = known.get(row["device"])
            if device is not None and device.type == "gpu" and row["test"] in PEAKS:
                ratio = float(row["value"]) / PEAKS[row["test"]](device)
                rates = best[row["test"]]
                rates[device.name] = max(ratio, rates.get(device.name, 0.0))
    return best


def main() -> int:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with clpeak/")
    options = parser.parse_args()
    if not (options.data / "clpeak" / "results.csv.gz").is_file():
        parser.error(f"{options.data} has no clpeak/results.csv.gz; give the folder that holds it")
    found = ratios(options.data)
    summary = {}
    for test, rates in found.items():
        far = sorted((ratio, name) for name, ratio in rates.items() if not 0.7 <= ratio <= 1.2)
        tenths = statistics.quantiles(rates.values(), n=10) if len(rates) > 1 else [*rates.values()] * 9
        summary[test] = {
            "devices": len(rates),
            "median": statistics.median(rates.values()),
            "p10": tenths[0],
            "p90": tenths[-1],
        }
        texts = ", ".join(f"{name} {ratio:.2f}" for ratio, name in far)
        sys.stdout.write(
            f"{test}: {len(rates)} GPUs, median {summary[test]['median']:.3f}; far off: {texts or 'none'}\n"
        )
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
