"""Kernels that no one here wrote: pyopencl's own library on PoCL, and each of its launches in our executor.

Integers must be equal; floats may differ by what `agreement.py` allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from perfvec.program.tracer import trace_launch
from tests.opencl import pocl_device
from tests.program.agreement import RELATIVE
from tests.program.launching import execute
from tests.program.pyopencl_launches import RecordedLaunch, recorded

pytestmark = pytest.mark.usefixtures("front_end")

cl: Any = pytest.importorskip("pyopencl")
cla: Any = pytest.importorskip("pyopencl.array")
pytest.importorskip("mako", reason="pip install mako: pyopencl makes its kernels with it")
Put: TypeAlias = Callable[[NDArray[np.generic]], Any]
RNG = np.random.default_rng(1)
LISTS = """//CL//
void generate(LIST_ARG_DECL USER_ARG_DECL index_type i) {
    if (i % 3 == 0) { APPEND_a(i); }
    for (int j = 0; j < i % 5; ++j) { APPEND_b(((long)i << 32) + j); }
}"""


def numbers(kind: str, count: int = 700) -> NDArray[np.generic]:
    """Numbers from 1 to 20, halves of them squared into the imaginary part of complex ones."""
    values = RNG.random(count) * 19 + 1
    return (values + 0.5j * values if kind.startswith("c") else values).astype(kind)


def arrays(queue: Any, put: Put) -> None:
    for kind in ("i1", "u8", "f4", "c8"):
        x, y = put(numbers(kind)), put(numbers(kind))
        x + y, x * y, 2 * x + y, x.fill(3)
        if kind.startswith(("i", "u")):
            x & y, x ^ y, x > y, cla.maximum(x, y)
        else:
            x / y, x**2
    x, places = put(numbers("f4", 300)), put(RNG.integers(0, 300, 90).astype("i4"))
    cla.take(x, places), x.reverse(), cla.if_positive(x - 9, x, 2 * x), cla.diff(x)
    cla.arange(queue, 0, 9, 0.1, dtype="f8")
    cla.multi_put([put(numbers("f4", 90))], put(RNG.permutation(90).astype("i4")), dest_shape=(90,))


def functions(queue: Any, put: Put) -> None:
    from pyopencl import clmath

    x, z = put(RNG.random(400)), put(numbers("c16", 200))
    for name in ("acos", "cbrt", "cospi", "erf", "exp10", "lgamma", "log1p", "sinh", "tgamma"):
        getattr(clmath, name)(x)
    clmath.frexp(x), clmath.modf(x), clmath.fmod(x, x), clmath.atan2(x, x), clmath.bessel_jn(3, x)
    clmath.hankel_01(z), clmath.exp(z), clmath.log(z), clmath.sqrt(z)


def random_numbers(queue: Any, put: Put) -> None:
    from pyopencl.clrandom import PhiloxGenerator, ThreefryGenerator

    for generator in (PhiloxGenerator(queue.context, seed=5), ThreefryGenerator(queue.context, seed=6)):
        generator.uniform(queue, 1000, "i4", a=0, b=20), generator.normal(queue, 1000, "f8")


def reductions(queue: Any, put: Put) -> None:
    x, y = put(RNG.integers(-99, 99, 5000).astype("i4")), put(RNG.random(5000))
    cla.sum(x), cla.max(x), cla.dot(y, y), cla.subset_dot(put(np.arange(0, 5000, 7, dtype="i4")), y, y)
    cla.sum(put(numbers("c8")))


def scans(queue: Any, put: Put) -> None:
    from pyopencl.scan import ExclusiveScanKernel, GenericScanKernel

    x = put(RNG.integers(0, 100, 3000).astype("i4"))
    ExclusiveScanKernel(queue.context, np.int32, "a+b", "0")(x.copy())
    segmented = GenericScanKernel(
        queue.context, np.int32, "__global int *a, __global char *s, __global int *o", "a[i]",
        "across_seg_boundary ? b : a + b", "0", "o[i] = item", is_segment_start_expr="s[i]",
    )  # fmt: skip
    segmented(x, put((RNG.random(3000) < 0.05).astype("i1")), cla.zeros_like(x))


def algorithms(queue: Any, put: Put) -> None:
    from pyopencl.algorithm import KeyValueSorter, ListOfListsBuilder, copy_if

    x = put(RNG.integers(0, 90, 2000).astype("i4"))
    copy_if(x, "ary[i] > t", [("t", np.int32(50))])
    ListOfListsBuilder(queue.context, [("a", np.int32), ("b", np.int64)], LISTS, arg_decls=[])(queue, 900)
    KeyValueSorter(queue.context)(queue, x, put(np.arange(2000, dtype="i4")), 90, np.dtype("i4"))


def sorts(queue: Any, put: Put) -> None:
    from pyopencl.algorithm import RadixSort
    from pyopencl.bitonic_sort import BitonicSort

    radix = RadixSort(queue.context, "__global ulong *ary", key_expr="ary[i]", sort_arg_names=["ary"])
    radix(put(RNG.integers(0, 1 << 8, 2000).astype("u8")), key_bits=8)
    BitonicSort(queue.context)(put(RNG.random(1024).astype("f4")))
    BitonicSort(queue.context)(put(RNG.integers(0, 999, (16, 128)).astype("i4")), axis=1)


CASES = {
    case.__name__: (case, least)
    for case, least in (
        (arrays, 20), (functions, 15), (random_numbers, 4), (reductions, 8), (scans, 5), (algorithms, 25), (sorts, 20),
    )
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_launches_of_pyopencl(name: str):
    case, least = CASES[name]
    queue = cl.CommandQueue(cl.Context([pocl_device()]))
    with recorded() as launches:
        case(queue, lambda array: cla.to_device(queue, array))
    assert len(launches) >= least
    for launch in launches:
        assert differences(launch) == []
        assert trace_launch(launch.launch).context.num_work_items > 0


def differences(recorded_launch: RecordedLaunch) -> list[str]:
    """Buffers that differ. Where arguments are one buffer, one of ours must hold what that holds in the end."""
    ours = execute(recorded_launch.launch)
    name = recorded_launch.launch.kernel_name
    return [
        f"{name}, arguments {group}"
        for group in recorded_launch.groups
        if not any(agrees(ours[index].tobytes(), recorded_launch.after[index]) for index in group)
    ]


def agrees(ours: bytes, theirs: bytes) -> bool:
    """Equal, or close as floats of one width: relatively, so that integers taken for floats must be equal."""
    if ours == theirs:
        return True
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        if len(ours) % dtype.itemsize == 0:
            left, right = np.frombuffer(ours, dtype), np.frombuffer(theirs, dtype)
            if np.allclose(left, right, rtol=RELATIVE[dtype], atol=0, equal_nan=True):
                return True
    return False


def test_a_difference_is_seen():
    assert not agrees(np.array([5, 6], "i4").tobytes(), np.array([5, 7], "i4").tobytes())
    assert not agrees(np.array([1.0, 2.0]).tobytes(), np.array([1.0, 2.0001]).tobytes())
    assert agrees(np.array([1.0, 2.0], "f4").tobytes(), np.array([1.0, 2.000001], "f4").tobytes())
