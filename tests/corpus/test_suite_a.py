"""The suites dense, sparse, stencil and scan: they load, and every kernel computes what it says.

The smallest launch of every kernel runs on PoCL and is compared with a NumPy reference in double precision; buffers
that the reference does not name must come back unchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from perfvec.arch.replay import replay
from perfvec.content import content_folder
from perfvec.corpus.suite import SuiteLaunch, load_suite
from perfvec.launch import Launch
from tests.corpus.reference import Expected, ReferenceCase
from tests.opencl import pocl_device

SUITES = ("dense", "sparse", "stencil", "scan")
LAUNCHES = [entry for name in SUITES for entry in load_suite(content_folder("traces") / name / "suite.toml")]
Array = NDArray[Any]
Contents = dict[int, Any]
# Float32 results against double precision, relative to the largest number of the buffer: sums of some hundred terms.
TOLERANCE = 2e-5
# PoCL 3.1 miscompiles some kernels in which one lane writes a local value that all read after a barrier.
WITHOUT_OPTIMISER: frozenset[str] = frozenset()
# Atomics decide where a number lands in these outputs: compared in sorted order.
UNORDERED = frozenset({"compact_atomic", "compact_local"})


def args(case: ReferenceCase) -> list[Any]:
    """Arguments of a case, floats in double precision, integers as Python integers or int64 arrays."""
    return [_widen(arg) for arg in case.args]


def _widen(value: Any) -> Any:
    array = np.asarray(value)
    wide = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    return wide if wide.ndim else wide.item()


# ---- dense -----------------------------------------------------------------------------------------------------------


def gemm(case: ReferenceCase) -> Contents:
    a, b, _, m, n, k = args(case)
    return {2: a.reshape(m, k) @ b.reshape(k, n)}


def gemm_vec4(case: ReferenceCase) -> Contents:
    a, b, _, m, n4, k = args(case)
    return {2: a.reshape(m, k) @ b.reshape(k, 4 * n4)}


def gemm_nt(case: ReferenceCase) -> Contents:
    a, b, _, m, n, k4 = args(case)
    return {2: a.reshape(m, 4 * k4) @ b.reshape(n, 4 * k4).T}


def gemm_tn(case: ReferenceCase) -> Contents:
    a, b, _, m, n, k = args(case)
    return {2: a.reshape(k, m).T @ b.reshape(k, n)}


def gemm_split_k(case: ReferenceCase) -> Contents:
    a, b, _, m, n, k, size = args(case)
    a, b = a.reshape(m, k), b.reshape(k, n)
    return {2: np.stack([a[:, i : i + size] @ b[i : i + size] for i in range(0, k, size)])}


def gemv(case: ReferenceCase) -> Contents:
    a, x, _, rows, cols = args(case)
    return {2: a.reshape(rows, cols) @ x}


def gemv_transposed(case: ReferenceCase) -> Contents:
    a, x, _, rows, cols = args(case)
    return {2: x @ a.reshape(rows, cols)}


def rank1_update(case: ReferenceCase) -> Contents:
    a, x, y, rows, cols, alpha = args(case)
    return {0: a.reshape(rows, cols) + alpha * np.outer(x, y)}


def transpose(case: ReferenceCase) -> Contents:
    a, _, rows, cols = args(case)
    return {1: a.reshape(rows, cols).T}


def transpose_vec4(case: ReferenceCase) -> Contents:
    a, _, rows4, cols4 = args(case)
    return {1: a.reshape(4 * rows4, 4 * cols4).T}


def axpy(case: ReferenceCase) -> Contents:
    x, y, _, alpha = args(case)
    return {1: y + alpha * x}


def rotate_plane(case: ReferenceCase) -> Contents:
    x, y, _, c, s = args(case)
    return {0: c * x + s * y, 1: c * y - s * x}


def dot_partial(case: ReferenceCase) -> Contents:
    x, y, partial, _ = args(case)
    return {2: grid_stride(x * y, case).reshape(partial.size, -1).sum(axis=1)}


def dot_vec4(case: ReferenceCase) -> Contents:
    x, y, _, _ = args(case)
    return {2: blocks((x * y).sum(axis=1), case.local_size[0]).sum(axis=1)}


def lu_scale(case: ReferenceCase) -> Contents:
    a, n, step = args(case)
    a = a.reshape(n, n)
    a[step + 1 :, step] /= a[step, step]
    return {0: a}


def lu_update(case: ReferenceCase) -> Contents:
    a, n, step = args(case)
    a = a.reshape(n, n)
    a[step + 1 :, step + 1 :] -= np.outer(a[step + 1 :, step], a[step, step + 1 :])
    return {0: a}


def cholesky_update(case: ReferenceCase) -> Contents:
    a, n, step = args(case)
    a = a.reshape(n, n)
    column = a[step + 1 :, step]
    a[step + 1 :, step + 1 :] -= np.tril(np.outer(column, column)) / a[step, step]
    return {0: a}


def cholesky_tile(case: ReferenceCase) -> Contents:
    tiles, _, shift = args(case)
    side = case.defines["NB"]
    lower = np.tril(tiles.reshape(-1, side, side))
    symmetric = lower + np.tril(lower, -1).swapaxes(1, 2) + shift * np.eye(side)
    return {1: np.linalg.cholesky(symmetric)}


def lu_group(case: ReferenceCase) -> Contents:
    a, n, shift = args(case)
    a = a.reshape(n, n) + shift * np.eye(n)
    for step in range(n - 1):
        a[step + 1 :, step] /= a[step, step]
        a[step + 1 :, step + 1 :] -= np.outer(a[step + 1 :, step], a[step, step + 1 :])
    return {0: a}


def trsv_group(case: ReferenceCase) -> Contents:
    lower, b, _, n = args(case)
    lower = lower.reshape(n, n)
    if case.defines["COLUMN_MAJOR"]:
        lower = lower.T
    return {2: solve_triangular(np.tril(lower), b, lower=True)}


def trsm(case: ReferenceCase) -> Contents:
    lower, x, n, num_rhs = args(case)
    return {1: solve_triangular(np.tril(lower.reshape(n, n)), x.reshape(n, num_rhs), lower=True)}


def thomas_systems(case: ReferenceCase) -> Contents:
    lower, diagonal, upper, x, count, n, shift = args(case)
    shape = (n, count) if case.defines["INTERLEAVED"] else (count, n)
    systems = [band.reshape(shape) for band in (lower, diagonal + shift, upper, x)]
    if not case.defines["INTERLEAVED"]:
        systems = [band.T for band in systems]
    modified, solution = thomas(*systems)
    return {2: modified if case.defines["INTERLEAVED"] else modified.T,
            3: solution if case.defines["INTERLEAVED"] else solution.T}  # fmt: skip


def thomas(lower: Array, diagonal: Array, upper: Array, rhs: Array) -> tuple[Array, Array]:
    """Modified upper band and solution of tridiagonal systems, unknowns along the first axis."""
    c, d = np.zeros_like(upper), np.zeros_like(rhs)
    for j in range(len(rhs)):
        below = lower[j] if j else 0.0
        scale = 1.0 / (diagonal[j] - below * c[j - 1])
        c[j], d[j] = upper[j] * scale, (rhs[j] - below * d[j - 1]) * scale
    for j in range(len(rhs) - 2, -1, -1):
        d[j] -= c[j] * d[j + 1]
    return c, d


def cyclic_reduction(case: ReferenceCase) -> Contents:
    lower, diagonal, upper, x, shift = args(case)
    size = case.defines["SYSTEM"]
    systems = [band.reshape(-1, size).T for band in (lower, diagonal + shift, upper, x)]
    return {3: thomas(*systems)[1].T}


def thomas_serial(case: ReferenceCase) -> Contents:
    lower, diagonal, upper, x, _, shift = args(case)
    modified, solution = thomas(lower, diagonal + shift, upper, x)
    return {2: modified, 3: solution}


def aos(values: Array, side: int) -> Array:
    return values.reshape(-1, side, side)


def soa(values: Array, side: int) -> Array:
    return values.reshape(side, side, -1).transpose(2, 0, 1)


def batched_gemm_aos(case: ReferenceCase) -> Contents:
    a, b = args(case)[:2]
    side = case.defines["DIM"]
    return {2: aos(a, side) @ aos(b, side)}


def batched_gemm_soa(case: ReferenceCase) -> Contents:
    a, b = args(case)[:2]
    side = case.defines["DIM"]
    return {2: (soa(a, side) @ soa(b, side)).transpose(1, 2, 0)}


def batched_solve(case: ReferenceCase) -> Contents:
    a, b, _, count = args(case)
    side = case.defines["DIM"]
    x = np.linalg.solve(soa(a, side), b.reshape(side, count).T[:, :, None])[:, :, 0].T
    # Some random matrices are nearly singular, and some solutions therefore large and inaccurate.
    return {2: Expected(values=x, rtol=2e-3, atol=1e-3, share=0.99)}


def batched_inverse(case: ReferenceCase) -> Contents:
    a, _, _, shift = args(case)
    side = case.defines["DIM"]
    return {1: np.linalg.inv(soa(a, side) + shift * np.eye(side)).transpose(1, 2, 0)}


def batched_eigen3(case: ReferenceCase) -> Contents:
    a, _, count, _ = args(case)
    matrices = a.reshape(6, count)[[0, 1, 2, 1, 3, 4, 2, 4, 5]].T.reshape(count, 3, 3)
    return {1: np.linalg.eigvalsh(matrices).T}


def power_iteration(case: ReferenceCase) -> Contents:
    a, _, n, steps = args(case)
    matrices = a.reshape(-1, n, n)
    x = np.ones((len(matrices), n))
    for _ in range(steps):
        x = np.einsum("grc,gr->gc", matrices, x)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return {1: x}


def gram_schmidt(case: ReferenceCase) -> Contents:
    a, vectors, n = args(case)
    matrices = a.reshape(-1, vectors, n)
    q, r = np.linalg.qr(matrices.swapaxes(1, 2))
    signs = np.sign(np.diagonal(r, axis1=1, axis2=2))  # Gram-Schmidt's diagonal of R is positive
    return {0: (q * signs[:, None, :]).swapaxes(1, 2)}


def givens_chain(case: ReferenceCase) -> Contents:
    a, angles, rows, cols, count = args(case)
    a = a.reshape(rows, cols)
    for step in range(count):
        row = step % (rows - 1)
        s, c = np.sin(np.pi * angles[step]), np.cos(np.pi * angles[step])
        a[[row, row + 1]] = c * a[row] + s * a[row + 1], c * a[row + 1] - s * a[row]
    return {0: a}


def pairwise_city(case: ReferenceCase) -> Contents:
    a, b, _, m, n, k = args(case)
    return {2: np.abs(a.reshape(m, 1, k) - b.reshape(1, n, k)).sum(axis=2)}


def pairwise_euclid(case: ReferenceCase) -> Contents:
    a, b, _, m, n, k = args(case)
    return {2: np.linalg.norm(a.reshape(m, 1, k) - b.reshape(1, n, k), axis=2)}


DENSE: dict[str, Callable[[ReferenceCase], Contents]] = {
    "gemm_naive": gemm,
    "gemm_tiled": gemm,
    "gemm_register": gemm,
    "gemm_vec4": gemm_vec4,
    "gemm_coarse": gemm,
    "gemm_nt": gemm_nt,
    "gemm_tn": gemm_tn,
    "gemm_split_k": gemm_split_k,
    "gemm_persistent": gemm,
    "gemm_fp64": gemm,
    "gemv_row": gemv,
    "gemv_row_cached": gemv,
    "gemv_group": gemv,
    "gemv_transposed": gemv_transposed,
    "rank1_update": rank1_update,
    "transpose_naive": transpose,
    "transpose_tiled": transpose,
    "transpose_vec4": transpose_vec4,
    "axpy": axpy,
    "axpy_vec4": axpy,
    "axpy_stride": axpy,
    "rotate_plane": rotate_plane,
    "dot_partial": dot_partial,
    "dot_vec4": dot_vec4,
    "lu_scale": lu_scale,
    "lu_update": lu_update,
    "cholesky_update": cholesky_update,
    "cholesky_tile": cholesky_tile,
    "lu_group": lu_group,
    "trsv_group": trsv_group,
    "trsm_columns": trsm,
    "trsm_blocked": trsm,
    "thomas_systems": thomas_systems,
    "cyclic_reduction": cyclic_reduction,
    "thomas_serial": thomas_serial,
    "batched_gemm_aos": batched_gemm_aos,
    "batched_gemm_soa": batched_gemm_soa,
    "batched_gemm_group": batched_gemm_aos,
    "batched_solve": batched_solve,
    "batched_inverse": batched_inverse,
    "batched_eigen3": batched_eigen3,
    "power_iteration": power_iteration,
    "gram_schmidt": gram_schmidt,
    "givens_chain": givens_chain,
    "pairwise_city": pairwise_city,
    "pairwise_euclid": pairwise_euclid,
}

# ---- sparse ----------------------------------------------------------------------------------------------------------


def entry_rows(offsets: Array) -> Array:
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))


def add_at(size: int, places: Array, values: Array) -> Array:
    """Sum of values by place, exact for integers."""
    total = np.zeros((size, *values.shape[1:]), values.dtype)
    np.add.at(total, places, values)
    return total


def spmv_csr(case: ReferenceCase) -> Contents:
    offsets, columns, values, x, y = args(case)[:5]
    return {4: add_at(y.size, entry_rows(offsets), values * x[columns])}


def jacobi_csr(case: ReferenceCase) -> Contents:
    offsets, columns, values, diagonal, b, x, _, rows, damping = args(case)
    product = add_at(rows, entry_rows(offsets), values * x[columns])
    return {6: x + damping * (b - diagonal * x - product) / diagonal}


def jacobi_group(case: ReferenceCase) -> Contents:
    offsets, columns, values, diagonal, b, _, rows, steps = args(case)
    matrix = np.zeros((rows, rows))
    np.add.at(matrix, (entry_rows(offsets), columns), values)
    b = b.reshape(-1, rows)
    x = np.zeros_like(b)
    for _ in range(steps):
        x = (b - x @ matrix.T) / diagonal
    return {5: x}


def spmv_ell_columns(case: ReferenceCase) -> Contents:
    columns, values, x, _, rows, width = args(case)
    return {3: (values * x[columns]).reshape(width, rows).sum(axis=0)}


def spmv_ell_rows(case: ReferenceCase) -> Contents:
    columns, values, x, _, rows, width = args(case)
    return {3: (values * x[columns]).reshape(rows, width).sum(axis=1)}


def spmv_ell_relative(case: ReferenceCase) -> Contents:
    lengths, distances, values, x, _, rows = args(case)
    columns = np.clip(np.arange(rows) + distances.reshape(-1, rows), 0, rows - 1)
    is_entry = np.arange(len(columns))[:, None] < lengths
    return {4: np.where(is_entry, values.reshape(-1, rows) * x[columns], 0.0).sum(axis=0)}


def spmv_sliced(case: ReferenceCase) -> Contents:
    slices, columns, values, x, _, rows = args(case)
    height = case.defines["SLICE"]
    products = (values * x[columns]).reshape(-1, height)
    return {4: add_at(slices.size - 1, entry_rows(slices), products).reshape(-1)[:rows]}


def spmv_coo(case: ReferenceCase) -> Contents:
    rows, columns, values, x, y, _ = args(case)
    return {4: add_at(y.size, rows, values * x[columns])}


def spmv_coo_fixed(case: ReferenceCase) -> Contents:
    rows, columns, values, x, y, _ = args(case)
    return {4: add_at(y.size, rows, values * x[columns] >> 8)}


def spmv_dia(case: ReferenceCase) -> Contents:
    shifts, values, x, _, rows, diagonals = args(case)
    columns = np.arange(rows) + shifts[:, None]
    is_inside = (columns >= 0) & (columns < rows)
    products = values.reshape(diagonals, rows) * x[np.clip(columns, 0, rows - 1)]
    return {3: np.where(is_inside, products, 0.0).sum(axis=0)}


def spmv_bsr_row(case: ReferenceCase) -> Contents:
    offsets, columns, values, x = args(case)[:4]
    side = case.defines["BLOCK"]
    products = np.einsum("bij,bj->bi", values.reshape(-1, side, side), x.reshape(-1, side)[columns])
    return {4: add_at(offsets.size - 1, entry_rows(offsets), products)}


def spmv_bsr_vec4(case: ReferenceCase) -> Contents:
    offsets, columns, values, x = args(case)[:4]
    products = np.einsum("bij,bj->bi", values.reshape(-1, 4, 4), x[columns])
    return {4: add_at(offsets.size - 1, entry_rows(offsets), products)}


def spmm(case: ReferenceCase) -> Contents:
    offsets, columns, values, b, c = args(case)[:5]
    rows = offsets.size - 1
    b = b.reshape(-1, c.size // rows)
    return {4: add_at(rows, entry_rows(offsets), values[:, None] * b[columns])}


def sddmm(case: ReferenceCase) -> Contents:
    rows, columns, values, a, b, _, _, depth = args(case)
    products = a.reshape(-1, depth)[rows] * b.reshape(-1, depth)[columns]
    return {5: values * products.sum(axis=1)}


def sptrsv_level(case: ReferenceCase) -> Contents:
    columns, values, diagonal, b, x, first, count, width = args(case)
    products = (values * x[columns]).reshape(width, count).sum(axis=0)
    x[first:] = (b[first:] - products) / diagonal[first:]
    return {4: x}


def sptrsv_group(case: ReferenceCase) -> Contents:
    raw, values, diagonal, b, x, rows, width, reach = args(case)
    raw, values = raw.reshape(width, rows), values.reshape(width, rows)
    for first in range(0, rows, case.local_size[0]):
        level = slice(first, min(first + case.local_size[0], rows))
        rest = b[level].copy()
        if first:
            rest -= (values[:, level] * x[first - 1 - raw[:, level] % min(first, reach)]).sum(axis=0)
        x[level] = rest / diagonal[level]
    return {4: x}


def spgemm_symbolic(case: ReferenceCase) -> Contents:
    a_offsets, a_columns, b_offsets, b_columns, _ = args(case)
    pattern = [
        {int(c) for inner in a_columns[start:end] for c in b_columns[b_offsets[inner] : b_offsets[inner + 1]]}
        for start, end in pairwise(a_offsets)
    ]
    return {4: np.array([len(columns) for columns in pattern])}


def spgemm_dense_row(case: ReferenceCase) -> Contents:
    a_offsets, a_columns, a_values, b_offsets, b_columns, b_values, _ = args(case)
    cols, inner = case.defines["COLS"], b_offsets.size - 1
    b = np.zeros((inner, cols), np.int64)
    np.add.at(b, (entry_rows(b_offsets), b_columns), b_values)
    return {6: add_at(a_offsets.size - 1, entry_rows(a_offsets), a_values[:, None] * b[a_columns])}


def gather(case: ReferenceCase) -> Contents:
    indices, x, _, _, scale = args(case)
    return {2: x[indices] * scale}


def gather_rows(case: ReferenceCase) -> Contents:
    indices, table, _, _, width = args(case)
    return {2: table.reshape(-1, width)[indices]}


def scatter_axpy(case: ReferenceCase) -> Contents:
    indices, x, y, _, alpha = args(case)
    return {2: y + alpha * add_at(y.size, indices, x)}


def scatter_add(case: ReferenceCase) -> Contents:
    indices, x, out, _ = args(case)
    return {2: add_at(out.size, indices, x)}


def csr_entry_rows(case: ReferenceCase) -> Contents:
    return {1: entry_rows(args(case)[0])}


def sparse_dot_merge(case: ReferenceCase) -> Contents:
    offsets, left, left_values, right, right_values, out, _ = args(case)
    for pair, (start, end) in enumerate(pairwise(offsets)):
        i = j = start
        while i < end and j < end:
            if left[i] == right[j]:
                out[pair] += left_values[i] * right_values[j]
            step = np.sign(left[i] - right[j])
            i, j = i + (step <= 0), j + (step >= 0)
    return {5: out}


def csr_row_norms(case: ReferenceCase) -> Contents:
    offsets, values, _, _, _, rows, threshold = args(case)
    places, sizes = entry_rows(offsets), np.abs(values)
    largest = np.zeros(rows)
    np.maximum.at(largest, places, sizes)
    return {
        2: np.sqrt(add_at(rows, places, values**2)),
        3: largest,
        4: add_at(rows, places, (sizes > threshold).astype(np.int64)),
    }


SPARSE: dict[str, Callable[[ReferenceCase], Contents]] = {
    "spmv_csr_scalar": spmv_csr,
    "spmv_csr_vector": spmv_csr,
    "spmv_csr_stream": spmv_csr,
    "spmv_csr_stride": spmv_csr,
    "spmv_csr_fp64": spmv_csr,
    "jacobi_csr": jacobi_csr,
    "jacobi_group": jacobi_group,
    "spmv_ell_columns": spmv_ell_columns,
    "spmv_ell_rows": spmv_ell_rows,
    "spmv_ell_relative": spmv_ell_relative,
    "spmv_sliced": spmv_sliced,
    "spmv_coo_atomic": spmv_coo,
    "spmv_coo_runs": spmv_coo,
    "spmv_coo_fixed": spmv_coo_fixed,
    "spmv_dia": spmv_dia,
    "spmv_dia_banded": spmv_dia,
    "spmv_bsr_row": spmv_bsr_row,
    "spmv_bsr_vec4": spmv_bsr_vec4,
    "spmm_csr": spmm,
    "spmm_csr_vec4": spmm,
    "spmm_csr_group": spmm,
    "sddmm": sddmm,
    "sptrsv_level": sptrsv_level,
    "sptrsv_group": sptrsv_group,
    "spgemm_symbolic": spgemm_symbolic,
    "spgemm_dense_row": spgemm_dense_row,
    "gather": gather,
    "gather_rows": gather_rows,
    "scatter_axpy": scatter_axpy,
    "scatter_add": scatter_add,
    "csr_entry_rows": csr_entry_rows,
    "sparse_dot_merge": sparse_dot_merge,
    "csr_row_norms": csr_row_norms,
}

# ---- stencil ---------------------------------------------------------------------------------------------------------


def inner(dimensions: int, reach: int = 1) -> tuple[slice, ...]:
    return (slice(reach, -reach),) * dimensions


def neighbours(grid: Array) -> Array:
    """Sum of the nearest neighbours along every axis of the inner cells."""
    total = np.zeros([size - 2 for size in grid.shape])
    for axis in range(grid.ndim):
        for start in (0, 2):
            window = [slice(1, -1)] * grid.ndim
            window[axis] = slice(start, start + grid.shape[axis] - 2)
            total += grid[tuple(window)]
    return total


def heated(grid: Array, k: float) -> Array:
    """One explicit heat step; the outermost cells stay."""
    new = grid.copy()
    here = grid[inner(grid.ndim)]
    new[inner(grid.ndim)] = here + k * (neighbours(grid) - 2 * grid.ndim * here)
    return new


def heat2d(case: ReferenceCase) -> Contents:
    grid, _, nx, ny, k = args(case)
    return {1: heated(grid.reshape(ny, nx), k)}


def heat2d_vec4(case: ReferenceCase) -> Contents:
    grid, _, nx4, ny, k = args(case)
    return {1: heated(grid.reshape(ny, 4 * nx4), k)}


def heat2d_resident(case: ReferenceCase) -> Contents:
    grids, steps, k = args(case)
    side = case.defines["SIDE"]
    grids = grids.reshape(-1, side, side)
    for _ in range(steps):
        grids = np.stack([heated(grid, k) for grid in grids])
    return {0: grids}


def nine_point(case: ReferenceCase) -> Contents:
    grid, _, weights, nx, ny = args(case)
    padded = np.pad(grid.reshape(ny, nx), 1, mode="edge")
    return {1: sum(weights[3 * i + j] * padded[i : i + ny, j : j + nx] for i in range(3) for j in range(3))}


def star(case: ReferenceCase) -> Contents:
    grid, _, weights, nx, ny = args(case)
    grid, reach = grid.reshape(ny, nx), weights.size - 1
    wide, tall = (
        np.pad(grid, ((0, 0), (reach, reach)), mode="edge"),
        np.pad(grid, ((reach, reach), (0, 0)), mode="edge"),
    )
    total = weights[0] * grid
    for r in range(1, reach + 1):
        total += weights[r] * (wide[:, reach - r :][:, :nx] + wide[:, reach + r :][:, :nx])
        total += weights[r] * (tall[reach - r :][:ny] + tall[reach + r :][:ny])
    return {1: total}


def seven_point(case: ReferenceCase) -> Contents:
    grid, _, nx, ny, nz, k = args(case)
    return {1: heated(grid.reshape(nz, ny, nx), k)}


def box27(case: ReferenceCase) -> Contents:
    grid, _, nx, ny, nz, weights = args(case)
    grid = grid.reshape(nz, ny, nx)
    new, total = grid.copy(), np.zeros((nz - 2, ny - 2, nx - 2))
    for place in np.ndindex(3, 3, 3):
        z, y, x = place
        weight = weights[sum(abs(i - 1) for i in place)]
        total += weight * grid[z : z + nz - 2, y : y + ny - 2, x : x + nx - 2]
    new[inner(3)] = total
    return {1: new}


def wave2d(case: ReferenceCase) -> Contents:
    field, new, speed, nx, ny = args(case)
    field, new, speed = (grid.reshape(ny, nx) for grid in (field, new, speed))
    here = field[inner(2)]
    new[inner(2)] = 2 * here - new[inner(2)] + speed[inner(2)] ** 2 * (neighbours(field) - 4 * here)
    return {1: new}


def wave3d_march(case: ReferenceCase) -> Contents:
    field, new, weights, nx, ny, nz, speed2 = args(case)
    field, new = field.reshape(nz, ny, nx), new.reshape(nz, ny, nx)
    total = 3 * weights[0] * field[inner(3, 4)]
    for axis in range(3):
        for r in range(1, 5):
            total += weights[r] * (np.roll(field, r, axis) + np.roll(field, -r, axis))[inner(3, 4)]
    new[inner(3, 4)] = 2 * field[inner(3, 4)] - new[inner(3, 4)] + speed2 * total
    return {1: new}


def wave1d_group(case: ReferenceCase) -> Contents:
    here, there, n, steps, speed2 = args(case)
    original = here, there = here.reshape(-1, n), there.reshape(-1, n)
    for _ in range(steps):
        bend = here[:, :-2] + here[:, 2:] - 2 * here[:, 1:-1]
        there[:, 1:-1] = 2 * here[:, 1:-1] - there[:, 1:-1] + speed2 * bend
        here, there = there, here
    return {0: original[0], 1: original[1]}


def line(case: ReferenceCase) -> Contents:
    cells, _, weights, n = args(case)
    reach = weights.size - 1
    padded = np.pad(cells, reach, mode="edge")
    total = weights[0] * cells
    for r in range(1, reach + 1):
        total += weights[r] * (padded[reach - r :][:n] + padded[reach + r :][:n])
    return {1: total}


def line_temporal(case: ReferenceCase) -> Contents:
    cells, _, _, k = args(case)
    for _ in range(case.defines["STEPS"]):
        cells = heated(cells, k)
    return {1: cells}


def line_resident(case: ReferenceCase) -> Contents:
    cells, steps, k = args(case)
    cells = cells.reshape(-1, case.defines["LOCAL"])
    for _ in range(steps):
        cells[:, 1:-1] += k * (cells[:, :-2] + cells[:, 2:] - 2 * cells[:, 1:-1])
    return {0: cells}


def jacobi2d(case: ReferenceCase) -> Contents:
    u, rhs, new, residual2, nx, ny = args(case)
    u, rhs, new, residual2 = (grid.reshape(ny, nx) for grid in (u, rhs, new, residual2))
    rest = neighbours(u) - 4 * u[inner(2)] - rhs[inner(2)]
    new[inner(2)], residual2[inner(2)] = u[inner(2)] + rest / 4, rest**2
    return {2: new, 3: residual2}


def red_black(case: ReferenceCase) -> Contents:
    u, rhs, nx, ny, colour, omega = args(case)
    u, rhs = u.reshape(ny, nx), rhs.reshape(ny, nx)
    change = omega / 4 * (neighbours(u) - 4 * u[inner(2)] - rhs[inner(2)])
    y, x = np.mgrid[1 : ny - 1, 1 : nx - 1]
    u[inner(2)] += np.where((x + y) % 2 == colour, change, 0.0)
    return {0: u}


def wavefront(case: ReferenceCase) -> Contents:
    u, rhs, nx, ny, sweeps = args(case)
    u, rhs = u.reshape(ny, nx), rhs.reshape(ny, nx)
    for _ in range(sweeps):
        for y in range(1, ny - 1):
            for x in range(1, nx - 1):
                u[y, x] = (u[y, x - 1] + u[y, x + 1] + u[y - 1, x] + u[y + 1, x] - rhs[y, x]) / 4
    return {0: u}


def restrict2d(case: ReferenceCase) -> Contents:
    fine, _, nx, ny = args(case)
    fine = fine.reshape(2 * ny + 1, 2 * nx + 1)
    weights = np.outer([1, 2, 1], [1, 2, 1]) / 16
    return {1: sum(weights[i, j] * fine[i::2, j::2][:ny, :nx] for i in range(3) for j in range(3))}


def prolong2d(case: ReferenceCase) -> Contents:
    coarse, fine, nx, ny = args(case)
    coarse, fine = coarse.reshape(ny, nx), fine.reshape(2 * ny - 1, 2 * nx - 1)
    wide = np.zeros((ny, 2 * nx - 1))
    wide[:, ::2], wide[:, 1::2] = coarse, (coarse[:, :-1] + coarse[:, 1:]) / 2
    fine[::2] += wide
    fine[1::2] += (wide[:-1] + wide[1:]) / 2
    return {1: fine}


DIRECTIONS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]


def streamed(populations: Array) -> Array:
    """Populations (9, ny, nx) after each has moved one cell along its direction."""
    return np.stack([np.roll(f, (dy, dx), (0, 1)) for f, (dx, dy) in zip(populations, DIRECTIONS, strict=True)])


def collided(f: Array, omega: float) -> Array:
    weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)[:, None, None]
    density = f.sum(axis=0)
    ux, uy = (np.tensordot([d[axis] for d in DIRECTIONS], f, 1) / density for axis in (0, 1))
    along = np.stack([3 * (dx * ux + dy * uy) for dx, dy in DIRECTIONS])
    equilibrium = weights * density * (1 + along + along**2 / 2 - 1.5 * (ux**2 + uy**2))
    return f + omega * (equilibrium - f)


def lbm_soa(case: ReferenceCase) -> Contents:
    f, _, nx, ny, omega = args(case)
    return {1: collided(streamed(f.reshape(9, ny, nx)), omega)}


def lbm_aos(case: ReferenceCase) -> Contents:
    f, _, nx, ny, omega = args(case)
    f = np.moveaxis(f.reshape(ny, nx, 9), 2, 0)
    return {1: np.moveaxis(collided(streamed(f), omega), 0, 2)}


def lbm_obstacles(case: ReferenceCase) -> Contents:
    f, _, is_fluid, nx, ny, omega = args(case)
    f = streamed(f.reshape(9, ny, nx))
    opposite = [DIRECTIONS.index((-dx, -dy)) for dx, dy in DIRECTIONS]
    return {1: np.where(is_fluid.reshape(ny, nx) != 0, collided(f, omega), f[opposite])}


def lived(cells: Array) -> Array:
    """One generation of the game of life on a torus."""
    shifts = [shift for shift in np.ndindex(3, 3) if shift != (1, 1)]
    alive = sum(np.roll(cells, (i - 1, j - 1), (0, 1)) for i, j in shifts)
    return ((alive == 3) | ((alive == 2) & (cells == 1))).astype(np.int64)


def life_bytes(case: ReferenceCase) -> Contents:
    cells, _, nx, ny = args(case)
    return {1: lived(cells.reshape(ny, nx))}


def life_bits(case: ReferenceCase) -> Contents:
    words, _, width, height = args(case)
    cells = (words[:, None] >> np.arange(32) & 1).reshape(height, 32 * width)
    return {1: (lived(cells).reshape(-1, 32) << np.arange(32)).sum(axis=1)}


def fdtd_magnetic(case: ReferenceCase) -> Contents:
    ez, hx, hy, nx, ny, k = args(case)
    ez, hx, hy = (grid.reshape(ny, nx) for grid in (ez, hx, hy))
    hx[:-1, :-1] -= k * (ez[1:, :-1] - ez[:-1, :-1])
    hy[:-1, :-1] += k * (ez[:-1, 1:] - ez[:-1, :-1])
    return {1: hx, 2: hy}


def fdtd_electric(case: ReferenceCase) -> Contents:
    ez, hx, hy, loss, nx, ny, k = args(case)
    ez, hx, hy, loss = (grid.reshape(ny, nx) for grid in (ez, hx, hy, loss))
    curl = hy[1:, 1:] - hy[1:, :-1] - hx[1:, 1:] + hx[:-1, 1:]
    ez[1:, 1:] = loss[1:, 1:] * ez[1:, 1:] + k * curl
    return {0: ez}


def gray_scott(case: ReferenceCase) -> Contents:
    species, _, nx, ny, feed, kill, dt = args(case)
    species = species.reshape(ny, nx, 2)
    around = sum(np.roll(species, shift, axis) for axis in (0, 1) for shift in (-1, 1))
    u, v = species[..., 0], species[..., 1]
    change = np.stack([feed * (1 - u) - u * v * v, u * v * v - (feed + kill) * v], axis=2)
    return {1: species + dt * (np.array([0.16, 0.08]) * (around - 4 * species) + change)}


def advect(case: ReferenceCase) -> Contents:
    grid, u, v, _, nx, ny, dt = args(case)
    grid, u, v = (values.reshape(ny, nx) for values in (grid, u, v))
    y, x = np.mgrid[:ny, :nx]
    from_x, from_y = np.clip(x - dt * u, 0, nx - 1.001), np.clip(y - dt * v, 0, ny - 1.001)
    x0, y0 = from_x.astype(int), from_y.astype(int)
    fx, fy = from_x - x0, from_y - y0
    top = (1 - fx) * grid[y0, x0] + fx * grid[y0, x0 + 1]
    bottom = (1 - fx) * grid[y0 + 1, x0] + fx * grid[y0 + 1, x0 + 1]
    # Float32 places near 150 are known to 8e-6 of a cell.
    return {3: Expected(values=(1 - fy) * top + fy * bottom, atol=5e-5)}


def upwind(case: ReferenceCase) -> Contents:
    grid, u, v, out, nx, ny, dt = args(case)
    grid, u, v, out = (values.reshape(ny, nx) for values in (grid, u, v, out))
    here, u, v = grid[inner(2)], u[inner(2)], v[inner(2)]
    change = u * np.where(u > 0, here - grid[1:-1, :-2], grid[1:-1, 2:] - here)
    change += v * np.where(v > 0, here - grid[:-2, 1:-1], grid[2:, 1:-1] - here)
    out[inner(2)] = here - dt * change
    return {3: out}


def edge_diffusion(case: ReferenceCase) -> Contents:
    grid, _, nx, ny, rate, sharpness = args(case)
    grid = grid.reshape(ny, nx)
    padded = np.pad(grid, 1, mode="edge")
    sides = np.stack([padded[1:-1, :-2], padded[1:-1, 2:], padded[:-2, 1:-1], padded[2:, 1:-1]])
    flow = (sides - grid) * np.exp(-sharpness * (sides - grid) ** 2)
    return {1: grid + rate * flow.sum(axis=0)}


STENCIL: dict[str, Callable[[ReferenceCase], Contents]] = {
    "heat2d": heat2d,
    "heat2d_tiled": heat2d,
    "heat2d_vec4": heat2d_vec4,
    "heat2d_march": heat2d,
    "heat2d_stride": heat2d,
    "heat2d_resident": heat2d_resident,
    "nine_point": nine_point,
    "nine_point_tiled": nine_point,
    "star": star,
    "seven_point": seven_point,
    "seven_point_march": seven_point,
    "seven_point_tiled": seven_point,
    "seven_point_fp64": seven_point,
    "box27": box27,
    "wave2d": wave2d,
    "wave3d_march": wave3d_march,
    "wave1d_group": wave1d_group,
    "line_naive": line,
    "line_local": line,
    "line_window": line,
    "line_temporal": line_temporal,
    "line_resident": line_resident,
    "jacobi2d": jacobi2d,
    "red_black": red_black,
    "wavefront": wavefront,
    "restrict2d": restrict2d,
    "prolong2d": prolong2d,
    "lbm_soa": lbm_soa,
    "lbm_aos": lbm_aos,
    "lbm_obstacles": lbm_obstacles,
    "life_bytes": life_bytes,
    "life_bits": life_bits,
    "fdtd_magnetic": fdtd_magnetic,
    "fdtd_electric": fdtd_electric,
    "gray_scott": gray_scott,
    "advect": advect,
    "upwind": upwind,
    "edge_diffusion": edge_diffusion,
}

# ---- scan ------------------------------------------------------------------------------------------------------------


def blocks(values: Array, size: int, fill: float = 0) -> Array:
    """Values as rows of `size`, the last one filled up."""
    return np.pad(values, (0, -len(values) % size), constant_values=fill).reshape(-1, size)


def grid_stride(values: Array, case: ReferenceCase, fill: float = 0) -> Array:
    """Row i: the values at which work-item i of a grid-stride loop looks."""
    return blocks(values, case.global_size[0], fill).T


def by_group(values: Array, case: ReferenceCase) -> Array:
    """What a work-group's items look at in a grid-stride loop, one row a work-group."""
    return values.reshape(case.global_size[0] // case.local_size[0], -1)


def sum_groups(case: ReferenceCase) -> Contents:
    values, _, _ = args(case)
    return {1: blocks(values, case.local_size[0] * case.defines.get("ITEMS", 1)).sum(axis=1)}


def sum_stride_vec4(case: ReferenceCase) -> Contents:
    values, _, _ = args(case)
    return {1: by_group(grid_stride(values.sum(axis=1), case), case).sum(axis=1)}


def sum_runs(case: ReferenceCase) -> Contents:
    values, partial, _, run = args(case)
    partial[: -(-values.size // run)] = blocks(values, run).sum(axis=1)
    return {1: partial}


def sum_all(case: ReferenceCase) -> Contents:
    return {1: np.array([args(case)[0].sum()])}


def sum_rows(case: ReferenceCase) -> Contents:
    values, _, cols = args(case)
    return {1: values.reshape(-1, cols).sum(axis=1)}


def sum_columns(case: ReferenceCase) -> Contents:
    values, _, rows, cols = args(case)
    return {1: values.reshape(rows, cols).sum(axis=0)}


def moments_fp64(case: ReferenceCase) -> Contents:
    values, _, _ = args(case)
    columns = [by_group(grid_stride(values**power, case), case).sum(axis=1) for power in (1, 2)]
    return {1: Expected(values=np.stack(columns, axis=1), rtol=1e-12, atol=1e-9)}


def min_max(case: ReferenceCase) -> Contents:
    values, _, _ = args(case)
    low, high = (by_group(grid_stride(values, case, fill), case) for fill in (np.inf, -np.inf))
    return {1: np.stack([low.min(axis=1), high.max(axis=1)], axis=1)}


def argmax_rows(case: ReferenceCase) -> Contents:
    values, _, cols = args(case)
    return {1: values.reshape(-1, cols).argmax(axis=1)}


def max_atomic(case: ReferenceCase) -> Contents:
    return {1: np.array([args(case)[0].max()])}


def top_private(case: ReferenceCase) -> Contents:
    values = args(case)[0]
    ranked = -np.sort(-grid_stride(values, case, -np.inf), axis=1)
    return {1: ranked[:, : case.defines["BEST"]].T}


def scan_hillis_steele(case: ReferenceCase) -> Contents:
    values, _, _, n = args(case)
    sums = blocks(values, case.local_size[0] * case.defines.get("ITEMS", 1)).cumsum(axis=1)
    return {1: sums.reshape(-1)[:n], 2: sums[:, -1]}


def scan_blelloch(case: ReferenceCase) -> Contents:
    values, _, _, n = args(case)
    parts = blocks(values, 2 * case.local_size[0])
    return {1: (parts.cumsum(axis=1) - parts).reshape(-1)[:n], 2: parts.sum(axis=1)}


def scan_all(case: ReferenceCase) -> Contents:
    return {1: args(case)[0].cumsum()}


def scan_add_offsets(case: ReferenceCase) -> Contents:
    data, offsets, n, block = args(case)
    return {0: data + offsets[np.arange(n) // block]}


def scan_rows(case: ReferenceCase) -> Contents:
    values, _, rows, cols = args(case)
    return {1: values.reshape(rows, cols).cumsum(axis=1)}


def scan_columns(case: ReferenceCase) -> Contents:
    values, _, rows, cols = args(case)
    return {1: values.reshape(rows, cols).cumsum(axis=0)}


def recurred(x: Array, a: float) -> Array:
    """y = a y + x along the first axis."""
    y = x.copy()
    for t in range(1, len(y)):
        y[t] += a * y[t - 1]
    return y


def recurrence(case: ReferenceCase) -> Contents:
    x, _, channels, samples, a = args(case)
    return {1: recurred(x.reshape(samples, channels), a)}


def recurrence_scan(case: ReferenceCase) -> Contents:
    x, _, n, a = args(case)
    return {1: recurred(blocks(x, case.local_size[0]).T, a).T.reshape(-1)[:n]}


def segmented_scan(case: ReferenceCase) -> Contents:
    values, starts, _, n = args(case)
    size = case.local_size[0]
    parts, keeps = blocks(values, size), blocks(starts, size) != 0  # a start is a 0
    sums = parts.copy()
    for j in range(1, size):
        sums[:, j] += np.where(keeps[:, j], sums[:, j - 1], 0)
    return {2: sums.reshape(-1)[:n]}


def segment_sum_serial(case: ReferenceCase) -> Contents:
    offsets, values, _, count = args(case)
    return {2: add_at(count, entry_rows(offsets), values)}


def segment_sum_group(case: ReferenceCase) -> Contents:
    offsets, values, out, largest = args(case)
    np.maximum.at(largest, entry_rows(offsets), values)
    return {2: add_at(out.size, entry_rows(offsets), values), 3: largest}


def sum_by_key(case: ReferenceCase) -> Contents:
    keys, values, out, _, _ = args(case)
    return {2: add_at(out.size, keys, values)}


def sliding_sum(case: ReferenceCase) -> Contents:
    values, out, n, window, _ = args(case)
    out[: n - window + 1] = np.convolve(values, np.ones(window, np.int64), mode="valid")
    return {1: out}


def histogram(case: ReferenceCase) -> Contents:
    values, bins, _ = args(case)
    return {1: np.bincount(np.clip(values, 0, bins.size - 1), minlength=bins.size)}


def histogram_bytes(case: ReferenceCase) -> Contents:
    values, bins, _, _ = args(case)
    return {1: np.bincount(values % bins.size, minlength=bins.size)}


def histogram_owner(case: ReferenceCase) -> Contents:
    values, _, n, part = args(case)
    bins = case.local_size[0]
    return {1: np.stack([np.bincount(values[i : i + part], minlength=bins) for i in range(0, n, part)])}


def histogram_edges(case: ReferenceCase) -> Contents:
    values, edges, bins, _ = args(case)
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, None)
    return {2: np.bincount(places, minlength=bins.size)}


def digit_counts(case: ReferenceCase) -> Contents:
    keys, _, n, shift, run = args(case)
    bins, size = case.defines["BINS"], case.local_size[0] * run
    digits = (keys >> shift) % bins
    return {1: np.stack([np.bincount(digits[i : i + size], minlength=bins) for i in range(0, n, size)], axis=1)}


def compact(case: ReferenceCase) -> Contents:
    values, out, _, _, threshold = args(case)
    kept = values[values > threshold]
    out[: kept.size] = kept
    return {1: out, 2: np.array([kept.size])}


def compact_count(case: ReferenceCase) -> Contents:
    values, _, _, threshold = args(case)
    return {1: (blocks(values, case.local_size[0], -np.inf) > threshold).sum(axis=1)}


def compact_scatter(case: ReferenceCase) -> Contents:
    values, offsets, out, _, threshold = args(case)
    for offset, part in zip(offsets, blocks(values, case.local_size[0], -np.inf), strict=True):
        kept = part[part > threshold]
        out[offset : offset + kept.size] = kept
    return {2: out}


def partition_group(case: ReferenceCase) -> Contents:
    values, kept, rest, _, threshold = args(case)
    high, low = values[values > threshold], values[values <= threshold]
    kept[: high.size], rest[: low.size] = high, low
    return {1: kept, 2: rest}


def hamming(case: ReferenceCase) -> Contents:
    table, query, _, rows, words = args(case)
    differences = table.reshape(words, rows) ^ query[:, None]
    return {2: np.bitwise_count(differences).sum(axis=0)}


def checksum(case: ReferenceCase) -> Contents:
    words, _, num_blocks, run = args(case)
    low = high = np.zeros(num_blocks, np.int64)
    for column in words.reshape(num_blocks, run).T:
        low = (low + (column & 0xFFFF) + (column >> 16)) % 65535
        high = (high + low) % 65535
    return {1: high << 16 | low}


def xor_words(case: ReferenceCase) -> Contents:
    words = args(case)[0]
    return {1: np.bitwise_xor.reduce(by_group(grid_stride(words, case), case), axis=1)}


SCAN: dict[str, Callable[[ReferenceCase], Contents]] = {
    "sum_interleaved": sum_groups,
    "sum_strided": sum_groups,
    "sum_tree": sum_groups,
    "sum_stride_vec4": sum_stride_vec4,
    "sum_runs": sum_runs,
    "sum_atomic": sum_all,
    "sum_atomic_local": sum_all,
    "sum_kahan_serial": sum_all,
    "sum_rows": sum_rows,
    "sum_columns": sum_columns,
    "moments_fp64": moments_fp64,
    "min_max": min_max,
    "argmax_rows": argmax_rows,
    "max_atomic": max_atomic,
    "top_private": top_private,
    "scan_hillis_steele": scan_hillis_steele,
    "scan_blelloch": scan_blelloch,
    "scan_items": scan_hillis_steele,
    "scan_group": scan_all,
    "scan_add_offsets": scan_add_offsets,
    "scan_rows": scan_rows,
    "scan_columns": scan_columns,
    "scan_serial": scan_all,
    "recurrence": recurrence,
    "recurrence_scan": recurrence_scan,
    "segmented_scan": segmented_scan,
    "segment_sum_serial": segment_sum_serial,
    "segment_sum_group": segment_sum_group,
    "sum_by_key": sum_by_key,
    "sliding_sum": sliding_sum,
    "histogram_global": histogram,
    "histogram_local": histogram,
    "histogram_bytes": histogram_bytes,
    "histogram_owner": histogram_owner,
    "histogram_edges": histogram_edges,
    "digit_counts": digit_counts,
    "compact_atomic": compact,
    "compact_local": compact,
    "compact_count": compact_count,
    "compact_scatter": compact_scatter,
    "partition_group": partition_group,
    "hamming": hamming,
    "checksum": checksum,
    "xor_words": xor_words,
}

REFERENCES = {"dense": DENSE, "sparse": SPARSE, "stencil": STENCIL, "scan": SCAN}

# ---- tests -----------------------------------------------------------------------------------------------------------


def smallest_launches() -> list[SuiteLaunch]:
    """Of each kernel the launch with the smallest buffers."""
    kernels = defaultdict(list)
    for entry in LAUNCHES:
        kernels[entry.suite, entry.kernel].append(entry)
    return [min(entries, key=lambda entry: entry.launch.buffer_bytes) for entries in kernels.values()]


def expected_contents(case: ReferenceCase, entry: SuiteLaunch) -> dict[int, Expected]:
    """What the reference wants, with tolerances."""
    contents = REFERENCES[entry.suite][entry.kernel](case)
    tolerance = 1e-12 if entry.kernel.endswith("_fp64") else TOLERANCE
    return {
        position: values if isinstance(values, Expected) else _with_tolerance(np.asarray(values), tolerance)
        for position, values in contents.items()
    }


def _with_tolerance(values: Array, tolerance: float) -> Expected:
    if values.dtype.kind != "f":
        return Expected(values=values, atol=0)
    finite = np.abs(values[np.isfinite(values)])
    return Expected(values=values, rtol=tolerance, atol=tolerance * float(finite.max(initial=0.0)))


def check_launch(entry: SuiteLaunch, found: dict[int, Array]) -> None:
    """Assert that the buffers hold what the reference says, and that all others are unchanged."""
    expected = expected_contents(ReferenceCase.from_launch(entry.launch), entry)
    assert set(expected) <= set(found)
    for position, contents in found.items():
        what = f"{entry.name}, argument {position}"
        if position not in expected:
            assert contents.tobytes() == entry.launch.args[position].array().tobytes(), f"{what} was changed"
            continue
        wanted = expected[position]
        if entry.kernel in UNORDERED:
            contents, wanted = np.sort(contents), replace(wanted, values=np.sort(wanted.values))
        if entry.kernel == "batched_eigen3":  # eigenvalues come in no particular order
            contents = np.sort(contents.reshape(3, -1), axis=0).reshape(-1)
        wanted.check(contents, what=what)


def without_optimiser(launch: Launch) -> Launch:
    return replace(launch, build_options=(*launch.build_options, "-cl-opt-disable"))


@pytest.mark.parametrize("entry", smallest_launches(), ids=lambda entry: f"{entry.suite}/{entry.kernel}")
def test_kernel_agrees_with_its_reference(entry: SuiteLaunch):
    launch = without_optimiser(entry.launch) if entry.kernel in WITHOUT_OPTIMISER else entry.launch
    check_launch(entry, dict(replay(launch, pocl_device()).outputs))


def test_every_kernel_has_a_reference_and_six_launches_or_more():
    counts = Counter((entry.suite, entry.kernel) for entry in LAUNCHES)
    assert min(counts.values()) >= 6
    assert max(counts.values()) <= 24
    assert set(counts) == {(suite, kernel) for suite, kernels in REFERENCES.items() for kernel in kernels}


@pytest.mark.parametrize("suite", SUITES)
def test_suite_has_families_and_kernels_not_tied_to_the_global_size(suite: str):
    entries = [entry for entry in LAUNCHES if entry.suite == suite]
    assert len({entry.family for entry in entries}) >= 5
    assert len({entry.kernel for entry in entries if not entry.is_size_tied}) >= 3


def test_launches_fit_any_opencl_1_2_device():
    for entry in LAUNCHES:
        assert np.prod(entry.launch.local_size) <= 256, entry.name
        assert entry.launch.buffer_bytes <= 512 << 20, entry.name
