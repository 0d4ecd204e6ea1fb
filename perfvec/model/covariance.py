"""Covariances of many coordinates of which few directions are correlated: never held as a dense matrix.

Legend: D coordinate, r direction that coordinates share, k direction in which something was measured, n and m rows.

    S = diag(own) + shared' shared - taken' taken

A prior has a diagonal and a few shared directions, and each measurement takes one direction away. A product with a row
costs O((r + k) D) instead of O(D²), and is in the precision of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np

from perfvec.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Real = TypeVar("Real", np.float32, np.float64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Covariance:
    """A symmetric, positive semi-definite matrix by its parts.

    Attributes:
        own: Variance of each coordinate by itself; float64 `(D,)`, 0 or more.
        shared: Directions that coordinates have in common; float64 `(r, D)`.
        taken: What measurements took away; float64 `(k, D)`, k at most D.
    """

    own: NDArray[np.float64]
    shared: NDArray[np.float64]
    taken: NDArray[np.float64]

    def __post_init__(self) -> None:
        size = len(self.own)
        if self.own.ndim != 1 or not self.shared.shape[1:] == self.taken.shape[1:] == (size,):
            raise ModelError(
                f"variances of shape {self.own.shape}, shared directions {self.shared.shape} and taken ones "
                f"{self.taken.shape} do not match"
            )
        if not all(np.isfinite(part).all() for part in (self.own, self.shared, self.taken)):
            raise ModelError("a covariance has a value that is not finite")
        if (self.own < 0).any():
            raise ModelError(f"a variance is {self.own.min()}; allowed are numbers of 0 or more")

    @classmethod
    def of(cls, own: NDArray[np.float64], shared: NDArray[np.float64] | None = None) -> Covariance:
        """A covariance that nothing was measured of.

        Args:
            own: Variance of each coordinate by itself, `(D,)`.
            shared: Directions that coordinates have in common, `(r, D)`; none where it is None.

        Raises:
            ModelError: The shapes differ, a value is not finite, or a variance is negative.
        """
        none_0D = np.zeros((0, len(own)))
        return cls(own=own, shared=none_0D if shared is None else shared, taken=none_0D)

    def times(self, rows_nD: NDArray[Real]) -> NDArray[Real]:
        """Product of rows with the matrix; `(n, D)`, or `(D,)` for one row."""
        own_D, shared_rD, taken_kD = self._parts(rows_nD)
        product_nD = rows_nD * own_D + (rows_nD @ shared_rD.T) @ shared_rD - (rows_nD @ taken_kD.T) @ taken_kD
        return np.asarray(product_nD, dtype=rows_nD.dtype)

    def among(self, rows_nD: NDArray[Real]) -> NDArray[Real]:
        """Covariance of sums of the coordinates, each row the weights of one; `(n, n)`."""
        own_D, shared_rD, taken_kD = self._parts(rows_nD)
        # Each a matrix times its own transpose, which is half the work and symmetric to the last bit.
        own_nD, shared_nr, taken_nk = rows_nD * np.sqrt(own_D), rows_nD @ shared_rD.T, rows_nD @ taken_kD.T
        product_nn = own_nD @ own_nD.T + shared_nr @ shared_nr.T - taken_nk @ taken_nk.T
        return np.asarray(product_nn, dtype=rows_nD.dtype)

    def variance(self, rows_nD: NDArray[Real]) -> NDArray[Real]:
        """The diagonal of `among`, `(n,)`; what rounding leaves below 0 is 0."""
        own_D, shared_rD, taken_kD = self._parts(rows_nD)
        variance_n = np.einsum("nd,nd,d->n", rows_nD, rows_nD, own_D)
        # One product, for narrow ones take as long as wide ones.
        square_nR = np.square(rows_nD @ np.concatenate([shared_rD, taken_kD]).T)
        variance_n += square_nR[:, : len(shared_rD)].sum(axis=1) - square_nR[:, len(shared_rD) :].sum(axis=1)
        return np.maximum(variance_n, 0)

    def _parts(self, rows_nD: NDArray[Real]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        own_D, shared_rD, taken_kD = (
            part.astype(rows_nD.dtype, copy=False) for part in (self.own, self.shared, self.taken)
        )
        return own_D, shared_rD, taken_kD

    def scaled(self, factor_D: NDArray[np.float64]) -> Covariance:
        """Covariance of the coordinates, each times a factor; `(D,)`."""
        return Covariance(
            own=self.own * np.square(factor_D), shared=self.shared * factor_D, taken=self.taken * factor_D
        )

    def less(self, taken_kD: NDArray[np.float64]) -> Covariance:
        """What is left when measurements take `taken' taken` away.

        Args:
            taken_kD: Directions, `(k, D)`; what they take must be there.
        """
        every_kD = np.concatenate([self.taken, taken_kD])
        if len(every_kD) > len(self.own):
            # Q'Q = 1, so R'R is the same sum of at most D directions.
            every_kD = np.asarray(np.linalg.qr(every_kD, mode="r"))
        return Covariance(own=self.own, shared=self.shared, taken=every_kD)


def variances(covariances: Sequence[Covariance], rows_nD: NDArray[np.float64]) -> NDArray[np.float64]:
    """`Covariance.variance` of several, `(covariances, n)`: a few large products instead of many narrow ones."""
    own_CD = np.stack([item.own for item in covariances])
    parts = [part_rD for item in covariances for part_rD in (item.shared, item.taken)]
    # Which covariance a direction belongs to, and whether it adds to it or was taken from it.
    sign_RC = np.repeat(np.kron(np.eye(len(covariances)), [[1.0], [-1.0]]), [len(part) for part in parts], axis=0)
    variance_nC = np.square(rows_nD) @ own_CD.T + np.square(rows_nD @ np.concatenate(parts).T) @ sign_RC
    return np.maximum(variance_nC.T, 0.0)
