"""Which windows stand for launches, drawn without bias. Without torch, so that features are made without it.

Legend: N launch, W window, B window that was chosen, V unit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.launch_input import LaunchInput


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChoice:
    """Some windows of some launches and how they stand for all of them.

    Attributes:
        windows: Their numbers; `(B,)`.
        launches: Place in the batch of the launch that each belongs to; `(B,)`.
        weights: Their weights; `(B,)`.
        unit_scale: Factor on each unit of each launch, the instruction last; `(N, V)`.
    """

    windows: NDArray[np.int64]
    launches: NDArray[np.int64]
    weights: NDArray[np.float64]
    unit_scale: NDArray[np.float64]


def window_units(launch: LaunchInput) -> NDArray[np.float64]:
    """Units of one execution of each window, the instruction last; float64 `(windows, V)`."""
    units = np.add.reduceat(launch.token_units, launch.window_start[:-1], axis=0, dtype=np.float64)
    return np.concatenate([units, launch.window_lengths[:, None]], axis=1, dtype=np.float64)


@final
class WindowSampler:
    """Draws windows in proportion to the instructions they stand for.

    The heaviest windows of a launch are always drawn and keep their weight; a lighter one is drawn with a probability
    below 1 and its weight divided by it, so that weights have no bias. Then each unit is scaled to its known total:
    what is left to chance is how the gates differ between windows, not how much there is to weigh.
    """

    def __init__(
        self,
        window_weight: NDArray[np.float64],
        window_units: NDArray[np.float64],
        launch_window: NDArray[np.int64],
        num_windows: int,
    ) -> None:
        """Prepare to draw.

        Args:
            window_weight: How often its launch executes each window; `(W,)`.
            window_units: Units of one execution of each window, the instruction last; `(W, V)`.
            launch_window: First window of each launch, and the end; `(N + 1,)`.
            num_windows: Most windows to draw of a launch.
        """
        self._weight, self._units, self._start = window_weight, window_units, launch_window
        size = window_weight * window_units[:, -1]
        pieces = [
            _inclusion_probabilities(size[start:stop], num_windows) for start, stop in itertools.pairwise(launch_window)
        ]
        self._probability = np.concatenate(pieces)
        self._reached = np.concatenate([np.cumsum(piece) for piece in pieces])
        self._total = np.add.reduceat(window_weight[:, None] * window_units, launch_window[:-1], axis=0)

    def draw(self, rows: NDArray[np.int64], rng: np.random.Generator) -> WindowChoice:
        """Draw windows of some launches.

        Args:
            rows: The launches.
            rng: Source of chance; one number a launch.
        """
        counts = self._start[rows + 1] - self._start[rows]
        launch = np.repeat(np.arange(len(rows)), counts)
        begin = np.cumsum(counts) - counts
        window = np.arange(counts.sum()) + np.repeat(self._start[rows] - begin, counts)
        # Systematic sampling: one offset a launch, so that exactly as many are drawn as were asked for.
        offset = rng.random(len(rows))[launch]
        reached, probability = self._reached[window], self._probability[window]
        is_drawn = np.floor(reached + offset) > np.floor(reached - probability + offset)
        window, launch, probability = window[is_drawn], launch[is_drawn], probability[is_drawn]
        weights = self._weight[window] / probability
        drawn = np.zeros((len(rows), self._units.shape[1]))
        np.add.at(drawn, launch, weights[:, None] * self._units[window])
        # A unit that none of the drawn windows uses stays 0 whatever its factor.
        is_used = drawn > 0
        return WindowChoice(
            windows=window,
            launches=launch,
            weights=weights,
            unit_scale=np.where(is_used, self._total[rows] / np.where(is_used, drawn, 1.0), 1.0),
        )


def _inclusion_probabilities(size: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """min(1, size ÷ t) with t such that they sum to `count`; all 1 where there are no more windows than that."""
    if np.count_nonzero(size) <= count:
        return np.ones(len(size))
    descending = np.sort(size)[::-1]
    rest = np.cumsum(descending[::-1])[::-1]  # sum from each place on
    # With the n largest at 1, t = rest[n] ÷ (count − n); the right n is the first whose next size is below t.
    thresholds = rest[:count] / (count - np.arange(count))
    certain = int(np.argmax(descending[:count] <= thresholds))
    return np.minimum(1.0, size / thresholds[certain])
