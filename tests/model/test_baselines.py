import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.baselines import (
    BaselineInput,
    ConstantBaseline,
    CountedBaseline,
    RowColumnBaseline,
    TreeBaseline,
    baseline_input,
)
from tests.model.synthetic_launches import make_training_set

BASELINES = {
    "geometric": ConstantBaseline,
    "median": lambda: ConstantBaseline("median"),
    "row and column": RowColumnBaseline,
    "counted": CountedBaseline,
    "forest": TreeBaseline,
    "boosting": lambda: TreeBaseline("boosting"),
}


def rows(kernels, resources=None):
    count = len(kernels)
    resources = np.ones((count, 2)) if resources is None else resources
    return BaselineInput(features=np.arange(float(count))[:, None], resources=resources, kernels=tuple(kernels))


@pytest.mark.parametrize("name", BASELINES)
def test_contract(name):
    dataset = make_training_set(num_launches=30, num_families=6, num_devices=2)
    times = dataset.times.copy()
    times[3, 0] = np.nan
    launches = baseline_input(dataset.launches, dataset.families)
    first, second = BASELINES[name](), BASELINES[name]()
    for baseline in (first, second):
        baseline.fit(launches, times)
    predicted = first.predict(launches)
    assert predicted.shape == times.shape and np.isfinite(predicted).all() and (predicted > 0).all()
    np.testing.assert_array_equal(predicted, second.predict(launches))
    with pytest.raises(ModelError, match="give a row each"):
        first.fit(launches, times[:3])
    with pytest.raises(ModelError, match="no measured time"):
        first.fit(launches, np.full_like(times, np.nan))
    with pytest.raises(ModelError, match="not positive"):
        first.fit(launches, -times)


def test_constants_by_hand():
    times = np.array([[1.0, 2.0], [4.0, np.nan], [16.0, 2.0], [64.0, 2.0]])
    geometric, median = ConstantBaseline(), ConstantBaseline("median")
    geometric.fit(rows("aaaa"), times)
    median.fit(rows("aaab"), times)
    np.testing.assert_allclose(geometric.predict(rows("x")), [[8.0, 2.0]], rtol=1e-12)
    np.testing.assert_allclose(median.predict(rows("x")), [[8.0, 2.0]], rtol=1e-12)  # median of logs, even count


def test_row_and_column_effects_fill_a_hole():
    # Kernel b is 10 times a, device 2 is 3 times device 1.
    times = np.array([[1.0, 3.0], [10.0, np.nan]])
    baseline = RowColumnBaseline()
    baseline.fit(rows("ab"), times)
    np.testing.assert_allclose(baseline.predict(rows("b"))[0], [10.0, 30.0], rtol=1e-6)


def test_row_and_column_falls_to_the_device_for_an_unseen_kernel():
    times = np.array([[1.0, 3.0], [100.0, 300.0]])
    baseline = RowColumnBaseline()
    baseline.fit(rows("ab"), times)
    # The mean kernel effect: geometric mean of 1 and 100.
    np.testing.assert_allclose(baseline.predict(rows("z"))[0], [10.0, 30.0], rtol=1e-9)


def test_counted_baseline_recovers_seconds_per_unit():
    rng = np.random.default_rng(0)
    resources = rng.lognormal(12, 3, (40, 3))
    seconds = np.array([[2e-9, 0.0, 5e-12], [1e-10, 3e-9, 0.0]])
    baseline = CountedBaseline()
    baseline.fit(rows(["k"] * 40, resources), resources @ seconds.T)
    fresh = rng.lognormal(12, 3, (10, 3))
    np.testing.assert_allclose(baseline.predict(rows(["k"] * 10, fresh)), fresh @ seconds.T, rtol=1e-9)


def test_trees_fit_a_step():
    times = np.where(np.arange(60) < 30, 1e-6, 1e-3)[:, None]
    for kind in ("forest", "boosting"):
        baseline = TreeBaseline(kind)
        baseline.fit(rows(["k"] * 60), times)
        # A forest's trees disagree on where the step is, so not beside it; boosting stops a little short of it.
        away = np.r_[0:26, 34:60]
        np.testing.assert_allclose(np.log(baseline.predict(rows(["k"] * 60)))[away], np.log(times)[away], atol=0.7)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ModelError, match="do not belong together"):
        BaselineInput(features=np.ones((2, 1)), resources=np.ones((1, 1)), kernels=("a",))
