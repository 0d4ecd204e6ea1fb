"""Which launch to measure next.

Legend: D vector, n candidate, m target, f direction of the targets, c the candidate that is measured. With `S` the
covariance of log a (`posterior.py`), `w` shares and `s²` the noise, launch c takes from the summed variance of the
targets

    sum over m of (w_m' S w_c)² / (w_c' S w_c + s²)

The targets' shares w_m, `(m, D)`, are few directions f for the most part: with F'F = sum of w_m w_m' ÷ m, the mean is
|F S w_c|² / (w_c' S w_c + s²). What a measurement changes are covariances between candidates and targets, each by a
rank-one update, so S itself never changes.

Source:
    Sequential design for the average predictive variance (V-optimality): Cohn, "Neural network exploration using
    optimal experiment design", 1996; MacKay, "Information-based objective functions", 1992, section 4. Cholesky
    factor with pivots, stopped at a trace: Harbrecht, Peters and Schneider, Applied Numerical Mathematics 2012.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

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
_LEFT_OUT = 1e-5


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
        target_mD = single_shares(targets, belief.log_mean)
        gram_DD = target_mD.T @ target_mD
        gram_DD /= len(target_mD)
        self._mean_variance = self._prior.mean_variance(gram_DD)
        directions_fD = few_directions(gram_DD)
        self._shares_nD = single_shares(candidates, belief.log_mean)
        # Of a candidate's log time without its noise, its kernel's misfit included: its variance, its covariance with
        # the targets' directions, and, once launches are measured, its row of the Cholesky factor with them.
        self._variance_n = self._prior.variance(self._shares_nD) + np.float32(self._kernel_variance)
        self._cross_nF = self._shares_nD @ self._prior.times(directions_fD).T
        self._measured: list[NDArray[np.float32]] = []
        self._is_open = np.ones(len(candidates), dtype=bool)

    @property
    def mean_variance(self) -> float:
        """Variance of the log time, mean over the targets, as far as measuring can take it away."""
        return max(self._mean_variance, 0.0)

    def gains(self) -> NDArray[np.float64]:
        """What each candidate would take from `mean_variance`, per cost; `(n,)`, 0 for what was chosen."""
        explained_n = np.einsum("nf,nf->n", self._cross_nF, self._cross_nF).astype(np.float64)
        gain_n = explained_n / (self._variance_n + self._noise_variance)
        return np.where(self._is_open, gain_n if self._costs is None else gain_n / self._costs, 0.0)

    def choose(self) -> int:
        """The candidate with the largest gain; it counts as measured from then on.

        Raises:
            ModelError: All candidates are chosen.
        """
        if not self._is_open.any():
            raise ModelError("every candidate is chosen already; give more candidates")
        chosen = int(np.argmax(np.where(self._is_open, self.gains(), -1.0)))
        self.measure(chosen)
        return chosen

    def measure(self, row: int) -> None:
        """Count a candidate as measured."""
        self._is_open[row] = False
        # Covariance of every candidate with the measured one, given what was measured before.
        with_row_n = self._shares_nD @ self._prior.times(self._shares_nD[row])
        with_row_n[self._kernel_n == self._kernel_n[row]] += self._kernel_variance
        for before_n in self._measured:
            with_row_n -= before_n * before_n[row]
        deviation = np.float32((self._variance_n[row] + self._noise_variance) ** 0.5)
        with_row_n /= deviation
        cross_F = self._cross_nF[row] / deviation
        self._mean_variance -= float(cross_F @ cross_F)
        self._variance_n = np.maximum(self._variance_n - np.square(with_row_n), 0)
        self._cross_nF -= np.outer(with_row_n, cross_F)
        self._measured.append(with_row_n)


def few_directions(gram_DD: NDArray[np.float32]) -> NDArray[np.float32]:
    """Few directions F with F'F about a positive semi-definite matrix; what is left out has 10⁻⁵ of its trace.

    Args:
        gram_DD: The matrix, `(D, D)`; overwritten.

    Returns:
        Float32 `(f, D)`, f at most D.
    """
    from scipy.linalg import get_lapack_funcs

    dim, trace = len(gram_DD), float(np.trace(gram_DD, dtype=np.float64))
    (pivoted_cholesky,) = get_lapack_funcs(("pstrf",), (gram_DD,))
    # The transpose is the same matrix, in LAPACK's order. The factor's rows come in the order of their pivots, and what
    # each takes from the trace is the sum of its squares.
    upper_DD, pivots, rank, _ = pivoted_cholesky(gram_DD.T, tol=_LEFT_OUT * trace / dim, overwrite_a=True)
    upper_fD = np.triu(upper_DD[:rank])
    taken_f = np.cumsum(np.einsum("fd,fd->f", upper_fD, upper_fD), dtype=np.float64)
    kept = min(int(np.searchsorted(taken_f, (1 - _LEFT_OUT) * trace)) + 1, rank)
    directions_fD = np.empty((kept, dim), dtype=np.float32)
    directions_fD[:, pivots - 1] = upper_fD[:kept]
    return directions_fD
