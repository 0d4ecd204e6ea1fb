from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.encoding import feature_schema, keep_windows, launch_input
from perfvec.apply.tracing import trace
from perfvec.errors import FormatError
from perfvec.model.launch_input import LaunchInput
from perfvec.resources import NUM_RESOURCES
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


def windows_of(lengths: list[int], weights: list[float]) -> LaunchInput:
    """A launch whose tokens have their number as every feature."""
    schema = feature_schema()
    start = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.arange(start[-1], dtype=np.float32)[:, None]
    return LaunchInput(
        schema=schema,
        token_features=np.repeat(tokens, len(schema.feature_names), axis=1),
        token_units=np.repeat(tokens, len(schema.unit_names), axis=1),
        window_start=start,
        window_weight=np.array(weights),
        context=np.zeros(len(schema.context_names), np.float32),
        resources=np.ones(NUM_RESOURCES),
    )


def test_few_windows_are_all_kept():
    launch = windows_of([3, 4], [1.0, 2.0])
    assert keep_windows(launch, 2) is launch


def test_the_heaviest_windows_are_kept_as_they_are_and_the_others_stand_for_all():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 9, 200)
    weights = np.append(rng.uniform(0.5, 1.5, 199), 1e6)
    launch = windows_of(lengths.tolist(), weights.tolist())
    kept = keep_windows(launch, 50)
    assert kept.num_windows == 50
    assert kept.window_weight[-1] == pytest.approx(1e6, rel=1e-3)  # but for the factor that makes the sums exact
    last = int(lengths[-1])
    assert kept.token_features[-last:, 0].tolist() == launch.token_features[-last:, 0].tolist()
    # Instructions and units add up to those of all windows; float32 units, hence 1e-6.
    assert kept.token_weight.sum() == pytest.approx(launch.token_weight.sum(), rel=1e-12)
    assert kept.token_weight @ kept.token_units == pytest.approx(launch.token_weight @ launch.token_units, rel=1e-6)
    # Light windows are drawn in proportion to the instructions they stand for: these add up to about all of them.
    assert kept.token_weight[:-last].sum() == pytest.approx(launch.token_weight[:-last].sum(), rel=0.2)
    assert kept.resources is launch.resources
    # Tokens of a window stay together, in order.
    for start, stop in zip(kept.window_start[:-1], kept.window_start[1:], strict=True):
        assert np.diff(kept.token_features[start:stop, 0]).tolist() == [1.0] * (stop - start - 1)
    again = keep_windows(launch, 50)
    assert np.array_equal(again.window_weight, kept.window_weight)
