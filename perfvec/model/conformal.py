"""Intervals that hold as often as they say, from residuals of launches that nothing was fitted to.

A score is (log measured - log predicted) ÷ predicted standard deviation. If a new launch's score is exchangeable with n
known ones, it lies between their k-th smallest and k-th largest with probability 1 - 2 k ÷ (n + 1), whatever the
distribution of the scores. Launches of a family are not independent, so the guarantee is for families drawn alike.

Source: Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005; split conformal prediction as in Lei et
al., JASA 2018; by group ("Mondrian") as in Vovk et al., section 4.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Fewer scores than this bound no central interval of 80 %.
MIN_SCORES = 19


def score_interval(scores: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """The central interval of scores that a new score lies in with the given probability.

    Args:
        scores: Known scores, `(n,)`, finite; `MIN_SCORES` or more.
        confidence: Above 0 and below 1. More than n scores can bound is given as their least and largest.

    Raises:
        ModelError: There are too few scores, one is not finite, or the confidence is out of range.
    """
    check_confidence(confidence)
    if len(scores) < MIN_SCORES or not np.isfinite(scores).all():
        raise ModelError(f"{len(scores)} scores, all finite or not, bound no interval; {MIN_SCORES} or more are needed")
    ordered = np.sort(scores)
    # The k-th smallest and the k-th largest leave k / (n + 1) on each side.
    below = (1 - confidence) / 2 * (len(ordered) + 1) - 1
    at = np.clip([below, len(ordered) - 1 - below], 0, len(ordered) - 1)
    low, high = np.interp(at, np.arange(len(ordered)), ordered)
    return float(low), float(high)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is no probability.

    Raises:
        ModelError: It is not above 0 and below 1.
    """
    if not 0 < confidence < 1:
        raise ModelError(f"confidence={confidence} must lie above 0 and below 1; 0.8 for 80 %")
