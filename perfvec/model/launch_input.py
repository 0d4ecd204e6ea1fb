"""What the model sees of a launch: arrays and the names of their columns, nothing of how they were made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.errors import ModelError
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, NUM_RESOURCES, RESOURCES_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MAX_WINDOW = 256
# Entries of a launch profile besides the context; the last of them follow from the timed resources.
NUM_TIMED_PROFILE = len(ARCHETYPES) * (1 + len(CAUSES))
PROFILE_EXTRA = NUM_COUNTED + 1 + NUM_TIMED_PROFILE
# Where the log times on the archetypes are, from the end: context entries come first and differ from schema to schema.
TIMES_OF_PROFILE = slice(-NUM_TIMED_PROFILE, len(ARCHETYPES) - NUM_TIMED_PROFILE)
# A resource used less than once in a million instructions looks like one that is not used.
_LEAST_SHARE = 1e-6
# A time below this is little: nothing takes less on any device, a launch included.
LITTLE_S = 1e-9


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
    """One launch as the model sees it. Tokens that look alike share a row: there are far fewer rows.

    Attributes:
        schema: Names of all columns.
        row_features: What a token looks like; float32 `(rows, features)`, finite.
        row_units: What a token uses, in units; float32 `(rows, units)`, 0 or more, finite.
        token_row: Row of each instruction of the distinct windows; int32 `(tokens,)`.
        window_start: First token of each window, and the end of the last; int64 `(windows + 1,)`.
        window_weight: How often the launch executes each window; float64 `(windows,)`, 0 or more, finite.
        context: What all instructions have in common; float32 `(context,)`, finite.
        resources: Resources of the whole launch, counted and timed; float64 `(NUM_RESOURCES,)`, 0 or more, finite.
        name: What to call the launch in messages.
    """

    schema: FeatureSchema
    row_features: NDArray[np.float32]
    row_units: NDArray[np.float32]
    token_row: NDArray[np.int32]
    window_start: NDArray[np.int64]
    window_weight: NDArray[np.float64]
    context: NDArray[np.float32]
    resources: NDArray[np.float64]
    name: str = "a launch"

    @classmethod
    def from_tokens(
        cls, *, token_features: NDArray[np.float32], token_units: NDArray[np.float32], **others: Any
    ) -> LaunchInput:
        """A launch from the features and units of every token.

        Args:
            token_features: `(tokens, features)`.
            token_units: `(tokens, units)`.
            others: The other attributes.

        Raises:
            ModelError: An array does not fit the schema.
        """
        if len(token_features) != len(token_units):
            raise ModelError(f"{len(token_features)} tokens have features and {len(token_units)} have units")
        first, token_row = _distinct_rows(np.concatenate([token_features, token_units], axis=1, dtype=np.float32))
        return cls(row_features=token_features[first], row_units=token_units[first], token_row=token_row, **others)

    def __post_init__(self) -> None:
        if self.schema.resources_version != RESOURCES_VERSION:
            raise ModelError(
                f"{self.name} has resources of version {self.schema.resources_version}, this release counts version "
                f"{RESOURCES_VERSION}; trace the launch again"
            )
        tokens, windows, rows = len(self.token_row), len(self.window_start) - 1, len(self.row_features)
        if tokens < 1 or windows < 1:
            raise ModelError(f"{self.name} has an empty trace: {tokens} tokens in {max(windows, 0)} windows")
        shapes = {
            "row_features": (rows, len(self.schema.feature_names)),
            "row_units": (rows, len(self.schema.unit_names)),
            "token_row": (tokens,),
            "window_weight": (windows,),
            "context": (len(self.schema.context_names),),
            "resources": (NUM_RESOURCES,),
        }
        for field, shape in shapes.items():
            values: NDArray[Any] = getattr(self, field)
            if values.shape != shape:
                raise ModelError(f"{self.name}: {field} has shape {values.shape}, its schema says {shape}")
            if not np.isfinite(values).all():
                raise ModelError(f"{self.name}: {field} has a value that is not finite; trace the launch again")
            if field not in ("row_features", "context") and (values < 0).any():
                raise ModelError(f"{self.name}: {field} has a negative value; counts and weights are 0 or more")
        if self.token_row.max() >= rows:
            raise ModelError(f"{self.name}: token_row names row {self.token_row.max()} of {rows}; trace it again")
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
        return len(self.token_row)

    @property
    def token_features(self) -> NDArray[np.float32]:
        """Features of each token; `(tokens, features)`."""
        return self.row_features[self.token_row]

    @property
    def token_units(self) -> NDArray[np.float32]:
        """Units that one execution of each token uses; `(tokens, units)`."""
        return self.row_units[self.token_row]

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

    @property
    def row_weight(self) -> NDArray[np.float64]:
        """How often the launch executes tokens of each row, shape `(rows,)`."""
        weights = np.bincount(self.token_row, weights=self.token_weight, minlength=len(self.row_features))
        return weights.astype(np.float64)


def launch_profile(launch: LaunchInput) -> NDArray[np.float32]:
    """What the gates see of a launch beyond its own features: the context and the launch's mix of resources.

    The mix is each counted resource per executed instruction, in log, so that it does not change when a launch grows;
    the size is an entry of its own. Of the timed resources it is how long the launch takes on each archetype against
    their mean, in log, and the share of each cause.

    Returns:
        Context, mix, log of the executed instructions, log times, shares; float32 `(context + PROFILE_EXTRA,)`.
    """
    executed = float(launch.window_weight @ launch.window_lengths) + 1.0
    mix = np.log(launch.resources[:NUM_COUNTED] / executed + _LEAST_SHARE)
    causes_AC = launch.resources[NUM_COUNTED:].reshape(len(ARCHETYPES), len(CAUSES))
    times_A = causes_AC.sum(axis=1, keepdims=True) + LITTLE_S
    log_A = np.log(times_A[:, 0])
    timed = np.concatenate([log_A - log_A.mean(), (causes_AC / times_A).ravel()])
    return np.concatenate([launch.context, mix, [np.log(executed)], timed]).astype(np.float32)


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


def _distinct_rows(values: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """First token of each distinct row, in order, and the row of each token; `(rows,)` and `(tokens,)`."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    multipliers = np.random.default_rng(0).integers(1, 2**63, bits.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    codes = (bits * multipliers).sum(axis=1, dtype=np.uint64)
    _, first, row = np.unique(codes, return_index=True, return_inverse=True)
    if (bits[first[row]] != bits).any():  # two rows of one hash code, once in 10^12 launches
        _, first, row = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return first[order], rank[row.reshape(-1)]
