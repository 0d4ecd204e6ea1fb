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
    In-order issue against a scoreboard, as on the GPUs that Huang, Lee, Kim, Lee, "GPUMech", MICRO 2014, section III
    models by intervals; the lookahead is this project's.
"""

from __future__ import annotations

import numpy as np

from perfvec.arch.timing.core.jit import counted, inlined

# What orders an instruction: nothing, a load of either kind of memory, what writes there, a branch, a barrier.
PLAIN, LOAD_LOCAL, LOAD_GLOBAL, WRITE_LOCAL, WRITE_GLOBAL, BRANCH, BARRIER = range(7)
# Rows of what is known of the sub-group: when the next instruction is fetched; when the present one finds its pipe, and
# its operands from calculations and from memory; when it starts; when all before it have retired; when accesses of
# local and of other memory may start; the advance at the end of the first window.
FETCH, SLOT, CALCULATED, LOADED, START, RETIRED, AFTER_LOCAL, AFTER_GLOBAL, BEFORE = range(9)


@inlined
def _raise_to(target, row, other, at):
    for c in range(target.shape[1]):
        if other[at, c] > target[row, c]:
            target[row, c] = other[at, c]


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
        for half in range(2):
            window = window_Q[pair] if half else before_Q[pair]
            if window < 0:
                continue
            if half:
                now[BEFORE] = now[RETIRED]
            for token in range(window_start[window], window_start[window + 1]):
                static, access = static_T[token], access_T[token]
                pipe, order = pipe_S[static], order_S[static]
                _raise_to(now, FETCH, retired_LM, place)
                now[CALCULATED] = 0.0
                now[LOADED] = 0.0
                for i in range(3):
                    producer = producers_S[static, i]
                    if producer >= 0 and stamp_S[producer] == pair:
                        _raise_to(now, LOADED if from_memory_S[producer] else CALCULATED, ready_SM, producer)
                if order != PLAIN and order != BRANCH:
                    after = (
                        RETIRED
                        if order == BARRIER
                        else (AFTER_LOCAL if order in (LOAD_LOCAL, WRITE_LOCAL) else AFTER_GLOBAL)
                    )
                    _raise_to(now, CALCULATED, now, after)
                _start(now, free_PM, pipe, interval_SM, static)
                if half:
                    _book(now, issue_RM, dependence_RM, memory_RM, row_T[token], weight_Q[pair], issue_SM, static)
                    for c in range(num_configs):
                        busy_QM[pair, c] += max(issue_SM[static, c], interval_SM[static, c])
                    if access >= 0 and from_memory_S[static]:
                        _raise_to(first_QM, pair, latency_AM, access)
                stamp_S[static] = pair
                if access >= 0:
                    _add(ready_SM, static, now, START, latency_AM, access)
                else:
                    _add(ready_SM, static, now, START, latency_SM, static)
                if order in (BRANCH, BARRIER):
                    _raise_to(now, FETCH, now, START)
                elif order == WRITE_LOCAL:
                    now[AFTER_LOCAL] = now[START]
                elif order == WRITE_GLOBAL:
                    now[AFTER_GLOBAL] = now[START]
                for c in range(num_configs):
                    now[RETIRED, c] = max(now[RETIRED, c], now[START, c] + issue_SM[static, c])
                for c in range(num_configs):
                    now[FETCH, c] += issue_SM[static, c] + wait_SM[static, c]
                retired_LM[place] = now[RETIRED]
                place = place + 1 if place < lookahead else 0
        for c in range(num_configs):
            advance_QM[pair, c] = now[RETIRED, c] - now[BEFORE, c]
    return advance_QM, busy_QM, first_QM, issue_RM, dependence_RM, memory_RM


@inlined
def _add(target, row, first, first_row, second, second_row):
    for c in range(target.shape[1]):
        target[row, c] = first[first_row, c] + second[second_row, c]


@inlined
def _start(now, free_PM, pipe, interval_SM, static):
    """When the instruction starts."""
    for c in range(now.shape[1]):
        now[SLOT, c] = max(now[FETCH, c], free_PM[pipe, c])
    for c in range(now.shape[1]):
        now[START, c] = max(max(now[SLOT, c], now[CALCULATED, c]), now[LOADED, c])
    for c in range(now.shape[1]):
        free_PM[pipe, c] = now[SLOT, c] + interval_SM[static, c]


@inlined
def _book(now, issue_RM, dependence_RM, memory_RM, row, weight, issue_SM, static):
    """Book by how much an instruction retires later than those before it, by what it waited for.

    That is operands that are calculated first, then those from memory, then the rest.
    """
    for c in range(now.shape[1]):
        dependence_RM[row, c] += weight * (max(now[CALCULATED, c], now[RETIRED, c]) - now[RETIRED, c])
    for c in range(now.shape[1]):
        calculated = max(now[CALCULATED, c], now[RETIRED, c])
        memory_RM[row, c] += weight * (max(now[LOADED, c], calculated) - calculated)
    for c in range(now.shape[1]):
        operands = max(max(now[CALCULATED, c], now[RETIRED, c]), now[LOADED, c])
        issue_RM[row, c] += weight * (max(operands, now[START, c] + issue_SM[static, c]) - operands)


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
