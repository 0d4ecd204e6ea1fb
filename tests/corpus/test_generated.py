"""Corpora of generated launches: compact, the same from the same seed, and refused where they are damaged."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import h5py
import pytest

from perfvec.arch.device import find_device
from perfvec.corpus.generated import SEED_STRIDE, Corpus, build_corpus, recipe_fill
from perfvec.corpus.generator import GENERATOR_VERSION
from perfvec.errors import ConfigError, FormatError
from perfvec.launch import Launch

DEVICES = ("nvidia-h200", "nvidia-tesla-t4")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return build_corpus(60, [find_device(name) for name in DEVICES], launches_per_kernel=4, seed=9)


def test_what_is_built(corpus: Corpus):
    assert corpus.devices == DEVICES
    assert len(corpus.kernel_seeds) == 60
    assert len(corpus) > 0.97 * 60 * 4 * 2  # a few kernels are too large for some states of a device
    assert all(seed // SEED_STRIDE == 9 for seed in corpus.kernel_seeds)
    entries = list(corpus.entries())
    assert len({entry.name for entry in entries}) > 0.99 * len(entries)  # both devices may draw the same
    assert all(isinstance(entry.launch, Launch) for entry in entries)
    assert {entry.suite for entry in entries} == {"generated"}
    assert max(entry.launch.buffer_bytes for entry in entries) <= 1.01 * (1 << 29)
    tied = sum(entry.is_size_tied for entry in entries) / len(entries)
    assert tied == pytest.approx(0.5, abs=0.1)


def test_shares_of_a_large_corpus():
    devices = {name: find_device(name) for name in DEVICES[:1]}
    large = build_corpus(500, list(devices.values()), launches_per_kernel=2, seed=1)
    fills = Counter(recipe_fill(large, number, devices) for number in range(len(large)))
    shares = [fills[fill] / len(large) for fill in ("idle", "underused", "full")]
    assert shares == pytest.approx([0.25, 0.6, 0.15], abs=0.02)
    tied = sum(entry.is_size_tied for entry in large.entries()) / len(large)
    assert tied == pytest.approx(0.5, abs=0.05)
    assert {len(recipe.ndrange.global_size) for recipe in large.recipes} == {1, 2, 3}


def test_launches_of_a_kernel_share_programs():
    """Measuring is held up by compilers: of 32 launches of a kernel, a few have the same build options."""
    large = build_corpus(40, [find_device("nvidia-h200")], launches_per_kernel=32, seed=2)
    entries = list(large.entries())
    programs = {(entry.kernel, entry.launch.build_options) for entry in entries}
    assert len(programs) < len(entries) / 4
    together = [entries[0], *(b for a, b in pairwise(entries) if (a.kernel, a.variant) != (b.kernel, b.variant))]
    assert len(together) < 1.5 * len(programs)  # and stand together
    sizes = {(entry.launch.global_size, entry.parameters) for entry in entries}
    assert len(sizes) > 0.95 * len(entries)


@pytest.mark.parametrize("name", ["nvidia-h200", "xeon-16core-pocl"])
def test_a_kernel_has_no_more_programs_than_asked_for(name: str):
    def programs(most: int) -> tuple[Corpus, Counter[str]]:
        made = build_corpus(60, [find_device(name)], launches_per_kernel=32, programs_per_kernel=most, seed=3)
        local_size_counts = find_device(name).type == "cpu"
        found = {
            (entry.kernel, entry.launch.build_options, entry.launch.local_size if local_size_counts else ())
            for entry in made.entries()
        }
        return made, Counter(kernel for kernel, *_ in found)

    (few, capped), (many, free) = programs(6), programs(32)
    assert max(capped.values()) == 6 < max(free.values()) / 3
    assert len(few) > 0.9 * len(many)  # a kernel is not left with fewer launches for it
    device = {few.devices[0]: find_device(name)}
    fills = [Counter(recipe_fill(made, row, device) for row in range(len(made))) for made in (few, many)]
    for fill, number in fills[1].items():
        assert fills[0][fill] / len(few) == pytest.approx(number / len(many), abs=0.03)


def test_the_same_seed_gives_the_same_corpus(corpus: Corpus):
    devices = [find_device(name) for name in DEVICES]
    assert build_corpus(60, devices, launches_per_kernel=4, seed=9) == corpus
    assert build_corpus(5, devices, launches_per_kernel=4, seed=10).kernel_seeds != corpus.kernel_seeds[:5]


def test_a_stored_corpus_regenerates_byte_for_byte(corpus: Corpus, tmp_path: Path):
    path = tmp_path / "corpus.h5"
    corpus.save(path)
    again = Corpus.load(path, is_checked=True)
    assert again == corpus
    digests = [entry.launch.digest for entry in corpus.entries()]
    assert [entry.launch.digest for entry in again.entries()] == digests
    assert len(set(digests)) == len({entry.name for entry in corpus.entries()})
    assert path.stat().st_size < 60 * len(corpus) + 20_000  # tables alone take some kilobytes
    with h5py.File(path) as file:
        assert file.attrs["format"] == "perfvec-corpus"
        assert all("units" in item.attrs for item in file.values())


def test_damaged_files_are_refused(corpus: Corpus, tmp_path: Path):
    path = tmp_path / "corpus.h5"

    def saved() -> h5py.File:
        corpus.save(path)
        return h5py.File(path, "r+")

    with saved() as file:
        file.attrs["generator_version"] = GENERATOR_VERSION + 1
    with pytest.raises(FormatError, match="built by generator"):
        Corpus.load(path)
    with saved() as file:
        file["kernel_sizes"][0] += 1
    with pytest.raises(FormatError, match="is damaged"):
        Corpus.load(path)
    with saved() as file:
        del file["sizes"]
    with pytest.raises(FormatError, match="no dataset 'sizes'"):
        Corpus.load(path)
    with saved() as file:
        file["launch_kernel"][0] = 1 << 20
    with pytest.raises(FormatError, match="is damaged"):
        Corpus.load(path)
    with saved() as file:
        file["global_size"][0, 0] *= 2
    assert len(Corpus.load(path)) == len(corpus)
    with pytest.raises(FormatError, match="do not regenerate"):
        Corpus.load(path, is_checked=True)
    with pytest.raises(FormatError, match="does not exist"):
        Corpus.load(tmp_path / "none.h5")


def test_a_kernel_with_other_sizes_is_refused(corpus: Corpus, tmp_path: Path):
    path = tmp_path / "corpus.h5"
    corpus.save(path)
    counts = dict.fromkeys(corpus.kernel_seeds, 0)
    for recipe in corpus.recipes:
        counts[corpus.kernel_seeds[recipe.kernel]] = len(recipe.sizes)
    first = corpus.kernel_seeds[0]
    other = next(row for row, seed in enumerate(corpus.kernel_seeds) if counts[seed] != counts[first])
    with h5py.File(path, "r+") as file:
        file["kernel_seed"][0] = corpus.kernel_seeds[other]
    with pytest.raises(FormatError, match=r"has sizes .* found"):
        Corpus.load(path, is_checked=True)


def test_numbers_that_are_not_allowed():
    devices = [find_device("nvidia-h200")]
    with pytest.raises(ConfigError, match="0 kernels; allowed are 1 to"):
        build_corpus(0, devices)
    with pytest.raises(ConfigError, match="0 launches of a kernel"):
        build_corpus(1, devices, launches_per_kernel=0)
    with pytest.raises(ConfigError, match="0 programs of a kernel"):
        build_corpus(1, devices, programs_per_kernel=0)
    with pytest.raises(ConfigError, match="seed -1 and 1 devices"):
        build_corpus(1, devices, seed=-1)
    with pytest.raises(ConfigError, match="seed 0 and 0 devices"):
        build_corpus(1, [])
