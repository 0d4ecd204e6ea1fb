"""Design spaces: devices that do not exist, drawn from ranges of their facts. One TOML a space in `archs/spaces/`.

    [space]
    name = "gpu-2010-today"
    title = "GPUs from 2010 to today, integrated to data-centre"
    base = "nvidia-h200"                  # facts that are not drawn; may be left out if all are
    constraints = ["memory.l1.latency_cycles <= 0.8 * memory.l2.latency_cycles"]

    [[parameter]]
    name = "compute.compute_units"        # a fact of a device file, `timing.` and a field of TimingConfig, or a helper
    distribution = "log-uniform"          # or "uniform": low, high; "choice": values, weights; "product": neither
    low = 1
    high = 304
    multiple_of = 1                       # rounded to a multiple, which is 1 at least
    times = ["compute.clock_hz", 2]       # parameters above, or numbers, by which the drawn number is multiplied
    over = []                             # and divided

Points are Sobol's (scipy.stats.qmc, unscrambled), each coordinate shifted by a digital shift that follows from the seed
and the parameter's name, so they are the same with every release of scipy and numpy. Points that break a constraint
are passed over, the others numbered from 0.

Files are read by `perfvec.arch.space_files`.

Source: Sobol' 1967; direction numbers: Joe and Kuo 2008; digital shift: L'Ecuyer and Lemieux 2002, section 2.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.arch.device import (
    Compute,
    Device,
    LaunchCost,
    Memory,
    MemoryLevel,
    fact_names,
    find_device,
)
from perfvec.arch.timing.config import field_ranges
from perfvec.arch.timing.of_device import timing_config
from perfvec.errors import DeviceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arch.timing.config import TimingConfig

TIMING = "timing."
DISTRIBUTIONS = {"log-uniform": ("low", "high"), "uniform": ("low", "high"), "choice": ("values",), "product": ()}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"<=": operator.le, ">=": operator.ge}
_SOBOL_BITS = 30  # as scipy's default
_MOST_POINTS = 1 << 15
_DIGITS = 6  # significant digits of drawn numbers: the same on every machine, whatever its logarithm
Scalar = float | str | bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What is drawn.

    Attributes:
        name: Dotted name of a fact, `timing.` and a field of the timing model, or a helper's name without a dot.
        distribution: One of `log-uniform`, `uniform`, `choice`, `product`.
        low: Least number drawn; also of a product.
        high: Largest.
        values: What is chosen from.
        weights: How often each of them is; equally often where empty.
        times: Names of parameters above, or numbers, that multiply it.
        over: The same, that divide it.
        multiple_of: What it is rounded to; 0 for not.
    """

    name: str
    distribution: str
    low: float = 1.0
    high: float = 1.0
    values: tuple[Scalar, ...] = ()
    weights: tuple[float, ...] = ()
    times: tuple[str | float, ...] = ()
    over: tuple[str | float, ...] = ()
    multiple_of: float = 0.0

    def __post_init__(self) -> None:
        if self.distribution not in DISTRIBUTIONS:
            raise DeviceError(
                f"parameter {self.name}: distribution={self.distribution!r}; allowed: {', '.join(DISTRIBUTIONS)}"
            )
        least = 0.0 if self.distribution == "log-uniform" else -math.inf
        if not least < self.low <= self.high < math.inf:
            raise DeviceError(
                f"parameter {self.name}: low={self.low:g}, high={self.high:g}; allowed are finite numbers "
                f"{'over 0 ' if least == 0 else ''}with low <= high"
            )
        if self.distribution == "choice" and not self.values:
            raise DeviceError(f"parameter {self.name}: values is empty; give one or more")
        if self.weights and (len(self.weights) != len(self.values) or min(self.weights) < 0 or sum(self.weights) <= 0):
            raise DeviceError(
                f"parameter {self.name}: weights={list(self.weights)}; allowed is a number of 0 or more for each of "
                f"its {len(self.values)} values, not all 0"
            )
        if (self.times or self.over or self.multiple_of) and any(isinstance(v, str | bool) for v in self.values):
            raise DeviceError(f"parameter {self.name}: values that are no numbers cannot be multiplied or rounded")

    @property
    def is_drawn(self) -> bool:
        """Whether it takes a coordinate of the points."""
        return self.distribution != "product" and (self.low != self.high or len(self.values) > 1)

    def draw(self, coordinate: float, known: Mapping[str, Scalar]) -> Scalar:
        """The value at a coordinate from 0 to below 1, given those of the parameters above."""
        if self.distribution == "choice":
            weights = np.array(self.weights or [1.0] * len(self.values))
            value = self.values[int(np.searchsorted(np.cumsum(weights) / weights.sum(), coordinate, side="right"))]
        elif self.distribution == "log-uniform":
            value = self.low * (self.high / self.low) ** coordinate
        else:
            value = self.low + (self.high - self.low) * coordinate
        if isinstance(value, str | bool):
            return value
        for factor in self.times:
            value *= _factor(factor, known)
        for factor in self.over:
            value /= _factor(factor, known)
        if self.multiple_of:
            return max(1, round(value / self.multiple_of)) * self.multiple_of
        return float(f"{value:.{_DIGITS}g}")

    @property
    def range_text(self) -> str:
        """What it may be, for a reader."""
        if self.distribution == "choice":
            text = ", ".join(f"{v:g}" if isinstance(v, float | int) and v is not True else str(v) for v in self.values)
        elif self.distribution == "product":
            text = ""
        else:
            text = f"{self.low:g} to {self.high:g}"
        factors = [*(f"x {factor}" for factor in self.times), *(f"/ {factor}" for factor in self.over)]
        return " ".join(filter(None, (text, *factors)))


def _factor(factor: str | float, known: Mapping[str, Scalar]) -> float:
    return float(known[factor]) if isinstance(factor, str) else factor


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """`left <= factor * right` or `>=`; `right` is a parameter's name or a number."""

    text: str
    left: str
    comparison: str
    factor: float
    right: str

    def holds(self, values: Mapping[str, Scalar]) -> bool:
        """Whether it holds of drawn values."""
        right = values[self.right] if self.right in values else float(self.right)
        return COMPARISONS[self.comparison](float(values[self.left]), self.factor * float(right))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledDevice:
    """A device of a design space.

    Attributes:
        number: Its number in the sample.
        values: What was drawn, by parameter.
        device: Its facts.
        config: Its configuration of the timing model.
    """

    number: int
    values: Mapping[str, Scalar]
    device: Device
    config: TimingConfig


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DesignSpace:
    """A design space.

    Attributes:
        name: Also the name of its file.
        title: What it is about.
        parameters: What is drawn, in an order in which each refers to those above.
        constraints: What sampled devices keep to.
        base: Name of the device that facts which are not drawn are from; "" for none.
    """

    name: str
    title: str
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()
    base: str = ""

    def sample(self, num_devices: int, *, seed: int = 0) -> list[SampledDevice]:
        """Devices of the space; the first `n` are the same however many are asked for.

        Args:
            num_devices: How many, 1 or more.
            seed: Another seed, other devices.

        Raises:
            DeviceError: `num_devices` is not allowed, the constraints leave too little, or a device contradicts itself:
                the message names the field and what it allows.
        """
        if num_devices < 1:
            raise DeviceError(f"space {self.name!r}: {num_devices} devices asked for; allowed is 1 or more")
        drawn = [parameter.name for parameter in self.parameters if parameter.is_drawn]
        base = find_device(self.base) if self.base else None
        found: list[SampledDevice] = []
        first = 0
        num_points = 1 << max(4, (num_devices - 1).bit_length())
        while len(found) < num_devices:
            if num_points > max(_MOST_POINTS, 2 * num_devices):
                raise DeviceError(
                    f"space {self.name!r}: {len(found)} of {first} points keep to the constraints "
                    f"{'; '.join(item.text for item in self.constraints)}; widen the ranges or drop a constraint"
                )
            for point in sobol_points(drawn, num_points, seed=seed)[first:]:
                values = self._values(dict(zip(drawn, point.tolist(), strict=True)))
                if all(constraint.holds(values) for constraint in self.constraints):
                    found.append(self._device(len(found), values, base))
                    if len(found) == num_devices:
                        break
            first, num_points = num_points, 2 * num_points
        return found

    def _values(self, coordinates: Mapping[str, float]) -> dict[str, Scalar]:
        values: dict[str, Scalar] = {}
        for parameter in self.parameters:
            values[parameter.name] = parameter.draw(coordinates.get(parameter.name, 0.0), values)
        return values

    def _device(self, number: int, values: Mapping[str, Scalar], base: Device | None) -> SampledDevice:
        known = set(fact_names())
        facts = {name: value for name, value in values.items() if name in known}
        settings = {name.removeprefix(TIMING): v for name, v in values.items() if name.startswith(TIMING)}
        whole = {name for name, entry in field_ranges().items() if entry.is_whole}
        settings = {name: int(v) if name in whole else v for name, v in settings.items()}
        try:
            device = _device_of(f"{self.name}/{number}", facts, base)
            return SampledDevice(number=number, values=values, device=device, config=timing_config(device, settings))
        except DeviceError as error:
            raise DeviceError(
                f"space {self.name!r}, device {number}: {error}; add a constraint or change a range"
            ) from error


def sobol_points(names: Sequence[str], num_points: int, *, seed: int) -> NDArray[np.float64]:
    """Points of a shifted Sobol' sequence.

    Args:
        names: Coordinates; the shift of each follows from the seed and its name.
        num_points: A power of 2.
        seed: Any whole number.

    Returns:
        Numbers over 0 and below 1, shape `(num_points, len(names))`.
    """
    if not names:
        return np.zeros((num_points, 0))
    from scipy.stats import qmc

    points = qmc.Sobol(len(names), scramble=False, bits=_SOBOL_BITS).random_base2(num_points.bit_length() - 1)
    shift = [int(hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()[:8], 16) >> (32 - _SOBOL_BITS) for name in names]
    scale = 1 << _SOBOL_BITS
    return (((points * scale).astype(np.int64) ^ np.array(shift)) + 0.5) / scale


def sample_digest(devices: Sequence[SampledDevice]) -> str:
    """16 hex digits of what was drawn, by which a split knows that it is about the same devices."""
    state = hashlib.sha256()
    for item in devices:
        state.update(repr(sorted((name, str(value)) for name, value in item.values.items())).encode())
    return state.hexdigest()[:16]


def _device_of(name: str, facts: Mapping[str, Scalar], base: Device | None) -> Device:
    """A device of these facts, and the base's where they say nothing."""
    whole = {"int": int, "float": float}
    kinds = {
        f"{table}.{field}": whole[str(kind)]
        for table, record in (
            ("compute", Compute),
            *((f"memory.{level}", MemoryLevel) for level in ("dram", "l2", "l1", "local")),
            ("launch", LaunchCost),
        )
        for field, kind in record.__annotations__.items()
    }

    def record(kind: Callable[..., Any], table: str) -> Any:
        given = {
            path.removeprefix(f"{table}."): make(
                facts[path] if path in facts else base.fact(path) if base else math.nan
            )
            for path, make in kinds.items()
            if path.startswith(f"{table}.")
        }
        return kind(**given)

    levels = {level: record(MemoryLevel, f"memory.{level}") for level in ("dram", "l2", "l1", "local")}
    achieved = {path: value for path, value in base.achieved.items() if path not in facts} if base else {}
    source: dict[str, str] = dict.fromkeys(
        ("compute", "memory", "launch", "achieved"), "assumed: drawn from a design space"
    )
    return Device(
        name=name,
        vendor=base.vendor if base else "none",
        type=base.type if base else "gpu",
        architecture=base.architecture if base else "design space",
        year=base.year if base else 2026,
        compute=record(Compute, "compute"),
        memory=Memory(**levels),
        launch=record(LaunchCost, "launch"),
        sources=source,
        achieved=achieved,
    )
