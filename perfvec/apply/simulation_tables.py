"""What the timing model says, as tables, JSON and CSV."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from perfvec.arch.timing import CAUSES, TimingConfig
from perfvec.files import whole_file
from perfvec.report.tables import Column, Table
from perfvec.units import format_percent, format_time

if TYPE_CHECKING:
    from pathlib import Path

    from perfvec.apply.simulating import SimulatedDevices
    from perfvec.arch.space import DesignSpace

_SHOWN_DEVICES = 20
_SMALL_SHARE = 0.0005  # below that a share is shown as "-"


def _numbers(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(title=title, is_number=True) for title in titles)


def simulation_table(found: SimulatedDevices) -> Table:
    """Times of each device, and where they went; devices side by side."""
    simulation = found.simulation
    devices = range(len(found.names))
    rows = [
        ("kernel time", *(format_time(float(simulation.kernel_time_s[m])) for m in devices)),
        ("cycles", *(f"{simulation.cycles[m]:,.0f}" for m in devices)),
        ("occupancy", *(format_percent(float(simulation.occupancy[m])) for m in devices)),
    ]
    shares = simulation.breakdown_s / simulation.kernel_time_s[:, None]
    rows += [(cause, *(_share(float(shares[m, k])) for m in devices)) for k, cause in enumerate(CAUSES)]
    columns = (Column(title=found.launch.kernel_name), *_numbers(*found.names))
    return Table(columns=columns, rows=tuple(rows))


def _share(share: float) -> str:
    return format_percent(share) if share >= _SMALL_SHARE else "-"


def line_table(found: SimulatedDevices) -> Table:
    """The time that each source line causes, with the line's text where the launch has its source."""
    simulation = found.simulation
    text = found.launch.source.splitlines() if isinstance(found.launch.source, str) else []
    rows: list[tuple[str, ...]] = []
    for place, line in enumerate(simulation.lines.tolist()):
        shares = simulation.line_time_s[:, place] / simulation.kernel_time_s
        words = text[line - 1].strip() if 1 <= line <= len(text) else "(launch, dispatch)" if line == 0 else ""
        rows.append((str(line or ""), *(_share(float(share)) for share in shares), words))
    columns = (Column(title="line", is_number=True), *_numbers(*found.names), Column(title="source"))
    return Table(columns=columns, rows=tuple(rows), title=found.launch.source_name)


def space_table(found: SimulatedDevices) -> Table:
    """The fastest devices of a sample; all of them where there are few."""
    simulation = found.simulation
    order = np.argsort(simulation.kernel_time_s, kind="stable")
    num_devices = len(order)
    rows = []
    for m in order[:_SHOWN_DEVICES]:
        config = found.configs[m]
        rows.append(
            (
                found.names[m],
                format_time(float(simulation.kernel_time_s[m])),
                CAUSES[int(simulation.breakdown_s[m].argmax())],
                str(config.compute_units),
                f"{config.clock_hz / 1e9:.2f}",
                f"{config.compute_units * config.fp32_lanes * 2 * config.clock_hz / 1e12:.2f}",
                f"{config.l2_bytes / 2**20:.1f}",
                f"{config.dram_bytes_per_s / 1e9:.0f}",
            )
        )
    columns = (
        Column(title="device"),
        *_numbers("time"),
        Column(title="most of it"),
        *_numbers("units", "GHz", "TFLOP/s", "L2 MiB", "DRAM GB/s"),
    )
    times = simulation.kernel_time_s
    title = f"{num_devices} devices, {format_time(float(times.min()))} to {format_time(float(times.max()))}" + (
        f"; the {_SHOWN_DEVICES} fastest" if num_devices > _SHOWN_DEVICES else ""
    )
    return Table(columns=columns, rows=tuple(rows), title=title)


def simulation_record(found: SimulatedDevices, *, by_line: bool) -> dict[str, Any]:
    """All of it as a record, a list entry for each device."""
    simulation = found.simulation
    devices = []
    for m, name in enumerate(found.names):
        record: dict[str, Any] = {
            "device": name,
            "kernel_time_s": float(simulation.kernel_time_s[m]),
            "cycles": float(simulation.cycles[m]),
            "occupancy": float(simulation.occupancy[m]),
            "breakdown_s": dict(zip(CAUSES, simulation.breakdown_s[m].tolist(), strict=True)),
            "config": asdict(found.configs[m]),
        }
        if found.drawn[m]:
            record["drawn"] = dict(found.drawn[m])
        if by_line:
            record["line_time_s"] = {
                str(line): time
                for line, time in zip(simulation.lines.tolist(), simulation.line_time_s[m].tolist(), strict=True)
            }
        devices.append(record)
    return {"devices": devices, "left_out": list(found.left_out)}


def write_csv(found: SimulatedDevices, path: Path) -> None:
    """Write a line for each device: name, time, cycles, occupancy, seconds by cause, fields of its configuration.

    Raises:
        FormatError: The folder does not exist.
    """
    simulation = found.simulation
    names = [item.name for item in fields(TimingConfig)]
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["device", "kernel_time_s", "cycles", "occupancy", *(f"{cause}_s" for cause in CAUSES), *names])
        for m, name in enumerate(found.names):
            numbers = [simulation.kernel_time_s[m], simulation.cycles[m], simulation.occupancy[m]]
            times = [f"{float(number):.9g}" for number in (*numbers, *simulation.breakdown_s[m])]
            writer.writerow([name, *times, *(getattr(found.configs[m], field) for field in names)])


def parameter_table(space: DesignSpace) -> Table:
    """What is drawn in a design space."""
    rows = [(item.name, item.distribution, item.range_text) for item in space.parameters]
    rows += [("", "constraint", item.text) for item in space.constraints]
    columns = tuple(Column(title=title) for title in ("parameter", "distribution", "range"))
    base = f"; the rest as {space.base}" if space.base else ""
    return Table(columns=columns, rows=tuple(rows), title=f"{space.name}: {space.title}{base}")


def space_record(space: DesignSpace) -> dict[str, Any]:
    """A design space as a record."""
    return {
        "name": space.name,
        "title": space.title,
        "base": space.base,
        "parameters": [
            {"name": item.name, "distribution": item.distribution, "range": item.range_text}
            for item in space.parameters
        ],
        "constraints": [item.text for item in space.constraints],
    }
