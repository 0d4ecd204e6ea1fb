"""Units of the tokens of each window added up."""

from __future__ import annotations

import numpy as np

from perfvec.program.core.bits import unsigned
from perfvec.program.core.jit import counted


@counted
def count_executions(token_static, token_memory, window_start, window_weight, num_static, num_outcomes):
    """How often the launch executes each instruction and has each memory outcome; arrays as a trace has them."""
    by_static, by_outcome = np.zeros(num_static), np.zeros(num_outcomes)
    for window in range(window_weight.shape[0]):
        for token in range(window_start[window], window_start[window + 1]):
            by_static[token_static[unsigned(token)]] += window_weight[window]
            outcome = token_memory[unsigned(token)]
            if outcome >= 0:
                by_outcome[unsigned(outcome)] += window_weight[window]
    return by_static, by_outcome


@counted
def add_up_windows(token_static, token_memory, window_start, by_static, by_outcome, kind):
    """See `perfvec.program.counts.count_window_units`; the arrays are a trace's, and those of `UnitTables`."""
    num_units = by_static.shape[1]
    total = np.zeros((window_start.shape[0] - 1, num_units))
    for window in range(total.shape[0]):
        for token in range(window_start[window], window_start[window + 1]):
            static, outcome = token_static[unsigned(token)], token_memory[unsigned(token)]
            if outcome < 0:
                for unit in range(num_units):
                    total[window, unit] += by_static[static, unit]
                continue
            rows = by_outcome[unsigned(kind[static]), unsigned(outcome)]
            for unit in range(num_units):
                total[window, unit] += by_static[static, unit] + rows[unit]
    return total
