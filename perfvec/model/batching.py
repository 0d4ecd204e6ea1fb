"""Windows of many launches, padded in buckets of like length so that little of a batch is padding.

Legend: N launch, B window, T instruction of a window, F token feature, V unit, C profile entry, K counted resource.
"""

# ruff: noqa: N815  (fields that are tensors carry their axes)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from perfvec.model.launch_input import LaunchInput
    from perfvec.model.window_sampling import WindowChoice

MAX_BUCKET_TOKENS = 16384
# A window joins a bucket while it fills this share of the bucket's length.
_MIN_FILL = 0.7


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBucket:
    """Padded windows of like length. Zeros stand after a window's end, in features and units alike.

    The last of the V units is the instruction itself: 1 inside a window, times the scale of its launch.
    """

    features_BTF: Tensor
    units_BTV: Tensor
    lengths_B: Tensor
    weight_B: Tensor  # float64
    launch_B: Tensor
    window_B: Tensor  # number of the window in its launch

    def to(self, device: torch.device | str) -> WindowBucket:
        """The same bucket on another device."""
        return WindowBucket(**{name: getattr(self, name).to(device) for name in self.__slots__})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchBatch:
    """Some launches and their windows."""

    buckets: tuple[WindowBucket, ...]
    profile_NC: Tensor
    resources_NK: Tensor  # float64

    def to(self, device: torch.device | str) -> LaunchBatch:
        """The same batch on another device."""
        return LaunchBatch(
            buckets=tuple(bucket.to(device) for bucket in self.buckets),
            profile_NC=self.profile_NC.to(device),
            resources_NK=self.resources_NK.to(device),
        )


def make_batch(
    launches: Sequence[LaunchInput],
    profiles: NDArray[np.float32],
    choices: Sequence[WindowChoice],
    *,
    max_tokens: int = MAX_BUCKET_TOKENS,
) -> LaunchBatch:
    """Pad the chosen windows of some launches in buckets.

    Args:
        launches: N launches of one schema.
        profiles: Their profiles; float32 `(N, C)`.
        choices: The windows to take from each.
        max_tokens: Most tokens of a bucket, padding included; one window is always allowed.
    """
    launch_of = np.repeat(np.arange(len(launches)), [len(choice.windows) for choice in choices])
    window = np.concatenate([choice.windows for choice in choices])
    weight = np.concatenate([choice.weights for choice in choices])
    lengths = np.concatenate(
        [launch.window_lengths[choice.windows] for launch, choice in zip(launches, choices, strict=True)]
    )
    order = np.argsort(-lengths, kind="stable")
    scales = np.stack([choice.unit_scale for choice in choices]).astype(np.float32)
    buckets = [
        _fill_bucket(launches, scales, launch_of[rows], window[rows], weight[rows], lengths[rows])
        for rows in _split(order, lengths, max_tokens)
    ]
    resources = np.stack([launch.resources for launch in launches])
    return LaunchBatch(
        buckets=tuple(buckets),
        profile_NC=torch.from_numpy(np.ascontiguousarray(profiles, dtype=np.float32)),
        resources_NK=torch.from_numpy(resources.astype(np.float64)),
    )


def _split(order: NDArray[np.int64], lengths: NDArray[np.int64], max_tokens: int) -> list[NDArray[np.int64]]:
    """Cut windows, longest first, where one would be too short for its bucket or the bucket is full."""
    groups: list[NDArray[np.int64]] = []
    start = 0
    for stop in range(1, len(order) + 1):
        longest = int(lengths[order[start]])
        is_end = stop == len(order)
        if is_end or lengths[order[stop]] < _MIN_FILL * longest or (stop - start + 1) * longest > max_tokens:
            groups.append(order[start:stop])
            start = stop
    return groups


def _fill_bucket(
    launches: Sequence[LaunchInput],
    scales: NDArray[np.float32],
    launch_of: NDArray[np.int64],
    window: NDArray[np.int64],
    weight: NDArray[np.float64],
    lengths: NDArray[np.int64],
) -> WindowBucket:
    schema = launches[0].schema
    shape = (len(lengths), int(lengths.max()))
    features = np.zeros((*shape, len(schema.feature_names)), dtype=np.float32)
    units = np.zeros((*shape, len(schema.unit_names) + 1), dtype=np.float32)
    for row, (index, number, length) in enumerate(zip(launch_of, window, lengths, strict=True)):
        launch = launches[index]
        start = launch.window_start[number]
        features[row, :length] = launch.token_features[start : start + length]
        units[row, :length, :-1] = launch.token_units[start : start + length]
        units[row, :length, -1] = 1.0
        units[row, :length] *= scales[index]
    return WindowBucket(
        features_BTF=torch.from_numpy(features),
        units_BTV=torch.from_numpy(units),
        lengths_B=torch.from_numpy(lengths),
        weight_B=torch.from_numpy(weight),
        launch_B=torch.from_numpy(launch_of),
        window_B=torch.from_numpy(window),
    )
