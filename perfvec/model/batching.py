"""Batches of windows: many launches packed in few arrays, from which padded windows of like length are gathered.

Indices are made in NumPy, in steps over all windows of a batch; features and units lie on the device that the network
runs on and are only gathered there. A launch's tokens share rows, so that a hundred thousand launches fit in memory.

Legend: N launch, W window, B window of a batch, T instruction of a window, R row, F token feature, V unit, C profile
entry, K counted resource.
"""

# ruff: noqa: N815  (fields that are tensors carry their axes)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch

from perfvec.model.launch_input import launch_profile
from perfvec.model.window_sampling import WindowChoice, window_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from perfvec.model.launch_input import LaunchInput

# Tokens of a bucket, padding included. A GPU wants large ones, a CPU's caches small ones.
MAX_BUCKET_TOKENS = {"cpu": 2**14, "cuda": 2**18}
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
    window_B: Tensor  # number of the window among those of all packed launches


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchBatch:
    """Some launches and their windows."""

    buckets: tuple[WindowBucket, ...]
    profile_NC: Tensor
    resources_NK: Tensor  # float64


@final
class PackedLaunches:
    """Launches in few arrays.

    Attributes:
        window_start: First token of each window among all tokens, and the end; `(W + 1,)`.
        window_weight: `(W,)`.
        launch_window: First window of each launch among all windows, and the end; `(N + 1,)`.
        window_units: Units of one execution of each window, the instruction last; float64 `(W, V)`.
    """

    def __init__(
        self,
        launches: Sequence[LaunchInput],
        *,
        profiles: NDArray[np.float32] | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        """Pack launches of one schema.

        Args:
            launches: N launches.
            profiles: What the gates see of each, `(N, C)`; `launch_profile` of each unless given.
            device: Where features and units are to lie.
        """
        rows = np.cumsum([0, *(len(launch.row_features) for launch in launches)])
        tokens = np.cumsum([0, *(launch.num_tokens for launch in launches)])
        self.launch_window = np.cumsum([0, *(launch.num_windows for launch in launches)])
        self.window_start = np.concatenate(
            [
                *(launch.window_start[:-1] + start for launch, start in zip(launches, tokens[:-1], strict=True)),
                tokens[-1:],
            ]
        )
        self.window_weight = np.concatenate([launch.window_weight for launch in launches])
        self.window_units = np.concatenate([window_units(launch) for launch in launches])
        profiles = np.stack([launch_profile(launch) for launch in launches]) if profiles is None else profiles
        units = np.concatenate([launch.row_units for launch in launches])
        token_row = np.concatenate(
            [launch.token_row + start for launch, start in zip(launches, rows[:-1], strict=True)], dtype=np.int32
        )
        self.device = torch.device(device)
        self._features_RF = torch.from_numpy(np.concatenate([launch.row_features for launch in launches])).to(device)
        self._units_RV = torch.from_numpy(np.concatenate([units, np.ones((len(units), 1), np.float32)], axis=1)).to(
            device
        )
        self._token_row = torch.from_numpy(token_row).to(device)
        self._profile_NC = torch.from_numpy(np.ascontiguousarray(profiles, dtype=np.float32)).to(device)
        self._resources_NK = torch.from_numpy(
            np.stack([launch.resources for launch in launches]).astype(np.float64)
        ).to(device)

    def __len__(self) -> int:
        return len(self.launch_window) - 1

    def all_windows(self) -> WindowChoice:
        """Every window of every launch with its own weight."""
        counts = np.diff(self.launch_window)
        return WindowChoice(
            windows=np.arange(self.launch_window[-1]),
            launches=np.repeat(np.arange(len(self)), counts),
            weights=self.window_weight,
            unit_scale=np.ones((len(self), self.window_units.shape[1])),
        )

    def batch(self, rows: NDArray[np.int64], choice: WindowChoice, *, max_tokens: int | None = None) -> LaunchBatch:
        """Pad the chosen windows of some launches in buckets.

        Args:
            rows: The launches.
            choice: Their windows.
            max_tokens: Most tokens of a bucket, padding included; one window is always allowed. None for what suits
                the device.
        """
        most = MAX_BUCKET_TOKENS[self.device.type] if max_tokens is None else max_tokens
        lengths = np.diff(self.window_start)[choice.windows]
        order = np.argsort(-lengths, kind="stable")
        scale_NV = self._move(choice.unit_scale.astype(np.float32))
        place = self._move(rows)
        return LaunchBatch(
            buckets=tuple(
                self._bucket(choice, lengths, part, scale_NV) for part in _split(order, lengths[order], most)
            ),
            profile_NC=self._profile_NC[place],
            resources_NK=self._resources_NK[place],
        )

    def _bucket(
        self, choice: WindowChoice, lengths: NDArray[np.int64], part: NDArray[np.int64], scale_NV: Tensor
    ) -> WindowBucket:
        window = choice.windows[part]
        length_B = self._move(lengths[part])
        launch_B = self._move(choice.launches[part])
        place_T = torch.arange(int(lengths[part[0]]), device=self.device)
        is_token_BT = place_T < length_B[:, None]
        token_BT = torch.where(is_token_BT, self._move(self.window_start[window])[:, None] + place_T, 0)
        row_BT = self._token_row[token_BT].long()
        inside_BT1 = is_token_BT[..., None]
        return WindowBucket(
            features_BTF=self._features_RF[row_BT] * inside_BT1,
            units_BTV=self._units_RV[row_BT] * (inside_BT1 * scale_NV[launch_B][:, None]),
            lengths_B=length_B,
            weight_B=self._move(choice.weights[part]),
            launch_B=launch_B,
            window_B=self._move(window),
        )

    def _move(self, values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(values).to(self.device)


def _split(order: NDArray[np.int64], lengths: NDArray[np.int64], max_tokens: int) -> list[NDArray[np.int64]]:
    """Cut windows, longest first, where one would be too short for its bucket or the bucket is full."""
    groups: list[NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        longest = int(lengths[start])
        long_enough = int(np.searchsorted(-lengths, -_MIN_FILL * longest, side="right"))
        stop = min(long_enough, start + max(1, max_tokens // longest))
        groups.append(order[start:stop])
        start = stop
    return groups
