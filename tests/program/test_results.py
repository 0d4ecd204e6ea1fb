"""Oracle 1: the executor computes what PoCL computes, on optimised and on unoptimised IR, with every work-group run.

Integers must be equal, floats within the bounds of `tests.program.agreement`.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.opencl import pocl_device
from tests.program.agreement import Verdict, differ, judge
from tests.program.launching import execute, make_launch, smallest_launches
from tests.program.odd_kernels import odd_kernels

SUITES = {f"{entry.suite}/{entry.kernel}": entry.launch for entry in smallest_launches()}
ODD = {f"odd/{name}": launch for name, launch in odd_kernels().items()}
LAUNCHES = {**SUITES, **ODD}
# Work-items append to a list in an order of their own.
UNORDERED = {
    "dynamic/hash_insert", "graph/bfs_queue", "scan/compact_atomic", "scan/compact_local", "sorting/bucket_scatter",
}  # fmt: skip
# Factors on the bounds for floats, with the reason.
TOLERANCE = {
    "image/trace_spheres_local": 10.0,  # reflections magnify the error of a direction
    "spectral/dft_phasor": 10.0,  # a rotation applied 500 times
}
# Sums of floats by atomics, kept as their bits in integers: a few units in the last place.
BITS_OF_FLOATS = {"graph/pagerank_push": 16}


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Verdict]]]:
    """Verdicts on the launches whose tests will run, made by as many processes as there are processors, up to four."""
    pocl_device()
    wanted = [
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_executor_agrees_with_the_oracle
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), mp_context=context) as pool:
        yield {
            name: pool.submit(
                judge,
                name,
                LAUNCHES[name],
                tolerance=TOLERANCE.get(name, 1.0),
                is_unordered=name in UNORDERED,
                ulps=BITS_OF_FLOATS.get(name, 0),
            )
            for name in wanted
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", LAUNCHES)
def test_executor_agrees_with_the_oracle(name: str, verdicts: dict[str, Future[Verdict]], confirm: Callable[..., None]):
    verdict = verdicts[name].result()
    assert verdict.oracle, "\n".join(verdict.differences)
    confirm(f"kernels, optimised and not, give the results of {verdict.oracle}")


def test_a_difference_is_seen():
    launch = make_launch("", "buffer:int32:4:arange", "buffer:float32:4:constant(1)", "buffer:float32x3:2:constant(1)")
    buffers = {i: arg.array() for i, arg in enumerate(launch.args)}  # type: ignore[union-attr]
    assert not differ(launch, buffers, buffers)
    changed = {i: array.copy() for i, array in buffers.items()}
    changed[0][2] += 1
    changed[1][3] *= 1.001
    changed[2][3] = 5  # padding
    assert [text.split(":")[0] for text in differ(launch, changed, buffers)] == ["argument 0", "argument 1"]
    changed[2][4] = 5
    assert len(differ(launch, changed, buffers)) == 3


# ---- random expressions -----------------------------------------------------------------------------------------

_LEAVES = ("a", "b", "i", "7", "-3", "0x5a5a5a5a")
_BINARY = ("&", "|", "^", "<", ">=", "==", "!=", "&&", "||")
# What OpenCL leaves undefined is kept out: signed arithmetic that overflows, shifts past the width, division by zero.
_GUARDED = (
    "((uint){} + {})",
    "((uint){} - {})",
    "((uint){} * {})",
    "((uint){} << ({} & 31))",
    "({} >> ({} & 31))",
    "({} / (({} & 15) + 1))",
    "({} % (({} & 15) + 1))",
)
_CALLS = ("min({}, {})", "max({}, {})", "mul_hi({}, {})", "rotate({}, {})", "hadd({}, {})", "add_sat({}, {})")
_CASTS = (
    "(int)(uint)({})",
    "(char)({})",
    "(ushort)({})",
    "(-(uint)({}))",
    "(~({}))",
    "(!({}))",
    "popcount({})",
    "clz({})",
)


def _expressions() -> st.SearchStrategy[str]:
    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.one_of(
            st.builds(lambda op, x, y: f"({x} {op} {y})", st.sampled_from(_BINARY), inner, inner),
            st.builds(lambda form, x, y: form.format(x, y), st.sampled_from(_GUARDED), inner, inner),
            st.builds(
                lambda form, x, y: form.format(f"(int)({x})", f"(int)({y})"), st.sampled_from(_CALLS), inner, inner
            ),
        )
        single = st.builds(lambda form, x: form.format(f"(int)({x})"), st.sampled_from(_CASTS), inner)
        choice = st.builds(lambda c, x, y: f"({c} ? {x} : {y})", inner, inner, inner)
        return st.one_of(pairs, single, choice)

    return st.recursive(st.sampled_from(_LEAVES), extend, max_leaves=12)


# Each form once, of two random numbers.
_EVERY_FORM = [
    *(f"(a {op} b)" for op in _BINARY),
    *(form.format("(int)a", "(int)b") for form in (*_GUARDED, *_CALLS)),
    *(form.format("(int)a") for form in _CASTS),
]


@example(_EVERY_FORM)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(_expressions(), min_size=8, max_size=8))
def test_random_integer_expressions(expressions: list[str]):
    pocl_device()
    from perfvec.arch.replay import replay

    lines = "\n".join(f"o[i * {len(expressions)} + {n}] = (int)({text});" for n, text in enumerate(expressions))
    source = f"""kernel void k(global int *o, global const int *p, global const int *q) {{
        uint i = get_global_id(0), a = p[i], b = q[i];
        {lines} }}"""
    values = "buffer:int32:64:uniform(-2147483648,2147483647)"
    launch = make_launch(source, f"buffer:int32:{64 * len(expressions)}:constant(0)", values, f"{values}~5")
    expected = dict(replay(launch, pocl_device()).outputs)
    for optimise in (True, False):
        assert not differ(launch, execute(launch, optimise=optimise), expected), source
