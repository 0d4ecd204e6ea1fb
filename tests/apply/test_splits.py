from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from perfvec.apply.splits import Holdout, choose_families, default_holdout, load_holdout, save_holdout
from perfvec.corpus.family_splits import load_family_splits
from perfvec.corpus.suite import load_suites
from perfvec.errors import ConfigError
from tests.apply.tiny import suites

HOLDOUT = Holdout(name="test", launch_share=0.4, families=(("one", ("scale",)),))


def test_the_parts_of_a_holdout_do_not_meet_and_cover_everything(tmp_path: Path):
    entries = suites(tmp_path, sizes=tuple(64 * n for n in range(1, 20)))
    training = set(HOLDOUT.training_rows(entries).tolist())
    kernels = set(HOLDOUT.rows(entries, "unseen-kernel").tolist())
    launches = set(HOLDOUT.rows(entries, "unseen-launch").tolist())
    assert {entries[row].family for row in kernels} == {"scale"}
    assert "scale" not in {entries[row].family for row in training | launches}
    assert not (training & launches or training & kernels or launches & kernels)
    assert len(training) + len(launches) + len(kernels) == len(entries)
    # 57 launches of other families, each held out with probability 0.4: 23 give or take 3 standard deviations.
    assert 12 <= len(launches) <= 34


def test_a_family_of_a_held_out_suite_is_not_trained_on_elsewhere(tmp_path: Path):
    entries = suites(tmp_path, suites={"one": ["scale", "add"], "two": ["scale", "power"]})
    holdout = Holdout(name="test", suites=("one",))
    assert {entries[row].suite for row in holdout.rows(entries, "unseen-suite").tolist()} == {"one"}
    assert {entries[row].family for row in holdout.training_rows(entries).tolist()} == {"power"}


def test_a_share_of_each_suite_is_chosen_and_at_least_one_family(tmp_path: Path):
    chosen = choose_families(suites(tmp_path), family_share=0.2)
    assert [(suite, len(families)) for suite, families in chosen.families] == [("one", 1), ("two", 1)]
    assert chosen == choose_families(suites(tmp_path / "again"), family_share=0.2)
    fewer = choose_families([entry for entry in suites(tmp_path / "more") if entry.suite == "one"], family_share=0.2)
    assert fewer.families[0] == chosen.families[0]  # whatever other suites there are


def test_a_holdout_file_reads_back(tmp_path: Path):
    path = tmp_path / "holdout.toml"
    save_holdout(HOLDOUT, path)
    assert load_holdout(path) == HOLDOUT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "cannot read holdout file"),
        ("seed = 1", "'name'"),
        ("name = 'x'\nfamilys = 1", "unknown familys; allowed: name"),
        ("name = 'x'\nlaunch_share = 1.5", "launch_share=1.5; allowed are 0 to below 1"),
        ("name = 'x'\nfamilies = 3", "is malformed"),
    ],
)
def test_a_malformed_holdout_file_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "holdout.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_holdout(path)


def test_the_shipped_holdout_has_a_fifth_of_the_families_and_some_of_each_suite():
    holdout = load_holdout()
    families: dict[str, set[str]] = defaultdict(set)
    for entry in load_suites():
        families[entry.suite].add(entry.family)
    held_out = {suite: set(names) for suite, names in holdout.families}
    generated = held_out.pop("generated")
    hint = f"choose_families and save_holdout of perfvec.apply.splits make {default_holdout()}"
    for suite, names in held_out.items():
        assert names <= families.get(suite, set()), f"{suite} has lost held-out families; {hint}"
    assert set(families) <= set(held_out), f"suites without a held-out family; {hint}"
    assert generated == {family for family, split in load_family_splits().items() if split == "test"}
    share = len(holdout.held_out_families - generated) / len(set().union(*families.values()))
    assert 0.15 < share < 0.25
