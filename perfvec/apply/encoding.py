"""From a trace to what the model sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.errors import FormatError
from perfvec.model.launch_input import FeatureSchema, LaunchInput
from perfvec.resources import RESOURCES_VERSION

if TYPE_CHECKING:
    from perfvec.arch.timing import Workload
    from perfvec.trace_data import Trace

# Distinct windows of a launch that the model sees. A quarter of the suites' launches have more, irregular ones tens of
# thousands; of those the heaviest and a weighted sample of the others stand for all.
MOST_WINDOWS = 128


def feature_schema() -> FeatureSchema:
    """The columns of the features that this release makes."""
    from perfvec.program.counts import TOKEN_UNITS
    from perfvec.program.features import CONTEXT_NAMES, FEATURE_NAMES, FEATURES_VERSION

    return FeatureSchema(
        features_version=FEATURES_VERSION,
        feature_names=FEATURE_NAMES,
        unit_names=TOKEN_UNITS,
        context_names=CONTEXT_NAMES,
        resources_version=RESOURCES_VERSION,
    )


def launch_input(trace: Trace | Workload, *, name: str = "", most_windows: int | None = MOST_WINDOWS) -> LaunchInput:
    """What the model sees of a traced launch.

    Args:
        trace: The trace, or what the timing model read of it.
        name: What to call the launch in messages; its kernel's name where it is "".
        most_windows: Windows to keep; None for all.

    Raises:
        FormatError: The trace was made with another pass pipeline.
        ModelError: The trace is empty.
    """
    from perfvec.arch.archetypes import archetype_times
    from perfvec.arch.timing import Workload, read_workload
    from perfvec.model.window_sampling import WindowSampler
    from perfvec.program.counts import count_window_units, unit_tables
    from perfvec.program.features import make_features
    from perfvec.program.frontend import PIPELINE_VERSION

    workload = trace if isinstance(trace, Workload) else read_workload(trace)
    trace = workload.trace
    name = name or f"kernel {trace.launch.kernel_name!r}"
    if trace.pipeline_version != PIPELINE_VERSION:
        raise FormatError(
            f"the trace of {name} was made with pass pipeline {trace.pipeline_version}; this release has pipeline "
            f"{PIPELINE_VERSION}, and its models expect the instructions of that one. Trace the launch again."
        )
    # The heaviest windows stay as they are; of the lighter ones a sample stays, the same one each time, with weights
    # that make up for the others, so that units and instructions still add up to those of all windows.
    tables = unit_tables(trace)
    window_units = count_window_units(trace, tables)
    units = np.column_stack([window_units, np.diff(trace.window_start)])
    most = trace.num_windows if most_windows is None else most_windows
    sampler = WindowSampler(tables.window_weight, units, np.array([0, trace.num_windows]), most)
    choice = sampler.draw(np.array([0]), np.random.default_rng(0))
    features = make_features(trace, choice.windows, tables=tables, window_units=window_units)
    # The last unit is the instruction itself, which has no column: its factor goes into the weights.
    *unit_scale, instruction_scale = choice.unit_scale[0]
    return LaunchInput.from_tokens(
        schema=feature_schema(),
        token_features=features.token_features,
        token_units=(features.token_units * (np.array(unit_scale) / instruction_scale)).astype(np.float32),
        window_start=features.window_start,
        window_weight=choice.weights * instruction_scale,
        context=features.context,
        resources=np.concatenate([features.resources, archetype_times(workload)]),
        name=name,
    )
