"""Samples of work-groups: weights, edges, order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.sampling import RUN_LENGTH, sample_groups

_GRIDS = st.lists(st.integers(1, 60), min_size=1, max_size=3).map(tuple)


def places(group: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    """Coordinates of a work-group, first dimension fastest."""
    found = []
    for size in grid:
        found.append(group % size)
        group //= size
    return tuple(found)


def classes(grid: tuple[int, ...], groups: list[int]) -> set[tuple[str, ...]]:
    """First, inner or last along each dimension."""
    names = [
        tuple("first" if p == 0 else "last" if p == size - 1 else "inner" for p, size in zip(place, grid, strict=True))
        for place in (places(group, grid) for group in groups)
    ]
    return set(names)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(_GRIDS, st.integers(1, 80), st.integers(0, 5))
def test_weights_add_up_to_the_launch(grid: tuple[int, ...], most: int, seed: int):
    total = math.prod(grid)
    sample = sample_groups(grid, most=most, seed=seed)
    groups = sample.groups.tolist()
    assert groups == sorted(set(groups))
    assert groups[0] >= 0
    assert groups[-1] < total
    assert sample.weights.sum() == pytest.approx(total)
    assert (sample.weights >= 1).all()
    if total <= most:
        assert groups == list(range(total))
    else:
        # About as many as asked for: rounding adds or takes one half a class at most, and no class is left out.
        assert len(groups) <= most + 3 ** len(grid)
        assert classes(grid, groups) == classes(grid, list(range(total)))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(_GRIDS, st.integers(1, 80))
def test_a_class_of_places_keeps_its_weight(grid: tuple[int, ...], most: int):
    sample = sample_groups(grid, most=most)
    for corner in itertools.product(*({0, size - 1} for size in grid)):
        linear = sum(p * math.prod(grid[:d]) for d, p in enumerate(corner))
        assert sample.weights[sample.groups == linear].tolist() == [1.0]


def test_neighbours_are_taken_together():
    sample = sample_groups((10_000,), most=48)
    inner = sample.groups[1:-1]
    runs = np.split(inner, np.flatnonzero(np.diff(inner) > 1) + 1)
    assert max(map(len, runs)) >= RUN_LENGTH - 1
    assert inner.min() < 1000
    assert inner.max() > 9000


def test_the_seed_decides():
    first, again, other = (sample_groups((5000,), most=20, seed=seed).groups.tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other
