"""`python -m experiments.devices.curves DATA`: what published microbenchmark curves reach of each device's memory.

DATA is the folder of measured data of others, with `gpu_benches/memory.csv.gz` and `devices.csv`. Printed are the
plateaus of ten GPUs: cycles of a pointer chase in L1, L2 and DRAM, and bytes per second read from each. The last line
is JSON; the figures stand under [achieved] in the device files, with their source.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import final

KIB = 1024
# A footprint is in a level if it fills it to at most half, and is at least this often the level before.
_BEYOND = 3.0
_OVER_LAST = 4.0  # in DRAM if it is this often the last level


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plateaus:
    """Plateaus of a device's curves, by the dotted name of the fact that they belong to."""

    device: str
    values: dict[str, float]


def plateau(curve: list[tuple[float, float]], low_kib: float, high_kib: float) -> float | None:
    """Median of a curve's values over the footprints between two limits; None where there are fewer than three.

    Args:
        curve: Footprints in KiB, and values.
        low_kib: Least footprint.
        high_kib: Largest footprint.
    """
    values = [value for size, value in curve if low_kib <= size <= high_kib]
    return statistics.median(values) if len(values) >= 3 else None


def plateaus(rows: list[dict[str, str]], facts: dict[str, str]) -> dict[str, float]:
    """Latencies and bandwidths of one device.

    Latency is that of a pointer chase. Bandwidth of L1 is that of all work-groups reading one buffer that fits it; of
    L2, of work-groups that read a buffer each, together half of the L2 at most; of DRAM, at four times the last level's
    capacity or more, or a streaming read's largest.

    Args:
        rows: Rows of the table of measurements.
        facts: The device's row of devices.csv.
    """
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        size = row["footprint_kib"] if row["test"] == "private_read_bandwidth" else row["data_kib"]
        if size:
            curves[row["test"]].append((float(size), float(row["value"])))
    l1, l2 = float(facts["l1_kib_per_cu"]), float(facts["l2_kib"])
    last = max(l2, float(facts["llc_kib"] or 0))
    units = float(facts["compute_units"])
    chase, own, shared = (curves[test] for test in ("load_latency", "private_read_bandwidth", "shared_read_bandwidth"))
    found = {
        "memory.l1.latency_cycles": plateau(chase, 0, l1 / 2),
        "memory.l2.latency_cycles": plateau(chase, _BEYOND * l1, l2 / 4),
        "memory.dram.latency_cycles": plateau(chase, _OVER_LAST * last, float("inf")),
        "memory.l1.bandwidth_bytes_per_s": plateau(shared, 0, l1 / 2),
        "memory.l2.bandwidth_bytes_per_s": plateau(own, _BEYOND * l1 * units / 8, l2 / 2)
        or plateau(shared, _BEYOND * l1, l2 / 2),
        "memory.dram.bandwidth_bytes_per_s": plateau(own, _OVER_LAST * last, float("inf"))
        or max((float(row["value"]) for row in rows if row["test"] == "stream_read"), default=None),
    }
    return {name: value * (1e9 if "bandwidth" in name else 1) for name, value in found.items() if value is not None}


def read_plateaus(data: Path) -> list[Plateaus]:
    """Plateaus of all devices of the table of curves, by name."""
    with (data / "devices.csv").open(encoding="utf-8", newline="") as file:
        facts = {row["device"]: row for row in csv.DictReader(file)}
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    with gzip.open(data / "gpu_benches" / "memory.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["device"]].append(row)
    return [Plateaus(device=name, values=plateaus(rows[name], facts[name])) for name in sorted(rows)]


def main() -> int:
    """Print the plateaus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with devices.csv and gpu_benches/")
    options = parser.parse_args()
    if not (options.data / "gpu_benches" / "memory.csv.gz").is_file():
        parser.error(f"{options.data} has no gpu_benches/memory.csv.gz; give the folder that holds it")
    found = read_plateaus(options.data)
    for device in found:
        texts = ", ".join(f"{name.removeprefix('memory.')} {value:.4g}" for name, value in device.values.items())
        sys.stdout.write(f"{device.device}: {texts}\n")
    sys.stdout.write(json.dumps({device.device: device.values for device in found}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
