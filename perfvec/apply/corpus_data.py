"""Launches of a generated corpus that were measured, in the form that data sets are made of."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perfvec.content import content_folder
from perfvec.corpus.generated import Corpus
from perfvec.corpus.times import TIMES_SUFFIX, CorpusTimes, times_path
from perfvec.errors import ConfigError

if TYPE_CHECKING:
    from perfvec.arch.measured import MeasuredTime
    from perfvec.corpus.suite import SuiteLaunch


def measured_corpus(name: str, *, launches_per_kernel: int = 0) -> tuple[list[SuiteLaunch], list[MeasuredTime]]:
    """Read the launches of a corpus that have a time, and their times.

    Args:
        name: A corpus file with its times beside it, or the name of a shipped one, such as `nvidia-h200`.
        launches_per_kernel: Most launches of each kernel, spread evenly over those that were measured; 0 for all.

    Raises:
        ConfigError: The number is negative, or there is no such corpus.
        FormatError: A file is damaged, or the times are not of that corpus.
    """
    if launches_per_kernel < 0:
        raise ConfigError(f"launches_per_kernel is {launches_per_kernel}; it must be 0 or more, 0 for all")
    path = _find(name)
    corpus = Corpus.load(path)
    times = CorpusTimes.load(times_path(path), corpus_digest=corpus.stored_digest)
    by_kernel: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted({row for _, row in times.times}):
        by_kernel[corpus.recipes[row].kernel].append(row)
    entries: list[SuiteLaunch] = []
    records: list[MeasuredTime] = []
    devices = times.devices
    for rows in by_kernel.values():
        count = min(len(rows), launches_per_kernel or len(rows))
        for row in (rows[place] for place in np.linspace(0, len(rows) - 1, count).round().astype(int)):
            entry = corpus.entry(row)
            entries.append(entry)
            found = (times.measured(row, device, entry.launch.digest) for device in devices)
            records += [time for time in found if time is not None]
    return entries, records


def _find(name: str) -> Path:
    path = Path(name)
    if path.suffix == ".h5":
        return path
    folder = content_folder("traces") / "corpus"
    shipped = sorted(path.stem for path in folder.glob("*.h5") if not path.name.endswith(TIMES_SUFFIX))
    if name not in shipped:
        raise ConfigError(f"there is no corpus {name!r}; give a file FILE.h5, or one of {', '.join(shipped)}")
    return folder / f"{name}.h5"
