"""Kernels built to be unlike every real one are flagged; ordinary kernels that the model has not seen are not."""

from __future__ import annotations

import logging

import pytest

from perfvec.apply.predicting import predict
from perfvec.arguments import parse_argument
from perfvec.launch import Launch

ARGUMENTS = ("buffer:float32:65536", "buffer:float32:65536:uniform(0,1)", "int32:65536")

ORDINARY = {
    "triad": "a[i] = b[i] + 3.0f * b[i];",
    "sum": "float s = 0; for (int j = 0; j < 64; ++j) s += b[(i + 256 * j) % n]; a[i] = s;",
}
STRANGE = {
    # Nothing but double-precision powers, thousands of them, one work-item in a thousand.
    "powers": "double x = b[i]; if (i % 1024 == 0) for (int j = 0; j < 3000; ++j) x = pow(fabs(x) + 1, 0.9); a[i] = x;",
    # Every work-item adds to one address, hundreds of times, and waits for its group each time.
    "queue": "for (int j = 0; j < 400; ++j) { atomic_inc((__global int *)a); barrier(CLK_GLOBAL_MEM_FENCE); }",
    # Fences and barriers, and no work at all.
    "fences": "for (int j = 0; j < 3000; ++j) { barrier(CLK_LOCAL_MEM_FENCE); mem_fence(CLK_GLOBAL_MEM_FENCE); }",
}


def launch(body: str) -> Launch:
    source = (
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
        f"__kernel void k(__global float *a, __global const float *b, int n) {{ int i = get_global_id(0); {body} }}"
    )
    return Launch(
        source=source,
        kernel_name="k",
        args=tuple(parse_argument(text, position=at) for at, text in enumerate(ARGUMENTS)),
        global_size=(65536,),
        local_size=(256,),
    )


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_kernel_is_flagged(name: str, front_end: None, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        predictions = predict(launch(STRANGE[name]), ["nvidia-h200", "amd-mi210"])
    assert [item.is_familiar for item in predictions] == [False, False]
    assert "unlike every launch that the model was trained on" in caplog.text


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_kernel_is_not(name: str, front_end: None, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        (prediction,) = predict(launch(ORDINARY[name]), ["nvidia-h200"])
    assert prediction.is_familiar and not caplog.text
    assert prediction.low_s < prediction.kernel_time_s < prediction.high_s
    assert (prediction.confidence, prediction.kind) == (0.8, "real")


def test_a_time_elsewhere_moves_the_prediction(front_end: None):
    kernel = launch(ORDINARY["sum"])
    names = ["nvidia-h200", "nvidia-rtx-3090"]
    alone = predict(kernel, names)
    told = predict(kernel, names, known_times={"nvidia-h200": 3 * alone[0].kernel_time_s})
    assert told[0].kernel_time_s == pytest.approx(3 * alone[0].kernel_time_s, rel=0.1)
    assert 1.5 < told[1].kernel_time_s / alone[1].kernel_time_s < 4
