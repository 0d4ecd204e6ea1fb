"""NumPy references of the suite `ml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit, log_softmax, softmax

from tests.corpus.reference import Expected, ReferenceCase

Array = NDArray[Any]


def _rows(case: ReferenceCase, columns: int, position: int = 0) -> Array:
    return case.args[position].reshape(-1, columns).astype(float)


def softmax_naive(case: ReferenceCase) -> dict[int, Any]:
    return {1: Expected(values=softmax(_rows(case, case.args[3]), axis=1), rtol=1e-3, atol=1e-7)}


def softmax_rows(case: ReferenceCase) -> dict[int, Any]:
    return {1: Expected(values=softmax(_rows(case, case.args[2]), axis=1), rtol=1e-3, atol=1e-7)}


def cross_entropy(case: ReferenceCase) -> dict[int, Any]:
    labels = case.args[1]
    return {2: -log_softmax(_rows(case, case.args[3]), axis=1)[np.arange(labels.size), labels]}


def cross_entropy_gradient(case: ReferenceCase) -> dict[int, Any]:
    labels, log_sums = case.args[1], case.args[2].astype(float)
    gradient = np.exp(_rows(case, case.args[4]) - log_sums[:, None])
    gradient[np.arange(labels.size), labels] -= 1
    return {3: gradient}


def _layer_norm(case: ReferenceCase, columns: int) -> dict[int, Any]:
    x = _rows(case, columns)
    scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return {3: Expected(values=scaled * case.args[1] + case.args[2], rtol=1e-3, atol=1e-4)}


def layer_norm_naive(case: ReferenceCase) -> dict[int, Any]:
    return _layer_norm(case, case.args[5])


def layer_norm_group(case: ReferenceCase) -> dict[int, Any]:
    return _layer_norm(case, case.args[4])


def batch_norm_statistics(case: ReferenceCase) -> dict[int, Any]:
    tensor, _, batch, channels, pixels = case.args
    planes = tensor.reshape(batch, channels, pixels).astype(float)
    return {1: Expected(values=np.stack([planes.mean((0, 2)), planes.var((0, 2))], 1), rtol=1e-3)}


def batch_norm_apply(case: ReferenceCase) -> dict[int, Any]:
    tensor, statistics, gain, bias, channels, pixels, _ = case.args
    planes = tensor.reshape(-1, channels, pixels).astype(float)
    mean, variance = statistics.astype(float).T[:, :, None]
    scaled = (planes - mean) / np.sqrt(variance + 1e-5) * gain[:, None] + bias[:, None]
    return {0: np.maximum(scaled, 0)}


def _windows(planes: Array, size: int) -> Array:
    """Shape `(channel, out row, out column, row, column)`."""
    return np.lib.stride_tricks.sliding_window_view(planes, (size, size), axis=(1, 2))


def convolution(case: ReferenceCase) -> dict[int, Any]:
    tensor, weights, _, in_channels, height, width = case.args
    k = case.defines["K"]
    windows = _windows(tensor.reshape(in_channels, height, width).astype(float), k)
    return {
        2: Expected(values=np.einsum("cyxji,ocji->oyx", windows, weights.reshape(-1, in_channels, k, k)), atol=1e-4)
    }


def conv_pointwise(case: ReferenceCase) -> dict[int, Any]:
    tensor, weights, _, in_channels, _ = case.args
    return {2: weights.reshape(-1, in_channels).astype(float) @ tensor.reshape(in_channels, -1)}


def depthwise_planes(case: ReferenceCase) -> dict[int, Any]:
    tensor, weights, _, height, width = case.args
    k = case.defines["K"]
    windows = _windows(tensor.reshape(-1, height, width).astype(float), k)
    return {2: np.einsum("cyxji,cji->cyx", windows, weights.reshape(-1, k, k))}


def depthwise_quads(case: ReferenceCase) -> dict[int, Any]:
    tensor, weights, _, height, width, quads = case.args
    k = case.defines["K"]
    planes = tensor.reshape(height, width, 4 * quads).transpose(2, 0, 1).astype(float)
    return {2: np.einsum("cyxji,jic->yxc", _windows(planes, k), weights.reshape(k, k, 4 * quads))}


def im2col(case: ReferenceCase) -> dict[int, Any]:
    tensor, _, height, width, size = case.args
    return {1: _windows(tensor.reshape(-1, height, width), size).transpose(0, 3, 4, 1, 2)}


def channels_last(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].reshape(case.args[2], case.args[3]).T}


def concatenate(case: ReferenceCase) -> dict[int, Any]:
    a, b, _, columns_a, columns_b, rows = case.args
    return {2: np.concatenate([a.reshape(rows, columns_a), b.reshape(rows, columns_b)], axis=1)}


def max_pool(case: ReferenceCase) -> dict[int, Any]:
    tensor, _, _, width, height, _, _, size, stride = case.args
    windows = _windows(tensor.reshape(-1, height, width), size)[:, ::stride, ::stride]
    flat = windows.reshape(*windows.shape[:3], -1)
    place = flat.argmax(3)
    channel, y, x = np.indices(place.shape)
    places = (channel * height + y * stride + place // size) * width + x * stride + place % size
    return {1: flat.max(3), 2: places}


def mean_pool_global(case: ReferenceCase) -> dict[int, Any]:
    return {1: _rows(case, case.args[2]).mean(1)}


def relu(case: ReferenceCase) -> dict[int, Any]:
    return {0: np.maximum(case.args[0], 0)}


def leaky_relu(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.where(case.args[0] > 0, case.args[0], case.args[2] * case.args[0])}


def gelu_erf(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    return {1: x * (1 + erf(x / np.sqrt(2))) / 2}


def gelu_tanh(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    return {1: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2}


def silu(case: ReferenceCase) -> dict[int, Any]:
    x = case.args[0].astype(float)
    return {1: x * expit(x)}


def attention_scores(case: ReferenceCase) -> dict[int, Any]:
    _, _, _, _, dim, scale = case.args
    return {2: Expected(values=_rows(case, dim, 0) @ _rows(case, dim, 1).T * float(scale), atol=1e-4)}


def _attention(case: ReferenceCase, scale: float, is_causal: bool) -> dict[int, Any]:
    queries, keys, values = (_rows(case, case.defines["DIM"], i) for i in range(3))
    scores = queries @ keys.T * scale
    if is_causal:
        scores[np.triu_indices_from(scores, k=1)] = -np.inf
    return {3: Expected(values=softmax(scores, axis=1) @ values, rtol=1e-3)}


def attention_row(case: ReferenceCase) -> dict[int, Any]:
    return _attention(case, float(case.args[6]), is_causal=False)


def attention_causal(case: ReferenceCase) -> dict[int, Any]:
    return _attention(case, float(case.args[5]), is_causal=True)


def rotary_embedding(case: ReferenceCase) -> dict[int, Any]:
    tensor, pairs, base_log, tokens = case.args
    z = tensor.reshape(tokens, pairs, 2).astype(float) @ [1, 1j]
    angles = np.arange(tokens)[:, None] * np.exp(-float(base_log) * np.arange(pairs) / pairs)
    turned = z * np.exp(1j * angles)
    return {0: Expected(values=np.stack([turned.real, turned.imag], 2), atol=1e-4)}


def embedding_gather(case: ReferenceCase) -> dict[int, Any]:
    return {2: case.args[0].reshape(-1, case.args[3])[case.args[1]]}


def embedding_bag(case: ReferenceCase) -> dict[int, Any]:
    table, tokens, offsets, _, dim, bags = case.args
    assert offsets[-1] == tokens.size and (np.diff(offsets) >= 0).all()
    sums = np.zeros((bags, dim))
    np.add.at(sums, np.repeat(np.arange(bags), np.diff(offsets)), table.reshape(-1, dim)[tokens])
    return {3: sums}


def embedding_scatter(case: ReferenceCase) -> dict[int, Any]:
    table, tokens, gradients, dim, _ = case.args
    sums = np.zeros((table.size // dim, dim), np.int64)
    np.add.at(sums, tokens, np.rint(gradients.reshape(-1, dim).astype(float) * 65536).astype(np.int64))
    return {0: sums}


def _nearest_labels(points: Array, centroids: Array) -> Expected:
    squares = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(2)
    # Rounding decides between two centroids that are equally near.
    return Expected(values=squares.argmin(1), share=0.998)


def kmeans_assign(case: ReferenceCase) -> dict[int, Any]:
    points, centroids, _, _, dim, count = case.args
    return {2: _nearest_labels(points.reshape(dim, count).T.astype(float), centroids.reshape(-1, dim))}


def kmeans_assign_local(case: ReferenceCase) -> dict[int, Any]:
    points, centroids, _, _, _, count = case.args
    dim = case.defines["DIM"]
    return {2: _nearest_labels(points.reshape(dim, count).T.astype(float), centroids.reshape(-1, dim))}


def kmeans_accumulate(case: ReferenceCase) -> dict[int, Any]:
    points, labels, sums, sizes, dim, count = case.args
    fixed = np.rint(points.reshape(dim, count).T.astype(float) * 256).astype(np.int64)
    totals = np.zeros((sums.size // dim, dim), np.int64)
    np.add.at(totals, labels, fixed)
    return {2: totals, 3: np.bincount(labels, minlength=sizes.size)}


def distance_matrix(case: ReferenceCase) -> dict[int, Any]:
    queries, points, _, num_queries, num_points, dim = case.args
    gaps = queries.reshape(num_queries, 1, dim).astype(float) - points.reshape(dim, num_points).T[None]
    return {2: (gaps**2).sum(2)}


def nearest_tiled(case: ReferenceCase) -> dict[int, Any]:
    return {2: _nearest_labels(case.args[0][:, :3].astype(float), case.args[1][:, :3])}


def least_of_rows(case: ReferenceCase) -> dict[int, Any]:
    squares, _, columns, rows = case.args
    return {1: np.sort(squares.reshape(columns, rows), axis=0)[: case.defines["KEEP"]]}


def adam_update(case: ReferenceCase) -> dict[int, Any]:
    parameters, gradients, first, second = (a.astype(float) for a in case.args[:4])
    rate, keep_first, keep_second = (float(a) for a in case.args[4:7])
    first = keep_first * first + (1 - keep_first) * gradients
    second = keep_second * second + (1 - keep_second) * gradients**2
    return {0: parameters - rate * first / (np.sqrt(second) + 1e-8), 2: first, 3: second}


def momentum_update(case: ReferenceCase) -> dict[int, Any]:
    parameters, gradients, velocities = (a.astype(float) for a in case.args[:3])
    velocity = float(case.args[4]) * velocities - float(case.args[3]) * gradients
    return {0: parameters + velocity, 2: velocity}


def dropout_hash(case: ReferenceCase) -> dict[int, Any]:
    values, _, _, seed, threshold, scale, count = case.args
    h = np.arange(count, dtype=np.uint32) ^ seed
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    h ^= h >> np.uint32(16)
    is_kept = h >= threshold
    assert abs(is_kept.mean() - (1 - threshold / 2**32)) < 0.02
    return {1: np.where(is_kept, values * scale, 0), 2: is_kept}


def argmax_rows(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].reshape(-1, case.args[2]).argmax(1)}


def lstm_pointwise(case: ReferenceCase) -> dict[int, Any]:
    gates, cells, _, units, _ = case.args
    enter, forget, candidate, leave = gates.reshape(-1, 4, units).astype(float).transpose(1, 0, 2)
    cell = expit(forget) * cells.reshape(-1, units) + expit(enter) * np.tanh(candidate)
    return {1: cell, 2: expit(leave) * np.tanh(cell)}


def rnn_sequence(case: ReferenceCase) -> dict[int, Any]:
    inputs, weights, _, steps = case.args
    hidden = case.defines["HIDDEN"]
    sequences = inputs.reshape(-1, steps, hidden).astype(float)
    state, states = np.zeros((len(sequences), hidden)), []
    for t in range(steps):
        state = np.tanh(sequences[:, t] + state @ weights.reshape(hidden, hidden))
        states.append(state)
    return {2: np.stack(states, 1)}


def quantise(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.clip(np.rint(case.args[0] * case.args[2]), -128, 127)}


def matvec_bytes(case: ReferenceCase) -> dict[int, Any]:
    vector = case.args[1].reshape(-1).astype(np.int64)
    return {2: case.args[0].reshape(-1, vector.size) @ vector}


def widen_nibbles(case: ReferenceCase) -> dict[int, Any]:
    packed, scales, _, _ = case.args
    nibbles = (packed[:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).astype(int) - 8
    return {2: np.repeat(scales, 4)[:, None] * nibbles}


REFERENCES: dict[str, Callable[[ReferenceCase], dict[int, Any]]] = {
    "softmax_naive": softmax_naive,
    "softmax_group": softmax_rows,
    "softmax_online": softmax_rows,
    "cross_entropy": cross_entropy,
    "cross_entropy_gradient": cross_entropy_gradient,
    "layer_norm_naive": layer_norm_naive,
    "layer_norm_group": layer_norm_group,
    "batch_norm_statistics": batch_norm_statistics,
    "batch_norm_apply": batch_norm_apply,
    "conv_direct": convolution,
    "conv_tiled": convolution,
    "conv_channels": convolution,
    "conv_pointwise": conv_pointwise,
    "depthwise_planes": depthwise_planes,
    "depthwise_quads": depthwise_quads,
    "im2col": im2col,
    "channels_last": channels_last,
    "concatenate": concatenate,
    "max_pool": max_pool,
    "mean_pool_global": mean_pool_global,
    "relu": relu,
    "leaky_relu_vector": leaky_relu,
    "gelu_erf": gelu_erf,
    "gelu_tanh": gelu_tanh,
    "silu_persistent": silu,
    "attention_scores": attention_scores,
    "attention_row": attention_row,
    "attention_causal": attention_causal,
    "rotary_embedding": rotary_embedding,
    "embedding_gather": embedding_gather,
    "embedding_bag": embedding_bag,
    "embedding_scatter": embedding_scatter,
    "kmeans_assign": kmeans_assign,
    "kmeans_assign_local": kmeans_assign_local,
    "kmeans_accumulate": kmeans_accumulate,
    "distance_matrix": distance_matrix,
    "nearest_tiled": nearest_tiled,
    "least_of_rows": least_of_rows,
    "adam_update": adam_update,
    "momentum_update": momentum_update,
    "dropout_hash": dropout_hash,
    "argmax_naive": argmax_rows,
    "argmax_group": argmax_rows,
    "lstm_pointwise": lstm_pointwise,
    "rnn_sequence": rnn_sequence,
    "quantise": quantise,
    "matvec_bytes": matvec_bytes,
    "widen_nibbles": widen_nibbles,
}
