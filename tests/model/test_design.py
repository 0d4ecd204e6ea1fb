from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.covariance import Covariance
from perfvec.model.design import Design, few_directions, random_pool
from perfvec.model.posterior import DeviceBelief, Misfit, posterior, shares, table_prior
from tests.model.made_up_devices import measured, random_device
from tests.naive import dense, design_gains

EXACT = Misfit(launch=0.0, kernel=0.0, noise=1e-3)


def test_the_gain_is_what_the_posterior_loses():
    rng, log_vector, programs = random_device(4, count=30)
    misfit = Misfit(launch=0.2, kernel=0.3, noise=0.05)
    root = rng.normal(0, 0.3, (8, 8))
    prior = DeviceBelief(log_mean=log_vector, covariance=Covariance.of(np.zeros(8), root.T))
    kernels = [f"k{row // 3}" for row in range(30)]
    design = Design(prior, programs, programs[10:], misfit, kernels=kernels)
    target_mD, times = shares(programs[10:], log_vector)[0], np.exp(shares(programs, log_vector)[1])
    chosen: list[int] = []
    for _ in range(20):
        gains, before = design.gains(), design.mean_variance
        chosen.append(design.choose())
        assert design.mean_variance == pytest.approx(before - gains[chosen[-1]], rel=1e-5)
        # The times are as predicted, so the posterior stays where the shares were taken.
        rows = measured(programs[chosen], times[chosen], kernels=[kernels[row] for row in chosen])
        left = posterior(prior, rows, misfit).covariance.variance(target_mD).mean()
        assert design.mean_variance == pytest.approx(left, rel=1e-4)  # single precision
    assert len(set(chosen)) == 20


def test_chosen_launches_beat_random_ones():
    _, log_vector, programs = random_device(5, dim=12, count=300)
    prior = DeviceBelief(log_mean=log_vector, covariance=Covariance.of(np.full(12, 0.5)))
    misfit = Misfit(launch=0.1, kernel=0.0, noise=0.02)
    kernels = [str(row) for row in range(300)]
    active = Design(prior, programs, programs, misfit, kernels=kernels)
    for _ in range(6):
        active.choose()
    left = []
    for seed in range(20):
        chance = Design(prior, programs, programs, misfit, kernels=kernels)
        for row in np.random.default_rng(seed).permutation(300)[:6]:
            chance.measure(int(row))
        left.append(chance.mean_variance)
    assert active.mean_variance < min(left)


def test_a_pool_is_random_and_four_times_what_is_chosen():
    pool = random_pool(100, 5, seed=1)
    assert len(pool) == len(set(pool.tolist())) == 20 and pool.max() < 100
    assert pool.tolist() != random_pool(100, 5, seed=2).tolist()
    assert random_pool(7, 5, seed=1).tolist() == list(range(7))


def test_cost_counts():
    prior = DeviceBelief(log_mean=np.zeros(2), covariance=Covariance.of(np.array([1.0, 0.9])))
    costs = np.array([10.0, 1.0])
    arguments = (prior, np.eye(2), np.eye(2), Misfit(launch=0.1, kernel=0.0, noise=0.0))
    assert Design(*arguments, kernels=["a", "b"]).choose() == 0
    assert Design(*arguments, kernels=["a", "b"], costs=costs).choose() == 1


def structured_device(seed, *, dim=150, count=400):
    """A prior with shared directions, and launches of ten kernels' mixtures, of which many are alike."""
    rng = np.random.default_rng(seed)
    log_vector = rng.normal(-23, 1, dim)
    known = np.exp(log_vector + rng.normal(0, 0.5, (3, dim)))
    prior = table_prior(np.exp(log_vector), known, np.tile(np.exp(log_vector), (3, 1)), common=1.0, own=1.4)
    kinds = rng.lognormal(0, 2, (10, dim))
    programs = rng.dirichlet(np.full(10, 0.3), count) @ kinds * rng.lognormal(0, 0.1, (count, dim))
    return prior, programs * np.exp(15 + rng.normal(0, 2, (count, 1)))


def test_what_is_left_out_changes_no_choice():
    # Directions left out and single precision, against dense matrices of double precision.
    prior, programs = structured_device(11)
    misfit = Misfit(launch=0.15, kernel=0.3, noise=0.02)
    kernels = [f"k{row % 90}" for row in range(400)]
    design = Design(prior, programs, programs, misfit, kernels=kernels)
    weights, _ = shares(programs, prior.log_mean)
    chosen: list[int] = []
    for _ in range(25):
        exact = design_gains(dense(prior.covariance), weights, weights, misfit, kernels, chosen)
        exact[chosen] = 0.0
        np.testing.assert_allclose(design.gains(), exact, atol=2e-3 * exact.max())
        chosen.append(design.choose())
        assert exact[chosen[-1]] > (1 - 1e-4) * exact.max()
    left = measured(
        programs[chosen], np.exp(shares(programs[chosen], prior.log_mean)[1]), kernels=[kernels[row] for row in chosen]
    )
    exact_left = posterior(prior, left, misfit).covariance.variance(weights).mean()
    assert design.mean_variance == pytest.approx(exact_left, rel=1e-3)


def test_targets_that_are_alike_are_few_directions():
    prior, programs = structured_device(12)
    weights, _ = shares(programs, prior.log_mean)
    gram = weights.T @ weights / len(weights)
    found = few_directions(weights.astype(np.float32)).astype(np.float64)
    rest = np.linalg.eigvalsh(gram - found.T @ found)
    assert len(found) < 120
    assert np.abs(rest).sum() < 3.1e-4 * np.trace(gram)  # 3e-4 and single precision
    # A single launch is a single direction, as it is.
    one = few_directions(weights[:1].astype(np.float32))
    assert one.shape == (1, 150)
    np.testing.assert_allclose(np.abs(one), weights[:1], rtol=1e-5, atol=1e-9)


def test_one_coordinate_and_one_candidate():
    prior = DeviceBelief(log_mean=np.zeros(1), covariance=Covariance.of(np.array([0.25])))
    design = Design(
        prior, np.array([[2.0]]), np.array([[5.0]]), Misfit(launch=0.5, kernel=0.0, noise=0.0), kernels=["a"]
    )
    assert design.mean_variance == pytest.approx(0.25)
    assert design.gains() == pytest.approx([0.125])
    assert design.choose() == 0 and design.mean_variance == pytest.approx(0.125)


def test_a_device_that_is_known_exactly_gains_nothing():
    prior = DeviceBelief(log_mean=np.zeros(2), covariance=Covariance.of(np.zeros(2)))
    design = Design(prior, np.eye(2), np.eye(2), EXACT, kernels=["a", "b"])
    assert design.mean_variance == 0.0 and design.gains().tolist() == [0.0, 0.0]
    assert {design.choose(), design.choose()} == {0, 1} and design.mean_variance == 0.0


def test_what_does_not_fit_is_refused():
    prior = DeviceBelief(log_mean=np.zeros(2), covariance=Covariance.of(np.ones(2)))
    with pytest.raises(ModelError, match="cost of a candidate"):
        Design(prior, np.eye(2), np.eye(2), EXACT, kernels=["a", "b"], costs=np.zeros(2))
    with pytest.raises(ModelError, match="as many kernels"):
        Design(prior, np.eye(2), np.eye(2), EXACT, kernels=["a"])
    one = Design(prior, np.eye(2)[:1], np.eye(2), EXACT, kernels=["a"])
    one.choose()
    with pytest.raises(ModelError, match="chosen already"):
        one.choose()


def test_many_targets_are_all_judged():
    rng, log_vector, programs = random_device(6, count=40)
    prior = DeviceBelief(log_mean=log_vector, covariance=Covariance.of(np.full(8, 0.5)))
    misfit = Misfit(launch=0.1, kernel=0.0, noise=0.02)
    targets = np.tile(programs, (101, 1)) * rng.lognormal(0, 0.5, (4040, 8))
    design = Design(prior, programs, targets, misfit, kernels=[str(row) for row in range(40)])
    target_mD = shares(targets, log_vector)[0]
    assert design.mean_variance == pytest.approx(prior.covariance.variance(target_mD).mean(), rel=1e-5)
    chosen = [design.choose() for _ in range(3)]
    times = np.exp(shares(programs[chosen], log_vector)[1])  # as predicted, so the mean stays
    rows = measured(programs[chosen], times, kernels=[str(row) for row in chosen])
    left = posterior(prior, rows, misfit).covariance.variance(target_mD).mean()
    assert design.mean_variance == pytest.approx(left, rel=1e-4)
