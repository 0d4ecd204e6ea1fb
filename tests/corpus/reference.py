"""What the suites' NumPy references share: the launch as they see it, and what they expect of a buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfvec.arguments import BufferArg, LocalArg
from perfvec.launch import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCase:
    """A launch for a reference.

    Attributes:
        args: Per kernel parameter: the initial contents of a buffer, shape `(count,)` or `(count, stored lanes)`; a
            scalar as a NumPy scalar; for local memory its number of elements.
        defines: The `-D` options.
        global_size: Work-items in each dimension.
        local_size: Work-items of a group in each dimension.
    """

    args: list[Any]
    defines: dict[str, int]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]

    @classmethod
    def from_launch(cls, launch: Launch) -> ReferenceCase:
        return cls(
            args=[_value(arg) for arg in launch.args],
            defines={
                key: int(value)
                for key, _, value in (option.removeprefix("-D").partition("=") for option in launch.build_options)
            },
            global_size=launch.global_size,
            local_size=launch.local_size,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Contents expected of a buffer, with tolerances.

    Attributes:
        values: The expected contents, in the buffer's shape or flat.
        rtol: Relative tolerance: float32 sums of some hundred terms in another order.
        atol: Absolute tolerance.
        share: Part of the elements that must agree; below 1 only where rounding decides a branch.
    """

    values: NDArray[np.generic]
    rtol: float = 2e-4
    atol: float = 1e-5
    share: float = 1.0

    def check(self, found: NDArray[np.generic], *, what: str) -> None:
        """Assert that the buffer holds what is expected."""
        values = np.asarray(self.values).reshape(-1)
        assert values.shape == found.shape, f"{what}: reference has {values.shape}, buffer {found.shape}"
        if found.dtype.kind == "f":
            agree = np.isclose(found, values, rtol=self.rtol, atol=self.atol, equal_nan=False)
        else:
            agree = np.abs(found.astype(np.float64) - values.astype(np.float64)) <= self.atol
        wrong = np.flatnonzero(~agree)
        assert agree.mean() >= self.share, (
            f"{what}: {wrong.size} of {agree.size} elements differ; the first, [{wrong[0]}], "
            f"is {found[wrong[0]]}, expected {values[wrong[0]]}"
        )


def _value(arg: object) -> Any:
    if isinstance(arg, BufferArg):
        width = arg.element.num_lanes_stored
        return arg.array() if width == 1 else arg.array().reshape(-1, width)
    if isinstance(arg, LocalArg):
        return arg.count
    stored = arg.array()  # type: ignore[attr-defined]
    return stored[0] if stored.size == 1 else stored
