"""What the foundation model's vectors mean: figures of launches, probes, maps, errors by group, and the pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.foundation import card, maps
from experiments.foundation.errors import MECHANISMS, decade_of, run_errors
from experiments.foundation.launches import DEVICE, DOCS, RESULTS, causes_of, context_of, encode
from experiments.foundation.maps import map_devices, map_programs, nearest_alike, oriented
from experiments.foundation.probes import LEARNED, SHUFFLED, gates_of, probe, run_probes
from perfvec.apply.dataset import make_dataset
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.launch_features import features_of
from perfvec.apply.splits import Holdout
from perfvec.apply.tracing import trace
from perfvec.arch.device import find_device
from perfvec.arch.timing import simulate
from perfvec.arch.timing.of_device import timing_config
from perfvec.errors import ConfigError, FormatError, ModelError
from perfvec.resources import NUM_RESOURCES
from tests.apply.tiny import measured_table, suites, tiny_model

HOLDOUT = Holdout(name="test", families=(("one", ("add",)), ("two", ("gather",))))


@pytest.fixture(scope="module")
def encoded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suites")
    entries = suites(folder / "suites", sizes=(256, 4096, 65536))
    dataset = make_dataset(entries, measured_table(entries), cache=FeatureCache.open(folder), num_processes=0)
    return encode(tiny_model(), dataset, HOLDOUT)


def test_figures_from_features_are_those_of_the_trace(encoded):
    config = timing_config(find_device(DEVICE))
    for entry, figures, launch in zip(
        encoded.dataset.entries, encoded.figures, encoded.dataset.data.launches, strict=True
    ):
        traced = trace(entry.launch)
        expected, simulated = features_of(traced), simulate(traced, [config])
        for name in ("arithmetic_intensity", "divergence", "footprint_bytes", "sectors_per_access"):
            assert getattr(figures, name) == pytest.approx(getattr(expected, name), rel=1e-4, abs=1e-6), entry.name
        assert figures.occupancy == simulated.occupancy[0]
        assert figures.work_groups == entry.launch.num_work_items // 64
        # The archetype is the device as its file had it when the version of the resources was made.
        assert causes_of(launch).sum() == pytest.approx(simulated.kernel_time_s[0], rel=0.05)
        assert sum(figures.cause_shares.values()) == pytest.approx(1.0)
        assert context_of(launch).live_registers == traced.context.live_registers


def test_a_model_that_has_seen_what_is_held_out_is_refused(encoded):
    with pytest.raises(ModelError, match="keeps for evaluation"):
        encode(tiny_model(families=("add",)), encoded.dataset, HOLDOUT)


def test_a_probe_finds_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((600, 8))
    families = [f"family{row // 10}" for row in range(600)]
    training, held_out = np.arange(400), np.arange(400, 600)
    target = inputs @ rng.standard_normal(8) + 3.0
    inputs[::7, 2] = np.nan  # becomes the mean
    rows = {"training": training, "held_out": held_out}
    found = probe(np.nan_to_num(inputs), target, families, **rows)
    assert found["low"] < found["r2"] < found["high"]
    exact = probe(np.column_stack([inputs, target]), target, families, **rows)
    assert exact["r2"] > 0.999
    assert probe(rng.standard_normal((600, 8)), target, families, **rows)["r2"] < 0.1


def test_probes_are_fitted_to_training_families_and_judged_on_held_out_ones(encoded):
    with pytest.raises(ModelError, match="all 6 held-out launches have the same value"):
        run_probes(encoded)  # kernels that never diverge
    chance = np.random.default_rng(0).random(len(encoded.figures))
    varied = tuple(replace(own, divergence=x, occupancy=x) for own, x in zip(encoded.figures, chance, strict=True))
    found = run_probes(replace(encoded, figures=varied))
    assert found["training"] == {"launches": 6, "families": 2} and found["held out"] == {"launches": 6, "families": 2}
    assert found["inputs"][LEARNED] == encoded.model.encoder.layout.num_learned
    assert set(found["probes"]) == {"arithmetic intensity (log)", "occupancy", "divergence", "footprint (log)"}
    assert {LEARNED, SHUFFLED, "counted resources"} <= set(found["probes"]["footprint (log)"])
    # Three sizes of each kernel: the footprint grows with the counts, so that a straight line finds it.
    assert found["probes"]["footprint (log)"]["counted resources"]["r2"] > 0.5


def test_gates_are_what_the_learned_coordinates_weigh_by(encoded):
    gates = gates_of(encoded)
    assert gates.shape == (12, encoded.model.encoder.layout.num_learned)
    known = ~np.isnan(gates)
    assert known.any() and (gates[known] > 0).all() and (gates[known] < 1).all()
    assert (encoded.programs_ND[:, NUM_RESOURCES:][~known] == 0).all()


def test_errors_are_those_of_unseen_kernels_and_groups_add_up(encoded):
    found = run_errors(encoded)
    rows = [row for row, entry in enumerate(encoded.dataset.entries) if entry.family in ("add", "gather")]
    measured = encoded.dataset.data.times[rows, encoded.dataset.data.device_names.index(DEVICE)]
    predicted = encoded.programs_ND[rows] @ encoded.model.devices.row(DEVICE)
    errors = np.abs(predicted / measured - 1)
    assert found["all"]["mape"] == pytest.approx(errors.mean())
    assert found["all"]["median"] == pytest.approx(np.median(errors))
    assert found["all"]["ratio"] == pytest.approx(np.median(predicted / measured))
    assert found["all"]["launches"] == 6 and found["all"]["families"] == 2
    for key in ("suites", "times", "causes", "worst kernels"):
        assert sum(group["launches"] for group in found[key].values()) == 6, key
    assert found["suites"]["one"]["mape"] == pytest.approx(errors[:3].mean())
    assert set(found["mechanisms"]) == set(MECHANISMS)
    for pair in found["mechanisms"].values():
        assert sum(group["launches"] for group in pair.values()) == 6
    few = next(name for name in MECHANISMS if name.startswith("fewer work-groups"))
    assert found["mechanisms"][few]["with"]["launches"] == 4  # 4 and 64 work-groups, not 1,024
    assert [decade_of(time) for time in (9e-6, 1e-5, 2.0)] == ["below 10 µs", "10 to 100 µs", "10 ms and more"]


def test_the_nearest_is_sought_among_other_families():
    points = np.array([[0.0], [0.1], [0.3], [5.0], [5.2], [9.0]])
    labels = ["a", "b", "a", "b", "b", "a"]
    found = nearest_alike(points, labels, apart=["x", "x", "y", "z", "w", "w"])
    # 0 -> 2 alike; 1 -> 2 not; 2 -> 1 not; 3 -> 4 alike; 4 -> 3 alike; 5 -> 3 not.
    assert found["nearest"] == pytest.approx(3 / 6)
    assert found["most common"] == 0.5
    # Alike among those of other families: 2 and 5 of four; 3 and 4; 0 and 5 of five; 1 and 4; 1 and 3 of four; 0 and 2.
    assert found["chance"] == pytest.approx(np.mean([2 / 4, 2 / 4, 2 / 5, 2 / 5, 2 / 4, 2 / 4]))


def test_a_map_is_mirrored_so_that_its_axes_rise_with_what_they_are_to():
    flat = np.array([[1.0, -2.0], [2.0, 0.0], [4.0, 5.0]])
    assert oriented(flat, np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0])).tolist() == (flat * [-1, 1]).tolist()


def test_maps_are_drawn_and_described(encoded, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install 'perfvec[plots]'")
    programs = map_programs(encoded, tmp_path / "programs.png")
    devices = map_devices(encoded.model, tmp_path / "devices.png")
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir()) and programs["launches"] == 12
    assert devices["devices"]["measured"] == len(encoded.model.device_names)
    assert all(-1 <= value <= 1 for own in devices["axes"].values() for value in own.values())
    assert devices["moved"][DEVICE]["0.5"] == pytest.approx(1.0)  # random weights: nothing has moved
    assert sum(programs["variance"]) <= 1.0


def test_a_place_on_a_page_is_filled_and_the_rest_left_alone(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "one\n<!-- begin a -->\nold\n<!-- end a -->\ntwo\n<!-- begin b -->\n<!-- end b -->\n", encoding="utf-8"
    )
    card.fill(page, "a", r"new \1")
    card.fill(page, "b", "more")
    assert page.read_text(encoding="utf-8") == (
        "one\n<!-- begin a -->\nnew \\1\n<!-- end a -->\ntwo\n<!-- begin b -->\nmore\n<!-- end b -->\n"
    )
    with pytest.raises(ConfigError, match="has 0 places for 'c'"):
        card.fill(page, "c", "")
    with pytest.raises(ConfigError, match="give the folder of the pages with --docs"):
        card.fill(tmp_path / "none.md", "a", "")
    with pytest.raises(FormatError, match="make them again"):
        card.read_json(tmp_path / "none.json")


def test_the_table_of_results_has_the_other_predictors_beside_the_model():
    own = {
        "predictor": "perfvec", "split": "unseen-kernel", "subset": "all", "device": "gpu", "num_launches": 7,
        "mape": 0.25, "median_ape": 0.1, "p90_ape": 0.5, "share_within_25": 0.6, "rank_correlation": None,
        "num_measured": 0,
    }  # fmt: skip
    new = {**own, "split": "both-unseen", "num_measured": 10, "rank_correlation": 0.914}
    others = [{**new, "num_measured": 5}, {**new, "subset": "over 20 us"}, {**own, "subset": "unknown"}]
    rows = [own, {**own, "predictor": "random forest", "mape": 0.4}, new, *others]
    lines = card.results_text({"rows": rows, "notes": ["Of a sample."]}).splitlines()
    assert lines[0].endswith("rank corr. | random forest, MAPE |")
    assert lines[2:] == [
        "| unseen-kernel | gpu | - | 7 | 25.0 % | 10.0 % | 50.0 % | 60.0 % | - | 40.0 % |",
        "| both-unseen | gpu | 10 | 7 | 25.0 % | 10.0 % | 50.0 % | 60.0 % | 0.91 | - |",
        "",
        "Of a sample.",
    ]


def test_the_pages_hold_the_figures_of_the_results():
    for page, name, file, make in card._PLACES:
        text = make(json.loads((RESULTS / file).read_text(encoding="utf-8")))
        found = re.search(card._PLACE.format(name=name), (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
        assert found is not None, (page, name)
        assert found[0].split("\n", 1)[1].rsplit("\n", 1)[0] == text, "run python -m experiments.foundation.card"
    assert card.weights_text(None) in (DOCS / "model-card.md").read_text(encoding="utf-8")
    for name in (maps.PROGRAM_MAP, maps.DEVICE_MAP):
        assert (DOCS / name).stat().st_size < 150_000
        assert f"]({name})" in (DOCS / "vectors.md").read_text(encoding="utf-8")
