"""Device vectors: the parameters behind them while they are trained, and the table of finished ones.

Legend: M device, K counted resource, L learned coordinate, D = K + L vector.

    resource  a_k = s_k · exp(shared_k + W_k · mix + own_k)        s_k seconds per unit from the datasheet
    learned   a_l = a_{k(l)} · softplus(shared_l + W_l · mix + own_l)

k(l) is the resource that prices coordinate l. A landmark costs what the device's sheet says of the typical time: the
prices of all archetypes together, each by how long the median launch takes there. mix is the datasheet's ratios and how
near the device is to the archetypes. `own` is what a device has to itself; without it the same formulas give the vector
of a device that was never measured.
"""

# ruff: noqa: N815  (fields that are tensors carry their axes)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from perfvec.errors import ModelError
from perfvec.resources import CAUSES, NUM_RESOURCES, RESOURCES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.model.layout import VectorLayout

DeviceKind = Literal["real", "simulated", "datasheet"]
# A price of zero has no logarithm; a femtosecond per unit is far below what any device charges.
MIN_SECONDS_PER_UNIT = 1e-15
# A datasheet may price the step of a ladder that its device is near, and the others at nothing. They stay correctable.
_MIN_SHARE_OF_LADDER = 1e-3
# Resources of one ladder: the device is near some steps of it, such as numbers of slots, or archetypes of one cause.
_LADDER = np.array([f"time:{item.cause}" if item.cause else item.name.rstrip("0123456789") for item in RESOURCES])
# What a device is like: the prices of what is counted against their mean, and how near each archetype is.
_COUNTED = np.array([not item.cause for item in RESOURCES])
_NEARNESS = np.array([item.cause == CAUSES[0] for item in RESOURCES])
_NUM_MIX = int(_COUNTED.sum() + _NEARNESS.sum())


def check_seconds_per_unit(seconds_per_unit: NDArray[np.float64], names: tuple[str, ...]) -> None:
    """Refuse a datasheet table that is not `(devices, NUM_RESOURCES)`, finite and 0 or more.

    Raises:
        ModelError: It is not.
    """
    if seconds_per_unit.shape != (len(names), NUM_RESOURCES):
        raise ModelError(
            f"seconds_per_unit has shape {seconds_per_unit.shape}; {len(names)} devices need {NUM_RESOURCES} each"
        )
    if not np.isfinite(seconds_per_unit).all() or (seconds_per_unit < 0).any():
        rows = np.flatnonzero((~np.isfinite(seconds_per_unit) | (seconds_per_unit < 0)).any(axis=1))
        raise ModelError(
            f"seconds_per_unit of device {names[rows[0]]!r} has a value that is negative or not finite; correct its "
            "device file"
        )


@final
class DeviceBank(nn.Module):
    """Trainable device vectors, all positive."""

    log_seconds_MK: Tensor
    mix_mean: Tensor
    mix_deviation: Tensor
    price: Tensor
    start_L: Tensor
    typical_K: Tensor

    def __init__(self, seconds_per_unit: NDArray[np.float64], layout: VectorLayout) -> None:
        super().__init__()
        num_devices, num_learned = len(seconds_per_unit), layout.num_learned
        log_seconds_MK = _log_seconds(seconds_per_unit)
        mix_MK = _mix(log_seconds_MK)
        deviation = mix_MK.std(dim=0, unbiased=False)
        self.register_buffer("log_seconds_MK", log_seconds_MK, persistent=False)  # from the datasheets, which are kept
        self.register_buffer("mix_mean", mix_MK.mean(dim=0))
        self.register_buffer("mix_deviation", torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation)))
        self.register_buffer("price", torch.from_numpy(layout.price), persistent=False)
        self.register_buffer("typical_K", torch.from_numpy(layout.typical_price), persistent=False)
        self.shared_counted = nn.Parameter(torch.zeros(NUM_RESOURCES))
        self.own_counted = nn.Parameter(torch.zeros(num_devices, NUM_RESOURCES))
        # All gated coordinates of one count together start at about the price of the count.
        # All excesses together start at no more than one such: the causes make up a whole time without them.
        share_L = np.full(num_learned, 1.0 / max(layout.launch_gates + layout.token_gates, 1))
        share_L[layout.num_launch_coordinates : layout.num_launch_coordinates + layout.excess] /= max(layout.excess, 1)
        self.register_buffer("start_L", torch.from_numpy(np.log(np.expm1(share_L))).float(), persistent=False)
        self.shared_learned = nn.Parameter(self.start_L.clone())
        self.own_learned = nn.Parameter(torch.zeros(num_devices, num_learned))
        self.mix_map = nn.Parameter(torch.zeros(NUM_RESOURCES + num_learned, _NUM_MIX))

    def shared_parameters(self) -> list[nn.Parameter]:
        """What all devices have in common."""
        return [self.shared_counted, self.shared_learned, self.mix_map]

    def own_parameters(self) -> list[nn.Parameter]:
        """What each device has to itself."""
        return [self.own_counted, self.own_learned]

    def forward(self) -> Tensor:
        """Vectors of the trained devices, a_MD; float64 seconds per unit."""
        return self._vectors(self.log_seconds_MK, self.own_counted, self.own_learned)

    def vectors_of(self, rows: Tensor, own_counted: Tensor, own_learned: Tensor) -> Tensor:
        """Vectors of some trained devices if they had this to themselves, a_MD; float64 seconds per unit."""
        return self._vectors(self.log_seconds_MK[rows], own_counted, own_learned)

    def without_own(self) -> Tensor:
        """Vectors of the trained devices as if they had never been measured, a_MD; float64 seconds per unit."""
        return self._vectors(self.log_seconds_MK, self.own_counted.new_zeros(()), self.own_learned.new_zeros(()))

    def from_datasheet(self, seconds_per_unit: NDArray[np.float64]) -> Tensor:
        """Vectors of devices known by their datasheet alone, a_MD; float64 seconds per unit."""
        log_seconds_MK = _log_seconds(seconds_per_unit).to(self.log_seconds_MK.device)
        return self._vectors(log_seconds_MK, self.own_counted.new_zeros(()), self.own_learned.new_zeros(()))

    def _vectors(self, log_seconds_MK: Tensor, own_counted: Tensor, own_learned: Tensor) -> Tensor:
        mix_MX = (_mix(log_seconds_MK) - self.mix_mean) / self.mix_deviation
        mixed_MD = mix_MX @ self.mix_map.double().T
        own_MK = self.shared_counted.double() + mixed_MD[:, :NUM_RESOURCES] + own_counted.double()
        counted_MK = torch.exp(log_seconds_MK + own_MK)
        raw_ML = self.shared_learned.double() + mixed_MD[:, NUM_RESOURCES:] + own_learned.double()
        price_MK = torch.cat([counted_MK, (torch.exp(log_seconds_MK) @ self.typical_K)[:, None]], dim=-1)
        return torch.cat([counted_MK, price_MK[:, self.price] * functional.softplus(raw_ML)], dim=-1)

    def prior(self, *, counted: float, shared: float, learned: float, mixed: float) -> Tensor:
        """Negative log prior per device, up to a constant: squares of what departs from the datasheet.

        Args:
            counted: Standard deviation of a device's own counted coordinates, in log.
            shared: The same of the shared ones.
            learned: Standard deviation of a device's own learned coordinates, before softplus.
            mixed: The same of what one standard deviation of the datasheet's mix adds to them.
        """
        num_devices = len(self.own_counted)
        own = self.own_counted.square().sum() / counted**2 + self.own_learned.square().sum() / learned**2
        common = (
            self.shared_counted.square().sum() / shared**2
            + self.mix_map.square().sum() / mixed**2
            + (self.shared_learned - self.start_L).square().sum() / (4 * learned**2)
        )
        return 0.5 * (own + common) / num_devices


def _log_seconds(seconds_per_unit: NDArray[np.float64]) -> Tensor:
    """Log of the datasheet's prices, zeros lifted to where training can still correct them."""
    seconds_MK = np.maximum(seconds_per_unit, MIN_SECONDS_PER_UNIT)
    for stem in np.unique(_LADDER):
        same = stem == _LADDER
        floor_M1 = _MIN_SHARE_OF_LADDER * seconds_MK[:, same].max(axis=1, keepdims=True)
        seconds_MK[:, same] = np.maximum(seconds_MK[:, same], floor_M1)
    return torch.from_numpy(np.log(seconds_MK))


def _mix(log_seconds_MK: Tensor) -> Tensor:
    """What a device is like, `(M, _NUM_MIX)`: how it is balanced, not how fast it is, and what it is near to."""
    counted_MK, near_MA = log_seconds_MK[:, _COUNTED], log_seconds_MK[:, _NEARNESS]
    parts = (part - part.mean(dim=-1, keepdim=True) for part in (counted_MK, near_MA))
    return torch.cat(list(parts), dim=-1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTable:
    """Finished device vectors.

    Attributes:
        names: One a device.
        kinds: `real` where measured times went into the vector, `datasheet` where none did.
        vectors: Seconds per unit of each coordinate; float64 `(devices, D)`, 0 or more.
        seconds_per_unit: The datasheet each started from; float64 `(devices, NUM_RESOURCES)`.
    """

    names: tuple[str, ...]
    kinds: tuple[DeviceKind, ...]
    vectors: NDArray[np.float64]
    seconds_per_unit: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise ModelError(f"the device table repeats a name: {self.names}; each device has one row")
        if not len(self.names) == len(self.kinds) == len(self.vectors) or self.vectors.ndim != 2:
            raise ModelError(
                f"{len(self.names)} device names, {len(self.kinds)} kinds and vectors of shape {self.vectors.shape} do "
                "not belong together"
            )
        if not np.isfinite(self.vectors).all():
            raise ModelError("a device vector has a value that is not finite; train the model again")
        check_seconds_per_unit(self.seconds_per_unit, self.names)

    def row(self, name: str) -> NDArray[np.float64]:
        """The vector of a device, shape `(D,)`.

        Raises:
            ModelError: The table does not have it.
        """
        if name not in self.names:
            raise ModelError(f"the model has no device {name!r}; it knows {', '.join(self.names)}")
        return self.vectors[self.names.index(name)]
