"""`python -m experiments.foundation.rows --model MODEL -o FILE`: give a trained model rows of all simulated devices.

The devices of the space that are trained on and the shipped GPUs, settled on the suites' launches that are not held
out. A training does the same at its end; this is for a model that was trained without some of them.
"""

from __future__ import annotations

import sys

import numpy as np

from experiments.foundation.launches import HERE, SPACE, options_of, read_suites, run
from perfvec.apply.evaluating import check_unseen
from perfvec.apply.models import load_model
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.splits import load_holdout
from perfvec.model.device_rows import fit_rows, with_rows


def main() -> None:
    """Add, settle, save."""
    options = options_of(__doc__, HERE / "model.safetensors").parse_args()
    space = SimulatedDevices(space=SPACE)
    chosen = (*space.part("training"), *space.part("shipped"))
    dataset, holdout = read_suites(options.processes, chosen), load_holdout()
    model = load_model(options.model)
    check_unseen(model, dataset.entries, holdout)
    rows = [
        row for row in holdout.training_rows(dataset.entries).tolist() if dataset.entries[row].family in model.families
    ]
    data = dataset.data.subset(np.array(rows))
    names = data.device_names[-len(chosen) :]
    model = with_rows(model, names, "simulated", data.seconds_per_unit[-len(chosen) :])
    times_NM = data.times[:, -len(chosen) :]
    fitted = fit_rows(model, names, model.encode(data.launches), times_NM, np.ones_like(times_NM))
    fitted.save(options.output)
    sys.stdout.write(f"{len(rows)} launches, {len(names)} devices: {options.output}\n")


if __name__ == "__main__":
    sys.exit(run(main))
