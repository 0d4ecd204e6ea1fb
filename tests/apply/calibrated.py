"""A tiny model with a calibration set beside it, and a user's folder of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.calibration_set import CalibrationSet, file_digest, save_set, set_path
from perfvec.model.familiarity import fit_familiarity
from perfvec.model.posterior import Misfit
from perfvec.model.uncertainty import Footing, PriorSpread, TypeMisfit, Uncertainty
from tests.apply.tiny import tiny_model

NAMES = tuple(f"dense/kernel{row // 2}/-/N={256 << row}" for row in range(12))


@pytest.fixture
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder, empty."""
    folder = tmp_path / "user"
    monkeypatch.setattr("platformdirs.user_data_dir", lambda name: str(folder / name))
    return folder / "perfvec"


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    """File of a tiny model with a calibration set of twelve made-up launches."""
    path = tmp_path / "tiny.safetensors"
    model = tiny_model()
    model.save(path)
    save_set(tiny_set(model.devices.vectors.shape[1], file_digest(path)), set_path(path))
    return path


def tiny_set(dim: int, model_digest: str) -> CalibrationSet:
    rng = np.random.default_rng(0)
    misfit = Misfit(launch=0.1, kernel=0.1, noise=0.02)
    features = rng.normal(size=(40, 5))
    kinds = {(group, kind): np.linspace(-2, 2, 99) for group in ("calibrated", "datasheet") for kind in ("gpu", "cpu")}
    return CalibrationSet(
        names=NAMES,
        digests=tuple(f"{row:016x}" for row in range(1, 13)),
        programs=rng.lognormal(8, 2, (12, dim)),
        is_candidate=np.ones(12, dtype=bool),
        uncertainty=Uncertainty(
            spread=PriorSpread(common=0.5, own=0.3),
            misfit={kind: TypeMisfit(known=misfit, new=misfit) for kind in ("gpu", "cpu")},
            scores={Footing(group=group, type=kind): scores for (group, kind), scores in kinds.items()},
        ),
        familiarity=fit_familiarity(features, [f"f{row // 4}" for row in range(40)]),
        model_digest=model_digest,
    )
