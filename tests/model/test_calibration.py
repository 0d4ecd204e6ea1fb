import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.calibration import DeviceBelief, posterior, predictive_interval, table_prior
from perfvec.model.devices import DeviceTable
from perfvec.resources import NUM_RESOURCES


def test_one_coordinate_by_hand():
    # Prior 2 ± 1; one launch of 1 unit took 4 s with 25 % noise, so ±1: the mean of both, half the variance.
    belief = posterior(np.array([2.0]), np.array([[1.0]]), np.array([[1.0]]), np.array([4.0]), 0.25)
    assert belief.mean[0] == pytest.approx(3.0, rel=1e-12)
    assert belief.covariance[0, 0] == pytest.approx(0.5, rel=1e-12)


def test_agrees_with_the_information_form():
    rng = np.random.default_rng(0)
    size, count, noise = 6, 4, 0.1
    root = rng.normal(size=(size, size))
    mean, covariance = rng.uniform(1, 2, size), root @ root.T + np.eye(size)
    programs, times = rng.uniform(0, 3, (count, size)), rng.uniform(1, 9, count)
    belief = posterior(mean, covariance, programs, times, noise)
    weight = np.diag(1 / (noise * times) ** 2)
    precision = np.linalg.inv(covariance) + programs.T @ weight @ programs
    expected = np.linalg.solve(precision, np.linalg.inv(covariance) @ mean + programs.T @ weight @ times)
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-9)
    np.testing.assert_allclose(belief.covariance, np.linalg.inv(precision), rtol=1e-8, atol=1e-12)


def test_coordinates_fifteen_orders_apart_stay_accurate():
    # The same problem in other units must give the same answer in other units.
    rng = np.random.default_rng(1)
    size = 5
    units = 10.0 ** np.array([0, -6, -12, -3, -15])
    mean, covariance = rng.uniform(1, 2, size), np.diag(rng.uniform(0.1, 1, size))
    programs, times = rng.uniform(0, 3, (3, size)), rng.uniform(1, 9, 3)
    plain = posterior(mean, covariance, programs, times, 0.05)
    scaled = posterior(mean * units, covariance * units[:, None] * units, programs / units, times, 0.05)
    np.testing.assert_allclose(scaled.mean / units, plain.mean, rtol=1e-10)


def test_nothing_measured_changes_nothing():
    belief = posterior(np.ones(2), np.eye(2), np.zeros((0, 2)), np.zeros(0), 0.1)
    assert belief.mean.tolist() == [1.0, 1.0] and belief.covariance.tolist() == np.eye(2).tolist()


def test_one_after_another_is_the_same_as_all_at_once():
    rng = np.random.default_rng(2)
    programs, times = rng.uniform(0, 3, (4, 5)), rng.uniform(1, 9, 4)
    once = posterior(np.ones(5), np.eye(5), programs, times, 0.2)
    belief = DeviceBelief(mean=np.ones(5), covariance=np.eye(5))
    for row in range(4):
        belief = posterior(belief.mean, belief.covariance, programs[row : row + 1], times[row : row + 1], 0.2)
    np.testing.assert_allclose(belief.mean, once.mean, rtol=1e-10)
    np.testing.assert_allclose(belief.covariance, once.covariance, rtol=1e-9, atol=1e-12)


def test_more_measurements_recover_the_device_and_narrow_the_interval():
    rng = np.random.default_rng(3)
    truth = rng.lognormal(-23, 1, 8)
    start = truth * rng.lognormal(0, 0.5, 8)
    programs = rng.lognormal(15, 2, (200, 8))
    times = programs @ truth * (1 + 0.02 * rng.standard_normal(200))
    errors, widths = [], []
    for count in (0, 3, 30):
        belief = posterior(start, np.diag((0.7 * start) ** 2), programs[:count], times[:count], 0.02)
        interval = predictive_interval(belief, programs[100:], relative_noise=0.02)
        errors.append(np.mean(np.abs(interval.mean / times[100:] - 1)))
        widths.append(np.mean((interval.high - interval.low) / times[100:]))
    assert errors[0] > errors[1] > errors[2] and widths[0] > widths[1] > widths[2]
    assert errors[2] < 0.04  # twice the noise
    inside = np.mean((interval.low <= times[100:]) & (times[100:] <= interval.high))
    assert 0.8 <= inside <= 1.0  # 0.9 ± 3 deviations of 100 launches


def test_interval_by_hand():
    belief = DeviceBelief(mean=np.array([2.0]), covariance=np.array([[0.16]]))
    # Mean 4; deviation sqrt(4 x 0.16 + (0.15 x 4)^2) = 1; 68.27 % lie within one deviation.
    interval = predictive_interval(belief, np.array([[2.0]]), relative_noise=0.15, probability=0.682689492)
    assert interval.low[0] == pytest.approx(3.0, rel=1e-8) and interval.high[0] == pytest.approx(5.0, rel=1e-8)


def test_no_time_is_negative():
    belief = DeviceBelief(mean=np.array([1.0]), covariance=np.array([[100.0]]))
    assert predictive_interval(belief, np.array([[1.0]]), relative_noise=0.1).low[0] == 0.0


def table_of(vectors):
    count = len(vectors)
    return DeviceTable(
        names=tuple(map(str, range(count))),
        kinds=("real",) * count,
        vectors=vectors,
        seconds_per_unit=np.ones((count, NUM_RESOURCES)),
    )


def test_prior_follows_the_known_devices():
    # Four devices, each twice its start in the first coordinate and as its start in the second.
    starts = np.ones((4, 2))
    belief = table_prior(np.array([3.0, 5.0]), table_of(starts * [2.0, 1.0]), starts)
    # Four devices against a default that counts as four: half the log shift, so a factor of sqrt(2).
    np.testing.assert_allclose(belief.mean, [3 * np.sqrt(2), 5.0], rtol=1e-12)
    # Variance in log: half the default 0.49; in the first, also the spread of 4 + 4 devices around half the shift.
    shift = np.log(2) / 2
    log_variance = np.array([0.5 * (shift**2 + 0.49 + shift**2), 0.5 * 0.49])
    np.testing.assert_allclose(np.diag(belief.covariance), belief.mean**2 * np.expm1(log_variance), rtol=1e-12)


def test_coordinates_that_depart_together_are_believed_to_depart_together():
    factors = np.array([0.5, 1.0, 2.0])[:, None] * np.ones(2)
    belief = table_prior(np.ones(2), table_of(factors), np.ones((3, 2)))
    assert belief.covariance[0, 1] > 0
    learned = posterior(belief.mean, belief.covariance, np.array([[1.0, 0.0]]), np.array([2.0]), 0.05)
    assert learned.mean[1] > belief.mean[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"times": np.array([0.0])}, "positive and finite"),
        ({"relative_noise": 0.0}, "above 0"),
        ({"programs": np.ones((2, 2))}, "do not match"),
        ({"prior_cov": np.eye(3)}, "do not match"),
        ({"prior_mean": np.array([np.nan, 1.0])}, "not finite"),
    ],
)
def test_impossible_measurements_are_refused(changes, message):
    values = {
        "prior_mean": np.ones(2),
        "prior_cov": np.eye(2),
        "programs": np.ones((1, 2)),
        "times": np.ones(1),
        "relative_noise": 0.1,
    }
    with pytest.raises(ModelError, match=message):
        posterior(**(values | changes))


def test_impossible_priors_and_intervals_are_refused():
    with pytest.raises(ModelError, match="do not match"):
        table_prior(np.ones(3), table_of(np.ones((2, 2))), np.ones((2, 2)))
    with pytest.raises(ModelError, match="positive vectors"):
        table_prior(np.zeros(2), table_of(np.ones((2, 2))), np.ones((2, 2)))
    belief = DeviceBelief(mean=np.ones(2), covariance=np.eye(2))
    with pytest.raises(ModelError, match="do not match a device vector of 2"):
        predictive_interval(belief, np.ones((1, 3)), relative_noise=0.1)
    with pytest.raises(ModelError, match="between 0 and 1"):
        predictive_interval(belief, np.ones((1, 2)), relative_noise=0.1, probability=1.0)
