"""Whether a launch is like those that the model was trained on.

The distance is that to the nearest training launch, in the leading principal components of aggregate features. A
launch is strange where that is farther than nearly every training launch is from the nearest of another family.

Legend: N launch, A aggregate feature, Q component, R reference launch.

Source: distance to the nearest neighbour as a score of novelty: Ramaswamy, Rastogi, Shim, SIGMOD 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_COMPONENTS = 24
_MOST_REFERENCES = 800
# The rest is false alarm: launches of real kernels that are flagged.
_SHARE_FAMILIAR = 0.97
# Features of one value in training say how strange another value is; this is what counts as one deviation of them.
_LEAST_DEVIATION = 0.05
_FARTHEST = 12.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Familiarity:
    """What training launches look like.

    Attributes:
        mean: Of each feature; `(A,)`.
        deviation: Of each feature; `(A,)`, positive.
        components: Directions, scaled so that training launches vary by 1 along each; `(A, Q)`.
        references: Training launches in these directions; `(R, Q)`.
        threshold: Distance beyond which a launch is strange.
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    components: NDArray[np.float64]
    references: NDArray[np.float64]
    threshold: float

    def distance(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance of launches to the nearest reference, over the threshold: above 1 is strange.

        Args:
            features: `(N, A)`.

        Raises:
            ModelError: There are other features than in training.
        """
        if features.ndim != 2 or features.shape[1] != len(self.mean):
            raise ModelError(
                f"features of shape {features.shape} do not match the {len(self.mean)} of the calibration set; "
                "make the set again (perfvec calibration-set)"
            )
        projected = _project(features, self.mean, self.deviation, self.components)
        return _nearest(projected, self.references) / self.threshold


def fit_familiarity(features: NDArray[np.float64], families: Sequence[str]) -> Familiarity:
    """Learn what is familiar.

    Args:
        features: Aggregate features of training launches; `(N, A)`, finite.
        families: Kernel family of each; two or more.

    Raises:
        ModelError: There are fewer than two families.
    """
    family_N = np.unique(np.asarray(families, dtype=object).astype(str), return_inverse=True)[1]
    if family_N.max(initial=0) < 1:
        raise ModelError("familiarity needs launches of two or more kernel families")
    # As many of each family as there is room for, the same ones each time.
    order = np.random.default_rng(0).permutation(len(features))
    rank_N = np.empty(len(features), dtype=np.int64)
    for family in range(family_N.max() + 1):
        rows = order[family_N[order] == family]
        rank_N[rows] = np.arange(len(rows))
    kept = np.sort(np.argsort(rank_N, kind="stable")[:_MOST_REFERENCES])
    mean_A = features.mean(axis=0)
    deviation_A = np.maximum(features.std(axis=0), _LEAST_DEVIATION)
    standard_NA = np.clip((features - mean_A) / deviation_A, -_FARTHEST, _FARTHEST)
    _, values, directions = np.linalg.svd(standard_NA, full_matrices=False)
    count = min(_COMPONENTS, int((values > 1e-6 * values[0]).sum()))
    components_AQ = directions[:count].T / (values[:count] / np.sqrt(len(features)))
    references_RQ = _project(features[kept], mean_A, deviation_A, components_AQ)
    projected_NQ = _project(features, mean_A, deviation_A, components_AQ)
    apart_N = np.empty(len(features))
    for family in range(family_N.max() + 1):
        rows = family_N == family
        apart_N[rows] = _nearest(projected_NQ[rows], references_RQ[family_N[kept] != family])
    return Familiarity(
        mean=mean_A,
        deviation=deviation_A,
        components=components_AQ,
        references=references_RQ,
        threshold=float(np.quantile(apart_N, _SHARE_FAMILIAR)),
    )


def _project(
    features_NA: NDArray[np.float64],
    mean_A: NDArray[np.float64],
    deviation_A: NDArray[np.float64],
    components_AQ: NDArray[np.float64],
) -> NDArray[np.float64]:
    return np.clip((features_NA - mean_A) / deviation_A, -_FARTHEST, _FARTHEST) @ components_AQ


def _nearest(points_NQ: NDArray[np.float64], references_RQ: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.spatial.distance import cdist

    return cdist(points_NQ, references_RQ).min(axis=1)
