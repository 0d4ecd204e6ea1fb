"""What the model sees of a launch: arrays and the names of their columns, nothing of how they were made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ModelError
from perfvec.resources import NUM_RESOURCES, RESOURCES_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MAX_WINDOW = 256
# Entries of a launch profile besides the context.
PROFILE_EXTRA = NUM_RESOURCES + 1
# A resource used less than once in a million instructions looks like one that is not used.
_LEAST_SHARE = 1e-6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSchema:
    """Which columns the arrays have. A model refuses launches of another schema than it was trained on.

    Attributes:
        features_version: Version of the code that computes the features.
        feature_names: Columns of `token_features`.
        unit_names: Columns of `token_units`; a column named like a counted resource shares that resource's seconds
            per unit.
        context_names: Entries of `context`.
        resources_version: Version of the counted resources.
    """

    features_version: int
    feature_names: tuple[str, ...]
    unit_names: tuple[str, ...]
    context_names: tuple[str, ...]
    resources_version: int = RESOURCES_VERSION

    def __post_init__(self) -> None:
        for field in ("feature_names", "unit_names", "context_names"):
            names = getattr(self, field)
            if len(set(names)) != len(names):
                raise ModelError(f"{field} of a feature schema repeats a name: {names}; each column needs its own")

    def require(self, other: FeatureSchema, *, what: str) -> None:
        """Refuse a launch whose schema differs from this one.

        Args:
            other: The schema that was found.
            what: What to call its owner in the message.

        Raises:
            ModelError: It differs; the message names the first field that does.
        """
        for field in fields(self):
            expected, found = getattr(self, field.name), getattr(other, field.name)
            if expected != found:
                raise ModelError(
                    f"{what} has {field.name} {found!r}, the model expects {expected!r}; trace the launch again with "
                    "the release that trained the model, or train the model again"
                )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInput:
    """One launch as the model sees it.

    Attributes:
        schema: Names of all columns.
        token_features: One row an instruction of the distinct windows; float32 `(tokens, features)`, finite.
        token_units: What each instruction uses, in units; float32 `(tokens, units)`, 0 or more, finite.
        window_start: First token of each window, and the end of the last; int64 `(windows + 1,)`.
        window_weight: How often the launch executes each window; float64 `(windows,)`, 0 or more, finite.
        context: What all instructions have in common; float32 `(context,)`, finite.
        resources: Counted coordinates of the whole launch; float64 `(NUM_RESOURCES,)`, 0 or more, finite.
        name: What to call the launch in messages.
    """

    schema: FeatureSchema
    token_features: NDArray[np.float32]
    token_units: NDArray[np.float32]
    window_start: NDArray[np.int64]
    window_weight: NDArray[np.float64]
    context: NDArray[np.float32]
    resources: NDArray[np.float64]
    name: str = "a launch"

    def __post_init__(self) -> None:
        if self.schema.resources_version != RESOURCES_VERSION:
            raise ModelError(
                f"{self.name} has resources of version {self.schema.resources_version}, this release counts version "
                f"{RESOURCES_VERSION}; trace the launch again"
            )
        tokens, windows = len(self.token_features), len(self.window_start) - 1
        if tokens < 1 or windows < 1:
            raise ModelError(f"{self.name} has an empty trace: {tokens} tokens in {max(windows, 0)} windows")
        shapes = {
            "token_features": (tokens, len(self.schema.feature_names)),
            "token_units": (tokens, len(self.schema.unit_names)),
            "window_weight": (windows,),
            "context": (len(self.schema.context_names),),
            "resources": (NUM_RESOURCES,),
        }
        for field, shape in shapes.items():
            values: NDArray[np.floating] = getattr(self, field)
            if values.shape != shape:
                raise ModelError(f"{self.name}: {field} has shape {values.shape}, its schema says {shape}")
            if not np.isfinite(values).all():
                raise ModelError(f"{self.name}: {field} has a value that is not finite; trace the launch again")
            if field not in ("token_features", "context") and (values < 0).any():
                raise ModelError(f"{self.name}: {field} has a negative value; counts and weights are 0 or more")
        if not self.resources.any():
            raise ModelError(f"{self.name} counts no resource at all, not even the launch itself; trace it again")
        self._check_windows(tokens)

    def _check_windows(self, tokens: int) -> None:
        lengths = np.diff(self.window_start)
        if self.window_start[0] != 0 or self.window_start[-1] != tokens or lengths.min() < 1:
            raise ModelError(f"{self.name}: window_start must rise from 0 to the number of tokens, {tokens}")
        if lengths.max() > MAX_WINDOW:
            raise ModelError(f"{self.name}: a window has {lengths.max()} tokens; at most {MAX_WINDOW} are allowed")

    @property
    def num_tokens(self) -> int:
        """Instructions of the distinct windows."""
        return len(self.token_features)

    @property
    def num_windows(self) -> int:
        """Distinct windows."""
        return len(self.window_weight)

    @property
    def window_lengths(self) -> NDArray[np.int64]:
        """Instructions of each window, shape `(windows,)`."""
        return np.diff(self.window_start)

    @property
    def token_weight(self) -> NDArray[np.float64]:
        """How often the launch executes each token, shape `(tokens,)`."""
        return np.repeat(self.window_weight, self.window_lengths)


def launch_profile(launch: LaunchInput) -> NDArray[np.float32]:
    """What the gates see of a launch beyond its own features: the context and the launch's mix of resources.

    The mix is each counted resource per executed instruction, in log, so that it does not change when a launch grows;
    the size is an entry of its own.

    Returns:
        Context, mix, log of the executed instructions; float32 `(context + PROFILE_EXTRA,)`.
    """
    executed = float(launch.window_weight @ launch.window_lengths) + 1.0
    mix = np.log(launch.resources / executed + _LEAST_SHARE)
    return np.concatenate([launch.context, mix, [np.log(executed)]]).astype(np.float32)


def check_same_schema(launches: Sequence[LaunchInput]) -> FeatureSchema:
    """The schema that all launches share.

    Raises:
        ModelError: There is no launch, or two differ.
    """
    if not launches:
        raise ModelError("no launches were given; give one or more")
    schema = launches[0].schema
    for launch in launches[1:]:
        schema.require(launch.schema, what=launch.name)
    return schema
