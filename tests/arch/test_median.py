from __future__ import annotations

import math

import numpy as np
import pytest

from perfvec.arch.median import interval_rank, median, median_is_known, relative_spread


@pytest.mark.parametrize(
    ("num_samples", "rank"),
    # Table of distribution-free 95 % intervals for the median (Conover, Practical Nonparametric Statistics, A3).
    [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (17, 5), (20, 6), (25, 8)],
)
def test_ranks_as_tabulated(num_samples: int, rank: int):
    assert interval_rank(num_samples, 0.95) == rank


def test_the_interval_covers_the_median_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = np.sort(rng.lognormal(0, 1, (20_000, 15)), axis=1)  # the true median is 1
    rank = interval_rank(15, 0.95)
    covered = (samples[:, rank - 1] <= 1) & (samples[:, -rank] >= 1)
    # 1 - 2 P(B(15, 1/2) <= 3) = 0.9648; five standard errors of 20,000 draws are 0.0065.
    assert covered.mean() == pytest.approx(0.9648, abs=0.0065)


def test_known_when_the_interval_is_narrow():
    tight = [1.00, 1.01, 0.99, 1.00, 1.01, 1.02]  # extremes 0.99 to 1.02: half width 1.5 %
    assert median_is_known(tight, precision=0.02, confidence=0.95)
    assert not median_is_known(tight, precision=0.01, confidence=0.95)
    assert not median_is_known(tight[:5], precision=0.02, confidence=0.95)
    # One outlier of nine does not matter: the interval goes from the second smallest to the second largest.
    assert median_is_known([1.0] * 8 + [9.0], precision=0.02, confidence=0.95)
    assert not median_is_known([1.0] * 7 + [9.0], precision=0.02, confidence=0.95)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 40])
def test_median_and_spread_are_numpys(count: int):
    times_s = np.random.default_rng(count).lognormal(0, 1, count).tolist()
    low, middle, high = np.percentile(times_s, (25, 50, 75))
    assert median(times_s) == pytest.approx(middle, rel=1e-14)
    if count > 1:
        assert relative_spread(times_s) == pytest.approx((high - low) / middle, rel=1e-12)


def test_spread_is_the_interquartile_range():
    assert relative_spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx((4 - 2) / 3)
    assert math.isnan(relative_spread([1.0]))
