"""Whether a line is still in a cache: from stack distances, without addresses.

With `D` distinct lines touched since the line was touched last, falling on the `S` sets of `A` ways independently, the
line is still there if fewer than `A` of them fell on its set. Their number is binomial, `B(D, 1/S)`, nearly Poisson:

    P(hit) = P(Poisson(D/S) < A) = Q(A, D/S),   D/S = A · (D lines' bytes) / (the cache's bytes)

Source:
    Set associativity from stack distances: Smith, "A Comparative Study of Set Associative Memory Mapping Algorithms
    and Their Use for Cache and Main Memory", IEEE TSE 1978; Hill and Smith, "Evaluating Associativity in CPU Caches",
    IEEE Trans. Computers 38, 1989. Q is the regularised upper incomplete gamma function, DLMF 8.2.4 and 8.4.10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.trace_data import LINE_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_BUCKETS = 64


def hit_probability(
    distance_lines: NDArray[np.float64], cache_bytes: NDArray[np.float64], ways: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Probability that a line is still in a cache.

    Args:
        distance_lines: Distinct lines of 128 B touched since it was touched last.
        cache_bytes: Bytes of the cache; 0 for none.
        ways: Lines of a set.

    Returns:
        From 0 to 1, of the arguments' common shape.
    """
    from scipy.special import gammaincc

    bytes_since = np.asarray(distance_lines) * LINE_BYTES
    in_set = ways * bytes_since / np.maximum(cache_bytes, 1.0)
    return np.where(np.asarray(cache_bytes) > 0, gammaincc(ways, in_set), 0.0)


def bucket_distances() -> NDArray[np.float64]:
    """A distance in lines for each bucket of the trace's reuse distances, `(NUM_BUCKETS,)`.

    Bucket `b` holds distances from `2^(b-1) - 1` to `2^b - 2`; its middle stands for it. Bucket 0 is a first touch:
    no distance, infinity.
    """
    power = 2.0 ** np.arange(NUM_BUCKETS)
    distances = 0.75 * power - 1.5  # the mean of both ends
    distances[0] = np.inf
    return np.maximum(distances, 0.0)
