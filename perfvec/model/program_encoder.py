"""The network that makes program vectors: token gates and launch gates on counted units.

    p = [ R ; g(profile) ∘ R ; e(R) ; m(profile, R) ; Σ_w weight_w · Σ_{i in window w} f(x_{w,<=i}, profile) ∘ u_{w,i} ]

R are the resources, u an instruction's units, g and f gates in (0, 1), e the excess of times on archetypes over each
other, m the typical time by landmarks. The second part is a pseudo-instruction that stands for the launch as a whole:
what hides behind what is decided there. All parts are 0 or more and in the units of their counts, so kernels of any
size are as far apart in a vector as they are in time, and nothing needs rescaling.

Legend: N launch, B window, T instruction, F feature, V unit, C profile entry, K resource, G gate of a resource,
A archetype, X pair of archetypes, L token coordinate, D vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor, nn

from perfvec.model.encoder import GateHead, make_encoder
from perfvec.model.excess import excess_pairs
from perfvec.model.landmarks import Landmarks
from perfvec.model.launch_input import PROFILE_EXTRA, TIMES_OF_PROFILE, launch_profile
from perfvec.model.layout import VectorLayout, make_layout
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, NUM_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.model.batching import LaunchBatch, WindowBucket
    from perfvec.model.config import ModelConfig
    from perfvec.model.launch_input import FeatureSchema, LaunchInput

_SATURATION = 5.0


@final
class Normaliser(nn.Module):
    """(x − mean) ÷ deviation, saturating smoothly at ±5 deviations, so that no input is far outside the training's."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    def fit(self, pieces: Sequence[NDArray[np.float32]], weights: Sequence[NDArray[np.float64]] | None = None) -> None:
        """Take mean and deviation from all rows of several arrays `(n, size)`.

        The arrays of a whole corpus are never joined: they would not fit in memory twice. A column that never varies
        keeps deviation 1.

        Args:
            pieces: The arrays.
            weights: How much each row counts, `(n,)` for each array; all alike where it is None.
        """
        counts = [np.ones(len(piece)) for piece in pieces] if weights is None else weights
        total = sum(count.sum() for count in counts)
        mean = sum(count @ piece for count, piece in zip(counts, pieces, strict=True)) / total
        square = sum(count @ np.square(piece - mean) for count, piece in zip(counts, pieces, strict=True))
        deviation = np.sqrt(square / total)
        # Rounding leaves a constant column with a tiny deviation; dividing by it would blow rounding up.
        is_constant = deviation <= 1e-6 * np.maximum(np.abs(mean), 1.0)
        self.mean.copy_(torch.from_numpy(mean))
        self.deviation.copy_(torch.from_numpy(np.where(is_constant, 1.0, deviation)))

    def forward(self, values: Tensor) -> Tensor:
        """Normalised values of the same shape."""
        return _SATURATION * torch.tanh((values - self.mean) / (_SATURATION * self.deviation))


@final
class ProgramEncoder(nn.Module):
    """Launches to program vectors."""

    token_unit: Tensor
    slower: Tensor
    faster: Tensor
    scale: Tensor

    def __init__(self, schema: FeatureSchema, config: ModelConfig) -> None:
        super().__init__()
        self.layout: VectorLayout = make_layout(config, schema.unit_names)
        num_features = len(schema.feature_names)
        num_profile = len(schema.context_names) + PROFILE_EXTRA
        self.feature_norm = Normaliser(num_features)
        self.profile_norm = Normaliser(num_profile)
        self.register_buffer("token_unit", torch.from_numpy(self.layout.token_unit), persistent=False)
        pairs = excess_pairs(self.layout.excess)
        is_kept = bool(self.layout.excess or self.layout.landmarks)
        for name in ("slower", "faster", "scale"):  # kept with the weights, which are of no use with other pairs
            self.register_buffer(name, torch.from_numpy(getattr(pairs, name)), persistent=is_kept)
        self.landmarks = Landmarks(self.layout.landmarks) if self.layout.landmarks else None
        # Without gates the model is the counted resources alone; PyTorch warns about layers of size 0.
        self.encoder = (
            make_encoder(
                config.encoder,
                num_features=num_features,
                num_profile=num_profile,
                num_gates=self.layout.num_token_coordinates,
                hidden=config.hidden,
                layers=config.layers,
                dropout=config.dropout,
            )
            if self.layout.num_token_coordinates
            else None
        )
        self.launch_gates = (
            nn.Sequential(
                nn.Linear(num_profile, config.launch_hidden),
                nn.SiLU(),
                nn.Dropout(config.dropout),
                nn.Linear(config.launch_hidden, config.launch_hidden),
                nn.SiLU(),
                GateHead(config.launch_hidden, self.layout.num_launch_coordinates),
            )
            if self.layout.num_launch_coordinates
            else None
        )
        self.straight_gates = (
            nn.Linear(len(ARCHETYPES), self.layout.num_launch_coordinates, bias=False)
            if self.launch_gates is not None and config.straight_gates
            else None
        )
        if self.straight_gates is not None:
            nn.init.zeros_(self.straight_gates.weight)

    def forward(self, batch: LaunchBatch, profile_noise: float = 0.0) -> Tensor:
        """Program vectors of a batch.

        Args:
            batch: The launches and the windows that stand for them.
            profile_noise: Standard deviation of noise on the normalised profile; for training.

        Returns:
            p_ND, float64, 0 or more, in the units of the counts.
        """
        profile_NC = self.normal_profile(batch.profile_NC)
        excess_NX, landmark_NL = self.excess(batch.resources_NK), self.landmark_coordinates(batch, profile_NC)
        if profile_noise:
            profile_NC = profile_NC + profile_noise * torch.randn_like(profile_NC)
        token_NL = batch.resources_NK.new_zeros(len(profile_NC), self.layout.num_token_coordinates)
        if self.encoder is not None:
            for bucket in batch.buckets:
                # Instructions and windows are summed in double precision: weights span ten orders of magnitude.
                sums_BL = self.token_coordinates(bucket, profile_NC).sum(dim=1, dtype=torch.float64)
                token_NL = token_NL.index_add(0, bucket.launch_B, sums_BL * bucket.weight_B[:, None])
        launch_NG = self.launch_coordinates(batch, profile_NC)
        return torch.cat([batch.resources_NK, launch_NG, excess_NX, landmark_NL, token_NL], dim=-1)

    def normal_profile(self, profile_NC: Tensor) -> Tensor:
        """The profile as the gates see it."""
        return self.profile_norm(profile_NC)

    def token_coordinates(self, bucket: WindowBucket, profile_NC: Tensor) -> Tensor:
        """What one execution of each instruction adds: gates times units, r_BTL; 0 after a window's end."""
        if self.encoder is None:
            return bucket.units_BTV[..., :0]
        features_BTF = self.feature_norm(bucket.features_BTF)
        gates_BTL = self.encoder(features_BTF, profile_NC[bucket.launch_B], bucket.lengths_B)
        return gates_BTL * bucket.units_BTV[..., self.token_unit]

    def launch_coordinates(self, batch: LaunchBatch, profile_NC: Tensor) -> Tensor:
        """The gated resources of each launch; float64 (N, K · G)."""
        if self.launch_gates is None:
            return batch.resources_NK[:, :0]
        straight = 0.0 if self.straight_gates is None else self.straight_gates(profile_NC[:, TIMES_OF_PROFILE])
        gates_NG = self.launch_gates[-1](self.launch_gates[:-1](profile_NC), straight)
        gates_NKG = gates_NG.double().unflatten(-1, (NUM_RESOURCES, -1))
        return (gates_NKG * batch.resources_NK[..., None]).flatten(-2)

    def excess(self, resources_NK: Tensor) -> Tensor:
        """By how much each launch takes longer on one archetype of each pair than on the other; seconds, (N, X)."""
        scaled_NA = _times_on_archetypes(resources_NK) * self.scale
        return (scaled_NA[:, self.slower] - scaled_NA[:, self.faster]).clamp(min=0.0) / self.scale[self.slower]

    def landmark_coordinates(self, batch: LaunchBatch, profile_NC: Tensor) -> Tensor:
        """What each launch has of each landmark; seconds, (N, L)."""
        if self.landmarks is None:
            return batch.resources_NK[:, :0]
        return self.landmarks(profile_NC[:, TIMES_OF_PROFILE], _times_on_archetypes(batch.resources_NK))

    def fit_inputs(self, launches: Sequence[LaunchInput], *, seed: int) -> None:
        """Take means, deviations and landmarks from the launches of a training.

        Raises:
            ConfigError: There are too few for the landmarks.
        """
        self.feature_norm.fit(
            [launch.row_features for launch in launches],
            [np.bincount(launch.token_row).astype(np.float64) for launch in launches],
        )
        profiles = [launch_profile(launch)[None] for launch in launches]
        self.profile_norm.fit(profiles)
        if self.landmarks is not None:
            normal_NC = self.normal_profile(torch.from_numpy(np.concatenate(profiles)))
            self.landmarks.fit(normal_NC[:, TIMES_OF_PROFILE], seed=seed)


def _times_on_archetypes(resources_NK: Tensor) -> Tensor:
    """Seconds, all causes together; (N, A)."""
    return resources_NK[:, NUM_COUNTED:].unflatten(-1, (len(ARCHETYPES), len(CAUSES))).sum(dim=-1)
