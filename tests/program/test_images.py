"""Images: the executor against the formulas of the OpenCL 1.2 specification, section 8.2, and against PoCL."""

from __future__ import annotations

from itertools import product

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from perfvec.arch.replay import replay
from perfvec.arguments import IMAGE_KINDS, BufferArg, ImageArg, SamplerArg, parse_argument
from perfvec.errors import LaunchError, MemoryAccessError
from perfvec.image_format import ImageFormat
from perfvec.launch import Launch, read_launch, write_launch
from perfvec.program.texels import decode_texels, encode_texels
from perfvec.program.tracer import trace_launch
from tests.opencl import pocl_device
from tests.program.launching import execute, make_launch

COUNT = 128
SIZES = {"image1d": "17", "image1d_array": "9x4", "image2d": "13x7", "image2d_array": "5x6x3", "image3d": "5x6x7"}
WIDTHS = {"image1d": 1, "image1d_array": 2, "image2d": 2, "image2d_array": 4, "image3d": 4}
SAMPLERS = [
    *(f"sampler:{mode}:{kind}" for mode, kind in product(("none", "clamp_to_edge", "clamp"), ("nearest", "linear"))),
    *(
        f"sampler:{mode}:{kind}:normalized"
        for mode, kind in product(("clamp_to_edge", "clamp", "repeat", "mirrored_repeat"), ("nearest", "linear"))
    ),
]


def read_launch_of(kind: str, sampler: str) -> Launch:
    """Reads an image at seeded coordinates, some of them outside where the sampler allows it."""
    width = WIDTHS[kind] if WIDTHS[kind] > 1 else ""
    low, high = (-2.4, 2.4) if "normalized" in sampler else (1.0, 1.9) if "none" in sampler else (-4.0, 16.0)
    return make_launch(
        f"""kernel void k(read_only {kind}_t image, sampler_t s, global const float{width} *at, global float4 *o) {{
            size_t i = get_global_id(0); o[i] = read_imagef(image, s, at[i]); }}""",
        f"{kind}:rgba_float:{SIZES[kind]}:uniform(-1,1)~5",
        sampler,
        f"buffer:float32{f'x{width}' if width else ''}:{COUNT}:uniform({low},{high})~7",
        f"buffer:float32x4:{COUNT}:constant(0)",
        global_size=COUNT,
    )


def texels_of(image: ImageArg) -> NDArray[np.float64]:
    """Texels by layer or depth, row and column; the last axis has the channels."""
    held = decode_texels(image.contents.array(), image.format).astype(np.float64)
    return held.reshape(*reversed(image.size), 4)


def expected_read(image: ImageArg, sampler: SamplerArg, at: NDArray[np.float32]) -> NDArray[np.float64]:
    """Section 8.2: addressing, nearest and linear filters, in its own letters: u, i0, i1, a; arrays by their layer."""
    texels, has_layers = texels_of(image), image.kind.endswith("_array")
    axes = len(image.size) - has_layers
    choices: list[list[tuple[int, float]]] = []
    for s, size in zip(at[:axes], image.size, strict=False):
        choices.append(_on_axis(np.float32(s), size, sampler))
    layers = [(int(np.clip(np.rint(at[axes]), 0, image.size[-1] - 1)), 1.0)] if has_layers else None
    total = np.zeros(4)
    for corner in product(*choices, *([layers] if layers else [])):
        place = tuple(index for index, _ in corner)
        is_inside = all(0 <= index < size for index, size in zip(place, image.size, strict=True))
        border = np.array([0, 0, 0, image.format.is_border_opaque], np.float64)
        total += np.prod([weight for _, weight in corner]) * (texels[place[::-1]] if is_inside else border)
    return total


def _on_axis(s: np.float32, size: int, sampler: SamplerArg) -> list[tuple[int, float]]:
    half, w = np.float32(0.5), np.float32(size)
    if sampler.addressing == "repeat":
        u = (s - np.floor(s)) * w
    elif sampler.addressing == "mirrored_repeat":
        u = np.abs(s - np.float32(2) * np.rint(half * s)) * w
    else:
        u = s * w if sampler.is_normalized else s
    if sampler.filter == "nearest":
        return [(_addressed(int(np.floor(u)), size, sampler), 1.0)]
    i0, a = int(np.floor(u - half)), float((u - half) - np.floor(u - half))
    return [(_addressed(i0, size, sampler), 1.0 - a), (_addressed(i0 + 1, size, sampler), a)]


def _addressed(i: int, size: int, sampler: SamplerArg) -> int:
    if sampler.addressing == "repeat":
        return i % size
    return i if sampler.addressing == "clamp" else min(max(i, 0), size - 1)


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_reads_follow_the_formulas(kind: str, sampler: str):
    launch = read_launch_of(kind, sampler)
    image, given, at, _ = launch.args
    assert isinstance(image, ImageArg) and isinstance(given, SamplerArg) and isinstance(at, BufferArg)
    coordinates = at.array().reshape(COUNT, -1)
    expected = [expected_read(image, given, place) for place in coordinates]
    found = execute(launch)[3].reshape(COUNT, 4)
    assert np.allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kind", ["image1d", "image2d", "image3d"])
@pytest.mark.parametrize("sampler", [sampler for sampler in SAMPLERS if "none" not in sampler])
def test_reads_agree_with_pocl(kind: str, sampler: str):
    launch = read_launch_of(kind, sampler)
    device = pocl_device()
    assert np.allclose(execute(launch)[3], replay(launch, device).outputs[3], rtol=0, atol=2e-5)


@pytest.mark.parametrize("optimise", [True, False])
@pytest.mark.parametrize("image_format", ["rgba_unorm_int8", "r_float", "rg_half_float", "argb_snorm_int8"])
def test_what_is_written_is_rounded_to_the_format(image_format: str, optimise: bool):
    launch = make_launch(
        """kernel void k(write_only image2d_t image, global const float4 *v) {
            int i = get_global_id(0); write_imagef(image, (int2)(i % 8, i / 8), v[i]); }""",
        f"image2d:{image_format}:8x8:constant(0)",
        "buffer:float32x4:64:uniform(-1.5,1.5)",
    )
    values = launch.args[1]
    assert isinstance(values, BufferArg)
    expected = encode_texels(values.array().reshape(-1, 4), ImageFormat.parse(image_format))
    found = execute(launch, optimise=optimise)[0]
    assert np.any(found) and np.array_equal(found, expected)


@pytest.mark.parametrize("optimise", [True, False])
def test_halves_are_what_floats_round_to(optimise: bool):
    """Functions of cl_khr_fp16: a half survives an image of floats, and a mean of texels is rounded to nearest even."""
    launch = make_launch(
        """#pragma OPENCL EXTENSION cl_khr_fp16 : enable
        kernel void k(read_only image2d_t a, write_only image2d_t b, sampler_t s, global ushort4 *h, global float4 *o) {
            size_t i = get_global_id(0);
            write_imageh(b, (int2)(i % 8, i / 8), as_half4(h[i]));
            float2 at = (float2)(i * 0.23f, i * 0.11f);
            h[i] = as_ushort4(read_imageh(a, s, at)); o[i] = read_imagef(a, s, at); }""",
        "image2d:rgba_float:8x8:uniform(-9,9)",
        "image2d:rgba_float:8x8:constant(0)",
        "sampler:clamp:linear",
        "buffer:uint16x4:64:uniform(0,31743)",
        "buffer:float32x4:64:constant(0)",
    )
    given = launch.args[3]
    assert isinstance(given, BufferArg)
    found = execute(launch, optimise=optimise)
    assert np.array_equal(found[1], given.array().view(np.float16).astype(np.float32))
    means = found[4]
    assert np.any(means.astype(np.float16).astype(np.float32) != means)
    assert np.array_equal(found[3].view(np.float16), means.astype(np.float16))


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_queries_and_reads_without_a_sampler(kind: str):
    size = {1: "5", 2: "5x3", 3: "5x3x2"}[IMAGE_KINDS[kind]]
    where = {1: "0", 2: "(int2)(0, 0)", 3: "(int4)(0, 0, 0, 0)"}[IMAGE_KINDS[kind]]
    has_height, is_array = kind in ("image2d", "image2d_array", "image3d"), kind.endswith("_array")
    launch = make_launch(
        f"""kernel void k(read_only {kind}_t image, global int *o) {{
            o[0] = get_image_width(image);
            o[1] = {"get_image_height(image)" if has_height else "-1"};
            o[2] = {"get_image_depth(image)" if kind == "image3d" else "-1"};
            o[3] = {"get_image_array_size(image)" if is_array else "-1"};
            o[4] = get_image_channel_data_type(image);
            o[5] = get_image_channel_order(image);
            o[6] = {"get_image_dim(image).y" if has_height else "-1"};
            o[7] = read_imagei(image, {where}).y;
        }}""",
        f"{kind}:rg_signed_int16:{size}:arange(7,4)",
        "buffer:int32:8:constant(0)",
        global_size=1,
        local_size=1,
    )
    layers = {"image1d_array": 3, "image2d_array": 2}.get(kind, -1)
    height = 3 if has_height else -1
    expected = [5, height, 2 if kind == "image3d" else -1, layers, 0x10D8, 0x10B2, height, 11]
    for optimise in (True, False):
        assert execute(launch, optimise=optimise)[1].tolist() == expected


@pytest.mark.parametrize(
    ("statement", "verb"),
    [
        ("write_imagef(image, (int2)(i - 1, 5), 0.0f)", "writes"),
        ("o[i] = read_imagef(image, (int2)(i - 1, 5)).x", "reads"),
    ],
)
def test_an_access_outside_is_reported_with_its_coordinates(statement: str, verb: str):
    access = "write_only" if verb == "writes" else "read_only"
    launch = make_launch(
        f"kernel void k({access} image2d_t image, global float *o) {{\n int i = get_global_id(0) + 8;\n"
        f" {statement}; }}",
        "image2d:r_float:70x6",
        "buffer:float32:200:constant(0)",
    )
    with pytest.raises(
        MemoryAccessError,
        match=rf"'k', work-group \(1,\), work-item 31 .*line 3 .*{verb} 4 bytes at coordinates \(70, 5\)",
    ):
        execute(launch)


def test_accesses_are_recorded_as_the_format_lies_in_memory():
    def sectors(image_format: str) -> float:
        launch = make_launch(
            """kernel void k(read_only image2d_t image, global float *o) {
                int i = get_global_id(0); o[i] = read_imagef(image, (int2)(i % 32, i / 32)).x; }""",
            f"image2d:{image_format}:32x2",
            "buffer:float32:64:constant(0)",
        )
        return trace_launch(launch).context.footprint_bytes

    assert sectors("r_unorm_int8") < sectors("rgba_float")


def test_images_and_samplers_survive_a_file(tmp_path):
    launch = read_launch_of("image2d", "sampler:repeat:linear:normalized")
    with h5py.File(tmp_path / "launch.h5", "w") as file:
        write_launch(file.create_group("launch"), launch)
    with h5py.File(tmp_path / "launch.h5") as file:
        assert read_launch(file["launch"]) == launch


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image2d:rgba_float:8", "takes 2 sizes"),
        ("image2d:rgba_int9:8x8", "unknown image format"),
        ("image2d:rgb_float:8x8", "goes with"),
        ("sampler:wrap:linear", "is no sampler"),
        ("sampler:clamp", "should be sampler:ADDRESSING:FILTER"),
    ],
)
def test_what_is_no_image_or_sampler_is_refused(text: str, message: str):
    with pytest.raises(LaunchError, match=message):
        parse_argument(text)


def test_an_image_of_another_kind_is_refused():
    with pytest.raises(LaunchError, match="give image1d"):
        execute(make_launch("kernel void k(read_only image1d_t a) {}", "image2d:r_float:4x4"))
