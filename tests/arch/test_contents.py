"""Blocks that launches share hold what each launch's own recipe says, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

from perfvec.arch.contents import ContentCache
from perfvec.arguments import BufferArg, parse_argument
from perfvec.initialisers import INITIALISERS
from perfvec.launch import Launch

PARAMETERS = {
    "constant": "(3)", "uniform": "(-5,90)", "normal": "(1,2)", "arange": "(2,3)", "indices": "(7)",
    "near_indices": "(50,3)", "permutation": "", "sorted": "(0,99)", "offsets": "(1000,1)",
}  # fmt: skip


def launch_of(*args: str) -> Launch:
    arguments = tuple(parse_argument(text, position=i) for i, text in enumerate(args))
    return Launch(source="", kernel_name="k", args=arguments, global_size=(1,), local_size=(1,))


def test_every_initialiser_is_tried():
    assert PARAMETERS.keys() == INITIALISERS.keys()


@pytest.mark.parametrize("name", sorted(INITIALISERS))
@pytest.mark.parametrize("element", ["float32", "int16", "float64x4", "uint8x3", "int64", "float32x2"])
def test_shared_blocks_are_byte_for_byte_the_recipes(name: str, element: str):
    cache = ContentCache(1 << 26)
    for count in (100, 3, 400_000, 1_000, 2_000_000 if element == "uint8x3" else 50_000):
        launch = launch_of("int32:1", f"buffer:{element}:{count}:{name}{PARAMETERS[name]}~5")
        arg = launch.args[1]
        assert isinstance(arg, BufferArg)
        held = cache.contents(launch)[1]
        assert held.num_bytes == arg.num_bytes
        whole = np.resize(held.block, arg.num_bytes // held.block.itemsize)
        assert whole.tobytes() == arg.array().tobytes()


def test_equal_contents_are_made_once_and_the_oldest_dropped():
    cache = ContentCache(3 * 4_000)
    first = cache.contents(launch_of("buffer:float32:1000:uniform(0,1)~1"))[0]
    again = cache.contents(launch_of("int32:1", "buffer:float32:900:uniform(0,1)~1"))[1]
    assert np.shares_memory(first.block, again.block)
    assert first.key == again.key != ""
    for seed in (2, 3, 4):
        cache.contents(launch_of(f"buffer:float32:1000:uniform(0,1)~{seed}"))
    other = cache.contents(launch_of("buffer:float32:1000:uniform(0,1)~1"))[0]
    assert not np.shares_memory(first.block, other.block)
    np.testing.assert_array_equal(first.block, other.block)
