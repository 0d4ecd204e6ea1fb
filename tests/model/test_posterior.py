from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.covariance import Covariance
from perfvec.model.posterior import (
    DeviceBelief,
    Misfit,
    corrected_program,
    device_variances,
    log_evidence,
    log_times,
    noise_covariance,
    posterior,
    predictive,
    shares,
    single_shares,
    table_prior,
)
from tests.model.made_up_devices import measured, random_device
from tests.naive import dense, dense_posterior

EXACT = Misfit(launch=0.0, kernel=0.0, noise=1e-3)


def test_shares_by_hand():
    shares_nD, log_time_n = shares(np.array([[1.0, 3.0], [0.0, 5.0]]), np.log([2.0, 4.0]))
    np.testing.assert_allclose(shares_nD, [[2 / 14, 12 / 14], [0, 1]])
    np.testing.assert_allclose(np.exp(log_time_n), [14.0, 20.0])


def test_times_and_single_shares_are_those_of_shares():
    _, log_vector, programs = random_device(6)
    shares_nD, log_time_n = shares(programs, log_vector)
    np.testing.assert_allclose(log_times(programs, log_vector), log_time_n, rtol=1e-14)
    single_nD = single_shares(programs, log_vector)
    assert single_nD.dtype == np.float32
    np.testing.assert_allclose(single_nD, shares_nD, rtol=3e-7, atol=1e-30)  # two roundings


def test_shares_are_the_derivative_of_the_log_time():
    _, log_vector, programs = random_device(0, dim=5, count=20)
    shares_nD, log_time_n = shares(programs, log_vector)
    for coordinate in range(5):
        moved = log_vector + 1e-6 * np.eye(5)[coordinate]
        slope_n = (shares(programs, moved)[1] - log_time_n) / 1e-6
        np.testing.assert_allclose(slope_n, shares_nD[:, coordinate], atol=1e-5)


def test_one_coordinate_by_hand():
    # In log the model is linear here: prior N(0, 0.5²), one time e^1 with deviation 0.5: half way, half the variance.
    prior = DeviceBelief(log_mean=np.array([0.0]), covariance=Covariance.of(np.array([0.25])))
    belief = posterior(prior, measured([[1.0]], [np.e]), Misfit(launch=0.3, kernel=0.0, noise=0.4))
    np.testing.assert_allclose(belief.log_mean, [0.5], rtol=1e-6)
    np.testing.assert_allclose(dense(belief.covariance), [[0.125]], rtol=1e-6)


def test_the_spread_of_a_time_is_part_of_its_noise():
    prior = DeviceBelief(log_mean=np.array([0.0]), covariance=Covariance.of(np.array([0.25])))
    belief = posterior(prior, measured([[1.0]], [np.e], deviation=0.4), Misfit(launch=0.3, kernel=0.0, noise=0.0))
    np.testing.assert_allclose(belief.log_mean, [0.5], rtol=1e-6)


def test_the_mean_is_the_maximum_a_posteriori():
    rng, log_vector, programs = random_device(1, dim=4, count=12)
    prior = DeviceBelief(log_mean=log_vector, covariance=Covariance.of(np.full(4, 0.4), np.full((1, 4), 0.3**0.5)))
    data = measured(programs, np.exp(shares(programs, log_vector)[1] + rng.normal(0.6, 0.4, 12)), deviation=0.05)
    belief = posterior(prior, data, Misfit(launch=0.2, kernel=0.0, noise=0.0))

    def loss(vector):
        left = np.log(data.times) - shares(programs, vector)[1]
        off = vector - prior.log_mean
        return left @ left / (0.2**2 + 0.05**2) + off @ np.linalg.solve(dense(prior.covariance), off)

    best = loss(belief.log_mean)
    for step in (1e-3, 1e-2):
        for coordinate in range(4):
            for sign in (-1, 1):
                assert loss(belief.log_mean + sign * step * np.eye(4)[coordinate]) > best


@pytest.mark.parametrize("count", [1, 5, 40])
def test_a_posterior_is_that_of_dense_matrices(count):
    rng, log_vector, programs = random_device(7, dim=30, count=2 * count)
    known = np.exp(log_vector + rng.normal(0, 0.4, (3, 30)))
    prior = table_prior(np.exp(log_vector), known, np.tile(np.exp(log_vector), (3, 1)), common=0.9, own=0.5)
    misfit = Misfit(launch=0.2, kernel=0.3, noise=0.02)
    times = np.exp(log_times(programs, log_vector) + rng.normal(0.5, 0.3, 2 * count))
    kernels = [f"k{row // 3}" for row in range(2 * count)]
    data = measured(programs[:count], times[:count], deviation=0.05, kernels=kernels[:count])
    belief = posterior(prior, data, misfit)
    # The mean stands still to a thousandth of a logarithm; the covariance is taken at a mean that is as near.
    mean, _ = dense_posterior(prior.log_mean, dense(prior.covariance), data, misfit)
    np.testing.assert_allclose(belief.log_mean, mean, atol=1e-3)
    # From one mean, the same to rounding.
    weights, _ = shares(data.programs, belief.log_mean)
    full = dense(prior.covariance)
    gain = full @ weights.T @ np.linalg.inv(weights @ full @ weights.T + noise_covariance(data, misfit))
    by_formula = full - gain @ weights @ full
    np.testing.assert_allclose(dense(belief.covariance), by_formula, atol=1e-11 * full.max())
    asked, log_time = shares(programs[count:], belief.log_mean)
    told = predictive(belief, programs[count:], misfit)
    np.testing.assert_allclose(told.log_time, log_time, rtol=1e-12)
    np.testing.assert_allclose(
        np.square(told.device_deviation), np.einsum("nd,de,ne->n", asked, by_formula, asked), rtol=1e-9
    )
    of_both = device_variances([prior, belief], programs[count:])
    np.testing.assert_allclose(of_both[1], np.square(told.device_deviation), rtol=1e-9)
    np.testing.assert_allclose(of_both[0], np.square(predictive(prior, programs[count:], misfit).device_deviation))
    # Measured again: what is left of D directions is taken from what the first left.
    more = measured(programs[count:], times[count:], kernels=kernels[count:])
    again = posterior(belief, more, misfit)
    weights, _ = shares(more.programs, again.log_mean)
    gain = by_formula @ weights.T @ np.linalg.inv(weights @ by_formula @ weights.T + noise_covariance(more, misfit))
    np.testing.assert_allclose(
        dense(again.covariance), by_formula - gain @ weights @ by_formula, atol=1e-11 * full.max()
    )
    assert len(again.covariance.taken) <= 30


def test_more_measurements_recover_the_device_and_narrow_the_interval():
    rng, log_vector, programs = random_device(2)
    times = np.exp(shares(programs, log_vector)[1] + 0.02 * rng.standard_normal(200))
    prior = DeviceBelief(log_mean=log_vector + rng.normal(0, 0.7, 8), covariance=Covariance.of(np.full(8, 0.5)))
    misfit = Misfit(launch=0.0, kernel=0.0, noise=0.02)
    errors, widths = [], []
    for count in (0, 3, 30):
        belief = posterior(prior, measured(programs[:count], times[:count]), misfit)
        told = predictive(belief, programs[100:], misfit)
        errors.append(np.mean(np.abs(told.log_time - np.log(times[100:]))))
        widths.append(np.mean(told.deviation))
    assert errors[0] > errors[1] > errors[2] and widths[0] > widths[1] > widths[2]
    assert errors[2] < 0.04  # twice the noise
    score = (np.log(times[100:]) - told.log_time) / told.deviation
    assert 0.8 < score.std() < 1.2  # 100 launches: 1 ± 3 / sqrt(200)


def test_vectors_stay_positive_whatever_was_measured():
    prior = DeviceBelief(log_mean=np.zeros(3), covariance=Covariance.of(np.ones(3)))
    belief = posterior(prior, measured(np.eye(3), [1e-6, 1e6, 1.0]), Misfit(launch=0.1, kernel=0, noise=0))
    assert (belief.vector > 0).all() and belief.vector[1] > 1e3 > 1e-3 > belief.vector[0]


def test_two_launches_of_a_kernel_say_less_than_launches_of_two_kernels():
    prior = DeviceBelief(log_mean=np.zeros(1), covariance=Covariance.of(np.ones(1)))
    misfit = Misfit(launch=0.1, kernel=0.5, noise=0.0)
    same, different = (
        posterior(prior, measured([[1.0], [1.0]], [2.0, 2.0], kernels=kernels), misfit).covariance.variance(
            np.ones((1, 1))
        )[0]
        for kernels in (("a", "a"), ("a", "b"))
    )
    # Precision of the mean of two: 1 / (0.25 + 0.01 / 2) and 2 / 0.26, beside the prior's 1.
    assert same == pytest.approx(1 / (1 + 1 / 0.255), rel=1e-6)
    assert different == pytest.approx(1 / (1 + 2 / 0.26), rel=1e-6)


def test_no_measurement_leaves_the_belief():
    prior = DeviceBelief(log_mean=np.zeros(2), covariance=Covariance.of(np.ones(2)))
    assert posterior(prior, measured(np.zeros((0, 2)), []), EXACT) is prior


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_no_unit_is_too_large_or_too_small(scale):
    _, log_vector, programs = random_device(8)
    prior = DeviceBelief(log_mean=log_vector, covariance=Covariance.of(np.full(8, 0.5), np.ones((1, 8))))
    misfit = Misfit(launch=0.1, kernel=0.0, noise=0.02)
    there, here = predictive(prior, scale * programs, misfit), predictive(prior, programs, misfit)
    np.testing.assert_allclose(there.deviation, here.deviation, rtol=1e-9)
    np.testing.assert_allclose(there.log_time, here.log_time + np.log(scale), rtol=1e-9)
    np.testing.assert_allclose(
        device_variances([prior], scale * programs)[0], np.square(here.device_deviation), rtol=1e-9
    )
    np.testing.assert_allclose(
        single_shares(scale * programs, log_vector), shares(programs, log_vector)[0], rtol=1e-6, atol=1e-30
    )


def test_a_launch_of_one_coordinate_moves_that_one_alone():
    prior = DeviceBelief(log_mean=np.zeros(3), covariance=Covariance.of(np.array([0.25, 0.25, 0.25])))
    belief = posterior(prior, measured([[0.0, 1.0, 0.0]], [np.e]), Misfit(launch=0.3, kernel=0.0, noise=0.4))
    np.testing.assert_allclose(belief.log_mean, [0.0, 0.5, 0.0], rtol=1e-6)
    np.testing.assert_allclose(np.diag(dense(belief.covariance)), [0.25, 0.125, 0.25], rtol=1e-6)


def test_repeats_that_contradict_each_other_leave_their_mean_and_their_noise():
    prior = DeviceBelief(log_mean=np.zeros(1), covariance=Covariance.of(np.array([100.0])))
    misfit = Misfit(launch=0.3, kernel=0.0, noise=0.4)
    belief = posterior(prior, measured(np.ones((4, 1)), [1e3, 1e-3, 1e3, 1e-3]), misfit)
    np.testing.assert_allclose(belief.log_mean, [0.0], atol=1e-9)
    np.testing.assert_allclose(dense(belief.covariance), [[1 / (1 / 100 + 4 / 0.25)]], rtol=1e-6)


def test_more_measurements_than_coordinates():
    prior = DeviceBelief(log_mean=np.zeros(2), covariance=Covariance.of(np.ones(2)))
    programs = np.tile(np.eye(2), (200, 1))
    belief = posterior(prior, measured(programs, np.full(400, np.e)), Misfit(launch=0.3, kernel=0.0, noise=0.4))
    left = 1 / (1 + 200 / 0.25)
    np.testing.assert_allclose(dense(belief.covariance), left * np.eye(2), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(belief.log_mean, 1 - left, rtol=1e-6)
    assert belief.covariance.taken.shape == (2, 2)


def test_a_new_device_departs_as_the_known_ones_do():
    starts = np.ones((40, 2))
    rng = np.random.default_rng(3)
    departures = rng.normal(0.5, 0.3, (40, 1)) @ np.ones((1, 2))  # both coordinates always together
    belief = table_prior(np.array([2.0, 3.0]), starts * np.exp(departures), starts, common=0.2, own=0.2)
    shift = departures[:, 0].sum() / 44
    np.testing.assert_allclose(belief.log_mean, np.log([2.0, 3.0]) + shift)
    covariance = dense(belief.covariance)
    correlation = covariance[0, 1] / covariance[0, 0]
    assert 0.6 < correlation < 1.0
    by_hand = ((departures[:, 0] - shift) ** 2).sum() / 44 + 4 / 44 * (0.04 + 0.04 + shift**2)
    assert covariance[0, 0] == pytest.approx(by_hand)


def test_without_known_devices_the_prior_is_the_default():
    belief = table_prior(np.ones(2), np.zeros((0, 2)), np.zeros((0, 2)), common=0.3, own=0.4)
    np.testing.assert_allclose(dense(belief.covariance), [[0.25, 0.09], [0.09, 0.25]])


def test_evidence_is_the_density_of_the_times():
    prior = DeviceBelief(log_mean=np.zeros(1), covariance=Covariance.of(np.array([0.25])))
    found = log_evidence(prior, measured([[1.0]], [np.e]), Misfit(launch=0.3, kernel=0.0, noise=0.4))
    assert found == pytest.approx(-0.5 / 0.5 - 0.5 * np.log(2 * np.pi * 0.5))


# ---- the same kernel elsewhere ----------------------------------------------------------------------------------


def test_a_time_elsewhere_corrects_the_program():
    truth, believed = np.array([4.0, 4.0, 0.0]), np.array([2.0, 2.0, 0.0])
    vectors = np.array([[1.0, 0.1, 7.0], [0.1, 1.0, 7.0]])
    corrected = corrected_program(
        believed, np.log(vectors), vectors @ truth, np.array([0.01, 0.01]), common=1.0, own=1.0
    )
    np.testing.assert_allclose(corrected, truth, rtol=0.01)
    one = corrected_program(believed, np.log(vectors[:1]), vectors[:1] @ truth, np.array([0.01]), common=1.0, own=0.1)
    assert one[1] == pytest.approx(4.0, rel=0.03)  # a common factor explains most
    assert one[2] == 0.0


# ---- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [0.0, -1.0, np.nan, np.inf])
def test_impossible_times_are_refused(time):
    with pytest.raises(ModelError, match="positive and finite"):
        measured([[1.0]], [time])


def test_what_does_not_fit_is_refused():
    prior = DeviceBelief(log_mean=np.zeros(2), covariance=Covariance.of(np.ones(2)))
    with pytest.raises(ModelError, match="do not match a device vector of 2"):
        posterior(prior, measured([[1.0]], [1.0]), EXACT)
    with pytest.raises(ModelError, match="not all 0"):
        shares(np.zeros((1, 2)), np.zeros(2))
    with pytest.raises(ModelError, match="do not match"):
        DeviceBelief(log_mean=np.zeros(2), covariance=Covariance.of(np.ones(3)))
    with pytest.raises(ModelError, match="not finite"):
        DeviceBelief(log_mean=np.array([np.nan]), covariance=Covariance.of(np.ones(1)))
    with pytest.raises(ModelError, match="no measurement is exact"):
        Misfit(launch=0.0, kernel=0.1, noise=0.0)
    with pytest.raises(ModelError, match="positive vectors"):
        table_prior(np.zeros(2), np.ones((1, 2)), np.ones((1, 2)), common=0.1, own=0.1)
    with pytest.raises(ModelError, match="do not match"):
        table_prior(np.ones(3), np.ones((1, 2)), np.ones((1, 2)), common=0.1, own=0.1)
    with pytest.raises(ModelError, match="finite and 0 or more"):
        measured([[1.0]], [1.0], deviation=-1.0)
    with pytest.raises(ModelError, match="do not belong together"):
        measured([[1.0]], [1.0], kernels=["a", "b"])
    with pytest.raises(ModelError, match="do not match"):
        corrected_program(np.ones(2), np.zeros((1, 3)), np.ones(1), np.ones(1), common=1.0, own=1.0)
    with pytest.raises(ModelError, match="deviations must be positive"):
        corrected_program(np.ones(2), np.zeros((1, 2)), np.ones(1), np.zeros(1), common=1.0, own=1.0)
    with pytest.raises(ModelError, match="all 0 cannot be corrected"):
        corrected_program(np.zeros(2), np.zeros((1, 2)), np.ones(1), np.ones(1), common=1.0, own=1.0)
