"""Texels as the executor holds them, whatever the image's format: four channels of 32 bits, red first.

Formats of numbers are held as floats, those of integers as integers, so native code need not know the format.

Source:
    OpenCL 1.2 specification, sections 5.3.1.1 (formats, channel orders), 6.12.14 and 8.3 (conversions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfvec.image_format import PACKED_BITS, ImageFormat
from perfvec.program.buffers import aligned_zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfvec.arguments import ImageArg

NUM_CHANNELS = 4
# Where each channel of a texel goes to; intensity and luminance go to several.
_PLACES = {"r": (0,), "g": (1,), "b": (2,), "a": (3,), "i": (0, 1, 2, 3), "l": (0, 1, 2)}


def held_type(image_format: ImageFormat) -> np.dtype:
    """NumPy type of a channel as it is held: float32, int32 or uint32."""
    if image_format.is_normalised or "float" in image_format.channel_type:
        return np.dtype(np.float32)
    return np.dtype(np.int32 if image_format.channel_type.startswith("signed") else np.uint32)


def border_texel(image_format: ImageFormat) -> NDArray[np.generic]:
    """What a read outside the image gives where the sampler clamps; shape `(4,)`."""
    return np.array([0, 0, 0, image_format.is_border_opaque], held_type(image_format))


def decode_texels(raw: NDArray[np.generic], image_format: ImageFormat) -> NDArray[np.generic]:
    """Texels as they are held.

    Args:
        raw: Scalars of the format's type as they lie in memory, one texel after another.
        image_format: Their format.

    Returns:
        Shape `(texels, 4)`.
    """
    held = held_type(image_format)
    channels = _unpacked(raw, image_format) if image_format.is_packed else raw.reshape(-1, image_format.num_scalars)
    if image_format.is_normalised:
        channels = np.maximum(channels.astype(np.float64) / _scales(image_format), -1.0)
    texels = np.zeros((len(channels), NUM_CHANNELS), held)
    texels[:, 3] = 1
    for column, name in enumerate(image_format.channels):
        texels[:, _PLACES[name]] = channels[:, column, None].astype(held)
    return texels


def encode_texels(texels: NDArray[np.generic], image_format: ImageFormat) -> NDArray[np.generic]:
    """Texels as they lie in memory: numbers are rounded to the nearest and clamped, integers clamped.

    Args:
        texels: As `decode_texels` makes them; shape `(texels, 4)`.
        image_format: Their format.

    Returns:
        Scalars of the format's type.
    """
    channels = texels[:, [_PLACES[name][0] for name in image_format.channels]]
    if image_format.is_packed:
        return _packed(channels, image_format)
    scalar = np.dtype(image_format.scalar)
    if scalar.kind != "f":
        if image_format.is_normalised:
            channels = np.rint(np.nan_to_num(_scaled(channels, image_format)))
        limits = np.iinfo(scalar)
        channels = np.clip(channels, limits.min, limits.max)
    with np.errstate(over="ignore"):  # what is too large for a half is infinite
        return channels.astype(scalar).reshape(-1)


def _scales(image_format: ImageFormat) -> NDArray[np.float64]:
    """What stands for 1 in each channel."""
    if image_format.is_packed:
        return np.array([(1 << bits) - 1 for bits in PACKED_BITS[image_format.channel_type]], np.float64)
    return np.full(image_format.num_scalars, np.iinfo(image_format.scalar).max, np.float64)


def _scaled(channels: NDArray[np.generic], image_format: ImageFormat) -> NDArray[np.float64]:
    """What is rounded to a code; the product is one of single precision (section 8.3.1)."""
    return (channels.astype(np.float32) * _scales(image_format).astype(np.float32)).astype(np.float64)


def _shifts(image_format: ImageFormat) -> NDArray[np.int64]:
    """How far each packed channel lies from the lowest bit."""
    bits = PACKED_BITS[image_format.channel_type]
    return np.array([sum(bits[place + 1 :]) for place in range(len(bits))])


def _unpacked(raw: NDArray[np.generic], image_format: ImageFormat) -> NDArray[np.generic]:
    masks = _scales(image_format).astype(np.int64)
    return raw.astype(np.int64)[:, None] >> _shifts(image_format) & masks


def _packed(channels: NDArray[np.generic], image_format: ImageFormat) -> NDArray[np.generic]:
    numbers = np.rint(np.nan_to_num(_scaled(channels, image_format)))
    codes = np.clip(numbers, 0, _scales(image_format)).astype(np.int64)
    return (codes << _shifts(image_format)).sum(axis=1).astype(image_format.scalar)


# ---- an image in memory: a header, then the texels ----------------------------------------------------------------

HEADER_BYTES = 128
HELD_BYTES = 16  # of a texel
# 32-bit words at the header's start; queries load them as they lie there, two or four at a time.
HEADER_WORDS = ("width", "height", "depth", "0", "layers", "0", "channel_data_type", "channel_order")
# Places of texels that are none, counted from the first texel.
BORDER = -1
NOWHERE = -2  # written in vain


def make_image(image: ImageArg) -> NDArray[np.uint8]:
    """Make an image's memory, writable, aligned like a buffer."""
    memory = aligned_zeros(HEADER_BYTES + HELD_BYTES * image.contents.count)
    width, height, depth, layers = _extent(image)
    words = (width, height, depth, 0, layers, 0, image.format.opencl_type, image.format.opencl_order)
    memory[: 4 * len(words)].view(np.int32)[:] = words
    border = HEADER_BYTES + HELD_BYTES * BORDER
    memory[border : border + HELD_BYTES] = border_texel(image.format).view(np.uint8)
    texels = decode_texels(image.contents.array(), image.format)
    memory[HEADER_BYTES:] = texels.reshape(-1).view(np.uint8)
    return memory


def image_contents(memory: NDArray[np.uint8], image: ImageArg) -> NDArray[np.generic]:
    """An image's texels as they lie in memory on a device, out of the memory that `make_image` made."""
    texels = memory[HEADER_BYTES:].view(held_type(image.format)).reshape(-1, NUM_CHANNELS)
    return encode_texels(texels, image.format)


def _extent(image: ImageArg) -> tuple[int, int, int, int]:
    """Width, height, depth and layers; 1 for what the image has not."""
    *size, layers = image.size if image.kind.endswith("_array") else (*image.size, 1)
    width, height, depth = (*size, 1, 1)[:3]
    return width, height, depth, layers
