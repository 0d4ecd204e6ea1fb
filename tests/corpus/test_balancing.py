"""Balancing: outliers and water levels by hand, and proposals for times that follow a rule of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfvec.arch.device import Device, find_device
from perfvec.corpus.balancing import Balance, MeasuredRecipe, balance, evenness, fill_up, outlier_bounds
from perfvec.corpus.generated import Corpus, build_corpus, sizes_of
from perfvec.corpus.generator import generate_kernel
from perfvec.corpus.sizing import estimate_s
from perfvec.errors import ConfigError


def test_outliers_are_beyond_one_and_a_half_interquartile_ranges():
    times_s = np.exp(np.arange(1.0, 10.0))  # quartiles of the logarithm: 3 and 7, so from 3 - 6 to 7 + 6
    low, high = outlier_bounds(times_s)
    assert (math.log(low), math.log(high)) == pytest.approx((-3.0, 13.0))


@pytest.mark.parametrize(
    ("counts", "total", "added"),
    [
        ([5, 1, 3], 2, [0, 2, 0]),
        ([5, 1, 3], 4, [0, 3, 1]),
        ([5, 1, 3], 6, [0, 4, 2]),
        ([5, 1, 3], 9, [1, 5, 3]),
        ([0, 0, 9], 3, [2, 1, 0]),
        ([4], 3, [3]),
        ([2, 2], 0, [0, 0]),
    ],
)
def test_the_lowest_bins_are_filled_first(counts: list[int], total: int, added: list[int]):
    assert fill_up(np.array(counts), total).tolist() == added


def test_evenness():
    assert evenness(np.array([4, 4, 4, 4])) == pytest.approx(1.0)
    assert evenness(np.array([9, 0, 0, 0])) == 0.0
    assert evenness(np.array([1, 1, 0, 0])) == pytest.approx(0.5)  # one bit of two


def true_time_s(seed: int, corpus: Corpus, row: int, device: Device) -> float:
    """What a launch "takes": its estimate, times a factor of the kernel, times one of the work-group size."""
    recipe = corpus.recipes[row]
    kernel = generate_kernel(seed)
    names = kernel.names(recipe.ndrange.global_size, recipe.ndrange.local_size, sizes_of(kernel, recipe.sizes))
    return estimate_s(kernel, names, device) * (1 + seed % 5) * (1.5 if recipe.ndrange.local_items > 100 else 1.0)


@pytest.fixture(scope="module")
def measured() -> list[MeasuredRecipe]:
    device = find_device("nvidia-h200")
    corpus = build_corpus(60, [device], launches_per_kernel=6, seed=11)
    seeds = [corpus.kernel_seeds[recipe.kernel] for recipe in corpus.recipes]
    return [
        MeasuredRecipe(kernel_seed=seed, recipe=recipe, time_s=true_time_s(seed, corpus, row, device))
        for row, (seed, recipe) in enumerate(zip(seeds, corpus.recipes, strict=True))
    ]


@pytest.fixture(scope="module")
def balanced(measured: list[MeasuredRecipe]) -> Balance:
    return balance(measured, find_device("nvidia-h200"), num_launches=200, seed=3)


def test_proposals_fill_the_gaps(measured: list[MeasuredRecipe], balanced: Balance):
    device = find_device("nvidia-h200")
    corpus = balanced.corpus
    assert balanced.wanted.sum() == 200
    assert len(corpus) == len(balanced.predicted_s) > 100
    assert set(corpus.kernel_seeds) <= {item.kernel_seed for item in measured}
    before = [item.time_s for item in measured]
    new = [
        true_time_s(corpus.kernel_seeds[recipe.kernel], corpus, row, device)
        for row, recipe in enumerate(corpus.recipes)
    ]
    assert np.median(np.abs(balanced.predicted_s / new - 1)) < 0.3
    counts = np.histogram(before, balanced.edges_s)[0]
    assert counts.tolist() == balanced.before.tolist()
    after = np.histogram([*before, *new], balanced.edges_s)[0]
    assert evenness(after) > evenness(counts)  # by what they take, not only by what was expected
    assert (balanced.after <= balanced.before + balanced.wanted).all()
    assert balanced.rank_correlation > 0.9


def test_no_launch_is_proposed_that_is_known(measured: list[MeasuredRecipe], balanced: Balance):
    known = {(item.kernel_seed, item.recipe.ndrange, item.recipe.sizes) for item in measured}
    corpus = balanced.corpus
    new = [(corpus.kernel_seeds[r.kernel], r.ndrange, r.sizes) for r in corpus.recipes]
    assert len(set(new)) == len(new)
    assert not known & set(new)


def test_the_same_seed_gives_the_same_launches(measured: list[MeasuredRecipe], balanced: Balance):
    again = balance(measured, find_device("nvidia-h200"), num_launches=200, seed=3)
    assert again.corpus == balanced.corpus


def test_too_little_to_learn_from_is_refused(measured: list[MeasuredRecipe]):
    with pytest.raises(ConfigError, match=r"num_launches=5 from 10 measured times on nvidia-h200; .*least 40 times"):
        balance(measured[:10], find_device("nvidia-h200"), num_launches=5)
    with pytest.raises(ConfigError, match="num_launches=0"):
        balance(measured, find_device("nvidia-h200"), num_launches=0)
