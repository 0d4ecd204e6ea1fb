"""`python -m experiments.foundation.maps`: program vectors and device vectors in the plane, as figures in docs.

Program vectors are drawn as what the time on the H200 is made of: the square roots of the shares p_d · a_d ÷ (p · a),
so that distance is Hellinger's and a longer launch of the same kind lies at the same place. Device vectors are drawn as
logarithms of seconds per unit. Both are laid flat by principal components. What is nearest to what is counted in all
coordinates, beside what chance would give.

Legend: N launch, M device, D vector.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.foundation.launches import (
    DEVICE,
    DOCS,
    RESULTS,
    Encoded,
    encode,
    options_of,
    read_suites,
    run,
    write_json,
)
from perfvec.apply.models import load_model
from perfvec.apply.simulated import PREFIX
from perfvec.apply.splits import load_holdout
from perfvec.arch.datasheet import seconds_per_unit
from perfvec.arch.device import load_devices
from perfvec.content import content_folder
from perfvec.metrics import rank_correlation
from perfvec.model.posterior import shares
from perfvec.report.plots import Map, plot_maps
from perfvec.resources import NUM_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from perfvec.arch.device import Device
    from perfvec.model.weights import TrainedModel

RESULTS_FILE = RESULTS / "maps.json"
PROGRAM_MAP, DEVICE_MAP = "program-map.png", "device-map.png"
# Launches on the map, at random: more would only cover each other.
_MOST_LAUNCHES = 1200
# Causes that few launches have as their main one are drawn together.
_LEAST_OF_CAUSE = 10
_NAMED = (
    "nvidia-h200", "nvidia-a100-sxm4-80gb", "nvidia-tesla-v100-sxm2-16gb", "nvidia-rtx-4090", "nvidia-gtx-1080-ti",
    "nvidia-gtx-480", "amd-instinct-mi250x-1gcd", "amd-rx-6900-xt", "amd-r9-290x", "amd-hd-5870", "intel-hd-530",
    "intel-i7-6700k",
)  # fmt: skip


def plane(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points `(n, 2)` on the two principal components, and the share of the variance of each, `(2,)`."""
    from sklearn.decomposition import PCA

    components = PCA(n_components=2, random_state=0)
    return components.fit_transform(points), components.explained_variance_ratio_


def oriented(flat: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same points, mirrored so that each axis rises with something: else another training turns the map about.

    Args:
        flat: `(n, 2)`.
        first: What the first axis is to rise with, `(n,)`.
        second: The same of the second.
    """
    rising = [float(np.dot(flat[:, axis], own - own.mean())) for axis, own in enumerate((first, second))]
    return flat * np.where(np.array(rising) < 0, -1.0, 1.0)


def nearest_alike(points: NDArray[np.float64], labels: Sequence[str], apart: Sequence[str]) -> dict[str, float]:
    """How often the nearest point bears the same label.

    Args:
        points: `(n, D)`.
        labels: Of each.
        apart: Points that share this are not compared: a kernel's launches are near each other anyway.

    Returns:
        The share of points whose nearest has their label; the same for one at random, and for the most common label.
    """
    from sklearn.metrics import pairwise_distances

    own, group = np.array(labels), np.array(apart)
    distances = pairwise_distances(points)
    is_other = group[:, None] != group[None, :]
    distances[~is_other] = np.inf
    alike = own[:, None] == own[None, :]
    return {
        "nearest": float(alike[np.arange(len(own)), distances.argmin(axis=1)].mean()),
        "chance": float(((alike & is_other).sum(axis=1) / np.maximum(is_other.sum(axis=1), 1)).mean()),
        "most common": Counter(labels).most_common(1)[0][1] / len(own),
    }


def map_programs(encoded: Encoded, path: Path) -> dict[str, Any]:
    """Draw program vectors by suite and by main cause, and say how alike neighbours are."""
    entries = encoded.dataset.entries
    share_ND, _ = shares(encoded.programs_ND, np.log(encoded.model.devices.row(DEVICE)))
    points = np.sqrt(share_ND)
    flat, variance = plane(points)
    suites = [entry.suite for entry in entries]
    families = [entry.family for entry in entries]
    causes = [own.main_cause for own in encoded.figures]
    overhead = np.array([own.cause_shares["launch"] for own in encoded.figures])
    flat = oriented(flat, overhead, overhead)
    counts = Counter(causes)
    drawn = [cause if counts[cause] >= _LEAST_OF_CAUSE else "others" for cause in causes]
    axes = _axes(variance)
    order = [cause for cause, _ in Counter(drawn).most_common()]
    plot_maps(
        path,
        [
            Map(
                title="program vectors by suite", axes=axes, groups=_groups(flat, suites, sorted(set(suites))), names={}
            ),
            Map(title="by what the H200's time goes to", axes=axes, groups=_groups(flat, drawn, order), names={}),
        ],
    )
    return {
        "launches": len(entries),
        "variance": variance.tolist(),
        "main cause": nearest_alike(points, causes, families),
        "main cause, by learned coordinates alone": nearest_alike(points[:, NUM_RESOURCES:], causes, families),
        "suite": nearest_alike(points, suites, families),
    }


def map_devices(model: TrainedModel, path: Path) -> dict[str, Any]:
    """Draw the vectors of all devices with a device file, and of simulated ones; say what the axes go with."""
    table = model.devices
    shipped = load_devices(content_folder("archs"))
    is_real = {table.names[row] for row in model.real_devices()}
    known = {
        name: table.row(name) if name in is_real else model.device_from_datasheet(seconds_per_unit(device))
        for name, device in shipped.items()
    }
    simulated = [
        name
        for name, kind in zip(table.names, table.kinds, strict=True)
        if kind == "simulated" and not name.startswith(PREFIX)
    ]
    vectors = np.stack([*known.values(), *map(table.row, simulated)])
    flat, variance = plane(np.log10(vectors))
    is_gpu = np.array([device.type == "gpu" for device in shipped.values()] + [True] * len(simulated))
    flat = oriented(flat, -np.log10(vectors).mean(axis=1), is_gpu.astype(np.float64))
    kinds = [
        "measured" if name in is_real else f"data sheet, {'CPU' if device.type == 'cpu' else device.vendor}"
        for name, device in shipped.items()
    ] + ["simulated"] * len(simulated)
    order = ["simulated", *sorted({kind for kind in kinds if kind.startswith("data")}), "measured"]
    names = {name: tuple(flat[place]) for place, name in enumerate(known) if name in is_real or name in _NAMED}
    groups = _groups(flat, kinds, [kind for kind in order if kind in kinds])
    drawn = Map(title="device vectors", axes=_axes(variance), groups=groups, names=names, background="simulated")
    plot_maps(path, [drawn], inches=(8.6, 5.6))
    gpus = np.flatnonzero(is_gpu[: len(shipped)])
    return {
        "devices": dict(Counter(kinds)),
        "variance": variance.tolist(),
        "axes": _what_axes_go_with(flat[gpus], [list(shipped.values())[place] for place in gpus]),
        "moved": {name: moved(model, name) for name in sorted(is_real)},
    }


def moved(model: TrainedModel, name: str) -> dict[str, float]:
    """How far measured times have moved a device from its data sheet: quantiles of the factors on its coordinates."""
    table, start = model.devices, model.datasheet_devices
    factors = table.row(name) / start.row(name)
    return {str(q): float(np.quantile(factors, q)) for q in (0.1, 0.5, 0.9)}


def _what_axes_go_with(flat: NDArray[np.float64], devices: Sequence[Device]) -> dict[str, dict[str, float]]:
    """Spearman's correlation of each axis with facts of GPUs."""
    facts: Mapping[str, list[float]] = {
        "fp32 rate": [device.compute.fp32_flops for device in devices],
        "DRAM bandwidth": [device.memory.dram.bandwidth_bytes_per_s for device in devices],
        "compute units": [device.compute.compute_units for device in devices],
        "clock": [device.compute.clock_hz for device in devices],
        "L2 capacity": [device.memory.l2.capacity_bytes for device in devices],
        "fp64 ÷ fp32 rate": [device.compute.fp64_flops / device.compute.fp32_flops for device in devices],
        "year": [device.year for device in devices],
    }
    together = ["all"] * len(devices)
    return {
        fact: {
            axis: rank_correlation(flat[:, place], np.array(values, dtype=np.float64), together)[0]
            for place, axis in enumerate(("first", "second"))
        }
        for fact, values in facts.items()
    }


def _axes(variance: NDArray[np.float64]) -> tuple[str, str]:
    first, second = (f"{share:.0%}".replace("%", " %") for share in variance)
    return f"first principal component ({first} of the variance)", f"second ({second})"


def _groups(flat: NDArray[np.float64], labels: Sequence[str], order: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    own = np.array(labels)
    return {label: flat[own == label] for label in order}


def main() -> None:
    """Draw both maps, and write what is said about them."""
    parser = options_of(__doc__, RESULTS_FILE)
    parser.add_argument("--docs", type=Path, default=DOCS, help=f"folder of the figures; default {DOCS}")
    options = parser.parse_args()
    model, dataset = load_model(options.model), read_suites(options.processes)
    chosen = np.sort(np.random.default_rng(0).permutation(len(dataset.entries))[:_MOST_LAUNCHES])
    encoded = encode(model, dataset.subset(chosen), load_holdout())
    record = {
        "programs": map_programs(encoded, options.docs / PROGRAM_MAP),
        "devices": map_devices(model, options.docs / DEVICE_MAP),
    }
    write_json(options.output, record)


if __name__ == "__main__":
    sys.exit(run(main))
