from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import pyopencl as cl
import pytest

from perfvec.arch import session as session_module
from perfvec.arch.contents import ContentCache
from perfvec.arch.opencl import LiveDevice, describe, list_devices
from perfvec.arch.replay import download, enqueue, event_time_s, host_buffers
from perfvec.arch.session import ProgramCache, Protocol, Session
from perfvec.arguments import parse_argument
from perfvec.errors import ConfigError, FormatError, OpenCLError, SourceError
from perfvec.launch import Launch
from tests.opencl import oclgrind_device, pocl_device
from tests.program.launching import make_launch

SOURCE = """
__kernel void increment(__global float *a, __global const float *b, __global uchar *c) {
  size_t i = get_global_id(0);
  a[i] += b[i];
  if (i == 0) c[4] = c[4] + 1;
}
"""
QUICK = Protocol(warm_up_s=0.02, filler_s=1e-4, wake_s=0.002)


def increment(count: int = 4096) -> Launch:
    args = (f"buffer:float32:{count}", f"buffer:float32:{count}:constant(1)", "buffer:uint8:5:constant(3)")
    return Launch(
        source=SOURCE,
        kernel_name="increment",
        args=tuple(parse_argument(arg) for arg in args),
        global_size=(count,),
        local_size=(64,),
    )


def live_pocl() -> LiveDevice:
    handle = pocl_device()
    return next(live for live in list_devices() if live == describe(handle, number=live.number))


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(live_pocl(), QUICK)


def test_a_session_knows_its_device_and_overhead(session: Session):
    assert session.launch_overhead_s > 0
    assert session.is_alive()
    assert session.key.endswith("-pocl")


def test_a_measured_time_is_positive_and_complete(session: Session):
    launch = increment()
    time = session.measure(launch, host_buffers(launch), budget_s=0.2)
    assert time.digest == launch.digest
    assert time.device == session.key
    assert 0 < time.min_s <= time.kernel_time_s < 1
    assert 1 <= time.num_repeats <= QUICK.max_repeats
    assert time.launch_overhead_s == session.launch_overhead_s
    assert time.driver == session.device.driver
    assert len(time.date) == 10


def test_more_work_takes_longer(session: Session):
    small, large = increment(4096), increment(1 << 22)
    times = [session.measure(job, host_buffers(job), budget_s=0.1).min_s for job in (small, large)]
    assert times[1] > 3 * times[0]  # 1024 times the work; a busy machine may hide much of it


def test_changed_buffers_are_put_back_and_only_those(session: Session, monkeypatch):
    launch = increment()
    contents = host_buffers(launch)
    kernel, buffers, pristine = session._bound(launch, contents, None)
    event_time_s(enqueue(session._queue, kernel, launch))
    session._forget_unchanged(buffers, pristine, contents)
    assert set(pristine) == {0, 2}  # 2 differs in its last byte only
    run, begun = session._run, []

    def watched(kernel: cl.Kernel, launch: Launch, then: Callable[[], None] | None = None) -> float:
        begun.append({place: download(session._queue, buffers[place], contents[place]) for place in buffers})
        return run(kernel, launch, then)

    monkeypatch.setattr(session, "_run", watched)
    restore = partial(session._restore, buffers, pristine, contents)
    times = session._repeat(kernel, launch, restore, 0.05, kept=[1e-3])
    assert len(begun) == len(times) - 1 > 1
    for before in begun:  # whatever the number of repeats, each finds the buffers as the first did
        np.testing.assert_array_equal(before[0], contents[0].block)
        assert (before[1] == 1).all()
        assert before[2].tolist() == [3, 3, 3, 3, 3]


def test_what_a_kernel_only_reads_and_is_there_already_is_not_copied(session: Session):
    """`b` and `d` have the same contents: only one of them may be the staged block, since a device caches addresses."""
    source = """kernel void k(global float* a, global const float* b, global const float* d, global const float* e) {
        size_t i = get_global_id(0); a[i] = b[i] + d[i] + e[i]; }"""
    same = "buffer:float32:256:uniform(0,1)~5"
    launch = make_launch(source, "buffer:float32:256", same, same, "buffer:float32:64:uniform(0,1)~6", global_size=64)
    contents = ContentCache(1 << 20).contents(launch)
    session.stage({1: contents[1]}, most_bytes=1 << 20)
    kernel, buffers, _ = session._bound(launch, contents, None)
    _, staged = session._staged[contents[1].key]
    assert buffers[1] is staged
    assert buffers[2] is not staged
    event_time_s(enqueue(session._queue, kernel, launch))
    after = download(session._queue, buffers[0], contents[0])
    expected = contents[1].block[:64] + contents[2].block[:64] + contents[3].block
    np.testing.assert_allclose(after[:64], expected, rtol=1e-6)
    again = download(session._queue, staged, contents[1])  # it was not released
    np.testing.assert_array_equal(again, contents[1].block)
    assert session.measure(launch, contents, budget_s=0.01).kernel_time_s > 0


def test_a_rehearsal_compiles_once_for_a_local_size_and_changes_nothing(session: Session, monkeypatch):
    sizes: list[tuple[int, ...]] = []
    run = session._run

    def heard(kernel: cl.Kernel, launch: Launch, then: Callable[[], None] | None = None) -> float:
        sizes.append(launch.global_size)
        return run(kernel, launch, then)

    monkeypatch.setattr(session, "_run", heard)
    small, large = increment(4096), increment(1 << 17)
    other = dataclasses.replace(small, local_size=(32,))
    for launch in (small, small, large, other, large):
        contents = host_buffers(launch)
        held = session.hold(launch, contents)
        assert held.num_bytes == 2 * (2 * 4 * launch.global_size[0] + 5) - 4 * launch.global_size[0]
        session.rehearse(launch, contents, held)
        for position, buffer in held.buffers.items():
            after = download(session._queue, buffer, contents[position])
            assert (after == np.resize(contents[position].block, after.size)).all()
        assert session.measure(launch, contents, budget_s=0.001, held=held).kernel_time_s > 0
    rehearsed = [size for size in sizes if size not in {(4096,), (1 << 17,)}]
    assert rehearsed == [(64,), (65536,), (32,)]


@pytest.mark.parametrize("place", [0, 12345, 99_999, 100_002])
def test_a_change_anywhere_is_found(session: Session, place: int, monkeypatch):
    source = "kernel void k(global uchar* a, ulong place) { a[place] = 1; }"
    launch = make_launch(source, "buffer:uint8:100003:constant(0)", f"uint64:{place}", global_size=32)
    contents = host_buffers(launch)
    for kind in ("cpu", "gpu"):
        monkeypatch.setattr(session, "device", dataclasses.replace(session.device, type=kind))
        kernel, buffers, pristine = session._bound(launch, contents, None)
        session._forget_unchanged(buffers, dict(pristine), contents)
        event_time_s(enqueue(session._queue, kernel, launch))
        session._forget_unchanged(buffers, pristine, contents)
        assert set(pristine) == {0}


def test_of_long_runs_two_are_enough(session: Session, monkeypatch):
    launch = increment()
    contents = host_buffers(launch)
    monkeypatch.setattr(session, "protocol", dataclasses.replace(QUICK, min_repeats=5, precision=1e-9))
    assert session.measure(launch, contents, budget_s=1e-9).num_repeats == 5
    monkeypatch.setattr(session, "protocol", dataclasses.replace(QUICK, min_repeats=5, precision=1e-9, long_s=1e-9))
    assert session.measure(launch, contents, budget_s=1e-9).num_repeats == 2


def test_changed_images_are_put_back(session: Session):
    launch = make_launch(
        """kernel void k(read_only image2d_t a, write_only image2d_t b, sampler_t s) {
            int2 at = (int2)(get_global_id(0), 3); write_imagei(b, at, read_imagei(a, s, at) + 1); }""",
        "image2d:rgba_signed_int32:64x4:indices(9)",
        "image2d:rgba_signed_int32:64x4:constant(7)",
        "sampler:clamp_to_edge:nearest",
    )
    contents = host_buffers(launch)
    kernel, buffers, pristine = session._bound(launch, contents, None)
    event_time_s(enqueue(session._queue, kernel, launch))
    session._forget_unchanged(buffers, pristine, contents)
    assert set(pristine) == {1}
    after = download(session._queue, buffers[1], contents[1]).reshape(4, 64, 4)
    assert (after[3] == contents[0].block.reshape(4, 64, 4)[3] + 1).all() and (after[:3] == 7).all()
    session._restore(buffers, pristine, contents)
    assert (download(session._queue, buffers[1], contents[1]) == 7).all()
    assert session.measure(launch, contents, budget_s=0.05).kernel_time_s > 0


def test_repeating_ends_by_precision_budget_or_number(session: Session, monkeypatch):
    launch = increment()
    contents = host_buffers(launch)
    monkeypatch.setattr(session, "protocol", dataclasses.replace(QUICK, precision=0.999))
    assert session.measure(launch, contents, budget_s=10.0).num_repeats < 50
    monkeypatch.setattr(session, "protocol", dataclasses.replace(QUICK, precision=1e-9, max_repeats=9))
    assert session.measure(launch, contents, budget_s=10.0).num_repeats == 9
    assert session.measure(launch, contents, budget_s=1e-9).num_repeats == 1


def test_the_watchdog_keeps_the_first_run(session: Session, monkeypatch):
    monkeypatch.setattr(session, "protocol", dataclasses.replace(QUICK, watchdog_s=1e-9))
    time = session.measure(increment(), host_buffers(increment()), budget_s=1.0)
    assert time.num_repeats == 1
    assert time.min_s == time.kernel_time_s > 0
    assert math.isnan(time.spread)


def test_a_launch_without_buffers(session: Session):
    source = "__kernel void f(int n) { volatile int i = n; i = i + 1; }"
    launch = Launch(
        source=source, kernel_name="f", args=(parse_argument("int32:3"),), global_size=(64,), local_size=(8,)
    )
    assert session.measure(launch, {}, budget_s=0.01).kernel_time_s > 0


def test_errors_of_the_device_are_explained(session: Session, monkeypatch):
    launch = increment()
    monkeypatch.setattr(session, "device", dataclasses.replace(session.device, memory_bytes=40_000))
    with pytest.raises(OpenCLError, match=r"measuring kernel 'increment' .*untouched copies do not fit into 39\.1 KiB"):
        session.measure(launch, host_buffers(launch), budget_s=0.1)
    monkeypatch.undo()

    def refuse(*args):
        raise cl.RuntimeError("OUT_OF_RESOURCES")

    monkeypatch.setattr(session_module, "event_time_s", refuse)
    with pytest.raises(OpenCLError, match=r"measuring kernel 'increment' of kernel\.cl on .* failed: OUT_OF_RESOURCES"):
        session.measure(launch, host_buffers(launch), budget_s=0.1)
    assert not session.is_alive()


def test_a_timer_that_stands_still_is_refused(session: Session, monkeypatch):
    monkeypatch.setattr(session_module, "event_time_s", lambda event: 0.0)
    with pytest.raises(FormatError, match="profiling timer does not resolve"):
        session.measure(increment(), host_buffers(increment()), budget_s=0.01)


def test_simulators_are_refused():
    handle = oclgrind_device()
    live = next(live for live in list_devices() if live == describe(handle, number=live.number))
    with pytest.raises(OpenCLError, match="Oclgrind Simulator is a simulator"):
        Session(live)


def test_one_build_for_all_who_want_it(monkeypatch):
    builds = []
    gate = threading.Event()

    def build(context, source, build_options, *, source_name):
        gate.wait(5)
        builds.append(source)
        if "broken" in source:
            raise SourceError("does not compile")
        return object()

    monkeypatch.setattr(session_module, "build_program", build)
    cache = ProgramCache(None)  # type: ignore[arg-type]
    got = []
    threads = [threading.Thread(target=lambda: got.append(cache.get(increment()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert len(builds) == 1
    assert len({id(program) for program in got}) == 1
    assert cache.get(dataclasses.replace(increment(), build_options=("-DX",))) is not got[0]
    broken = dataclasses.replace(increment(), source="broken")
    for _ in range(2):
        with pytest.raises(SourceError, match="does not compile"):
            cache.get(broken)
    assert builds.count("broken") == 1
    for i in range(session_module._MAX_PROGRAMS):
        cache.get(dataclasses.replace(increment(), source=str(i)))
    assert len(cache._futures) == session_module._MAX_PROGRAMS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precision": 0.0}, "precision=0.0, confidence=0.95; allowed are fractions"),
        ({"confidence": 95.0}, "confidence=95.0"),
        ({"max_repeats": 0}, "max_repeats=0; allowed are 1 to 65535"),
        ({"long_s": 0.0}, "long_s=0.0; allowed are finite times over 0"),
        ({"watchdog_s": math.inf}, "watchdog_s=inf; allowed are finite times over 0"),
    ],
)
def test_impossible_protocols_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Protocol(**changes)
