from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.encoding import feature_schema, launch_input
from perfvec.apply.tracing import trace
from perfvec.arguments import parse_argument
from perfvec.errors import FormatError
from perfvec.launch import Launch
from tests.apply.tiny import suites


def test_a_trace_becomes_what_the_model_sees(tmp_path: Path):
    entry = suites(tmp_path)[0]
    traced = trace(entry.launch)
    seen = launch_input(traced)
    assert seen.schema == feature_schema()
    assert seen.name == f"kernel {entry.kernel!r}"
    assert seen.num_tokens == traced.num_tokens
    assert seen.resources[0] == 1  # one launch


def test_a_trace_of_another_pipeline_is_refused(tmp_path: Path):
    traced = replace(trace(suites(tmp_path)[0].launch), pipeline_version=99)
    with pytest.raises(FormatError, match="pass pipeline 99; this release has pipeline"):
        launch_input(traced)


# Work-items of a sub-group loop for different times and read from random places: hardly two windows are equal.
IRREGULAR = """
__kernel void wander(__global const int *next, __global const int *rounds, __global int *out) {
  int i = get_global_id(0), place = i;
  for (int r = 0; r < rounds[i]; ++r) place = next[place] + (r & 1);
  out[i] = place;
}
"""


def irregular_trace():
    args = ("buffer:int32:4098:indices(4096)", "buffer:int32:4096:uniform(1,60)", "buffer:int32:4096")
    return trace(
        Launch(
            source=IRREGULAR,
            kernel_name="wander",
            args=tuple(parse_argument(text, position=i) for i, text in enumerate(args)),
            global_size=(4096,),
            local_size=(64,),
        )
    )


def test_few_windows_are_all_kept():
    traced = irregular_trace()
    assert launch_input(traced, most_windows=None).num_tokens == traced.num_tokens
    assert launch_input(traced, most_windows=traced.num_windows).num_tokens == traced.num_tokens


def test_a_sample_of_the_windows_stands_for_all():
    traced = irregular_trace()
    assert traced.num_windows > 500
    whole, kept = launch_input(traced, most_windows=None), launch_input(traced, most_windows=100)
    assert kept.num_windows == 100
    # Instructions and units add up to those of all windows; float32 units, hence 1e-6.
    assert kept.token_weight.sum() == pytest.approx(whole.token_weight.sum(), rel=1e-12)
    assert kept.token_weight @ kept.token_units == pytest.approx(whole.token_weight @ whole.token_units, rel=1e-6)
    # What is left to chance is how features differ between windows.
    mean = [launch.token_weight @ launch.token_features / launch.token_weight.sum() for launch in (kept, whole)]
    assert mean[0] == pytest.approx(mean[1], abs=0.03)
    assert np.array_equal(kept.resources, whole.resources)
    again = launch_input(traced, most_windows=100)
    assert np.array_equal(again.window_weight, kept.window_weight)
    assert np.array_equal(again.token_features, kept.token_features)
