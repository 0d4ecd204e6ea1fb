from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.conformal import score_interval


def test_interval_by_hand():
    # 19 scores, 80 %: k = 0.1 x 20 = 2, so the second from each end.
    assert score_interval(np.arange(19.0)[::-1], 0.8) == pytest.approx((1.0, 17.0))


def test_between_two_scores():
    # 0.1 x 25 = 2.5: half way between the second and the third.
    assert score_interval(np.arange(24.0), 0.8) == pytest.approx((1.5, 21.5))


def test_new_scores_of_any_distribution_lie_inside_as_often_as_promised():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(4000):
        scores = rng.standard_cauchy(60) + 1.0
        low, high = score_interval(scores[:59], 0.8)
        inside.append(low <= scores[59] <= high)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.02)  # three deviations of 4,000 draws


def test_more_than_the_scores_can_say_is_all_of_them():
    assert score_interval(np.arange(19.0), 0.99) == (0.0, 18.0)


def test_impossible_intervals_are_refused():
    with pytest.raises(ModelError, match="19 or more are needed"):
        score_interval(np.zeros(18), 0.8)
    with pytest.raises(ModelError, match="all finite or not"):
        score_interval(np.full(30, np.nan), 0.8)
    for confidence in (0.0, 1.0, 80.0):
        with pytest.raises(ModelError, match="above 0 and below 1"):
            score_interval(np.zeros(30), confidence)
