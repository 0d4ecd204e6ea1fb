"""`python -m experiments.foundation.errors`: where the model fails, on kernels that it has not seen, on the H200.

Errors of launches of held-out families by suite, by measured time, by what the timing model says the time goes to, and
by mechanism: with it and without it. The timing model's own errors stand beside them: its times, by cause, are
coordinates of the vector, so what it has wrong the model must mend.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.foundation.launches import (
    DEVICE,
    RESULTS,
    Encoded,
    LaunchFigures,
    causes_of,
    encode,
    options_of,
    read_suites,
    run,
    write_json,
)
from perfvec.apply.models import load_model
from perfvec.apply.splits import load_holdout
from perfvec.arch.device import find_device
from perfvec.metrics import absolute_percentage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from perfvec.corpus.suite import SuiteLaunch

RESULTS_FILE = RESULTS / "errors.json"
_DEVICE = find_device(DEVICE)
_UNITS = _DEVICE.compute.compute_units
_L2_BYTES = _DEVICE.memory.l2.capacity_bytes
_NUM_WORST = 12
# Upper ends in seconds; the last has none.
_DECADES = {
    "below 10 µs": 1e-5,
    "10 to 100 µs": 1e-4,
    "0.1 to 1 ms": 1e-3,
    "1 to 10 ms": 1e-2,
    "10 ms and more": np.inf,
}
MECHANISMS: dict[str, Callable[[LaunchFigures, SuiteLaunch], bool]] = {
    "atomics take over 10 % of the time": lambda own, _: own.cause_shares["atomics"] > 0.1,
    "barriers take over 1 % of the time": lambda own, _: own.cause_shares["barrier"] > 0.01,
    "local memory takes over 10 % of the time": lambda own, _: own.cause_shares["local"] > 0.1,
    "waiting for arithmetic takes over 25 % of the time": lambda own, _: own.cause_shares["dependence"] > 0.25,
    "DRAM takes over 25 % of the time": lambda own, _: own.cause_shares["dram"] > 0.25,
    "the launch overhead takes over 50 % of the time": lambda own, _: own.cause_shares["launch"] > 0.5,
    "over 25 % of the lanes idle (divergence)": lambda own, _: own.divergence > 0.25,
    "over 8 sectors an access (scattered)": lambda own, _: own.sectors_per_access > 8.0,
    "occupancy below 50 %": lambda own, _: own.occupancy < 0.5,
    f"fewer work-groups than compute units ({_UNITS})": lambda own, _: own.work_groups < _UNITS,
    f"footprint beyond the L2 ({_L2_BYTES // 2**20} MiB)": lambda own, _: own.footprint_bytes > _L2_BYTES,
    "work does not follow from the global size": lambda _, entry: not entry.is_size_tied,
}


def error_figures(
    rows: NDArray[np.int64],
    entries: tuple[SuiteLaunch, ...],
    measured: NDArray[np.float64],
    predicted: NDArray[np.float64],
    timed: NDArray[np.float64],
) -> dict[str, float]:
    """Figures of some launches.

    Args:
        rows: Which.
        entries: The N launches.
        measured: Seconds, `(N,)`.
        predicted: The same by the model.
        timed: The same by the timing model.

    Returns:
        Mean, median and 90th percentile of |predicted − measured| ÷ measured; the median of predicted ÷ measured; the
        timing model's mean and median.
    """
    errors = absolute_percentage_errors(predicted[rows], measured[rows])
    of_timing = absolute_percentage_errors(timed[rows], measured[rows])
    return {
        "launches": len(rows),
        "families": len({entries[row].family for row in rows}),
        "mape": float(errors.mean()),
        "median": float(np.median(errors)),
        "p90": float(np.quantile(errors, 0.9)),
        "ratio": float(np.median(predicted[rows] / measured[rows])),
        "timing model mape": float(of_timing.mean()),
        "timing model median": float(np.median(of_timing)),
    }


def run_errors(encoded: Encoded) -> dict[str, Any]:
    """Errors of the unseen kernels that were measured, by group."""
    dataset, rows = encoded.dataset, encoded.unseen()
    column = dataset.data.device_names.index(DEVICE)
    rows = rows[~np.isnan(dataset.data.times[rows, column])]
    entries = tuple(dataset.entries[row] for row in rows)
    figures = [encoded.figures[row] for row in rows]
    measured = dataset.data.times[rows, column]
    predicted = encoded.programs_ND[rows] @ encoded.model.devices.row(DEVICE)
    timed = np.array([causes_of(dataset.data.launches[row]).sum() for row in rows])

    def of(groups: Iterable[str]) -> dict[str, dict[str, float]]:
        members: defaultdict[str, list[int]] = defaultdict(list)
        for place, group in enumerate(groups):
            members[group].append(place)
        return {
            group: error_figures(np.array(places), entries, measured, predicted, timed)
            for group, places in members.items()
        }

    everything = of("all" for _ in entries)["all"]
    kernels = of(f"{entry.suite}/{entry.kernel}" for entry in entries)
    mechanisms = {
        name: _in_order(
            of("with" if has(own, entry) else "without" for own, entry in zip(figures, entries, strict=True)),
            ("with", "without"),
        )
        for name, has in MECHANISMS.items()
    }
    return {
        "device": DEVICE,
        "all": everything,
        "suites": dict(sorted(of(entry.suite for entry in entries).items())),
        "times": _in_order(of(decade_of(time) for time in measured), _DECADES),
        "causes": dict(sorted(of(own.main_cause for own in figures).items(), key=lambda item: -item[1]["launches"])),
        "mechanisms": mechanisms,
        "worst kernels": dict(sorted(kernels.items(), key=lambda item: -item[1]["mape"])[:_NUM_WORST]),
    }


def decade_of(time_s: float) -> str:
    """Name of the group of launches that take so long."""
    return next(name for name, end in _DECADES.items() if time_s < end)


def _in_order(groups: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: groups[name] for name in names if name in groups}


def main() -> None:
    """Group the errors, and write the figures."""
    options = options_of(__doc__, RESULTS_FILE).parse_args()
    holdout, dataset = load_holdout(), read_suites(options.processes)
    unseen = dataset.subset(holdout.rows(dataset.entries, "unseen-kernel"))
    write_json(options.output, run_errors(encode(load_model(options.model), unseen, holdout)))


if __name__ == "__main__":
    sys.exit(run(main))
