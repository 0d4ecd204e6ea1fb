from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

from perfvec.arch.replay import download, host_buffer, replay, upload
from perfvec.arguments import BufferArg, parse_argument
from perfvec.errors import KernelNotFoundError, LaunchError, OpenCLError, SourceError
from perfvec.initialisers import RANDOM_PERIOD
from perfvec.launch import Launch
from tests.opencl import pocl_device

SOURCE = """
__kernel void saxpy(__global float *y, __global const float *x, float a) {
  size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
__kernel void vectors(__global float *out, float3 v, int4 w, __local float *scratch) {
  size_t l = get_local_id(0);
  scratch[l] = l;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = v.x + 10 * v.y + 100 * v.z + w.w + scratch[get_local_size(0) - 1 - l] + EXTRA;
}
__kernel void ids(__global int *out, int width) {
  out[get_global_id(1) * width + get_global_id(0)] = get_group_id(1) * 100 + get_group_id(0);
}
"""


def launch(kernel: str, args: list[str], global_size, local_size, **more) -> Launch:
    return Launch(
        source=SOURCE,
        kernel_name=kernel,
        args=tuple(parse_argument(arg, position=i) for i, arg in enumerate(args)),
        global_size=global_size,
        local_size=local_size,
        build_options=("-DEXTRA=0.5f",),
        **more,
    )


SAXPY = ["buffer:float32:256:uniform(-1,1)", "buffer:float32:256", "float32:3"]


def test_saxpy_equals_numpy():
    job = launch("saxpy", SAXPY, (256,), (64,))
    y, x = (arg.array() for arg in job.args[:2] if isinstance(arg, BufferArg))
    result = replay(job, pocl_device())
    # One rounding of difference: the compiler may fuse multiply and add.
    np.testing.assert_allclose(result.outputs[0], np.float32(3) * x + y, rtol=1e-6, atol=1e-7)
    assert np.array_equal(result.outputs[1], x)
    assert result.kernel_time_s > 0


def test_vectors_local_memory_and_options():
    job = launch(
        "vectors", ["buffer:float32:64", "float32x3:1,2,3", "int32x4:0,0,0,7", "local:float32:32"], (64,), (32,)
    )
    expected = 1 + 20 + 300 + 7 + 0.5 + np.tile(np.arange(31, -1, -1), 2)
    assert replay(job, pocl_device()).outputs[0].tolist() == expected.tolist()


def test_two_dimensions_and_an_offset():
    job = launch("ids", ["buffer:int32:48:constant(-1)", "int32:8"], (4, 2), (2, 1), global_offset=(4, 1))
    out = replay(job, pocl_device()).outputs[0].reshape(6, 8)
    assert out[1:3, 4:].tolist() == [[0, 0, 1, 1], [100, 100, 101, 101]]
    out[1:3, 4:] = -1
    assert (out == -1).all()


@pytest.mark.parametrize(
    "text",
    [
        f"buffer:float32:{2 * RANDOM_PERIOD + 12345}:normal(0,1)",
        f"buffer:int32x4:{RANDOM_PERIOD}:indices(1000)",
        f"buffer:float32x3:{RANDOM_PERIOD // 2}:uniform(0,2)",
        f"buffer:uint8:{RANDOM_PERIOD + 1}:constant(7)",
        f"buffer:float64:{RANDOM_PERIOD + 5}:arange(0,1)",
        "buffer:uint8:3:uniform(0,255)",
    ],
)
def test_the_device_holds_what_the_recipe_says(text: str):
    arg = parse_argument(text, position=3)
    assert isinstance(arg, BufferArg)
    queue = cl.CommandQueue(cl.Context([pocl_device()]))
    contents = host_buffer(arg)
    assert np.array_equal(download(queue, upload(queue, contents), contents), arg.array())


def test_periodic_contents_travel_as_one_period():
    arg = parse_argument(f"buffer:float32x4:{RANDOM_PERIOD}:uniform(0,1)")
    assert isinstance(arg, BufferArg)
    assert host_buffer(arg).block.nbytes == 4 * RANDOM_PERIOD


def test_given_data_is_uploaded():
    arg = parse_argument("buffer:int32:4")
    assert isinstance(arg, BufferArg)
    given = BufferArg(
        element=arg.element, count=4, initialiser=arg.initialiser, data=np.array([4, 3, 2, 1], np.int32).tobytes()
    )
    assert host_buffer(given).block.tolist() == [4, 3, 2, 1]


def test_errors_say_what_is_wrong():
    device = pocl_device()
    broken = Launch(source="__kernel void f( {", kernel_name="f", args=(), global_size=(1,), local_size=(1,))
    with pytest.raises(SourceError, match=r"kernel\.cl does not compile for .* with no options(.|\n)*error"):
        replay(broken, device)
    with pytest.raises(KernelNotFoundError, match=r"no kernel 'sexpy'; it has ids, saxpy, vectors"):
        replay(launch("sexpy", SAXPY, (256,), (64,)), device)
    with pytest.raises(LaunchError, match="takes 3 arguments, found 2"):
        replay(launch("saxpy", SAXPY[:2], (256,), (64,)), device)
    with pytest.raises(LaunchError, match=r"argument 2: float64:3 does not fit its parameter"):
        replay(launch("saxpy", [*SAXPY[:2], "float64:3"], (256,), (64,)), device)
    with pytest.raises(LaunchError, match=r"argument 1: float32:1 does not fit its parameter"):
        replay(launch("saxpy", [SAXPY[0], "float32:1", "float32:3"], (256,), (64,)), device)


def test_a_refused_launch_is_explained():
    source = "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void f(__global int *a) { a[0] = 1; }"
    job = Launch(
        source=source, kernel_name="f", args=(parse_argument("buffer:int32:4"),), global_size=(16,), local_size=(16,)
    )
    with pytest.raises(OpenCLError, match=r"running kernel 'f' with 16 B of buffers on .* failed: .*WORK_GROUP_SIZE"):
        replay(job, pocl_device())
