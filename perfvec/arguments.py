"""Kernel arguments as recipes: what to pass, written so that it regenerates byte for byte.

An argument is written as one string, on the command line, in suite files and in stored launches alike:

    buffer:DTYPE:COUNT[:INITIALISER][~SEED]     a buffer in global or constant memory
    DTYPE:VALUE[,VALUE...]                      a scalar, or a vector such as float32x4:1,2,3,4
    local:DTYPE:COUNT                           local memory

`DTYPE` is a NumPy name (float32, int32, uint8 ...) with an optional vector width (float32x4). `INITIALISER` is
one of the functions of `INITIALISERS`, such as `uniform(-1,1)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from perfvec.errors import LaunchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
)  # fmt: skip
VECTOR_WIDTHS = (1, 2, 3, 4, 8, 16)
# Random buffers repeat with this period: launches with gigabytes of data must regenerate quickly.
RANDOM_PERIOD = 1 << 20
MAX_BUFFER_BYTES = 1 << 35


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """The element type of a buffer or scalar: a NumPy scalar type times a vector width."""

    scalar: str
    width: int = 1

    def __post_init__(self) -> None:
        if self.scalar not in DTYPES:
            raise LaunchError(f"unknown type {self.scalar!r}; allowed: {', '.join(DTYPES)}, each with x2 to x16")
        if self.width not in VECTOR_WIDTHS:
            raise LaunchError(f"vector width {self.width} is not one of {VECTOR_WIDTHS}")

    @property
    def num_lanes_stored(self) -> int:
        """Scalars that one element takes in memory: OpenCL stores 3-vectors as 4."""
        return 4 if self.width == 3 else self.width

    @property
    def num_bytes(self) -> int:
        """Bytes that one element takes in memory."""
        return np.dtype(self.scalar).itemsize * self.num_lanes_stored

    def __str__(self) -> str:
        return self.scalar if self.width == 1 else f"{self.scalar}x{self.width}"

    @classmethod
    def parse(cls, text: str) -> ElementType:
        """Read `float32` or `float32x4`.

        Raises:
            LaunchError: The text is neither.
        """
        match = re.fullmatch(r"([a-z]+\d+)(?:x(\d+))?", text.strip())
        if match is None:
            raise LaunchError(f"unknown type {text!r}; write a NumPy name such as float32, or float32x4 for a vector")
        return cls(scalar=match[1], width=int(match[2] or 1))


# ---- initialisers: (rng, count, dtype, *parameters) -> array of `count` scalars ---------------------------------

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
    centre = np.arange(count) * (high / max(count, 1))
    noise = np.resize(rng.uniform(-spread, spread, min(count, RANDOM_PERIOD)), count)
    return _cast(np.clip(centre + noise, 0, max(high - 1, 0)), dtype)


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


# ---- arguments --------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BufferArg:
    """A buffer in global or constant memory, by recipe or by given bytes.

    `data` (little-endian bytes, `num_bytes` long) wins over the initialiser where it is given.
    """

    element: ElementType
    count: int
    initialiser: Initialiser
    seed: int = 0
    data: bytes | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise LaunchError(f"a buffer needs at least one element, found count {self.count}")
        if self.num_bytes > MAX_BUFFER_BYTES:
            raise LaunchError(f"a buffer of {self.num_bytes} bytes is over the limit of {MAX_BUFFER_BYTES}")
        if self.data is not None and len(self.data) != self.num_bytes:
            raise LaunchError(f"a buffer of {self.num_bytes} bytes was given {len(self.data)} bytes of data")

    @property
    def num_bytes(self) -> int:
        """Size in bytes."""
        return self.count * self.element.num_bytes

    def one_period(self) -> BufferArg:
        """The part of the buffer that has to be generated: the rest of the contents repeats it."""
        lanes = self.element.num_lanes_stored
        repeats = self.data is None and self.initialiser.name in PERIODIC and self.count * lanes > RANDOM_PERIOD
        return replace(self, count=RANDOM_PERIOD // lanes) if repeats else self

    def array(self) -> NDArray[np.generic]:
        """Make the contents: a fresh, writable array of scalars, shape `(count * stored lanes,)`."""
        dtype = np.dtype(self.element.scalar)
        if self.data is not None:
            return np.frombuffer(self.data, dtype).copy()
        fill, _, _ = INITIALISERS[self.initialiser.name]
        rng = np.random.Generator(np.random.PCG64(self.seed))
        values = fill(rng, self.count * self.element.num_lanes_stored, dtype, *self.initialiser.parameters)
        return np.ascontiguousarray(values)

    def __str__(self) -> str:
        return f"buffer:{self.element}:{self.count}:{self.initialiser}~{self.seed}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArg:
    """A scalar or vector passed by value."""

    element: ElementType
    values: tuple[float | int, ...]

    def __post_init__(self) -> None:
        if len(self.values) != self.element.width:
            raise LaunchError(f"{self.element} takes {self.element.width} values, found {len(self.values)}")
        dtype = np.dtype(self.element.scalar)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            for value in self.values:
                if int(value) != value or not info.min <= value <= info.max:
                    raise LaunchError(
                        f"{value} is not a {self.element}: allowed are whole numbers {info.min} to {info.max}"
                    )

    def array(self) -> NDArray[np.generic]:
        """The value as stored in memory, shape `(stored lanes,)`; a 3-vector is padded to 4."""
        stored = np.zeros(self.element.num_lanes_stored, np.dtype(self.element.scalar))
        stored[: len(self.values)] = self.values
        return stored

    def __str__(self) -> str:
        is_integer = np.dtype(self.element.scalar).kind in "iu"
        return f"{self.element}:{','.join(str(int(v)) if is_integer else f'{v:.17g}' for v in self.values)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArg:
    """Local memory passed as an argument."""

    element: ElementType
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise LaunchError(f"local memory needs at least one element, found count {self.count}")

    @property
    def num_bytes(self) -> int:
        """Size in bytes."""
        return self.count * self.element.num_bytes

    def __str__(self) -> str:
        return f"local:{self.element}:{self.count}"


Argument: TypeAlias = BufferArg | ScalarArg | LocalArg


def default_initialiser(element: ElementType, count: int) -> Initialiser:
    """What a buffer holds unless told: floats uniform in [0, 1), integers uniform in [0, count) as far as they go."""
    dtype = np.dtype(element.scalar)
    if dtype.kind == "f":
        return Initialiser(name="uniform", parameters=(0.0, 1.0))
    return Initialiser(name="indices", parameters=(float(min(count, int(np.iinfo(dtype).max))),))


def parse_argument(text: str, *, position: int = 0) -> Argument:
    """Read an argument from its string form (see the module's text).

    Args:
        text: The argument as written.
        position: Its place in the argument list, from 0; the default seed of a buffer.

    Raises:
        LaunchError: The text does not follow the form, or a type, count, value or initialiser is not allowed.
    """
    kind, _, rest = text.strip().partition(":")
    if kind == "buffer":
        return _parse_buffer(rest, text, position)
    if kind == "local":
        dtype, _, count = rest.partition(":")
        return LocalArg(element=ElementType.parse(dtype), count=_count(count, text))
    element = ElementType.parse(kind)
    if not rest:
        raise LaunchError(f"argument {text!r} has no value; write for example {element}:1")
    is_integer = np.dtype(element.scalar).kind in "iu"
    numbers = [_scalar(part, text, is_integer) for part in rest.split(",")]
    if len(numbers) == 1 and element.width > 1:
        numbers *= element.width
    return ScalarArg(element=element, values=tuple(numbers))


def _parse_buffer(rest: str, text: str, position: int) -> BufferArg:
    body, _, seed_text = rest.partition("~")
    dtype, _, tail = body.partition(":")
    count_text, _, init_text = tail.partition(":")
    element, count = ElementType.parse(dtype), _count(count_text, text)
    initialiser = Initialiser.parse(init_text) if init_text.strip() else default_initialiser(element, count)
    seed = _count(seed_text, text) if seed_text else position
    return BufferArg(element=element, count=count, initialiser=initialiser, seed=seed)


def _count(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise LaunchError(
            f"{text!r} in argument {where!r} is not a whole number; the forms are "
            "buffer:DTYPE:COUNT[:INITIALISER][~SEED], DTYPE:VALUE and local:DTYPE:COUNT"
        ) from error


def _scalar(text: str, where: str, is_integer: bool) -> float | int:
    try:
        return int(text, 0) if is_integer else float(text)
    except ValueError as error:
        wanted = "a whole number" if is_integer else "a number"
        raise LaunchError(f"{text!r} in argument {where!r} is not {wanted}") from error
