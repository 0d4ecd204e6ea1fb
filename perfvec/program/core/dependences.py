"""Dependences between the tokens of a window."""

from __future__ import annotations

import numpy as np

from perfvec.program.core.jit import counted


@counted
def find_producers(token_static, window_start, producers, is_load):
    """See `perfvec.program.features.nearest_producers`."""
    num_tokens = token_static.shape[0]
    distance = np.zeros(num_tokens, np.int64)
    is_from_load = np.zeros(num_tokens, np.bool_)
    count = np.zeros(num_tokens, np.int64)
    last = np.full(producers.shape[0], -1, np.int64)
    for window in range(window_start.shape[0] - 1):
        first = window_start[window]
        for token in range(first, window_start[window + 1]):
            static = token_static[token]
            for k in range(producers.shape[1]):
                producer = producers[static, k]
                if producer < 0 or last[producer] < first:
                    continue
                count[token] += 1
                gap = token - last[producer]
                if distance[token] == 0 or gap < distance[token]:
                    distance[token] = gap
                    is_from_load[token] = is_load[producer]
            last[static] = token
    return distance, is_from_load, count
