"""NumPy references of the suite `image`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.corpus.reference import Expected, ReferenceCase

Array = NDArray[Any]


def _image(case: ReferenceCase, position: int, width: int, height: int) -> Array:
    return case.args[position].reshape(height, width)


def _windows(image: Array, radius_y: int, radius_x: int) -> Array:
    """Every pixel's window, border repeated; shape `(height, width, rows, columns)`."""
    padded = np.pad(image, ((radius_y, radius_y), (radius_x, radius_x)), mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, (2 * radius_y + 1, 2 * radius_x + 1))


def _blur(case: ReferenceCase, radius_y: int, radius_x: int) -> dict[int, Any]:
    width, height = case.args[3], case.args[4]
    weights = case.args[2].astype(float).reshape(2 * radius_y + 1, 2 * radius_x + 1)
    windows = _windows(_image(case, 0, width, height), radius_y, radius_x)
    return {1: np.einsum("yxji,ji->yx", windows, weights)}


def blur_square(case: ReferenceCase) -> dict[int, Any]:
    return _blur(case, case.defines["RADIUS"], case.defines["RADIUS"])


def blur_rows(case: ReferenceCase) -> dict[int, Any]:
    return _blur(case, 0, case.defines["RADIUS"])


def blur_columns(case: ReferenceCase) -> dict[int, Any]:
    return _blur(case, case.defines["RADIUS"], 0)


def box_columns(case: ReferenceCase) -> dict[int, Any]:
    width, height, radius = case.args[2:5]
    return {1: Expected(values=_windows(_image(case, 0, width, height), radius, 0).mean((2, 3)), atol=1e-4)}


def box_rows(case: ReferenceCase) -> dict[int, Any]:
    width, height, radius = case.args[2:5]
    return {1: Expected(values=_windows(_image(case, 0, width, height), 0, radius).mean((2, 3)), atol=1e-4)}


def _windows_3x3(case: ReferenceCase, is_padded: bool) -> Array:
    width, height = case.args[2], case.args[3]
    if is_padded:
        return np.lib.stride_tricks.sliding_window_view(_image(case, 0, width + 2, height + 2), (3, 3)).astype(int)
    return _windows(_image(case, 0, width, height), 1, 1).astype(int)


def _sobel(case: ReferenceCase, is_padded: bool) -> dict[int, Any]:
    windows = _windows_3x3(case, is_padded)
    across = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    gx = np.einsum("yxji,ji->yx", windows, across)
    gy = np.einsum("yxji,ij->yx", windows, across)
    return {1: np.minimum(np.abs(gx) + np.abs(gy), 255)}


def sobel(case: ReferenceCase) -> dict[int, Any]:
    return _sobel(case, is_padded=False)


def sobel_padded(case: ReferenceCase) -> dict[int, Any]:
    return _sobel(case, is_padded=True)


def median(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.median(_windows_3x3(case, is_padded=False), axis=(2, 3))}


def median_padded(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.median(_windows_3x3(case, is_padded=True), axis=(2, 3))}


def median_square(case: ReferenceCase) -> dict[int, Any]:
    radius = case.defines["RADIUS"]
    return {1: np.median(_windows(_image(case, 0, case.args[2], case.args[3]), radius, radius), axis=(2, 3))}


def bilateral_exp(case: ReferenceCase) -> dict[int, Any]:
    _, _, width, height, space_factor, value_factor = case.args
    radius = case.defines["RADIUS"]
    image = _image(case, 0, width, height).astype(float)
    windows = _windows(image, radius, radius)
    squares = np.arange(-radius, radius + 1) ** 2
    distance = squares[:, None] + squares[None, :]
    weights = np.exp(-space_factor * distance - value_factor * (windows - image[:, :, None, None]) ** 2)
    return {1: (weights * windows).sum((2, 3)) / weights.sum((2, 3))}


def bilateral_table(case: ReferenceCase) -> dict[int, Any]:
    _, _, width, height, space_table, value_table = case.args
    radius = case.defines["RADIUS"]
    image = _image(case, 0, width, height).astype(int)
    windows = _windows(image, radius, radius)
    space = space_table.astype(float).reshape(2 * radius + 1, 2 * radius + 1)
    weights = space * value_table.astype(float)[np.abs(windows - image[:, :, None, None])]
    mean = (weights * windows).sum((2, 3)) / weights.sum((2, 3))
    # Off by one where the mean lies next to a half.
    return {1: Expected(values=np.floor(mean + 0.5), share=0.999)}


def histogram_global(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.bincount(case.args[0], minlength=256)}


def histogram_local(case: ReferenceCase) -> dict[int, Any]:
    return {1: np.bincount(case.args[0].view(np.uint8), minlength=256)}


def histogram_cdf(case: ReferenceCase) -> dict[int, Any]:
    sums = case.args[0].reshape(-1, 256).astype(np.int64).cumsum(1)
    return {1: sums * 255 // sums[:, -1:]}


def equalise_apply(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[2][case.args[0]]}


def _source_positions(num_out: int, num_in: int) -> Array:
    index = np.arange(num_out, dtype=np.float32)
    return (index + np.float32(0.5)) * np.float32(num_in) / np.float32(num_out) - np.float32(0.5)


def resize_bilinear(case: ReferenceCase) -> dict[int, Any]:
    pixels, _, in_width, in_height, out_width, out_height = case.args
    image = pixels.reshape(in_height, in_width, 4).astype(float)
    sx, sy = _source_positions(out_width, in_width), _source_positions(out_height, in_height)
    x0, y0 = np.floor(sx).astype(int), np.floor(sy).astype(int)
    tx, ty = (sx - x0)[None, :, None], (sy - y0)[:, None, None]

    def at(y: Array, x: Array) -> Array:
        return image[np.clip(y, 0, in_height - 1)][:, np.clip(x, 0, in_width - 1)]

    top = at(y0, x0) * (1 - tx) + at(y0, x0 + 1) * tx
    bottom = at(y0 + 1, x0) * (1 - tx) + at(y0 + 1, x0 + 1) * tx
    # Off by one where the value lies next to a half.
    return {1: Expected(values=np.floor(top * (1 - ty) + bottom * ty + 0.5), atol=1)}


def resize_bicubic(case: ReferenceCase) -> dict[int, Any]:
    _, _, in_width, in_height, out_width, out_height = case.args
    image = _image(case, 0, in_width, in_height).astype(float)

    def weights(num_out: int, num_in: int) -> Array:
        """Resampling as a matrix, `(output, input)`."""
        position = _source_positions(num_out, num_in).astype(float)
        matrix = np.zeros((num_out, num_in))
        for offset in range(-1, 3):
            source = np.floor(position).astype(int) + offset
            t = np.abs(position - source)
            near = 1.5 * t**3 - 2.5 * t**2 + 1
            far = -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
            weight = np.where(t < 1, near, np.where(t < 2, far, 0))
            np.add.at(matrix, (np.arange(num_out), np.clip(source, 0, num_in - 1)), weight)
        return matrix

    return {1: Expected(values=weights(out_height, in_height) @ image @ weights(out_width, in_width).T, atol=1e-4)}


def shrink_mean(case: ReferenceCase) -> dict[int, Any]:
    pixels, _, width, height, factor = case.args
    sums = pixels.reshape(height, factor, width, factor).astype(int).sum((1, 3))
    area = factor * factor
    return {1: (sums + area // 2) // area}


def _rotated(case: ReferenceCase) -> tuple[Array, Array]:
    _, _, width, height, cosine, sine = case.args
    dx = np.arange(width)[None, :] - 0.5 * width
    dy = np.arange(height)[:, None] - 0.5 * height
    return (
        float(cosine) * dx + float(sine) * dy + 0.5 * width,
        float(cosine) * dy - float(sine) * dx + 0.5 * height,
    )


def _or_zero(image: Array, y: Array, x: Array) -> Array:
    height, width = image.shape
    is_inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    return np.where(is_inside, image[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)], 0)


def rotate_nearest(case: ReferenceCase) -> dict[int, Any]:
    sx, sy = _rotated(case)
    image = _image(case, 0, case.args[2], case.args[3])
    values = _or_zero(image, np.floor(sy + 0.5).astype(int), np.floor(sx + 0.5).astype(int))
    # Float32 rounding picks the other of two pixels where a position lies next to a half.
    return {1: Expected(values=values, share=0.995)}


def rotate_bilinear(case: ReferenceCase) -> dict[int, Any]:
    sx, sy = _rotated(case)
    image = _image(case, 0, case.args[2], case.args[3]).astype(float)
    x0, y0 = np.floor(sx).astype(int), np.floor(sy).astype(int)
    tx, ty = sx - x0, sy - y0
    top = _or_zero(image, y0, x0) * (1 - tx) + _or_zero(image, y0, x0 + 1) * tx
    bottom = _or_zero(image, y0 + 1, x0) * (1 - tx) + _or_zero(image, y0 + 1, x0 + 1) * tx
    return {1: Expected(values=top * (1 - ty) + bottom * ty, atol=2e-4)}


def rgb_to_grey(case: ReferenceCase) -> dict[int, Any]:
    return {1: (case.args[0].reshape(-1, 3).astype(int) @ [77, 150, 29] + 128) >> 8}


def rgba_to_grey(case: ReferenceCase) -> dict[int, Any]:
    return {1: (case.args[0].reshape(-1, 4)[:, :3].astype(int) @ [77, 150, 29] + 128) >> 8}


def rgba_to_yuv(case: ReferenceCase) -> dict[int, Any]:
    red, green, blue, _ = case.args[0].astype(float).T
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    planes = (luma + 0.5, 0.564 * (blue - luma) + 128.5, 0.713 * (red - luma) + 128.5)
    # Off by one where a value lies next to a whole number.
    return {i + 1: Expected(values=np.clip(np.floor(p), 0, 255), share=0.999) for i, p in enumerate(planes)}


def rgb_to_hsv(case: ReferenceCase) -> dict[int, Any]:
    red, green, blue, alpha = case.args[0].astype(float).T
    value = np.maximum(np.maximum(red, green), blue)
    chroma = value - np.minimum(np.minimum(red, green), blue)
    sector = np.select(
        [value == red, value == green],
        [(green - blue) / chroma % 6, 2 + (blue - red) / chroma],
        4 + (red - green) / chroma,
    )
    return {1: Expected(values=np.stack([60 * sector, chroma / value, value, alpha], 1), atol=1e-2)}


def dilate_window(case: ReferenceCase) -> dict[int, Any]:
    width, height, radius = case.args[2:5]
    return {1: _windows(_image(case, 0, width, height), radius, radius).max((2, 3))}


def dilate_tiled(case: ReferenceCase) -> dict[int, Any]:
    radius = case.defines["RADIUS"]
    return {1: _windows(_image(case, 0, case.args[2], case.args[3]), radius, radius).max((2, 3))}


def erode_bits(case: ReferenceCase) -> dict[int, Any]:
    words, _, num_words, height = case.args
    bits = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(height, 32 * num_words)
    padded = np.pad(bits, 1, constant_values=1)
    eroded = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).min((2, 3))
    return {1: np.packbits(eroded, bitorder="little").view(np.uint32)}


def _fma(a: Array, b: Array, c: Array) -> Array:
    """Float32 fused multiply-add: the product of two float32 is exact in float64."""
    return (a.astype(float) * b.astype(float) + c.astype(float)).astype(np.float32)


def _escape(
    zr: Array, zi: Array, cr: Array, ci: Array, max_rounds: int, square_limit: Callable[[Array], Array]
) -> Array:
    rounds = np.zeros(np.broadcast(zr, cr).shape, int)
    zr, zi, cr, ci = (np.broadcast_to(a, rounds.shape).copy() for a in (zr, zi, cr, ci))
    two = np.float32(2)
    for _ in range(max_rounds):
        active = square_limit(_fma(zr, zr, zi * zi))
        rounds += active
        following = _fma(zr, zr, _fma(-zi, zi, cr))
        zi = np.where(active, _fma(two * zr, zi, ci), zi)
        zr = np.where(active, following, zr)
    return rounds


def mandelbrot(case: ReferenceCase) -> dict[int, Any]:
    _, width, height, left, top, step, max_rounds = case.args
    cr = _fma(np.arange(width, dtype=np.float32), step, left)[None, :]
    ci = _fma(np.arange(height, dtype=np.float32), step, top)[:, None]
    zero = np.zeros((height, width), np.float32)
    # The iteration is chaotic near the border of the set.
    return {0: Expected(values=_escape(zero, zero, cr, ci, max_rounds, lambda s: s < 4), share=0.995)}


def mandelbrot_fp64(case: ReferenceCase) -> dict[int, Any]:
    _, width, height, left, top, step, max_rounds = case.args
    c = (left + step * np.arange(width))[None, :] + 1j * (top + step * np.arange(height))[:, None]
    z = np.zeros_like(c)
    rounds = np.zeros(c.shape, int)
    for _ in range(max_rounds):
        active = z.real**2 + z.imag**2 < 4
        rounds += active
        z = np.where(active, z * z + c, z)
    return {0: Expected(values=rounds, share=0.995)}


def julia_persistent(case: ReferenceCase) -> dict[int, Any]:
    _, width, height, step, cr, ci, max_rounds = case.args
    zr = ((np.arange(width) - width // 2).astype(np.float32) * step)[None, :]
    zi = ((np.arange(height) - height // 2).astype(np.float32) * step)[:, None]
    shape = (height, width)
    rounds = _escape(
        np.broadcast_to(zr, shape),
        np.broadcast_to(zi, shape),
        np.full(shape, cr),
        np.full(shape, ci),
        max_rounds,
        lambda s: s <= 4,
    )
    return {0: Expected(values=rounds & 255, share=0.99)}


def integral_rows(case: ReferenceCase) -> dict[int, Any]:
    return {1: case.args[0].reshape(-1, case.args[2]).astype(np.int64).cumsum(1)}


def integral_columns(case: ReferenceCase) -> dict[int, Any]:
    return {0: case.args[0].reshape(-1, case.args[1]).astype(np.int64).cumsum(0)}


def _hit_distances(spheres: Array, origin: Array, direction: Array) -> Array:
    """Distance of each ray to each sphere, infinite where it misses; shape `(ray, sphere)`."""
    to_centre = spheres[None, :, :3] - origin[:, None, :]
    along = (to_centre * direction[:, None, :]).sum(2)
    inside = along**2 - (to_centre**2).sum(2) + spheres[None, :, 3] ** 2
    distance = along - np.sqrt(np.maximum(inside, 0))
    return np.where((inside >= 0) & (distance > 1e-3), distance, np.inf)


def _trace(spheres: Array, width: int, height: int, bounces: int) -> Expected:
    spheres = spheres.astype(float)
    light = np.array([0.48, 0.6, -0.64])
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    scale = 2 / height
    direction = np.stack([(x - width / 2) * scale, (height / 2 - y) * scale, np.full(x.shape, 1.5)], 2).reshape(-1, 3)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    origin = np.broadcast_to([0.0, 0.0, -4.0], direction.shape).copy()
    brightness = np.zeros(width * height)
    active = np.ones(width * height, bool)
    for bounce in range(bounces + 1):
        distances = _hit_distances(spheres, origin, direction)
        hit, nearest = distances.argmin(1), distances.min(1)
        is_miss = np.isinf(nearest)
        share = 0.5**bounce
        brightness += np.where(active & is_miss, share * 0.2 * (1 + direction[:, 1]), 0)
        active &= ~is_miss
        origin = origin + np.where(is_miss, 0, nearest)[:, None] * direction
        normal = (origin - spheres[hit, :3]) / spheres[hit, 3:]
        lambert = np.maximum(normal @ light, 0)
        is_shadowed = np.isfinite(_hit_distances(spheres, origin, np.broadcast_to(light, origin.shape))).any(1)
        brightness += np.where(active, share * (0.1 + 0.6 * np.where(is_shadowed, 0, lambert)), 0)
        direction = direction - 2 * (direction * normal).sum(1, keepdims=True) * normal
    # Rounding decides whether a ray grazes a sphere.
    return Expected(values=brightness, rtol=2e-3, atol=1e-3, share=0.98)


def trace_spheres(case: ReferenceCase) -> dict[int, Any]:
    spheres, _, _, width, height = case.args
    return {1: _trace(spheres, width, height, case.defines["BOUNCES"])}


def trace_spheres_local(case: ReferenceCase) -> dict[int, Any]:
    spheres, _, _, _, width, height = case.args
    return {1: _trace(spheres, width, height, case.defines["BOUNCES"])}


def dither_bands(case: ReferenceCase) -> dict[int, Any]:
    """Error diffusion as usually written: on a whole array of errors, here for all bands at once."""
    pixels, _, _, width, num_bands, band_rows = case.args
    image = pixels.reshape(num_bands, band_rows, width).astype(int) * 16
    output = np.zeros_like(image)
    errors = np.zeros((num_bands, band_rows + 1, width + 2), int)
    for r in range(band_rows):
        for x in range(width):
            value = image[:, r, x] + errors[:, r, x + 1]
            white = value >= 128 * 16
            error = np.trunc((value - np.where(white, 255 * 16, 0)) / 16).astype(int)
            output[:, r, x] = np.where(white, 255, 0)
            errors[:, r, x + 2] += 7 * error
            errors[:, r + 1, x : x + 3] += np.stack([3 * error, 5 * error, error], 1)
    return {1: output, 2: errors[:, band_rows, 1:-1].T}


def dither_ordered(case: ReferenceCase) -> dict[int, Any]:
    pixels, _, width, height = case.args
    matrix = np.zeros((1, 1), int)
    while matrix.shape[0] < 8:
        matrix = np.block([[4 * matrix, 4 * matrix + 2], [4 * matrix + 3, 4 * matrix + 1]])
    tiled = np.tile(matrix, (height // 8 + 1, width // 8 + 1))[:height, :width]
    return {1: np.where(pixels.reshape(height, width) > 4 * tiled + 2, 255, 0)}


REFERENCES: dict[str, Callable[[ReferenceCase], dict[int, Any]]] = {
    "blur_naive": blur_square,
    "blur_tiled": blur_square,
    "blur_rows": blur_rows,
    "blur_columns_strip": blur_columns,
    "box_columns_running": box_columns,
    "box_rows_running": box_rows,
    "sobel_scalar": sobel,
    "sobel_vector": sobel_padded,
    "sobel_tiled": sobel,
    "median_network": median,
    "median_vector": median_padded,
    "median_bisect": median_square,
    "bilateral_exp": bilateral_exp,
    "bilateral_table": bilateral_table,
    "histogram_global": histogram_global,
    "histogram_local": histogram_local,
    "histogram_cdf": histogram_cdf,
    "equalise_apply": equalise_apply,
    "resize_bilinear": resize_bilinear,
    "resize_bicubic": resize_bicubic,
    "shrink_mean": shrink_mean,
    "rotate_nearest": rotate_nearest,
    "rotate_bilinear": rotate_bilinear,
    "rgb_to_grey": rgb_to_grey,
    "rgba_to_grey_vector": rgba_to_grey,
    "rgba_to_yuv_planes": rgba_to_yuv,
    "rgb_to_hsv": rgb_to_hsv,
    "dilate_window": dilate_window,
    "dilate_tiled": dilate_tiled,
    "erode_bits": erode_bits,
    "mandelbrot": mandelbrot,
    "mandelbrot_fp64": mandelbrot_fp64,
    "julia_persistent": julia_persistent,
    "integral_rows": integral_rows,
    "integral_rows_serial": integral_rows,
    "integral_columns": integral_columns,
    "trace_spheres": trace_spheres,
    "trace_spheres_local": trace_spheres_local,
    "dither_bands": dither_bands,
    "dither_ordered": dither_ordered,
}
