"""From a trace to what the model sees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from perfvec.errors import FormatError
from perfvec.model.launch_input import FeatureSchema, LaunchInput
from perfvec.resources import RESOURCES_VERSION

if TYPE_CHECKING:
    from perfvec.trace_data import Trace

# Distinct windows of a launch that the model sees. Irregular kernels have tens of thousands; 512 of them, the heaviest
# and a weighted sample of the others, give the same program vector to about 0.3 % (docs/decisions.md), and a corpus
# of 3,000 launches then takes 6 GB instead of 33 GB.
MOST_WINDOWS = 512


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


def launch_input(trace: Trace, *, name: str = "", most_windows: int | None = MOST_WINDOWS) -> LaunchInput:
    """What the model sees of a traced launch.

    Args:
        trace: The trace.
        name: What to call the launch in messages; its kernel's name where it is "".
        most_windows: Windows to keep (see `keep_windows`); None for all.

    Raises:
        FormatError: The trace was made with another pass pipeline.
        ModelError: The trace is empty.
    """
    from perfvec.program.features import make_features
    from perfvec.program.frontend import PIPELINE_VERSION

    name = name or f"kernel {trace.launch.kernel_name!r}"
    if trace.pipeline_version != PIPELINE_VERSION:
        raise FormatError(
            f"the trace of {name} was made with pass pipeline {trace.pipeline_version}; this release has pipeline "
            f"{PIPELINE_VERSION}, and its models expect the instructions of that one. Trace the launch again."
        )
    features = make_features(trace)
    whole = LaunchInput(
        schema=feature_schema(),
        token_features=features.token_features,
        token_units=features.token_units,
        window_start=features.window_start,
        window_weight=features.window_weight,
        context=features.context,
        resources=features.resources,
        name=name,
    )
    return whole if most_windows is None else keep_windows(whole, most_windows)


def keep_windows(launch: LaunchInput, most: int) -> LaunchInput:
    """Leave out windows where there are more than `most`, the same ones each time.

    The heaviest stay as they are; of the lighter ones a sample stays, with weights that make up for the others. Units
    and instructions still add up to those of all windows; context and counted resources remain as they are.
    """
    from perfvec.model.batching import sample_windows, window_units

    choice = sample_windows(launch, most, np.random.default_rng(0), units=window_units(launch))
    if len(choice.windows) == launch.num_windows:
        return launch
    lengths = launch.window_lengths[choice.windows]
    start = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.repeat(launch.window_start[choice.windows] - start[:-1], lengths) + np.arange(start[-1])
    # The last unit is the instruction itself, which has no column: its factor goes into the weights.
    *unit_scale, instruction_scale = choice.unit_scale
    return replace(
        launch,
        token_features=launch.token_features[tokens],
        token_units=(launch.token_units[tokens] * (np.array(unit_scale) / instruction_scale)).astype(np.float32),
        window_start=start,
        window_weight=choice.weights * instruction_scale,
    )
