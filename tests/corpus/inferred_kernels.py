"""Small kernels with known answers: what each argument is, how large, and why that follows, written out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A kernel `k` with the arguments and roles that have to be inferred for it.

    Attributes:
        source: OpenCL C.
        args: Each argument as a string, without its seed.
        roles: Each argument's role.
        global_size: What is asked for.
        local_size: What is asked for; empty where it is to be chosen.
        global_offset: What has to be chosen.
        chosen: The local size that has to be chosen where none is asked for.
        demands: A part of each demand.
    """

    source: str
    args: tuple[str, ...]
    roles: tuple[str, ...]
    global_size: tuple[int, ...] = (256,)
    local_size: tuple[int, ...] = (64,)
    global_offset: tuple[int, ...] = (0,)
    chosen: tuple[int, ...] = ()
    demands: tuple[str, ...] = ()


_I = "int i = get_global_id(0);"
_XY = "int x = get_global_id(0), y = get_global_id(1);"
_F, _ZERO = "uniform(0,1)", "constant(0)"

KNOWN: dict[str, Known] = {
    "guarded": Known(
        source=f"kernel void k(global float* a, global float* b, int n) {{ {_I} if (i < n) b[i] = a[i]; }}",
        args=(f"buffer:float32:256:{_F}", f"buffer:float32:256:{_ZERO}", "int32:256"),
        roles=("input", "output", "size"),
    ),
    "early return": Known(  # i >= n - 1 returns: n - 1 >= 256
        source=f"kernel void k(global float* a, uint n) {{ {_I} if (i >= n - 1) return; a[i] *= 2.0f; }}",
        args=(f"buffer:float32:256:{_F}", "uint32:257"),
        roles=("input and output", "size"),
    ),
    "offset": Known(  # 255 + 3 is the last index
        source=f"kernel void k(global float* a, global float* b) {{ {_I} b[i] = a[i + 3]; }}",
        args=(f"buffer:float32:259:{_F}", f"buffer:float32:256:{_ZERO}"),
        roles=("input", "output"),
    ),
    "strided": Known(  # 4 * 255 + 1
        source=f"kernel void k(global int* a, global int* b) {{ {_I} b[i] = a[4 * i + 1]; }}",
        args=("buffer:int32:1022:indices(1022)", f"buffer:int32:256:{_ZERO}"),
        roles=("input", "output"),
    ),
    "shifts": Known(  # 255 << 2, and 255 >> 3 = 31
        source=f"kernel void k(global float* a, global float* b) {{ {_I} b[i << 2] = a[i >> 3]; }}",
        args=(f"buffer:float32:32:{_F}", f"buffer:float32:1021:{_ZERO}"),
        roles=("input", "output"),
    ),
    "halo": Known(  # i + 1 <= 256
        source=f"""kernel void k(global float* a, global float* b, int n) {{
            {_I} if (i > 0 && i < n - 1) b[i] = a[i - 1] + a[i + 1]; }}""",
        args=(f"buffer:float32:257:{_F}", f"buffer:float32:256:{_ZERO}", "int32:257"),
        roles=("input", "output", "size"),
    ),
    "halo without guard": Known(  # ids from 1 to 256
        source=f"kernel void k(global float* a, global float* b) {{ {_I} b[i] = a[i - 1]; }}",
        args=(f"buffer:float32:256:{_F}", f"buffer:float32:257:{_ZERO}"),
        roles=("input", "output"),
        global_offset=(1,),
    ),
    "halo 2D": Known(  # 34 x 18 with a border of one
        source=f"""kernel void k(global float* a, global float* b, int w, int h) {{
            {_XY} x++; y++; if (x >= w - 1 || y >= h - 1) return;
            b[y * w + x] = a[(y - 1) * w + x] + a[(y + 1) * w + x] + a[y * w + x - 1] + a[y * w + x + 1]; }}""",
        # the last read is at (17, 32), the last write at (16, 32)
        args=("buffer:float32:611:uniform(0,1)", "buffer:float32:577:constant(0)", "int32:34", "int32:18"),
        roles=("input", "output", "size", "size"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "rows": Known(
        source=f"""kernel void k(global float* a, int w, int h) {{
            {_XY} if (x < w && y < h) a[y * w + x] += 1.0f; }}""",
        args=(f"buffer:float32:512:{_F}", "int32:32", "int32:16"),
        roles=("input and output", "size", "size"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "transposed": Known(
        source=f"""kernel void k(global float* a, global float* b, int w, int h) {{
            {_XY} if (x < w && y < h) b[x * h + y] = a[y * w + x]; }}""",
        args=(f"buffer:float32:512:{_F}", f"buffer:float32:512:{_ZERO}", "int32:32", "int32:16"),
        roles=("input", "output", "size", "size"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "pitch": Known(  # no guard: rows of 32 side by side, 15 * 32 + 31
        source=f"kernel void k(global float* a, int pitch) {{ {_XY} a[y * pitch + x] = 1.0f; }}",
        args=(f"buffer:float32:512:{_ZERO}", "int32:32"),
        roles=("output", "pitch"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "volume": Known(  # 3 * 64 + 7 * 8 + 7
        source="""kernel void k(global float* a, int w, int h) {
            int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
            if (x < w && y < h) a[(z * h + y) * w + x] = z; }""",
        args=(f"buffer:float32:256:{_ZERO}", "int32:8", "int32:8"),
        roles=("output", "size", "size"),
        global_size=(8, 8, 4),
        local_size=(4, 4, 2),
        global_offset=(0, 0, 0),
    ),
    "matrix product": Known(  # m 16, n 32; a loop of 64
        source=f"""kernel void k(global float* a, global float* b, global float* c, int m, int n, int p) {{
            {_XY} if (y < m && x < n) {{ float s = 0.0f;
            for (int j = 0; j < p; j++) s += a[y * p + j] * b[j * n + x]; c[y * n + x] = s; }} }}""",
        args=(f"buffer:float32:1024:{_F}", f"buffer:float32:2048:{_F}", f"buffer:float32:512:{_ZERO}",
              "int32:16", "int32:32", "int32:64"),
        roles=("input", "input", "output", "size", "size", "trips"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "square matrix product": Known(  # one size, no guard: as long as a row of ids
        source=f"""kernel void k(global float* a, global float* b, global float* c, int n) {{
            {_XY} float s = 0.0f; for (int j = 0; j < n; j++) s += a[y * n + j] * b[j * n + x]; c[y * n + x] = s; }}""",
        args=(f"buffer:float32:9216:{_F}", f"buffer:float32:9216:{_F}", f"buffer:float32:9216:{_ZERO}", "int32:96"),
        roles=("input", "input", "output", "trips"),
        global_size=(96, 96),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "grid stride": Known(  # four rounds of 256
        source="""kernel void k(global float* a, uint n) {
            for (uint i = get_global_id(0); i < n; i += get_global_size(0)) a[i] = 0.0f; }""",
        args=(f"buffer:float32:1024:{_ZERO}", "uint32:1024"),
        roles=("output", "trips"),
    ),
    "group stride": Known(  # two elements for each work-item: group 3 begins at 384
        source="""kernel void k(global float* a, global float* b) {
            int i = get_group_id(0) * get_local_size(0) * 2 + get_local_id(0);
            b[get_global_id(0)] = a[i] + a[i + get_local_size(0)]; }""",
        args=(f"buffer:float32:512:{_F}", f"buffer:float32:256:{_ZERO}"),
        roles=("input", "output"),
    ),
    "reduction": Known(
        source="""kernel void k(global float* a, global float* b, local float* t) {
            int l = get_local_id(0); t[l] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);
            for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
              if (l < s) t[l] += t[l + s]; barrier(CLK_LOCAL_MEM_FENCE); }
            if (l == 0) b[get_group_id(0)] = t[0]; }""",
        args=(f"buffer:float32:256:{_F}", f"buffer:float32:4:{_ZERO}", "local:float32:64"),
        roles=("input", "output", "local"),
        demands=("get_local_size(0) must be a power of two",),
    ),
    "local pairs": Known(  # 2 * 63 + 1
        source="""kernel void k(global float* a, local float2* t) {
            int l = get_local_id(0); t[2 * l] = (float2)(l); t[2 * l + 1] = (float2)(1.0f);
            barrier(CLK_LOCAL_MEM_FENCE); a[get_global_id(0)] = t[l].x; }""",
        args=(f"buffer:float32:256:{_ZERO}", "local:float32x2:128"),
        roles=("output", "local"),
    ),
    "tile": Known(  # a tile that the program declares decides the local size
        source=f"""kernel void k(global float* a) {{
            local float t[8][8]; {_XY} t[get_local_id(1)][get_local_id(0)] = 1.0f; barrier(CLK_LOCAL_MEM_FENCE);
            a[y * 32 + x] = t[get_local_id(0)][get_local_id(1)]; }}""",
        args=(f"buffer:float32:1024:{_ZERO}",),
        roles=("output",),
        global_size=(32, 32),
        local_size=(),
        global_offset=(0, 0),
        chosen=(8, 8),
    ),
    "required local size": Known(
        source=f"""kernel __attribute__((reqd_work_group_size(32, 1, 1)))
            void k(global float* a) {{ {_I} a[i] = i; }}""",
        args=(f"buffer:float32:256:{_ZERO}",),
        roles=("output",),
        local_size=(),
        chosen=(32,),
        demands=("local size must be (32, 1, 1)",),
    ),
    "sparse rows": Known(  # 8 entries a row, columns of x as many as rows
        source=f"""kernel void k(global int* rows, global int* columns, global float* v, global float* x,
            global float* y) {{ {_I} float s = 0.0f;
            for (int j = rows[i]; j < rows[i + 1]; j++) s += v[j] * x[columns[j]]; y[i] = s; }}""",
        args=("buffer:int32:257:offsets(2048)", "buffer:int32:2048:indices(256)", f"buffer:float32:2048:{_F}",
              f"buffer:float32:256:{_F}", f"buffer:float32:256:{_ZERO}"),
        roles=("offsets", "index", "input", "input", "output"),
    ),
    "gather within what is reached": Known(  # b is reached up to 99, so indices stay below 100
        source=f"""kernel void k(global const int* p, global float* b, global float* c) {{
            {_I} c[i] = b[p[i]]; if (i < 100) b[i] = 0.0f; }}""",
        args=("buffer:int32:256:indices(100)", f"buffer:float32:100:{_F}", f"buffer:float32:256:{_ZERO}"),
        roles=("index", "input and output", "output"),
    ),
    "neighbour of an index": Known(  # p - 1 must not be negative
        source=f"""kernel void k(global const int* p, global float* b, global float* c) {{
            {_I} c[i] = b[p[i] - 1]; }}""",
        args=("buffer:int32:256:uniform(1,255)", f"buffer:float32:255:{_F}", f"buffer:float32:256:{_ZERO}"),
        roles=("index", "input", "output"),
    ),
    "indirect twice": Known(
        source=f"""kernel void k(global const ushort* p, global const ushort* q, global float* b) {{
            {_I} b[q[p[i]]] = 1.0f; }}""",
        args=("buffer:uint16:256:indices(256)", "buffer:uint16:256:indices(256)", f"buffer:float32:256:{_ZERO}"),
        roles=("index", "index", "output"),
    ),
    "histogram in local memory": Known(  # 16 bins
        source="""kernel void k(global const uchar* d, global int* out) {
            local int h[16]; int l = get_local_id(0); if (l < 16) h[l] = 0; barrier(CLK_LOCAL_MEM_FENCE);
            atomic_inc(&h[d[get_global_id(0)]]); barrier(CLK_LOCAL_MEM_FENCE);
            if (l < 16) atomic_add(&out[l], h[l]); }""",
        args=("buffer:uint8:256:indices(16)", "buffer:int32:16:constant(0)"),
        roles=("index", "output"),
    ),
    "masked": Known(  # any number will do
        source=f"""kernel void k(global const uint* d, global float* b) {{ {_I} b[d[i] & 15] = 1.0f; }}""",
        args=("buffer:uint32:256:indices(256)", f"buffer:float32:16:{_ZERO}"),
        roles=("index", "output"),
    ),
    "counter": Known(  # each work-item takes one place
        source=f"""kernel void k(global int* n, global int* out) {{ {_I} out[atomic_inc(n)] = i; }}""",
        args=("buffer:int32:1:constant(0)", "buffer:int32:256:constant(0)"),
        roles=("counter", "output"),
    ),
    "struct pointer": Known(  # 3 words each
        source=f"""typedef struct {{ int a; float b; float c; }} S;
            kernel void k(global S* s) {{ {_I} s[i].c = s[i].b; }}""",
        args=("buffer:float32:768:uniform(0,1)",),
        roles=("input and output",),
    ),
    "struct of indices": Known(  # the index is an integer, so the buffer is of integers
        source=f"""typedef struct {{ int at; float b; }} S;
            kernel void k(global S* s, global float* o) {{ {_I} o[s[i].at] = s[i].b; }}""",
        args=("buffer:int32:512:indices(256)", f"buffer:float32:256:{_ZERO}"),
        roles=("index", "output"),
    ),
    "struct by value": Known(
        source=f"""typedef struct {{ int w; int h; }} S;
            kernel void k(global float* a, S s) {{ {_XY} if (x < s.w && y < s.h) a[y * s.w + x] = 0.0f; }}""",
        args=(f"buffer:float32:512:{_ZERO}", "uint32x2:32,16"),
        roles=("output", "struct"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "vectors": Known(
        source=f"kernel void k(global float4* a, global float3* b) {{ {_I} b[i] = a[i + 1].xyz; }}",
        args=("buffer:float32x4:257:uniform(0,1)", "buffer:float32x3:256:constant(0)"),
        roles=("input", "output"),
    ),
    "vector of sizes": Known(
        source=f"kernel void k(global float* a, uint2 d) {{ {_XY} if (x < d.x && y < d.y) a[y * d.x + x] = 0.0f; }}",
        args=(f"buffer:float32:512:{_ZERO}", "uint32x2:32,16"),
        roles=("output", "size"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "vload": Known(  # 4 * 255 + 3
        source=f"kernel void k(global float* a, global float* b) {{ {_I} vstore2(vload4(i, a).xy, i, b); }}",
        args=("buffer:float32:1024:uniform(0,1)", "buffer:float32:512:constant(0)"),
        roles=("input", "output"),
    ),
    "bytes": Known(  # words in a buffer of bytes
        source=f"kernel void k(global uchar* a) {{ {_I} ((global int*)a)[i] = i; a[3] = 0; }}",
        args=("buffer:uint8:1024:constant(0)",),
        roles=("output",),
    ),
    "divided": Known(  # 16 is the square root of 256: 100 * 15 + 15
        source=f"kernel void k(global float* a, int w) {{ {_I} a[100 * (i / w) + i % w] = 0.0f; }}",
        args=(f"buffer:float32:1516:{_ZERO}", "int32:16"),
        roles=("output", "divisor"),
        demands=("w must not be 0",),
    ),
    "clamped": Known(
        source=f"kernel void k(global float* a, global float* b, int n) {{ {_I} b[i] = a[min(i + 1, n - 1)]; }}",
        args=(f"buffer:float32:257:{_F}", f"buffer:float32:256:{_ZERO}", "int32:257"),
        roles=("input", "output", "size"),
    ),
    "fixed loop": Known(  # 255 * 3 + 2
        source=f"kernel void k(global float* a) {{ {_I} for (int j = 0; j < 3; j++) a[i * 3 + j] = j; }}",
        args=(f"buffer:float32:768:{_ZERO}",),
        roles=("output",),
    ),
    "falling loop": Known(
        source=f"""kernel void k(global float* a, global float* b, int n) {{
            {_I} float s = 0.0f; for (int j = n - 1; j >= 0; j--) s += a[j]; b[i] = s; }}""",
        args=(f"buffer:float32:64:{_F}", f"buffer:float32:256:{_ZERO}", "int32:64"),
        roles=("input", "output", "trips"),
    ),
    "triangle": Known(
        source=f"""kernel void k(global float* a, global float* b) {{
            {_I} float s = 0.0f; for (int j = 0; j <= i; j++) s += a[j]; b[i] = s; }}""",
        args=(f"buffer:float32:256:{_F}", f"buffer:float32:256:{_ZERO}"),
        roles=("input", "output"),
    ),
    "moving pointer": Known(  # 8 rows of 256
        source=f"""kernel void k(global float* a, global float* b, int stride) {{
            {_I} float s = 0.0f; global float* p = a + i; for (int j = 0; j < 8; j++) {{ s += *p; p += stride; }}
            b[i] = s; }}""",
        args=(f"buffer:float32:2048:{_F}", f"buffer:float32:256:{_ZERO}", "int32:256"),
        roles=("input", "output", "pitch"),
    ),
    "added offset": Known(
        source=f"kernel void k(global float* a, int n, int from) {{ {_I} if (i < n) a[i + from] = 0.0f; }}",
        args=(f"buffer:float32:256:{_ZERO}", "int32:256", "int32:0"),
        roles=("output", "size", "offset"),
    ),
    "between": Known(
        source=f"kernel void k(global float* a, int low, int high) {{ {_I} if (i >= low && i < high) a[i] = 0.0f; }}",
        args=(f"buffer:float32:256:{_ZERO}", "int32:0", "int32:256"),
        roles=("output", "margin", "size"),
    ),
    "conditional place": Known(  # at most 16 places for each
        source=f"""kernel void k(global const float* a, global float* b) {{
            {_I} int n = 0; for (int j = 0; j < 16; j++) if (a[j] > 0.5f) b[i * 16 + n++] = j; }}""",
        args=(f"buffer:float32:16:{_F}", f"buffer:float32:4096:{_ZERO}"),
        roles=("input", "output"),
    ),
    "table": Known(  # 4 * 255 + 3
        source=f"""constant int t[4] = {{3, 1, 0, 2}};
            kernel void k(global float* a) {{ {_I} a[4 * i + t[i & 3]] = 0.0f; }}""",
        args=(f"buffer:float32:1024:{_ZERO}",),
        roles=("output",),
    ),
    "images": Known(
        source=f"""kernel void k(read_only image2d_t a, write_only image2d_t b, sampler_t s) {{
            {_XY} write_imagef(b, (int2)(y, x), read_imagef(a, s, (int2)(x, y))); }}""",
        args=("image2d:rgba_float:32x16:uniform(0,1)", "image2d:rgba_float:16x32:uniform(0,1)",
              "sampler:clamp_to_edge:nearest"),
        roles=("image", "image", "sampler"),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
    "image that knows its size": Known(
        source=f"""kernel void k(write_only image2d_t a) {{
            {_XY} if (x < get_image_width(a) && y < get_image_height(a))
            write_imageui(a, (int2)(x, y), (uint4)(7)); }}""",
        args=("image2d:rgba_unsigned_int32:32x16:indices(512)",),
        roles=("image",),
        global_size=(32, 16),
        local_size=(8, 8),
        global_offset=(0, 0),
    ),
}  # fmt: skip
