"""Buffers in memory: byte for byte what the argument says, whatever way they are made."""

from __future__ import annotations

import numpy as np
import pytest

from perfvec.arguments import BufferArg, ElementType, parse_argument
from perfvec.initialisers import RANDOM_PERIOD, Initialiser
from perfvec.program.buffers import ALIGN, Contents


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
