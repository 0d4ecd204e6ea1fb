from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from perfvec.apply.beliefs import prior_of
from perfvec.apply.calibration_making import KnownTimes, make_set, slowest_vector
from perfvec.apply.calibration_set import file_digest, find_set, load_set, read_set, save_set, set_path
from perfvec.apply.dataset import make_dataset
from perfvec.apply.devices import find_devices
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.models import SHIPPED_MODEL, load_model
from perfvec.apply.splits import Holdout
from perfvec.corpus.suite import load_suites
from perfvec.errors import FormatError, ModelError
from perfvec.model.design import Design
from perfvec.model.posterior import shares, table_prior
from perfvec.model.uncertainty import Footing, PriorSpread
from tests.apply.calibrated import model_path as model_path
from tests.apply.tiny import DEVICES, measured_table, tiny_model, write_suites
from tests.naive import dense, design_gains


def test_a_set_comes_back_as_it_was(model_path: Path):
    made = load_set(model_path)
    assert made.names[3] == "dense/kernel1/-/N=2048" and made.kernels[3] == "dense/kernel1"
    assert made.row(made.digests[5]) == 5 and made.row("f" * 16) is None
    again = model_path.with_name("again.h5")
    save_set(made, again)
    back = read_set(again)
    np.testing.assert_array_equal(back.programs, made.programs)
    assert back.uncertainty.misfit == made.uncertainty.misfit
    for footing, scores in made.uncertainty.scores.items():
        np.testing.assert_array_equal(back.uncertainty.scores[footing], scores)
    assert back.familiarity.threshold == made.familiarity.threshold


def test_a_set_of_another_model_is_not_taken(model_path: Path):
    tiny_model(("other",)).save(model_path)
    assert find_set(model_path) is None
    with pytest.raises(ModelError, match=r"has no calibration set of its own.*perfvec calibration-set"):
        load_set(model_path)


def test_a_damaged_set_is_refused(model_path: Path):
    with h5py.File(set_path(model_path), "a") as file:
        del file["programs"]
        file.create_dataset("programs", data=np.zeros((3, 4)))
    with pytest.raises(FormatError, match="differ in length"):
        read_set(set_path(model_path))
    with h5py.File(set_path(model_path), "a") as file:
        del file["programs"]
    with pytest.raises(FormatError, match="damaged"):
        read_set(set_path(model_path))


def test_the_shipped_set_belongs_to_the_shipped_model():
    found = load_set()
    assert found.model_digest == file_digest(SHIPPED_MODEL)
    launches = found.launches()
    assert len(launches) == int(found.is_candidate.sum()) >= 200  # every candidate is still in the suites
    assert max(entry.launch.buffer_bytes for entry in launches.values()) <= 96 << 20
    assert found.programs.shape[1] == load_model().devices.vectors.shape[1]
    assert set_path().stat().st_size < 4 << 20


def test_a_set_is_made_from_measured_launches(tmp_path: Path, front_end: None):
    names = {"one": ["scale", "add", "power", "gather"]}
    entries = load_suites(write_suites(tmp_path / "suites", names, sizes=(256, 512, 1024, 2048, 4096, 8192)))
    dataset = make_dataset(
        entries, measured_table(entries), cache=FeatureCache.open(tmp_path / "cache"), num_processes=0
    )
    holdout = Holdout(name="test", families=(("one", ("gather", "power")),))
    made = make_set(tiny_model(), dataset, holdout, model_digest="0" * 16)
    kept = [name for name, is_open in zip(made.names, made.is_candidate, strict=True) if is_open]
    assert {name.split("/")[1] for name in kept} == {"scale", "add"}  # none of what is held out
    assert len(kept) == 4
    # Both devices, each taken for new, on 12 launches of unseen families.
    assert len(made.uncertainty.scores[Footing(group="datasheet", type="gpu")]) == 24
    assert len(made.uncertainty.scores[Footing(group="nvidia-h200", type="gpu")]) == 12
    assert set(made.uncertainty.misfit) == {"gpu"}
    with pytest.raises(ModelError, match="was trained on"):
        make_set(tiny_model(("power",)), dataset, holdout, model_digest="0" * 16)
    with pytest.raises(ModelError, match="no launch of a held-out family"):
        make_set(tiny_model(), dataset, replace(holdout, families=()), model_digest="0" * 16)


def test_simulated_devices_neither_slow_the_choice_nor_widen_the_prior():
    model = replace(tiny_model(devices=(*DEVICES, "nvidia-gtx-480")), device_kinds=("real", "real", "simulated"))
    vectors = model.devices.vectors
    np.testing.assert_array_equal(slowest_vector(model), vectors[:2].max(axis=0))
    assert (vectors[2] > vectors[:2].max(axis=0)).any()
    known = KnownTimes(
        model=model, devices=DEVICES, types=("gpu",) * 2, programs=vectors, times=vectors, spread=vectors, kernels=()
    )
    spread = PriorSpread(common=0.5, own=0.5)
    alone = table_prior(
        model.datasheet_devices.vectors[0], vectors[1:2], model.datasheet_devices.vectors[1:2], common=0.5, own=0.5
    )
    np.testing.assert_array_equal(dense(known.prior(DEVICES[0], spread).covariance), dense(alone.covariance))


@pytest.mark.parametrize("name", ["nvidia-rtx-3090", "nvidia-h200", "amd-mi250x"])
def test_choices_from_the_shipped_set_are_those_of_dense_matrices(name):
    calibration = load_set()
    device = find_devices([name])[0]
    prior = prior_of(load_model(), device, calibration.uncertainty)
    misfit = calibration.uncertainty.misfit_of(device.type).known
    weights, _ = shares(calibration.programs, prior.log_mean)
    covariance = dense(prior.covariance)
    design = Design(prior, calibration.programs, calibration.programs, misfit, kernels=calibration.kernels)
    chosen: list[int] = []
    for _ in range(6):
        exact = design_gains(covariance, weights, weights, misfit, calibration.kernels, chosen)
        exact[chosen] = 0.0
        # 3 · 10^-4 of the targets' shares is left out of gains, not of choices; products are in single precision.
        np.testing.assert_allclose(design.gains(), exact, atol=4e-3 * exact.max())
        chosen.append(design.choose())
        assert chosen[-1] == exact.argmax()
