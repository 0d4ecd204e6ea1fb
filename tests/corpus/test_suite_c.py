"""The suites image, finance, ml and memory: they load, and every kernel computes what it says.

For each kernel and variant the first (smallest) launch runs on PoCL and is compared with a NumPy reference; buffers
that the reference does not name must come back unchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from numpy.typing import NDArray

from perfvec.arguments import BufferArg, LocalArg
from perfvec.content import content_folder
from perfvec.corpus.suite import SuiteLaunch, load_suite
from perfvec.launch import Launch
from tests.corpus import reference_finance, reference_image, reference_memory, reference_ml
from tests.corpus.reference import Expected, ReferenceCase
from tests.opencl import pocl_device

SUITES = {
    "image": reference_image.REFERENCES,
    "finance": reference_finance.REFERENCES,
    "ml": reference_ml.REFERENCES,
    "memory": reference_memory.REFERENCES,
}
LAUNCHES = [entry for name in SUITES for entry in load_suite(content_folder("traces") / name / "suite.toml")]


def smallest_launches() -> list[SuiteLaunch]:
    """The first launch of each kernel and variant: suites list them from small to large."""
    first: dict[tuple[str, str, str], SuiteLaunch] = {}
    for entry in LAUNCHES:
        first.setdefault((entry.suite, entry.kernel, entry.variant), entry)
    return list(first.values())


def run_launch(launch: Launch) -> dict[int, NDArray[np.generic]]:
    """Run a launch on PoCL; what each buffer holds afterwards, by argument position."""
    device = pocl_device()
    import pyopencl as cl

    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, launch.source).build(options=list(launch.build_options))
    kernel = cl.Kernel(program, launch.kernel_name)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    hosts = {i: arg.array() for i, arg in enumerate(launch.args) if isinstance(arg, BufferArg)}
    buffers = {i: cl.Buffer(context, flags, hostbuf=host) for i, host in hosts.items()}
    for i, arg in enumerate(launch.args):
        if isinstance(arg, BufferArg):
            kernel.set_arg(i, buffers[i])
        elif isinstance(arg, LocalArg):
            kernel.set_arg(i, cl.LocalMemory(arg.num_bytes))
        else:
            kernel.set_arg(i, arg.array())
    cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size)
    for i, buffer in buffers.items():
        cl.enqueue_copy(queue, hosts[i], buffer)
    queue.finish()
    return hosts


@pytest.mark.parametrize(
    "entry", smallest_launches(), ids=lambda entry: f"{entry.suite}/{entry.kernel}/{entry.variant}"
)
def test_kernel_agrees_with_its_reference(entry: SuiteLaunch):
    found = run_launch(entry.launch)
    with np.errstate(all="ignore"):
        expected = SUITES[entry.suite][entry.kernel](ReferenceCase.from_launch(entry.launch))
    for position, contents in found.items():
        reference = expected.get(position)
        if reference is None:
            before = entry.launch.args[position].array()
            assert contents.tobytes() == before.tobytes(), f"{entry.name}: argument {position} was changed"
            continue
        wanted = reference if isinstance(reference, Expected) else Expected(values=reference)
        wanted.check(contents, what=f"{entry.name}, argument {position}")
    assert set(expected) <= set(found)


def test_every_kernel_has_a_reference_and_at_least_six_launches():
    counts = Counter((entry.suite, entry.kernel) for entry in LAUNCHES)
    assert min(counts.values()) >= 6
    assert max(counts.values()) <= 24
    assert set(counts) == {(suite, kernel) for suite, references in SUITES.items() for kernel in references}


def test_suites_hold_enough_kernels_and_families():
    families = defaultdict(set)
    for entry in LAUNCHES:
        families[entry.suite].add(entry.family)
    assert len({(entry.suite, entry.kernel) for entry in LAUNCHES}) >= 34
    assert min(len(names) for names in families.values()) >= 6


@pytest.mark.parametrize("suite", SUITES)
def test_suite_has_kernels_whose_work_does_not_follow_from_the_global_size(suite: str):
    assert len({entry.kernel for entry in LAUNCHES if entry.suite == suite and not entry.is_size_tied}) >= 3


def test_launches_fit_any_opencl_1_2_device():
    for entry in LAUNCHES:
        assert np.prod(entry.launch.local_size) <= 256, entry.name
        assert entry.launch.local_arg_bytes <= 32 << 10, entry.name
        assert entry.launch.buffer_bytes <= 512 << 20, entry.name
