"""What is held out of training, fixed in files, so that every model and every table means the same by "unseen".

    name = "unseen-kernel"
    seed = 0
    family_share = 0.2            # of each suite's kernel families
    launch_share = 0.1            # of the launches of all other families
    suites = []                   # suites that are held out as a whole

    [families]                    # held out; a family that occurs in several suites is held out in all of them
    dense = ["gemm", "gemv"]

Families are listed, so that a suite that is added later does not change them. Launches follow from their digests.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import numpy as np

from perfvec.content import content_folder
from perfvec.errors import ConfigError
from perfvec.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.corpus.suite import SuiteLaunch

SplitName: TypeAlias = Literal["unseen-kernel", "unseen-launch", "unseen-suite"]
DEFAULT_HOLDOUT = "unseen-kernel.toml"
_KEYS = ("name", "seed", "family_share", "launch_share", "suites", "families")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Holdout:
    """What no model may be trained on that is evaluated with it.

    Attributes:
        name: What to call it.
        seed: Seed by which families were chosen.
        family_share: Share of each suite's families that were to be chosen.
        launch_share: Share of the launches of other families.
        families: Held-out families, by suite.
        suites: Held-out suites.
    """

    name: str
    seed: int = 0
    family_share: float = 0.0
    launch_share: float = 0.0
    families: tuple[tuple[str, tuple[str, ...]], ...] = ()
    suites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("family_share", "launch_share"):
            if not 0 <= getattr(self, key) < 1:
                raise ConfigError(f"holdout {self.name!r}: {key}={getattr(self, key)}; allowed are 0 to below 1")

    @property
    def held_out_families(self) -> frozenset[str]:
        """Names of the held-out families."""
        return frozenset(family for _, families in self.families for family in families)

    def rows(self, entries: Sequence[SuiteLaunch], split: SplitName) -> NDArray[np.int64]:
        """Rows to evaluate a split on; they may be none.

        Args:
            entries: Launches.
            split: `unseen-kernel`: of held-out families. `unseen-launch`: held-out launches of other families.
                `unseen-suite`: of held-out suites.
        """
        kinds = self._kinds(entries)
        return np.flatnonzero([kind == split for kind in kinds])

    def training_rows(self, entries: Sequence[SuiteLaunch]) -> NDArray[np.int64]:
        """Rows that are not held out in any way."""
        return np.flatnonzero([kind == "" for kind in self._kinds(entries)])

    def _kinds(self, entries: Sequence[SuiteLaunch]) -> list[str]:
        families = self.held_out_families
        of_suites = {entry.family for entry in entries if entry.suite in self.suites}
        return [
            "unseen-suite"
            if entry.suite in self.suites
            else "unseen-kernel"
            if entry.family in families
            else "straddling"  # a family of a held-out suite in another suite is neither trained on nor evaluated
            if entry.family in of_suites
            else "unseen-launch"
            if _chance(entry.launch.digest) < self.launch_share
            else ""
            for entry in entries
        ]


def _chance(text: str) -> float:
    """A number from 0 to below 1 that follows from a text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:13], 16) / 16**13


def choose_families(
    entries: Sequence[SuiteLaunch], *, family_share: float = 0.2, launch_share: float = 0.1, seed: int = 0
) -> Holdout:
    """Choose families to hold out: a share of each suite's, at least one, by a hash of their names.

    The choice in a suite does not hang on other suites, and little on families that are added.

    Args:
        entries: The corpus.
        family_share: Share of each suite's families; from 0 to below 1.
        launch_share: Share of the launches of other families.
        seed: Another seed, another choice.
    """
    by_suite: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        by_suite[entry.suite].add(entry.family)
    chosen: dict[str, tuple[str, ...]] = {}
    for suite, families in sorted(by_suite.items()):
        ranked = sorted(families, key=lambda family: _chance(f"{seed}/{family}"))
        chosen[suite] = tuple(sorted(ranked[: max(1, round(family_share * len(ranked)))]))
    return Holdout(
        name="unseen-kernel",
        seed=seed,
        family_share=family_share,
        launch_share=launch_share,
        families=tuple(chosen.items()),
    )


def default_holdout() -> Path:
    """The holdout file that the shipped model keeps to.

    Raises:
        FormatError: This installation lacks it.
    """
    return content_folder("experiments") / "splits" / DEFAULT_HOLDOUT


def load_holdout(path: str | Path | None = None) -> Holdout:
    """Read a holdout file.

    Args:
        path: The file; the one of the shipped model where it is None.

    Raises:
        ConfigError: It cannot be read, or a key is missing, unknown or of the wrong type.
    """
    chosen = default_holdout() if path is None else Path(path)
    try:
        values = tomllib.loads(chosen.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read holdout file {chosen}: {error}") from error
    if unknown := set(values) - set(_KEYS):
        raise ConfigError(
            f"holdout file {chosen} has unknown {', '.join(sorted(unknown))}; allowed: {', '.join(_KEYS)}"
        )
    try:
        return Holdout(
            name=str(values["name"]),
            seed=int(values.get("seed", 0)),
            family_share=float(values.get("family_share", 0.0)),
            launch_share=float(values.get("launch_share", 0.0)),
            families=tuple((suite, tuple(map(str, names))) for suite, names in values.get("families", {}).items()),
            suites=tuple(map(str, values.get("suites", []))),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"holdout file {chosen} is malformed: {error!r}; its keys are {', '.join(_KEYS)}") from error


def save_holdout(holdout: Holdout, path: str | Path) -> None:
    """Write a holdout file.

    Raises:
        FormatError: The folder does not exist.
    """
    lines = [
        "# What is held out of training. Made by perfvec.apply.splits.choose_families.",
        f'name = "{holdout.name}"',
        f"seed = {holdout.seed}",
        f"family_share = {holdout.family_share}",
        f"launch_share = {holdout.launch_share}",
        f"suites = [{_quoted(holdout.suites)}]",
        "",
        "[families]",
        *(f"{suite} = [{_quoted(families)}]" for suite, families in holdout.families),
    ]
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)
