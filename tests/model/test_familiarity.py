from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import ModelError
from perfvec.model.familiarity import fit_familiarity


def launches(seed=0, families=30, each=20, features=12):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(4, features))
    centres = rng.normal(size=(families, 4))
    names = [f"f{family}" for family in range(families) for _ in range(each)]
    rows = np.repeat(centres, each, axis=0) + 0.3 * rng.normal(size=(families * each, 4))
    return rows @ mixing, names


def test_launches_of_left_out_families_are_mostly_familiar():
    features, names = launches()
    kept = np.array([int(name[1:]) < 24 for name in names])
    fitted = fit_familiarity(features[kept], [name for name, keep in zip(names, kept, strict=True) if keep])
    assert (fitted.distance(features[kept]) <= 1).all()
    assert (fitted.distance(features[~kept]) <= 1).mean() > 0.8


def test_what_training_never_varied_in_is_noticed():
    features, names = launches()
    features = np.column_stack([features, np.zeros(len(features))])
    fitted = fit_familiarity(features, names)
    odd = features[:1].copy()
    odd[0, :12] += 40 * features[:, :12].std(axis=0)
    assert fitted.distance(odd)[0] > 1.5
    assert fitted.distance(features[:1])[0] == pytest.approx(0.0, abs=1e-5)


def test_what_does_not_fit_is_refused():
    features, names = launches()
    with pytest.raises(ModelError, match="two or more kernel families"):
        fit_familiarity(features, ["one"] * len(names))
    with pytest.raises(ModelError, match="do not match the 12"):
        fit_familiarity(features, names).distance(np.zeros((1, 3)))
