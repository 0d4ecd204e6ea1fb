"""Landmarks: how alike a launch is to typical ones, in seconds.

Launches whose times on the archetypes go up and down alike are priced alike by a device, also where no sum of
archetypes says how. So the launches of a training are gathered around landmarks, and a launch's typical time is divided
among those that it is near to:

    m_l = t · softmax_l(−‖z − c_l‖ ÷ τ),    t = exp(mean_a log(s_a · T_a)) ÷ s_0

with `T` the time on an archetype, `z` the log times against their mean as the gates see them, `c` the landmarks, `τ` a
third of how far launches are from the nearest of them, and `s` what brings the median launch to 1 on each archetype.

Legend: N launch, A archetype, L landmark.
"""

# ruff: noqa: N815  (fields that are tensors carry their axes)

from __future__ import annotations

from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from perfvec.errors import ConfigError
from perfvec.model.excess import excess_pairs
from perfvec.model.launch_input import LITTLE_S
from perfvec.resources import ARCHETYPES

# Sharper, and a launch is priced as its nearest landmark; blunter, and all are priced alike.
_SHARPNESS = 3.0


@final
class Landmarks(nn.Module):
    """Typical launches, and what others have of each."""

    centre_LA: Tensor
    temperature: Tensor
    scale_A: Tensor

    def __init__(self, count: int) -> None:
        super().__init__()
        self.register_buffer("centre_LA", torch.zeros(count, len(ARCHETYPES)))
        self.register_buffer("temperature", torch.ones(()))
        self.register_buffer("scale_A", torch.from_numpy(excess_pairs(0).scale), persistent=False)

    def fit(self, z_NA: Tensor, *, seed: int) -> None:
        """Choose landmarks: the means of as many clusters.

        Args:
            z_NA: Normalised log times on archetypes of launches to choose by.
            seed: Where the clustering begins.

        Raises:
            ConfigError: There are fewer different launches than landmarks.
        """
        from sklearn.cluster import KMeans

        points_NA = z_NA.double().cpu().numpy()
        count, distinct = len(self.centre_LA), len(np.unique(points_NA, axis=0))
        if distinct < count:
            raise ConfigError(
                f"model setting landmarks is {count}, but only {distinct} launches to train on differ in their times "
                "on archetypes; set it to that or less, or train on more launches"
            )
        clusters = KMeans(count, random_state=seed).fit(points_NA)
        nearest = np.sqrt(np.square(points_NA - clusters.cluster_centers_[clusters.labels_]).sum(axis=1))
        self.centre_LA.copy_(torch.from_numpy(clusters.cluster_centers_))
        # As many landmarks as launches leave no distance at all.
        self.temperature.fill_(max(float(nearest.mean()), 1e-3) / _SHARPNESS)

    def forward(self, z_NA: Tensor, times_NA: Tensor) -> Tensor:
        """What launches have of each landmark.

        Args:
            z_NA: Normalised log times on archetypes.
            times_NA: Seconds on archetypes, float64.

        Returns:
            Seconds, float64 `(N, L)`; a launch's sum is its typical time.
        """
        likeness_NL = torch.softmax(-torch.cdist(z_NA.float(), self.centre_LA) / self.temperature, dim=-1)
        typical_N = torch.exp(torch.log(times_NA.clamp(min=LITTLE_S) * self.scale_A).mean(dim=-1)) / self.scale_A[0]
        return likeness_NL.double() * typical_N[:, None]
