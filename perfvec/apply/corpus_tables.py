"""What corpora hold, as tables and plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perfvec.apply.launch_features import CLASSES, FEATURES, LOGARITHMIC
from perfvec.report.plots import Panel
from perfvec.report.tables import Column, Table
from perfvec.units import format_bytes, format_percent, format_time

if TYPE_CHECKING:
    from pathlib import Path

    from perfvec.apply.balancing import Balanced
    from perfvec.apply.corpora import Built, Distributions
    from perfvec.apply.corpus_description import Description
    from perfvec.apply.corpus_measuring import Check, MeasureSummary


def built_table(built: Built, path: Path) -> Table:
    """What building a corpus came to."""
    corpus = built.corpus
    rows = (
        ("kernels", str(len(corpus.kernel_seeds))),
        ("launches", str(len(corpus))),
        ("devices", ", ".join(corpus.devices)),
        ("built", f"{built.launches_per_s:.0f} launches a second on one core"),
        ("written to", f"{path} ({format_bytes(built.num_bytes)})"),
    )
    return Table(columns=(Column(title="corpus"), Column(title="")), rows=rows)


def corpus_table(description: Description) -> Table:
    """What a corpus holds."""

    def shares(values: Mapping[str, float]) -> str:
        return ", ".join(f"{name} {format_percent(share)}" for name, share in values.items())

    largest = list(description.family_kernels.items())[:3]
    rows = (
        ("kernels", str(description.kernels)),
        ("launches", str(description.launches)),
        *((name, _device_line(item)) for name, item in description.devices.items()),
        ("families", f"{description.families}, such as {', '.join(f'{name} ({count})' for name, count in largest)}"),
        ("tied to the global size", format_percent(description.share_tied_to_global_size)),
        ("types", shares(description.type_shares)),
        ("vector widths", shares(description.width_shares)),
        ("dimensions", shares(description.dim_shares)),
        ("fill of the device", shares(description.fill_shares)),
        ("splits of generated", ", ".join(f"{name} {count}" for name, count in description.split_kernels.items())),
        ("suites", ", ".join(f"{name} {count}" for name, count in description.suites.items())),
    )
    return Table(columns=(Column(title="corpus"), Column(title="")), rows=rows)


def _device_line(item: Mapping[str, float]) -> str:
    if "median_s" not in item:
        return f"{item['launches']:.0f} launches meant for it"
    return (
        f"{item['launches']:.0f} times of {item['kernels']:.0f} kernels, median {format_time(item['median_s'])}, "
        f"under 10 µs {format_percent(item['under_10_us'])}, over 1 ms {format_percent(item['over_1_ms'])}"
    )


def distribution_table(found: Distributions) -> Table:
    """How launches behave, source beside source: 5th, 50th and 95th percentile of each feature."""
    sources = [source for source, items in found.features.items() if items]
    record: Any = found.record()
    quantiles = ("p5", "p50", "p95")
    rows = [
        (feature, *(f"{record[source]['quantiles'][feature][q]:.3g}" for source in sources for q in quantiles))
        for feature in FEATURES
    ]
    rows += [
        (f"share of {name}", *(cell for source in sources for cell in ("", _share_of(record[source], name), "")))
        for name in CLASSES
    ]
    columns = (
        Column(title="feature"),
        *(Column(title=f"{source} {q}", is_number=True) for source in sources for q in quantiles),
    )
    counts = ", ".join(f"{len(found.features[source])} of {source}" for source in sources)
    return Table(columns=columns, rows=tuple(rows), title=f"traced: {counts}; left out: {len(found.left_out)}")


def _share_of(record: Mapping[str, Any], name: str) -> str:
    return format_percent(record["class_shares"][name])


def distribution_panels(found: Distributions) -> list[Panel]:
    """The same as histograms."""
    sources = [source for source, items in found.features.items() if items]
    panels = [
        Panel(
            title=feature.replace("_", " "),
            values={source: found.values(source, feature) for source in sources},
            is_logarithmic=feature in LOGARITHMIC,
        )
        for feature in FEATURES
    ]
    panels += [
        Panel(
            title=f"share of {name}",
            values={source: [item.class_shares[name] for item in found.features[source]] for source in sources},
        )
        for name in CLASSES
    ]
    return panels


def measured_table(summary: MeasureSummary) -> Table:
    """What a run of measuring a corpus came to."""
    rows = [
        ("device", summary.device),
        ("launches", str(summary.num_launches)),
        ("measured", f"{summary.num_measured}, {summary.launches_per_s:.1f} a second"),
        ("known before", str(summary.num_known)),
        ("failed", str(summary.num_failed)),
        ("left for another run", str(summary.num_left)),
        ("kernels with a time", str(summary.num_kernels)),
        ("wall time", format_time(summary.wall_s)),
        ("device ran launches", format_percent(summary.busy_share)),
        ("device in a turn", format_percent(summary.turn_share)),
        ("processes", ", ".join(f"{what} {format_percent(share)}" for what, share in summary.worker_shares.items())),
        ("processes replaced", str(summary.num_restarts)),
        ("under 10 µs", format_percent(summary.share_under_10_us)),
        ("over 1 ms", format_percent(summary.share_over_1_ms)),
        ("table", summary.table),
    ]
    rows += [
        (f"failed: {reason}", f"{count}; {summary.examples[reason].splitlines()[0]}")
        for reason, count in summary.failures.items()
    ]
    return Table(columns=(Column(title="measured"), Column(title="")), rows=tuple(rows))


def check_table(check: Check) -> Table:
    """How times of a table compare with new ones."""
    record: Any = check.record()
    rows = (
        ("device", check.device),
        ("timed again", str(record["launches"])),
        ("failed", str(record["failed"])),
        ("median ratio", f"{record['median_ratio']:.4f}"),
        ("5th to 95th percentile", f"{record['p5']:.3f} to {record['p95']:.3f}"),
        ("within 5 %", format_percent(record["share_within_5_percent"])),
    )
    return Table(columns=(Column(title="new ÷ old time"), Column(title="")), rows=rows)


def balance_table(balanced: Balanced, path: Path) -> Table:
    """What balancing came to: launches by time, before and with the proposed ones."""
    record: Any = balanced.record()
    rows = [
        (
            f"{format_time(item['from_s'])} to {format_time(item['to_s'])}",
            *(str(item[name]) for name in ("before", "wanted", "expected")),
        )
        for item in record["bins"]
    ]
    rows.append(("evenness", f"{record['evenness_before']:.3f}", "", f"{record['evenness_expected']:.3f}"))
    title = (
        f"{record['device']}: {record['times']} times, {record['outliers']} outliers; regression: median error "
        f"{format_percent(record['regression_median_error'])}, rank correlation "
        f"{record['regression_rank_correlation']:.2f}; {record['proposed']} launches proposed in {path}"
    )
    columns = (
        Column(title="kernel time"),
        *(Column(title=name, is_number=True) for name in ("before", "wanted", "expected")),
    )
    return Table(columns=columns, rows=tuple(rows), title=title)
