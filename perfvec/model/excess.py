"""Excess: by how much a launch's time on one archetype exceeds its time on another, where it does.

A device vector is positive, so a dot product adds up and never compares. A launch that suffers on devices with a small
cache tells it by the difference between two archetypes, and that is what these coordinates are:

    e_{a,b} = max(0, s_a · T_a − s_b · T_b) ÷ s_a

with `T` the time on an archetype, all causes together, and `s` what brings the median launch to 1 on each archetype.
Which pairs: `experiments/foundation/excess.py`.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.content import content_folder
from perfvec.errors import ConfigError, FormatError
from perfvec.resources import ARCHETYPES, RESOURCES_VERSION

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessPairs:
    """Pairs of archetypes, the most useful first.

    Attributes:
        slower: Number of the archetype whose excess it is; int64 `(X,)`.
        faster: Of the other; int64 `(X,)`.
        scale: One over the median launch's seconds on each archetype; float64 `(len(ARCHETYPES),)`.
    """

    slower: NDArray[np.int64]
    faster: NDArray[np.int64]
    scale: NDArray[np.float64]

    @property
    def names(self) -> list[str]:
        """A name for each, such as `excess:nvidia-h200:nvidia-gtx-480`."""
        pairs = zip(self.slower.tolist(), self.faster.tolist(), strict=True)
        return [f"excess:{ARCHETYPES[a]}:{ARCHETYPES[b]}" for a, b in pairs]


def excess_pairs(count: int) -> ExcessPairs:
    """The first `count` pairs of the shipped `archs/excess.json`.

    Raises:
        ConfigError: It has fewer.
        FormatError: The file is not of this release.
    """
    pairs = _shipped()
    if count > len(pairs.slower):
        raise ConfigError(
            f"model setting excess is {count}; archs/excess.json has {len(pairs.slower)} pairs of archetypes"
        )
    return ExcessPairs(slower=pairs.slower[:count], faster=pairs.faster[:count], scale=pairs.scale)


@functools.cache
def _shipped() -> ExcessPairs:
    path = content_folder("archs") / "excess.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        place = {name: number for number, name in enumerate(ARCHETYPES)}
        pairs_X2 = np.array(
            [[place[name] for name in pair.split(" > ")] for pair in table["pairs"]], dtype=np.int64
        ).reshape(-1, 2)
        scale = np.array([table["scale"][name] for name in ARCHETYPES], dtype=np.float64)
        version = table["resources_version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"cannot read the pairs of archetypes {path}: {error!r}; install perfvec again") from error
    if version != RESOURCES_VERSION:
        raise FormatError(
            f"{path} has pairs of resources version {version}, this release has {RESOURCES_VERSION}; install perfvec "
            "again"
        )
    return ExcessPairs(slower=pairs_X2[:, 0], faster=pairs_X2[:, 1], scale=scale)
