"""Buffers in memory: byte for byte what the argument says, whatever way they are made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import numpy as np
import pytest

from perfvec.arguments import BufferArg, ElementType, parse_argument
from perfvec.errors import MemoryAccessError
from perfvec.initialisers import RANDOM_PERIOD, Initialiser
from perfvec.program import executor
from perfvec.program.buffers import ALIGN, Contents, aligned_zeros, let_go, resident_bytes
from perfvec.program.executor import Execution, compile_launch
from tests.opencl import oclgrind_device
from tests.program.launching import make_launch

# How much memory a block took: one number, known at its end.
Resident: TypeAlias = Callable[[], AbstractContextManager[list[int]]]


@pytest.fixture
def resident() -> Resident:
    @contextmanager
    def grown() -> Iterator[list[int]]:
        found: list[int] = []
        before = resident_bytes()
        yield found
        found.append(resident_bytes() - before)

    if sys.platform != "linux":
        pytest.skip("resident memory is read from /proc")
    return grown


@pytest.mark.parametrize(
    "text",
    [
        "buffer:float32:7",
        "buffer:int32:1000:constant(0)",
        "buffer:int32:1000:constant(7)",
        f"buffer:float32:{RANDOM_PERIOD}:uniform(-1,1)",
        f"buffer:float32:{2 * RANDOM_PERIOD + 5}:uniform(-1,1)",
        f"buffer:uint8:{3 * RANDOM_PERIOD + 1}:indices(200)~9",
        f"buffer:float32x3:{RANDOM_PERIOD}:normal(0,1)",
        f"buffer:int32:{RANDOM_PERIOD + 3}:arange(5,2)",
        f"buffer:int32:{RANDOM_PERIOD + 3}:permutation",
        f"buffer:int32:{2 * RANDOM_PERIOD + 3}:near_indices(1000000,50)",
    ],
)
def test_contents(text: str):
    arg = parse_argument(text, position=2)
    assert isinstance(arg, BufferArg)
    contents = Contents(arg)
    buffer, again = contents.buffer(), contents.buffer()
    expected = arg.array().view(np.uint8)
    assert np.array_equal(buffer, expected)
    assert buffer.ctypes.data % ALIGN == 0
    # Writing to one leaves the other, and those made later, as they were.
    buffer[:] = 255
    assert np.array_equal(again, expected)
    assert np.array_equal(contents.buffer(), expected)


def test_given_data():
    data = np.arange(10, dtype=np.int16)
    arg = BufferArg(
        element=ElementType(scalar="int16"), count=10, initialiser=Initialiser(name="constant"), data=data.tobytes()
    )
    contents = Contents(arg)
    buffer = contents.buffer()
    buffer[0] += 1
    assert np.array_equal(contents.buffer().view(np.int16), data)


def test_a_large_buffer_takes_the_pages_that_are_touched(resident: Resident):
    with resident() as grown:
        zeros = aligned_zeros(1 << 28)
        zeros[:: 1 << 21] = 1  # a byte in each 2 MiB
    assert 128 * 4096 <= grown[0] < 1 << 23
    assert zeros.sum() == 128


def test_a_mapped_buffer_is_let_go_of_and_reads_the_same(resident: Resident):
    arg = parse_argument(f"buffer:float32:{1 << 25}:uniform(0,1)")
    assert isinstance(arg, BufferArg)
    contents = Contents(arg)
    assert contents.is_large_mapping
    buffer = contents.buffer()
    with resident() as grown:
        total = int(buffer.sum())
    assert grown[0] > 120 << 20
    with resident() as grown:
        let_go(buffer)
    assert grown[0] < -(120 << 20)
    assert int(buffer.sum()) == total


@pytest.mark.usefixtures("front_end")
def test_reading_much_keeps_little_in_memory(resident: Resident, monkeypatch: pytest.MonkeyPatch):
    source = """kernel void k(global const float *x, global float *y) {
        int first = get_group_id(0) * 524288 + get_local_id(0); float s = 0;
        for (int i = 0; i < 8192; i++) s += x[first + i * 64];
        y[get_global_id(0)] = s; }"""
    launch = make_launch(
        source, f"buffer:float32:{1 << 25}:arange(0,1)", "buffer:float32:4096", global_size=4096, local_size=64
    )
    compiled, sums = compile_launch(launch), []
    for most, bounds in ((1 << 40, (100 << 20, 1 << 40)), (0, (0, 32 << 20))):
        monkeypatch.setattr(executor, "MOST_RESIDENT", most)
        execution = Execution(compiled, launch)
        with resident() as grown:
            execution.run(range(64))
        assert bounds[0] <= grown[0] < bounds[1]
        sums.append(execution.buffers[1].copy())
        del execution
    assert np.array_equal(*sums)
    assert sums[0].any()


@pytest.mark.parametrize("offset", [0, 3])
def test_what_is_only_read_is_read_from_its_first_period(offset: int):
    """Also where a pointer is not known until it runs, and where an access goes over the end of a period."""
    oclgrind_device()
    source = """kernel void k(global const float* a, global const float* b, int odd, global float4* o) {
        size_t i = get_global_id(0);
        global const float* p = odd > 0 && i % 2 ? b : a;
        o[i] = vload4(0, a + i * 65537 + %d) + p[i * 4099 + 1048575];
    }""".replace("%d", str(offset))
    count = 3 << 20
    a, b = f"buffer:float32:{count}:uniform(0,1)~1", f"buffer:float32:{count}:uniform(0,1)~2"
    launch = make_launch(source, a, b, "int32:1", "buffer:float32x4:47", global_size=47, local_size=47)
    launch_a, launch_b = (parse_argument(text).array() for text in (a, b))  # pyright: ignore[reportAttributeAccessIssue]
    contents: dict[int, Contents] = {}
    execution = Execution(compile_launch(launch), launch, contents=contents)
    assert contents[0].mask == (4 << 20) - 1
    execution.run([0])
    places = np.arange(47)
    far = np.where(places % 2, launch_b[places * 4099 + 1048575], launch_a[places * 4099 + 1048575])
    expected = launch_a[places[:, None] * 65537 + offset + np.arange(4)] + far[:, None]
    np.testing.assert_array_equal(execution.buffers[3].reshape(-1, 4), expected)


def test_a_place_past_the_end_of_what_repeats_is_outside():
    oclgrind_device()
    source = (
        "kernel void k(global const float* a, global float* o) { size_t i = get_global_id(0); o[i] = a[i + 3145697]; }"
    )
    launch = make_launch(source, f"buffer:float32:{3 << 20}:uniform(0,1)", "buffer:float32:64", global_size=32)
    with pytest.raises(MemoryAccessError, match="4 bytes at byte 12582912"):
        Execution(compile_launch(launch), launch).run([0])
