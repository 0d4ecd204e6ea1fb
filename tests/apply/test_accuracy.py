"""All splits in one go, on made-up times: the timing model's are twice the data sheet's roofline here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfvec.apply.accuracy import AllSplits, real_rows, simulated_rows
from perfvec.apply.calibration_making import KnownTimes
from perfvec.apply.dataset import Dataset, make_dataset
from perfvec.apply.evaluating import NEW_DEVICE_SPLITS, EvaluationRow, evaluate_splits
from perfvec.apply.feature_cache import FeatureCache
from perfvec.apply.new_devices import NewDevice, real_new_device, simulated_misfit
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.splits import Holdout
from perfvec.apply.tables import accuracy_tables
from perfvec.arch.datasheet import roofline_time_s, seconds_per_unit
from perfvec.model.covariance import Covariance
from perfvec.model.devices import DeviceBank
from perfvec.model.posterior import DeviceBelief, Misfit
from perfvec.model.uncertainty import Uncertainty, assumed_uncertainty
from perfvec.model.weights import TrainedModel
from tests.apply.tiny import DEVICES, measured_table, suites, tiny_model

HOLDOUT = Holdout(name="test", launch_share=0.3, families=(("one", ("scale",)), ("two", ("gather",))))
SPACE = SimulatedDevices(space="gpu-2010-today")
# The first of the three that the model has is an archetype, which is not shown.
SIMULATED = [SPACE.part("training")[0], *SPACE.part("training")[-2:], *SPACE.part("held-out")]
SIMULATED += [item for item in SPACE.part("shipped") if item.device.name == "timing-model/nvidia-h200"]
FITTED = "gpu-2010-today, held out, fitted to the timing model on 4 launches"
BASELINES = {"constant", "row + column effect", "random forest", "datasheet roofline"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("accuracy")
    entries = suites(folder / "suites", sizes=(64, 256, 512, 1024))
    made = make_dataset(entries, measured_table(entries), cache=FeatureCache.open(folder), num_processes=0)
    resources = np.stack([launch.resources for launch in made.data.launches])
    times = np.stack([2 * roofline_time_s(item.device, resources) for item in SIMULATED], axis=1)
    seconds = np.stack([seconds_per_unit(item.device, item.config) for item in SIMULATED])
    return replace(
        made,
        devices=(*made.devices, *(item.device for item in SIMULATED)),
        data=made.data.with_simulated(times, tuple(item.device.name for item in SIMULATED), seconds),
    )


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    """A tiny model that has three devices of the space, too."""
    tiny = tiny_model()
    seconds = np.concatenate(
        [tiny.seconds_per_unit, [seconds_per_unit(item.device, item.config) for item in SIMULATED[:3]]]
    )
    return replace(
        tiny,
        bank=DeviceBank(seconds, tiny.encoder.layout),
        device_names=(*DEVICES, *(item.device.name for item in SIMULATED[:3])),
        device_kinds=("real",) * 2 + ("simulated",) * 3,
        seconds_per_unit=seconds,
    )


@pytest.fixture(scope="module")
def uncertainty() -> Uncertainty:
    return assumed_uncertainty()


def by(rows: list[EvaluationRow], **wanted: object) -> list[EvaluationRow]:
    return [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]


def test_every_split_has_the_timing_model_of_gpus_that_it_has_times_of(dataset: Dataset, model: TrainedModel):
    rows = evaluate_splits(model, dataset, HOLDOUT, programs_ND=model.encode(dataset.data.launches))
    assert {row.split for row in rows} == {"unseen-launch", "unseen-kernel"}
    assert {row.device for row in rows} == set(DEVICES)  # no simulated one
    (row,) = by(rows, predictor="timing model", split="unseen-kernel", subset="all")
    chosen = HOLDOUT.rows(dataset.entries, "unseen-kernel")
    times, measured = (
        dataset.data.times[chosen, dataset.data.device_names.index(name)]
        for name in ("timing-model/nvidia-h200", "nvidia-h200")
    )
    assert row.device == "nvidia-h200"
    assert row.mape == pytest.approx(np.abs(times / measured - 1).mean(), rel=1e-9)
    encoded_there = by(evaluate_splits(model, dataset, HOLDOUT), predictor="perfvec")
    # Batches of other launches round otherwise.
    assert [row.mape for row in by(rows, predictor="perfvec")] == pytest.approx(
        [r.mape for r in encoded_there], rel=1e-6
    )


def test_sizes_that_are_not_tied_to_the_global_size_are_a_row(dataset: Dataset, model: TrainedModel):
    entries = tuple(replace(entry, is_size_tied=entry.kernel != "gather") for entry in dataset.entries)
    rows = evaluate_splits(model, replace(dataset, entries=entries), HOLDOUT)
    for split, subsets in (
        ("unseen-launch", {"all", "over 20 us"}),
        ("unseen-kernel", {"all", "over 20 us", "sizes tied to the global size", "sizes not tied"}),
    ):
        assert {row.subset for row in by(rows, split=split)} == subsets
    (untied,) = by(rows, predictor="constant", subset="sizes not tied", device="nvidia-h200")
    (tied,) = by(rows, predictor="constant", subset="sizes tied to the global size", device="nvidia-h200")
    (whole,) = by(rows, predictor="constant", subset="all", device="nvidia-h200", split="unseen-kernel")
    assert (untied.worst_kernel, tied.worst_kernel) == ("two/gather", "one/scale")
    assert whole.mape == pytest.approx((untied.mape + tied.mape) / 2, rel=1e-9)  # four launches each


def test_measured_devices_are_taken_for_new(dataset: Dataset, model: TrainedModel, uncertainty: Uncertainty):
    rows = real_rows(model, uncertainty, dataset, model.encode(dataset.data.launches), HOLDOUT)
    assert {(row.split, row.num_measured) for row in rows} == {
        (split, count) for split in NEW_DEVICE_SPLITS for count in (0, 1, 5, 10, 20)
    }
    assert {row.predictor for row in rows} == {"perfvec", "timing model", *BASELINES}
    assert {row.device for row in by(rows, predictor="timing model")} == {"nvidia-h200"}
    assert {(row.num_measured == 0, row.num_draws) for row in rows} == {(True, 1), (False, 3)}
    unseen = HOLDOUT.rows(dataset.entries, "unseen-kernel")
    assert {row.num_launches for row in by(rows, split="both-unseen", subset="all")} == {len(unseen)}
    assert {row.worst_kernel for row in by(rows, split="both-unseen")} <= {"one/scale", "two/gather"}
    # Before a measurement, what the only other device takes.
    (before,) = by(rows, predictor="constant", split="both-unseen", device="nvidia-h200", num_measured=0, subset="all")
    training = HOLDOUT.training_rows(dataset.entries)
    other = dataset.data.times[:, dataset.data.device_names.index("amd-instinct-mi210")]
    measured = dataset.data.times[unseen, dataset.data.device_names.index("nvidia-h200")]
    constant = np.exp(np.log(other[training]).mean())
    assert before.mape == pytest.approx(np.abs(constant / measured - 1).mean(), rel=1e-9)


def test_a_new_device_owes_nothing_to_its_own_times(dataset: Dataset, model: TrainedModel, uncertainty: Uncertainty):
    training, programs = HOLDOUT.training_rows(dataset.entries), model.encode(dataset.data.launches)
    name = "nvidia-h200"

    def taken_for_new(data: Dataset, known_model: TrainedModel) -> NewDevice:
        known = KnownTimes.of(known_model, data.measured(), programs)
        return real_new_device(known, data, uncertainty, training, name)

    times = dataset.data.times.copy()
    times[:, dataset.data.device_names.index(name)] *= 7
    before = taken_for_new(dataset, model)
    after = taken_for_new(replace(dataset, data=replace(dataset.data, times=times)), model)
    assert np.array_equal(before.prior.log_mean, after.prior.log_mean)
    assert before.learned.keys() == BASELINES - {"datasheet roofline"}
    for predictor, told in before.learned.items():
        assert np.array_equal(told, after.learned[predictor])


def new_device(times: np.ndarray, learned: dict[str, np.ndarray]) -> NewDevice:
    return NewDevice(
        name="new",
        prior=DeviceBelief(
            log_mean=np.log([1e-6, 2e-6]), covariance=Covariance.of(np.full(2, 0.2), np.full((1, 2), 0.5**0.5))
        ),
        misfit=Misfit(launch=0.05, kernel=0.05, noise=0.01),
        times=times,
        spread=np.zeros(len(times)),
        learned=learned,
        datasheet={"roofline": np.full(len(times), 5e-6)},
    )


def test_predictions_after_some_measurements():
    programs = np.random.default_rng(0).uniform(1, 10, (30, 2))
    truth = programs @ [4e-6, 1e-6]
    kernels = tuple(f"k{row}" for row in range(30))
    candidates = np.arange(20)
    times = truth.copy()
    times[3] = np.nan  # cannot be measured
    device = new_device(times, {"other": truth / 3, "constant": np.ones(30)})
    before = device.predict(programs, kernels, candidates, 0, seed=1)
    assert before["perfvec"] == pytest.approx(programs @ [1e-6, 2e-6], rel=1e-12)
    assert np.array_equal(before["other"], truth / 3)
    after = device.predict(programs, kernels, candidates, 10, seed=1)
    assert after["other"] == pytest.approx(truth, rel=1e-12)  # which is a factor of the truth
    assert after["roofline"].tolist() == [5e-6] * 30
    errors = [np.abs(told["perfvec"] / truth - 1)[20:].mean() for told in (before, after)]
    assert errors[1] < 0.1 < errors[0]
    # A constant becomes the geometric mean of ten of the candidates: within those of the ten shortest and longest.
    logs = np.sort(np.log(np.delete(truth[:20], 3)))
    assert logs[:10].mean() <= np.log(after["constant"][0]) <= logs[-10:].mean()
    assert device.predict(programs, kernels, candidates, 10, seed=2)["constant"][0] != after["constant"][0]


def test_simulated_devices_seen_and_unseen(dataset: Dataset, model: TrainedModel):
    programs = model.encode(dataset.data.launches)
    rows = simulated_rows(model, dataset, programs, HOLDOUT, SPACE, 2)
    assert {(row.split, row.device, row.num_devices, row.num_measured) for row in rows} == {
        ("unseen-launch", "gpu-2010-today, trained on", 2, 0),
        ("unseen-kernel", "gpu-2010-today, trained on", 2, 0),
        *((split, "gpu-2010-today, held out", 64, count) for split in NEW_DEVICE_SPLITS for count in (0, 10)),
        *((split, FITTED, 64, 0) for split in NEW_DEVICE_SPLITS),
    }
    assert {row.predictor for row in by(rows, device=FITTED)} == {"perfvec"}
    assert {row.predictor for row in rows} == {"perfvec", *BASELINES} and {row.kind for row in rows} == {"simulated"}
    # Times are twice the roofline, so that it is off by a half everywhere.
    for row in by(rows, predictor="datasheet roofline"):
        assert (row.mape, row.worst_ape) == (pytest.approx(0.5, rel=1e-9), pytest.approx(0.5, rel=1e-9))
    chosen = HOLDOUT.rows(dataset.entries, "unseen-kernel")
    names = [item.device.name for item in SIMULATED[1:3]]
    told = programs[chosen] @ np.stack([model.devices.row(name) for name in names]).T
    times = dataset.data.times[np.ix_(chosen, [dataset.data.device_names.index(name) for name in names])]
    (row,) = by(rows, predictor="perfvec", split="unseen-kernel", subset="all")
    assert row.mape == pytest.approx(np.abs(told / times - 1).mean(), rel=1e-9)
    assert row.num_launches == len(chosen)
    assert row.worst_launch.rpartition(" on ")[2] in names
    assert simulated_rows(tiny_model(), dataset, programs, HOLDOUT, SPACE) == []


def test_the_misfit_of_simulated_times_is_what_is_left():
    times = np.ones((4, 2))
    misfit = simulated_misfit(times * np.exp([[0.2, -0.2]] * 4), times)
    assert np.hypot(misfit.launch, misfit.kernel) == pytest.approx(0.2 / 0.6745, rel=1e-9)


def test_tables_have_a_split_each_and_the_others_beside_the_model(dataset: Dataset, model: TrainedModel):
    rows = evaluate_splits(model, dataset, HOLDOUT)
    found = AllSplits(rows=tuple(rows), is_full=False, num_launches=16, num_training_launches=7, left_out=())
    tables = accuracy_tables(found)
    assert [table.title for table in tables] == ["unseen-launch", "unseen-kernel"]
    heads = [column.title for column in tables[1].columns]
    assert heads[:4] == ["device", "measured there", "subset", "launches"]
    (row,) = by(rows, predictor="random forest", split="unseen-kernel", device="nvidia-h200", subset="all")
    cells = dict(zip(heads, next(cells for cells in tables[1].rows if cells[0] == "nvidia-h200"), strict=True))
    assert (cells["subset"], cells["measured there"]) == ("all", "-")
    assert cells["random forest: MAPE, median"] == f"{100 * row.mape:.1f} %, {100 * row.median_ape:.1f} %"
    other = next(cells for cells in tables[1].rows if cells[0] == "amd-instinct-mi210")
    assert other[heads.index("timing model: MAPE, median")] == "-"
    assert "fitted to the 7 of them that are not held out; --full takes all" in found.notes[0]
