"""What a model is trained on: launches, their measured times on several devices, and how they are split."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.errors import ModelError
from perfvec.model.devices import check_seconds_per_unit
from perfvec.model.launch_input import LaunchInput, check_same_schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.devices import DeviceKind


MIN_VALIDATION_FAMILIES = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """Launches and their times.

    Attributes:
        launches: N launches of one schema.
        families: Kernel family of each; variants of a kernel share one and are never split.
        suites: Suite of each.
        times: Measured seconds; float64 `(N, M)`, positive, NaN where not measured.
        spread: Relative spread of each measurement; float64 `(N, M)`, 0 or more where there is a time.
        device_names: The M devices.
        seconds_per_unit: Their datasheets; float64 `(M, NUM_RESOURCES)`, 0 or more.
        num_simulated: How many of them, the last, are simulated.
    """

    launches: tuple[LaunchInput, ...]
    families: tuple[str, ...]
    suites: tuple[str, ...]
    times: NDArray[np.float64]
    spread: NDArray[np.float64]
    device_names: tuple[str, ...]
    seconds_per_unit: NDArray[np.float64]
    num_simulated: int = 0

    def __post_init__(self) -> None:
        check_same_schema(self.launches)
        shape = (len(self.launches), len(self.device_names))
        if not len(self.launches) == len(self.families) == len(self.suites):
            raise ModelError(
                f"{len(self.launches)} launches, {len(self.families)} families and {len(self.suites)} suites do not "
                "belong together"
            )
        if not self.times.shape == self.spread.shape == shape:
            raise ModelError(
                f"times have shape {self.times.shape} and spread {self.spread.shape}; {shape[0]} launches on "
                f"{shape[1]} devices need {shape}"
            )
        check_seconds_per_unit(self.seconds_per_unit, self.device_names)
        measured = ~np.isnan(self.times)
        if not measured.any():
            raise ModelError("the training set has no measured time at all")
        if not (np.isfinite(self.times[measured]) & (self.times[measured] > 0)).all():
            raise ModelError("a measured time is not positive and finite; leave a launch that failed as NaN")
        if not (np.isfinite(self.spread[measured]) & (self.spread[measured] >= 0)).all():
            raise ModelError("the spread of a measured time is negative or not finite")

    @property
    def fingerprint(self) -> str:
        """16 hex digits that tell one training set from another."""
        state = hashlib.sha256(
            repr((self.launches[0].schema, self.families, self.suites, self.device_names, self.kinds)).encode()
        )
        for array in (self.times, self.spread, self.seconds_per_unit):
            state.update(np.ascontiguousarray(array).tobytes())
        for launch in self.launches:
            state.update(launch.resources.tobytes())
            state.update(launch.window_weight.tobytes())
        return state.hexdigest()[:16]

    def subset(self, rows: NDArray[np.int64]) -> TrainingSet:
        """The training set with only these launches."""
        return TrainingSet(
            launches=tuple(self.launches[row] for row in rows),
            families=tuple(self.families[row] for row in rows),
            suites=tuple(self.suites[row] for row in rows),
            times=self.times[rows],
            spread=self.spread[rows],
            device_names=self.device_names,
            seconds_per_unit=self.seconds_per_unit,
            num_simulated=self.num_simulated,
        )

    def with_simulated(
        self, times: NDArray[np.float64], names: tuple[str, ...], seconds_per_unit: NDArray[np.float64]
    ) -> TrainingSet:
        """The training set with the same launches' times on simulated devices beside those it has.

        Args:
            times: Seconds `(N, devices)`; NaN where a launch does not fit.
            names: Of the devices.
            seconds_per_unit: Their datasheets; float64 `(devices, NUM_RESOURCES)`.
        """
        return replace(
            self,
            times=np.concatenate([self.times, times], axis=1),
            spread=np.concatenate([self.spread, np.where(np.isnan(times), np.nan, 0.0)], axis=1),
            device_names=(*self.device_names, *names),
            seconds_per_unit=np.concatenate([self.seconds_per_unit, seconds_per_unit]),
            num_simulated=self.num_simulated + len(names),
        )

    @property
    def kinds(self) -> tuple[DeviceKind, ...]:
        """`real` or `simulated`, one a device."""
        num_real = len(self.device_names) - self.num_simulated
        return ("real",) * num_real + ("simulated",) * self.num_simulated

    def weights(
        self, *, typical_spread: float, family_balance: float, simulated_weight: float = 1.0
    ) -> NDArray[np.float64]:
        """How much each measurement counts; `(N, M)`, 0 where there is no time; of real devices 1 in the mean.

        Args:
            typical_spread: Relative spread at which a measurement counts half.
            family_balance: 0 counts each launch alike, 1 each family.
            simulated_weight: What all simulated devices count together against all real ones.
        """
        members = {family: self.families.count(family) for family in set(self.families)}
        of_family = np.array([members[family] for family in self.families], dtype=np.float64) ** -family_balance
        measured = ~np.isnan(self.times)
        trust = 1.0 / (1.0 + np.square(np.where(measured, self.spread, 0.0) / typical_spread))
        weights = np.where(measured, trust * of_family[:, None], 0.0)
        is_real = np.array([kind == "real" for kind in self.kinds])
        if is_real.any() and measured[:, is_real].any():
            weights[:, is_real] /= weights[:, is_real][measured[:, is_real]].mean()
        if self.num_simulated:
            total = weights[:, is_real].sum() or float(measured.sum())
            weights[:, ~is_real] *= simulated_weight * total / max(weights[:, ~is_real].sum(), 1e-300)
        return weights


def split_families(
    families: tuple[str, ...], *, fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows to validate on; a family is in one of them only.

    Args:
        families: Family of each row.
        fraction: Share of the families to validate on, rounded. Where that gives fewer than three, none: one or two
            families would choose the pass by chance.
        seed: Which families.
    """
    names = sorted(set(families))
    count = min(round(fraction * len(names)), len(names) - 1)
    count = 0 if count < MIN_VALIDATION_FAMILIES else count
    held_out = {names[index] for index in np.random.default_rng(seed).permutation(len(names))[:count]}
    is_held_out = np.array([family in held_out for family in families])
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
