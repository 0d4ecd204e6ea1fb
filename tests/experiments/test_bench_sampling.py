"""The default sample of work-groups against the whole launch, on the cheap launches of the benchmark."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.bench.sampling import CLASS_BOUND, NUM_KERNELS, SECTORS_BOUND, choose_launches, compare, count_classes
from perfvec.program.tracer import trace_launch
from perfvec.trace_data import OPCODE_CLASSES
from tests.program.launching import make_launch

pytestmark = pytest.mark.usefixtures("front_end")

# Edges, a skewed sparse matrix, a histogram, ragged sizes, walks of different length.
CHEAP = (
    "stencil/box27", "sparse/spgemm_symbolic", "image/histogram_global", "dense/transpose_naive",
    "memory/integer_bits", "nbody/tree_walk",
)  # fmt: skip


def test_a_launch_a_kernel():
    kernels = [f"{entry.suite}/{entry.kernel}" for entry in choose_launches()]
    assert len(set(kernels)) == len(kernels) == NUM_KERNELS
    assert set(CHEAP) <= set(kernels)


@pytest.mark.parametrize("kernel", CHEAP)
def test_the_sample_is_close_to_the_launch(kernel: str):
    launch = next(entry.launch for entry in choose_launches() if f"{entry.suite}/{entry.kernel}" == kernel)
    errors = compare(launch)
    assert errors.instructions <= CLASS_BOUND, errors
    assert errors.sectors <= SECTORS_BOUND, errors


def test_errors_are_those_of_the_counts():
    """Even work-groups read a buffer, so that a sample of places has an error that can be worked out."""
    launch = make_launch(
        """kernel void k(global float *o, global const float *i) { int g = get_group_id(0);
            if (g % 7 == 3) o[get_global_id(0)] = i[get_global_id(0)]; }""",
        "buffer:float32:32000", "buffer:float32:32000", global_size=32000,
    )  # fmt: skip
    loads = OPCODE_CLASSES.index("load")
    found, expected = (count_classes(trace_launch(launch, work_groups=most))[loads] for most in (48, None))
    assert expected == len(range(3, 1000, 7))
    errors = compare(launch)
    assert errors.instructions == pytest.approx(abs(found / expected - 1))
    assert errors.sectors == pytest.approx(errors.instructions)
    assert np.isfinite(errors.dram_sectors)
