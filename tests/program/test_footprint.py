from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.core import footprint
from tests import naive


def test_by_hand():
    state, table, tree = footprint.new_footprint(64, 3)
    assert [footprint.touch(state, table, tree, line, 1)[0] for line in (5, 6, 7)] == [-1, -1, -1]
    assert footprint.touch(state, table, tree, 5, 3) == (0, 2)  # the same work-group; one sector more
    state[footprint.GROUP] = 1
    assert footprint.touch(state, table, tree, 9, 1)[0] == -1
    assert footprint.touch(state, table, tree, 6, 1) == (1, 0)  # only line 9 counts for a later work-group
    assert footprint.touch(state, table, tree, 7, 1) == (2, 0)  # lines 9 and 6
    state[footprint.GROUP] = 2
    assert footprint.touch(state, table, tree, 5, 1) == (3, 0)  # lines 6, 7 and 9
    assert state[footprint.NUM_LINES] == 4


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.sampled_from((10, 300)))
def test_like_the_slow_twin(seed: int, num_lines: int):
    rng = np.random.default_rng(seed)
    num_groups = 6
    state, table, tree = footprint.new_footprint(64, num_groups)
    twin = naive.Footprint()
    for group in range(num_groups):
        state[footprint.GROUP] = twin.group = group
        for _ in range(60):
            if footprint.is_crowded(state, table, 1):
                table = footprint.enlarged(table)
            line = int(rng.integers(num_lines)) + (int(rng.integers(3)) << 33)
            bits = int(rng.integers(1, 16))
            assert footprint.touch(state, table, tree, line, bits) == twin.touch(line, bits)
    assert state[footprint.NUM_LINES] == len(twin.last)
