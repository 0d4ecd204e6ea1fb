"""`python -m experiments.foundation.card`: write measured figures into the README, the model card and docs/vectors.md.

Each page has places `<!-- begin NAME -->` to `<!-- end NAME -->`; what stands between them is made anew from the JSON
files in experiments/foundation/results and from the weights, so that no figure is copied by hand. The files come from

    perfvec evaluate --all --json > experiments/foundation/results/evaluate.json
    python -m experiments.foundation.errors
    python -m experiments.foundation.probes
    python -m experiments.foundation.maps
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.foundation.launches import DEVICE, DOCS, RESULTS, run
from experiments.foundation.probes import LEARNED
from perfvec.apply.models import load_model, model_path
from perfvec.apply.simulated import PREFIX
from perfvec.errors import ConfigError, FormatError
from perfvec.files import whole_file
from perfvec.report.tables import Column, Table, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

EVALUATION = "evaluate.json"
_PLACE = r"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)"
# Predictors beside the model's in the table of results.
_BESIDE = ("timing model", "random forest", "datasheet roofline")
_SUBSETS = ("all", "over 20 us", "sizes not tied")
# Of devices that are taken for new, the table has all launches together, before and after so many were measured there.
_COUNTS = (0, 10)
_NEW = ("unseen-device", "both-unseen")
_PREDICTORS = ("perfvec", *_BESIDE)


def percent(value: float | None) -> str:
    """A fraction in per cent; "-" where there is none."""
    return "-" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """A table in Markdown whose first columns are texts and the others numbers."""
    columns = tuple(Column(title=head, is_number=place >= texts) for place, head in enumerate(heads))
    return markdown(Table(columns=columns, rows=tuple(tuple(row) for row in rows)))


def results_text(evaluation: Mapping[str, Any]) -> str:
    """The table of results: one row a split, device and subset, the other predictors' mean error beside the model's."""
    found: dict[tuple[str, str, int, str], dict[str, Mapping[str, Any]]] = {}
    for row in evaluation["rows"]:
        split, num_measured, subset = row["split"], row["num_measured"], row["subset"]
        if (subset == "all" and num_measured in _COUNTS) if split in _NEW else subset in _SUBSETS:
            found.setdefault((split, row["device"], num_measured, subset), {})[row["predictor"]] = row
    heads = ("split", "device", "measured there", "launches", "MAPE", "median", "p90", "within 25 %", "rank corr.")
    beside = [name for name in _BESIDE if any(name in rows for rows in found.values())]
    lines = []
    for (split, device, num_measured, subset), rows in found.items():
        if (own := rows.get("perfvec")) is None:
            continue
        what = "" if subset == "all" else f", {subset}"
        rank = own["rank_correlation"]
        lines.append(
            (
                split,
                device,
                str(num_measured) if split in _NEW else "-",
                f"{own['num_launches']}{what.replace('us', 'µs')}",
                *(percent(own[name]) for name in ("mape", "median_ape", "p90_ape", "share_within_25")),
                "-" if rank is None or math.isnan(rank) else f"{rank:.2f}",
                *(percent(rows[name]["mape"]) if name in rows else "-" for name in beside),
            )
        )
    made = table((*heads, *(f"{name}, MAPE" for name in beside)), lines, texts=2)
    return "\n\n".join((made, *evaluation["notes"]))


def unseen_text(evaluation: Mapping[str, Any]) -> str:
    """Kernels whose family was left out, on measured devices; the GPU's by groups of launches, too."""
    shown = [
        row
        for row in evaluation["rows"]
        if (row["split"], row["kind"]) == ("unseen-kernel", "real")
        and row["predictor"] in _PREDICTORS
        and (row["subset"] == "all" or (row["device"] == DEVICE and row["subset"] in _SUBSETS))
    ]
    shown.sort(
        key=lambda row: (
            row["device"] != DEVICE,
            row["device"],
            _SUBSETS.index(row["subset"]),
            _PREDICTORS.index(row["predictor"]),
        )
    )
    lines = [
        (
            row["device"],
            f"{row['num_launches']}" + ("" if row["subset"] == "all" else f", {row['subset'].replace('us', 'µs')}"),
            row["predictor"],
            *(percent(row[name]) for name in ("mape", "median_ape", "p90_ape")),
            f"{percent(row['worst_ape'])}, `{row['worst_kernel']}`",
        )
        for row in shown
    ]
    heads = ("device", "launches", "predictor", "MAPE", "median", "90th percentile", "worst case")
    return table(heads, lines, texts=3)


def errors_text(errors: Mapping[str, Any]) -> str:
    """Where the model fails: tables by suite, time, cause and mechanism, and the worst kernels."""
    everything = errors["all"]
    heads = ("launches", "families", "MAPE", "median", "p90", "predicted ÷ measured, median", "timing model, MAPE")

    def cells(own: Mapping[str, Any]) -> tuple[str, ...]:
        return (
            f"{own['launches']}",
            f"{own['families']}",
            *(percent(own[name]) for name in ("mape", "median", "p90")),
            f"{own['ratio']:.2f}",
            percent(own["timing model mape"]),
        )

    parts = [
        f"{everything['launches']} launches of {everything['families']} families on `{errors['device']}`: MAPE "
        f"{percent(everything['mape'])}, median {percent(everything['median'])}; the timing model "
        f"{percent(everything['timing model mape'])} and {percent(everything['timing model median'])}."
    ]
    for head, key in (
        ("suite", "suites"),
        ("measured time", "times"),
        ("most of the time goes to", "causes"),
        ("worst kernels", "worst kernels"),
    ):
        parts.append(table((head, *heads), [(name, *cells(own)) for name, own in errors[key].items()]))
    both = [
        (name if has == "with" else "", has, *cells(own))
        for name, pair in errors["mechanisms"].items()
        for has, own in pair.items()
    ]
    parts.insert(4, table(("mechanism", "", *heads), both, texts=2))
    return "\n\n".join(parts)


def probes_text(probes: Mapping[str, Any]) -> str:
    """R² of the probes, those of the learned coordinates with their interval."""
    inputs = next(iter(probes["probes"].values()))
    heads = [f"{name} ({probes['inputs'][name]})" if name in probes["inputs"] else name for name in inputs]

    def cell(name: str, own: Mapping[str, float]) -> str:
        return f"{own['r2']:.2f}" + (f" ({own['low']:.2f} to {own['high']:.2f})" if name == LEARNED else "")

    rows = [(target, *(cell(name, own) for name, own in found.items())) for target, found in probes["probes"].items()]
    training, held_out = probes["training"], probes["held out"]
    told = (
        f"Fitted to {training['launches']} launches of {training['families']} families, judged on "
        f"{held_out['launches']} launches\nof {held_out['families']} others; R², in brackets the 95 % interval when "
        "those families are drawn again."
    )
    return told + "\n\n" + table(("read back", *heads), rows)


def maps_text(maps: Mapping[str, Any]) -> str:
    """What is near to what, and what the axes of the device map go with."""
    programs, devices = maps["programs"], maps["devices"]
    alike = [
        (name, *(percent(programs[name][key]) for key in ("nearest", "chance", "most common")))
        for name in ("main cause", "main cause, by learned coordinates alone", "suite")
    ]
    facts = [(fact, f"{own['first']:.2f}", f"{own['second']:.2f}") for fact, own in devices["axes"].items()]
    moved = [(name, *(f"{own[q]:.2f}" for q in ("0.1", "0.5", "0.9"))) for name, own in devices["moved"].items()]
    return "\n\n".join(
        (
            f"Of {programs['launches']} launches, how often the nearest of another kernel family has the same label:",
            table(("label", "nearest", "one at random", "most common label"), alike),
            "Spearman's correlation of the device map's axes with facts of the GPUs that have a device file:",
            table(("fact", "first axis", "second axis"), facts),
            "By what factor measured times have moved the coordinates of a device from where its data sheet put them\n"
            "(quantiles over the coordinates):",
            table(("device", "10 %", "median", "90 %"), moved),
        )
    )


def weights_text(path: Path | None) -> str:
    """What the file of weights says of itself."""
    model, file = load_model(path), model_path(path)
    config, schema = model.config, model.schema
    named = [name.startswith(PREFIX) for name in model.device_names]
    kinds = Counter(
        "shipped GPUs as the timing model has them" if is_named else f"{kind} devices"
        for kind, is_named in zip(model.device_kinds, named, strict=True)
    )
    parameters = sum(item.numel() for item in model.encoder.parameters())
    layout = model.encoder.layout
    facts = {
        "release that trained it": model.code_version,
        "size of the file": f"{file.stat().st_size / 2**20:.2f} MiB",
        "encoder": f"`{config.model.encoder}`, {parameters:,} parameters",
        "coordinates of a vector": f"{layout.dim}: {layout.dim - layout.num_learned} resources, {layout.num_learned} "
        "learned",
        "versions": f"features {schema.features_version}, resources {schema.resources_version}",
        "rows of the device table": ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
        "kernel families trained on": f"{len(model.families)}, and {len(model.validation_families)} that only chose "
        "the pass",
        "seed, passes at most, launches a step": f"{config.seed}, {config.epochs}, {config.batch_launches}",
    }
    return table(("", ""), facts.items(), texts=2)


def fill(page: Path, name: str, text: str) -> None:
    """Put a text between a page's marks.

    Raises:
        ConfigError: The page cannot be read, or has no such place.
    """
    try:
        found = page.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {page}: {error}; give the folder of the pages with --docs") from error
    place = re.compile(_PLACE.format(name=re.escape(name)), re.DOTALL)
    if len(place.findall(found)) != 1:
        raise ConfigError(
            f"{page} has {len(place.findall(found))} places for {name!r}; write <!-- begin {name} --> and "
            f"<!-- end {name} --> once, on lines of their own"
        )
    with whole_file(page) as temporary:
        temporary.write_text(place.sub(lambda mark: f"{mark[1]}{text}\n{mark[2]}", found), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Results of a command.

    Raises:
        FormatError: They are missing or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read the results {path}: {error}; make them again: see --help") from error


# Page, place, file of results, and what makes a text of it.
_PLACES: tuple[tuple[str, str, str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("../README.md", "unseen kernels", EVALUATION, unseen_text),
    ("model-card.md", "results", EVALUATION, results_text),
    ("model-card.md", "errors", "errors.json", errors_text),
    ("vectors.md", "probes", "probes.json", probes_text),
    ("vectors.md", "maps", "maps.json", maps_text),
)


def main() -> None:
    """Fill all places."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the results; default {RESULTS}")
    parser.add_argument("--docs", type=Path, default=DOCS, help=f"folder of the pages; default {DOCS}")
    parser.add_argument("--model", type=Path, default=None, help="file of the model; the shipped one")
    options = parser.parse_args()
    texts = [(page, name, make(read_json(options.results / file))) for page, name, file, make in _PLACES]
    texts.append(("model-card.md", "weights", weights_text(options.model)))
    for page, name, text in texts:
        fill(options.docs / page, name, text)
        sys.stdout.write(f"{options.docs / page}: {name}\n")


if __name__ == "__main__":
    sys.exit(run(main))
