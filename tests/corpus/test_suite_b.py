"""The suites sorting, graph, nbody, spectral and dynamic: every kernel against a reference in NumPy or plain Python.

A reference is a function with the kernel's name. It gets the kernel's arguments as they are before the launch
(buffers as arrays of scalars), the build options by name and the launch itself, and returns what the buffers hold
afterwards, by position. Buffers that it does not name are not compared.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
import warnings
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from perfvec.arguments import BufferArg
from perfvec.corpus.suite import load_suite
from tests.opencl import pocl_device

TRACES = Path(__file__).parents[2] / "traces"
SUITES = ("sorting", "graph", "nbody", "spectral", "dynamic")
ENTRIES = [entry for suite in SUITES for entry in load_suite(TRACES / suite / "suite.toml")]
KERNELS = sorted({(entry.suite, entry.kernel) for entry in ENTRIES})

# float32 sums in another order and built-ins within a few units in the last place; relative to the largest value.
DEFAULT_TOLERANCE = 1e-5
TOLERANCES = {
    # kernel: (tolerance, reason)
    "gravity_arrays": (1e-3, "native_rsqrt has an error that the implementation chooses"),
    "tree_walk": (1e-3, "a node at the opening distance may be opened or not"),
    "cells_naive": (1e-4, "sums of a few hundred terms"),
    "cells_local": (1e-4, "sums of a few hundred terms"),
    "structure_factor": (1e-3, "native sines; long sums"),
    "kepler_orbits": (2e-3, "rounding grows along the orbit"),
    "spring_chain": (1e-4, "rounding grows over the steps"),
    "fft2_stage": (1e-4, "native sines"),
    "fft4_stage": (1e-4, "native sines"),
    "fft2_local": (1e-4, "native sines"),
    "fft4_local": (1e-4, "native sines"),
    "fft2_group": (1e-4, "native sines"),
    "dft_tiled": (1e-4, "native sines"),
    "dft_phasor": (1e-4, "the phase drifts"),
    "goertzel": (1e-3, "an unstable recurrence"),
    "short_time": (1e-4, "squares of sums"),
    "clenshaw": (1e-4, "a recurrence"),
    "poisson_divide": (1e-4, "the eigenvalue is a difference of close numbers"),
    "charge_spread": (2e-3, "each of the additions truncates to a whole number"),
    "angle_energies": (1e-3, "an arc cosine near one"),
    "radial_histogram": (5e-3, "a distance at the edge of a bin may fall on either side"),
    "bonds_scatter": (1e-4, "each of the additions truncates to a whole number"),
}

REFERENCES = {}


def reference(function):
    REFERENCES[function.__name__] = function
    return function


# ---- harness ----------------------------------------------------------------------------------------------------


def smallest_launches():
    by_variant = {}
    for entry in ENTRIES:
        by_variant.setdefault((entry.suite, entry.kernel, entry.variant), []).append(entry)
    return [min(group, key=lambda e: (e.launch.buffer_bytes, e.launch.num_work_items)) for group in by_variant.values()]


@pytest.fixture(scope="module")
def queue():
    device = pocl_device()
    import pyopencl as cl

    return cl.CommandQueue(cl.Context([device]))


def run(launch, queue):
    """Run a launch once and return its buffers afterwards, by position."""
    import pyopencl as cl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compiler chatter
        program = cl.Program(queue.context, launch.source).build(list(launch.build_options))
    kernel = cl.Kernel(program, launch.kernel_name)
    arrays = [arg.array() for arg in launch.args]
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = {
        i: cl.Buffer(queue.context, flags, hostbuf=array)
        for i, (arg, array) in enumerate(zip(launch.args, arrays, strict=True))
        if isinstance(arg, BufferArg)
    }
    kernel.set_args(*(buffers.get(i, array[0]) for i, array in enumerate(arrays)))
    cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size)
    for i, buffer in buffers.items():
        cl.enqueue_copy(queue, arrays[i], buffer)
    queue.finish()
    return {i: arrays[i] for i in buffers}


def expected_buffers(entry):
    launch = entry.launch
    arguments = []
    for arg in launch.args:
        value = arg.array()
        if isinstance(arg, BufferArg):
            arguments.append(value)
        else:
            arguments.append(int(value[0]) if value.dtype.kind in "iu" else value[0])
    defines = dict(option.removeprefix("-D").split("=") for option in launch.build_options)
    return REFERENCES[entry.kernel](*arguments, launch=launch, **{key: int(value) for key, value in defines.items()})


def assert_close(actual, expected, kernel, position):
    expected = np.asarray(expected)
    assert actual.shape == expected.ravel().shape, f"argument {position}"
    if kernel not in TOLERANCES and actual.dtype.kind in "iu":
        np.testing.assert_array_equal(actual, expected.ravel().astype(actual.dtype), f"argument {position}")
        return
    tolerance, _ = TOLERANCES.get(kernel, (DEFAULT_TOLERANCE, ""))
    scale = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0))
    assert scale > 0, "a reference of zeros proves nothing"
    np.testing.assert_allclose(actual, expected.ravel(), rtol=0, atol=tolerance * scale, err_msg=f"argument {position}")


@pytest.mark.parametrize("entry", smallest_launches(), ids=lambda e: f"{e.suite}/{e.kernel}/{e.variant or '-'}")
def test_smallest_launch_computes_what_its_reference_does(entry, queue):
    actual = run(entry.launch, queue)
    expected = expected_buffers(entry)
    assert expected
    if entry.kernel in CANONICAL:
        actual, expected = CANONICAL[entry.kernel](actual), CANONICAL[entry.kernel](expected)
    for position, values in expected.items():
        assert_close(actual[position], values, entry.kernel, position)


@pytest.mark.parametrize(("suite", "kernel"), KERNELS)
def test_kernel_has_a_reference_and_six_launches(suite, kernel):
    assert kernel in REFERENCES
    assert sum(entry.suite == suite and entry.kernel == kernel for entry in ENTRIES) >= 6


@pytest.mark.parametrize("suite", SUITES)
def test_suite_has_families_and_work_not_tied_to_its_size(suite):
    entries = [entry for entry in ENTRIES if entry.suite == suite]
    assert len({entry.family for entry in entries}) >= 5
    assert any(not entry.is_size_tied for entry in entries)


def test_launches_keep_to_portable_limits():
    for entry in ENTRIES:
        assert np.prod(entry.launch.local_size) <= 256, entry.name
        assert entry.launch.buffer_bytes <= 512 << 20, entry.name


# ---- sorting ----------------------------------------------------------------------------------------------------


def compare_exchange(keys, stride, block):
    low = np.arange(len(keys)).reshape(-1, 2, stride)[:, 0].ravel()
    a, b = keys[low], keys[low + stride]
    is_rising = (low & block) == 0
    keys[low] = np.where(is_rising, np.minimum(a, b), np.maximum(a, b))
    keys[low + stride] = np.where(is_rising, np.maximum(a, b), np.minimum(a, b))
    return keys


def sort_tiles(keys, tile):
    return np.concatenate([np.sort(keys[i : i + tile]) for i in range(0, len(keys), tile)])


@reference
def bitonic_step(keys, stride, block, **_):
    return {0: compare_exchange(keys, stride, block)}


@reference
def bitonic_step4(keys, stride, block, **_):
    vectors = keys.reshape(-1, 4)
    for component in range(4):
        vectors[:, component] = compare_exchange(vectors[:, component].copy(), stride, block)
    return {0: keys}


@reference
def bitonic_local(keys, n, *, TILE, **_):
    return {0: sort_tiles(keys, TILE)}


@reference
def odd_even_step(keys, n, phase, **_):
    end = n - (n - phase) % 2
    pairs = np.sort(keys[phase:end].reshape(-1, 2), axis=1).ravel()
    return {0: np.concatenate([keys[:phase], pairs, keys[end:]])}


@reference
def odd_even_local(keys, out, n, *, TILE, **_):
    return {1: sort_tiles(keys, TILE)}


@reference
def radix_histogram(keys, counts, n, shift, *, BITS, launch, **_):
    digits = keys >> np.uint32(shift) & np.uint32((1 << BITS) - 1)
    groups = np.arange(n) // launch.local_size[0] % launch.num_groups[0]
    table = np.zeros((1 << BITS, launch.num_groups[0]), np.uint32)
    np.add.at(table, (digits, groups), 1)
    return {1: table}


@reference
def radix_split_tile(keys, n, shift, *, BITS, **_):
    tiles = [keys[i : i + 256] for i in range(0, n, 256)]
    mask = np.uint32((1 << BITS) - 1)
    return {0: np.concatenate([t[np.argsort(t >> np.uint32(shift) & mask, kind="stable")] for t in tiles])}


@reference
def radix_scatter(keys, bases, out, shift, *, BITS, **_):
    return {2: keys[np.argsort(keys >> np.uint32(shift) & np.uint32((1 << BITS) - 1), kind="stable")]}


@reference
def radix_scatter_count(keys, bases, out, shift, *, BITS, **_):
    return radix_scatter(keys, bases, out, shift, BITS=BITS)


@reference
def bucket_scatter(keys, cursors, buckets, n, shift, capacity, **_):
    of_key = keys >> np.uint32(shift)
    counts = np.bincount(of_key, minlength=len(cursors))
    assert counts.max() <= capacity
    rows = buckets.reshape(-1, capacity)
    for b, row in enumerate(rows):
        row[: counts[b]] = keys[of_key == b]
    return {1: counts, 2: rows.ravel()}


@reference
def sample_classify(keys, splitters, out, counts, n, **_):
    buckets = np.searchsorted(splitters, keys, side="right")
    return {2: buckets, 3: np.bincount(buckets, minlength=len(counts))}


@reference
def rank_naive(keys, out, n, **_):
    return {1: np.sort(keys)}


@reference
def rank_tiled(keys, out, n, **_):
    return {1: np.sort(keys)}


@reference
def rank_vector(keys, out, num_vectors, **_):
    return {1: np.sort(keys)}


@reference
def merge_path(a, b, out, num_a, num_b, **_):
    return {2: np.sort(np.concatenate([a, b]))}


@reference
def merge_ranks(a, b, out, num_a, num_b, **_):
    return {2: np.sort(np.concatenate([a, b]))}


@reference
def insertion_private(keys, num_sorts, *, LENGTH, **_):
    return {0: np.sort(keys.reshape(-1, LENGTH), axis=1)}


@reference
def insertion_strided(keys, num_sorts, *, LENGTH, **_):
    return {0: np.sort(keys.reshape(LENGTH, -1), axis=0)}


@reference
def network_sort8(keys, num_sorts, **_):
    return {0: np.sort(keys.reshape(-1, 8), axis=1)}


@reference
def shell_segments(keys, num_sorts, length, **_):
    return {0: np.sort(keys.reshape(length, -1), axis=0)}


@reference
def heap_sort(keys, length, **_):
    return {0: np.sort(keys.reshape(-1, length), axis=1)}


@reference
def counting_sort_group(keys, out, n, **_):
    return {1: np.sort(keys)}


@reference
def partition_tile(keys, out, low_counts, n, pivot, *, PER_ITEM, **_):
    tiles = [keys[i : i + 128 * PER_ITEM] for i in range(0, n, 128 * PER_ITEM)]
    parted = np.concatenate([np.concatenate([t[t < pivot], t[t >= pivot]]) for t in tiles])
    return {1: parted, 2: [np.count_nonzero(t < pivot) for t in tiles]}


@reference
def lower_bound(table, queries, out, n, num_queries, **_):
    return {2: np.searchsorted(table, queries)}


@reference
def lower_bound_stride(table, queries, out, n, num_queries, **_):
    return {2: np.searchsorted(table, queries)}


# ---- graph ------------------------------------------------------------------------------------------------------


def owners(offsets):
    """The row of each edge."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


@reference
def bfs_top_down(offsets, targets, levels, is_changed, num_vertices, depth, **_):
    reached = targets[levels[owners(offsets)] == depth]
    new = np.unique(reached[levels[reached] < 0])
    levels[new] = depth + 1
    return {2: levels, 3: [len(new) > 0]}


@reference
def bfs_team(*args, **_):
    return bfs_top_down(*args)


@reference
def bfs_bottom_up(offsets, sources, levels, frontier, out, num_vertices, mask, depth, **_):
    bits = np.unpackbits((frontier & np.uint32(mask)).view(np.uint8), bitorder="little")
    touches = np.zeros(num_vertices, bool)
    np.logical_or.at(touches, owners(offsets), bits[sources] == 1)
    return {4: np.where((levels < 0) & touches, depth + 1, levels)}


@reference
def bfs_queue(offsets, targets, queue, levels, next_queue, next_size, queue_size, depth, **_):
    reached = np.concatenate([targets[offsets[v] : offsets[v + 1]] for v in queue[:queue_size]])
    new = np.unique(reached[levels[reached] == -1])
    levels[new] = depth + 1
    next_queue[: len(new)] = new
    return {3: levels, 4: next_queue, 5: [len(new)]}


@reference
def bfs_group(offsets, targets, levels, num_vertices, source, **_):
    levels[source] = 0
    frontier = [source]
    for depth in itertools.count(1):
        reached = {int(w) for v in frontier for w in targets[offsets[v] : offsets[v + 1]]}
        frontier = [w for w in reached if levels[w] < 0]
        levels[frontier] = depth
        if not frontier:
            return {2: levels}
    return None


@reference
def bfs_many_pull(offsets, sources, reached, out, num_vertices, **_):
    gathered = reached.copy()
    np.bitwise_or.at(gathered, owners(offsets), reached[sources])
    return {3: gathered}


@reference
def pagerank_pull(offsets, sources, shares, out, num_vertices, damping, **_):
    sums = np.bincount(owners(offsets), shares[sources].astype(float), minlength=num_vertices)
    return {3: (1 - damping) / num_vertices + damping * sums}


@reference
def pagerank_group(*args, **_):
    return pagerank_pull(*args)


@reference
def pagerank_push(offsets, targets, ranks, sums, num_vertices, **_):
    shares = ranks / np.maximum(np.diff(offsets), 1)
    return {3: np.bincount(targets, shares[owners(offsets)], minlength=num_vertices)}


@reference
def pagerank_push_fixed(offsets, targets, ranks, sums, num_vertices, **_):
    shares = ranks // np.maximum(np.diff(offsets), 1)
    np.add.at(sums, targets, shares[owners(offsets)].astype(np.uint32))
    return {3: sums}


@reference
def sssp_pull(offsets, sources, weights, distances, out, num_vertices, **_):
    best = distances.copy()
    np.minimum.at(best, owners(offsets), distances[sources] + weights)
    return {4: best}


@reference
def sssp_push(offsets, targets, weights, distances, out, num_vertices, threshold, **_):
    edge_distances = distances[owners(offsets)]
    near = edge_distances < threshold
    np.minimum.at(out, targets[near], (edge_distances + weights)[near])
    return {4: out}


@reference
def sssp_edges(edges, weights, distances, out, num_edges, **_):
    np.minimum.at(out, edges[1::2], distances[edges[::2]] + weights)
    return {3: out}


@reference
def components_hook(ends_a, ends_b, labels, out, num_edges, **_):
    a, b = labels[ends_a], labels[ends_b]
    np.minimum.at(out, np.maximum(a, b), np.minimum(a, b))
    return {3: out}


@reference
def components_jump(parents, roots, num_vertices, max_hops, **_):
    at = parents.copy()
    for _hop in range(max_hops):
        at = parents[at]
    return {1: at}


@reference
def components_propagate(offsets, targets, labels, out, num_changed, num_vertices, **_):
    least = labels.copy()
    np.minimum.at(least, owners(offsets), labels[targets])
    return {3: least, 4: [np.count_nonzero(least < labels)]}


@reference
def list_rank(following, ranks, new_following, new_ranks, n, **_):
    return {2: following[following], 3: ranks + ranks[following]}


@reference
def triangles_merge(jitter, ends_a, ends_b, counts, num_edges, spacing, *, DEGREE, **_):
    rows = jitter.reshape(-1, DEGREE).astype(int) + spacing * np.arange(DEGREE)
    return {3: [np.intersect1d(rows[a], rows[b]).size for a, b in zip(ends_a, ends_b, strict=True)]}


@reference
def triangles_search(*args, DEGREE, **_):
    return triangles_merge(*args, DEGREE=DEGREE)


@reference
def triangles_bitmap(rows, ends_a, ends_b, counts, num_edges, num_words, **_):
    rows = rows.reshape(-1, 4 * num_words)
    return {3: np.bitwise_count(rows[ends_a] & rows[ends_b]).sum(axis=1)}


@reference
def colour_step(offsets, targets, priorities, colours, out, num_vertices, **_):
    out[:] = colours
    for v in np.flatnonzero(colours < 0):
        around = targets[offsets[v] : offsets[v + 1]]
        rivals = around[(colours[around] < 0) & (around != v)]
        used = set(colours[around].tolist())
        if not (priorities[rivals] >= priorities[v]).any():
            out[v] = next(c for c in itertools.count() if c not in used)
    return {4: out}


@reference
def independent_set_step(offsets, targets, keys, states, out, num_vertices, **_):
    out[:] = states
    for v in np.flatnonzero(states == 0):
        state = 1
        for w in targets[offsets[v] : offsets[v + 1]]:
            if states[w] == 1:
                state = 2
            elif w != v and states[w] == 0 and keys[w] <= keys[v]:
                state = 0
            if state != 1:
                break
        out[v] = state
    return {4: out}


@reference
def core_peel(offsets, targets, degrees, out, num_vertices, k, **_):
    hit = targets[degrees[owners(offsets)] < k]
    np.subtract.at(out, hit[degrees[hit] >= k], 1)
    return {3: out}


@reference
def label_majority(offsets, targets, labels, out, num_vertices, **_):
    out[:] = labels
    for v in range(num_vertices):
        around = labels[targets[offsets[v] : offsets[v + 1]][:32]]
        if around.size:
            votes = Counter(around.tolist())
            out[v] = min(label for label, count in votes.items() if count == max(votes.values()))
    return {3: out}


@reference
def boruvka_lightest(offsets, targets, weights, components, lightest, num_vertices, **_):
    own = components[owners(offsets)]
    crosses = components[targets] != own
    np.minimum.at(lightest, own[crosses], weights[crosses])
    return {4: lightest}


@reference
def degree_count(targets, degrees, num_edges, **_):
    return {1: np.bincount(targets, minlength=len(degrees))}


@reference
def random_walk(offsets, targets, ends, num_vertices, num_steps, **_):
    for walker in range(len(ends)):
        state = (walker * 747796405 + 2891336453) % 2**32
        v = walker % num_vertices
        for _step in range(num_steps):
            degree = int(offsets[v + 1] - offsets[v])
            state = (state * 1664525 + 1013904223) % 2**32
            if degree:
                v = targets[offsets[v] + (state >> 8) % degree]
        ends[walker] = v
    return {2: ends}


# ---- nbody ------------------------------------------------------------------------------------------------------


def gravity(bodies, softening):
    apart = bodies[None, :, :3] - bodies[:, None, :3]
    squared = (apart**2).sum(axis=2) + softening
    return (apart * (bodies[None, :, 3] / squared**1.5)[:, :, None]).sum(axis=1)


def with_w(vectors, w=0.0):
    return np.column_stack([vectors, np.broadcast_to(w, len(vectors))])


def nearest_image(apart, box):
    return apart - box * np.rint(apart / box)


@reference
def gravity_naive(bodies, out, n, softening, **_):
    return {1: with_w(gravity(bodies.reshape(-1, 4).astype(float), softening))}


@reference
def gravity_tiled(*args, **_):
    return gravity_naive(*args)


@reference
def gravity_coarse(*args, **_):
    return gravity_naive(*args)


@reference
def gravity_fp64(*args, **_):
    return gravity_naive(*args)


@reference
def gravity_arrays(x, y, z, mass, ax, ay, az, n, softening, **_):
    forces = gravity(np.column_stack([x, y, z, mass]).astype(float), softening)
    return {4: forces[:, 0], 5: forces[:, 1], 6: forces[:, 2]}


@reference
def gravity_stride(bodies, out, n, softening, **_):
    bodies = bodies.reshape(-1, 4).astype(float)
    squared = ((bodies[None, :, :3] - bodies[:, None, :3]) ** 2).sum(axis=2) + softening
    return {1: -(bodies[:, 3] / np.sqrt(squared)).sum(axis=1)}


@reference
def leapfrog(positions, velocities, accelerations, n, step, **_):
    velocities = velocities + accelerations * step
    return {0: positions + velocities * step, 1: velocities}


@reference
def leapfrog_fp64(*args, **_):
    return leapfrog(*args)


def lennard_jones(here, there, box, cutoff2):
    """Force and energy of each pair."""
    apart = nearest_image(here - there, box)[..., :3]
    squared = (apart**2).sum(axis=-1)
    inverse6 = np.maximum(squared, 0.5) ** -3.0
    strength = 24 * inverse6 * (2 * inverse6 - 1) / np.maximum(squared, 0.5)
    terms = np.concatenate([apart * strength[..., None], (4 * inverse6 * (inverse6 - 1))[..., None]], axis=-1)
    return np.where((squared < cutoff2)[..., None], terms, 0.0)


@reference
def lj_transposed(positions, neighbours, out, n, num_neighbours, box, cutoff2, **_):
    positions = positions.reshape(-1, 4).astype(float)
    lists = neighbours.reshape(num_neighbours, n)
    return {2: lennard_jones(positions[None], positions[lists], box, cutoff2).sum(axis=0)}


@reference
def lj_rows(positions, offsets, neighbours, out, n, box, cutoff2, **_):
    positions = positions.reshape(-1, 4).astype(float)
    rows = owners(offsets)
    forces = np.zeros((n, 4))
    np.add.at(forces, rows, lennard_jones(positions[rows], positions[neighbours], box, cutoff2))
    return {3: forces}


@reference
def lj_team(*args, **_):
    return lj_rows(*args)


@reference
def cells_naive(atoms, counts, out, side, *, CAPACITY, **_):
    atoms = atoms.reshape(side, side, side, CAPACITY, 4).astype(float)
    counts = counts.reshape(side, side, side)
    forces = np.zeros_like(atoms)
    for z, y, x in np.ndindex(side, side, side):
        here = atoms[z, y, x, : counts[z, y, x]]
        for dz, dy, dx in itertools.product((-1, 0, 1), repeat=3):
            other = (z + dz) % side, (y + dy) % side, (x + dx) % side
            there = atoms[other][: counts[other]]
            apart = here[:, None, :3] - there[None, :, :3] - (dx, dy, dz)
            reach = np.maximum(1 - np.sqrt((apart**2).sum(axis=2)), 0)
            terms = with_w((apart * (reach * there[:, 3])[:, :, None]).reshape(-1, 3), (reach**2).ravel())
            forces[z, y, x, : len(here)] += terms.reshape(*reach.shape, 4).sum(axis=1)
    return {2: forces}


@reference
def cells_local(*args, CAPACITY, **_):
    return cells_naive(*args, CAPACITY=CAPACITY)


@reference
def potential_grid(atoms, out, num_atoms, width, spacing, height, **_):
    atoms = atoms.reshape(-1, 4).astype(float)
    rows, columns = np.divmod(np.arange(len(out)), width)
    points = np.column_stack([columns * spacing, rows * spacing, np.full(len(out), height)])
    squared = ((points[:, None] - atoms[None, :, :3]) ** 2).sum(axis=2) + 0.01
    return {1: (atoms[:, 3] / np.sqrt(squared)).sum(axis=1)}


@reference
def potential_coarse(*args, **_):
    return potential_grid(*args)


def corners(atoms, side):
    """Index and weight of the eight grid points around each atom."""
    low = atoms[:, :3].astype(int)
    part = atoms[:, :3] - low
    for corner in itertools.product((0, 1), repeat=3):
        x, y, z = ((low + corner) % side).T
        yield (z * side + y) * side + x, np.where(corner, part, 1 - part).prod(axis=1)


@reference
def charge_spread(atoms, grid, num_atoms, side, **_):
    atoms = atoms.reshape(-1, 4)
    for points, weights in corners(atoms, side):
        np.add.at(grid, points, (weights * atoms[:, 3] * 1024).astype(np.int32))
    return {1: grid}


@reference
def field_gather(atoms, field, out, num_atoms, side, **_):
    atoms = atoms.reshape(-1, 4).astype(float)
    field = field.reshape(-1, 4)
    return {2: atoms[:, 3:] * sum(weights[:, None] * field[points] for points, weights in corners(atoms, side))}


@reference
def structure_factor(atoms, waves, out, num_atoms, num_waves, **_):
    atoms = atoms.reshape(-1, 4).astype(float)
    phases = waves.reshape(-1, 4)[:, :3] @ atoms[:, :3].T
    return {2: np.column_stack([np.cos(phases) @ atoms[:, 3], np.sin(phases) @ atoms[:, 3]])}


@reference
def verlet_wrap(now, before, forces, inverse_masses, n, step2, box, **_):
    following = 2 * now - before + forces * np.tile(inverse_masses, 3) * step2
    wrap = np.floor(following / box) * box
    return {0: following - wrap, 1: now - wrap}


@reference
def kepler_orbits(starts, ends, num_steps, step, **_):
    x, y, u, v = starts.reshape(-1, 4).astype(float).T + np.array([[1.0], [0.0], [0.0], [1.0]])
    for _step in range(num_steps):
        strength = -step / (x * x + y * y) ** 1.5
        u = u + x * strength
        v = v + y * strength
        x = x + u * step
        y = y + v * step
    return {1: np.column_stack([x, y, u, v])}


@reference
def spring_chain(displacements, velocities, n, num_steps, stiffness, **_):
    at, speed = displacements.astype(float), velocities.astype(float)
    for _step in range(num_steps):
        padded = np.pad(at, 1)
        speed = speed + stiffness * (padded[:-2] + padded[2:] - 2 * at)
        at = at + speed
    return {0: at, 1: speed}


def bond_pull(here, there, length, stiffness):
    apart = (there - here)[..., :3]
    r = np.sqrt((apart**2).sum(axis=-1, keepdims=True) + 1e-6)
    return apart * stiffness * (r - length) / r


@reference
def bonds_scatter(positions, bonds, forces, num_bonds, length, stiffness, **_):
    positions = positions.reshape(-1, 4).astype(float)
    a, b = bonds.reshape(-1, 2).T
    pulls = (bond_pull(positions[a], positions[b], length, stiffness) * 4096).astype(np.int32)
    totals = forces.reshape(-1, 3)
    np.add.at(totals, a, pulls)
    np.subtract.at(totals, b, pulls)
    return {2: totals}


@reference
def bonds_gather(positions, partners, out, n, length, stiffness, **_):
    positions = positions.reshape(-1, 4).astype(float)
    there = positions[partners.reshape(-1, 4)]
    return {2: with_w(bond_pull(positions[:, None], there, length, stiffness).sum(axis=1))}


@reference
def angle_energies(positions, triples, out, num_angles, rest, **_):
    left, middle, right = positions.reshape(-1, 4)[triples.reshape(-1, 3), :3].astype(float).transpose(1, 0, 2)
    left, right = left - middle, right - middle
    sizes = np.sqrt(((left**2).sum(axis=1) + 1e-6) * ((right**2).sum(axis=1) + 1e-6))
    angles = np.arccos(np.clip((left * right).sum(axis=1) / sizes, -1, 1))
    return {2: (angles - rest) ** 2}


@reference
def tree_walk(bodies, nodes, out, n, num_nodes, opening2, softening, **_):
    bodies, nodes = bodies.reshape(-1, 4), nodes.reshape(-1, 4)
    sums = np.zeros((n, 4))

    def visit(node, size2, who):
        apart = nodes[node, :3] - bodies[who, :3]
        squared = (apart**2).sum(axis=1) + softening
        is_open = (size2 > opening2 * squared) & (2 * node + 2 < num_nodes)
        strength = nodes[node, 3] * size2 / squared**1.5
        sums[who[~is_open]] += with_w(apart * strength[:, None], 1.0)[~is_open]
        if is_open.any():
            visit(2 * node + 1, size2 * 0.63, who[is_open])
            visit(2 * node + 2, size2 * 0.63, who[is_open])

    visit(0, 1.0, np.arange(n))
    return {2: sums}


@reference
def radial_histogram(atoms, histogram, n, box, *, BINS, **_):
    atoms = atoms.reshape(-1, 4)[:, :3]
    r = np.sqrt((nearest_image(atoms[None] - atoms[:, None], box) ** 2).sum(axis=2))
    bins = (r * np.float32(BINS / box)).astype(int)
    return {1: np.bincount(bins[bins < BINS], minlength=BINS)}


@reference
def contact_count(x, y, z, candidates, out, n, num_candidates, cutoff2, **_):
    j = candidates.reshape(num_candidates, n)
    squared = (x[j] - x) ** 2 + (y[j] - y) ** 2 + (z[j] - z) ** 2
    return {4: (squared < cutoff2).sum(axis=0)}


@reference
def particle_density(particles, offsets, neighbours, out, n, reach, **_):
    particles = particles.reshape(-1, 4).astype(float)
    rows = owners(offsets)
    q = 2 * np.sqrt(((particles[rows, :3] - particles[neighbours, :3]) ** 2).sum(axis=1)) / reach
    spline = np.where(q < 1, 1 - 1.5 * q**2 + 0.75 * q**3, 0.25 * np.maximum(2 - q, 0) ** 3)
    return {3: np.bincount(rows, spline * particles[neighbours, 3], minlength=n)}


# ---- spectral ---------------------------------------------------------------------------------------------------


def as_complex(values):
    return values[::2] + 1j * values[1::2]


def as_pairs(values):
    return np.column_stack([np.real(values).ravel(), np.imag(values).ravel()])


def stockham(values, radix, done, table=None):
    """One stage: `values` holds transforms of length `done`, afterwards of length `radix * done`."""
    parts = values.reshape(radix, -1)
    i = np.arange(parts.shape[1])
    k = i % done
    order = np.arange(radix)
    if table is None:
        parts = parts * np.exp(-2j * np.pi * order[:, None] * k / (radix * done))
    else:
        parts = np.stack([parts[0], parts[1] * table[k * (len(i) // done)]])
    mixed = np.exp(-2j * np.pi * np.outer(order, order) / radix) @ parts
    out = np.empty_like(mixed, shape=values.shape)
    for row in range(radix):
        out[(i - k) * radix + k + row * done] = mixed[row]
    return out


@reference
def fft2_stage(values, out, half_n, done, **_):
    return {1: as_pairs(stockham(as_complex(values), 2, done))}


@reference
def fft2_stage_fp64(*args, **_):
    return fft2_stage(*args)


@reference
def fft2_stage_table(values, twiddles, out, half_n, done, **_):
    return {2: as_pairs(stockham(as_complex(values), 2, done, as_complex(twiddles)))}


@reference
def fft4_stage(values, out, quarter_n, done, **_):
    return {1: as_pairs(stockham(as_complex(values), 4, done))}


@reference
def fft2_local(values, out, *, SIZE, **_):
    return {1: as_pairs(np.fft.fft(as_complex(values).reshape(-1, SIZE), axis=1))}


@reference
def fft4_local(*args, SIZE, **_):
    return fft2_local(*args, SIZE=SIZE)


@reference
def fft8_registers(values, num_transforms, **_):
    return {0: as_pairs(np.fft.fft(as_complex(values).reshape(8, -1), axis=0))}


@reference
def fft2_group(a, b, n, **_):
    is_in_b = (n.bit_length() - 1) % 2
    return {is_in_b: as_pairs(np.fft.fft(as_complex(a)))}


@reference
def dft_naive(signal, out, n, **_):
    return {1: as_pairs(np.fft.fft(signal))}


@reference
def dft_phasor(*args, **_):
    return dft_naive(*args)


@reference
def dft_tiled(signal, out, n, **_):
    return {1: as_pairs(np.fft.fft(as_complex(signal)))}


@reference
def goertzel(samples, out, num_samples, num_channels, frequency_step, **_):
    frequencies = frequency_step * np.arange(1, len(out) // num_channels + 1)
    phases = np.exp(-1j * np.outer(frequencies, np.arange(num_samples)))
    return {1: np.abs(phases @ samples.reshape(num_samples, num_channels)) ** 2}


@reference
def short_time(samples, out, hop, **_):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)
    frames = np.stack([samples[i * hop : i * hop + 256] for i in range(len(out) // 128)])
    return {1: np.abs(np.fft.fft(frames * window, axis=1)[:, :128]) ** 2}


@reference
def clenshaw(points, coefficients, out, n, num_terms, **_):
    return {2: np.polynomial.chebyshev.chebval(points.astype(float), coefficients.astype(float))}


@reference
def autocorrelation(signal, out, n, **_):
    signal = signal.astype(float)
    return {1: [signal[: n - lag] @ signal[lag:] for lag in range(len(out))]}


@reference
def haar_level(signal, out, half_n, **_):
    a, b = signal[::2], signal[1::2]
    return {1: np.concatenate([a + b, a - b]) / np.sqrt(2)}


@reference
def haar_local(signal, *, TILE, **_):
    tiles = signal.reshape(-1, TILE).astype(float)
    length = TILE
    while length > 1:
        a, b = tiles[:, :length:2].copy(), tiles[:, 1:length:2].copy()
        length //= 2
        tiles[:, :length], tiles[:, length : 2 * length] = (a + b) / np.sqrt(2), (a - b) / np.sqrt(2)
    return {0: tiles}


@reference
def haar_image(image, out, width, height, **_):
    image = image.reshape(height, width).astype(float)
    rows = np.hstack([image[:, ::2] + image[:, 1::2], image[:, ::2] - image[:, 1::2]]) / 2
    return {1: np.vstack([rows[::2] + rows[1::2], rows[::2] - rows[1::2]])}


@reference
def daubechies_level(signal, out, half_n, **_):
    root = np.sqrt(3)
    low = np.array([1 + root, 3 + root, 3 - root, 1 - root]) / (4 * np.sqrt(2))
    high = low[::-1] * [1, -1, 1, -1]
    windows = np.stack([np.roll(signal, -k)[::2] for k in range(4)], axis=1)
    return {1: np.concatenate([windows @ low, windows @ high])}


def lift(rows):
    """Low and high half of each row by the 5/3 scheme with C's division towards zero."""
    even, odd = rows[:, ::2].astype(int), rows[:, 1::2].astype(int)
    high = odd - np.trunc((even + np.hstack([even[:, 1:], even[:, -1:]])) / 2).astype(int)
    low = even + np.trunc((np.hstack([high[:, :1], high[:, :-1]]) + high + 2) / 4).astype(int)
    return low, high


@reference
def lifting_rows(image, low, high, half_width, **_):
    return dict(zip((1, 2), lift(image.reshape(-1, 2 * half_width)), strict=True))


@reference
def lifting_columns(image, out, width, half_height, **_):
    low, high = lift(image.reshape(2 * half_height, width).T)
    return {1: np.vstack([low.T, high.T])}


@reference
def dct_naive(image, out, width, *_, **__):
    basis = np.cos(np.outer(np.arange(8), 2 * np.arange(8) + 1) * np.pi / 16) / 2
    basis[0] /= np.sqrt(2)
    blocks = image.reshape(-1, 8, width // 8, 8).transpose(0, 2, 1, 3)
    return {1: (basis @ blocks @ basis.T).transpose(0, 2, 1, 3)}


@reference
def dct_local(*args, **_):
    return dct_naive(*args)


@reference
def dct_private(*args, **_):
    return dct_naive(*args)


@reference
def walsh_stage(values, stride, **_):
    pairs = values.reshape(-1, 2, stride)
    return {0: np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)}


@reference
def walsh_local(values, *, TILE, **_):
    i = np.arange(TILE, dtype=np.uint32)
    signs = 1 - 2 * (np.bitwise_count(i[:, None] & i).astype(int) % 2)
    return {0: values.reshape(-1, TILE) @ signs}


@reference
def spectrum_multiply(a, b, out, n, **_):
    return {2: as_pairs(as_complex(a) * as_complex(b))}


@reference
def spectrum_accumulate(a, b, total, n, **_):
    return {2: as_pairs(as_complex(total) + as_complex(a) * as_complex(b))}


@reference
def phase_correlate(a, b, n, **_):
    product = as_complex(a) * np.conj(as_complex(b))
    return {1: as_pairs(product / (np.abs(product) + 1e-12))}


@reference
def poisson_divide(spectrum, width, height, **_):
    x, y = np.arange(width), np.arange(height)[:, None]
    eigenvalues = 2 * np.cos(2 * np.pi * x / width) + 2 * np.cos(2 * np.pi * y / height) - 4
    eigenvalues[0, 0] = np.inf
    return {0: as_pairs(as_complex(spectrum).reshape(height, width) / eigenvalues)}


@reference
def bit_reverse(values, out, num_bits, **_):
    order = [int(f"{i:0{num_bits}b}"[::-1], 2) for i in range(1 << num_bits)]
    return {1: values.reshape(-1, 2)[order]}


@reference
def log_magnitude(spectrum, out, n, floor_power, **_):
    return {1: np.log(np.maximum(np.abs(as_complex(spectrum.astype(float))) ** 2, floor_power)) / 2}


PRIME = 998244353


def number_stage(values, table, done, scale=1):
    half = len(values) // 2
    i = np.arange(half)
    k = i % done
    a = values[:half]
    b = values[half:] * table[k * (half // done)] * scale % PRIME
    out = np.empty_like(values)
    out[2 * i - k], out[2 * i - k + done] = (a + b) % PRIME, (a - b) % PRIME
    return out


@reference
def ntt_stage(values, twiddles, out, half_n, done, **_):
    return {2: number_stage(values.astype(object), twiddles.astype(object), done).astype(np.uint32)}


@reference
def ntt_local(values, twiddles, out, *, SIZE, **_):
    tiles = values.reshape(-1, SIZE).astype(object)
    for t, tile in enumerate(tiles):
        for level in range(SIZE.bit_length() - 1):
            tile = number_stage(tile, twiddles.astype(object), 1 << level, pow(2, -32, PRIME))
        tiles[t] = tile
    return {2: tiles.astype(np.uint32)}


# ---- dynamic ----------------------------------------------------------------------------------------------------


def cell_score(scores, i, j, reward, gap):
    return max(scores[i - 1, j - 1] + reward, scores[i - 1, j] - gap, scores[i, j - 1] - gap)


@reference
def needleman_diagonal(scores, a, b, n, diagonal, gap, **_):
    table = scores.reshape(n + 1, n + 1)
    for i in range(max(1, diagonal - n), min(n, diagonal - 1) + 1):
        j = diagonal - i
        table[i, j] = cell_score(table, i, j, 2 if a[i - 1] == b[j - 1] else -1, gap)
    return {0: table}


@reference
def needleman_tile(scores, rewards, n, tile_diagonal, first_row, gap, *, TILE, launch, **_):
    table, rewards = scores.reshape(n + 1, n + 1), rewards.reshape(n, n)
    for tile_row in range(first_row, first_row + launch.num_groups[0]):
        top, left = tile_row * TILE, (tile_diagonal - tile_row) * TILE
        for i, j in itertools.product(range(top + 1, top + TILE + 1), range(left + 1, left + TILE + 1)):
            table[i, j] = cell_score(table, i, j, rewards[i - 1, j - 1], gap)
    return {0: table}


@reference
def waterman_pairs(queries, targets, out, num_pairs, target_length, *, LENGTH, **_):
    for pair in range(num_pairs):
        query, target = queries[pair::num_pairs].tolist(), targets[pair::num_pairs].tolist()
        best = 0
        score = {(i, j): 0 for i in range(-1, target_length) for j in range(-1, LENGTH)}
        down = dict.fromkeys(score, -1000)
        across = dict.fromkeys(score, -1000)
        for i, j in itertools.product(range(target_length), range(LENGTH)):
            down[i, j] = max(down[i - 1, j] - 1, score[i - 1, j] - 3)
            across[i, j] = max(across[i, j - 1] - 1, score[i, j - 1] - 3)
            pair_score = score[i - 1, j - 1] + (2 if query[j] == target[i] else -2)
            score[i, j] = max(pair_score, 0, down[i, j], across[i, j])
            best = max(best, score[i, j])
        out[pair] = best
    return {2: out}


@reference
def warp_group(a, b, costs, *, TILE, **_):
    for pair, (own, other) in enumerate(zip(a.reshape(-1, TILE), b.reshape(-1, TILE), strict=True)):
        table = np.full((TILE + 1, TILE + 1), np.inf)
        table[0, 0] = 0
        for i, j in np.ndindex(TILE, TILE):
            table[i + 1, j + 1] = abs(own[i] - other[j]) + min(table[i, j], table[i, j + 1], table[i + 1, j])
        costs[pair] = table[TILE, TILE]
    return {2: costs}


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a):
        above, row = row, [i + 1]
        for j, other in enumerate(b):
            row.append(min(above[j + 1] + 1, row[j] + 1, above[j] + (letter != other)))
    return row[-1]


@reference
def edit_private(a, b, out, num_pairs, *, LENGTH, **_):
    pairs = zip(a.reshape(-1, LENGTH).tolist(), b.reshape(-1, LENGTH).tolist(), strict=True)
    return {2: [levenshtein(*pair) for pair in pairs]}


@reference
def edit_bits(patterns, texts, out, num_pairs, text_length, **_):
    pairs = zip(patterns.reshape(32, -1).T.tolist(), texts.reshape(text_length, -1).T.tolist(), strict=True)
    return {2: [levenshtein(*pair) for pair in pairs]}


@reference
def subsequence_bits(where, texts, out, num_texts, text_length, **_):
    matches = np.unpackbits(where.view(np.uint8), bitorder="little").reshape(-1, 64).astype(int)
    longest = np.zeros((num_texts, 65), int)
    for letters in texts.reshape(text_length, num_texts):
        above = longest.copy()
        for j in range(64):
            taken = above[:, j] + matches[letters, j]
            longest[:, j + 1] = np.maximum(np.maximum(above[:, j + 1], longest[:, j]), taken)
    return {2: longest[:, 64]}


@reference
def floyd_step(distances, n, through, **_):
    table = distances.reshape(n, n)
    return {0: np.minimum(table, table[:, through : through + 1] + table[through])}


@reference
def floyd_step4(distances, width, n, through, **_):
    return floyd_step(distances, n, through)


@reference
def floyd_tile(distances, n, pivot, *, TILE, **_):
    table = distances.reshape(n, n)
    inside = slice(pivot * TILE, (pivot + 1) * TILE)
    best = np.minimum(table, (table[:, inside, None] + table[None, inside]).min(axis=1))
    best[inside], best[:, inside] = table[inside], table[:, inside]
    return {0: best}


@reference
def floyd_group(distances, *, TILE, **_):
    tables = distances.reshape(-1, TILE, TILE)
    for k in range(TILE):
        tables = np.minimum(tables, tables[:, :, k : k + 1] + tables[:, k : k + 1, :])
    return {0: tables}


@reference
def knapsack_row(before, after, capacity, weight, value, **_):
    return {1: np.concatenate([before[:weight], np.maximum(before[weight:], before[:-weight] + value)])}


@reference
def knapsack_group(weights, values, out, capacity, num_items, **_):
    row = np.zeros(capacity + 1, int)
    for weight, value in zip(weights, values, strict=True):
        row[weight:] = np.maximum(row[weight:], row[:-weight] + value)
    return {2: row}


@reference
def viterbi_step(scores, transitions, emissions, out, came_from, num_states, **_):
    paths = scores.reshape(-1, num_states, 1) + transitions.reshape(1, num_states, num_states)
    return {3: paths.max(axis=1) + emissions.reshape(-1, num_states), 4: paths.argmax(axis=1)}


@reference
def viterbi_group(transitions, emissions, symbols, finals, num_steps, *, launch, **_):
    num_states = launch.local_size[0]
    emissions = emissions.reshape(-1, num_states)
    scores = np.zeros((launch.num_groups[0], num_states))
    for step in symbols.reshape(-1, num_steps).T:
        scores = (scores[:, :, None] + transitions.reshape(num_states, num_states)).max(axis=1) + emissions[step]
    return {3: scores}


@reference
def chain_diagonal(costs, sizes, n, span, **_):
    table = costs.reshape(n, n)
    for i in range(n - span):
        j = i + span
        k = np.arange(i, j)
        table[i, j] = (table[i, k] + table[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]).min()
    return {0: table}


def rotate_right(x, r):
    return (x >> r | x << (32 - r)) & 0xFFFFFFFF


def fraction_words(power, count):
    """First 32 bits of the fractional parts of the roots of the first primes."""
    primes = [p for p in range(2, 400) if all(p % d for d in range(2, p))][:count]
    words = []
    for p in primes:
        root = next(
            r for r in range(int((p << 32 * power) ** (1 / power)) + 10**5, 0, -1) if r**power <= p << 32 * power
        )
        words.append(root & 0xFFFFFFFF)
    return words


SHA_START = fraction_words(2, 8)
SHA_CONSTANTS = [w & 0xFFFFFFFF for w in fraction_words(3, 64)]


def sha256_compress(state, block):
    w = list(block)
    for t in range(16, 64):
        sigma0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3
        sigma1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10
        w.append((w[t - 16] + sigma0 + w[t - 7] + sigma1) & 0xFFFFFFFF)
    a, b, c, d, e, f, g, h = state
    for t in range(64):
        sum1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)
        first = h + sum1 + (e & f ^ ~e & g) + SHA_CONSTANTS[t] + w[t]
        sum0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)
        second = sum0 + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = (first + second) & 0xFFFFFFFF, a, b, c, (d + first) & 0xFFFFFFFF, e, f, g
    return [(x + y) & 0xFFFFFFFF for x, y in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


def test_sha256_reference_agrees_with_hashlib():
    padded = b"abc\x80" + bytes(52) + struct.pack(">Q", 24)
    digest = struct.pack(">8I", *sha256_compress(SHA_START, struct.unpack(">16I", padded)))
    assert digest == hashlib.sha256(b"abc").digest()


@reference
def sha256_messages(words, digests, num_messages, num_blocks, **_):
    states = []
    for message in words.reshape(num_messages, num_blocks, 16).tolist():
        state = SHA_START
        for block in message:
            state = sha256_compress(state, block)
        states.append(state)
    return {1: np.array(states, np.uint32).T}


@reference
def crc_bitwise(records, out, num_records, length, **_):
    return {1: [zlib.crc32(record.tobytes()) for record in records.reshape(-1, length)]}


@reference
def crc_table(records, out, num_records, length, **_):
    return {1: [zlib.crc32(record.tobytes()) for record in records.reshape(length, -1).T]}


@reference
def hash_insert(keys, table, num_lost, n, mask, max_probes, **_):
    distinct = np.unique(keys)
    table[: len(distinct)] = distinct
    return {1: table, 2: [0]}


@reference
def hash_mix(words, out, n, length, seed, **_):
    hashes = np.full(n, seed ^ length, np.uint64)
    for word in words.reshape(length, n):
        word = word * np.uint64(0x9E3779B97F4A7C15)
        word ^= word >> np.uint64(29)
        turned = hashes << np.uint64(27) | hashes >> np.uint64(37)
        hashes = (turned ^ word) * np.uint64(0xBF58476D1CE4E5B9)
    return {1: hashes ^ hashes >> np.uint64(31)}


@reference
def xorshift_streams(states, sums, num_draws, **_):
    states = states | np.uint32(1)
    for _draw in range(num_draws):
        states ^= states << np.uint32(13)
        states ^= states >> np.uint32(17)
        states ^= states << np.uint32(5)
        sums += states >> np.uint32(8)
    return {0: states, 1: sums}


def philox(counter, key):
    x, y, z, w = counter
    key0, key1 = key
    for _round in range(10):
        high0, low0 = divmod(x * 0xD2511F53, 2**32)
        high1, low1 = divmod(z * 0xCD9E8D57, 2**32)
        x, y, z, w = high1 ^ y ^ key0, low1, high0 ^ w ^ key1, low0
        key0, key1 = (key0 + 0x9E3779B9) % 2**32, (key1 + 0xBB67AE85) % 2**32
    return x, y, z, w


def test_philox_reference_gives_the_published_words():
    # Known-answer test of the Random123 distribution: philox4x32-10, counter and key zero.
    assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


@reference
def philox_fill(out, n, key0, key1, **_):
    return {0: np.array([philox((i, 0, 0, 0), (key0, key1)) for i in range(n)], np.uint32)}


def life(cells):
    count = sum(np.roll(cells, shift, (0, 1)) for shift in itertools.product((-1, 0, 1), repeat=2)) - cells
    return (count == 3) | ((count == 2) & (cells == 1))


@reference
def life_naive(cells, out, width, height, **_):
    return {1: life(cells.reshape(height, width))}


@reference
def life_tiled(*args, **_):
    return life_naive(*args)


@reference
def life_packed(cells, out, words, height, **_):
    bits = np.unpackbits(cells.view(np.uint8), bitorder="little").reshape(height, 32 * words)
    return {1: np.packbits(life(bits), bitorder="little").view(np.uint32)}


@reference
def rule_steps(cells, out, words, num_steps, rule, **_):
    bits = np.unpackbits(cells.view(np.uint8), bitorder="little")
    for _step in range(num_steps):
        bits = (rule >> (4 * np.roll(bits, 1) + 2 * bits + np.roll(bits, -1)) & 1).astype(np.uint8)
    return {1: np.packbits(bits, bitorder="little").view(np.uint32)}


@reference
def ising_step(spins, width, height, coupling, step, **_):
    grid = spins.reshape(height, width).astype(np.int32)
    around = sum(np.roll(grid, shift, axis) for shift in (-1, 1) for axis in (0, 1))
    place = np.arange(width * height, dtype=np.uint32).reshape(height, width)
    random = place * np.uint32(747796405) + np.uint32(step * 2891336453 % 2**32)
    random = (random >> ((random >> np.uint32(28)) + np.uint32(4)) ^ random) * np.uint32(277803737)
    random ^= random >> np.uint32(22)
    chance = np.exp(-2 * coupling * grid * around)
    y, x = np.divmod(place.astype(int), width)
    flips = ((random >> np.uint32(8)) * 2.0**-24 < chance) & ((x + y + step) % 2 == 0)
    return {0: np.where(flips, -grid, grid)}


@reference
def search_naive(text, pattern, out, n, length, **_):
    windows = np.lib.stride_tricks.sliding_window_view(text, length)
    out[: n - length + 1] = (windows == pattern).all(axis=1)
    return {2: out}


@reference
def search_local(text, pattern, out, n, length, **_):
    padded = np.concatenate([text, np.full(length - 1, 255, np.uint8)])
    return {2: (np.lib.stride_tricks.sliding_window_view(padded, length) != pattern).sum(axis=1)}


def count_chunks(starts, chunk, size):
    return np.bincount(np.flatnonzero(starts) // chunk, minlength=size)


@reference
def search_bits(text, masks, counts, n, length, *, CHUNK, **_):
    windows = np.lib.stride_tricks.sliding_window_view(masks[text], length)
    hits = (windows >> np.arange(length, dtype=np.uint32) & np.uint32(1)).all(axis=1)
    return {2: count_chunks(hits, CHUNK, len(counts))}


@reference
def search_skip(text, pattern, counts, n, length, *, CHUNK, **_):
    hits = (np.lib.stride_tricks.sliding_window_view(text, length) == pattern).all(axis=1)
    return {2: count_chunks(hits, CHUNK, len(counts))}


@reference
def varint_decode(stream, sums, counts, num_blocks, block_bytes, **_):
    for block, own in enumerate(stream.reshape(num_blocks, block_bytes).tolist()):
        values, group = [], []
        for byte in own:
            group.append(byte & 127)
            if byte < 128 or len(group) == 5:
                values.append(sum(part << 7 * k for k, part in enumerate(group)) % 2**32)
                group = []
        sums[block], counts[block] = sum(values) % 2**32, len(values)
    return {1: sums, 2: counts}


@reference
def queens_count(counts, n, **_):
    table = np.zeros((n, n), np.uint32)
    for queens in itertools.permutations(range(n)):
        if len({q + i for i, q in enumerate(queens)}) == len({q - i for i, q in enumerate(queens)}) == n:
            table[queens[0], queens[1]] += 1
    return {0: table}


@reference
def collatz_steps(steps, n, first, max_steps, **_):
    for i in range(n):
        value, count = first + i, 0
        while value > 1 and count < max_steps:
            value = 3 * value + 1 if value % 2 else value // 2
            count += 1
        steps[i] = count
    return {0: steps}


@reference
def hamming_nearest(queries, codes, out, num_queries, num_codes, **_):
    queries, codes = queries.reshape(-1, 1, 4), codes.reshape(1, -1, 4)
    bits = np.bitwise_count(queries ^ codes).sum(axis=2).astype(np.uint32)
    return {2: (bits << np.uint32(24) | np.arange(num_codes, dtype=np.uint32)).min(axis=1)}


@reference
def modular_power(bases, exponents, out, n, modulus, **_):
    return {2: [pow(int(b), int(e), modulus) for b, e in zip(bases, exponents, strict=True)]}


@reference
def least_divisor(out, n, first, **_):
    def of(number):
        return next((d for d in range(2, int(number**0.5) + 1) if number % d == 0), number)

    return {0: [of(first + i) for i in range(n)]}


@reference
def cycle_length(out, start, modulus, max_steps, **_):
    value, steps = start, 0
    while steps < max_steps:
        value = (value * 48271 + 11) % modulus
        steps += 1
        if value == start:
            break
    return {0: [steps]}


@reference
def common_divisor(a, b, out, n, **_):
    return {2: np.gcd(a, b)}


# ---- results whose order is free, put in order ------------------------------------------------------------------


def _sorted_buckets(buffers):
    counts, buckets = np.asarray(buffers[1]), np.asarray(buffers[2])
    rows = buckets.reshape(len(counts), -1).copy()
    for count, row in zip(counts, rows, strict=True):
        row[:count].sort()
    return {1: counts, 2: rows.ravel()}


CANONICAL = {
    "bucket_scatter": _sorted_buckets,
    "bfs_queue": lambda buffers: {3: buffers[3], 4: np.sort(buffers[4]), 5: buffers[5]},
    "hash_insert": lambda buffers: {1: np.sort(buffers[1]), 2: buffers[2]},
    "pagerank_push": lambda buffers: {3: buffers[3].view(np.float32) if buffers[3].dtype == np.uint32 else buffers[3]},
}
