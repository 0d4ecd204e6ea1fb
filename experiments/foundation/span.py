"""`python -m experiments.foundation.span`: how well times on the archetypes span a design space.

Each held-out device of the space, and the H200, is fitted by non-negative least squares of relative errors to launches
of training families, and judged on families that were held out: with the archetypes' times by cause, and with their
totals alone. No network and no prior takes part.

Legend: N launch, A archetype, C cause, F coordinate that is fitted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.foundation.launches import DEVICE, RESULTS, SPACE, options_of, read_suites, run, write_json
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.splits import load_holdout
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED

if TYPE_CHECKING:
    from numpy.typing import NDArray


def errors_of(
    units_NF: NDArray[np.float64], times_N: NDArray[np.float64], training: NDArray[np.int64], unseen: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Absolute percentage errors of the unseen launches, fractions; without those that have no time."""
    from scipy.optimize import nnls

    fitted = training[~np.isnan(times_N[training])]
    relative_NF = units_NF[fitted] / times_N[fitted, None]
    # Columns of like length, without which the solver's tolerance drops the small ones.
    length_F = np.maximum(np.linalg.norm(relative_NF, axis=0), np.finfo(np.float64).tiny)
    solution_F, _ = nnls(relative_NF / length_F, np.ones(len(fitted)), maxiter=100 * len(length_F))
    asked = unseen[~np.isnan(times_N[unseen])]
    return np.abs(units_NF[asked] @ (solution_F / length_F) / times_N[asked] - 1.0)


def main() -> None:
    """Fit, judge, and write what came of it."""
    options = options_of(__doc__, RESULTS / "span.json").parse_args()
    held_out = SimulatedDevices(space=SPACE).part("held-out")
    dataset = read_suites(options.processes, held_out)
    holdout = load_holdout()
    training, unseen = holdout.training_rows(dataset.entries), holdout.rows(dataset.entries, "unseen-kernel")
    resources_NK = np.stack([launch.resources for launch in dataset.data.launches])
    causes_NAC = resources_NK[:, NUM_COUNTED:].reshape(-1, len(ARCHETYPES), len(CAUSES))
    of_h200 = dataset.data.device_names.index(DEVICE)
    simulated = range(len(dataset.devices) - len(held_out), len(dataset.devices))
    record: dict[str, Any] = {"launches": len(training), "unseen launches": len(unseen), "devices": len(held_out)}
    for what, units_NF in (("causes", causes_NAC.reshape(len(causes_NAC), -1)), ("totals", causes_NAC.sum(axis=2))):
        for name, columns in ((SPACE, simulated), (DEVICE, (of_h200,))):
            errors = np.concatenate(
                [errors_of(units_NF, dataset.data.times[:, column], training, unseen) for column in columns]
            )
            record[f"{name}, {what}"] = {"mean": float(errors.mean()), "median": float(np.median(errors))}
            sys.stdout.write(f"{name}, {what}: mean {errors.mean():.1%}, median {np.median(errors):.1%}\n")
    write_json(options.output, record)


if __name__ == "__main__":
    sys.exit(run(main))
