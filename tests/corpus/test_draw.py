"""Random choices: published numbers, and the shares that weights ask for."""

from __future__ import annotations

from collections import Counter

import pytest

from perfvec.corpus.draw import Draw


def test_published_numbers():
    """The first numbers of SplitMix64 with seed 1234567, as its authors' C code prints them."""
    draw = Draw(1234567)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [draw.bits() for _ in expected] == expected


def test_shares():
    draw, count = Draw(1), 20_000
    numbers = Counter(draw.between(3, 6) for _ in range(count))
    assert sorted(numbers) == [3, 4, 5, 6]
    assert min(numbers.values()) / count == pytest.approx(0.25, abs=0.02)
    weighted = Counter(draw.weighted({"a": 1, "b": 3, "c": 0}) for _ in range(count))
    assert weighted["b"] / count == pytest.approx(0.75, abs=0.02)
    assert "c" not in weighted
    assert sum(draw.chance(30) for _ in range(count)) / count == pytest.approx(0.3, abs=0.02)
    powers = Counter(draw.power_of_two(4, 32) for _ in range(count))
    assert sorted(powers) == [4, 8, 16, 32]
    spread = [draw.spread(3, 100) for _ in range(count)]
    assert (min(spread), max(spread)) == (3, 100)
    assert sum(value < 16 for value in spread) / count == pytest.approx(0.5, abs=0.02)  # octaves 2-3, 4-7, 8-15 of 6


def test_shuffling_keeps_all():
    draw = Draw(2)
    firsts = Counter()
    for _ in range(3000):
        mixed = draw.shuffled("abc")
        assert sorted(mixed) == ["a", "b", "c"]
        firsts["".join(mixed)] += 1
    assert len(firsts) == 6
    assert min(firsts.values()) > 400
