"""What a trained model gets right: measured and simulated devices, seen and unseen, in figures.

Legend: N launch, M device, D vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.apply.evaluating import LONG_S
from perfvec.metrics import summarise
from perfvec.model.posterior import Measurements, Misfit, posterior, table_prior
from perfvec.model.weights import TWIN_SPREAD
from perfvec.resources import ARCHETYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.apply.dataset import Dataset
    from perfvec.model.weights import TrainedModel

# Of simulated times: what the dot product leaves, and no noise.
_MISFIT = Misfit(launch=0.05, kernel=0.02, noise=0.01)
_SEEDS = (0, 1, 2)


def real_figures(model: TrainedModel, dataset: Dataset, rows: NDArray[np.int64]) -> dict[str, dict[str, float]]:
    """Figures of the launches of some rows on each measured device of the model."""
    if len(rows) == 0:
        return {}
    programs_ND = model.encode([dataset.data.launches[row] for row in rows])
    figures: dict[str, dict[str, float]] = {}
    for column, name in enumerate(dataset.data.device_names):
        if name not in model.device_names or dataset.data.kinds[column] != "real":
            continue
        measured_N = dataset.data.times[rows, column]
        for subset, longer_than_s in (("", 0.0), (" over 20 us", LONG_S)):
            kept = np.flatnonzero(measured_N > longer_than_s)
            if len(kept) == 0:
                continue
            entries = [dataset.entries[row] for row in rows[kept]]
            summary = summarise(
                (programs_ND @ model.devices.row(name))[kept],
                measured_N[kept],
                [entry.name for entry in entries],
                [f"{entry.suite}/{entry.kernel}" for entry in entries],
            )
            figures[name + subset] = {
                "launches": summary.num_launches,
                "mape": summary.mape,
                "median": summary.median_ape,
                "p90": summary.p90_ape,
                "rank": summary.rank_correlation,
            }
    return figures


def simulated_figures(
    model: TrainedModel,
    dataset: Dataset,
    starts_MK: NDArray[np.float64],
    *,
    seen: NDArray[np.int64],
    unseen: NDArray[np.int64],
    held_out: Sequence[str],
    counts: Sequence[int] = (0, 5, 10, 20),
) -> dict[str, float]:
    """Mean errors on simulated devices.

    Args:
        model: The model.
        dataset: Launches with times on all devices, those that the model was not trained on included.
        starts_MK: Datasheet of each held-out device.
        seen: Rows of families that it was trained on.
        unseen: Rows of other families.
        held_out: Devices that it was not trained on.
        counts: Measured launches of such a device, at random from the seen rows.

    Returns:
        Mean error, a fraction, by what is unseen.
    """
    names = list(dataset.data.device_names)
    kinds = dict(zip(model.device_names, model.device_kinds, strict=True))
    # On an archetype nothing is predicted: its times are coordinates.
    trained = [name for name, kind in kinds.items() if kind == "simulated" and name not in ARCHETYPES]
    programs_ND = model.encode(dataset.data.launches)
    table = model.devices
    figures: dict[str, float] = {}
    if trained:
        columns = [names.index(name) for name in trained]
        vectors_MD = np.stack([table.row(name) for name in trained])
        for what, rows in (("seen kernels", seen), ("unseen kernels", unseen)):
            errors = _errors(programs_ND[rows], vectors_MD, dataset.data.times[np.ix_(rows, columns)])
            figures[f"{what}, seen devices"] = float(np.nanmean(errors))
            figures[f"{what}, seen devices, median"] = float(np.nanmedian(errors))
    starts = model.bank.from_datasheet(starts_MK).cpu().numpy()
    kernels = [f"{entry.suite}/{entry.kernel}" for entry in dataset.entries]
    for count in counts:
        found: dict[str, list[float]] = {"seen kernels": [], "unseen kernels": []}
        for seed in _SEEDS[: len(_SEEDS) if count else 1]:
            for place, name in enumerate(held_out):
                times_N = dataset.data.times[:, names.index(name)]
                fitting = seen[~np.isnan(times_N[seen])]
                picked = np.random.default_rng((seed, place)).permutation(fitting)[:count]
                vector = starts[place]
                if count:
                    none = np.zeros((0, len(vector)))
                    prior = table_prior(vector, none, none, common=TWIN_SPREAD, own=TWIN_SPREAD)
                    measured = Measurements(
                        programs=programs_ND[picked],
                        times=times_N[picked],
                        deviation=np.zeros(count),
                        kernels=tuple(kernels[row] for row in picked),
                    )
                    vector = posterior(prior, measured, _MISFIT).vector
                for what, rows in (("seen kernels", np.setdiff1d(fitting, picked)), ("unseen kernels", unseen)):
                    found[what].append(float(np.nanmean(_errors(programs_ND[rows], vector[None], times_N[rows, None]))))
        figures |= {f"{what}, unseen devices, {count} launches": float(np.mean(each)) for what, each in found.items()}
    return figures


def _errors(
    programs_ND: NDArray[np.float64], vectors_MD: NDArray[np.float64], times_NM: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.abs(programs_ND @ vectors_MD.T / times_NM - 1.0)
