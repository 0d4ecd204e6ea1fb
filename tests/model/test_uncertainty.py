from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.covariance import Covariance
from perfvec.model.posterior import DeviceBelief, Measurements, Misfit, shares, table_prior
from perfvec.model.uncertainty import Footing, PriorSpread, TypeMisfit, Uncertainty, assumed_uncertainty, fit_spread

GPU = Footing(group="calibrated", type="gpu")


def test_the_spread_of_devices_and_programs_is_found():
    rng = np.random.default_rng(0)
    dim, count = 6, 80
    priors, measured = [], []
    for _ in range(12):
        start = rng.lognormal(-20, 1, dim)
        device = np.log(start) + 0.8 * rng.normal() + 0.1 * rng.normal(size=dim)
        programs = rng.lognormal(0, 1, (count, dim))
        kernels = tuple(str(row // 4) for row in range(count))
        misfit = 0.4 * np.repeat(rng.normal(size=count // 4), 4) + 0.15 * rng.normal(size=count)
        measured.append(
            Measurements(
                programs=programs,
                times=np.exp(shares(programs, device)[1] + misfit),
                deviation=np.zeros(count),
                kernels=kernels,
            )
        )
        priors.append(
            lambda spread, start=start: table_prior(
                start, np.zeros((0, dim)), np.zeros((0, dim)), common=spread.common, own=spread.own
            )
        )
    spread, misfit = fit_spread(priors, measured, ["gpu"] * 12)
    assert spread.common == pytest.approx(0.8, rel=0.4)  # of 12 devices: one deviation is 20 %
    assert spread.own < 0.3
    assert misfit["gpu"].kernel == pytest.approx(0.4, rel=0.2)
    assert misfit["gpu"].launch == pytest.approx(0.15, rel=0.2)


def some_uncertainty():
    misfit = TypeMisfit(known=Misfit(launch=0.3, kernel=0.0, noise=0.0), new=Misfit(launch=0.3, kernel=0.4, noise=0.0))
    scores = np.linspace(-2, 2, 199)  # 80 %: -1.6 to 1.6
    return Uncertainty(spread=PriorSpread(common=0.1, own=0.1), misfit={"gpu": misfit}, scores={GPU: scores})


def test_interval_by_hand():
    belief = DeviceBelief(log_mean=np.log([2.0]), covariance=Covariance.of(np.array([0.75])))
    interval = some_uncertainty().interval(belief, np.array([[3.0]]), GPU, 0.8)
    deviation = np.sqrt(0.75 + 0.09 + 0.16)  # 1
    assert interval.time_s[0] == pytest.approx(6.0)
    assert interval.low_s[0] == pytest.approx(6 * np.exp(-1.6 * deviation), rel=0.02)
    assert interval.high_s[0] == pytest.approx(6 * np.exp(1.6 * deviation), rel=0.02)


def test_the_time_is_in_its_interval_even_where_all_scores_are_on_one_side():
    belief = DeviceBelief(log_mean=np.log([2.0]), covariance=Covariance.of(np.zeros(1)))
    misfit = TypeMisfit(known=Misfit(launch=0.3, kernel=0, noise=0), new=Misfit(launch=0.3, kernel=0, noise=0))
    known = Uncertainty(
        spread=PriorSpread(common=0.1, own=0.1), misfit={"gpu": misfit}, scores={GPU: np.linspace(1, 2, 50)}
    )
    interval = known.interval(belief, np.ones((1, 1)), GPU, 0.8)
    assert interval.low_s[0] == interval.time_s[0] < interval.high_s[0]


def test_a_footing_without_scores_goes_by_the_nearest():
    known = some_uncertainty()
    assert known.scores_of(Footing(group="nvidia-h200", type="gpu")) is not None
    assert len(known.scores_of(Footing(group="datasheet", type="cpu"))) == 199
    assert known.misfit_of("cpu") == known.misfit_of("gpu")


def test_expected_error_grows_with_the_variance():
    known = some_uncertainty()
    assert known.expected_error(0.0, GPU) == pytest.approx(np.expm1(np.median(np.abs(np.linspace(-2, 2, 199))) * 0.5))
    assert known.expected_error(1.0, GPU) > known.expected_error(0.1, GPU) > known.expected_error(0.0, GPU)


def test_assumed_scores_are_normal():
    known = assumed_uncertainty()
    belief = DeviceBelief(log_mean=np.zeros(1), covariance=Covariance.of(np.zeros(1)))
    interval = known.interval(belief, np.ones((1, 1)), GPU, 0.8)
    deviation = np.sqrt(known.misfit_of("gpu").new.variance)
    ends = np.log([interval.low_s[0], interval.high_s[0]]) / deviation
    assert ends.tolist() == pytest.approx([-1.2816, 1.2816], abs=0.03)  # the normal distribution's 10 % and 90 %


def test_impossible_ones_are_refused():
    with pytest.raises(ModelError, match="0 or more"):
        PriorSpread(common=-1.0, own=0.1)
    with pytest.raises(ModelError, match="one device or more"):
        fit_spread([], [], [])
    with pytest.raises(ModelError, match="scores of one footing"):
        Uncertainty(spread=PriorSpread(common=0.1, own=0.1), misfit=some_uncertainty().misfit, scores={})
