from __future__ import annotations

import numpy as np
import pytest

from perfvec.arch.timing import MECHANISMS, simulate
from perfvec.trace_data import Trace
from tests.arch.timing.devices import LARGE, large
from tests.arch.timing.kernels import traced


@pytest.fixture(scope="module", params=["copy", "product", "histogram", "divergent", "tree"])
def some_trace(request) -> Trace:
    return traced(request.param)


DEVICES = (
    LARGE,
    large(sub_group_size=8, max_sub_groups=128),
    large(sub_group_size=16, sector_bytes=64),
    large(sub_group_size=64, line_bytes=64, scheduler_policy="round-robin"),
    large(l1_write_policy="back", l2_write_policy="through", start="cold", l1_bytes=0),
)


def test_increments_and_causes_add_up_to_the_time(some_trace):
    result = simulate(some_trace, DEVICES, by_token=True)
    assert np.all(result.kernel_time_s > LARGE.launch_overhead_s)
    assert np.all(result.static_time_s >= 0)
    assert np.all(result.breakdown_s >= -1e-18)
    assert np.array_equal(result.static_time_s.sum(axis=1), result.kernel_time_s)
    for total in (
        result.breakdown_s.sum(axis=1),
        result.line_time_s.sum(axis=1),
        result.token_time_s @ some_trace.token_weight + result.static_time_s[:, -1],
    ):
        assert total == pytest.approx(result.kernel_time_s, rel=1e-12)  # sums in another order
    assert result.cycles == pytest.approx(result.kernel_time_s * 2e9)


def test_a_configuration_gets_the_same_time_alone_and_among_others(some_trace):
    together = simulate(some_trace, DEVICES * 20)
    for column, device in enumerate(DEVICES):
        alone = simulate(some_trace, [device])
        assert together.kernel_time_s[column :: len(DEVICES)] == pytest.approx(alone.kernel_time_s[0], rel=1e-12)
        assert together.static_time_s[column] == pytest.approx(alone.static_time_s[0], rel=1e-9, abs=1e-18)


def test_what_is_switched_off_costs_nothing_and_caches_save_nothing(some_trace):
    base = simulate(some_trace, DEVICES).kernel_time_s
    for mechanism in MECHANISMS:
        time = simulate(some_trace, DEVICES, without=[mechanism]).kernel_time_s
        if mechanism in ("l1_hits", "l2_hits"):
            assert np.all(time >= base * (1 - 1e-12)), mechanism
        else:
            assert np.all(time <= base * (1 + 1e-12)), mechanism


def test_without_everything_that_costs_no_time_is_left(some_trace):
    result = simulate(some_trace, [LARGE], without=set(MECHANISMS) - {"l1_hits", "l2_hits"})
    assert result.kernel_time_s[0] == pytest.approx(0.0, abs=1e-12)
