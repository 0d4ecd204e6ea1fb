from __future__ import annotations

from dataclasses import replace

import pytest

from perfvec.apply import measuring
from perfvec.apply.measuring import measure_launch
from perfvec.arch.measure import FailedLaunch
from perfvec.errors import KernelNotFoundError, OpenCLError
from tests.arch.test_session import QUICK, increment, live_pocl


def test_one_launch_is_timed():
    time = measure_launch(
        increment(), opencl_device=live_pocl().number, budget_s=0.02, protocol=QUICK, is_isolated=False
    )
    assert time.digest == increment().digest
    assert time.kernel_time_s > 0


def test_a_failure_keeps_its_kind():
    launch = replace(increment(), kernel_name="decrement")
    with pytest.raises(KernelNotFoundError, match="decrement"):
        measure_launch(launch, opencl_device=live_pocl().number, budget_s=0.02, protocol=QUICK, is_isolated=False)
    odd = FailedLaunch(digest="0" * 16, device="x", reason="KeyError: 3")
    assert isinstance(measuring._error(odd), OpenCLError)
    assert "the launch failed on x: KeyError: 3" in str(measuring._error(odd))
