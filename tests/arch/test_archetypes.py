"""The archetypes: what they are, what they charge for themselves, and the times of launches on them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.arch.archetypes import archetype_configs, archetype_prices, archetype_times, times_on
from perfvec.arch.space_files import find_space, load_space_split
from perfvec.arch.timing import TimingConfig, Workload, read_workload, simulate
from perfvec.content import content_folder
from perfvec.errors import FormatError
from perfvec.resources import ARCHETYPES, CAUSES, RESOURCES_VERSION, TIMED
from perfvec.trace_data import Trace
from tests.arch.timing.devices import large
from tests.arch.timing.kernels import traced

# What the times of each version of the resources were made on: a change needs a new version, since stored vectors and
# the shipped model would mean something else. Nine digits, so that machines agree.
CONFIGS_OF_VERSION = {4: "e06f32421b7e3cd4", 5: "d30f9dfa3f900951"}


def digest(configs: tuple[TimingConfig, ...]) -> str:
    def text(value: object) -> str:
        return f"{value:.9g}" if isinstance(value, float) else str(value)

    facts = [sorted((name, text(value)) for name, value in asdict(config).items()) for config in configs]
    return hashlib.sha256(repr([ARCHETYPES, CAUSES, facts]).encode()).hexdigest()[:16]


def by_archetype(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(ARCHETYPES), len(CAUSES))


@pytest.fixture(params=["copy", "product", "histogram", "tree", "divergent"])
def some_trace(request: pytest.FixtureRequest) -> Trace:
    return traced(request.param)


def of_size(trace: Trace, **context: int) -> Workload:
    """The trace as if its work-groups were of another size."""
    return read_workload(replace(trace, context=replace(trace.context, **context)))


def test_archetypes_change_with_the_version_of_the_resources_only():
    found = digest(archetype_configs())
    assert CONFIGS_OF_VERSION.get(RESOURCES_VERSION) == found, (
        f"the archetypes of resources version {RESOURCES_VERSION} have the digest {found} now: bump RESOURCES_VERSION, "
        "add the new pair here, and train the shipped model again"
    )


def test_the_shipped_file_is_read_whole_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = (content_folder("archs") / "archetypes.json").read_text()
    assert list(json.loads(text)["archetypes"]) == list(ARCHETYPES)
    monkeypatch.setattr("perfvec.arch.archetypes.content_folder", lambda name: tmp_path)
    for changed, message in (
        (text.replace('"nvidia-gtx-480"', '"another"'), "cannot read the archetypes .*nvidia-gtx-480"),
        (text.replace('"compute_units": 132', '"compute_units": -1'), "cannot read the archetypes .*compute_units"),
        (text[:-9], "cannot read the archetypes"),
        (text.replace(f'"resources_version": {RESOURCES_VERSION}', '"resources_version": 1'), "resources version 1"),
    ):
        (tmp_path / "archetypes.json").write_text(changed)
        with pytest.raises(FormatError, match=message):
            archetype_configs.__wrapped__()


def test_a_change_of_one_fact_changes_the_digest():
    first, *others = archetype_configs()
    changed = replace(first, dram_latency_s=1.000001 * first.dram_latency_s)
    assert digest((changed, *others)) != digest((first, *others))


def test_no_archetype_is_a_device_that_nothing_may_be_tuned_on():
    for space in {name.partition("/")[0] for name in ARCHETYPES if "/" in name}:
        split = load_space_split(find_space(space))
        training = {item.device.name: item.config for item in split.training}
        mine = {
            name: config
            for name, config in zip(ARCHETYPES, archetype_configs(), strict=True)
            if name.startswith(f"{space}/")
        }
        assert mine and mine == {name: training[name] for name in mine}


def test_an_archetype_charges_a_second_for_a_second_of_itself():
    for place, (name, config) in enumerate(zip(ARCHETYPES, archetype_configs(), strict=True)):
        prices_AC = by_archetype(archetype_prices(config))
        assert np.isfinite(prices_AC).all() and (prices_AC > 0).all(), name
        # Its own rate cancels out, so what is left is its weight: of 1, the others have the rest.
        np.testing.assert_allclose(prices_AC[place], prices_AC[place, 0], rtol=1e-12)
        assert 0.7 < prices_AC[place, 0] <= 1, name


def test_a_device_that_is_twice_as_fast_at_one_thing_charges_half_for_it():
    config = archetype_configs()[0]
    # No trait of the device depends on the banks of local memory, so the weights stay.
    faster = by_archetype(archetype_prices(replace(config, local_banks=2 * config.local_banks)))
    usual = by_archetype(archetype_prices(config))
    halved = np.array([0.5 if cause == "local" else 1.0 for cause in CAUSES])
    np.testing.assert_allclose(faster, usual * halved, rtol=1e-12)


def test_every_device_of_the_space_has_prices():
    split = load_space_split(find_space("gpu-2010-today"))
    for item in (*split.training, *split.held_out):
        prices = archetype_prices(item.config)
        assert np.isfinite(prices).all() and (prices > 0).all(), item.device.name


def test_causes_add_up_to_the_kernel_time_on_each_archetype(some_trace: Trace):
    times = archetype_times(some_trace)
    assert times.shape == (len(TIMED),)
    assert np.isfinite(times).all() and (times >= 0).all()
    whole = simulate(some_trace, archetype_configs())
    np.testing.assert_allclose(by_archetype(times).sum(axis=1), whole.kernel_time_s, rtol=1e-12)
    np.testing.assert_array_equal(archetype_times(read_workload(some_trace)), times)


def test_times_stand_where_their_resources_do(some_trace: Trace):
    times = dict(zip((item.name for item in TIMED), archetype_times(some_trace), strict=True))
    alone = simulate(some_trace, [archetype_configs()[ARCHETYPES.index("amd-r9-290x")]])
    for cause, seconds in zip(CAUSES, alone.breakdown_s[0], strict=True):
        assert times[f"time:amd-r9-290x:{cause}"] == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "size",
    [{"local_mem_bytes": 1 << 22}, {"local_size": 8192, "sub_groups_per_group": 256}],
    ids=["local memory", "work-items"],
)
def test_an_archetype_that_is_too_small_is_made_as_large_as_the_work_group_needs(size: dict[str, int]):
    big = of_size(traced("tree"), **size)
    assert np.isnan(times_on(big, archetype_configs())).any()
    times = archetype_times(big)
    assert np.isfinite(times).all()
    assert (by_archetype(times).sum(axis=1) > 0).all()


def test_times_are_missing_where_a_work_group_does_not_fit():
    trace = traced("tree")
    small, usual = large(max_group_local_bytes=64), large()
    times = times_on(trace, [small, usual, large(max_group_work_items=64), usual])
    assert np.isnan(times).tolist() == [True, False, True, False]
    expected = simulate(trace, [usual]).kernel_time_s[0]
    np.testing.assert_array_equal(times[[1, 3]], [expected, expected])
    assert np.isnan(times_on(trace, [small])).all()
