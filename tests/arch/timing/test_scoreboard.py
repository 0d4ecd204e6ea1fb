from __future__ import annotations

import numpy as np
import pytest

from perfvec.arch.timing.core.orders import BARRIER, BRANCH, LOAD_GLOBAL, LOAD_LOCAL, PLAIN, WRITE_GLOBAL, WRITE_LOCAL
from perfvec.arch.timing.core.scoreboard import shared_windows, step_pairs, stream_cycles, window_codes


def slow_step(tokens, static, state=None, lookahead=0):
    """Twin of the scoreboard for one configuration: tokens `(static, latency)` one after another."""
    state = state or {"ready": {}, "free": {}, "retired": [], "fetch": 0.0, "local": 0.0, "global": 0.0, "end": 0.0}
    for row, latency in tokens:
        it = static[row]
        place = len(state["retired"]) - lookahead - 1
        state["fetch"] = max(state["fetch"], state["retired"][place] if place >= 0 else 0.0)
        operands = max([state["ready"].get(producer, 0.0) for producer in it["producers"]], default=0.0)
        operands = max(operands, {BARRIER: state["end"], LOAD_LOCAL: state["local"], WRITE_LOCAL: state["local"]}.get(
            it["order"], state["global"] if it["order"] in (LOAD_GLOBAL, WRITE_GLOBAL) else 0.0
        ))  # fmt: skip
        slot = max(state["fetch"], state["free"].get(it["pipe"], 0.0))
        start = max(slot, operands)
        state["free"][it["pipe"]] = slot + it["interval"]
        state["ready"][row] = start + latency
        if it["order"] in (BRANCH, BARRIER):
            state["fetch"] = max(state["fetch"], start)
        if it["order"] == WRITE_LOCAL:
            state["local"] = start
        if it["order"] == WRITE_GLOBAL:
            state["global"] = start
        state["end"] = max(state["end"], start + it["issue"])
        state["fetch"] += it["issue"] + it["wait"]
        state["retired"].append(state["end"])
    return state


def program(rng, size):
    orders = (PLAIN, PLAIN, PLAIN, LOAD_LOCAL, LOAD_GLOBAL, WRITE_LOCAL, WRITE_GLOBAL, BRANCH, BARRIER)
    return [
        {
            "producers": [int(p) for p in rng.integers(0, size, rng.integers(0, 4))],
            "order": int(rng.choice(orders)),
            "pipe": int(rng.integers(0, 3)),
            "issue": float(rng.choice([0.5, 1.0, 2.0])),
            "interval": float(rng.choice([1.0, 2.0, 8.0])),
            "wait": float(rng.choice([0.0, 0.0, 10.0])),
            "latency": float(rng.integers(1, 30)),
        }
        for _ in range(size)
    ]


@pytest.mark.parametrize("seed", range(25))
def test_pairs_of_windows_take_what_the_slow_twin_says(seed):
    rng = np.random.default_rng(seed)
    size, lookahead = int(rng.integers(2, 12)), int(rng.choice([0, 1, 5, 100]))
    static = program(rng, size)
    lengths = [int(n) for n in rng.integers(1, 40, 2)]
    rows = [rng.integers(0, size, n) for n in lengths]
    latency_of_access = rng.integers(1, 400, 4).astype(float)
    accesses = [np.where(rng.random(n) < 0.3, rng.integers(0, 4, n), -1) for n in lengths]
    column = lambda name: np.array([[it[name]] for it in static])  # noqa: E731
    producers = np.full((size, 3), -1)
    for row, it in enumerate(static):
        producers[row, : len(it["producers"])] = it["producers"]
    advance, busy, _, *books = step_pairs(
        np.array([-1, 0]), np.array([0, 1]), np.array([1.0, 3.0]), np.cumsum([0, *lengths]), np.concatenate(rows),
        np.concatenate(accesses), np.zeros(sum(lengths), np.int64), 1, lookahead, producers,
        np.array([it["pipe"] for it in static]), np.array([it["order"] for it in static]), rng.random(size) < 0.5,
        column("issue"), column("wait"), column("interval"), column("latency"), latency_of_access[:, None],
    )  # fmt: skip
    tokens = [
        [
            (int(row), latency_of_access[access] if access >= 0 else static[row]["latency"])
            for row, access in zip(*window, strict=True)
        ]
        for window in zip(rows, accesses, strict=True)
    ]
    state = slow_step(tokens[0], static, lookahead=lookahead)
    first = state["end"]
    second = slow_step(tokens[1], static, state, lookahead=lookahead)["end"] - first
    assert advance[:, 0] == pytest.approx([first, second], abs=1e-9)
    assert sum(book[0, 0] for book in books) == pytest.approx(first + 3 * second, rel=1e-9)
    assert busy[1, 0] == pytest.approx(sum(max(static[row]["issue"], static[row]["interval"]) for row, _ in tokens[1]))


def test_a_stream_takes_the_sum_of_its_windows_or_waits_for_those_in_step():
    advance, busy = np.array([[10.0, 10.0], [4.0, 4.0]]), np.array([[3.0, 3.0], [3.0, 3.0]])
    cycles = stream_cycles(
        np.array([0, 3, 4]), np.array([0, 1, 1, 0]), np.array([[1.0, 2.0, 1.0, 1.0]]), np.array([0, 0]), advance, busy,
        np.array([0.0, 2.0]),
    )  # fmt: skip
    # Alone: 10 + 2 · 4 + 4; in step with another: max(10, 6) + 3 · max(4, 6).
    assert cycles.tolist() == [[22.0, 28.0], [10.0, 10.0]]


def test_halves_save_what_both_execute():
    codes = np.array([0, 1, 1, 0, 1, 2])
    total, saved = shared_windows(
        np.array([0, 2]), np.array([1, -1]), np.array([1.0, 5.0]), np.array([0, 3, 5, 6]), codes,
        np.array([1.0, 1.0, 1.0, 1.0, 0.5, 2.0]), 3,
    )  # fmt: skip
    assert total.tolist() == [2.0, 2.5, 10.0]
    assert saved.tolist() == [1.0, 0.5, 0.0]


def test_windows_of_the_same_instructions_have_the_same_code():
    codes = window_codes(np.array([0, 2, 4, 6, 7]), np.array([1, 2, 1, 2, 2, 1, 1], np.uint32))
    assert codes[0] == codes[1]
    assert len(set(codes.tolist())) == 3
