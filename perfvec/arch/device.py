"""Devices by their facts: one TOML file a device in `archs/`, each fact with its source.

    [device]            name, vendor, type, architecture, year, aliases, opencl_names, opencl_platform
    [compute]           the fields of `Compute`
    [memory.dram]       and l2, l1, local: the fields of `MemoryLevel`
    [launch]            the fields of `LaunchCost`
    [achieved]          "memory.dram.bandwidth_bytes_per_s" = what microbenchmarks reach of a fact; may be left out
    [sources]           "compute.clock_hz" = "where the figure is from"; a key covers all fields below it

A source that begins with "assumed" marks a figure that no document gives. A user adds a device by a file in the
folder that `user_folder` names; a file there replaces a shipped one of the same name.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, final

import platformdirs

from perfvec.content import content_folder
from perfvec.errors import DeviceError
from perfvec.trace_data import SUB_GROUP_SIZE

DEVICE_TYPES = ("gpu", "cpu", "accelerator")
MEMORY_LEVELS = ("dram", "l2", "l1", "local")
ASSUMED = "assumed"
ACHIEVED = "achieved"
# A vector unit narrower or wider than this is a slip of the pen in fp32_flops, compute_units or clock_hz.
_LANES_ALLOWED = (1.0, 1024.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """What a device calculates with.

    Attributes:
        compute_units: NVIDIA SMs, AMD CUs, Intel EUs, CPU hardware threads.
        clock_hz: Highest clock under load (boost clock).
        fp32_flops: Most fp32 FLOP/s of the whole device; a fused multiply-add is two.
        fp64_flops: Most fp64 FLOP/s of the whole device.
        int_lanes: Integer additions of one compute unit per cycle.
        special_lanes: Reciprocals, roots and sines of one compute unit per cycle.
        issue_lanes: Lanes of any instruction that one compute unit starts per cycle.
        sub_group_size: Lanes of the device's own sub-group (warp, wavefront).
        max_sub_groups_per_compute_unit: Most resident sub-groups of that size.
        max_work_groups_per_compute_unit: Most resident work-groups.
        max_work_group_size: Most work-items of a work-group.
        registers_per_compute_unit: 32-bit registers of one compute unit.
        max_local_bytes_per_work_group: Most local memory that one work-group may take.
        fp32_latency_cycles: Cycles from an fp32 operation to one that needs its result.
        fp64_latency_cycles: The same for fp64.
    """

    compute_units: int
    clock_hz: float
    fp32_flops: float
    fp64_flops: float
    int_lanes: float
    special_lanes: float
    issue_lanes: float
    sub_group_size: int
    max_sub_groups_per_compute_unit: int
    max_work_groups_per_compute_unit: int
    max_work_group_size: int
    registers_per_compute_unit: int
    max_local_bytes_per_work_group: int
    fp32_latency_cycles: float
    fp64_latency_cycles: float

    def __post_init__(self) -> None:
        _check_positive(self)
        low, high = _LANES_ALLOWED
        if not low <= self.fp32_lanes <= high:
            raise DeviceError(
                f"fp32_flops={self.fp32_flops:g} over 2 x compute_units={self.compute_units} x "
                f"clock_hz={self.clock_hz:g} gives {self.fp32_lanes:.3g} lanes a compute unit; allowed are {low:g} to "
                f"{high:g}. Give FLOP/s, not GFLOP/s, and the clock in hertz."
            )
        if self.fp64_flops > self.fp32_flops:
            raise DeviceError(
                f"fp64_flops={self.fp64_flops:g} is more than fp32_flops={self.fp32_flops:g}; allowed is up to that"
            )

    @property
    def fp32_lanes(self) -> float:
        """Fused multiply-adds of one compute unit per cycle."""
        return self.fp32_flops / (2 * self.compute_units * self.clock_hz)

    @property
    def num_slots(self) -> float:
        """Sub-groups of 32 lanes that the whole device holds at once."""
        lanes = self.compute_units * self.max_sub_groups_per_compute_unit * self.sub_group_size
        return lanes / SUB_GROUP_SIZE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLevel:
    """One level of a device's memory.

    Attributes:
        capacity_bytes: Of the whole device for `dram` and `l2` (CPUs: the cache that the cores share); of one compute
            unit for `l1` and `local`, which on many devices are parts of one array.
        bandwidth_bytes_per_s: Of the whole device, reading.
        latency_cycles: Core cycles from a load to the use of its value.
    """

    capacity_bytes: int
    bandwidth_bytes_per_s: float
    latency_cycles: float

    def __post_init__(self) -> None:
        _check_positive(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The levels of a device's memory, slowest first."""

    dram: MemoryLevel
    l2: MemoryLevel
    l1: MemoryLevel
    local: MemoryLevel

    def __post_init__(self) -> None:
        for far, near in (("dram", "l2"), ("l2", "l1")):
            far_level, near_level = getattr(self, far), getattr(self, near)
            if near_level.bandwidth_bytes_per_s < far_level.bandwidth_bytes_per_s:
                raise DeviceError(
                    f"{near}.bandwidth_bytes_per_s={near_level.bandwidth_bytes_per_s:g} is less than that of {far}, "
                    f"{far_level.bandwidth_bytes_per_s:g}; a nearer level is at least as fast. Give both for the whole "
                    "device, in bytes per second."
                )
            if near_level.latency_cycles > far_level.latency_cycles:
                raise DeviceError(
                    f"{near}.latency_cycles={near_level.latency_cycles:g} is more than that of {far}, "
                    f"{far_level.latency_cycles:g}; a nearer level answers at least as soon"
                )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCost:
    """What a launch costs before any work is done.

    Attributes:
        overhead_s: Time of an empty kernel of one work-group, by the profiling events.
        work_group_s: Time to dispatch one more work-group, the whole device dispatching.
    """

    overhead_s: float
    work_group_s: float

    def __post_init__(self) -> None:
        _check_positive(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The facts of a device, and where each is from.

    Attributes:
        name: The name in tables; also the name of its file.
        vendor: Lower case.
        type: One of `DEVICE_TYPES`.
        architecture: The vendor's name of the family.
        year: Of release.
        compute: What it calculates with.
        memory: Its memory.
        launch: What a launch costs.
        sources: Where each fact is from, by dotted field name; a key covers the fields below it.
        achieved: What microbenchmarks reach where it is known, by the dotted name of the fact: the bandwidth that a
            streaming read gets of the peak, or the latency of a pointer chase.
        aliases: Other names that `find_device` takes.
        opencl_names: Patterns of the names that OpenCL gives the device, case ignored.
        opencl_platform: The OpenCL platform that the file is about, or "" for any.
    """

    name: str
    vendor: str
    type: str
    architecture: str
    year: int
    compute: Compute
    memory: Memory
    launch: LaunchCost
    sources: Mapping[str, str] = field(hash=False)
    achieved: Mapping[str, float] = field(default_factory=dict, hash=False)
    aliases: tuple[str, ...] = ()
    opencl_names: tuple[str, ...] = ()
    opencl_platform: str = ""

    def __post_init__(self) -> None:
        if self.type not in DEVICE_TYPES:
            raise DeviceError(f"device {self.name!r}: type={self.type!r}; allowed: {', '.join(DEVICE_TYPES)}")
        if not 1970 <= self.year <= 2100:
            raise DeviceError(f"device {self.name!r}: year={self.year}; allowed are 1970 to 2100")
        for path in fact_names():
            self.source_of(path)
        for path, value in self.achieved.items():
            self._check_achieved(path, value)

    def _check_achieved(self, path: str, value: float) -> None:
        if path not in set(fact_names()):
            raise DeviceError(f"[achieved] has {path!r}; allowed: {_nearest(path, set(fact_names()))}")
        if not 0 < value < float("inf"):
            raise DeviceError(f"[achieved] {path}={value}; allowed are finite numbers over 0")
        if not self.sources.get(ACHIEVED):
            raise DeviceError(f"device {self.name!r}: [achieved] has no source; add {ACHIEVED!r} to [sources]")

    def fact(self, path: str) -> float:
        """A fact by its dotted name, such as `memory.l2.capacity_bytes`.

        Raises:
            DeviceError: There is no such fact.
        """
        value: Any = self
        try:
            for part in path.split("."):
                value = getattr(value, part)
            return float(value)
        except (AttributeError, TypeError) as error:
            raise DeviceError(f"no fact {path!r}; allowed: {_nearest(path, set(fact_names()))}") from error

    def source_of(self, path: str) -> str:
        """Where a fact is from.

        Args:
            path: Dotted field name, such as `compute.clock_hz` or `memory.dram.latency_cycles`.

        Raises:
            DeviceError: `[sources]` has neither the field nor a table above it.
        """
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            source = self.sources.get(".".join(parts[:length]))
            if source:
                return source
        raise DeviceError(
            f"device {self.name!r}: {path} has no source; add it to [sources], as {path!r} or as {parts[0]!r} for all "
            f'fields below. Write "{ASSUMED}: ..." for a figure that no document gives.'
        )

    def is_assumed(self, path: str) -> bool:
        """Whether a fact is an assumption, not a documented or measured figure."""
        return self.source_of(path).startswith(ASSUMED)


def fact_names() -> Iterator[str]:
    """The dotted names of all facts that a device file must give, in the file's order."""
    for table, record in (("compute", Compute), *((f"memory.{level}", MemoryLevel) for level in MEMORY_LEVELS)):
        yield from (f"{table}.{item.name}" for item in fields(record))
    yield from (f"launch.{item.name}" for item in fields(LaunchCost))


def _check_positive(record: Any) -> None:
    for item in fields(record):
        value = getattr(record, item.name)
        if not 0 < value < float("inf"):
            raise DeviceError(f"{item.name}={value}; allowed are finite numbers over 0")


# ---- reading ----------------------------------------------------------------------------------------------------

Record = TypeVar("Record")


def read_device(path: str | Path) -> Device:
    """Read a device file.

    Raises:
        DeviceError: The file cannot be read, a table or field is missing, unknown or of the wrong type, the facts
            contradict each other, one has no source, or the file's name is not the device's.
    """
    path = Path(path)
    try:
        return _device_of(path, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DeviceError(f"cannot read device file {path}: {error}") from error


@lru_cache(maxsize=1024)  # a command asks for all devices several times, and TOML takes its time
def _device_of(path: Path, text: str) -> Device:
    tables = tomllib.loads(text)
    try:
        device = _device(tables)
    except DeviceError as error:
        raise DeviceError(f"device file {path}: {error}") from error
    if device.name != path.stem:
        raise DeviceError(f"device file {path} describes {device.name!r}; name the file {device.name}.toml")
    return device


def _device(tables: Mapping[str, Any]) -> Device:
    _check_keys(tables, allowed=("device", "compute", "memory", "launch", ACHIEVED, "sources"), where="the file")
    memory = _table(tables, "memory")
    _check_keys(memory, allowed=MEMORY_LEVELS, where="[memory]")
    levels = {
        level: _record(MemoryLevel, _table(memory, level, prefix="memory."), f"[memory.{level}]")
        for level in MEMORY_LEVELS
    }
    sources = _table(tables, "sources")
    known = {prefix for path in fact_names() for prefix in _prefixes(path)} | {ACHIEVED}
    for key, source in sources.items():
        if key not in known or not isinstance(source, str):
            raise DeviceError(f"[sources] has {key!r} = {source!r}; allowed are texts for {_nearest(key, known)}")
    parts = {
        "compute": _record(Compute, _table(tables, "compute"), "[compute]"),
        "memory": Memory(**levels),
        "launch": _record(LaunchCost, _table(tables, "launch"), "[launch]"),
        "sources": dict(sources),
        "achieved": {path: _achieved(path, value) for path, value in tables.get(ACHIEVED, {}).items()},
    }
    return _record(Device, _table(tables, "device"), "[device]", parts)


def _prefixes(path: str) -> Iterator[str]:
    parts = path.split(".")
    yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _table(tables: Mapping[str, Any], name: str, *, prefix: str = "") -> Mapping[str, Any]:
    table = tables.get(name)
    if not isinstance(table, dict):
        raise DeviceError(f"the table [{prefix}{name}] is missing; see perfvec/arch/device.py for the tables of a file")
    return table


def _check_keys(table: Mapping[str, Any], *, allowed: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise DeviceError(f"{where} has the unknown key {key!r}; allowed: {_nearest(key, allowed)}")


def _nearest(key: str, allowed: set[str] | tuple[str, ...]) -> str:
    return ", ".join(difflib.get_close_matches(key, sorted(allowed), n=3, cutoff=0.5) or sorted(allowed))


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise DeviceError("a whole number")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DeviceError("a number")
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise DeviceError("a text")
    return value


def _achieved(path: str, value: object) -> float:
    try:
        return _number(value)
    except DeviceError as error:
        raise DeviceError(f"[achieved] {path}={value!r}; allowed is {error}") from error


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise DeviceError("a list of texts")
    return tuple(_text(item) for item in value)


_READERS: dict[str, Callable[[object], object]] = {
    "int": _integer,
    "float": _number,
    "str": _text,
    "tuple[str, ...]": _texts,
}


def _record(
    record: type[Record], table: Mapping[str, Any], where: str, parts: Mapping[str, object] | None = None
) -> Record:
    """Build a record from a TOML table; `parts` are the fields that do not stand in the table."""
    given = dict(parts or {})
    items = [item for item in fields(record) if item.name not in given]  # pyright: ignore[reportArgumentType]
    _check_keys(table, allowed=tuple(item.name for item in items), where=where)
    for item in items:
        if item.name not in table:
            if item.default is MISSING:
                raise DeviceError(f"{where} lacks {item.name!r}; its fields are {', '.join(i.name for i in items)}")
            continue
        try:
            given[item.name] = _READERS[str(item.type)](table[item.name])
        except DeviceError as error:
            raise DeviceError(f"{where} {item.name}={table[item.name]!r}; allowed is {error}") from error
    try:
        return record(**given)
    except DeviceError as error:
        raise DeviceError(f"{where} {error}") from error


# ---- the shelf --------------------------------------------------------------------------------------------------


def user_folder() -> Path:
    """The user's own device files; it need not exist."""
    return Path(platformdirs.user_data_dir("perfvec")) / "archs"


def load_devices(folder: str | Path | None = None) -> dict[str, Device]:
    """Read all device files, by name.

    Args:
        folder: Read this folder alone; without it, the shipped files and then the user's own, which replace
            shipped ones of the same name.

    Raises:
        DeviceError: A file is wrong (see `read_device`), two devices answer to one name, or `folder` does not exist.
    """
    if folder is not None and not Path(folder).is_dir():
        raise DeviceError(f"the folder of device files {folder} does not exist; give one that holds *.toml")
    folders = [content_folder("archs"), user_folder()] if folder is None else [Path(folder)]
    devices: dict[str, Device] = {}
    for place in folders:
        for path in sorted(place.glob("*.toml"), key=lambda path: path.stem):
            device = read_device(path)
            devices[device.name] = device
    _names(devices)
    return devices


def find_device(name: str, devices: Mapping[str, Device] | None = None) -> Device:
    """The device of a name or alias.

    Args:
        name: As in the table; case is ignored.
        devices: Where to look; `load_devices()` where it is None.

    Raises:
        DeviceError: There is none; the message has the nearest names.
    """
    names = _names(load_devices() if devices is None else devices)
    device = names.get(name.lower())
    if device is None:
        near = difflib.get_close_matches(name.lower(), names, n=4, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"`perfvec devices` lists all {len(names)}."
        raise DeviceError(f"no device {name!r}; {hint} To add one, put NAME.toml into {user_folder()}.")
    return device


def _names(devices: Mapping[str, Device]) -> dict[str, Device]:
    names: dict[str, Device] = {}
    for device in devices.values():
        for name in (device.name, *device.aliases):
            other = names.setdefault(name.lower(), device)
            if other is not device:
                raise DeviceError(f"devices {other.name!r} and {device.name!r} both answer to {name!r}; rename one")
    return names
