"""How many launches the twin of a GPU needs: devices of training taken for new, errors on other kernels.

    python -m experiments.devices.twins

A row is fitted to times of 50 and more launches of the calibration set (`perfvec.apply.twins`) and compared with the
timing model on a third of its kernels, which no row is fitted to. All kernels are of training families, and all devices
were in training, every eighth of the space and every fourth shipped GPU: nothing is chosen by what is held out.
"Formula" is what a datasheet gives without, "trained" the device's own row, which has seen all launches.
"""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

import numpy as np

from perfvec.apply.accuracy import SPACE
from perfvec.apply.calibration_set import load_set
from perfvec.apply.feature_cache import FeatureCache, fill
from perfvec.apply.models import load_model
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.twins import NUM_LAUNCHES, spread_over_kernels
from perfvec.model.device_rows import fitted_vectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

COUNTS = (50, 100, 200, 400, NUM_LAUNCHES)
_EVERY_SPACE, _EVERY_SHIPPED = 8, 4


def main(model: str | None, write: Callable[[str], object]) -> None:
    """Compare.

    Args:
        model: File of the model; the shipped one where it is None.
        write: Takes the table, line by line.
    """
    trained, calibration = load_model(model), load_set(model)
    space = SimulatedDevices(space=SPACE)
    cache = FeatureCache.open(simulated=space)
    entries = calibration.launches()
    rows = [row for row, digest in enumerate(calibration.digests) if digest in entries]
    failures = fill(
        cache, [(entries[calibration.digests[row]].name, entries[calibration.digests[row]].launch) for row in rows]
    )
    rows = [row for row in rows if calibration.digests[row] not in failures]
    times = np.stack([cache.read_times(calibration.digests[row]) for row in rows])
    kernels = [calibration.kernels[row] for row in rows]
    programs = calibration.programs[rows]
    is_other = np.array([int(hashlib.sha256(kernel.encode()).hexdigest(), 16) % 3 == 0 for kernel in kernels])
    offered = np.flatnonzero(~is_other)
    order = offered[
        spread_over_kernels(
            [calibration.digests[rows[row]] for row in offered], [kernels[row] for row in offered], COUNTS[-1]
        )
    ]
    write(f"{int(is_other.sum())} launches of other kernels")
    for part, step in (("training", _EVERY_SPACE), ("shipped", _EVERY_SHIPPED)):
        taken = [item for item in space.part(part) if item.device.name in trained.device_names][::step]  # type: ignore[arg-type]
        places = [trained.device_names.index(item.device.name) for item in taken]
        prices, truth = trained.seconds_per_unit[places], times[:, [item.number for item in taken]]
        formula = trained.bank.from_datasheet(prices).numpy()
        write(f"{part}, {len(taken)} devices: mean error, median, worst device")
        write(f"  formula       {figures(programs, formula, truth, is_other)}")
        for count in COUNTS:
            chosen = order[:count]
            fitted = fitted_vectors(trained, prices, programs[chosen], truth[chosen])
            write(f"  {len(chosen):4} launches {figures(programs, fitted, truth, is_other)}")
        write(f"  trained       {figures(programs, trained.devices.vectors[places], truth, is_other)}")


def figures(
    programs: NDArray[np.float64], vectors: NDArray[np.float64], truth: NDArray[np.float64], rows: NDArray[np.bool_]
) -> str:
    """Errors of devices' vectors on launches, in per cent."""
    errors = 100 * np.abs(programs[rows] @ vectors.T / truth[rows] - 1)
    return f"{np.nanmean(errors):6.1f} {np.nanmedian(errors):6.1f} {np.nanmean(errors, axis=0).max():6.1f}"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None, lambda line: sys.stdout.write(line + "\n"))
