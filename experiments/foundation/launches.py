"""The suites' launches as the shipped model sees them: their program vectors, and figures of what they do.

The figures are worked out from the features, so nothing is traced where the feature cache has the launches.

Legend: N launch, D vector, A archetype, C cause.
"""

# ruff: noqa: N815  (a field that is an array carries its axes)

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.apply.accuracy import SPACE
from perfvec.apply.dataset import make_dataset
from perfvec.apply.evaluating import check_unseen
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.launch_features import FLOAT_COST
from perfvec.apply.simulated import SimulatedDevices
from perfvec.arch.device import find_device
from perfvec.arch.measured import load_measured
from perfvec.arch.timing.dispatch import place_groups
from perfvec.arch.timing.machines import Machines
from perfvec.arch.timing.of_device import timing_config
from perfvec.corpus.suite import load_suites
from perfvec.files import whole_file
from perfvec.program.features import SHARES
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED
from perfvec.trace_data import CONTEXT_FIELDS, SUB_GROUP_SIZE, LaunchContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.apply.splits import Holdout
    from perfvec.arch.space import SampledDevice
    from perfvec.model.launch_input import LaunchInput
    from perfvec.model.weights import TrainedModel

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
DOCS = HERE.parents[1] / "docs"
DEVICE = "nvidia-h200"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFigures:
    """What a launch does.

    Attributes:
        arithmetic_intensity: FLOP a byte that lanes move to or from global memory.
        divergence: Share of lanes that stand idle, over all instructions; 0 to 1.
        footprint_bytes: Distinct bytes touched.
        occupancy: Resident sub-groups ÷ most a compute unit of the H200 can hold, by the timing model.
        sectors_per_access: Sectors of 32 B that a sub-group's access to global memory touches.
        work_groups: Of the launch.
        cause_shares: Of the time that the timing model gives on the H200, by `CAUSES`.
    """

    arithmetic_intensity: float
    divergence: float
    footprint_bytes: float
    occupancy: float
    sectors_per_access: float
    work_groups: int
    cause_shares: Mapping[str, float]

    @property
    def main_cause(self) -> str:
        """The cause with the largest share."""
        return max(self.cause_shares, key=self.cause_shares.__getitem__)


def figures_of(launch: LaunchInput, machines: Machines) -> LaunchFigures:
    """Work the figures out of the features: their logarithms are undone, their weights are the launch's.

    Args:
        launch: The launch.
        machines: The one device to place its work-groups on.

    Raises:
        DeviceError: A work-group does not fit on the device.
    """
    column = {name: launch.row_features[:, place] for place, name in enumerate(launch.schema.feature_names)}
    weight = launch.row_weight
    lanes = weight * column["lanes"] * SUB_GROUP_SIZE
    scalars = lanes * np.exp2(4.0 * column["log_vector_width"])
    cost = sum(float(flops) * column[f"class_{name}"] for name, flops in FLOAT_COST.items())
    is_global = (column["space_global"] + column["space_constant"]) * (column["log_sectors"] > 0)
    access_bytes = np.exp2(7.0 * column["log_access_bytes"].astype(np.float64)) - 1.0
    sectors = np.exp2(8.0 * column["log_sectors"].astype(np.float64)) - 1.0
    accesses = float(weight @ is_global)
    context = context_of(launch)
    times_C = causes_of(launch)
    return LaunchFigures(
        arithmetic_intensity=float(scalars @ (column["kind_float"] * cost))
        / max(float(lanes @ (is_global * access_bytes)), 1.0),
        divergence=1.0 - context.mean_lanes / SUB_GROUP_SIZE,
        footprint_bytes=context.footprint_bytes,
        occupancy=float(place_groups(context, machines).occupancy[0]),
        sectors_per_access=float(weight @ (is_global * sectors)) / accesses if accesses else 0.0,
        work_groups=context.num_work_groups,
        cause_shares=dict(zip(CAUSES, (times_C / times_C.sum()).tolist(), strict=True)),
    )


def context_of(launch: LaunchInput) -> LaunchContext:
    """The launch's context, its logarithms undone."""
    entry = dict(zip(launch.schema.context_names, launch.context.astype(np.float64).tolist(), strict=True))
    kinds = LaunchContext.__annotations__
    values: dict[str, Any] = {}
    for name in CONTEXT_FIELDS:
        value = entry[name] if name in SHARES else 2.0 ** (16.0 * entry[f"log_{name}"]) - 1.0
        values[name] = round(value) if kinds[name] == "int" else value
    return LaunchContext(**values)


def causes_of(launch: LaunchInput) -> NDArray[np.float64]:
    """Seconds on the H200 by the timing model, by `CAUSES`."""
    times_AC = launch.resources[NUM_COUNTED:].reshape(len(ARCHETYPES), len(CAUSES))
    return times_AC[ARCHETYPES.index(DEVICE)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Launches with everything that is asked about them.

    Attributes:
        model: The model.
        holdout: What it was not trained on.
        dataset: N launches with their times on the measured devices.
        programs_ND: Their program vectors.
        figures: What each launch does.
    """

    model: TrainedModel
    holdout: Holdout
    dataset: Dataset
    programs_ND: NDArray[np.float64]
    figures: tuple[LaunchFigures, ...]

    def unseen(self) -> NDArray[np.int64]:
        """Rows of kernel families that were left out of training."""
        return self.holdout.rows(self.dataset.entries, "unseen-kernel")


def read_suites(processes: int | None, simulated: Sequence[SampledDevice] = ()) -> Dataset:
    """The measured launches of the suites, with times on simulated devices; traced where the cache lacks them.

    Raises:
        PerfVecError: A file cannot be read, or nothing was measured.
    """
    cache = FeatureCache.open(simulated=SimulatedDevices(space=SPACE))
    return make_dataset(load_suites(), load_measured(), simulated=simulated, cache=cache, num_processes=processes)


def encode(model: TrainedModel, dataset: Dataset, holdout: Holdout) -> Encoded:
    """Encode launches, and work out what they do.

    Raises:
        ModelError: The model was trained on what is held out.
    """
    check_unseen(model, dataset.entries, holdout)
    machines = Machines([timing_config(find_device(DEVICE))])
    return Encoded(
        model=model,
        holdout=holdout,
        dataset=dataset,
        programs_ND=model.encode(dataset.data.launches),
        figures=tuple(figures_of(launch, machines) for launch in dataset.data.launches),
    )


def options_of(description: str | None, output: Path) -> argparse.ArgumentParser:
    """What all commands on these launches ask."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=Path, default=None, help="file of the model; the shipped one")
    parser.add_argument("--processes", type=int, default=None, help="that trace what the cache lacks; one a core")
    parser.add_argument("-o", "--output", type=Path, default=output, help=f"default {output}")
    return parser


def run(main: Callable[[], None]) -> int:
    """Run a command; an error of ours is a line and exit code 2."""
    from perfvec.errors import PerfVecError

    try:
        main()
    except PerfVecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write results, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}\n")
