"""Measured times of a corpus of generated launches, by row (format `perfvec-corpus-times`, version 1).

attributes       format, format_version, corpus_digest (of the corpus whose rows these are)
session          uint8                JSON: a list of {device, driver, launch_overhead_s, date}
row              uint32 (times)       launch of the corpus
time_session     uint16 (times)       entry of `session`
kernel_time_s    float32 (times)      median
min_share        float16 (times)      least time ÷ median
spread           float16 (times)      interquartile range ÷ median; NaN for a single run
num_repeats      uint16 (times)
failure          uint8                JSON: a list of {device, reason}
failed_row       uint32 (failures)    launch of the corpus
failed_reason    uint16 (failures)    entry of `failure`
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.arch.measured import MAX_REPEATS_STORED, MeasuredTime
from perfvec.errors import FormatError
from perfvec.files import array_of, read_h5, whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "perfvec-corpus-times"
FORMAT_VERSION = 1
# Times of CORPUS.h5 are in CORPUS.times.h5 beside it.
TIMES_SUFFIX = ".times.h5"
_DATASETS = {
    "row": ("u4", "launch of the corpus"),
    "time_session": ("u2", "entry of session"),
    "kernel_time_s": ("f4", "s"),
    "min_share": ("f2", "fraction of the median"),
    "spread": ("f2", "fraction of the median"),
    "num_repeats": ("u2", "run"),
    "failed_row": ("u4", "launch of the corpus"),
    "failed_reason": ("u2", "entry of failure"),
}
_LISTS = ("session", "failure")


def times_path(corpus: Path) -> Path:
    """Where the times of a corpus file are unless told."""
    return corpus.with_name(corpus.stem + TIMES_SUFFIX)


@final
@dataclass(frozen=True, slots=True, order=True)
class Session:
    """One opening of a device.

    Attributes:
        device: Its name in tables.
        driver: Driver version.
        date: Day, `YYYY-MM-DD`.
        launch_overhead_s: Time of an empty kernel.
    """

    device: str
    driver: str
    date: str
    launch_overhead_s: float


@final
@dataclass(frozen=True, slots=True)
class RowTime:
    """The time of a launch; the fields of `MeasuredTime` that are its own.

    Attributes:
        session: When and where.
        kernel_time_s: Median over the repeats, from event START to END.
        min_share: The shortest of them ÷ the median.
        spread: Interquartile range ÷ median; NaN for a single run.
        num_repeats: Runs that the median is over.
    """

    session: Session
    kernel_time_s: float
    min_share: float
    spread: float
    num_repeats: int

    def __post_init__(self) -> None:
        if not (self.kernel_time_s > 0 and math.isfinite(self.kernel_time_s) and 0 < self.min_share <= 1):
            raise FormatError(
                f"kernel_time_s={self.kernel_time_s}, min_share={self.min_share}; allowed are finite times over 0, and "
                "shares of them over 0"
            )
        if not 1 <= self.num_repeats <= MAX_REPEATS_STORED:
            raise FormatError(f"num_repeats={self.num_repeats}; allowed are 1 to {MAX_REPEATS_STORED}")


@final
@dataclass(slots=True)
class CorpusTimes:
    """Times of a corpus; grows while it is measured.

    Attributes:
        corpus_digest: Digest of the corpus.
        times: By device and row.
        failures: Why a launch could not be timed, by device and row.
    """

    corpus_digest: str
    times: dict[tuple[str, int], RowTime] = field(default_factory=dict)
    failures: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, row: int, time: MeasuredTime) -> None:
        """Keep a time, instead of one that there is."""
        session = Session(time.device, time.driver, time.date, float(np.float32(time.launch_overhead_s)))
        share = float(np.float16(time.min_s / time.kernel_time_s))
        self.times[time.device, row] = RowTime(session, time.kernel_time_s, share, time.spread, time.num_repeats)
        self.failures.pop((time.device, row), None)

    def fail(self, row: int, device: str, reason: str) -> None:
        """Keep that a launch cannot be timed."""
        self.failures[device, row] = reason

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that there are times on, sorted."""
        return tuple(sorted({device for device, _ in self.times}))

    def known(self, device: str) -> frozenset[int]:
        """Rows that have a time on a device, or cannot have one."""
        return frozenset(row for name, row in (*self.times, *self.failures) if name == device)

    def kernel_time_s(self, device: str, num_launches: int) -> NDArray[np.float64]:
        """Times on a device by row, seconds; NaN where there is none. Shape `(num_launches,)`."""
        values = np.full(num_launches, np.nan)
        for (name, row), time in self.times.items():
            if name == device:
                values[row] = time.kernel_time_s
        return values

    def measured(self, row: int, device: str, digest: str) -> MeasuredTime | None:
        """The record of a time as tables of suites have it; None where there is none.

        Args:
            row: Launch of the corpus.
            device: The device's name in tables.
            digest: `Launch.digest` of that launch.
        """
        time = self.times.get((device, row))
        if time is None:
            return None
        return MeasuredTime(
            digest=digest,
            device=device,
            kernel_time_s=time.kernel_time_s,
            spread=time.spread,
            num_repeats=time.num_repeats,
            min_s=time.kernel_time_s * time.min_share,
            launch_overhead_s=time.session.launch_overhead_s,
            driver=time.session.driver,
            date=time.session.date,
        )

    def reasons(self, device: str) -> dict[str, int]:
        """How many launches cannot be timed on a device, by reason, the most frequent first."""
        counts = Counter(reason for (name, _), reason in self.failures.items() if name == device)
        return dict(counts.most_common())

    # ---- storing ------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write an HDF5 file, whole or not at all; times keep seven digits.

        Raises:
            FormatError: The folder does not exist.
        """
        import h5py

        columns, lists = self._columns()
        with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
            file.attrs["format"], file.attrs["format_version"] = FORMAT, FORMAT_VERSION
            file.attrs["corpus_digest"] = self.corpus_digest
            for name, entries in lists.items():
                data = np.frombuffer(json.dumps(entries).encode(), np.uint8)
                file.create_dataset(name, data=data, compression="gzip").attrs["units"] = "JSON"
            for name, values in columns.items():
                dtype, units = _DATASETS[name]
                data = np.asarray(values, dtype)
                dataset = file.create_dataset(name, data=data, compression="gzip" if data.size else None, shuffle=True)
                dataset.attrs["units"] = units

    def _columns(self) -> tuple[dict[str, Any], dict[str, Any]]:
        ordered = sorted(self.times.items(), key=lambda item: item[0])
        failed = sorted(self.failures.items())
        sessions = {session: number for number, session in enumerate(dict.fromkeys(t.session for _, t in ordered))}
        reasons = {key: number for number, key in enumerate(dict.fromkeys((k[0], reason) for k, reason in failed))}
        columns = {
            "row": [row for (_, row), _ in ordered],
            "time_session": [sessions[time.session] for _, time in ordered],
            **{
                name: [getattr(time, name) for _, time in ordered]
                for name in ("kernel_time_s", "min_share", "spread", "num_repeats")
            },
            "failed_row": [row for (_, row), _ in failed],
            "failed_reason": [reasons[device, reason] for (device, _), reason in failed],
        }
        fields = ("device", "driver", "date", "launch_overhead_s")
        lists = {
            "session": [{name: getattr(session, name) for name in fields} for session in sessions],
            "failure": [{"device": device, "reason": reason} for device, reason in reasons],
        }
        return columns, lists

    @classmethod
    def load(cls, path: str | Path, *, corpus_digest: str = "") -> CorpusTimes:
        """Read a table back.

        Args:
            path: The file.
            corpus_digest: Of the corpus that its rows shall belong to; of any where it is "".

        Raises:
            FormatError: The file is missing, damaged, of another kind, version or corpus.
        """
        with read_h5(path, kind=FORMAT, versions=(FORMAT_VERSION,)) as file:
            digest = str(file.attrs.get("corpus_digest", ""))
            columns = {name: array_of(file, name) for name in _DATASETS}
            texts = {name: bytes(array_of(file, name)) for name in _LISTS}
        if corpus_digest and digest != corpus_digest:
            raise FormatError(
                f"{path} has times of the corpus {digest}, not of {corpus_digest}; give the corpus that was measured, "
                "or another file for the times"
            )
        try:
            return _from_columns(digest, columns, {name: json.loads(text) for name, text in texts.items()})
        except (FormatError, ValueError, TypeError, KeyError, IndexError) as error:
            raise FormatError(f"{path} is damaged: {error}; measure again, or fetch the file again") from error


def _from_columns(digest: str, columns: Mapping[str, NDArray[Any]], lists: Mapping[str, Iterable[Any]]) -> CorpusTimes:
    sessions = [Session(**entry) for entry in lists["session"]]
    reasons = [(entry["device"], entry["reason"]) for entry in lists["failure"]]
    table = CorpusTimes(corpus_digest=digest)
    names = ("row", "time_session", "kernel_time_s", "min_share", "spread", "num_repeats")
    for row, session, *values in zip(*(columns[name].tolist() for name in names), strict=True):
        table.times[sessions[session].device, row] = RowTime(sessions[session], *values)
    for row, reason in zip(columns["failed_row"].tolist(), columns["failed_reason"].tolist(), strict=True):
        device, words = reasons[reason]
        table.failures[device, row] = words
    return table
