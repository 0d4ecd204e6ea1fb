from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply import feature_cache
from perfvec.apply.feature_cache import FeatureCache, code_hash, fill, read_all
from perfvec.apply.simulated import SimulatedDevices
from perfvec.apply.tracing import trace
from perfvec.arch.archetypes import archetype_configs
from perfvec.arch.timing import simulate
from perfvec.errors import FormatError
from perfvec.launch import Launch
from perfvec.model.launch_input import LaunchInput
from tests.apply.tiny import suites


class FaultyCache:
    """Stands in for a cache whose tracer has faults that depend on the launch."""

    def __init__(self, folder: Path, deadly: str = "", faulty: str = "") -> None:
        self.folder, self.deadly, self.faulty = folder, deadly, faulty

    def holds(self, digest: str) -> bool:
        return (self.folder / digest).exists()

    def make(self, launch: Launch, *, name: str) -> None:
        if launch.digest == self.deadly:
            os._exit(1)
        if launch.digest == self.faulty:
            raise IndexError("a fault in the tracer")
        (self.folder / launch.digest).touch()


def test_features_read_back_as_they_were_made(tmp_path: Path):
    entry = suites(tmp_path / "suites")[0]
    cache = FeatureCache.open(tmp_path)
    assert not cache.holds(entry.launch.digest)
    heard: list[tuple[str, int, int]] = []
    assert fill(cache, [("x", entry.launch)], num_processes=0, on_progress=lambda *step: heard.append(step)) == {}
    assert heard == [("tracing", 1, 1)]
    found = cache.read(entry.launch.digest, name="mine")
    assert isinstance(found, LaunchInput)
    assert found.name == "mine"
    cache.write(entry.launch.digest, found)
    again = cache.read(entry.launch.digest, name="mine")
    assert isinstance(again, LaunchInput)
    for name in ("row_features", "row_units", "token_row", "window_start", "window_weight", "context", "resources"):
        assert np.array_equal(getattr(found, name), getattr(again, name))
        assert getattr(found, name).dtype == getattr(again, name).dtype


@pytest.mark.parametrize("num_processes", [0, 2])
def test_many_are_read_in_their_order(tmp_path: Path, num_processes: int):
    entries = suites(tmp_path / "suites", suites={"one": ["scale", "beyond", "add"]})
    cache = FeatureCache.open(tmp_path)
    assert fill(cache, [(entry.name, entry.launch) for entry in entries], num_processes=0) == {}
    asked = [(entry.name, entry.launch.digest) for entry in reversed(entries)]
    for (name, digest), found in zip(asked, read_all(cache, asked, num_processes=num_processes), strict=True):
        expected = cache.read(digest, name=name)
        if isinstance(expected, str):
            assert "beyond" in name and found == expected
        else:
            assert isinstance(found, LaunchInput)
            assert found.name == name and np.array_equal(found.token_row, expected.token_row)


def test_what_is_there_is_not_traced_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entry = suites(tmp_path / "suites")[0]
    cache = FeatureCache.open(tmp_path)
    fill(cache, [("x", entry.launch)], num_processes=0)
    monkeypatch.setattr("perfvec.apply.feature_cache.trace", lambda launch: pytest.fail("traced again"))
    fill(cache, [("x", entry.launch)], num_processes=0)


def test_why_a_launch_cannot_be_traced_is_kept(tmp_path: Path):
    entry = suites(tmp_path / "suites", suites={"one": ["beyond"]})[0]
    cache = FeatureCache.open(tmp_path)
    assert fill(cache, [("x", entry.launch)], num_processes=0) == {}
    found = cache.read(entry.launch.digest, name="x")
    assert isinstance(found, str)
    assert found.startswith("MemoryAccessError: kernel 'beyond'")


def test_a_damaged_file_is_made_again(tmp_path: Path):
    entry = suites(tmp_path / "suites")[0]
    cache = FeatureCache.open(tmp_path)
    fill(cache, [("x", entry.launch)], num_processes=0)
    cache.path(entry.launch.digest).write_bytes(b"damaged")
    with pytest.raises(FormatError, match="not a readable HDF5 file"):
        cache.read(entry.launch.digest, name="x")
    fill(cache, [("x", entry.launch)], num_processes=0)
    assert isinstance(cache.read(entry.launch.digest, name="x"), LaunchInput)
    assert not list(cache.folder.rglob("*.part"))


def test_other_versions_and_other_code_have_other_folders(tmp_path: Path):
    cache = FeatureCache.open(tmp_path)
    assert f"-f{cache.schema.features_version}-" in cache.folder.name
    assert FeatureCache.open(tmp_path).folder == cache.folder
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text("x = 1")
    before = code_hash(tmp_path, ("deep/**/*.py", "absent.py"))
    assert code_hash(tmp_path, ("deep/**/*.py", "absent.py")) == before
    (tmp_path / "deep" / "a.py").write_text("x = 2")
    assert code_hash(tmp_path, ("deep/**/*.py", "absent.py")) != before


SPACE = SimulatedDevices(space="gpu-2010-today")


@pytest.mark.parametrize("num_processes", [0, 2])
def test_times_on_simulated_devices_are_kept_beside_the_features(tmp_path: Path, num_processes: int):
    entries = suites(tmp_path / "suites", suites={"one": ["scale", "beyond"]}, sizes=(1024,))
    cache = FeatureCache.open(tmp_path, simulated=SPACE)
    assert fill(cache, [(entry.name, entry.launch) for entry in entries], num_processes=num_processes) == {}
    times = cache.read_times(entries[0].launch.digest)
    expected = simulate(trace(entries[0].launch), SPACE.configs).kernel_time_s
    assert times.dtype == np.float64
    np.testing.assert_array_equal(times, expected.astype(np.float32))
    usual = FeatureCache.open(tmp_path)
    fill(usual, [(entry.name, entry.launch) for entry in entries[:1]], num_processes=0)
    found, same = (one.read(entries[0].launch.digest, name="x") for one in (cache, usual))
    assert isinstance(found, LaunchInput) and isinstance(same, LaunchInput)
    assert np.array_equal(found.resources, same.resources)
    # What cannot be traced has no times, and a cache that keeps none says what to do.
    for one, digest in ((cache, entries[1].launch.digest), (usual, entries[0].launch.digest)):
        with pytest.raises(FormatError, match=r"no times on simulated devices; open the cache with those devices"):
            one.read_times(digest)


def test_a_launch_may_be_timed_on_some_devices_for_training(tmp_path: Path):
    entries = suites(tmp_path / "suites", suites={"one": ["scale"]}, sizes=(1024, 4096))
    cache = FeatureCache.open(tmp_path, simulated=SPACE)
    fill(replace(cache, some_simulated=5), [(entry.name, entry.launch) for entry in entries], num_processes=0)
    timed = [np.flatnonzero(~np.isnan(cache.read_times(entry.launch.digest))) for entry in entries]
    numbers = {item.number for item in SPACE.part("training")}
    for entry, found in zip(entries, timed, strict=True):
        assert len(found) == 5 and set(found) <= numbers
        expected = simulate(trace(entry.launch), [SPACE.configs[number] for number in found]).kernel_time_s
        np.testing.assert_array_equal(cache.read_times(entry.launch.digest)[found], expected.astype(np.float32))
    assert set(timed[0]) != set(timed[1])


def test_where_a_launch_does_not_fit_its_time_is_missing(tmp_path: Path):
    entry = suites(tmp_path / "suites", suites={"one": ["scale"]}, sizes=(1024,))[0]
    wide = replace(entry.launch, local_size=(1024,))
    cache = FeatureCache.open(tmp_path, simulated=SPACE)
    fill(cache, [("x", wide)], num_processes=0)
    fits = np.array([config.max_group_work_items >= 1024 for config in SPACE.configs])
    assert 0 < fits.sum() < len(fits)
    np.testing.assert_array_equal(np.isnan(cache.read_times(wide.digest)), ~fits)


def test_times_on_other_devices_are_another_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine = FeatureCache.open(tmp_path, simulated=SPACE)
    assert mine.folder != FeatureCache.open(tmp_path).folder
    assert mine.folder == FeatureCache.open(tmp_path, simulated=SimulatedDevices(space="gpu-2010-today")).folder
    fewer = [(item, "training") for item in SPACE.devices[:9]]
    monkeypatch.setattr("perfvec.apply.simulated._all", lambda name: fewer)
    assert FeatureCache.open(tmp_path, simulated=SPACE).folder != mine.folder


def test_other_archetypes_are_another_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = FeatureCache.open(tmp_path).folder
    first, *others = archetype_configs()
    changed = (replace(first, l2_bytes=2 * first.l2_bytes), *others)
    monkeypatch.setattr("perfvec.arch.archetypes.archetype_configs", lambda: changed)
    assert FeatureCache.open(tmp_path).folder != folder


def test_processes_trace_side_by_side(tmp_path: Path):
    entries = suites(tmp_path / "suites")[:3]
    cache = FeatureCache.open(tmp_path)
    assert fill(cache, [(entry.name, entry.launch) for entry in entries], num_processes=2) == {}
    assert all(isinstance(cache.read(entry.launch.digest, name="x"), LaunchInput) for entry in entries)


def test_once_the_time_is_over_no_launch_is_begun(tmp_path: Path):
    entries = suites(tmp_path / "suites")
    cache = FeatureCache.open(tmp_path)
    launches = [(entry.name, entry.launch) for entry in entries]
    assert fill(cache, launches, num_processes=1, seconds=0) == {}
    assert not any(cache.holds(launch.digest) for _, launch in launches)
    assert fill(cache, launches[:1], num_processes=1, seconds=600) == {}
    assert cache.holds(launches[0][1].digest)


def test_where_time_is_short_launches_are_traced_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entries = suites(tmp_path / "suites", suites={"one": ["scale", "add"]}, sizes=(1024, 4096))
    named = [(entry.name, entry.launch) for entry in entries]
    mixed = [named[0], named[2], named[1], named[3]]
    begun: list[str] = []
    monkeypatch.setattr(FeatureCache, "make", lambda self, launch, *, name: begun.append(name))
    cache = FeatureCache.open(tmp_path)
    fill(cache, mixed, num_processes=0, seconds=600)
    assert begun == [name for name, _ in mixed]
    begun.clear()
    fill(cache, mixed, num_processes=0)  # those of one program together
    assert [name.split()[0] for name in begun] == [name.split()[0] for name, _ in named]


def test_a_launch_that_ends_its_process_costs_itself_alone(tmp_path: Path):
    entries = suites(tmp_path / "suites")
    digests = [entry.launch.digest for entry in entries]
    cache = FaultyCache(tmp_path, deadly=digests[2], faulty=digests[4])
    heard: list[int] = []
    failures = fill(
        cache,  # type: ignore[arg-type]
        [(entry.name, entry.launch) for entry in entries],
        num_processes=2,
        on_progress=lambda what, done, total: heard.append(done),
    )
    assert set(failures) == {digests[2], digests[4]}
    assert failures[digests[2]].startswith("MemoryError: the process that traced it ended")
    assert failures[digests[4]] == "IndexError: a fault in the tracer"
    assert all(cache.holds(digest) for digest in digests if digest not in failures)
    assert heard[-1] == len(entries)


def test_a_launch_that_could_not_be_handed_over_is_handed_over_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entry = suites(tmp_path / "suites")[0]
    whole, refusals = feature_cache.process_pool, [False, True, False]

    class Refusing:
        def __init__(self, pool: ProcessPoolExecutor) -> None:
            self.pool, self.is_refusing = pool, refusals.pop(0)

        def submit(self, function: Callable[..., None], *args: object, **named: object) -> Future[None]:
            if self.is_refusing:
                raise BrokenProcessPool
            # The first run's process dies, so that the launch is tried alone.
            return self.pool.submit(os._exit, 1) if len(refusals) == 2 else self.pool.submit(function, *args, **named)

    @contextmanager
    def pool(count: int) -> Iterator[Refusing]:
        with whole(count) as made:
            yield Refusing(made)

    monkeypatch.setattr(feature_cache, "process_pool", pool)
    cache = FaultyCache(tmp_path)
    assert fill(cache, [(entry.name, entry.launch)], num_processes=1) == {}  # type: ignore[arg-type]
    assert cache.holds(entry.launch.digest)
    assert refusals == []
