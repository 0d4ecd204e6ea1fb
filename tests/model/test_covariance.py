from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.covariance import Covariance, variances
from tests.naive import dense


def some_covariance(seed, *, dim=12, num_shared=3, num_taken=4):
    rng = np.random.default_rng(seed)
    prior = Covariance.of(rng.uniform(0.1, 1, dim), rng.normal(0, 1, (num_shared, dim)))
    rows = rng.normal(0, 1, (num_taken, dim))
    factor = np.linalg.cholesky(prior.among(rows) + 0.1 * np.eye(num_taken))
    return prior.less(np.linalg.solve(factor, prior.times(rows))), rng.normal(0, 1, (7, dim))


@pytest.mark.parametrize(("num_shared", "num_taken"), [(0, 0), (3, 0), (0, 4), (3, 4), (2, 40)])
def test_products_are_those_of_the_dense_matrix(num_shared, num_taken):
    covariance, rows = some_covariance(0, num_shared=num_shared, num_taken=num_taken)
    full = dense(covariance)
    close = {"rtol": 1e-12, "atol": 1e-12}  # of numbers of about 1
    np.testing.assert_allclose(covariance.times(rows), rows @ full, **close)
    np.testing.assert_allclose(covariance.times(rows[0]), rows[0] @ full, **close)
    np.testing.assert_allclose(covariance.among(rows), rows @ full @ rows.T, **close)
    np.testing.assert_allclose(covariance.variance(rows), np.diag(rows @ full @ rows.T), **close)


def test_variances_of_several_are_those_of_each():
    several = [some_covariance(seed, num_shared=seed % 3, num_taken=3 * (seed % 2))[0] for seed in range(5)]
    rows = some_covariance(9)[1]
    np.testing.assert_allclose(
        variances(several, rows), [covariance.variance(rows) for covariance in several], rtol=1e-12, atol=1e-12
    )
    exact = Covariance.of(np.zeros(12))
    assert variances([exact], rows).tolist() == [[0.0] * 7]


def test_scaled_coordinates_have_the_scaled_matrix():
    covariance, _ = some_covariance(4)
    factor = np.geomspace(1e-3, 1e3, 12)
    np.testing.assert_allclose(
        dense(covariance.scaled(factor)), dense(covariance) * np.outer(factor, factor), rtol=1e-12, atol=1e-12
    )


def test_products_are_in_the_precision_of_the_rows():
    covariance, rows = some_covariance(1)
    single = rows.astype(np.float32)
    for product in (covariance.times, covariance.among, covariance.variance):
        assert product(single).dtype == np.float32 and product(rows).dtype == np.float64
        np.testing.assert_allclose(product(single), product(rows), rtol=1e-4, atol=1e-5)


def test_many_measurements_take_as_many_directions_as_there_are_coordinates():
    few, _ = some_covariance(2, dim=6, num_taken=6)
    rng = np.random.default_rng(3)
    taken = 0.01 * rng.normal(0, 1, (50, 6))
    left = few.less(taken)
    assert len(few.taken) == len(left.taken) == 6
    np.testing.assert_allclose(dense(left), dense(few) - taken.T @ taken, atol=1e-12)


def test_rounding_leaves_no_negative_variance():
    # A sum that is measured exactly: 0.3 ** 2 * 3 - 0.27 is below 0 in double precision, or above by as little.
    covariance = Covariance.of(np.zeros(3), np.full((1, 3), 0.3)).less(np.full((1, 3), np.nextafter(0.3, 1)))
    assert covariance.variance(np.array([[1.0, 2.0, 3.0]])).tolist() == [0.0]
    assert (np.array([1.0, 2.0, 3.0]) @ dense(covariance) @ np.array([1.0, 2.0, 3.0])) < 0


def test_what_is_no_covariance_is_refused():
    with pytest.raises(ModelError, match="do not match"):
        Covariance.of(np.ones(2), np.ones((1, 3)))
    with pytest.raises(ModelError, match="do not match"):
        Covariance.of(np.ones((2, 2)))
    with pytest.raises(ModelError, match="not finite"):
        Covariance.of(np.array([1.0, np.nan]))
    with pytest.raises(ModelError, match="not finite"):
        Covariance.of(np.ones(1), np.array([[np.inf]]))
    with pytest.raises(ModelError, match="a variance is -1"):
        Covariance.of(np.array([-1.0]))
