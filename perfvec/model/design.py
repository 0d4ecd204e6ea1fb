"""Which launch to measure next.

Legend: D vector, n candidate, m target, f direction of the targets, c the candidate that is measured, k what was
measured before, q some candidates, b a block of coordinates. With `S` the covariance of log a (`posterior.py`), `w`
shares and `s²` the noise, launch c takes from the summed variance of the targets

    sum over m of (w_m' S w_c)² / (w_c' S w_c + s²)

The targets' shares w_m, `(m, D)`, are few directions f for the most part: with F'F = sum of w_m w_m' ÷ m, the mean is
|F S w_c|² / (w_c' S w_c + s²). These gains tell which candidates may be the best, and of those q the gains are taken by
all targets. What a measurement changes are covariances between candidates and targets, each by a rank-one update, so S
itself never changes.

Source:
    Sequential design for the average predictive variance (V-optimality): Cohn, "Neural network exploration using
    optimal experiment design", 1996; MacKay, "Information-based objective functions", 1992, section 4. Cholesky
    factor with pivots, stopped at a trace: Harbrecht, Peters and Schneider, Applied Numerical Mathematics 2012.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from perfvec.errors import ModelError
from perfvec.model.posterior import DeviceBelief, Misfit, single_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A launch is chosen from a random pool of so many for each that is to be measured. Of all launches the design would
# take the most extreme, which are those that the model fits worst.
_POOL_PER_CHOICE = 4
# Of the summed squares of the targets' shares, so much may be left out.
_LEFT_OUT = 3e-4
# Directions are those of so many targets at most, evenly taken; variances and choices are by all.
_MOST_FOR_DIRECTIONS = 2000
# Coordinates whose products with all others are taken at once: more are quicker each, but more of them prove needless.
_BLOCK = 64
# Of so many candidates with the largest gains by the few directions, the gains are taken by all targets. From the
# shipped set the best by all was never behind the fourth.
_MOST_LIKELY = 16


def random_pool(num_candidates: int, num_choices: int, *, seed: int) -> NDArray[np.int64]:
    """The candidates that a design may choose from; sorted rows.

    Args:
        num_candidates: How many there are.
        num_choices: How many are to be chosen.
        seed: Another seed, another pool.
    """
    rows = np.random.default_rng(seed).permutation(num_candidates)
    return np.sort(rows[: _POOL_PER_CHOICE * num_choices])


@final
class Design:
    """Chooses launches one after another: each shrinks the variance over the target launches most, per cost.

    The variance after a measurement does not depend on the time that is measured, so a whole sequence can be planned
    ahead; after times have come in, plan again from the posterior.
    """

    def __init__(
        self,
        belief: DeviceBelief,
        candidates: NDArray[np.float64],
        targets: NDArray[np.float64],
        misfit: Misfit,
        *,
        kernels: Sequence[str],
        costs: NDArray[np.float64] | None = None,
    ) -> None:
        """Prepare.

        Args:
            belief: The device as it is known.
            candidates: Program vectors that may be measured, `(n, D)`.
            targets: Program vectors that are to be predicted, `(m, D)`.
            misfit: What the model cannot express.
            kernels: Kernel of each candidate. A kernel's second launch says less: its misfit is partly the first's.
            costs: What each candidate costs, such as seconds; `(n,)`, positive; all alike where it is None.

        Raises:
            ModelError: The shapes do not fit, or a cost is not positive.
        """
        if len(kernels) != len(candidates) or (costs is not None and costs.shape != (len(candidates),)):
            raise ModelError(f"{len(candidates)} candidates need as many kernels and costs")
        if costs is not None and not (costs > 0).all():
            raise ModelError("the cost of a candidate must be above 0")
        self._costs = costs
        self._kernel_n = np.unique(np.asarray(kernels, dtype=object).astype(str), return_inverse=True)[1]
        self._kernel_variance = misfit.kernel**2
        self._noise_variance = misfit.launch**2 + misfit.noise**2
        self._prior = belief.covariance
        # In single precision: sums of shares, which are positive, are right to a few parts in a million.
        self._shares_nD = single_shares(candidates, belief.log_mean)
        is_same = targets is candidates
        self._target_mD = self._shares_nD if is_same else single_shares(targets, belief.log_mean)
        directions_fD = few_directions(self._target_mD[:: -(-len(self._target_mD) // _MOST_FOR_DIRECTIONS)])
        # Of a candidate's log time without its noise, its kernel's misfit included: its variance, its covariance with
        # the targets' directions, and, once launches are measured, its row of the Cholesky factor with them.
        own_n = self._prior.variance(self._shares_nD)
        own_m = own_n if is_same else self._prior.variance(self._target_mD)
        self._mean_variance = float(own_m.mean(dtype=np.float64))
        self._variance_n = own_n + np.float32(self._kernel_variance)
        self._cross_nF = self._shares_nD @ self._prior.times(directions_fD).T
        # What was measured: its covariance with every candidate, and with every coordinate.
        self._measured: list[NDArray[np.float32]] = []
        self._measured_coordinates: list[NDArray[np.float64]] = []
        self._is_open = np.ones(len(candidates), dtype=bool)

    @property
    def mean_variance(self) -> float:
        """Variance of the log time, mean over the targets, as far as measuring can take it away."""
        return max(self._mean_variance, 0.0)

    def gains(self) -> NDArray[np.float64]:
        """What each candidate would take from `mean_variance`, per cost; `(n,)`, 0 for what was chosen.

        By the few directions of the targets, so approximate.
        """
        explained_n = np.einsum("nf,nf->n", self._cross_nF, self._cross_nF)
        return np.where(self._is_open, self._per_cost(explained_n, slice(None)), 0.0)

    def choose(self) -> int:
        """The candidate with the largest gain; it counts as measured from then on.

        Raises:
            ModelError: All candidates are chosen.
        """
        open_rows = np.flatnonzero(self._is_open)
        if not len(open_rows):
            raise ModelError("every candidate is chosen already; give more candidates")
        likely_q = open_rows[np.argsort(-self.gains()[open_rows], kind="stable")[:_MOST_LIKELY]]
        likely_q.sort()
        explained_q = self._explained(self._with_coordinates(likely_q))
        chosen = int(likely_q[np.argmax(self._per_cost(explained_q, likely_q))])
        self.measure(chosen)
        return chosen

    def _per_cost(self, explained_q: NDArray[Any], rows_q: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """Gains of some candidates, from their mean squared covariance with the targets."""
        gain_q = np.asarray(explained_q / (self._variance_n[rows_q] + self._noise_variance), dtype=np.float64)
        return gain_q if self._costs is None else gain_q / self._costs[rows_q]

    def _with_coordinates(self, rows_q: NDArray[np.int64]) -> NDArray[np.float64]:
        """Covariance of some candidates with each coordinate, given what was measured; `(q, D)`.

        In double precision: what is left after many measurements is small beside what they took.
        """
        covariance_qD = self._prior.times(self._shares_nD[rows_q].astype(np.float64))
        if self._measured:
            before_qk = np.stack([before_n[rows_q] for before_n in self._measured], axis=1)
            covariance_qD -= before_qk @ np.stack(self._measured_coordinates)
        return covariance_qD

    def _explained(self, covariance_qD: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean squared covariance with the targets, given that with the coordinates; `(q,)`."""
        with_targets_qm = covariance_qD.astype(np.float32) @ self._target_mD.T
        return np.square(with_targets_qm, dtype=np.float64).mean(axis=1)

    def measure(self, row: int) -> None:
        """Count a candidate as measured."""
        self._is_open[row] = False
        coordinates_D = self._with_coordinates(np.array([row]))[0]
        # Covariance of every candidate with the measured one, given what was measured before.
        with_row_n = self._shares_nD @ self._prior.times(self._shares_nD[row])
        with_row_n[self._kernel_n == self._kernel_n[row]] += self._kernel_variance
        for before_n in self._measured:
            with_row_n -= before_n * before_n[row]
        deviation = (self._variance_n[row] + self._noise_variance) ** 0.5
        with_row_n /= np.float32(deviation)
        coordinates_D /= deviation
        cross_F = self._cross_nF[row] / np.float32(deviation)
        self._mean_variance -= float(self._explained(coordinates_D[None])[0])
        self._variance_n = np.maximum(self._variance_n - np.square(with_row_n), 0)
        self._cross_nF -= np.outer(with_row_n, cross_F)
        self._measured.append(with_row_n)
        self._measured_coordinates.append(coordinates_D)


def few_directions(rows_mD: NDArray[np.float32]) -> NDArray[np.float32]:
    """Few directions F with F'F about the mean of row' row over many rows; they leave 3 · 10⁻⁴ of its trace.

    A Cholesky factor with pivots, for which only the pivots' rows of the matrix are ever made: in each round those of
    the coordinates with most left, which count as pivots as long as no other coordinate has more.

    Args:
        rows_mD: The rows, `(m, D)`; one or more.

    Returns:
        Float32 `(f, D)`, f at most D.
    """
    from scipy.linalg import get_lapack_funcs, solve_triangular

    (pivoted_cholesky,) = get_lapack_funcs(("pstrf",), (rows_mD,))
    count, dim = rows_mD.shape
    left_D = np.einsum("md,md->d", rows_mD, rows_mD).astype(np.float64) / count
    allowed = _LEFT_OUT * float(left_D.sum())
    directions_DD = np.empty((dim, dim), dtype=np.float32)
    found = 0
    while left_D.sum() > allowed and found < dim:
        order_D = np.argsort(-left_D)
        block = order_D[:_BLOCK]
        others_most = float(left_D[order_D[_BLOCK]]) if dim > _BLOCK else 0.0
        left_bD = rows_mD[:, block].T @ rows_mD
        left_bD /= count
        left_bD -= directions_DD[:found, block].T @ directions_DD[:found]
        upper_bb, pivots, rank, _ = pivoted_cholesky(left_bD[:, block], tol=max(others_most, allowed / dim))
        if rank == 0:
            break  # what is left is rounding
        taken = pivots[:rank] - 1
        added_fD = solve_triangular(upper_bb[:rank, :rank], left_bD[taken], trans=1, check_finite=False)
        directions_DD[found : found + rank] = added_fD
        found += rank
        left_D = np.maximum(left_D - np.einsum("fd,fd->d", added_fD, added_fD), 0)
        left_D[block[taken]] = 0
    return directions_DD[:found]
