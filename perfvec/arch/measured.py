"""The table of measured times: records, and a compact HDF5 file (format `perfvec-measured`, version 1).

attributes       format, format_version
digest           uint64 (launches)   the launch's digest
name             uint8               names of the launches, UTF-8, one a line, in the order of `digest`
session          uint8               JSON: a list of {device, driver, launch_overhead_s, date}
time_launch      uint32 (times)      row of `digest`
time_session     uint16 (times)      entry of `session`
kernel_time_s    float32 (times)     median
min_s            float32 (times)     least
spread           float16 (times)     interquartile range ÷ median; NaN for a single run
num_repeats      uint16 (times)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.content import content_folder
from perfvec.errors import FormatError
from perfvec.files import read_h5, whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "perfvec-measured"
FORMAT_VERSION = 1
MAX_REPEATS_STORED = np.iinfo(np.uint16).max
# The spread of a launch that ran once, which is one that took seconds: as that of a long launch that ran often.
SINGLE_RUN_SPREAD = 0.05

_SESSION_FIELDS = ("device", "driver", "launch_overhead_s", "date")
_DATASETS = {
    "digest": ("u8", "launch digest"),
    "name": ("u1", "UTF-8, one line a launch"),
    "session": ("u1", "JSON"),
    "time_launch": ("u4", "row of digest"),
    "time_session": ("u2", "entry of session"),
    "kernel_time_s": ("f4", "s"),
    "min_s": ("f4", "s"),
    "spread": ("f2", "fraction of the median"),
    "num_repeats": ("u2", "run"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTime:
    """The time of a launch on a device.

    Attributes:
        digest: `Launch.digest`.
        device: The device's name in tables.
        kernel_time_s: Median over the repeats, from event START to END.
        spread: Interquartile range ÷ median; NaN for a single run.
        num_repeats: Runs that the median is over.
        min_s: The shortest of them.
        launch_overhead_s: Time of an empty kernel in the same session.
        driver: Driver version.
        date: Day of the session, `YYYY-MM-DD`.
        name: The launch's name in its suite, "" where it has none.
    """

    digest: str
    device: str
    kernel_time_s: float
    spread: float
    num_repeats: int
    min_s: float
    launch_overhead_s: float
    driver: str
    date: str
    name: str = ""

    def __post_init__(self) -> None:
        if len(self.digest) != 16 or not set(self.digest) <= set("0123456789abcdef"):
            raise FormatError(f"measured time with digest {self.digest!r}; allowed are 16 hex digits, lower case")
        if not (self.kernel_time_s > 0 and self.min_s > 0 and math.isfinite(self.kernel_time_s)):
            raise FormatError(
                f"launch {self.digest} on {self.device}: kernel_time_s={self.kernel_time_s}, min_s={self.min_s}; "
                "allowed are finite times over 0. The device's profiling timer does not resolve this launch."
            )
        if not 1 <= self.num_repeats <= MAX_REPEATS_STORED:
            raise FormatError(
                f"launch {self.digest} on {self.device}: num_repeats={self.num_repeats}; allowed are 1 to "
                f"{MAX_REPEATS_STORED}"
            )
        if "\n" in self.name:
            raise FormatError(f"launch name {self.name!r} has a line break; names take one line")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMatrix:
    """Times as arrays, launches by devices; NaN where a launch was not measured on a device.

    Attributes:
        kernel_time_s: Shape `(launches, devices)`.
        spread: Shape `(launches, devices)`; NaN also for single runs.
        launch_overhead_s: Shape `(launches, devices)`.
    """

    kernel_time_s: NDArray[np.float64]
    spread: NDArray[np.float64]
    launch_overhead_s: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Measured times, at most one for a launch on a device.

    Attributes:
        times: The records.
    """

    times: tuple[MeasuredTime, ...] = ()
    _index: dict[tuple[str, str], MeasuredTime] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index: dict[tuple[str, str], MeasuredTime] = {}
        for time in self.times:
            if index.setdefault((time.digest, time.device), time) is not time:
                raise FormatError(
                    f"launch {time.digest} has two times on {time.device}; a table holds one. Merge tables with "
                    "MeasuredTable.merge, which keeps the later."
                )
        object.__setattr__(self, "_index", index)

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices, sorted."""
        return tuple(sorted({time.device for time in self.times}))

    @property
    def digests(self) -> tuple[str, ...]:
        """Digests of the launches, in the order of their first time."""
        return tuple(dict.fromkeys(time.digest for time in self.times))

    def lookup(self, digest: str, device: str) -> MeasuredTime | None:
        """The time of a launch on a device; None where it was not measured."""
        return self._index.get((digest, device))

    def matrix(self, digests: Sequence[str], devices: Sequence[str]) -> TimeMatrix:
        """Times as arrays.

        Args:
            digests: Launches, the rows.
            devices: Names of devices, the columns.
        """
        values = np.full((3, len(digests), len(devices)), np.nan)
        for row, digest in enumerate(digests):
            for column, device in enumerate(devices):
                time = self.lookup(digest, device)
                if time is not None:
                    values[:, row, column] = (time.kernel_time_s, time.spread, time.launch_overhead_s)
        return TimeMatrix(kernel_time_s=values[0], spread=values[1], launch_overhead_s=values[2])

    def merge(self, other: MeasuredTable | Iterable[MeasuredTime]) -> MeasuredTable:
        """The times of both; where both have one, the one of the later day, `other`'s on the same day."""
        merged = dict(self._index)
        for time in other.times if isinstance(other, MeasuredTable) else other:
            key = (time.digest, time.device)
            if key not in merged or time.date >= merged[key].date:
                merged[key] = time
        return MeasuredTable(times=tuple(merged.values()))

    def save(self, path: str | Path) -> None:
        """Write the table to an HDF5 file, whole or not at all; times keep seven digits.

        Raises:
            FormatError: The folder does not exist.
        """
        import h5py

        with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
            file.attrs["format"] = FORMAT
            file.attrs["format_version"] = FORMAT_VERSION
            for name, values in self._columns().items():
                dtype, units = _DATASETS[name]
                data = np.asarray(values, dtype=dtype)
                dataset = file.create_dataset(name, data=data, compression="gzip" if data.size else None, shuffle=True)
                dataset.attrs["units"] = units

    def _columns(self) -> dict[str, Any]:
        digests = {digest: row for row, digest in enumerate(self.digests)}
        names = dict.fromkeys(digests, "")
        sessions: dict[tuple[object, ...], int] = {}
        rows: list[tuple[int, int]] = []
        for time in self.times:
            names[time.digest] = names[time.digest] or time.name
            session = tuple(getattr(time, item) for item in _SESSION_FIELDS)
            rows.append((digests[time.digest], sessions.setdefault(session, len(sessions))))
        described = [dict(zip(_SESSION_FIELDS, session, strict=True)) for session in sessions]
        return {
            "digest": [int(digest, 16) for digest in digests],
            "name": np.frombuffer("\n".join(names.values()).encode(), np.uint8),
            "session": np.frombuffer(json.dumps(described).encode(), np.uint8),
            "time_launch": [row for row, _ in rows],
            "time_session": [session for _, session in rows],
            "kernel_time_s": [time.kernel_time_s for time in self.times],
            "min_s": [time.min_s for time in self.times],
            "spread": [time.spread for time in self.times],
            "num_repeats": [time.num_repeats for time in self.times],
        }

    @classmethod
    def load(cls, path: str | Path) -> MeasuredTable:
        """Read a table back.

        Raises:
            FormatError: The file is missing, damaged, of another kind or version.
        """
        with read_h5(path, kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
            columns = {name: np.asarray(file[name]) for name in _DATASETS}
        try:
            return cls(times=tuple(_times(columns)))
        except (FormatError, ValueError, TypeError, KeyError, IndexError) as error:
            raise FormatError(f"{path} is damaged: {error}; measure again, or fetch the file again") from error


def _times(columns: dict[str, Any]) -> Iterable[MeasuredTime]:
    digests = [f"{digest:016x}" for digest in columns["digest"].tolist()]
    names = bytes(columns["name"]).decode().split("\n") if digests else []
    sessions = [{key: entry[key] for key in _SESSION_FIELDS} for entry in json.loads(bytes(columns["session"]))]
    if len(names) != len(digests):
        raise FormatError(f"{len(names)} names for {len(digests)} launches")
    keys = ("time_launch", "time_session", "kernel_time_s", "min_s", "spread", "num_repeats")
    for row, session, kernel_time_s, min_s, spread, num_repeats in zip(
        *(columns[key].tolist() for key in keys), strict=True
    ):
        yield MeasuredTime(
            digest=digests[row],
            name=names[row],
            kernel_time_s=kernel_time_s,
            min_s=min_s,
            spread=spread,
            num_repeats=num_repeats,
            **sessions[session],
        )


def load_measured(folder: str | Path | None = None) -> MeasuredTable:
    """Read all tables of a folder together.

    Args:
        folder: Holds `*.h5`; the shipped `traces/measured`, which may be absent, where it is None.

    Raises:
        FormatError: A file is damaged, or the given folder does not exist.
    """
    if folder is not None and not Path(folder).is_dir():
        raise FormatError(f"the folder of measured times {folder} does not exist; give one that holds *.h5")
    place = content_folder("traces") / "measured" if folder is None else Path(folder)
    table = MeasuredTable()
    for path in sorted(place.glob("*.h5")):
        table = table.merge(MeasuredTable.load(path))
    return table
