"""`python -m experiments.foundation.probes`: what a linear probe reads back out of program vectors.

Probes are ridge regressions, their penalty chosen by cross-validation over kernel families, fitted to launches of the
families that the model was trained on and judged by R² on the families that were left out of its training. Beside the
learned coordinates the same probe gets less: the counted resources, all resources, the gates alone (learned coordinates
over what they weigh, so that no amount is left), and the learned coordinates with shuffled labels.

Legend: N launch, D vector, X input of a probe.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.foundation.launches import DEVICE, RESULTS, Encoded, encode, options_of, read_suites, run, write_json
from perfvec.apply.models import load_model
from perfvec.apply.splits import load_holdout
from perfvec.errors import ModelError
from perfvec.model.excess import excess_pairs
from perfvec.model.vectors import log_programs
from perfvec.resources import ARCHETYPES, CAUSES, NUM_COUNTED, NUM_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

RESULTS_FILE = RESULTS / "probes.json"
LEARNED = "learned coordinates"
SHUFFLED = "learned coordinates, shuffled labels"
_PENALTIES = np.logspace(-1, 5, 7)
_FOLDS = 5
_RESAMPLES = 1000


def targets_of(encoded: Encoded) -> dict[str, NDArray[np.float64]]:
    """What is to be read back, as a probe wants it; `(N,)` each."""
    table = {
        name: np.array([getattr(item, name) for item in encoded.figures], dtype=np.float64)
        for name in ("arithmetic_intensity", "occupancy", "divergence", "footprint_bytes")
    }
    return {
        # A hundredth of a FLOP a byte is as good as none.
        "arithmetic intensity (log)": np.log10(table["arithmetic_intensity"] + 0.01),
        "occupancy": table["occupancy"],
        "divergence": table["divergence"],
        "footprint (log)": np.log10(table["footprint_bytes"] + 1.0),
    }


def inputs_of(encoded: Encoded) -> dict[str, NDArray[np.float64]]:
    """What a probe may see; `(N, X)` each."""
    logs_ND = log_programs(encoded.programs_ND, encoded.model.encoder.layout)
    return {
        LEARNED: logs_ND[:, NUM_RESOURCES:],
        "counted resources": logs_ND[:, :NUM_COUNTED],
        "all resources": logs_ND[:, :NUM_RESOURCES],
        "gates alone": gates_of(encoded),
    }


def gates_of(encoded: Encoded) -> NDArray[np.float64]:
    """Learned coordinates over what they weigh: 0 to 1, `(N, learned)`; NaN where a launch has nothing of it."""
    layout = encoded.model.encoder.layout
    gated_NR = np.repeat(encoded.programs_ND[:, :NUM_RESOURCES], layout.launch_gates, axis=1)
    units_NV = np.stack(
        [
            np.append(launch.row_weight @ launch.row_units, launch.row_weight.sum())
            for launch in encoded.dataset.data.launches
        ]
    )
    times_NA = encoded.programs_ND[:, NUM_COUNTED:NUM_RESOURCES].reshape(-1, len(ARCHETYPES), len(CAUSES)).sum(axis=2)
    slower_NX = times_NA[:, excess_pairs(layout.excess).slower]
    learned = encoded.programs_ND[:, NUM_RESOURCES:]
    first = gated_NR.shape[1] + layout.excess
    typical_NL = learned[:, first : first + layout.landmarks]
    typical_NL = typical_NL.sum(axis=1, keepdims=True).repeat(layout.landmarks, axis=1)
    weighed = np.concatenate([gated_NR, slower_NX, typical_NL, units_NV[:, layout.token_unit]], axis=1)
    return np.divide(learned, weighed, out=np.full_like(learned, np.nan), where=weighed > 0)


def probe(
    inputs: NDArray[np.float64],
    target: NDArray[np.float64],
    families: Sequence[str],
    *,
    training: NDArray[np.int64],
    held_out: NDArray[np.int64],
) -> dict[str, float]:
    """Fit a probe to some rows and judge it on others.

    Args:
        inputs: `(N, X)`; NaN where unknown, which becomes the mean.
        target: `(N,)`.
        families: Of each row.
        training: Rows to fit to.
        held_out: Rows of other families.

    Returns:
        R² on the held-out rows, the 2.5th and 97.5th percentile of it when their families are drawn again, and the
        penalty. A prediction beyond all training targets counts as the nearest of them.

    Raises:
        ModelError: The target is the same in all held-out rows, so that there is nothing to read back.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if np.ptp(target[held_out]) == 0:
        raise ModelError(
            f"all {len(held_out)} held-out launches have the same value {target[held_out[0]]:g} of what is to be read "
            "back, so R² means nothing; probe launches that differ in it"
        )
    own = np.array(families)
    pipeline = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), Ridge())
    folds = min(_FOLDS, len(set(own[training])))
    search = GridSearchCV(pipeline, {"ridge__alpha": _PENALTIES}, cv=GroupKFold(folds))
    search.fit(inputs[training], target[training], groups=own[training])
    lowest, highest = target[training].min(), target[training].max()
    predicted = np.clip(search.predict(inputs[held_out]), lowest, highest)
    truth = target[held_out]
    low, high = _interval(predicted, truth, own[held_out])
    return {
        "r2": explained(predicted, truth),
        "low": low,
        "high": high,
        "penalty": float(search.best_params_["ridge__alpha"]),
    }


def explained(predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """R²: 1 − squared errors ÷ squares around the mean; below 0 where the mean would be better."""
    return float(1.0 - np.square(predicted - truth).sum() / np.square(truth - truth.mean()).sum())


def _interval(
    predicted: NDArray[np.float64], truth: NDArray[np.float64], families: NDArray[np.str_]
) -> tuple[float, float]:
    """Of R², families drawn with replacement: launches of a family are no independent samples."""
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(families == family) for family in np.unique(families)]
    drawn = [
        np.concatenate([members[place] for place in rng.integers(len(members), size=len(members))])
        for _ in range(_RESAMPLES)
    ]
    scores = [explained(predicted[rows], truth[rows]) for rows in drawn if np.ptp(truth[rows]) > 0]
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def run_probes(encoded: Encoded) -> dict[str, Any]:
    """All probes on all targets."""
    entries = encoded.dataset.entries
    families = [entry.family for entry in entries]
    training, held_out = encoded.holdout.training_rows(entries), encoded.unseen()
    inputs = inputs_of(encoded)
    found: dict[str, dict[str, Mapping[str, float]]] = {}
    for name, target in targets_of(encoded).items():
        found[name] = {
            what: probe(values, target, families, training=training, held_out=held_out)
            for what, values in inputs.items()
        }
        shuffled = target.copy()
        shuffled[training] = np.random.default_rng(0).permutation(target[training])
        found[name][SHUFFLED] = probe(inputs[LEARNED], shuffled, families, training=training, held_out=held_out)
    return {
        "device": DEVICE,
        "training": {"launches": len(training), "families": len({families[row] for row in training})},
        "held out": {"launches": len(held_out), "families": len({families[row] for row in held_out})},
        "inputs": {what: values.shape[1] for what, values in inputs.items()},
        "probes": found,
    }


def main() -> None:
    """Probe the vectors of the suites' launches, and write the figures."""
    options = options_of(__doc__, RESULTS_FILE).parse_args()
    encoded = encode(load_model(options.model), read_suites(options.processes), load_holdout())
    write_json(options.output, run_probes(encoded))


if __name__ == "__main__":
    sys.exit(run(main))
