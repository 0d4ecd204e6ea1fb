"""Ways to fill a buffer: random numbers and regular ones, the same on every machine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfvec.errors import LaunchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Random buffers repeat with this period: launches with gigabytes of data must regenerate quickly.
RANDOM_PERIOD = 1 << 20
# Scalars that are worked on together, so that they stay in the processor's cache; of RANDOM_PERIOD a whole number.
_PIECE = 1 << 14

# (rng, count, dtype, *parameters) -> array of `count` scalars
Fill: TypeAlias = "Callable[..., NDArray[np.generic]]"


def _cast(values: NDArray[np.generic], dtype: np.dtype) -> NDArray[np.generic]:
    if dtype.kind in "iu" and values.dtype.kind == "f":
        values = np.floor(values)
    return values.astype(dtype, copy=False)


def _periodic(draw: Callable[[int], NDArray[np.generic]], count: int, dtype: np.dtype) -> NDArray[np.generic]:
    block = _cast(draw(min(count, RANDOM_PERIOD)), dtype)
    return block if count <= RANDOM_PERIOD else np.resize(block, count)


def _constant(_rng: np.random.Generator, count: int, dtype: np.dtype, value: float = 0.0) -> NDArray[np.generic]:
    return np.full(count, value, dtype)


def _uniform(
    rng: np.random.Generator, count: int, dtype: np.dtype, low: float = 0.0, high: float = 1.0
) -> NDArray[np.generic]:
    if dtype.kind in "iu":
        return _periodic(lambda n: rng.integers(int(low), int(high), n, endpoint=True), count, dtype)
    return _periodic(lambda n: rng.uniform(low, high, n), count, dtype)


def _normal(
    rng: np.random.Generator, count: int, dtype: np.dtype, mean: float = 0.0, std: float = 1.0
) -> NDArray[np.generic]:
    return _periodic(lambda n: rng.normal(mean, std, n), count, dtype)


def _arange(
    _rng: np.random.Generator, count: int, dtype: np.dtype, start: float = 0.0, step: float = 1.0
) -> NDArray[np.generic]:
    return _cast(start + step * np.arange(count), dtype)


def _indices(rng: np.random.Generator, count: int, dtype: np.dtype, high: float) -> NDArray[np.generic]:
    return _periodic(lambda n: rng.integers(0, max(int(high), 1), n), count, dtype)


def _near_indices(
    rng: np.random.Generator, count: int, dtype: np.dtype, high: float, spread: float
) -> NDArray[np.generic]:
    noise = rng.uniform(-spread, spread, min(count, RANDOM_PERIOD))
    values = np.empty(count, dtype)
    numbers = np.arange(min(count, _PIECE), dtype=np.float64)
    place = np.empty(len(numbers))
    for start in range(0, count, _PIECE):
        end, at = min(start + _PIECE, count), start % RANDOM_PERIOD
        index = np.add(numbers[: end - start], float(start), out=place[: end - start])
        index *= high / max(count, 1)
        index += noise[at : at + len(index)]
        np.clip(index, 0, max(high - 1, 0), out=index)
        values[start:end] = np.floor(index, out=index) if dtype.kind in "iu" else index
    return values


def _permutation(rng: np.random.Generator, count: int, dtype: np.dtype) -> NDArray[np.generic]:
    return rng.permutation(count).astype(dtype)


def _sorted(
    rng: np.random.Generator, count: int, dtype: np.dtype, low: float = 0.0, high: float = 1.0
) -> NDArray[np.generic]:
    return np.sort(_cast(rng.uniform(low, high, count), dtype))


def _offsets(
    rng: np.random.Generator, count: int, dtype: np.dtype, total: float, skew: float = 0.0
) -> NDArray[np.generic]:
    lengths = rng.lognormal(0.0, skew, max(count - 1, 1)) if skew > 0 else np.ones(max(count - 1, 1))
    ends = np.concatenate([[0.0], np.cumsum(lengths)])[:count]
    return np.round(ends * (total / ends[-1] if ends[-1] else 0.0)).astype(dtype)


INITIALISERS: dict[str, tuple[Fill, int, int]] = {
    # name: (function, fewest parameters, most parameters)
    "constant": (_constant, 0, 1),  # constant(value)
    "uniform": (_uniform, 0, 2),  # uniform(low, high); integers include both ends
    "normal": (_normal, 0, 2),  # normal(mean, std)
    "arange": (_arange, 0, 2),  # arange(start, step)
    "indices": (_indices, 1, 1),  # indices(high): random integers in [0, high)
    "near_indices": (_near_indices, 2, 2),  # near_indices(high, spread): i * high / count, give or take spread
    "permutation": (_permutation, 0, 0),  # a random permutation of 0 .. count - 1
    "sorted": (_sorted, 0, 2),  # sorted(low, high): uniform numbers in rising order
    "offsets": (_offsets, 1, 2),  # offsets(total, skew): CSR row offsets from 0 to total, log-normal row lengths
}


# Initialisers whose contents repeat after RANDOM_PERIOD scalars.
PERIODIC = ("constant", "uniform", "normal", "indices")


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialiser:
    """A named way to fill a buffer, with its parameters; see `INITIALISERS`."""

    name: str
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in INITIALISERS:
            raise LaunchError(f"unknown initialiser {self.name!r}; allowed: {', '.join(INITIALISERS)}")
        _, fewest, most = INITIALISERS[self.name]
        if not fewest <= len(self.parameters) <= most:
            raise LaunchError(
                f"initialiser {self.name!r} takes {fewest} to {most} parameters, found {len(self.parameters)}"
            )

    def __str__(self) -> str:
        return f"{self.name}({','.join(f'{p:.17g}' for p in self.parameters)})"

    @classmethod
    def parse(cls, text: str) -> Initialiser:
        """Read `uniform(-1,1)`; brackets may be left out where there are no parameters."""
        match = re.fullmatch(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*", text)
        if match is None:
            raise LaunchError(f"cannot read initialiser {text!r}; write for example uniform(-1,1) or indices(1024)")
        parts = [part for part in (match[2] or "").split(",") if part.strip()]
        return cls(name=match[1], parameters=tuple(_number(part, text) for part in parts))


def _number(text: str, where: str) -> float:
    try:
        return float(int(text, 0)) if re.fullmatch(r"\s*[-+]?(0x)?[0-9a-fA-F]+\s*", text) else float(text)
    except ValueError as error:
        raise LaunchError(f"{text!r} in {where!r} is not a number") from error
