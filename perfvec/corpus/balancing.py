"""Fill the gaps of a corpus: where measured times are rare, propose launches that a regression expects there.

Times whose logarithm is an outlier by the rule of interquartile ranges are set aside, as LLMPerf does. The range of
the others is cut into bins of equal width on a logarithmic axis. A regression of measured times over what a recipe says
(estimate, work, sizes, and how other launches of the kernel came out) predicts candidates, and those are kept that fall
into bins that lack launches.

Source:
    Outliers: Tukey, "Exploratory Data Analysis" (1977), section 2D: beyond 1.5 interquartile ranges of the quartiles.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.corpus.draw import Draw
from perfvec.corpus.generated import Corpus, LaunchRecipe, demands_of, draw_recipe, sizes_of
from perfvec.corpus.generator import GeneratedKernel, generate_kernel
from perfvec.corpus.generator_access import ORDERS
from perfvec.corpus.generator_structure import COMMUNICATIONS, TRIPS
from perfvec.corpus.ndrange import deck, fill_of
from perfvec.corpus.sizing import buffer_bytes, estimate_s, group_operations, work_of_item
from perfvec.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.device import Device

BINS_PER_DECADE = 6
_OUTLIER_RANGES = 1.5
# Candidates drawn for each launch that is wanted, before bins that no kernel reaches are given up.
_CANDIDATES = 6
_BATCH = 512
_LEAST_TIMES = 40
_FOLDS = 5
_FILLS = ("idle", "underused", "full")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRecipe:
    """A launch of a corpus with its time on the device.

    Attributes:
        kernel_seed: Its kernel.
        recipe: It.
        time_s: Measured.
    """

    kernel_seed: int
    recipe: LaunchRecipe
    time_s: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    r"""Proposed launches, and what they are for.

    Attributes:
        corpus: The proposed launches.
        predicted_s: Their expected times; shape `(launches,)`.
        low_s: Times below are outliers.
        high_s: Times above are outliers.
        num_outliers: Measured times that are.
        edges_s: Edges of the bins, from the least to the greatest time that is no outlier; shape `(bins + 1,)`.
        before: Measured launches in each bin; shape `(bins,)`.
        wanted: Launches that each bin lacked; shape `(bins,)`.
        median_error: Of the regression, for launches that it had not seen: median of |error| ÷ measured time.
        rank_correlation: Spearman's, of the same.
    """

    corpus: Corpus
    predicted_s: NDArray[np.float64]
    low_s: float
    high_s: float
    num_outliers: int
    edges_s: NDArray[np.float64]
    before: NDArray[np.int64]
    wanted: NDArray[np.int64]
    median_error: float
    rank_correlation: float

    @property
    def after(self) -> NDArray[np.int64]:
        """Launches in each bin with the proposed ones, where these come out as predicted."""
        return self.before + np.histogram(self.predicted_s, self.edges_s)[0]


def outlier_bounds(times_s: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Least and greatest time that are no outliers: 1.5 interquartile ranges of the logarithm beyond the quartiles."""
    low, high = np.percentile(np.log(times_s), (25, 75))
    reach = _OUTLIER_RANGES * (high - low)
    return math.exp(low - reach), math.exp(high + reach)


def evenness(counts: NDArray[np.int64]) -> float:
    """How evenly bins are filled: entropy ÷ that of equal bins; 1 where all are equal, 0 where one has all."""
    shares = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(shares * np.log(shares)).sum() / math.log(len(counts))) if len(counts) > 1 else 1.0


def fill_up(counts: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Spread so many over bins that the fullest of those that get any is as low as can be.

    Args:
        counts: What bins hold; shape `(bins,)`.
        total: To spread; 0 or more.
    """
    added = np.zeros(len(counts), np.int64)
    ordered = np.sort(counts)
    level = ordered[0]
    for reach in range(1, len(ordered) + 1):  # raise the lowest `reach` bins together
        top = ordered[reach] if reach < len(ordered) else np.iinfo(np.int64).max
        level = min(top, (total + ordered[:reach].sum()) // reach)
        if level < top:
            break
    added = np.maximum(level - counts, 0)
    rest = total - int(added.sum())
    for place in np.argsort(counts + added, kind="stable")[: max(rest, 0)]:
        added[place] += 1
    return added


def balance(measured: Sequence[MeasuredRecipe], device: Device, *, num_launches: int, seed: int = 0) -> Balance:
    """Propose launches for bins of time that have few.

    Args:
        measured: Launches with their times on the device.
        device: The device.
        num_launches: How many to propose; fewer come where no kernel reaches a bin.
        seed: The same seed gives the same launches.

    Raises:
        ConfigError: There are too few times to learn from, or the number is not over 0.
    """
    if num_launches < 1 or len(measured) < _LEAST_TIMES:
        raise ConfigError(
            f"num_launches={num_launches} from {len(measured)} measured times on {device.name}; allowed are numbers "
            f"over 0, and at least {_LEAST_TIMES} times: measure more of the corpus first"
        )
    times_s = np.array([item.time_s for item in measured])
    low_s, high_s = outlier_bounds(times_s)
    is_inside = (times_s >= low_s) & (times_s <= high_s)
    inside = times_s[is_inside]
    num_bins = max(2, round(math.log10(inside.max() / inside.min()) * BINS_PER_DECADE))
    edges_s = np.geomspace(inside.min() * (1 - 1e-9), inside.max() * (1 + 1e-9), num_bins + 1)
    before = np.histogram(inside, edges_s)[0]
    wanted = fill_up(before, num_launches)
    model = _TimeModel(measured, device)
    median_error, rank_correlation = model.check()
    proposals = _propose(measured, device, model, edges_s, wanted, Draw(seed))
    seeds = list(dict.fromkeys(kernel_seed for kernel_seed, _, _ in proposals))
    rows = {kernel_seed: row for row, kernel_seed in enumerate(seeds)}
    proposals.sort(key=lambda item: rows[item[0]])
    return Balance(
        corpus=Corpus(
            seed=seed,
            devices=(device.name,),
            kernel_seeds=tuple(seeds),
            recipes=tuple(replace(recipe, kernel=rows[kernel_seed], device=0) for kernel_seed, recipe, _ in proposals),
        ),
        predicted_s=np.array([time_s for *_, time_s in proposals]),
        low_s=low_s,
        high_s=high_s,
        num_outliers=int((~is_inside).sum()),
        edges_s=edges_s,
        before=before,
        wanted=wanted,
        median_error=median_error,
        rank_correlation=rank_correlation,
    )


def _propose(
    measured: Sequence[MeasuredRecipe],
    device: Device,
    model: _TimeModel,
    edges_s: NDArray[np.float64],
    wanted: NDArray[np.int64],
    draw: Draw,
) -> list[tuple[int, LaunchRecipe, float]]:
    """Seed of the kernel, recipe and expected time of launches that bins lack."""
    seen = {(item.kernel_seed, item.recipe.ndrange, item.recipe.sizes) for item in measured}
    lacking = wanted.copy()
    found: list[tuple[int, LaunchRecipe, float]] = []
    left = _CANDIDATES * int(wanted.sum())
    candidates = _candidates(model.kernels, device, model, edges_s, lacking, draw)
    while lacking.sum() and left > 0:
        batch = [next(candidates) for _ in range(min(_BATCH, left))]
        left -= len(batch)
        kept = [item for item in batch if item is not None]
        if not kept:
            continue
        for (seed, recipe), time_s in zip(kept, model.predict(kept), strict=True):
            key = (seed, recipe.ndrange, recipe.sizes)
            place = int(np.searchsorted(edges_s, time_s)) - 1
            if 0 <= place < len(lacking) and lacking[place] and key not in seen:
                seen.add(key)
                lacking[place] -= 1
                found.append((seed, recipe, float(time_s)))
    return found


def _candidates(
    kernels: Mapping[int, GeneratedKernel],
    device: Device,
    model: _TimeModel,
    edges_s: NDArray[np.float64],
    lacking: NDArray[np.int64],
    draw: Draw,
) -> Iterator[tuple[int, LaunchRecipe] | None]:
    """Launches without end, each aimed at a bin that lacks some; `lacking` changes meanwhile."""
    cards: list[Any] = []
    while True:
        for seed in draw.shuffled(sorted(kernels)):
            if not cards:
                cards = deck(draw, _BATCH)
            places = np.flatnonzero(lacking)
            if not len(places):
                yield None
                continue
            place = draw.choice(places.tolist())
            aim_s = math.sqrt(edges_s[place] * edges_s[place + 1]) / model.ratio(seed)
            recipe = draw_recipe(draw, kernels[seed], device, cards.pop(), target_s=aim_s)
            yield None if recipe is None else (seed, recipe)


# ---- the regression ---------------------------------------------------------------------------------------------


@final
class _TimeModel:
    """Expected times of launches of measured kernels."""

    def __init__(self, measured: Sequence[MeasuredRecipe], device: Device) -> None:
        self._device = device
        self.kernels = {seed: generate_kernel(seed) for seed in {item.kernel_seed for item in measured}}
        self._log_times = np.log([item.time_s for item in measured])
        self._facts = self._facts_of([(item.kernel_seed, item.recipe) for item in measured])
        self._seeds = [item.kernel_seed for item in measured]
        every = np.arange(len(measured))
        self._ratios = self._mean_ratios(every)
        self._regressor = self._fitted(every)

    def ratio(self, seed: int) -> float:
        """Measured ÷ estimated time of a kernel's launches, geometric mean."""
        return math.exp(self._ratios[seed][0])

    def predict(self, items: Sequence[tuple[int, LaunchRecipe]]) -> NDArray[np.float64]:
        """Expected times of launches, given by seed and recipe, seconds. Shape `(items,)`."""
        facts = self._facts_of(items)
        ratios = np.array([self._ratios[seed][0] for seed, _ in items])
        return np.exp(self._log_time(self._regressor, facts, ratios))

    def check(self) -> tuple[float, float]:
        """Median error and rank correlation for launches that were left out, a fifth at a time."""
        from scipy.stats import spearmanr

        order = np.array(Draw(0).shuffled(range(len(self._seeds))))
        predicted = np.empty(len(order))
        for fold in range(_FOLDS):
            held = order[fold::_FOLDS]
            rest = np.setdiff1d(order, held)
            known = self._mean_ratios(rest)
            overall = float(np.mean(self._log_times[rest] - self._facts[rest, 0]))
            ratios = np.array([known.get(self._seeds[row], (overall, 0))[0] for row in held])
            predicted[held] = self._log_time(self._fitted(rest), self._facts[held], ratios)
        errors = np.abs(np.expm1(predicted - self._log_times))
        return float(np.median(errors)), float(spearmanr(predicted, self._log_times)[0])  # pyright: ignore[reportArgumentType]

    def _facts_of(self, items: Sequence[tuple[int, LaunchRecipe]]) -> NDArray[np.float64]:
        return np.array([_facts(self.kernels[seed], recipe, self._device) for seed, recipe in items])

    def _mean_ratios(self, rows: NDArray[np.int64]) -> dict[int, tuple[float, int]]:
        """By kernel: mean logarithm of measured ÷ estimated time, and how many launches it is over."""
        residuals: dict[int, list[float]] = defaultdict(list)
        for row in rows.tolist():
            residuals[self._seeds[row]].append(float(self._log_times[row] - self._facts[row, 0]))
        return {seed: (float(np.mean(values)), len(values)) for seed, values in residuals.items()}

    def _fitted(self, rows: NDArray[np.int64]) -> Any:
        """Learns what is left of the time after the estimate and the kernel's other launches."""
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits  # comes with scikit-learn

        known = self._mean_ratios(rows)
        overall = float(np.mean([mean for mean, _ in known.values()]))
        own = self._log_times[rows] - self._facts[rows, 0]
        others = np.array(
            [
                (mean * count - residual) / (count - 1) if count > 1 else overall
                for residual, (mean, count) in zip(own, (known[self._seeds[row]] for row in rows.tolist()), strict=True)
            ]
        )
        regressor = HistGradientBoostingRegressor(max_iter=200, learning_rate=0.08, random_state=0)
        # One thread: each step is so short that several mostly wait for each other, ten times as long on busy cores.
        with threadpool_limits(1, user_api="openmp"):
            return regressor.fit(np.column_stack([self._facts[rows], others]), own - others)

    @staticmethod
    def _log_time(regressor: Any, facts: NDArray[np.float64], ratios: NDArray[np.float64]) -> NDArray[np.float64]:
        return facts[:, 0] + ratios + regressor.predict(np.column_stack([facts, ratios]))


def _facts(kernel: GeneratedKernel, recipe: LaunchRecipe, device: Device) -> list[float]:
    """What is known of a launch before it runs; the logarithm of its estimated time first."""
    names = kernel.names(recipe.ndrange.global_size, recipe.ndrange.local_size, sizes_of(kernel, recipe.sizes))
    communication, order, trips = kernel.family.split("/")
    sizes = (
        *work_of_item(kernel, names), group_operations(kernel, names), buffer_bytes(kernel, names), names["items"],
        names["groups"], names["L"], recipe.ndrange.local_size[0], kernel.local_item_bytes,
    )  # fmt: skip
    kinds = (
        COMMUNICATIONS.index(communication),
        ORDERS.index(order),
        TRIPS.index(trips),
        kernel.structure.dims,
        kernel.structure.value.width,
        _FILLS.index(fill_of(device, recipe.ndrange, demands_of(kernel))),
        names["L"] % device.compute.sub_group_size,
    )
    return [math.log(estimate_s(kernel, names, device)), *(math.log1p(abs(size)) for size in sizes), *map(float, kinds)]
