"""What the applications find, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfvec.apply.evaluating import NEW_DEVICE_SPLITS, SUBSETS
from perfvec.apply.predictors import MODEL
from perfvec.report.tables import Column, Table
from perfvec.units import format_bytes, format_percent, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from perfvec.apply.accuracy import AllSplits
    from perfvec.apply.calibrating import CalibrationResult
    from perfvec.apply.devices import DeviceEntry
    from perfvec.apply.evaluating import EvaluationRow
    from perfvec.apply.predicting import Prediction
    from perfvec.apply.training import TrainingResult
    from perfvec.arch.measured import MeasuredTime
    from perfvec.corpus.inference import InferredLaunch
    from perfvec.trace_data import TraceSummary

KNOWN_BY = {
    "real": "measured launches",
    "calibrated": "your measured launches",
    "simulated": "timing model",
    "datasheet": "data sheet",
}
_NONE = "-"


def _numbers(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(title=title, is_number=True) for title in titles)


def prediction_table(predictions: Sequence[Prediction]) -> Table:
    """Predicted times and their intervals, with the measured times beside them where there are any."""
    interval = f"{100 * predictions[0].confidence:g} % interval" if predictions else "interval"
    columns = [Column(title="device"), *_numbers("predicted", interval), Column(title="device known by")]
    has_measured = any(item.measured_s is not None for item in predictions)
    if has_measured:
        columns[3:3] = _numbers("measured", "error")
    rows: list[tuple[str, ...]] = []
    for item in predictions:
        ends = f"{format_time(item.low_s)} to {format_time(item.high_s)}"
        row = [item.device, format_time(item.kernel_time_s), ends, KNOWN_BY[item.kind]]
        if has_measured:
            row[3:3] = _compared(item.kernel_time_s, item.measured_s)
        rows.append(tuple(row))
    return Table(columns=tuple(columns), rows=tuple(rows))


def calibration_table(result: CalibrationResult) -> Table:
    """What a calibration came to, and what more of it would bring."""
    rows = [
        ("device", result.device),
        ("launches measured", str(result.num_measured)),
        *([("failed", str(result.num_failed))] if result.num_failed else []),
        *([("wall time", format_time(result.wall_s))] if result.wall_s else []),
        *((f"expected error {label}", format_percent(error)) for label, error in result.expected_errors),
        *(("suspicious", text) for text in result.flags),
        ("row", str(result.path)),
    ]
    return Table(columns=(Column(title="calibration"), Column(title="")), rows=tuple(rows))


def _compared(predicted_s: float, measured_s: float | None) -> tuple[str, str]:
    if measured_s is None:
        return _NONE, _NONE
    return format_time(measured_s), f"{100 * (predicted_s / measured_s - 1):+.1f} %"


def device_table(entries: Sequence[DeviceEntry]) -> Table:
    """All devices."""
    columns = (
        *(Column(title=title) for title in ("device", "vendor", "type", "architecture")),
        *_numbers("year"),
        Column(title="known by"),
        *_numbers("launches", "expected error"),
        Column(title="other names"),
    )
    return Table(
        columns=columns,
        rows=tuple(
            (
                item.name,
                item.vendor,
                item.type,
                item.architecture,
                str(item.year),
                KNOWN_BY[item.kind] + _fitted(item),
                str(item.num_measured_launches or _NONE),
                _NONE if item.expected_error != item.expected_error else format_percent(item.expected_error),
                ", ".join(item.aliases),
            )
            for item in entries
        ),
    )


def _fitted(item: DeviceEntry) -> str:
    is_told = item.kind == "simulated" and item.num_simulated_launches
    return f" on {item.num_simulated_launches} launches" if is_told else ""


def measured_table(time: MeasuredTime) -> Table:
    """One measured time."""
    return Table(
        columns=(Column(title="device"), *_numbers("kernel time", "spread", "repeats", "launch overhead")),
        rows=(
            (
                time.device,
                format_time(time.kernel_time_s),
                _NONE if time.spread != time.spread else format_percent(time.spread),
                str(time.num_repeats),
                format_time(time.launch_overhead_s),
            ),
        ),
    )


def trace_table(trace: TraceSummary, path: Path) -> Table:
    """What a trace came to."""
    context = trace.context
    rows = (
        ("kernel", trace.launch.kernel_name),
        ("work-groups", f"{len(set(trace.sub_groups['work_group'].tolist()))} of {context.num_work_groups} traced"),
        ("sub-groups", f"{len(trace.sub_groups)} traced"),
        ("instructions of a sub-group", f"{context.mean_instructions:.0f} on average"),
        ("instructions of the launch", f"{trace.num_launch_instructions:.3g}"),
        ("executed", f"{trace.num_executed:,} sub-group instructions"),
        ("taken by weight", f"{trace.num_weighted:,}"),
        ("cut off", context.caveat or "nothing"),
        ("distinct windows", str(trace.num_windows)),
        ("memory touched", format_bytes(context.footprint_bytes)),
        ("written to", f"{path} ({format_bytes(path.stat().st_size)})"),
    )
    return Table(columns=(Column(title="trace"), Column(title="")), rows=rows)


def evaluation_table(rows: Sequence[EvaluationRow], *, title: str = "") -> Table:
    """All figures of a split, device after device, so that predictors stand below each other."""
    columns = (
        *(Column(title=head) for head in ("device", "subset", "predictor")),
        *_numbers("launches", "MAPE", "median", "p90", "within 25 %", "rank corr.", "worst"),
        Column(title="worst kernel"),
    )
    subsets = list(SUBSETS)
    ordered = sorted(rows, key=lambda row: (row.device, subsets.index(row.subset)))  # stable: predictors stay in order
    return Table(
        columns=columns,
        rows=tuple(
            (
                row.device,
                row.subset,
                row.predictor,
                str(row.num_launches),
                *_figures(row),
            )
            for row in ordered
        ),
        title=title,
    )


def accuracy_tables(found: AllSplits) -> list[Table]:
    """A table for each split: all figures of the model, and beside them the mean and median errors of the others."""
    groups: dict[str, dict[tuple[str, int, str], dict[str, EvaluationRow]]] = {}
    for row in found.rows:
        place = (row.device, row.num_measured, row.subset)
        groups.setdefault(row.split, {}).setdefault(place, {})[row.predictor] = row
    others = [name for name in dict.fromkeys(row.predictor for row in found.rows) if name != MODEL]
    columns = (
        Column(title="device"),
        Column(title="measured there", is_number=True),
        Column(title="subset"),
        *_numbers("launches", "MAPE", "median", "p90", "within 25 %", "rank corr.", "worst"),
        Column(title="worst kernel"),
        *_numbers(*(f"{name}: MAPE, median" for name in others)),
    )
    return [
        Table(
            columns=columns,
            rows=tuple(_accuracy_row(place, rows, others) for place, rows in group.items()),
            title=split,
        )
        for split, group in groups.items()
    ]


def _accuracy_row(
    place: tuple[str, int, str], rows: Mapping[str, EvaluationRow], others: Sequence[str]
) -> tuple[str, ...]:
    device, num_measured, subset = place
    row = rows[MODEL]
    taken_for_new = row.split in NEW_DEVICE_SPLITS
    several = f" ({row.num_devices} devices)" if row.num_devices > 1 else ""
    return (
        device + several,
        str(num_measured) if taken_for_new else _NONE,
        subset,
        str(row.num_launches),
        *_figures(row),
        *(
            f"{format_percent(rows[name].mape)}, {format_percent(rows[name].median_ape)}" if name in rows else _NONE
            for name in others
        ),
    )


def _figures(row: EvaluationRow) -> tuple[str, ...]:
    return (
        format_percent(row.mape),
        format_percent(row.median_ape),
        format_percent(row.p90_ape),
        format_percent(row.share_within_25),
        _NONE if row.rank_correlation != row.rank_correlation else f"{row.rank_correlation:.2f}",
        format_percent(row.worst_ape),
        row.worst_kernel,
    )


def training_table(result: TrainingResult) -> Table:
    """What a training came to."""
    rows = (
        ("launches", str(result.num_launches)),
        ("left out: cannot be traced", str(result.num_left_out)),
        ("devices", ", ".join(result.device_names)),
        *((("simulated devices", str(result.num_simulated)),) if result.num_simulated else ()),
        ("model", str(result.weights_path)),
        ("account", str(result.result_path)),
    )
    return Table(columns=(Column(title="training"), Column(title="")), rows=rows)


def inference_table(inferred: InferredLaunch) -> Table:
    """What each argument of a kernel was taken for, and why; then what the kernel demands and what was repaired."""
    launch = inferred.launch
    rows = [(a.name, str(a.argument), a.role, a.reason) for a in inferred.arguments]
    rows += [("", "", "demand", text) for text in inferred.demands]
    rows += [("", "", "repaired", text) for text in inferred.repairs]
    sizes = f"global {','.join(map(str, launch.global_size))}, local {','.join(map(str, launch.local_size))}"
    offset = f", global offset {','.join(map(str, launch.global_offset))}" if any(launch.global_offset) else ""
    columns = tuple(Column(title=title) for title in ("parameter", "argument", "role", "reason"))
    return Table(columns=columns, rows=tuple(rows), title=f"{launch.kernel_name}: {sizes}{offset}")
