"""Which launches `perfvec evaluate --all` takes unless told to take all: fixed lists, so that every run means the same.

    [launches]                    # first 16 hex digits of digests
    unseen-kernel = ["9096117221bbaaa1", ...]
    training = [...]              # not held out: what baselines are fitted to and new devices are measured by

The lists say which launches; what is held out is the holdout file's to say.
"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from perfvec.content import content_folder
from perfvec.errors import ConfigError
from perfvec.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perfvec.apply.splits import Holdout
    from perfvec.corpus.suite import SuiteLaunch

SAMPLE_FILE = "sample.toml"
TRAINING = "training"
# Most launches of each part. All of them are traced in a few minutes on two cores.
SIZES = {"unseen-launch": 2000, "unseen-kernel": 2000, "unseen-suite": 2000, TRAINING: 1000}
_PER_LINE = 6


def draw_sample(entries: Sequence[SuiteLaunch], holdout: Holdout) -> dict[str, tuple[str, ...]]:
    """Draw launches by a hash of their digests, which hangs on nothing else.

    Args:
        entries: Measured launches.
        holdout: What is held out.

    Returns:
        Digests by split, and those of launches to train on.
    """
    rows = {
        "unseen-launch": holdout.rows(entries, "unseen-launch"),
        "unseen-kernel": holdout.rows(entries, "unseen-kernel"),
        "unseen-suite": holdout.rows(entries, "unseen-suite"),
        TRAINING: holdout.training_rows(entries),
    }
    drawn: dict[str, tuple[str, ...]] = {}
    for part, chosen in rows.items():
        digests = {entries[row].launch.digest for row in chosen}
        ranked = sorted(digests, key=lambda digest: hashlib.sha256(f"sample/{digest}".encode()).digest())
        drawn[part] = tuple(sorted(ranked[: SIZES[part]]))
    return drawn


def sample_path() -> Path:
    """The shipped file.

    Raises:
        FormatError: This installation lacks its folder.
    """
    return content_folder("experiments") / "splits" / SAMPLE_FILE


def load_sample(path: str | Path | None = None) -> dict[str, tuple[str, ...]]:
    """Digests by split, from a file; the shipped one where none is given.

    Raises:
        ConfigError: It cannot be read, or a list is missing, unknown or no list of digests.
    """
    chosen = sample_path() if path is None else Path(path)
    try:
        content = tomllib.loads(chosen.read_text(encoding="utf-8"))
        lists = content["launches"]
        if set(lists) - set(SIZES) or TRAINING not in lists:
            raise KeyError(*sorted(set(lists) ^ set(SIZES)))
        if not all(isinstance(digest, str) for digests in lists.values() for digest in digests):
            raise TypeError("a digest is no text")
        return {part: tuple(digests) for part, digests in lists.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"cannot read the sample of launches {chosen}: {error!r}; it has the lists {', '.join(SIZES)} of digests. "
            "Fetch the file again, or take all launches with --full"
        ) from error


def save_sample(sample: Mapping[str, Sequence[str]], path: str | Path) -> None:
    """Write a file of samples.

    Raises:
        FormatError: The folder does not exist.
    """
    lines = [
        "# Launches that perfvec evaluate --all takes. Made by perfvec.apply.sample.draw_sample; never changed.",
        "",
        "[launches]",
    ]
    for part, digests in sample.items():
        starts = range(0, len(digests), _PER_LINE)
        rows = (" ".join(f'"{digest}",' for digest in digests[start : start + _PER_LINE]) for start in starts)
        lines += [f"{part} = [", *(f"  {row}" for row in rows), "]"]
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def sampled(entries: Sequence[SuiteLaunch], sample: Mapping[str, Sequence[str]]) -> list[SuiteLaunch]:
    """The launches that a sample names.

    Raises:
        ConfigError: It names none of them.
    """
    digests = {digest for part in sample.values() for digest in part}
    chosen = [entry for entry in entries if entry.launch.digest in digests]
    if not chosen:
        raise ConfigError(
            f"none of the {len(entries)} launches is in the fixed sample, which is of the shipped suites; give --full "
            "to take all of them"
        )
    return chosen
