"""Which windows of a launch the model sees. Without torch, so that features are made without it.

Legend: V unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.launch_input import LaunchInput


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChoice:
    """Some windows of a launch and how they stand for all of it.

    Attributes:
        windows: Their numbers; `(windows,)`.
        weights: Their weights; `(windows,)`.
        unit_scale: Factor on each unit, the instruction last; `(V,)`.
    """

    windows: NDArray[np.int64]
    weights: NDArray[np.float64]
    unit_scale: NDArray[np.float64]


def all_windows(launch: LaunchInput) -> WindowChoice:
    """Every window with its own weight."""
    return WindowChoice(
        windows=np.arange(launch.num_windows),
        weights=launch.window_weight,
        unit_scale=np.ones(len(launch.schema.unit_names) + 1),
    )


def window_units(launch: LaunchInput) -> NDArray[np.float64]:
    """Units of one execution of each window, the instruction last; float64 `(windows, V)`."""
    starts = launch.window_start[:-1]
    units = np.add.reduceat(launch.token_units, starts, axis=0, dtype=np.float64)
    return np.concatenate([units, launch.window_lengths[:, None]], axis=1, dtype=np.float64)


def sample_windows(
    window_weight: NDArray[np.float64], num_windows: int, rng: np.random.Generator, *, units: NDArray[np.float64]
) -> WindowChoice:
    """Draw windows in proportion to the instructions they stand for.

    The heaviest windows are always drawn and keep their weight; a lighter one is drawn with a probability below 1 and
    its weight divided by it, so that weights have no bias. Then each unit is scaled to its known total: what is left
    to chance is how the gates differ between windows, not how much there is to weigh.

    Args:
        window_weight: How often the launch executes each window; `(windows,)`.
        num_windows: Most windows to draw.
        rng: Source of chance; one number is drawn where windows are left out.
        units: Units of one execution of each window, the instruction last; `(windows, V)`.
    """
    size = window_weight * units[:, -1]
    if np.count_nonzero(size) <= num_windows:
        return WindowChoice(windows=np.arange(len(size)), weights=window_weight, unit_scale=np.ones(units.shape[1]))
    probability = _inclusion_probabilities(size, num_windows)
    # Systematic sampling: one offset, so that exactly `num_windows` are drawn.
    steps = np.floor(np.cumsum(probability) + rng.random())
    chosen = np.flatnonzero(np.diff(steps, prepend=0.0) > 0)
    weights = window_weight[chosen] / probability[chosen]
    total, drawn = window_weight @ units, weights @ units[chosen]
    # A unit that none of the drawn windows uses stays 0 whatever its factor.
    return WindowChoice(
        windows=chosen, weights=weights, unit_scale=np.where(drawn > 0, total / np.where(drawn > 0, drawn, 1.0), 1.0)
    )


def _inclusion_probabilities(size: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """min(1, size ÷ t) with t such that they sum to `count`."""
    descending = np.sort(size)[::-1]
    rest = np.cumsum(descending[::-1])[::-1]  # sum from each place on
    # With the n largest at 1, t = rest[n] ÷ (count − n); the right n is the first whose next size is below t.
    thresholds = rest[:count] / (count - np.arange(count))
    certain = int(np.argmax(descending[:count] <= thresholds))
    return np.minimum(1.0, size / thresholds[certain])
