"""Which families of generated kernels are for development, validation and test, in a file beside the corpora.

    [development]
    none = ["none/affine/constant", "none/affine/data"]      # by how work-items communicate

Every family that the generator can draw is listed, so that no corpus, seed or release changes what "unseen" means.
"""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from perfvec.content import content_folder
from perfvec.corpus.generator_access import ORDERS
from perfvec.corpus.generator_structure import COMMUNICATIONS, TRIPS
from perfvec.errors import ConfigError
from perfvec.files import whole_file

FamilySplit: TypeAlias = Literal["development", "validation", "test"]
FAMILY_SPLITS: tuple[FamilySplit, ...] = get_args(FamilySplit)
# Of the twenty families of each way to communicate.
_HELD_OUT: dict[FamilySplit, int] = {"test": 4, "validation": 2}


def all_families() -> tuple[str, ...]:
    """Names of all families that the generator can draw."""
    return tuple("/".join(parts) for parts in itertools.product(COMMUNICATIONS, ORDERS, TRIPS))


def choose_family_splits() -> dict[str, FamilySplit]:
    """The split of each family, by a hash of its name; some of each way to communicate in each split."""
    chosen: dict[str, FamilySplit] = {}
    for communication in COMMUNICATIONS:
        members = [name for name in all_families() if name.startswith(f"{communication}/")]
        ranked = sorted(members, key=lambda name: hashlib.sha256(name.encode()).digest())
        sizes = {**_HELD_OUT, "development": len(ranked)}
        names = iter(ranked)
        for split, size in sizes.items():
            chosen.update((name, cast("FamilySplit", split)) for name in itertools.islice(names, size))
    return chosen


def splits_path() -> Path:
    """The shipped file.

    Raises:
        FormatError: This installation lacks its folder.
    """
    return content_folder("traces") / "corpus" / "splits.toml"


def save_family_splits(splits: Mapping[str, FamilySplit], path: str | Path) -> None:
    """Write a file of splits.

    Raises:
        FormatError: The folder does not exist.
    """
    lines = [
        "# Families of generated kernels. Made by perfvec.corpus.family_splits.choose_family_splits; never changed."
    ]
    for split in FAMILY_SPLITS:
        lines.append(f"\n[{split}]")
        for communication in COMMUNICATIONS:
            names = [name for name, part in splits.items() if part == split and name.startswith(f"{communication}/")]
            lines.append(f"{communication} = [")
            lines += [f'    "{name}",' for name in sorted(names)]
            lines.append("]")
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def load_family_splits(path: str | Path | None = None) -> dict[str, FamilySplit]:
    """Read a file of splits; the shipped one where none is given.

    Raises:
        ConfigError: It cannot be read, or a family is missing, unknown or listed twice.
    """
    chosen = splits_path() if path is None else Path(path)
    try:
        content = tomllib.loads(chosen.read_text(encoding="utf-8"))
        listed: list[tuple[str, FamilySplit]] = [
            (name, split) for split in FAMILY_SPLITS for names in content[split].values() for name in names
        ]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(f"cannot read the splits of families {chosen}: {error!r}; fetch the file again") from error
    splits = dict(listed)
    wrong = set(splits) ^ set(all_families())
    if wrong or len(splits) != len(listed):
        raise ConfigError(
            f"{chosen}: each of the {len(all_families())} families must be in one of {', '.join(FAMILY_SPLITS)}; found "
            f"{', '.join(sorted(wrong)) or 'one twice'}"
        )
    return splits


@cache
def _shipped() -> dict[str, FamilySplit]:
    return load_family_splits()


def split_of(family: str) -> FamilySplit:
    """The split of a family of generated kernels.

    Raises:
        ConfigError: There is no such family.
    """
    try:
        return _shipped()[family]
    except KeyError as error:
        raise ConfigError(f"no generated kernel has the family {family!r}; they are like none/affine/data") from error
