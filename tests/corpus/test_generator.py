"""Generated kernels: the same for ever, all different, of every kind, and they run as any other."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest

from perfvec.arch.device import find_device
from perfvec.arch.replay import replay
from perfvec.arguments import BufferArg
from perfvec.corpus.expressions import evaluate
from perfvec.corpus.generated import build_corpus, distinct_kernels, sizes_of
from perfvec.corpus.generator import (
    GENERATOR_VERSION,
    GeneratedKernel,
    generate_kernel,
)
from perfvec.corpus.generator_access import ORDERS, PATTERNS
from perfvec.corpus.generator_stages import AbstractStage
from perfvec.corpus.generator_structure import COMMUNICATIONS
from perfvec.corpus.normal_form import normal_form
from perfvec.errors import ConfigError, MemoryAccessError
from perfvec.program.tracer import trace_launch
from tests.corpus.generated_launches import small_launches
from tests.opencl import pocl_device
from tests.program.agreement import differ
from tests.program.launching import execute, quick_machine_code

NUM_DISTINCT = 2000
# As many other kernels as asked for, from other seeds, instead of the same few at each run (see CONTRIBUTING.md).
NUM_RANDOM = int(os.environ.get("PERFVEC_RANDOM_KERNELS", "0"))
NUM_RUN, NUM_COMPARED = (NUM_RANDOM, NUM_RANDOM) if NUM_RANDOM else (60, 30)
FIRST_SEED = secrets.randbelow(1 << 48) if NUM_RANDOM else 0
# Of the sources and arguments of seeds 0 to 199. Where it changes, GENERATOR_VERSION must: stored corpora hold seeds.
DIGESTS = {1: "19d1c7bbc744da6b"}


@cache
def kernels() -> tuple[GeneratedKernel, ...]:
    return tuple(islice(distinct_kernels(0), NUM_DISTINCT))


def test_a_seed_determines_the_kernel_byte_for_byte():
    state = hashlib.sha256()
    for seed in range(200):
        kernel = generate_kernel(seed)
        state.update(kernel.source.encode())
        state.update(repr((kernel.args, kernel.sizes, kernel.macros)).encode())
    assert DIGESTS[GENERATOR_VERSION] == state.hexdigest()[:16]


def test_no_two_kernels_are_equal_after_normalisation():
    forms = Counter(normal_form(kernel.source) for kernel in kernels())
    assert len(forms) == NUM_DISTINCT
    assert kernels()[-1].seed < 1.01 * NUM_DISTINCT  # hardly any seed had to be passed over


def test_normal_form():
    form = normal_form("__kernel void k(__global float* a, int n) { if (n > 0x1f) a[get_global_id(0)] *= 2.5e-3f; }")
    same = """// another
        __kernel void other(__global float *data, int count) {
            if (count > 7) /* why */ data[get_global_id( 1 )] *= 1.0f;
        }"""
    assert form == normal_form(same)
    assert (
        form == "__kernel void $0 ( __global float * $1 , int $2 ) { if ( $2 > # ) $1 [ get_global_id ( # ) ] *= # ; }"
    )
    for before, after in (("float", "double"), ("*=", "+="), ("get_global_id", "get_local_id"), ("n >", "n >=")):
        changed = "__kernel void k(__global float* a, int n) { if (n > 0x1f) a[get_global_id(0)] *= 2.5e-3f; }"
        assert normal_form(changed.replace(before, after, 1)) != form
    assert normal_form("a.x + b") != normal_form("a.y + b")
    assert normal_form("a + a") != normal_form("a + b")


def test_every_part_of_the_grammar_occurs():
    structures = [kernel.structure for kernel in kernels()]
    stages = {type(stage).__name__ for structure in structures for stage in structure.stages}
    assert stages == {stage.__name__ for stage in AbstractStage.__subclasses__()}
    assert len(stages) == 17
    assert {structure.dims for structure in structures} == {1, 2, 3}
    assert {structure.traversal for structure in structures} == {"item", "coarse", "grid", "group"}
    trips = {trip.kind for structure in structures for stage in structure.stages for trip in stage.trips}
    assert trips == {"literal", "macro", "argument", "data", "lane"}
    accesses = [getattr(stage, "accesses", ()) for structure in structures for stage in structure.stages]
    assert {access.pattern for group in accesses for access in group} == set(PATTERNS)
    sources = "\n".join(kernel.source for kernel in kernels())
    for word in (
        "float4", "double", "long", "ulong2", "uint16", "vload_half(", "vstore_half", "vload4(", "convert_float4(",
        "convert_uchar_sat(", "sin(", "native_exp(", "pow(", "rsqrt(", " / (", " % (", "mul_hi(", "popcount(",
        "atomic_add(&cells", "atomic_inc(&held", "atomic_cmpxchg(", "barrier(", "__constant", "__local float4*",
        "#pragma unroll", "get_num_groups(", "restrict",
    ):  # fmt: skip
        assert word in sources, word


def test_families():
    families = Counter(kernel.family for kernel in kernels())
    assert len(families) >= 60
    assert max(families.values()) < 0.15 * NUM_DISTINCT
    parts = [set(part) for part in zip(*(family.split("/") for family in families), strict=True)]
    assert parts == [set(COMMUNICATIONS), set(ORDERS), {"straight", "constant", "argument", "data"}]
    for kernel in kernels():
        has_barrier = "barrier(" in kernel.source
        assert has_barrier == kernel.structure.needs_group
        if kernel.family.startswith(("tile", "reduce")):
            assert has_barrier
        if kernel.family.startswith("none"):
            assert not has_barrier
            assert "atomic_" not in kernel.source
        assert kernel.family.startswith("atomic") == ("atomic_" in kernel.source)


def test_half_of_the_kernels_are_tied_to_the_global_size():
    tied = [kernel for kernel in kernels() if kernel.structure.is_size_tied]
    assert len(tied) == pytest.approx(NUM_DISTINCT / 2, rel=0.05)
    for kernel in kernels():
        sizes = {size.kind for size in kernel.sizes}
        assert kernel.structure.is_size_tied == (not sizes & {"argument", "elements"})


def test_operations_a_byte_go_from_hundredths_to_thousands():
    """Over the whole range that is asked for, 0.01 to 1,000, and well spread inside it."""
    corpus = build_corpus(600, [find_device("nvidia-h200")], launches_per_kernel=1)
    intensities = []
    for recipe in corpus.recipes:
        kernel = generate_kernel(corpus.kernel_seeds[recipe.kernel])
        names = kernel.names(recipe.ndrange.global_size, recipe.ndrange.local_size, sizes_of(kernel, recipe.sizes))
        times = [(max(1.0, evaluate(cost.times, names)), cost) for cost in kernel.costs]
        num_bytes = sum(count * cost.num_bytes for count, cost in times)
        intensities.append(sum(count * cost.arithmetic for count, cost in times) / num_bytes)
    decades = Counter(math.floor(math.log10(value)) for value in intensities if value)
    assert all(decades[decade] >= 3 for decade in range(-2, 4)), decades
    assert sum(1 for value in intensities if value < 1) > 0.15 * len(intensities)
    assert sum(1 for value in intensities if value > 30) > 0.15 * len(intensities)


# ---- running ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("front_end")
def test_launches_run_without_error():
    with quick_machine_code():
        for _, entry in islice(small_launches(FIRST_SEED), NUM_RUN):
            buffers = execute(entry.launch)
            assert len(buffers) >= 1, entry.name


@pytest.mark.usefixtures("front_end")
def test_shorter_buffers_are_overrun():
    """The checks do see the accesses: with half of its results' buffer, most kernels leave it."""
    overruns, count = 0, 20
    with quick_machine_code():
        for _, entry in islice(small_launches(), count):
            last = max(at for at, arg in enumerate(entry.launch.args) if isinstance(arg, BufferArg))
            args = list(entry.launch.args)
            args[last] = replace(args[last], count=max(1, args[last].count // 2))
            try:
                execute(replace(entry.launch, args=tuple(args)))
            except MemoryAccessError:
                overruns += 1
    assert overruns > 0.7 * count


@pytest.mark.usefixtures("front_end")
def test_launches_for_a_large_device_can_be_traced():
    corpus = build_corpus(12, [find_device("nvidia-h200")], launches_per_kernel=1, seed=5)
    for entry in corpus.entries():
        trace = trace_launch(entry.launch)
        assert trace.token_weight.sum() > 0, entry.name


def test_results_are_those_of_pocl(confirm: Callable[..., None]):
    device = pocl_device()
    exact = ((k, e) for k, e in small_launches(FIRST_SEED + 10_000) if k.is_integer and k.is_deterministic)
    changed = 0
    for _, entry in islice(exact, NUM_COMPARED):
        with quick_machine_code():
            ours = execute(entry.launch)
        assert not differ(entry.launch, ours, dict(replay(entry.launch, device).outputs)), entry.name
        changed += any(values.any() for values in list(ours.values())[-1:])
    assert changed > 0.8 * NUM_COMPARED  # they compute something
    confirm("generated kernels of integers give the results of PoCL", NUM_COMPARED)


def test_a_missing_size_is_named():
    kernel = next(kernel for kernel in kernels() if [size.kind for size in kernel.sizes] == ["argument"])
    with pytest.raises(ConfigError, match="unknown name 'm'"):
        kernel.launch((64,) * kernel.structure.dims, (1,) * kernel.structure.dims, {})
