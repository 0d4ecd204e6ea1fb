import math

import numpy as np
import pytest

from perfvec import metrics
from perfvec.errors import ModelError

MEASURED = [1.0, 2.0, 4.0, 10.0]
PREDICTED = [1.1, 1.0, 5.0, 10.0]  # errors 0.1, 0.5, 0.25, 0


def test_mape_is_the_mean_of_relative_errors():
    assert metrics.mape(PREDICTED, MEASURED) == pytest.approx((0.1 + 0.5 + 0.25 + 0) / 4, rel=1e-12)


def test_median_ape_of_four_is_between_the_middle_two():
    assert metrics.median_ape(PREDICTED, MEASURED) == pytest.approx((0.1 + 0.25) / 2, rel=1e-12)


def test_p90_ape_is_linear_between_launches():
    # Sorted 0, 0.1, 0.25, 0.5; position 0.9 x 3 = 2.7, so 0.25 + 0.7 x 0.25.
    assert metrics.p90_ape(PREDICTED, MEASURED) == pytest.approx(0.425, rel=1e-12)


def test_worst_gives_value_and_index():
    value, index = metrics.worst(PREDICTED, MEASURED)
    assert (value, index) == (0.5, 1)


def test_share_near_counts_the_border():
    assert metrics.share_near(PREDICTED, MEASURED) == 0.75


def test_error_is_relative_to_the_measured_time_not_the_predicted():
    assert metrics.mape([2.0], [1.0]) == 1.0
    assert metrics.mape([1.0], [2.0]) == 0.5


def test_rank_correlation_is_the_mean_within_groups():
    # Group a in the right order (1). Group b: ranks 2 1 3 against 1 2 3, so 1 - 6 x 2 / (3 x 8) = 0.5.
    predicted = [1.0, 2.0, 3.0, 20.0, 10.0, 30.0]
    measured = [5.0, 6.0, 7.0, 1.0, 2.0, 3.0]
    value, groups = metrics.rank_correlation(predicted, measured, ["a"] * 3 + ["b"] * 3)
    assert value == pytest.approx(0.75, rel=1e-12)
    assert groups == 2


def test_rank_correlation_leaves_out_groups_that_cannot_be_ranked():
    predicted = [1.0, 2.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0]
    measured = [1.0, 2.0, 4.0, 4.0, 4.0, 1.0, 2.0, 3.0]
    # Two launches are too few, equal measurements have no order; the third group is reversed.
    assert metrics.rank_correlation(predicted, measured, list("aabbbccc")) == (-1.0, 1)


def test_a_constant_prediction_ranks_nothing():
    assert metrics.rank_correlation([1.0] * 3, [1.0, 2.0, 3.0], ["a"] * 3) == (0.0, 1)


def test_rank_correlation_without_groups_is_nan():
    value, groups = metrics.rank_correlation([1.0], [1.0], ["a"])
    assert math.isnan(value) and groups == 0


def test_summary_has_every_figure():
    summary = metrics.summarise(PREDICTED, MEASURED, ["w", "x", "y", "z"], ["a"] * 4)
    assert summary.num_launches == 4
    assert summary.mape == metrics.mape(PREDICTED, MEASURED)
    assert summary.median_ape == metrics.median_ape(PREDICTED, MEASURED)
    assert summary.p90_ape == metrics.p90_ape(PREDICTED, MEASURED)
    assert (summary.worst_ape, summary.worst_name) == (0.5, "x")
    # Ranks 2 1 3 4 against 1 2 3 4: 1 - 6 x 2 / (4 x 15) = 0.8.
    assert summary.rank_correlation == pytest.approx(0.8, rel=1e-12)
    assert (summary.num_ranked_groups, summary.share_near) == (1, 0.75)


@pytest.mark.parametrize(
    ("predicted", "measured", "message"),
    [
        ([1.0], [1.0, 2.0], "shapes must be equal"),
        ([], [], "empty set"),
        ([1.0], [0.0], "positive and finite"),
        ([1.0], [math.nan], "positive and finite"),
        ([math.inf], [1.0], "finite and 0 or more"),
        ([-1.0], [1.0], "finite and 0 or more"),
    ],
)
def test_times_out_of_range_are_refused(predicted, measured, message):
    with pytest.raises(ModelError, match=message):
        metrics.mape(predicted, measured)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ModelError, match="do not belong together"):
        metrics.summarise([1.0], [1.0], ["a", "b"], ["c"])
    with pytest.raises(ModelError, match="cannot rank"):
        metrics.rank_correlation([1.0], [1.0], ["a", "b"])


def test_importing_metrics_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys, perfvec.metrics; sys.exit('torch' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_errors_keep_the_shape():
    assert metrics.absolute_percentage_errors(np.ones((2, 3)), np.full((2, 3), 2.0)).tolist() == [[0.5] * 3] * 2


def test_rank_correlation_of_many_groups_is_scipys():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    groups = rng.integers(0, 60, 400)
    predicted, measured = (rng.integers(0, 5, 400).astype(float) for _ in range(2))  # many ties
    expected = []
    for group in np.unique(groups):
        t, m = predicted[groups == group], measured[groups == group]
        if len(t) >= 3 and np.ptp(m) > 0:
            expected.append(0.0 if np.ptp(t) == 0 else float(np.asarray(spearmanr(t, m))[0]))
    value, count = metrics.rank_correlation(predicted, measured, [str(group) for group in groups])
    assert count == len(expected) > 50
    assert value == pytest.approx(np.mean(expected), rel=1e-9)
