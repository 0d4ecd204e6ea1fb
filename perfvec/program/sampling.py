"""Which work-groups stand for a launch.

Work-groups at the grid's edges often do other work than those inside (bounds checks, halos), so each combination of
first, inner and last place along the dimensions is a class of its own. Within a class, runs of neighbouring
work-groups are taken at regular places, since neighbours share cache lines. Weights add up to the launch.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RUN_LENGTH = 4  # neighbouring work-groups taken together


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Work-groups to trace, rising, and how many of the launch each stands for; the weights add up to the launch."""

    groups: NDArray[np.int64]
    weights: NDArray[np.float64]


def sample_groups(num_groups: tuple[int, ...], *, most: int, seed: int = 0) -> Sample:
    """Choose work-groups.

    Args:
        num_groups: Work-groups in each dimension.
        most: About how many to choose, at least one of each class of places; all are taken if there are no more.
        seed: Fixes the places within a class.
    """
    total = math.prod(num_groups)
    if total <= most:
        return Sample(groups=np.arange(total), weights=np.ones(total))
    rng = np.random.Generator(np.random.PCG64(seed))
    classes = [box for box in itertools.product(*(_places(size) for size in num_groups)) if all(map(len, box))]
    sizes = [math.prod(map(len, box)) for box in classes]
    groups, weights = [], []
    for box, size in zip(classes, sizes, strict=True):
        share = min(size, max(1, round(most * size / total)))
        places = _spread(size, share, rng)
        groups.append(_linear(box, places, num_groups))
        weights.append(np.full(share, size / share))
    merged = np.concatenate(groups)
    order = np.argsort(merged)
    return Sample(groups=merged[order], weights=np.concatenate(weights)[order])


def _places(size: int) -> tuple[range, range, range]:
    """First, inner and last places along a dimension."""
    return range(1), range(1, size - 1), range(max(size - 1, 1), size)


def _spread(size: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` of `size` places: runs of neighbours, one in each of equal strata."""
    if count == size:
        return np.arange(size)
    num_runs = -(-count // RUN_LENGTH)
    ends = np.linspace(0, count, num_runs + 1).round().astype(np.int64)
    lengths = np.diff(ends)
    bounds = ends * size // count  # strata as long in proportion as their runs, so that every run fits
    runs = []
    for start, end, length in zip(bounds[:-1], bounds[1:], lengths, strict=True):
        first = int(start + rng.integers(0, end - start - length + 1))
        runs.append(np.arange(first, first + length))
    return np.concatenate(runs)


def _linear(box: tuple[range, ...], places: NDArray[np.int64], num_groups: tuple[int, ...]) -> NDArray[np.int64]:
    """Linear work-group numbers, first dimension fastest, of places inside a box of the grid."""
    linear = np.zeros(len(places), np.int64)
    rest, stride = places, 1
    for side, size in zip(box, num_groups, strict=True):
        linear += (rest % len(side) + side.start) * stride
        rest, stride = rest // len(side), stride * size
    return linear
