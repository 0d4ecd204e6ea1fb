"""Rows of the device table, fitted to program vectors that stand still.

A training moves the encoder and all rows together, in small steps; a row by itself is a regression of a few hundred
positive numbers, which many steps over all launches at once settle. So it ends with this, and the same gives a row to
devices that the training did not have.

Legend: N launch, M device, D vector.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from perfvec.errors import ModelError
from perfvec.model.devices import DeviceBank, DeviceKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from perfvec.model.weights import TrainedModel

STEPS = 250
_LEARNING_RATE = 0.1
# Log ratio beyond which the loss is linear. Smaller than that of a training: with all launches in each step nothing
# jumps, and what most launches agree on counts, not the few that no row can express.
_HUBER_DELTA = 0.1
# Weight of the squares of what departs from the row's start, against the mean loss of a time: with all launches of the
# suites, and with some hundreds of them.
_PRIOR_WEIGHT = 1e-7
_PRIOR_WEIGHT_OF_FEW = 3e-6


def with_rows(
    model: TrainedModel, names: Sequence[str], kind: DeviceKind, seconds_per_unit: NDArray[np.float64]
) -> TrainedModel:
    """The model with further devices, as their datasheets have them; those that it knows are left as they are.

    Args:
        model: The model.
        names: Of the devices.
        kind: Of all of them.
        seconds_per_unit: Their datasheets; float64 `(devices, NUM_RESOURCES)`.
    """
    new = [place for place, name in enumerate(names) if name not in model.device_names]
    if not new:
        return model
    seconds = np.concatenate([model.seconds_per_unit, seconds_per_unit[new]])
    bank = DeviceBank(seconds, model.encoder.layout)
    state = model.bank.state_dict()
    rows = bank.state_dict()
    for name in ("own_counted", "own_learned"):
        state[name] = torch.cat([state[name], torch.zeros_like(rows[name][len(model.device_names) :])])
    bank.load_state_dict(state)
    return replace(
        model,
        bank=bank,
        device_names=(*model.device_names, *(names[place] for place in new)),
        device_kinds=(*model.device_kinds, *([kind] * len(new))),
        seconds_per_unit=seconds,
    )


def fit_rows(
    model: TrainedModel,
    names: Sequence[str],
    program_ND: NDArray[np.float64],
    times_NM: NDArray[np.float64],
    weight_NM: NDArray[np.float64],
    *,
    steps: int = STEPS,
    prior_weight: float = _PRIOR_WEIGHT,
) -> TrainedModel:
    """The model with the rows of some devices fitted: Adam on what they have to themselves, all launches a step.

    Args:
        model: The model; it has the devices.
        names: M devices.
        program_ND: Program vectors of N launches.
        times_NM: Their seconds; NaN where there is none.
        weight_NM: How much each counts.
        steps: How many.
        prior_weight: What a square of a departure from the row's start costs, against the mean loss of a time.

    Raises:
        ModelError: A device is unknown, or the shapes do not fit.
    """
    if times_NM.shape != (len(program_ND), len(names)) or weight_NM.shape != times_NM.shape:
        raise ModelError(
            f"{len(program_ND)} program vectors, {len(names)} devices, times {times_NM.shape} and weights "
            f"{weight_NM.shape} do not belong together"
        )
    table = model.devices
    rows = torch.tensor([table.names.index(name) if name in table.names else -1 for name in names])
    if (rows < 0).any():
        raise ModelError(f"the model has no row for {[n for n in names if n not in table.names]}; add it first")
    device = next(model.encoder.buffers()).device
    bank = DeviceBank(model.seconds_per_unit, model.encoder.layout)
    bank.load_state_dict(model.bank.state_dict())
    bank.to(device)
    for parameter in bank.shared_parameters():
        parameter.requires_grad_(False)
    measured_NM = torch.from_numpy(~np.isnan(times_NM)).to(device)
    log_times_NM = torch.from_numpy(np.log(np.where(np.isnan(times_NM), 1.0, times_NM))).to(device)
    share_NM = torch.from_numpy(np.nan_to_num(weight_NM)).to(device) * measured_NM
    share_NM = share_NM / share_NM.sum(dim=0).clamp(min=1e-12)
    programs = torch.from_numpy(program_ND).to(device)
    rows = rows.to(device)
    starts = [parameter.detach()[rows].clone() for parameter in bank.own_parameters()]
    moving = [start.clone().double().requires_grad_() for start in starts]
    optimizer = torch.optim.Adam(moving, lr=_LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, 0.01 * _LEARNING_RATE)
    for _ in range(steps):
        optimizer.zero_grad()
        vectors_MD = bank.vectors_of(rows, *moving)
        loss_NM = functional.huber_loss(
            torch.log(programs @ vectors_MD.T), log_times_NM, reduction="none", delta=_HUBER_DELTA
        )
        prior = sum((own - start).square().sum() for own, start in zip(moving, starts, strict=True))
        ((loss_NM * share_NM).sum() + prior_weight * prior).backward()
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        for parameter, own in zip(bank.own_parameters(), moving, strict=True):
            parameter[rows] = own.to(parameter.dtype)
    return replace(model, bank=bank.cpu())


def fitted_vectors(
    model: TrainedModel,
    seconds_per_unit: NDArray[np.float64],
    program_ND: NDArray[np.float64],
    times_NM: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Vectors of devices that the model does not have, fitted to some hundreds of times.

    Args:
        model: The model; it stays as it is.
        seconds_per_unit: Datasheets of the devices, where their vectors start; float64 `(M, NUM_RESOURCES)`.
        program_ND: Program vectors of N launches.
        times_NM: Their seconds, each counting as much; NaN where there is none.

    Returns:
        Float64 `(M, D)`, positive.

    Raises:
        ModelError: The shapes do not fit.
    """
    names = [f"fitted/{place}" for place in range(len(seconds_per_unit))]
    wider = with_rows(model, names, "simulated", seconds_per_unit)
    fitted = fit_rows(wider, names, program_ND, times_NM, np.ones_like(times_NM), prior_weight=_PRIOR_WEIGHT_OF_FEW)
    return np.stack([fitted.devices.row(name) for name in names])
