from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.dataset import Dataset, make_dataset
from perfvec.apply.evaluating import EvaluationRow, evaluate
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.predicting import device_vectors
from perfvec.apply.predictors import timing_times
from perfvec.apply.splits import Holdout
from perfvec.apply.trace_cache import TraceCache
from perfvec.apply.tracing import trace
from perfvec.arch.datasheet import roofline_time_s
from perfvec.arch.timing import simulate
from perfvec.arch.timing.of_device import timing_config
from perfvec.errors import ModelError
from tests.apply.tiny import DEVICES, measured_table, suites, tiny_model

PREDICTORS = ["perfvec", "constant", "row + column effect", "random forest", "datasheet roofline"]
HOLDOUT = Holdout(name="test", launch_share=0.3, families=(("one", ("scale",)), ("two", ("gather",))))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("evaluating")
    entries = suites(folder / "suites", sizes=(64, 256, 512, 1024))
    return make_dataset(entries, measured_table(entries), cache=FeatureCache.open(folder), num_processes=0)


def row_of(rows: list[EvaluationRow], predictor: str, device: str, subset: str = "all") -> EvaluationRow:
    (row,) = [row for row in rows if (row.predictor, row.device, row.subset) == (predictor, device, subset)]
    return row


def test_each_predictor_has_a_row_for_each_device_and_subset(dataset: Dataset):
    rows = evaluate(tiny_model(), dataset, HOLDOUT, "unseen-kernel")
    assert list(dict.fromkeys(row.predictor for row in rows)) == PREDICTORS
    assert {(row.device, row.subset) for row in rows} == {
        (device, subset) for device in DEVICES for subset in ("all", "over 20 us")
    }
    assert {row.num_launches for row in rows if row.subset == "all"} == {8}
    # The launch in row r takes 5 + r + 0.05 N µs on this device. Of scale (rows 0 to 3) those of N = 64 and 256 are
    # under 20 µs (8.2, 18.8); of gather (rows 12 to 15) none is (the shortest takes 20.2).
    assert row_of(rows, "constant", "nvidia-h200", "over 20 us").num_launches == 6


def test_the_figures_are_those_of_the_predictors(dataset: Dataset):
    model = tiny_model()
    rows = evaluate(model, dataset, HOLDOUT, "unseen-kernel")
    test = dataset.subset(HOLDOUT.rows(dataset.entries, "unseen-kernel"))
    column = [device.name for device in dataset.devices].index("nvidia-h200")
    measured = test.data.times[:, column]
    by_model = model.encode(test.data.launches) @ device_vectors(model, test.devices[column : column + 1])[0]
    by_roofline = roofline_time_s(test.devices[column], np.stack([launch.resources for launch in test.data.launches]))
    for name, predicted in (("perfvec", by_model), ("datasheet roofline", by_roofline)):
        errors = np.abs(predicted - measured) / measured
        row = row_of(rows, name, "nvidia-h200")
        assert row.mape == pytest.approx(errors.mean(), rel=1e-9)
        assert row.median_ape == pytest.approx(np.median(errors), rel=1e-9)
        assert row.worst_ape == pytest.approx(errors.max(), rel=1e-9)
        worst = test.entries[int(np.argmax(errors))]
        assert row.worst_kernel == f"{worst.suite}/{worst.kernel}"
        assert row.worst_launch == worst.name
        assert row.share_within_25 == np.mean(errors <= 0.25)


def test_baselines_are_fitted_to_what_is_not_held_out(dataset: Dataset):
    rows = evaluate(tiny_model(), dataset, HOLDOUT, "unseen-kernel")
    training = dataset.subset(HOLDOUT.training_rows(dataset.entries))
    assert not {entry.family for entry in training.entries} & {"scale", "gather"}
    test = dataset.subset(HOLDOUT.rows(dataset.entries, "unseen-kernel"))
    for column, device in enumerate(dataset.devices):
        constant = np.exp(np.log(training.data.times[:, column]).mean())
        errors = np.abs(constant - test.data.times[:, column]) / test.data.times[:, column]
        assert row_of(rows, "constant", device.name).mape == pytest.approx(errors.mean(), rel=1e-9)


def test_unseen_launches_are_of_families_that_are_not_held_out(dataset: Dataset):
    rows = evaluate(tiny_model(), dataset, HOLDOUT, "unseen-launch")
    expected = HOLDOUT.rows(dataset.entries, "unseen-launch")
    assert {row.split for row in rows} == {"unseen-launch"}
    assert row_of(rows, "perfvec", "nvidia-h200").num_launches == len(expected)
    assert {row.worst_kernel for row in rows} <= {"one/add", "two/power"}


@pytest.mark.parametrize("field", ["families", "validation_families"])
def test_a_model_that_has_seen_a_held_out_family_is_refused(dataset: Dataset, field: str):
    model = replace(tiny_model(()), **{field: ("gather", "add")})
    for split in ("unseen-kernel", "unseen-launch"):
        with pytest.raises(ModelError, match="the model was trained on gather, which holdout 'test' keeps"):
            evaluate(model, dataset, HOLDOUT, split)


def test_nothing_is_reported_of_launches_that_the_model_may_have_seen(dataset: Dataset):
    with pytest.raises(ModelError, match="holds out no family, so nothing shows"):
        evaluate(tiny_model(), dataset, Holdout(name="bare", launch_share=0.5), "unseen-launch")
    with pytest.raises(ModelError, match="no measured launch is held out for unseen-suite"):
        evaluate(tiny_model(), dataset, HOLDOUT, "unseen-suite")
    with pytest.raises(ModelError, match="the model was trained on add"):
        evaluate(tiny_model(("add",)), dataset, Holdout(name="suite", suites=("one",)), "unseen-suite")


def test_a_whole_suite_may_be_held_out(dataset: Dataset):
    rows = evaluate(tiny_model(), dataset, Holdout(name="suite", suites=("two",)), "unseen-suite")
    assert row_of(rows, "perfvec", "nvidia-h200").num_launches == 8
    assert {row.worst_kernel.split("/")[0] for row in rows} == {"two"}


def test_a_device_without_times_of_both_parts_is_left_out(dataset: Dataset, caplog: pytest.LogCaptureFixture):
    times = dataset.data.times.copy()
    column = dataset.data.device_names.index("amd-instinct-mi210")
    times[HOLDOUT.rows(dataset.entries, "unseen-kernel"), column] = np.nan
    partial = replace(dataset, data=replace(dataset.data, times=times))
    rows = evaluate(tiny_model(), partial, HOLDOUT, "unseen-kernel")
    assert {row.device for row in rows} == {"nvidia-h200"}
    assert "device amd-instinct-mi210 has no times of both" in caplog.text


def test_a_device_that_the_model_does_not_know_is_marked(dataset: Dataset):
    rows = evaluate(tiny_model(devices=("nvidia-h200",)), dataset, HOLDOUT, "unseen-kernel")
    assert {(row.device, row.kind) for row in rows} == {("nvidia-h200", "real"), ("amd-instinct-mi210", "datasheet")}


def test_the_timing_model_is_a_predictor_where_it_is_asked_for(dataset: Dataset, tmp_path: Path):
    cache = TraceCache.open(tmp_path)
    rows = evaluate(tiny_model(), dataset, HOLDOUT, "unseen-kernel", traces=cache)
    test = dataset.subset(HOLDOUT.rows(dataset.entries, "unseen-kernel"))
    column = [device.name for device in dataset.devices].index("nvidia-h200")
    config = timing_config(test.devices[column])
    predicted = np.array([simulate(trace(e.launch), [config]).kernel_time_s[0] for e in test.entries])
    measured = test.data.times[:, column]
    row = row_of(rows, "timing model", "nvidia-h200")
    assert row.mape == pytest.approx(np.abs(predicted / measured - 1).mean(), rel=1e-9)
    assert row.num_launches == len(test.entries)
    assert not [row for row in evaluate(tiny_model(), dataset, HOLDOUT, "unseen-kernel") if "timing" in row.predictor]
    assert len(list(tmp_path.rglob("*.h5"))) == len({entry.launch.digest for entry in test.entries})


def test_what_the_timing_model_cannot_take_is_left_out_of_its_figures(
    dataset: Dataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    test = dataset.subset(HOLDOUT.rows(dataset.entries, "unseen-kernel"))
    small = replace(test.devices[0], compute=replace(test.devices[0].compute, max_work_group_size=32))
    times = timing_times(test.entries[:2], [test.devices[0], small], TraceCache.open(tmp_path))
    assert np.isnan(times).tolist() == [[False, True], [False, True]]
    assert "is left out: a work-group has 64 work-items" in caplog.text
