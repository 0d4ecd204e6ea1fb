"""Vector forms against scalar forms, geometric functions against their formulas, and a sample of all against PoCL."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfvec.program.builtins import demangle
from perfvec.program.builtins.common import GEOMETRIC
from perfvec.program.builtins.relational import RELATIONAL, SHUFFLES
from perfvec.program.builtins.table import VALUE_BUILTINS
from tests.opencl import pocl_device
from tests.program.builtin_calls import DTYPES, INTEGERS, call, compiled, mangle
from tests.program.test_builtins_overloads import example_types

NAN, INF = math.nan, math.inf
ELEMENTWISE = {name: row for name, row in VALUE_BUILTINS.items() if name not in {*GEOMETRIC, *RELATIONAL, *SHUFFLES}}
# Scalars whose vector form takes scalars too: index of the first scalar argument.
MIXED = {"clamp": 1, "fmax": 1, "fmin": 1, "max": 1, "min": 1, "mix": 2, "ldexp": 1}


def numbers(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    dtype = DTYPES[kind]
    if kind not in INTEGERS:
        return rng.uniform(0.1, 0.9, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("width", [2, 3, 4, 8, 16])
def test_vector_forms_compute_each_element(width):
    # One type for each width and built-in: all types and widths together would take minutes to compile.
    rng = np.random.default_rng(width)
    pairs = {}
    for place, (base, builtin) in enumerate(ELEMENTWISE.items()):
        scalar = builtin.scalars[(place + width) % len(builtin.scalars)].name
        vector_types = example_types(builtin.pattern, scalar, str(width))
        pairs[mangle(base, *vector_types)] = mangle(base, *example_types(builtin.pattern, scalar, ""))
    functions = compiled([*pairs, *pairs.values()])
    for vector_name, scalar_name in pairs.items():
        kinds = [argument.scalar.name for argument in demangle(scalar_name).arguments if hasattr(argument, "scalar")]
        arguments = [numbers(kind, (6, width), rng) for kind in kinds]
        vector = functions.call(vector_name, *arguments)
        scalar = functions.call(scalar_name, *[argument.ravel() for argument in arguments])
        vectors, scalars = (vector, scalar) if isinstance(vector, tuple) else ((vector,), (scalar,))
        for one, other in zip(vectors, scalars, strict=True):
            np.testing.assert_array_equal(one.ravel(), other, err_msg=vector_name)


@pytest.mark.parametrize("base", MIXED)
def test_scalar_arguments_apply_to_each_element(base):
    first = MIXED[base]
    count = len(VALUE_BUILTINS[base].pattern)
    kinds = ["float"] * first + ["int" if base == "ldexp" else "float"] * (count - first)
    rng = np.random.default_rng(5)
    vectors = [numbers("float", (7, 3), rng) for _ in range(first)]
    scalars = [np.arange(7) if kind == "int" else numbers("float", (7,), rng) for kind in kinds[first:]]
    mixed = call(mangle(base, *[f"{kind}3" for kind in kinds[:first]], *kinds[first:]), *vectors, *scalars)
    repeated = [np.repeat(scalar[:, None], 3, axis=1) for scalar in scalars]
    same = call(mangle(base, *[f"{kind}3" for kind in kinds]), *vectors, *repeated)
    np.testing.assert_array_equal(mixed, same)


def test_step_and_smoothstep_take_scalar_edges():
    x = [[0.0, 0.5, 1.0, 2.0]]
    assert call(mangle("step", "float", "float4"), [0.5], x).tolist() == [[0.0, 1.0, 1.0, 1.0]]
    assert call(mangle("smoothstep", "float", "float", "float4"), [0.0], [1.0], x).tolist() == [[0.0, 0.5, 1.0, 1.0]]


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_geometric_functions(kind):
    tolerance = 4 * np.finfo(DTYPES[kind]).eps
    a, b = [[1.0, 2.0, 3.0]], [[4.0, -5.0, 6.0]]
    one, two = mangle("dot", f"{kind}3", f"{kind}3"), mangle("cross", f"{kind}3", f"{kind}3")
    assert call(one, a, b).tolist() == [12.0]
    assert call(two, a, b).tolist() == [[27.0, 6.0, -13.0]]
    four = mangle("cross", f"{kind}4", f"{kind}4")
    assert call(four, [[1.0, 2.0, 3.0, 9.0]], [[4.0, -5.0, 6.0, 9.0]]).tolist() == [[27.0, 6.0, -13.0, 0.0]]
    for prefix in ("", "fast_"):
        assert call(mangle(f"{prefix}length", f"{kind}4"), [[1.0, 1.0, 1.0, 1.0]]).tolist() == [2.0]
        assert call(mangle(f"{prefix}length", kind), [-3.0]).tolist() == [3.0]
        distance = mangle(f"{prefix}distance", f"{kind}2", f"{kind}2")
        assert call(distance, [[1.0, 1.0]], [[4.0, 5.0]]).tolist() == [5.0]
        unit = call(mangle(f"{prefix}normalize", f"{kind}2"), [[3.0, -4.0], [0.0, 0.0]])
        np.testing.assert_allclose(unit, [[0.6, -0.8], [0.0, 0.0]], rtol=tolerance)
    assert call(mangle("dot", kind, kind), [3.0], [-2.0]).tolist() == [-6.0]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_length_and_normalize_neither_overflow_nor_vanish(kind):
    info = np.finfo(DTYPES[kind])
    large, small = float(info.max) / 8, float(info.tiny)
    for scale in (large, small):
        length = call(mangle("length", f"{kind}2"), [[3 * scale, 4 * scale]])
        np.testing.assert_allclose(length, [5 * scale], rtol=4 * info.eps)
        unit = call(mangle("normalize", f"{kind}2"), [[3 * scale, 4 * scale]])
        np.testing.assert_allclose(unit, [[0.6, 0.8]], rtol=4 * info.eps)


def test_normalize_of_infinite_and_undefined_vectors():
    # Section 7.5.1 of OpenCL 1.2: infinite elements count as 1 with their sign, the others as 0.
    rows = [[INF, 5.0, 0.0], [-INF, INF, 1.0], [NAN, 1.0, 1.0], [NAN, INF, 1.0]]
    actual = call(mangle("normalize", "float3"), rows)
    half = math.sqrt(0.5)
    np.testing.assert_allclose(actual[:2], [[1.0, 0.0, 0.0], [-half, half, 0.0]], rtol=1e-6)
    assert np.isnan(actual[2:]).all()


INTEGER_CALLS = """
    abs(a) abs_diff(a,b) add_sat(a,b) clz(a) hadd(a,b) mad_hi(a,b,c) mad_sat(a,b,c) max(a,b) min(a,b) mul_hi(a,b)
    popcount(a) rhadd(a,b) rotate(a,b) sub_sat(a,b) bitselect(a,b,c) select(a,b,c)
"""
FLOAT_CALLS = """
    isequal(x,y) isgreater(x,y) islessgreater(x,y) isnan(x) isnormal(x) signbit(x) isunordered(x,y)
    fmax(x,y) fmin(x,y) fmod(x,y) remainder(x,y) nextafter(x,y) rint(x) round(x) trunc(x) copysign(x,y) fdim(x,y)
    maxmag(x,y) ilogb(x) logb(x) sign(x) step(x,y) bitselect(x,y,x) fma(x,y,x) sqrt(x)
    convert_int4_sat(x) convert_uchar4_sat_rte(x) convert_short4_sat_rtp(x) convert_ulong4_sat_rtn(x)
"""


def pocl_results(calls: list[str], kind: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run vector expressions in PoCL, one work-item a row; each result as raw bytes of its elements."""
    import pyopencl as cl

    context = cl.Context([pocl_device()])
    queue = cl.CommandQueue(context)
    rows = len(next(iter(inputs.values())))
    parameters = ", ".join(f"__global const {kind}4 *in_{name}" for name in inputs)
    loads = " ".join(f"{kind}4 {name} = in_{name}[i];" for name in inputs)
    # All bits of a result, whatever its type, as 32 bytes: assigned through a union-like array.
    stores = " ".join(
        f"{{ __typeof__({text}) r = {text}; __global __typeof__({text}) *o = (__global __typeof__({text}) *)"
        f"(out + (i * {len(calls)} + {place}) * 32); *o = r; }}"
        for place, text in enumerate(calls)
    )
    source = f"__kernel void run({parameters}, __global uchar *out) {{ size_t i = get_global_id(0); {loads} {stores} }}"
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=np.ascontiguousarray(array)) for array in inputs.values()]
    results = np.zeros((rows, len(calls), 32), dtype=np.uint8)
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=results)
    cl.Program(context, source).build().run(queue, (rows,), None, *buffers, out)
    cl.enqueue_copy(queue, results, out)
    return {text: results[:, place] for place, text in enumerate(calls)}


def check_against_pocl(calls: str, kind: str, inputs: dict[str, np.ndarray]) -> None:
    """Each call, on vectors of four, gives in PoCL what it gives here."""
    texts = calls.split()
    theirs = pocl_results(texts, kind, inputs)
    names = {}
    for text in texts:
        base, letters = text.rstrip(")").split("(")
        types = [f"{kind}4"] * len(letters.split(","))
        names[text] = mangle(base, *types), [inputs[letter] for letter in letters.split(",")]
    functions = compiled([name for name, _ in names.values()])
    for text, (name, arguments) in names.items():
        ours = functions.call(name, *arguments)
        result = theirs[text][:, : 4 * ours.dtype.itemsize].copy().view(ours.dtype)
        np.testing.assert_array_equal(ours, result, err_msg=f"{text} of {kind}4")


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_builtins_agree_with_pocl(kind):
    rng = np.random.default_rng(6)
    info = np.iinfo(DTYPES[kind])
    ends = np.array([info.min, info.max, 0, 1, info.max // 2, info.min // 2, 2, 3], dtype=info.dtype)
    inputs = {name: np.append(numbers(kind, (62, 4), rng), ends.reshape(2, 4), axis=0) for name in "abc"}
    check_against_pocl(INTEGER_CALLS, kind, inputs)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_exact_float_builtins_agree_with_pocl(kind):
    rng = np.random.default_rng(7)
    special = [0.5, 1.5, 2.5, -0.5, 1.0, -1.0, 127.5, 255.5, -128.5, 1e-30, INF, -INF, NAN, 3.0, -7.0, 100.0]
    x = np.append(rng.uniform(-300, 300, (60, 4)), np.reshape(special, (4, 4)), axis=0).astype(DTYPES[kind])
    y = np.append(rng.uniform(-3, 3, (60, 4)), np.reshape(special[::-1], (4, 4)), axis=0).astype(DTYPES[kind])
    check_against_pocl(FLOAT_CALLS, kind, {"x": x, "y": y})
