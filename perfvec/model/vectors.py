"""Program vectors of launches, what each instruction adds to them, and their product with device vectors.

Legend: N launch, M device, T token, D vector, K resource, G gate of a resource, A archetype, X pair of archetypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch

from perfvec.errors import ModelError
from perfvec.model.batching import PackedLaunches
from perfvec.model.launch_input import LITTLE_S, launch_profile
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, NUM_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.model.launch_input import LaunchInput
    from perfvec.model.layout import VectorLayout
    from perfvec.model.program_encoder import ProgramEncoder

# Tokens that are padded and in memory at a time; with 100 features some 100 MB.
_GROUP_TOKENS = 2**18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """A program vector in parts; `tokens.sum(axis=0) + launch` is the vector.

    Attributes:
        tokens: What each token adds over the whole launch, its weight included; float64 `(tokens, D)`, 0 or more.
            `tokens @ device_vector` is the time that each token takes.
        launch: What belongs to no single instruction; float64 `(D,)`.
    """

    tokens: NDArray[np.float64]
    launch: NDArray[np.float64]


def encode(
    encoder: ProgramEncoder, launches: Sequence[LaunchInput], *, profiles: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """Program vectors of launches.

    Args:
        encoder: The network, in evaluation mode.
        launches: Launches of the schema that the network was made for.
        profiles: What the gates see of each launch, `(N, C)`; `launch_profile` of each unless given. With one profile
            for several pieces of a launch, the vectors of the pieces sum to the vector of the launch.

    Returns:
        Float64 `(N, D)`, 0 or more, in the units of the counts.

    Raises:
        ModelError: There is no launch, or the profiles do not fit.
    """
    profiles = _profiles(launches, profiles)
    device = next(encoder.buffers()).device
    vectors: list[NDArray[np.float64]] = []
    with torch.inference_mode():
        for start, stop in _groups([launch.num_tokens for launch in launches]):
            packed = PackedLaunches(launches[start:stop], profiles=profiles[start:stop], device=device)
            batch = packed.batch(np.arange(len(packed)), packed.all_windows())
            vectors.append(encoder(batch).cpu().numpy())
    return np.concatenate(vectors)


def contributions(encoder: ProgramEncoder, launch: LaunchInput) -> Contributions:
    """What each instruction adds to the launch's program vector.

    An instruction's own coordinates are its gates times its units. A resource of the launch, gated or not, is shared
    among the instructions in proportion to the first unit that stands for it (`VectorLayout.sharing_units`) and that
    one of them uses; what no instruction uses stays with the launch. An excess is shared as the slower archetype's time
    is, a landmark as the times on all archetypes are in the mean.

    Args:
        encoder: The network, in evaluation mode.
        launch: A launch of the schema that the network was made for.
    """
    layout = encoder.layout
    device = next(encoder.buffers()).device
    token_TL = np.zeros((launch.num_tokens, layout.num_token_coordinates))
    with torch.inference_mode():
        packed = PackedLaunches([launch], device=device)
        batch = packed.batch(np.array([0]), packed.all_windows())
        profile_NC = encoder.normal_profile(batch.profile_NC)
        for bucket in batch.buckets:
            coordinates_BTL = encoder.token_coordinates(bucket, profile_NC).double().cpu().numpy()
            weight_B = bucket.weight_B.cpu().numpy()
            for row, (window, length) in enumerate(
                zip(bucket.window_B.tolist(), bucket.lengths_B.tolist(), strict=True)
            ):
                start = launch.window_start[window]
                token_TL[start : start + length] = coordinates_BTL[row, :length] * weight_B[row]
        launch_KG = encoder.launch_coordinates(batch, profile_NC).cpu().numpy().reshape(NUM_RESOURCES, -1)
        excess_X, slower_X = encoder.excess(batch.resources_NK)[0].cpu().numpy(), encoder.slower.cpu().numpy()
        landmark_L = encoder.landmark_coordinates(batch, profile_NC)[0].cpu().numpy()
    share_TK, rest_K = _shares(launch, layout.sharing_units)
    whole_K1G = np.concatenate([launch.resources[:, None], launch_KG], axis=1)
    counted_TK = share_TK * launch.resources
    timed_TA = counted_TK[:, NUM_COUNTED:].reshape(launch.num_tokens, len(ARCHETYPES), len(CAUSES)).sum(axis=2)
    times_A = launch.resources[NUM_COUNTED:].reshape(len(ARCHETYPES), len(CAUSES)).sum(axis=1)
    share_TA = timed_TA / np.maximum(times_A, LITTLE_S)
    excess_TX, landmark_TL = share_TA[:, slower_X] * excess_X, share_TA.mean(axis=1, keepdims=True) * landmark_L
    counted_TD = np.concatenate(
        [counted_TK, (share_TK[:, :, None] * launch_KG).reshape(launch.num_tokens, -1), excess_TX, landmark_TL], axis=1
    )
    rest_KG = rest_K[:, None] * whole_K1G
    return Contributions(
        tokens=np.concatenate([counted_TD, token_TL], axis=1),
        launch=np.concatenate(
            [
                rest_KG[:, 0],
                rest_KG[:, 1:].ravel(),
                excess_X - excess_TX.sum(axis=0),
                landmark_L - landmark_TL.sum(axis=0),
                np.zeros(layout.num_token_coordinates),
            ]
        ),
    )


def predict(program_vectors: NDArray[np.float64], device_vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kernel times: every program on every device.

    Args:
        program_vectors: `(N, D)`.
        device_vectors: `(M, D)`, seconds per unit.

    Returns:
        Seconds, `(N, M)`.

    Raises:
        ModelError: The vectors differ in length.
    """
    if program_vectors.ndim != 2 or device_vectors.ndim != 2 or program_vectors.shape[1] != device_vectors.shape[1]:
        raise ModelError(
            f"program vectors {program_vectors.shape} and device vectors {device_vectors.shape} have no common length; "
            "both must come from one model"
        )
    return program_vectors @ device_vectors.T


def log_programs(program_ND: NDArray[np.float64], layout: VectorLayout) -> NDArray[np.float64]:
    """Program vectors as one looks at them: log10(1 + p ÷ little), for coordinates span ten orders of magnitude.

    Args:
        program_ND: `(N, D)`, 0 or more.
        layout: Of the vectors.

    Returns:
        `(N, D)`; 0 where a launch has nothing of a coordinate.
    """
    return np.log10(1.0 + program_ND / layout.little)


def _shares(launch: LaunchInput, sharing_CK: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each token's share of each resource, `(T, K)`, and what is left for the launch, `(K,)`; together 1."""
    units_TV = np.concatenate([launch.token_units, np.ones((launch.num_tokens, 1))], axis=1)
    used_TV = units_TV * launch.token_weight[:, None]
    total_V = used_TV.sum(axis=0)
    is_used_CK = (sharing_CK >= 0) & (total_V[sharing_CK] > 0)
    unit_K = np.take_along_axis(sharing_CK, is_used_CK.argmax(axis=0)[None], axis=0)[0]
    is_shared = is_used_CK.any(axis=0)
    share_TK = np.where(is_shared, used_TV[:, unit_K] / np.where(is_shared, total_V[unit_K], 1.0), 0.0)
    return share_TK, np.where(is_shared, 0.0, 1.0)


def _groups(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of consecutive launches that have about `_GROUP_TOKENS` tokens together."""
    groups: list[tuple[int, int]] = []
    start, total = 0, 0
    for stop, size in enumerate(sizes, start=1):
        total += size
        if total >= _GROUP_TOKENS or stop == len(sizes):
            groups.append((start, stop))
            start, total = stop, 0
    return groups


def _profiles(launches: Sequence[LaunchInput], profiles: NDArray[np.float32] | None) -> NDArray[np.float32]:
    if not launches:
        raise ModelError("no launches were given to encode; give one or more")
    if profiles is None:
        return np.stack([launch_profile(launch) for launch in launches])
    if len(profiles) != len(launches):
        raise ModelError(f"{len(profiles)} profiles were given for {len(launches)} launches; give one each")
    return profiles
