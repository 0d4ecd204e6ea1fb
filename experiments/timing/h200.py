"""`python -m experiments.timing.h200 -o FOLDER`: the timing model against a measured GPU.

The configuration is what `timing_config` makes of the device file: facts and published microbenchmark figures. Ten free
parameters are then fitted to half of the kernel families and tested on the other half, and on the project's own unseen
families (`experiments/splits/unseen-kernel.toml`), with a fit that has seen none of those. Printed, and written to
`results.json`: errors untuned and fitted, by suite and by the mechanism that takes most of the time, the worst
launches, and what switching each mechanism off does. `fitted.toml` has the parameters, `scatter.png` predicted over
measured times.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.stats import spearmanr

from experiments.timing.fit import Fit, Free, fit
from perfvec.apply.splits import load_holdout
from perfvec.apply.trace_cache import TraceCache
from perfvec.arch.device import find_device
from perfvec.arch.measured import load_measured
from perfvec.arch.timing import CAUSES, MECHANISMS, TimingConfig, Workload, read_workload, simulate
from perfvec.arch.timing.of_device import timing_config
from perfvec.corpus.suite import SuiteLaunch, load_suites
from perfvec.errors import PerfVecError
from perfvec.files import whole_file
from perfvec.metrics import summarise
from perfvec.report.plots import plot_scatter

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONG_S = 20e-6
NUM_WORST = 30
# What neither the data sheet nor a published microbenchmark settles.
FREE = (
    Free(field="overlap_exponent", low=1.2, high=16.0, why="how bounds hide behind each other is the model's own"),
    Free(field="l1_lines_per_cycle", low=0.25, high=8.0, why="tags that the L1 looks up a cycle are not published"),
    Free(field="branch_latency_cycles", low=0.5, high=40.0, why="of divergent and uniform branches together"),
    Free(field="address_instructions", low=0.05, high=4.0, why="how many remain after the vendor's compiler"),
    Free(field="special_instructions", low=2.0, high=200.0, why="the vendor's library of functions is not public"),
    Free(field="fp64_special_instructions", low=4.0, high=400.0, why="the same"),
    Free(field="l2_atomic_same_line_cycles", low=0.25, high=32.0, why="not published for this device"),
    Free(field="l2_atomics_per_cycle", low=1.0, high=2000.0, why="assumed: one for each sector that the L2 delivers"),
    Free(field="group_dispatch_s", low=2e-11, high=4e-9, why="assumed in the device file: one a cycle"),
    Free(field="dram_latency_s", low=2.5e-7, high=1.2e-6, why="published for one warp on an idle device"),
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A launch with its measured time."""

    entry: SuiteLaunch
    time_s: float


def chance(text: str) -> float:
    """A number from 0 to below 1 that follows from a text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:13], 16) / 16**13


def measured_launches(device_name: str, limit: int | None) -> list[Measured]:
    """Launches measured on a device, in an order by chance that a limit cuts; each launch once."""
    times = {item.digest: item.kernel_time_s for item in load_measured().times if item.device == device_name}
    entries = {entry.launch.digest: entry for entry in load_suites() if entry.launch.digest in times}
    order = sorted(entries, key=lambda digest: hashlib.sha256(digest.encode()).hexdigest())
    return [Measured(entry=entries[digest], time_s=times[digest]) for digest in order[:limit]]


def is_first_half(family: str) -> bool:
    """In which half a kernel family is; all its launches in all suites go together."""
    return chance(f"timing/{family}") < 0.5


def figures(predicted_s: NDArray[np.float64], rows: Sequence[Measured]) -> dict[str, float]:
    """All figures of a set of launches."""
    measured_s = np.array([row.time_s for row in rows])
    names = [row.entry.name for row in rows]
    summary = summarise(predicted_s, measured_s, names, [f"{r.entry.suite}/{r.entry.kernel}" for r in rows])
    rank = float(np.asarray(spearmanr(predicted_s, measured_s))[0]) if len(rows) > 2 else float("nan")
    return {
        "launches": len(rows),
        "mape": summary.mape,
        "median_ape": summary.median_ape,
        "p90_ape": summary.p90_ape,
        "share_within_25": summary.share_near,
        "rank_correlation": rank,
        "rank_correlation_within_kernels": summary.rank_correlation,
        "median_log_ratio": float(np.median(np.log(predicted_s / measured_s))),
    }


def by_group(
    predicted_s: NDArray[np.float64], rows: Sequence[Measured], group_of: Callable[[int], str]
) -> dict[str, dict[str, float]]:
    """Figures of groups of launches, by name."""
    members: dict[str, list[int]] = defaultdict(list)
    for row in range(len(rows)):
        members[group_of(row)].append(row)
    return {
        name: figures(predicted_s[chosen], [rows[row] for row in chosen]) for name, chosen in sorted(members.items())
    }


@final
class Workloads:
    """Workloads of launches that several fits share."""

    def __init__(self, cache: TraceCache) -> None:
        """Begin with none; `cache` has the traces."""
        self._cache = cache
        self._known: dict[str, Workload | None] = {}

    def get(self, row: Measured) -> Workload | None:
        """The workload of a launch; None where it cannot be traced."""
        digest = row.entry.launch.digest
        if digest not in self._known:
            try:
                self._known[digest] = read_workload(self._cache.get(row.entry.launch))
            except PerfVecError as error:
                sys.stderr.write(f"{row.entry.name}: {error}\n")
                self._known[digest] = None
        return self._known[digest]


def fitted_on(launches: Sequence[Measured], workloads: Workloads, start: TimingConfig, most: int) -> Fit:
    """A fit to so many launches at most, the first ones."""
    found = [(workload, row.time_s) for row in launches[:most] if (workload := workloads.get(row)) is not None]
    return fit([workload for workload, _ in found], np.array([time_s for _, time_s in found]), start, FREE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Simulated times of N launches.

    Attributes:
        rows: The launches.
        by_config: `(N, M)`.
        causes: Where the time of the first configuration went, `(N, K)`.
        without: With each mechanism switched off, for the first launches.
    """

    rows: list[Measured]
    by_config: NDArray[np.float64]
    causes: NDArray[np.float64]
    without: dict[str, NDArray[np.float64]]


def simulate_all(
    launches: Sequence[Measured], cache: TraceCache, configs: Sequence[TimingConfig], num_switched: int
) -> Times:
    """Simulate each launch; the first `num_switched` also without each mechanism of the first configuration."""
    rows: list[Measured] = []
    by_config: list[NDArray[np.float64]] = []
    causes: list[NDArray[np.float64]] = []
    without: dict[str, list[float]] = defaultdict(list)
    for row in launches:
        try:
            workload = read_workload(cache.get(row.entry.launch))
            found = simulate(workload, configs)
        except PerfVecError as error:
            sys.stderr.write(f"{row.entry.name}: {error}\n")
            continue
        rows.append(row)
        by_config.append(found.kernel_time_s)
        causes.append(found.breakdown_s[0])
        for mechanism in MECHANISMS if len(rows) <= num_switched else ():
            off = simulate(workload, configs[:1], without=[mechanism])
            without[mechanism].append(float(off.kernel_time_s[0]))
    return Times(
        rows=rows,
        by_config=np.array(by_config),
        causes=np.array(causes),
        without={mechanism: np.array(times) for mechanism, times in without.items()},
    )


def by_unseen_fit(times: Times) -> NDArray[np.float64]:
    """Time of each launch by the fit to the half that its family is not in, `(N,)`."""
    in_first = np.array([is_first_half(row.entry.family) for row in times.rows])
    return np.where(in_first, times.by_config[:, 2], times.by_config[:, 1])


def report(times: Times, holdout_digests: frozenset[str]) -> dict[str, Any]:
    """All figures. Configurations are: untuned; fitted to the first half, to the second, to the holdout's rest."""
    rows = times.rows
    untuned, first, second, rest = times.by_config.T
    in_first = np.array([is_first_half(row.entry.family) for row in rows])
    unseen = by_unseen_fit(times)
    is_long = np.array([row.time_s > LONG_S for row in rows])
    held_out = np.array([row.entry.launch.digest in holdout_digests for row in rows])

    def part(predicted: NDArray[np.float64], chosen: NDArray[np.bool_]) -> dict[str, float]:
        return figures(predicted[chosen], [row for row, is_in in zip(rows, chosen, strict=True) if is_in])

    everything = np.ones(len(rows), dtype=np.bool_)
    beyond_launch = times.causes.copy()
    beyond_launch[:, CAUSES.index("launch")] = 0.0
    main = [CAUSES[place] for place in beyond_launch.argmax(axis=1)]
    errors = np.abs(np.log(unseen / np.array([row.time_s for row in rows])))
    worst = np.argsort(-errors)[:NUM_WORST]
    num_switched = len(next(iter(times.without.values()), ()))
    return {
        "untuned": {"all": part(untuned, everything), "over 20 us": part(untuned, is_long)},
        "fitted, unseen families (two halves, each by the fit to the other)": {
            "all": part(unseen, everything),
            "over 20 us": part(unseen, is_long),
            "first half": part(second, in_first),
            "second half": part(first, ~in_first),
        },
        "unseen-kernel split": {
            "untuned": part(untuned, held_out),
            "fitted to the other families": part(rest, held_out),
            "fitted, over 20 us": part(rest, held_out & is_long),
        },
        "fitted, by suite": by_group(unseen, rows, lambda row: rows[row].entry.suite),
        "fitted, by what takes most of the time": by_group(unseen, rows, lambda row: main[row]),
        "untuned, without a mechanism": {
            **({"none switched off": figures(untuned[:num_switched], rows[:num_switched])} if num_switched else {}),
            **{
                mechanism: figures(off, rows[:num_switched])
                | {f"p{q}_time_ratio": float(np.percentile(off / untuned[:num_switched], q)) for q in (10, 50, 90)}
                for mechanism, off in times.without.items()
            },
        },
        "worst": [
            {
                "launch": rows[row].entry.name,
                "measured_s": rows[row].time_s,
                "fitted_s": float(unseen[row]),
                "untuned_s": float(untuned[row]),
                "most of it": main[row],
            }
            for row in worst
        ],
    }


def write_parameters(path: Path, device: str, fits: dict[str, Fit], start: TimingConfig) -> None:
    """Write the fitted parameters, one table a fit."""
    lines = [
        f"# Free parameters of the timing model for {device}, made by experiments.timing.h200. Not used by default."
    ]
    for name, found in fits.items():
        lines += ["", f'["{name}"]']
        for item in FREE:
            before = getattr(start, item.field)
            lines.append(f"{item.field} = {getattr(found.config, item.field):.4g}  # {before:.4g} untuned; {item.why}")
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def show(results: dict[str, Any]) -> None:
    """Print the figures as a table."""

    def lines(tree: dict[str, Any], name: str = "") -> None:
        if "mape" in tree:
            percent = (f"{100 * tree[key]:6.1f} %" for key in ("mape", "median_ape", "p90_ape"))
            sys.stdout.write(
                "{:62s} {:5d} launches  MAPE {}  median {}  p90 {}  rank {:.3f}\n".format(
                    name, tree["launches"], *percent, tree["rank_correlation"]
                )
            )
            return
        for key, value in tree.items():
            if isinstance(value, dict):
                lines(value, f"{name} / {key}" if name else key)

    lines(results)
    for item in results["worst"]:
        times = (f"{name} {1e6 * item[f'{name}_s']:9.1f} us" for name in ("measured", "fitted", "untuned"))
        sys.stdout.write(f"{item['launch']:80.80s} {', '.join(times)}, {item['most of it']}\n")


def main() -> int:
    """Fit, simulate, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="for results")
    parser.add_argument("--device", default="nvidia-h200", help="a device with measured times")
    parser.add_argument("--cache", type=Path, help="folder of caches instead of the user's")
    parser.add_argument("--launches", type=int, metavar="N", help="only so many launches, chosen by chance")
    parser.add_argument("--fit-launches", type=int, default=200, metavar="N", help="most launches of a fit")
    parser.add_argument("--switched", type=int, default=300, metavar="N", help="launches that mechanisms are off for")
    options = parser.parse_args()
    begin = time.perf_counter()
    options.output.mkdir(parents=True, exist_ok=True)
    cache = TraceCache.open(options.cache)
    device = find_device(options.device)
    start = timing_config(device)
    launches = measured_launches(device.name, options.launches)
    entries = [item.entry for item in launches]
    holdout_rows = load_holdout().rows(entries, "unseen-kernel")
    holdout_digests = frozenset(entries[row].launch.digest for row in holdout_rows)
    parts = {
        "first half": [row for row in launches if is_first_half(row.entry.family)],
        "second half": [row for row in launches if not is_first_half(row.entry.family)],
        "all but unseen-kernel": [row for row in launches if row.entry.launch.digest not in holdout_digests],
    }
    workloads = Workloads(cache)
    fits: dict[str, Fit] = {}
    for name, chosen in parts.items():
        fits[name] = fitted_on(chosen, workloads, start, options.fit_launches)
        sys.stderr.write(f"fit to {name}: {fits[name].loss_before:.3f} -> {fits[name].loss_after:.3f}\n")
    write_parameters(options.output / "fitted.toml", device.name, fits, start)
    configs = [start, *(found.config for found in fits.values())]
    times = simulate_all(launches, cache, configs, options.switched)
    results = report(times, holdout_digests)
    results["device"] = device.name
    results["seconds"] = time.perf_counter() - begin
    results["fits"] = {
        name: {item.field: getattr(found.config, item.field) for item in FREE}
        | {"mean_abs_log_before": found.loss_before, "mean_abs_log_after": found.loss_after}
        for name, found in fits.items()
    }
    results["untuned configuration"] = asdict(start)
    with whole_file(options.output / "results.json") as temporary:
        temporary.write_text(json.dumps(results, indent=1), encoding="utf-8")
    plot_scatter(
        options.output / "scatter.png",
        np.array([row.time_s for row in times.rows]),
        {"untuned": times.by_config[:, 0], "fitted, unseen families": by_unseen_fit(times)},
        title=f"Timing model on {device.name}",
    )
    show(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
