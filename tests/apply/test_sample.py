from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from perfvec.apply.sample import SIZES, TRAINING, draw_sample, load_sample, sampled, save_sample
from perfvec.apply.splits import Holdout, load_holdout
from perfvec.arch.measured import load_measured
from perfvec.corpus.suite import load_suites
from perfvec.errors import ConfigError
from tests.apply.tiny import suites

HOLDOUT = Holdout(name="test", launch_share=0.3, families=(("one", ("scale",)),))


def test_the_shipped_lists_are_what_the_shipped_holdout_says_of_measured_launches():
    sample, holdout, measured = load_sample(), load_holdout(), load_measured()
    listed = [digest for part in sample.values() for digest in part]
    assert len(listed) == len(set(listed))
    entries = sampled(load_suites(), sample)
    assert {entry.launch.digest for entry in entries} == set(listed)
    for digest in listed:
        assert any(measured.lookup(digest, device) for device in measured.devices)
    for part, digests in sample.items():
        rows = (
            holdout.training_rows(entries) if part == TRAINING else holdout.rows(entries, part)  # type: ignore[arg-type]
        )
        assert {entries[row].launch.digest for row in rows} == set(digests)
        assert len(digests) <= SIZES[part] <= 2000


def test_the_lists_are_fixed():
    digests = {part: hashlib.sha256(" ".join(names).encode()).hexdigest()[:16] for part, names in load_sample().items()}
    assert digests == {
        "unseen-launch": "6e10d20b5d2677f3",
        "unseen-kernel": "cbf42e6d0601e299",
        "training": "b08a26f2856cc357",
    }


def test_a_sample_is_drawn_by_hash_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entries = suites(tmp_path / "suites", sizes=(64, 256, 512, 1024))
    everything = draw_sample(entries, HOLDOUT)
    assert sum(map(len, everything.values())) == len(entries) and not everything["unseen-suite"]
    monkeypatch.setitem(SIZES, TRAINING, 3)
    drawn = draw_sample(entries[::-1], HOLDOUT)
    assert len(drawn[TRAINING]) == 3 and set(drawn[TRAINING]) < set(everything[TRAINING])
    # Another launch takes no place of one that is drawn before it: what is left of the draw are the same launches.
    rest = [entry for entry in entries if entry.launch.digest != drawn[TRAINING][0]]
    assert len(set(draw_sample(rest, HOLDOUT)[TRAINING]) & set(drawn[TRAINING])) == 2
    save_sample(drawn, tmp_path / "sample.toml")
    assert load_sample(tmp_path / "sample.toml") == drawn
    assert {entry.launch.digest for entry in sampled(entries, drawn)} == {d for part in drawn.values() for d in part}


@pytest.mark.parametrize(
    "text",
    ["", "[launches]\n", "[launches]\ntraining = [3]\n", '[launches]\ntraining = []\nother = ["a"]\n', "launches"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str):
    (tmp_path / "sample.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"cannot read the sample of launches .*--full"):
        load_sample(tmp_path / "sample.toml")


def test_launches_that_are_not_in_the_sample(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none of the 8 launches is in the fixed sample.*--full"):
        sampled(suites(tmp_path), load_sample())
