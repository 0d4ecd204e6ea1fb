"""Small kernels, traced once, for the timing model's tests."""

from __future__ import annotations

from functools import cache

from perfvec.apply.tracing import trace
from perfvec.arguments import parse_argument
from perfvec.launch import Launch
from perfvec.trace_data import Trace

_SOURCES = {
    "copy": """kernel void k(global const float4 *a, global float4 *b) {
      size_t i = get_global_id(0); b[i] = a[i]; }""",
    "product": """kernel void k(global const float *a, global const float *b, global float *c, int n) {
      local float x[8][8], y[8][8];
      int i = get_local_id(0), j = get_local_id(1), row = get_global_id(1), column = get_global_id(0);
      float sum = 0;
      for (int t = 0; t < n / 8; t++) {
        x[j][i] = a[row * n + t * 8 + i]; y[j][i] = b[(t * 8 + j) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int m = 0; m < 8; m++) sum += x[j][m] * y[m][i];
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      c[row * n + column] = sum; }""",
    "histogram": """kernel void k(global const uint *a, global uint *bins, int n) {
      for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&bins[a[i] % 16]); }""",
    "divergent": """kernel void k(global const int *a, global float *b) {
      int i = get_global_id(0), n = a[i]; float x = i;
      for (int m = 0; m < n; m++) x = sqrt(x) + native_sin(x) / (m + 1.5f);
      b[i] = x; }""",
    "tree": """kernel void k(global const float *a, global float *b) {
      local float s[128]; int i = get_local_id(0);
      s[i] = a[get_global_id(0)];
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int m = 64; m > 0; m >>= 1) {
        if (i < m) s[i] += s[i + m];
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      if (i == 0) b[get_group_id(0)] = s[0]; }""",
    "chain": """kernel void k(global float *a, int n) {
      float x = a[get_global_id(0)];
      for (int i = 0; i < n; i++) x = fma(x, 1.5f, 0.25f);
      a[get_global_id(0)] = x; }""",
    "fma": """kernel void k(global float *a, int n) {
      float x = a[get_global_id(0)], y = x + 1, z = x + 2, w = x + 3;
      for (int i = 0; i < n; i++) {
        x = fma(x, 1.5f, 0.25f); y = fma(y, 1.5f, 0.25f); z = fma(z, 1.5f, 0.25f); w = fma(w, 1.5f, 0.25f);
        x = fma(x, 1.5f, 0.25f); y = fma(y, 1.5f, 0.25f); z = fma(z, 1.5f, 0.25f); w = fma(w, 1.5f, 0.25f);
        x = fma(x, 1.5f, 0.25f); y = fma(y, 1.5f, 0.25f); z = fma(z, 1.5f, 0.25f); w = fma(w, 1.5f, 0.25f);
        x = fma(x, 1.5f, 0.25f); y = fma(y, 1.5f, 0.25f); z = fma(z, 1.5f, 0.25f); w = fma(w, 1.5f, 0.25f);
      }
      a[get_global_id(0)] = x + y + z + w; }""",
    "chase": """kernel void k(global const int *next, global int *out, int n) {
      int at = 0;
      for (int i = 0; i < n; i++) at = next[at];
      out[0] = at; }""",
    "one_bin": """kernel void k(global int *bin) { atomic_inc(bin); }""",
    "column": """kernel void k(global const float *a, global float *b, int pitch) {
      b[get_global_id(0)] = a[get_global_id(0) * pitch]; }""",
    "conflicts": """kernel void k(global float *a, int step) {
      local float s[4096]; int i = get_local_id(0);
      float x = 0;
      for (int m = 0; m < 64; m++) { s[(i * step + m) & 4095] = x; x += s[(i * step + m + 1) & 4095]; }
      a[get_global_id(0)] = x; }""",
    "walk": """kernel void k(global const float *a, global float *b, int n) {
      float sum = 0; int i = get_global_id(0);
      for (int m = 0; m < n; m++) { sum += a[i * n + m]; b[i * n + m] = sum; } }""",
    "private": """kernel void k(global const int *a, global int *b, int n) {
      int s[64]; int i = get_global_id(0), x = a[i];
      for (int m = 0; m < 64; m++) s[m] = m * x;
      for (int m = 0; m < n; m++) { x = s[x & 63] + m; s[(x >> 3) & 63] = x; }
      b[i] = x; }""",
    "nothing": "kernel void k(global int *a) { }",
}
# Arguments, global size and local size where a test does not say.
_LAUNCHES: dict[str, tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]] = {
    "copy": (("buffer:float32x4:65536:uniform(0,1)", "buffer:float32x4:65536:constant(0)"), (65_536,), (256,)),
    "product": (
        (*["buffer:float32:16384:uniform(-1,1)"] * 2, "buffer:float32:16384:constant(0)", "int32:128"),
        (128, 128),
        (8, 8),
    ),
    "histogram": (
        ("buffer:uint32:65536:uniform(0,1000)", "buffer:uint32:16:constant(0)", "int32:65536"),
        (8192,),
        (64,),
    ),
    "divergent": (("buffer:int32:8192:uniform(0,40)", "buffer:float32:8192:constant(0)"), (8192,), (128,)),
    "walk": (
        ("buffer:float32:2097152:uniform(0,1)", "buffer:float32:2097152:constant(0)", "int32:64"),
        (32_768,),
        (64,),
    ),
    "private": (
        ("buffer:int32:65536:uniform(0,1000)", "buffer:int32:65536:constant(0)", "int32:50"),
        (65_536,),
        (128,),
    ),
    "tree": (("buffer:float32:65536:uniform(0,1)", "buffer:float32:512:constant(0)"), (65_536,), (128,)),
}


def make_launch(name: str, args: tuple[str, ...], global_size: tuple[int, ...], local_size: tuple[int, ...]) -> Launch:
    return Launch(
        source=_SOURCES[name],
        kernel_name="k",
        args=tuple(parse_argument(text, position=i) for i, text in enumerate(args)),
        global_size=global_size,
        local_size=local_size,
    )


@cache
def traced(
    name: str,
    args: tuple[str, ...] = (),
    global_size: tuple[int, ...] = (),
    local_size: tuple[int, ...] = (),
) -> Trace:
    """Trace of a kernel in its usual size, or with these arguments and sizes."""
    return trace(make_launch(name, *((args, global_size, local_size) if args else _LAUNCHES[name])))
