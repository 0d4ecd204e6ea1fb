"""NumPy references of the suite `memory`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.corpus.reference import Expected, ReferenceCase

Array = NDArray[Any]


def _items(case: ReferenceCase) -> Array:
    """Global ids of dimension 0."""
    return np.arange(case.global_size[0])


def _lanes(case: ReferenceCase) -> Array:
    """Local ids of dimension 0, by work-item."""
    return _items(case) % case.local_size[0]


# ---- copies, streams, strides -----------------------------------------------------------------------------------


def copy(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0]}


def copy_shifted(case: ReferenceCase) -> dict[int, Any]:
    source, target, read_shift, write_shift, count = case.args
    expected = target.copy()
    expected[write_shift : write_shift + count] = source[read_shift : read_shift + count]
    return {1: expected}


def triad(case: ReferenceCase) -> dict[int, Any]:
    return {0: case.args[1] + case.args[3] * case.args[2]}


def fill(case: ReferenceCase) -> dict[int, Any]:
    return {0: np.arange(case.args[2]) + int(case.args[1])}


def read_sum(case: ReferenceCase) -> dict[int, Any]:
    rows = case.args[0].astype(float).sum(1)
    num_items = case.global_size[0]
    return {1: np.bincount(np.arange(rows.size) % num_items, weights=rows, minlength=num_items)}


def eight_streams(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].reshape(8, -1).astype(float).sum(0)}


def read_strided(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0][:: case.defines["STRIDE"]]}


def write_strided(case: ReferenceCase) -> dict[int, Any]:
    expected = case.args[1].copy()
    expected[:: case.defines["STRIDE"]] = case.args[0]
    return {1: expected}


def walk_pieces(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].reshape(-1, case.defines["STRIDE"]).astype(float).sum(1)}


# ---- indexed access ---------------------------------------------------------------------------------------------


def gather(case: ReferenceCase) -> dict[int, Any]:
    return {2: case.args[0][case.args[1]]}


def scatter(case: ReferenceCase) -> dict[int, Any]:
    expected = np.empty_like(case.args[2])
    expected[case.args[1]] = case.args[0]
    return {2: expected}


def gather_many(case: ReferenceCase) -> dict[int, Any]:
    return {2: case.args[0].astype(float)[case.args[1]].reshape(case.args[3], -1).sum(0)}


def gather_hashed(case: ReferenceCase) -> dict[int, Any]:
    source, _, mask, per_item = case.args
    k = np.arange(per_item, dtype=np.uint32)[:, None] * np.uint32(0x85EBCA77)
    h = _items(case).astype(np.uint32) * np.uint32(0x9E3779B1) ^ k
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    h ^= h >> np.uint32(12)
    return {1: source.astype(float)[h & mask].sum(0)}


def _chase(table: Array, start: Array, mask: int, steps: int) -> Array:
    at = start & mask
    for step in range(steps):
        at = (table[at].astype(np.int64) + step) & mask
    return at


def chase_global(case: ReferenceCase) -> dict[int, Any]:
    table, _, mask, steps = case.args
    return {1: _chase(table, _items(case) * 2654435761, int(mask), steps)}


def chase_single(case: ReferenceCase) -> dict[int, Any]:
    table, _, mask, steps = case.args
    return {1: _chase(table, np.zeros(1, np.int64), int(mask), steps)}


def chase_local(case: ReferenceCase) -> dict[int, Any]:
    table, _, _, mask, steps = case.args
    return {1: _chase(table, _items(case) * 2654435761, int(mask), steps)}


def chase_four(case: ReferenceCase) -> dict[int, Any]:
    table, _, mask, steps = case.args
    factors = np.array([2654435761, 2246822519, 3266489917, 668265263])
    ends = _chase(table, _items(case)[:, None] * factors, int(mask), steps)
    return {1: np.bitwise_xor.reduce(ends, axis=1)}


# ---- reuse, local memory ----------------------------------------------------------------------------------------


def broadcast_read(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.full(case.global_size, case.args[0].sum(dtype=float))}


def reread_window(case: ReferenceCase) -> dict[int, Any]:
    source, _, window, steps = case.args
    start = _items(case) // case.local_size[0] * 977 + _lanes(case)
    places = (start[:, None] + case.local_size[0] * np.arange(steps)) % window
    return {1: source.astype(float)[places].sum(1)}


def sliding_read(case: ReferenceCase) -> dict[int, Any]:
    source, _, taps, count = case.args
    return {1: np.lib.stride_tricks.sliding_window_view(source, taps)[:count].sum(1, dtype=float)}


def local_read_strided(case: ReferenceCase) -> dict[int, Any]:
    source, _, steps = case.args
    places = (_lanes(case)[:, None] * case.defines["STRIDE"] + np.arange(steps)) % source.size
    return {1: source.astype(float)[places].sum(1)}


def local_update_strided(case: ReferenceCase) -> dict[int, Any]:
    values, _, steps = case.args
    for step in range(steps):
        values = values * 0.5 + step
    return {1: values}


def local_transpose(case: ReferenceCase) -> dict[int, Any]:
    source, _, rounds = case.args
    tiles = source.reshape(-1, 16, 16)
    return {1: (tiles.transpose(0, 2, 1) if rounds % 2 else tiles) + rounds}


# ---- arithmetic -------------------------------------------------------------------------------------------------


def fma_chain(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    for _ in range(case.args[2]):
        for factor, term in ((0.999, 0.001), (1.001, -0.001), (0.998, 0.002), (1.002, -0.002)):
            x = x * factor + term
    return {1: x}


def fma_eight(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)[:, None] * np.arange(1, 9)
    for _ in range(case.args[2]):
        x = (x * 0.999 + 0.001) * 1.001 - 0.001
    return {1: x.sum(1)}


def add_multiply(case: ReferenceCase) -> dict[int, Any]:
    a, b, c, d = (case.args[0].astype(float) + k for k in range(4))
    for _ in range(case.args[2]):
        b, d = b + 0.125, d + 0.0625
        a, c = a * 0.75 + b, c * 0.875 + d
    return {1: a + c}


def divide_fp32(case: ReferenceCase) -> dict[int, Any]:
    x = 1 + case.args[0].astype(float)
    for _ in range(case.args[2]):
        x = 2 + x / (1 + x * x)
        x = np.sqrt(x) + 1 / np.sqrt(1 + x)
    return {1: x}


def fma_fp64(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)[:, None] * np.arange(1, 5)
    for _ in range(case.args[2]):
        x = (x * 0.999 + 0.001) * 1.001 - 0.001
    return {1: Expected(values=x.sum(1), rtol=1e-12)}


def divide_fp64(case: ReferenceCase) -> dict[int, Any]:
    x = 1 + case.args[0].astype(float)
    for _ in range(case.args[2]):
        x = np.sqrt(2 + x / (1 + x * x))
    return {1: Expected(values=x, rtol=1e-12)}


def integer_multiply(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0][:, None] + np.arange(4, dtype=np.uint32)
    for _ in range(case.args[2]):
        x = x * np.uint32(1664525) + np.uint32(1013904223)
    return {1: np.bitwise_xor.reduce(x, axis=1)}


def integer_bits(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0]
    y = ~x
    for _ in range(case.args[2]):
        x = x ^ (x << np.uint32(13))
        y = ((y << np.uint32(7)) | (y >> np.uint32(25))) + x
        x = x ^ (x >> np.uint32(17))
        y = y ^ (x & np.uint32(0x55555555))
    return {1: x ^ y}


def integer_divide(case: ReferenceCase) -> dict[int, Any]:
    x, divisor = case.args[0], case.args[2]
    for r in range(case.args[3]):
        x = x // divisor + (x % divisor) * np.uint32(65537) + np.uint32(r)
    return {1: x}


def integer_long(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0]
    for _ in range(case.args[2]):
        x = x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        x = x ^ (x >> np.uint64(33))
    return {1: Expected(values=x, atol=0)}


def exp_log(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    for _ in range(case.args[2]):
        x = np.log(1.5 + np.exp(-x))
    return {1: x}


def sin_cos(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    for _ in range(case.args[2]):
        x = np.sin(x + 1) + np.cos(x / 2)
    return {1: x}


def pow_tanh(case: ReferenceCase) -> dict[int, Any]:
    x = 1 + case.args[0].astype(float)
    for _ in range(case.args[2]):
        x = 1 + np.tanh(x**0.7 / 2)
    return {1: x}


def intensity_unrolled(case: ReferenceCase) -> dict[int, Any]:
    x = y = case.args[0].astype(float)
    for _ in range(case.defines["FMAS"] // 2):
        x, y = x * 0.999 + 0.001, y * 0.998 + 0.002
    return {1: x + y}


def intensity_looped(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    for _ in range(case.args[2]):
        x = x * 0.999 + 0.001
    return {1: x}


def intensity_integer(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0]
    for _ in range(case.args[1]):
        x = (x ^ (x >> np.uint32(3))) * np.uint32(0x9E3779B1) + np.uint32(1)
    return {0: x}


# ---- atomics, structures, private memory ------------------------------------------------------------------------


def atomic_spread(case: ReferenceCase) -> dict[int, Any]:
    _, targets, rounds = case.args
    return {0: np.bincount(_items(case) % targets, minlength=targets) * (rounds * (rounds + 1) // 2)}


def atomic_random(case: ReferenceCase) -> dict[int, Any]:
    return {0: np.bincount(case.args[1], minlength=case.args[0].size)}


def atomic_largest(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].max(keepdims=True)}


def atomic_local(case: ReferenceCase) -> dict[int, Any]:
    output, _, targets, rounds = case.args
    lanes = np.arange(case.local_size[0])
    places = (lanes[:, None] * 7 + np.arange(rounds)) % targets
    sums = np.bincount(places.ravel(), weights=np.repeat(lanes, rounds), minlength=targets)
    return {0: np.tile(sums, output.size // targets)}


def _pushed(planes: Array, dt: float) -> Array:
    x, y, z, vx, vy, vz, mass, charge = planes.astype(float)
    push = dt * charge / mass
    vx, vz = vx + push * vy, vz + push
    return np.stack([x + dt * vx, y + dt * vy, z + dt * vz, vx, vy, vz, mass, charge])


def particles_aos(case: ReferenceCase) -> dict[int, Any]:
    return {0: _pushed(case.args[0].reshape(-1, 8).T, float(case.args[1])).T}


def particles_soa(case: ReferenceCase) -> dict[int, Any]:
    return {0: _pushed(case.args[0].reshape(8, -1), float(case.args[1]))}


def particles_mass(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].reshape(-1, 8)[:, 6]}


def private_dynamic(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0]
    num_slots, rows = case.defines["SLOTS"], _items(case)
    slots = x[:, None] + np.arange(num_slots, dtype=np.uint32)
    for r in range(case.args[2]):
        at = (x >> np.uint32(7)) % num_slots
        x = slots[rows, at] * np.uint32(1664525) + np.uint32(1013904223)
        slots[rows, at] = x ^ np.uint32(r)
    return {1: x + slots.sum(1, dtype=np.uint32)}


def private_live(case: ReferenceCase) -> dict[int, Any]:
    numbers = np.arange(case.defines["LIVE"])
    live = case.args[0].astype(float)[:, None] + 0.01 * numbers
    for _ in range(case.args[2]):
        live = 0.75 * live + 0.25 * np.roll(live, 1, axis=1)
    return {1: live @ (numbers + 1)}


# ---- barriers, constant memory, divergence, few work-items ------------------------------------------------------


def barrier_rounds(case: ReferenceCase) -> dict[int, Any]:
    rounds = case.args[3]
    groups = case.args[0].reshape(-1, case.local_size[0]).astype(np.int64)
    return {1: np.roll(groups, -rounds, axis=1) + rounds}


def barrier_turns(case: ReferenceCase) -> dict[int, Any]:
    groups = case.args[0].reshape(-1, case.local_size[0]).astype(float)
    total = np.zeros(len(groups))
    for turn in range(groups.shape[1]):
        total = total * 0.5 + groups[:, turn]
    return {1: groups + total[:, None]}


def occupancy_chase(case: ReferenceCase) -> dict[int, Any]:
    table, _, mask, steps = case.args
    words = table[np.arange(case.defines["LOCAL_WORDS"]) & mask].astype(np.int64)
    at = _items(case) * 2654435761 & int(mask)
    for step in range(steps):
        at = (table[at] + words[at % words.size] + step) & int(mask)
    return {1: at}


def occupancy_arithmetic(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    for _ in range(case.args[2]):
        x = (x * 0.999 + 0.001) * 0.998 + 0.002
    return {1: x + 0.001 * (_lanes(case) * 31 % case.defines["LOCAL_WORDS"] & 255)}


def constant_lookup(case: ReferenceCase) -> dict[int, Any]:
    table, _, steps = case.args
    spread = case.defines["SPREAD"]
    places = (_items(case)[:, None] % spread + np.arange(steps) * spread) & 4095
    return {1: table.astype(float)[places].sum(1)}


def count_bits_table(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.bitwise_count(case.args[0])}


def branch_ladder(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    ways = case.defines["WAYS"]
    way = _items(case) % ways

    def branch(w: int, x: Array) -> Array:
        ladder = [
            lambda x: x * 0.99 + 0.01,
            lambda x: np.sqrt(x + 0.5),
            lambda x: x / (1 + x),
            lambda x: np.exp(-x),
            lambda x: np.log(1.5 + x),
            lambda x: np.abs(np.sin(x)),
            lambda x: np.cos(x) * 0.5 + 0.5,
            lambda x: 1 / np.sqrt(1 + x),
        ]
        if w < 8:
            return ladder[w](x)
        return x * x * 0.25 + 0.25 + (w - 8) * 0.01 if w < 12 else 1 / (1 + x * (w - 11))

    for _ in range(case.args[2]):
        x = np.select([way == w for w in range(ways)], [branch(w, x) for w in range(ways)])
    return {1: x}


def loop_lengths(case: ReferenceCase) -> dict[int, Any]:
    lengths, _, count = case.args
    x = np.zeros(count)
    for k in range(lengths.max()):
        x = np.where(k < lengths, x * 0.5 + (k & 3), x)
    return {1: x}


def sparse_lanes(case: ReferenceCase) -> dict[int, Any]:
    source, _, every, rounds = case.args
    x = source.astype(float)
    for _ in range(rounds):
        x = x * 0.999 + 0.001
    return {1: np.where(_items(case) % every == 0, x, source)}


def collatz(case: ReferenceCase) -> dict[int, Any]:
    _, first, max_steps = case.args
    n, steps = _items(case) + int(first), np.zeros(case.global_size[0], int)
    for _ in range(max_steps):
        active = n != 1
        steps += active
        n = np.where(active, np.where(n & 1, 3 * n + 1, n >> 1), n)
    return {0: steps}


def empty(case: ReferenceCase) -> dict[int, Any]:
    return {}


def serial_sum(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].sum(keepdims=True, dtype=float)}


def serial_recurrence(case: ReferenceCase) -> dict[int, Any]:
    _, x, rounds = case.args
    x = np.array([x])
    for r in range(rounds):
        x = (x ^ (x >> np.uint32(7))) * np.uint32(0x2C1B3C6D) + np.uint32(r)
    return {0: x}


def serial_insertion_sort(case: ReferenceCase) -> dict[int, Any]:
    return {0: np.sort(case.args[0])}


def few_long_stretches(case: ReferenceCase) -> dict[int, Any]:
    stretches = case.args[0].reshape(-1, case.args[2]).astype(float)
    return {1: stretches.sum(1) + stretches.max(1)}


REFERENCES: dict[str, Callable[[ReferenceCase], dict[int, Any]]] = {
    "copy_float": copy,
    "copy_float4": copy,
    "copy_byte": copy,
    "copy_unrolled": copy,
    "copy_pieces": copy,
    "copy_persistent": copy,
    "copy_shifted": copy_shifted,
    "triad": triad,
    "triad_fp64": triad,
    "fill": fill,
    "read_sum": read_sum,
    "eight_streams": eight_streams,
    "read_strided": read_strided,
    "write_strided": write_strided,
    "walk_pieces": walk_pieces,
    "gather": gather,
    "gather_float4": gather,
    "scatter": scatter,
    "gather_many": gather_many,
    "gather_hashed": gather_hashed,
    "chase_global": chase_global,
    "chase_single": chase_single,
    "chase_local": chase_local,
    "chase_four": chase_four,
    "broadcast_read": broadcast_read,
    "reread_window": reread_window,
    "sliding_read": sliding_read,
    "local_read_strided": local_read_strided,
    "local_update_strided": local_update_strided,
    "local_transpose": local_transpose,
    "fma_chain": fma_chain,
    "fma_eight": fma_eight,
    "add_multiply": add_multiply,
    "divide_fp32": divide_fp32,
    "fma_fp64": fma_fp64,
    "divide_fp64": divide_fp64,
    "integer_multiply": integer_multiply,
    "integer_bits": integer_bits,
    "integer_divide": integer_divide,
    "integer_long": integer_long,
    "exp_log": exp_log,
    "sin_cos": sin_cos,
    "pow_tanh": pow_tanh,
    "intensity_unrolled": intensity_unrolled,
    "intensity_looped": intensity_looped,
    "intensity_integer": intensity_integer,
    "atomic_spread": atomic_spread,
    "atomic_random": atomic_random,
    "atomic_largest": atomic_largest,
    "atomic_local": atomic_local,
    "particles_aos": particles_aos,
    "particles_soa": particles_soa,
    "particles_mass": particles_mass,
    "private_dynamic": private_dynamic,
    "private_live": private_live,
    "barrier_rounds": barrier_rounds,
    "barrier_turns": barrier_turns,
    "occupancy_chase": occupancy_chase,
    "occupancy_arithmetic": occupancy_arithmetic,
    "constant_lookup": constant_lookup,
    "count_bits_table": count_bits_table,
    "branch_ladder": branch_ladder,
    "loop_lengths": loop_lengths,
    "sparse_lanes": sparse_lanes,
    "collatz": collatz,
    "empty": empty,
    "serial_sum": serial_sum,
    "serial_recurrence": serial_recurrence,
    "serial_insertion_sort": serial_insertion_sort,
    "few_long_stretches": few_long_stretches,
    "single_group_sum": serial_sum,
}
