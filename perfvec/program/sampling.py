"""Which work-groups stand for a launch.

Work-groups at the grid's edges often do other work than those inside (bounds checks, halos), so each combination of
first, inner and last place along the dimensions is a class of its own. Within a class, runs of neighbouring
work-groups are taken at regular places, since neighbours share cache lines. Weights add up to the launch.

Where it is known what many work-groups do (`perfvec.program.pilot`), and it differs, up to a third of the sample is
chosen by that: one work-group of each cluster of like ones. The weights are then calibrated (Deville and Särndal,
"Calibration Estimators in Survey Sampling", JASA 87, 1992, with the chi-square distance): as near to each work-group's
share of its cluster as they can be while what the sample adds up to is what all are known to do.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RUN_LENGTH = 4  # neighbouring work-groups taken together
_BY_BEHAVIOUR = 1 / 3  # of a sample, at most
_LEAST_SHARE = 0.002  # of the columns of its kind together; a column with less is not calibrated
# Squared relative errors of the number of work-groups, of what they do, and of the size of each class of places weigh
# so much against squared changes of weights.
_TOTAL, _BEHAVIOUR, _PLACE = 1e12, 1e6, 1e3


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
    rng = _generator(seed)
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


def choose_groups(
    known: Sample,
    behaviour: NDArray[np.float64],
    *,
    kinds: NDArray[np.int64],
    num_groups: tuple[int, ...],
    most: int,
    seed: int = 0,
) -> Sample:
    """Choose among work-groups of which it is known what they do.

    Args:
        known: Those work-groups, at least one of each class of places; the weights add up to the launch.
        behaviour: What each of them does, in columns that are worth adding up, none negative; shape
            `(groups, columns)`.
        kinds: A number for the kind of each column: those of a kind have one unit, and their shares are comparable;
            shape `(columns,)`.
        num_groups: Work-groups in each dimension.
        most: About how many to choose; all are taken if there are no more.
        seed: Fixes the choice.

    Returns:
        The sample. The weighted sums of its columns are those of `known`, as far as its work-groups make that possible.
    """
    if len(known.groups) <= most:
        return known
    rng = _generator(seed)
    place = place_classes(known.groups, num_groups)
    sums = known.weights @ behaviour
    kept = behaviour[:, (sums > 0) & (sums >= _LEAST_SHARE * np.bincount(kinds, sums)[kinds])]
    shares = kept / (known.weights @ kept)
    cluster = _cluster(shares, max(1, int(most * _BY_BEHAVIOUR)), rng)
    num_clusters = int(cluster.max()) + 1
    is_chosen = np.zeros(len(cluster), np.bool_)
    is_chosen[_thin(place, max(1, most - num_clusters), rng)] = True
    for number in range(num_clusters):
        rest = np.flatnonzero((cluster == number) & ~is_chosen)
        if len(rest):
            is_chosen[rng.choice(rest)] = True
    chosen = np.flatnonzero(is_chosen)
    of_cluster = np.bincount(cluster, known.weights) / np.bincount(cluster[chosen], minlength=num_clusters)
    start = np.maximum(of_cluster[cluster[chosen]], 1.0)
    of_place = (place[:, None] == np.unique(place)) / np.bincount(place, known.weights)[np.unique(place)]
    columns = [np.full((len(place), 1), 1 / known.weights.sum()), shares, of_place]
    importance = np.repeat([_TOTAL, _BEHAVIOUR, _PLACE], [column.shape[1] for column in columns])
    weights = _calibrated(start, np.concatenate(columns, axis=1)[chosen], importance)
    return Sample(groups=known.groups[chosen], weights=weights)


def place_classes(groups: NDArray[np.int64], num_groups: tuple[int, ...]) -> NDArray[np.int64]:
    """A number for the class of each work-group's place: first, inner or last along each dimension."""
    number, rest = np.zeros(len(groups), np.int64), groups
    for size in num_groups:
        rest, at = np.divmod(rest, size)
        number = 3 * number + np.where(at == 0, 0, np.where(at == size - 1, 2, 1))
    return number


def neighbourhoods(groups: NDArray[np.int64], num_groups: tuple[int, ...]) -> NDArray[np.int64]:
    """A number for each set of work-groups that lie side by side, diagonally or one after another; shape `(groups,)`.

    Args:
        groups: Linear numbers, rising.
        num_groups: Work-groups in each dimension.
    """
    if len(groups) == math.prod(num_groups):
        return np.zeros(len(groups), np.int64)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    places = np.stack(np.unravel_index(groups, num_groups[::-1]))
    offsets = np.stack(np.meshgrid(*[(-1, 0, 1)] * len(num_groups), indexing="ij")).reshape(len(num_groups), -1)
    near = places[:, :, None] + offsets[:, None, :]
    is_inside = ((near >= 0) & (near < np.array(num_groups[::-1])[:, None, None])).all(axis=0)
    found = np.where(is_inside, np.ravel_multi_index(tuple(near), num_groups[::-1], mode="clip"), -1)
    found = np.concatenate([found, groups[:, None] + 1], axis=1)
    at = np.minimum(np.searchsorted(groups, found), len(groups) - 1)
    first, which = np.nonzero(groups[at] == found)
    pairs = coo_array((np.ones(len(first)), (first, at[first, which])), shape=(len(groups),) * 2)
    return connected_components(pairs, directed=False)[1].astype(np.int64)


def _thin(place: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """About `most` positions, at least one of each class of places: runs of neighbours, where there are such."""
    chosen = []
    for number in np.unique(place):
        members = np.flatnonzero(place == number)
        share = min(len(members), max(1, round(most * len(members) / len(place))))
        chosen.append(members[_spread(len(members), share, rng)])
    return np.sort(np.concatenate(chosen))


def _cluster(points: NDArray[np.float64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Number of each point's cluster; at most `most` clusters, none empty, equal points in one."""
    from scipy.cluster.vq import kmeans2

    distinct, number = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) <= most:
        return number.ravel().astype(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty cluster is no fault
        _, label = kmeans2(points / points.std(), most, minit="++", rng=rng)
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def _calibrated(
    start: NDArray[np.float64], columns: NDArray[np.float64], importance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights near `start`, at least 1, with which each column adds up to 1, the better the more important."""
    from scipy.optimize import lsq_linear

    scale, root = 1 / np.sqrt(start), np.sqrt(importance)
    rows = np.concatenate([np.diag(scale), columns.T * root[:, None]])
    return lsq_linear(rows, np.concatenate([start * scale, root]), bounds=(1.0, np.inf), method="bvls").x


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


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
