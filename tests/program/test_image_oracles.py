"""Formats of images, read and written, against PoCL and Oclgrind; samplers are in `test_images.py`."""

from __future__ import annotations

import numpy as np
import pytest

from perfvec.image_format import CHANNEL_TYPES, ImageFormat
from perfvec.launch import Launch
from perfvec.program.texels import decode_texels, encode_texels
from tests.opencl import oclgrind_device, pocl_device
from tests.program.agreement import judge
from tests.program.launching import make_launch

OUT = "buffer:float32:2048"
LINE = {"global_size": 128, "local_size": 32}
PLANE = {"global_size": (32, 16), "local_size": (8, 4)}
READ = """kernel void k(read_only image2d_t a, global %s4 *o) {
    const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
    int x = get_global_id(0), y = get_global_id(1);
    o[y * 32 + x] = read_image%s(a, s, (int2)(x - 4, y - 2));
}"""
WRITE = """kernel void k(write_only image2d_t a, global const %s4 *i) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x < 17 && y < 11) write_image%s(a, (int2)(x, y), i[y * 32 + x]);
}"""
# Formats that PoCL or Oclgrind makes images of.
FORMATS = (
    "rgba_signed_int8", "rgba_signed_int16", "rgba_signed_int32", "rgba_unsigned_int8", "rgba_unsigned_int16",
    "rgba_unsigned_int32", "rgba_float", "rgba_half_float", "rgba_unorm_int8", "rgba_unorm_int16", "rgba_snorm_int8",
    "rgba_snorm_int16", "bgra_unorm_int8", "r_signed_int32", "r_float", "a_unorm_int8",
)  # fmt: skip
KERNELS = {
    "image1d_buffer": (
        """kernel void k(read_only image1d_buffer_t a, global float4 *o) {
            o[get_global_id(0)] = read_imagef(a, (int)get_global_id(0));
        }""",
        ("image1d_buffer:rgba_float:128:uniform(-1,1)", OUT),
        LINE,
    ),
    "queries": (
        """kernel void k(read_only image2d_t a, global int *n) {
            int2 d = get_image_dim(a);
            n[get_global_id(0)] = d.x * 1000 + d.y + get_image_height(a) * 100000 + get_image_width(a) * 10;
            n[get_global_id(0) + 128] = get_image_channel_order(a) * 65536 + get_image_channel_data_type(a);
        }""",
        ("image2d:rgba_float:17x11:uniform(-1,1)", "buffer:int32:256"),
        LINE,
    ),
}


def texel_type(image_format: str) -> tuple[str, str, str]:
    """OpenCL's type of a channel, the suffix of the functions, and the NumPy type."""
    if "unsigned" in image_format:
        return "uint", "ui", "uint32"
    return ("int", "i", "int32") if "signed" in image_format else ("float", "f", "float32")


def agrees(launch: Launch) -> None:
    pocl_device(), oclgrind_device()
    verdict = judge("image", launch)
    assert verdict.oracle, verdict.differences


@pytest.mark.parametrize("image_format", FORMATS)
def test_formats_are_read(image_format):
    name, suffix, dtype = texel_type(image_format)
    contents = "uniform(0,100)" if "int" in image_format else "uniform(-1,1)"
    agrees(
        make_launch(READ % (name, suffix), f"image2d:{image_format}:17x11:{contents}", f"buffer:{dtype}:2048", **PLANE)
    )


@pytest.mark.parametrize("image_format", FORMATS)
def test_formats_are_written(image_format):
    name, suffix, dtype = texel_type(image_format)
    contents = "uniform(-0.5,1.5)" if dtype == "float32" else "uniform(0,200)"
    image = f"image2d:{image_format}:17x11:constant(0)"
    agrees(make_launch(WRITE % (name, suffix), image, f"buffer:{dtype}:2048:{contents}", **PLANE))


@pytest.mark.parametrize("kernel", KERNELS)
def test_buffers_and_queries(kernel):
    source, args, sizes = KERNELS[kernel]
    agrees(make_launch(source, *args, **sizes))


@pytest.mark.parametrize("channel_type", CHANNEL_TYPES)
def test_texels_survive_being_held(channel_type):
    """What a device reads and writes back unchanged is the same bits, for all codes that have one meaning."""
    image_format = ImageFormat(
        order="rgb" if channel_type.startswith(("unorm_short", "unorm_int_")) else "rgba", channel_type=channel_type
    )
    scalar = np.dtype(image_format.scalar)
    if scalar.kind == "f":
        raw = np.linspace(-3, 3, 64).astype(scalar)
    else:
        low = max(np.iinfo(scalar).min, -np.iinfo(scalar).max)  # two codes stand for -1
        raw = np.random.default_rng(0).integers(low, np.iinfo(scalar).max, 64, scalar, endpoint=True)
        if channel_type == "unorm_short_555":
            raw &= 0x7FFF
        if channel_type == "unorm_int_101010":
            raw &= 0x3FFF_FFFF
    assert np.array_equal(encode_texels(decode_texels(raw, image_format), image_format), raw)
