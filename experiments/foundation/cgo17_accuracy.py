"""How far predictions are from measured times of the CGO'17 kernels, none of which any predictor has seen.

Baselines are fitted to the launches of the suites that the model may be trained on. Legend: N launch, M device.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from experiments.foundation.cgo17_launches import SUITE, again
from perfvec.apply.dataset import make_dataset
from perfvec.apply.evaluating import LONG_S, check_unseen
from perfvec.apply.predictors import MODEL, TIMING_MODEL, predict_all, timing_times
from perfvec.errors import ModelError
from perfvec.metrics import absolute_percentage_errors, summarise
from perfvec.report.progress import OnProgress, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.apply.feature_cache import FeatureCache
    from perfvec.apply.splits import Holdout
    from perfvec.apply.trace_cache import TraceCache
    from perfvec.arch.measured import MeasuredTable
    from perfvec.corpus.outside import OutsideSource
    from perfvec.corpus.suite import SuiteLaunch
    from perfvec.model.weights import TrainedModel

BAR = 0.35  # mean error that the model is to reach
_WORST = 20  # launches that are named


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Launches that were measured.

    Attributes:
        entries: Those that the inference still gives.
        missing: Names of those that it no longer does, with the reason.
    """

    entries: tuple[SuiteLaunch, ...]
    missing: Mapping[str, str]


def measured_launches(
    sources: Sequence[OutsideSource],
    table: MeasuredTable,
    *,
    num_processes: int = 1,
    on_progress: OnProgress = silent,
) -> Measured:
    """Infer the launches of a table again, which holds no kernels, and compare digests.

    Args:
        sources: Where the kernels are.
        table: Times, with the names of launches.
        num_processes: Processes that share the work.
        on_progress: Hears how many sources are done.

    Raises:
        ModelError: No launch of the table is found again.
    """
    digests = {time.name: time.digest for time in table.times}
    found: dict[str, SuiteLaunch] = {}
    for done, entries in enumerate(again(sources, digests, num_processes=num_processes), start=1):
        found.update((entry.name, entry) for entry in entries)
        on_progress("inferring", done, len(sources))
    kept = {name: entry for name, entry in found.items() if entry.launch.digest == digests[name]}
    if not kept:
        raise ModelError(
            f"none of the {len(digests)} measured launches is what the inference gives for these {len(sources)} "
            "sources; give the sources that were measured, or measure again"
        )
    missing = {
        name: "the inference gives another launch" if name in found else "the inference gives no launch"
        for name in digests
        if name not in kept
    }
    return Measured(entries=tuple(kept.values()), missing=missing)


def evaluate(
    measured: Measured,
    table: MeasuredTable,
    training: Sequence[SuiteLaunch],
    training_table: MeasuredTable,
    model: TrainedModel,
    holdout: Holdout,
    *,
    cache: FeatureCache | None = None,
    traces: TraceCache | None = None,
    num_processes: int | None = None,
    on_progress: OnProgress = silent,
) -> dict[str, Any]:
    """Compare the model, the timing model and the baselines with measured times.

    Args:
        measured: Launches of the data set.
        table: Their times.
        training: Launches of the suites.
        training_table: Their times.
        model: A model that keeps to the holdout.
        holdout: Launches of the suites that baselines are not fitted to.
        cache: Where features are kept; the user's cache where it is None.
        traces: Where traces are kept; without it there is no timing model.
        num_processes: Processes that trace; 0 to trace in this one; None for one a core.
        on_progress: Hears how far it is.

    Returns:
        By device: rows of figures, errors by what was asked of the inference, and the worst launches.

    Raises:
        ModelError: The model has seen what was to be held out, or nothing is left to fit or compare.
    """
    check_unseen(model, [*training, *measured.entries], replace(holdout, suites=(*holdout.suites, SUITE)))
    seen = [training[row] for row in holdout.training_rows(training)]
    make = partial(make_dataset, cache=cache, num_processes=num_processes, on_progress=on_progress)
    test = make(measured.entries, table)
    names = [device.name for device in test.devices]
    known = make(seen, training_table, device_names=names)
    predicted = predict_all(model, known, test)
    if traces is not None:
        predicted[TIMING_MODEL] = timing_times(test.entries, test.devices, traces, on_progress=on_progress)
    return {
        "left_out": {item.name: item.reason for item in test.left_out},
        "missing": dict(measured.missing),
        "baselines_fitted_to": len(known.entries),
        "devices": {
            name: compare(
                test.entries,
                test.data.times[:, column],
                {predictor: times_NM[:, column] for predictor, times_NM in predicted.items()},
            )
            for column, name in enumerate(names)
        },
    }


def compare(
    entries: Sequence[SuiteLaunch],
    measured_N: NDArray[np.float64],
    predicted: Mapping[str, NDArray[np.float64]],
) -> dict[str, Any]:
    """Figures on one device.

    Args:
        entries: The launches.
        measured_N: Their times, seconds; NaN where there is none.
        predicted: Seconds `(N,)` by predictor, the model among them; NaN where it has none.
    """
    is_tied = np.array([entry.is_size_tied for entry in entries])
    is_measured = ~np.isnan(measured_N)
    is_long = np.nan_to_num(measured_N) > LONG_S
    subsets = {
        "all": is_measured,
        "over 20 us": is_measured & is_long,
        "sizes tied to the global size": is_measured & is_tied,
        "sizes not tied": is_measured & ~is_tied,
        "sizes not tied, over 20 us": is_measured & ~is_tied & is_long,
    }
    rows = [
        {"predictor": predictor, "subset": subset, **_figures(entries, measured_N, times_N, chosen)}
        for predictor, times_N in predicted.items()
        for subset, kept in subsets.items()
        if len(chosen := np.flatnonzero(kept & ~np.isnan(times_N)))
    ]
    return {
        "launches": int(is_measured.sum()),
        "kernels": len({entry.kernel for entry, kept in zip(entries, is_measured, strict=True) if kept}),
        "bar": {"mape": BAR, "is_met": bool(rows[0]["mape"] <= BAR)},
        "rows": rows,
        "mape_by_launch": _by(entries, measured_N, predicted, lambda entry: entry.parameters),
        "worst": _worst(entries, measured_N, predicted),
    }


def _figures(
    entries: Sequence[SuiteLaunch],
    measured_N: NDArray[np.float64],
    times_N: NDArray[np.float64],
    chosen: NDArray[np.int64],
) -> dict[str, Any]:
    kernels = [entries[row].kernel for row in chosen]
    summary = summarise(times_N[chosen], measured_N[chosen], [entries[row].name for row in chosen], kernels)
    errors = absolute_percentage_errors(times_N[chosen], measured_N[chosen])
    sizes = Counter(kernels)
    weights = np.array([1 / sizes[kernel] for kernel in kernels])
    figures = asdict(summary)
    if not summary.num_ranked_groups:
        figures["rank_correlation"] = None  # JSON has no NaN
    return {
        **figures,
        "mean_of_kernels": float(weights @ errors / weights.sum()),
        "median_log_ratio": float(np.median(np.log(np.maximum(times_N[chosen], 1e-12) / measured_N[chosen]))),
    }


def _by(
    entries: Sequence[SuiteLaunch],
    measured_N: NDArray[np.float64],
    predicted: Mapping[str, NDArray[np.float64]],
    key: Callable[[SuiteLaunch], str],
) -> dict[str, dict[str, float]]:
    """Mean error of each predictor, and how many launches there are, by groups."""
    groups: dict[str, list[int]] = defaultdict(list)
    for row, entry in enumerate(entries):
        if not np.isnan(measured_N[row]):
            groups[key(entry)].append(row)
    result: dict[str, dict[str, float]] = {}
    for group, rows in sorted(groups.items()):
        result[group] = {"launches": len(rows), "median_us": float(1e6 * np.median(measured_N[rows]))}
        for predictor, times_N in predicted.items():
            told = [row for row in rows if not np.isnan(times_N[row])]
            if told:
                result[group][predictor] = float(absolute_percentage_errors(times_N[told], measured_N[told]).mean())
    return result


def _worst(
    entries: Sequence[SuiteLaunch], measured_N: NDArray[np.float64], predicted: Mapping[str, NDArray[np.float64]]
) -> list[dict[str, Any]]:
    """Launches that the model is farthest from, with what the others say of them."""
    known = np.flatnonzero(~np.isnan(measured_N))
    errors = absolute_percentage_errors(predicted[MODEL][known], measured_N[known])
    return [
        {
            "name": entries[row].name,
            "measured_us": float(1e6 * measured_N[row]),
            **{
                f"{predictor}_us": float(1e6 * times_N[row])
                for predictor, times_N in predicted.items()
                if not np.isnan(times_N[row])
            },
        }
        for row in known[np.argsort(-errors)][:_WORST]
    ]
