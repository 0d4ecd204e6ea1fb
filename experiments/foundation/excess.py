"""`python -m experiments.foundation.excess`: which pairs of archetypes make `archs/excess.json`.

Simulated devices that are no archetypes are fitted by non-negative least squares of relative errors, reweighted once
towards absolute ones, to times by cause and to the excess of every archetype over every other. Pairs are ranked by the
share of the devices' times that they explain. Only launches of training families and devices for training take part.

Legend: N launch, A archetype, P pair of archetypes, F coordinate that is fitted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from experiments.foundation.launches import SPACE, options_of, read_suites, run, write_json
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.splits import load_holdout
from perfvec.content import content_folder
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, RESOURCES_VERSION

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_DEVICES = 16
NUM_PAIRS = 300
# Relative error below which all errors count alike.
_SMALL_ERROR = 0.03


def excess_of_all(times_NA: NDArray[np.float64], scale_A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Excess of each archetype over each other one, as `perfvec.model.excess` has it.

    Args:
        times_NA: Seconds.
        scale_A: One over the median launch's.

    Returns:
        Seconds `(N, A · A)`, the slower archetype first; 0 of one over itself.
    """
    scaled_NA = times_NA * scale_A
    excess_NAA = np.maximum(scaled_NA[:, :, None] - scaled_NA[:, None, :], 0.0) / scale_A[:, None]
    return excess_NAA.reshape(len(times_NA), -1)


def explained(units_NF: NDArray[np.float64], times_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean share of a device's times that each coordinate explains; `(F,)`, 0 or more."""
    from scipy.optimize import nnls

    relative_NF = units_NF / times_N[:, None]
    length_F = np.maximum(np.linalg.norm(relative_NF, axis=0), np.finfo(np.float64).tiny)
    error_N, price_F = np.ones(len(times_N)), np.zeros(len(length_F))
    for _ in range(2):
        weight_N = np.maximum(error_N, _SMALL_ERROR) ** -0.5
        scaled_F, _ = nnls(relative_NF / length_F * weight_N[:, None], weight_N, maxiter=100 * len(length_F))
        price_F = scaled_F / length_F
        error_N = np.abs(relative_NF @ price_F - 1.0)
    return relative_NF.mean(axis=0) * price_F


def main() -> None:
    """Choose and write."""
    options = options_of(__doc__, content_folder("archs") / "excess.json").parse_args()
    devices = [
        device
        for device in SimulatedDevices(space=SPACE).part("training")
        if f"{SPACE}/{device.number}" not in ARCHETYPES
    ]
    dataset = read_suites(options.processes, devices[-NUM_DEVICES:])
    training = load_holdout().training_rows(dataset.entries)
    resources_NK = np.stack([dataset.data.launches[row].resources for row in training])
    times_NA = resources_NK[:, NUM_COUNTED:].reshape(len(training), len(ARCHETYPES), len(CAUSES)).sum(axis=2)
    scale_A = np.exp(-np.median(np.log(times_NA), axis=0))
    units_NF = np.concatenate([resources_NK[:, NUM_COUNTED:], excess_of_all(times_NA, scale_A)], axis=1)
    share_F = np.zeros(units_NF.shape[1])
    for column in range(dataset.data.times.shape[1] - NUM_DEVICES, dataset.data.times.shape[1]):
        times_N = dataset.data.times[training, column]
        there = ~np.isnan(times_N)
        share_F += explained(units_NF[there], times_N[there]) / NUM_DEVICES
        sys.stdout.write(
            f"{dataset.data.device_names[column]}: excess so far {share_F[-(len(ARCHETYPES) ** 2) :].sum():.3f}\n"
        )
        sys.stdout.flush()
    share_P = share_F[-(len(ARCHETYPES) ** 2) :]
    best = np.argsort(-share_P, kind="stable")[:NUM_PAIRS]
    places = (divmod(pair, len(ARCHETYPES)) for pair in best.tolist())
    pairs = [f"{ARCHETYPES[slower]} > {ARCHETYPES[faster]}" for slower, faster in places]
    scale = {name: float(f"{value:.6g}") for name, value in zip(ARCHETYPES, scale_A, strict=True)}
    write_json(options.output, {"resources_version": RESOURCES_VERSION, "scale": scale, "pairs": pairs})
    sys.stdout.write(f"{len(pairs)} pairs: {share_P[best].sum():.1%} of the times, all pairs {share_P.sum():.1%}\n")


if __name__ == "__main__":
    sys.exit(run(main))
