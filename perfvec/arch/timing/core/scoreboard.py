"""One sub-group alone on a scheduler against a scoreboard, all configurations at once.

Legend: M configuration, S static instruction, A access, T token, Q pair of windows, R row that time is booked on.

The innermost loops run over configurations and touch few arrays each, so that the compiler turns them into vector
instructions. Instruction `n` of a sub-group is fetched, starts, gives its result and retires:

    fetch(n)  = max(fetch(n-1) + issue(n-1), retire(n-1-lookahead))
    slot(n)   = max(fetch(n), slot of the pipe's last instruction + its interval)
    start(n)  = max(slot(n), ready(producers))
    ready(n)  = start(n) + latency(n)
    retire(n) = max(retire(n-1), start(n) + issue(n))

With a lookahead of 0 that is a unit that issues in order. Compilers unroll loops and bring loads forward, which the
lookahead stands for; nothing is brought forward over a branch whose condition is not known, nor over a barrier, and no
access of a memory over a store or an atomic operation to the same kind of memory that waits for its operands.

Source:
    In-order issue against a scoreboard, as on the GPUs that Huang, Lee, Kim, Lee, "GPUMech", MICRO 2014,
    models by intervals; the lookahead is this project's.
"""

from __future__ import annotations

import numpy as np

from perfvec.arch.timing.core.jit import compiled, counted, inlined
from perfvec.arch.timing.core.orders import (
    BARRIER,
    BRANCH,
    LOAD_GLOBAL,
    LOAD_LOCAL,
    WRITE_GLOBAL,
    WRITE_LOCAL,
)

# Rows of what is known of the sub-group: when the next instruction is fetched; when the present one finds its operands
# from calculations and from memory; when it starts; when it and all before it have retired, and all before it; when
# accesses of local and of other memory may start; zeros; the advance at the end of the first window.
FETCH, CALCULATED, LOADED, START, RETIRED, LAST, AFTER_LOCAL, AFTER_GLOBAL, NOTHING, BEFORE = range(10)


@inlined
def _raise(target_M, other_M):
    for c in range(target_M.shape[0]):
        target_M[c] = max(target_M[c], other_M[c])


@inlined
def _copy(target_M, other_M):
    for c in range(target_M.shape[0]):
        target_M[c] = other_M[c]


@inlined
def _add(target_M, first_M, second_M):
    for c in range(target_M.shape[0]):
        target_M[c] = first_M[c] + second_M[c]


@inlined
def _later(target_M, first_M, second_M):
    for c in range(target_M.shape[0]):
        target_M[c] = max(first_M[c], second_M[c])


@inlined
def _issue(
    fetch_M, start_M, retired_M, last_M, free_M, before_M, calculated_M, loaded_M, issue_M, interval_M, wait_M, follows
):  # fmt: skip
    """Fetch, start and retire an instruction; the next is fetched after it has started where it `follows`."""
    for c in range(fetch_M.shape[0]):
        fetch = max(fetch_M[c], before_M[c])
        slot = max(fetch, free_M[c])
        start = max(max(slot, calculated_M[c]), loaded_M[c])
        free_M[c] = slot + interval_M[c]
        start_M[c] = start
        fetch_M[c] = (max(fetch, start) if follows else fetch) + (issue_M[c] + wait_M[c])
        last_M[c] = retired_M[c]
        retired_M[c] = before_M[c] = max(retired_M[c], start + issue_M[c])


# An instruction is booked by how much later it retires than those before it, by what it waited for: operands that are
# calculated first, then those from memory, then the rest.
@inlined
def _book(
    dependence_M, memory_M, issued_M, busy_M, weight, calculated_M, loaded_M, start_M, before_M, issue_M, interval_M
):  # fmt: skip
    for c in range(before_M.shape[0]):
        retired, loaded = before_M[c], loaded_M[c]
        calculated = max(calculated_M[c], retired)
        operands = max(calculated, loaded)
        dependence_M[c] += weight * (calculated - retired)
        memory_M[c] += weight * (operands - calculated)
        issued_M[c] += weight * (max(operands, start_M[c] + issue_M[c]) - operands)
        busy_M[c] += max(issue_M[c], interval_M[c])


@counted
def step_pairs(  # noqa: D417
    before_Q, window_Q, weight_Q, window_start, static_T, access_T, row_T, num_rows, lookahead,
    producers_S, pipe_S, order_S, from_memory_S, issue_SM, wait_SM, interval_SM, latency_SM, latency_AM,
):  # fmt: skip
    """Step every distinct pair of windows that follow each other; the second starts with what the first left behind.

    Args:
        before_Q: First window of each pair; -1 where the stream begins.
        window_Q: Second window.
        weight_Q: How often the launch executes the second window after the first.
        window_start, static_T, access_T: The trace's tokens; `access_T` is -1 where there is none.
        row_T: The row that a token's time is booked on; below `num_rows`.
        num_rows: Rows.
        lookahead: Instructions that one may be brought forward past.
        producers_S: `(S, 3)`, -1 where none.
        pipe_S: The pipe that an instruction takes.
        order_S: What orders it: `PLAIN` to `BARRIER`.
        from_memory_S: Whether an instruction's result comes from memory.
        issue_SM: Cycles that the scheduler takes to issue it.
        wait_SM: Cycles until the next instruction may be fetched, beyond that.
        interval_SM: Cycles until the next instruction of the pipe may start.
        latency_SM: Cycles until the result is there, where no memory is accessed.
        latency_AM: The same of accesses.

    Returns:
        advance_QM: Cycles that the second window adds to the sub-group.
        busy_QM: Cycles in which it issues.
        first_QM: Longest latency of an access in it.
        issue, dependence, memory: Cycles by cause, by row, weighted; each `(R, M)`.
    """
    num_pairs, num_configs, num_static = window_Q.shape[0], issue_SM.shape[1], issue_SM.shape[0]
    advance_QM = np.zeros((num_pairs, num_configs))
    busy_QM = np.zeros((num_pairs, num_configs))
    first_QM = np.zeros((num_pairs, num_configs))
    issue_RM = np.zeros((num_rows, num_configs))
    dependence_RM = np.zeros((num_rows, num_configs))
    memory_RM = np.zeros((num_rows, num_configs))
    ready_SM = np.zeros((num_static, num_configs))
    stamp_S = np.full(num_static, -1)
    free_PM = np.zeros((pipe_S.max() + 1 if num_static else 1, num_configs))
    retired_LM = np.zeros((lookahead + 1, num_configs))
    now = np.zeros((BEFORE + 1, num_configs))
    for pair in range(num_pairs):
        now[:] = 0.0
        free_PM[:] = 0.0
        retired_LM[:] = 0.0
        place = 0
        if before_Q[pair] >= 0:
            place = _step(
                window_start[before_Q[pair]], window_start[before_Q[pair] + 1], pair, place, 0.0, now, static_T,
                access_T, row_T, producers_S, pipe_S, order_S, from_memory_S, issue_SM, wait_SM, interval_SM,
                latency_SM, latency_AM, ready_SM, stamp_S, free_PM, retired_LM, busy_QM, first_QM, issue_RM,
                dependence_RM, memory_RM,
            )  # fmt: skip
        now[BEFORE] = now[RETIRED]
        busy_QM[pair] = 0.0
        first_QM[pair] = 0.0
        _step(
            window_start[window_Q[pair]], window_start[window_Q[pair] + 1], pair, place, weight_Q[pair], now, static_T,
            access_T, row_T, producers_S, pipe_S, order_S, from_memory_S, issue_SM, wait_SM, interval_SM,
            latency_SM, latency_AM, ready_SM, stamp_S, free_PM, retired_LM, busy_QM, first_QM, issue_RM,
            dependence_RM, memory_RM,
        )  # fmt: skip
        advance_QM[pair] = now[RETIRED] - now[BEFORE]
    return advance_QM, busy_QM, first_QM, issue_RM, dependence_RM, memory_RM


@compiled
def _step(
    first, end, pair, place, weight, now, static_T, access_T, row_T, producers_S, pipe_S, order_S, from_memory_S,
    issue_SM, wait_SM, interval_SM, latency_SM, latency_AM, ready_SM, stamp_S, free_PM, retired_LM, busy_QM, first_QM,
    issue_RM, dependence_RM, memory_RM,
):  # fmt: skip
    """Step the tokens of a window; arrays as in `step_pairs`. Returns the next place in `retired_LM`.

    This is long because each step of it is a call that the compiler makes a loop of its own. An instruction is booked
    after it has been issued, so that what it waits for must not be its own result: that is written last.
    """
    fetch, start, retired, last = now[FETCH], now[START], now[RETIRED], now[LAST]
    after_local, after_global, nothing = now[AFTER_LOCAL], now[AFTER_GLOBAL], now[NOTHING]
    busy, longest = busy_QM[pair], first_QM[pair]
    for token in range(first, end):
        static, access = static_T[token], access_T[token]
        order = order_S[static]
        issue, interval, ready = issue_SM[static], interval_SM[static], ready_SM[static]
        # The latest of what it waits for: rows that are there already, as long as it is only one.
        calculated, loaded, num_calculated, num_loaded = nothing, nothing, 0, 0
        if order == BARRIER:
            _copy(last, retired)
            calculated, num_calculated = last, 1
        elif order in (LOAD_LOCAL, WRITE_LOCAL):
            calculated, num_calculated = after_local, 1
        elif order in (LOAD_GLOBAL, WRITE_GLOBAL):
            calculated, num_calculated = after_global, 1
        for i in range(3):
            producer = producers_S[static, i]
            if producer >= 0 and stamp_S[producer] == pair:
                if from_memory_S[producer]:
                    if num_loaded:
                        _later(now[LOADED], loaded, ready_SM[producer])
                    loaded = now[LOADED] if num_loaded else ready_SM[producer]
                    num_loaded += 1
                else:
                    if num_calculated:
                        _later(now[CALCULATED], calculated, ready_SM[producer])
                    calculated = now[CALCULATED] if num_calculated else ready_SM[producer]
                    num_calculated += 1
        _issue(
            fetch, start, retired, last, free_PM[pipe_S[static]], retired_LM[place], calculated, loaded, issue,
            interval, wait_SM[static], order in (BRANCH, BARRIER),
        )  # fmt: skip
        if weight > 0.0:
            row = row_T[token]
            _book(
                dependence_RM[row], memory_RM[row], issue_RM[row], busy, weight, calculated, loaded, start, last, issue,
                interval,
            )  # fmt: skip
        stamp_S[static] = pair
        if access >= 0:
            _add(ready, start, latency_AM[access])
            if weight > 0.0 and from_memory_S[static]:
                _raise(longest, latency_AM[access])
        else:
            _add(ready, start, latency_SM[static])
        if order == WRITE_LOCAL:
            _copy(after_local, start)
        elif order == WRITE_GLOBAL:
            _copy(after_global, start)
        place = place + 1 if place + 1 < retired_LM.shape[0] else 0
    return place


@counted
def stream_cycles(  # noqa: D417
    stream_start, stream_pair, stream_weight_WE, width_M, advance_QM, busy_QM, sharers_M
):  # fmt: skip
    """Cycles that each sub-group takes alone, or in step with others.

    Args:
        stream_start, stream_pair: Pairs of windows in the order in which each sub-group executes them.
        stream_weight_WE: How often it executes each; one row for each kind of width.
        width_M: Row of `stream_weight_WE` of each configuration.
        advance_QM, busy_QM: See `step_pairs`.
        sharers_M: Sub-groups of the scheduler that pass each window in step; 0 where they do not.

    Returns:
        `(sub-groups, M)`: sum over windows of max(advance, sharers · busy).
    """
    num_sub_groups, num_configs = stream_start.shape[0] - 1, advance_QM.shape[1]
    cycles = np.zeros((num_sub_groups, num_configs))
    for sub_group in range(num_sub_groups):
        for entry in range(stream_start[sub_group], stream_start[sub_group + 1]):
            pair = stream_pair[entry]
            for c in range(num_configs):
                step = max(advance_QM[pair, c], sharers_M[c] * busy_QM[pair, c])
                cycles[sub_group, c] += stream_weight_WE[width_M[c], entry] * step
    return cycles


@counted
def shared_windows(  # noqa: D417
    first_P, second_P, weight_P, stream_start, code_E, stream_weight, num_codes
):  # fmt: skip
    """How much of what two sub-groups execute they can execute together, as one of twice the width.

    Args:
        first_P, second_P: Sub-groups that are brought together; the second is -1 where there is none.
        weight_P: Pairs of the launch that each stands for.
        stream_start, stream_weight: The trace's streams.
        code_E: Which instructions each entry executes.
        num_codes: Codes.

    Returns:
        By code: executions by both halves, and of these how many are saved when two of them are one.
    """
    total, saved = np.zeros(num_codes), np.zeros(num_codes)
    left = np.zeros(num_codes)
    for p in range(first_P.shape[0]):
        first, second = first_P[p], second_P[p]
        for entry in range(stream_start[first], stream_start[first + 1]):
            left[code_E[entry]] += stream_weight[entry]
            total[code_E[entry]] += weight_P[p] * stream_weight[entry]
        if second >= 0:
            for entry in range(stream_start[second], stream_start[second + 1]):
                code, weight = code_E[entry], stream_weight[entry]
                met = min(left[code], weight)
                left[code] -= met
                saved[code] += weight_P[p] * met
                total[code] += weight_P[p] * weight
        for entry in range(stream_start[first], stream_start[first + 1]):
            left[code_E[entry]] = 0.0
    return total, saved


@counted
def window_codes(window_start, static_T):
    """A hash code of the instructions of each window, whatever their lanes and memory outcomes; uint64 `(windows,)`."""
    codes = np.zeros(window_start.shape[0] - 1, np.uint64)
    for window in range(codes.shape[0]):
        code = np.uint64(1469598103934665603)
        for token in range(window_start[window], window_start[window + 1]):
            code = (code ^ np.uint64(static_T[token] + 1)) * np.uint64(1099511628211)
        codes[window] = code
    return codes
