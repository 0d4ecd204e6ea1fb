from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from perfvec.corpus.family_splits import (
    all_families,
    choose_family_splits,
    load_family_splits,
    save_family_splits,
    split_of,
)
from perfvec.corpus.generator import generate_kernel
from perfvec.errors import ConfigError


def test_the_shipped_splits_are_as_they_were_chosen():
    assert load_family_splits() == choose_family_splits()
    assert Counter(load_family_splits().values()) == {"development": 56, "validation": 8, "test": 16}
    for split in ("development", "validation", "test"):
        ways = {family.split("/")[0] for family, part in load_family_splits().items() if part == split}
        assert ways == {"none", "tile", "reduce", "atomic"}


def test_every_kernel_that_is_drawn_has_a_split():
    found = Counter(split_of(generate_kernel(seed).family) for seed in range(300))
    assert set(found) == {"development", "validation", "test"}
    with pytest.raises(ConfigError, match="no generated kernel has the family 'gemm'"):
        split_of("gemm")


def test_a_file_that_lacks_a_family_is_refused(tmp_path: Path):
    path = tmp_path / "splits.toml"
    save_family_splits(choose_family_splits(), path)
    assert load_family_splits(path) == choose_family_splits()
    family = all_families()[3]
    path.write_text(path.read_text().replace(f'    "{family}",\n', ""))
    with pytest.raises(ConfigError, match=f"each of the 80 families must be in one of .*; found {family}"):
        load_family_splits(path)
    path.write_text("[development]\n")
    with pytest.raises(ConfigError, match="cannot read the splits of families"):
        load_family_splits(path)
