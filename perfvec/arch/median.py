"""How well the median of repeated times is known, whatever their distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=4096)
def interval_rank(num_samples: int, confidence: float) -> int:
    """Rank of the order statistic that bounds a confidence interval of the median.

    The interval from the `k`-th smallest to the `k`-th largest of `n` samples holds the median with probability
    `1 - 2 P(B <= k - 1)`, where `B` is binomial with `n` trials of probability 1/2.

    Args:
        num_samples: `n`, 1 or more.
        confidence: Least probability, between 0 and 1.

    Returns:
        The largest such `k`, from 1; 0 where even the extremes are not enough (below six samples at 95 %).

    Source:
        David, Nagaraja, "Order Statistics", 3rd edition, section 7.1; tests/arch/test_median.py.
    """
    tail = 0.0
    rank = 0
    for k in range(1, num_samples // 2 + 1):
        tail += math.comb(num_samples, k - 1) / 2**num_samples
        if 1 - 2 * tail < confidence:
            break
        rank = k
    return rank


def median_is_known(times_s: Sequence[float], *, precision: float, confidence: float) -> bool:
    """Whether half the width of the median's confidence interval is within `precision` of the median.

    Looking after every repeat makes the true confidence somewhat lower than the nominal one.

    Args:
        times_s: Repeated times, seconds; in any order.
        precision: Allowed half width ÷ median, such as 0.02.
        confidence: Probability of the interval, such as 0.95.
    """
    rank = interval_rank(len(times_s), confidence)
    if rank == 0:
        return False
    ordered = sorted(times_s)
    half_width = (ordered[-rank] - ordered[rank - 1]) / 2
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return half_width <= precision * middle


def relative_spread(times_s: Sequence[float]) -> float:
    """Interquartile range ÷ median; NaN for a single time, and for a median of 0, of which no spread is known."""
    ordered = sorted(times_s)
    low, middle, high = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    return (high - low) / middle if len(times_s) > 1 and middle > 0 else math.nan


def median(times_s: Sequence[float]) -> float:
    """The median of one or more times; NumPy's takes 60 microseconds, in which a device waits for the next launch."""
    return _quantile(sorted(times_s), 0.5)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest, linearly."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
