"""Expressions of suite files: what they give, and that nothing but numbers, names and a few functions gets through."""

from __future__ import annotations

import pytest

from perfvec.corpus.expressions import evaluate
from perfvec.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [("2*N + 1", 7), ("round_up(N, 4) // 2", 2), ("-N ** 2", -9), ("1 << N", 8), ("min(N, 2) % 2", 0), ("N", 3)],
)
def test_values(text: str, value: float):
    assert evaluate(text, {"N": 3}) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e999", "is not allowed; use numbers"),
        ("N.real", "is not allowed; use numbers"),
        ("__import__('os')", "is not allowed; use numbers"),
        ("(lambda: 1)()", "is not allowed; use numbers"),
        ("'a' * 3", "is not allowed; use numbers"),
        ("M + 1", "unknown name 'M'; known here: N"),
        ("N / 0", "cannot evaluate"),
        ("N +", "cannot evaluate"),
    ],
)
def test_what_is_refused(text: str, message: str):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        evaluate(text, {"N": 3})
