"""How far predictions are from measurements. One figure alone flatters, so `summarise` gives all of them.

Legend: t predicted time, m measured time; the absolute percentage error (APE) of one launch is |t − m| ÷ m, a fraction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

NEAR = 0.25
# With two launches a rank correlation is ±1 whatever the predictor does well.
MIN_RANKED = 3
_NO_ORDER = 1e-6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All figures of one split.

    Attributes:
        num_launches: Launches compared.
        mape: Mean APE.
        median_ape: Median APE.
        p90_ape: 90th percentile of the APE.
        worst_ape: Largest APE.
        worst_name: The launch it belongs to.
        rank_correlation: Mean Spearman correlation within a group; NaN where no group can be ranked.
        num_ranked_groups: Groups that enter `rank_correlation`.
        share_near: Share of launches within 25 % of the measurement.
    """

    num_launches: int
    mape: float
    median_ape: float
    p90_ape: float
    worst_ape: float
    worst_name: str
    rank_correlation: float
    num_ranked_groups: int
    share_near: float


def absolute_percentage_errors(predicted: ArrayLike, measured: ArrayLike) -> NDArray[np.float64]:
    """|predicted − measured| ÷ measured of each launch.

    Args:
        predicted: Predicted times in seconds; any shape, 0 or more, finite.
        measured: Measured times in seconds; the same shape, positive, finite.

    Returns:
        Fractions of the same shape.

    Raises:
        ModelError: The shapes differ, there is nothing to compare, or a time is out of range.
    """
    t = np.asarray(predicted, dtype=np.float64)
    m = np.asarray(measured, dtype=np.float64)
    if t.shape != m.shape:
        raise ModelError(f"cannot compare {t.shape} predicted with {m.shape} measured times; the shapes must be equal")
    if t.size == 0:
        raise ModelError("cannot compare an empty set of times; give one launch or more")
    if not (np.isfinite(m).all() and (m > 0).all()):
        raise ModelError("measured times must be positive and finite; leave out the launches that were not measured")
    if not np.isfinite(t).all() or (t < 0).any():
        raise ModelError("predicted times must be finite and 0 or more; a model that predicts otherwise is broken")
    return np.abs(t - m) / m


def mape(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Mean absolute percentage error, a fraction. Arguments as in `absolute_percentage_errors`."""
    return float(np.mean(absolute_percentage_errors(predicted, measured)))


def median_ape(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Median absolute percentage error, a fraction. Arguments as in `absolute_percentage_errors`."""
    return float(np.median(absolute_percentage_errors(predicted, measured)))


def p90_ape(predicted: ArrayLike, measured: ArrayLike) -> float:
    """90th percentile of the absolute percentage error, linear between launches, a fraction."""
    return float(np.percentile(absolute_percentage_errors(predicted, measured), 90))


def worst(predicted: ArrayLike, measured: ArrayLike) -> tuple[float, int]:
    """The largest absolute percentage error and the index of its launch (the first, where several tie)."""
    errors = absolute_percentage_errors(predicted, measured)
    index = int(np.argmax(errors))
    return float(errors.flat[index]), index


def share_near(predicted: ArrayLike, measured: ArrayLike, *, near: float = NEAR) -> float:
    """Share of launches whose error is at most `near` (a fraction of the measured time)."""
    return float(np.mean(absolute_percentage_errors(predicted, measured) <= near))


def rank_correlation(predicted: ArrayLike, measured: ArrayLike, groups: Sequence[str]) -> tuple[float, int]:
    """Mean Spearman correlation between predicted and measured times within each group.

    A group counts if it has three launches or more that were not all measured alike. A predictor that gives the same
    time for a whole group has ranked nothing: 0.

    Args:
        predicted: Predicted times; shape `(n,)`.
        measured: Measured times; shape `(n,)`.
        groups: The group, such as the kernel, of each launch; length `n`.

    Returns:
        The mean over the groups, −1 to 1 (NaN where no group counts), and how many groups count.

    Raises:
        ModelError: The lengths differ.
    """
    t = np.asarray(predicted, dtype=np.float64)
    m = np.asarray(measured, dtype=np.float64)
    labels = np.asarray(groups)
    if not t.shape == m.shape == labels.shape or t.ndim != 1:
        raise ModelError(f"cannot rank {t.shape} predicted and {m.shape} measured times in {labels.shape} groups")
    _, group, size = np.unique(labels, return_inverse=True, return_counts=True)
    of_t, of_m = (_centred_ranks(values, group, size) for values in (t, m))
    both, square_t, square_m = (
        np.bincount(group, product, minlength=len(size)) for product in (of_t * of_m, of_t**2, of_m**2)
    )
    # Ranks are halves, so what does not vary comes to 0 but for rounding.
    counts = (size >= MIN_RANKED) & (square_m > _NO_ORDER)
    correlation = np.where(square_t > _NO_ORDER, both, 0.0) / np.sqrt(np.maximum(square_t * square_m, _NO_ORDER))
    return (float(correlation[counts].mean()) if counts.any() else math.nan), int(counts.sum())


def _centred_ranks(
    values: NDArray[np.float64], group: NDArray[np.integer], size: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Ranks within each group less their mean there; values that tie share the mean of their ranks."""
    order = np.lexsort((values, group))
    is_next = np.diff(values[order]) != 0
    is_next |= np.diff(group[order]) != 0
    run = np.concatenate([[0], np.cumsum(is_next)]) if len(order) else order
    ranks = np.empty(len(values))
    ranks[order] = (np.bincount(run, np.arange(len(run))) / np.bincount(run))[run] if len(order) else 0.0
    return ranks - (np.bincount(group, ranks) / size)[group]


def summarise(predicted: ArrayLike, measured: ArrayLike, names: Sequence[str], groups: Sequence[str]) -> Summary:
    """Every figure of one split.

    Args:
        predicted: Predicted times in seconds; shape `(n,)`.
        measured: Measured times in seconds; shape `(n,)`, positive.
        names: What to call each launch; length `n`.
        groups: Its kernel, for the rank correlation; length `n`.

    Raises:
        ModelError: The lengths differ or a time is out of range.
    """
    errors = absolute_percentage_errors(predicted, measured)
    if errors.ndim != 1 or not len(errors) == len(names) == len(groups):
        raise ModelError(f"{errors.shape} times, {len(names)} names and {len(groups)} groups do not belong together")
    worst_ape, worst_index = worst(predicted, measured)
    correlation, num_ranked = rank_correlation(predicted, measured, groups)
    return Summary(
        num_launches=len(errors),
        mape=float(errors.mean()),
        median_ape=float(np.median(errors)),
        p90_ape=float(np.percentile(errors, 90)),
        worst_ape=worst_ape,
        worst_name=names[worst_index],
        rank_correlation=correlation,
        num_ranked_groups=num_ranked,
        share_near=float(np.mean(errors <= NEAR)),
    )
