"""Kernels that use OpenCL C's corners, as launches by name. Each writes what it computed to its buffers."""

from __future__ import annotations

from perfvec.launch import Launch
from tests.program.launching import make_launch

INTS, FLOATS = "buffer:int32:64:uniform(-100,100)", "buffer:float32:64:uniform(-2,2)"
HALVES = "buffer:uint16:1400:uniform(0,31743)"  # bits of all finite ones that are not negative


def _vectors() -> dict[str, Launch]:
    """Vectors, and loads and stores of them."""
    kernels = {
        "float3": make_launch(
            """kernel void k(global float3 *a, global float *o) {
                int i = get_global_id(0); float3 v = a[i]; v.xy += v.z; a[i] = v.zyx; o[i] = dot(v, v); }""",
            "buffer:float32x3:64",
            FLOATS,
        ),
        "int16": make_launch(
            """kernel void k(global int16 *a) {
                int i = get_global_id(0); int16 v = a[i]; v.even = v.odd * 2; v.s3f = v.s0a;
                a[i] = v > 4 ? v : -v; }""",
            "buffer:int32x16:64",
        ),
        "small_elements": make_launch(
            """kernel void k(global char2 *a, global short8 *b, global uchar3 *c, global ulong4 *d) {
                int i = get_global_id(0); a[i] = a[i].yx + (char)3; b[i] = b[i] * b[i].s7;
                c[i] = c[i].zzx >> (uchar)1; d[i] = d[i] / (ulong)3; }""",
            "buffer:int8x2:64",
            "buffer:int16x8:64",
            "buffer:uint8x3:64",
            "buffer:uint64x4:64",
        ),
        "comparisons": make_launch(
            """kernel void k(global float4 *a, global int *o) {
                int i = get_global_id(0); int4 m = a[i] > 0.5f;
                o[i] = any(m) + 2 * all(m) + (m.x & m.y)
                     + ((a[i].x > a[i].y && a[i].z < 0.3f) || !(a[i].w > 0.2f)); }""",
            "buffer:float32x4:64",
            INTS,
        ),
        "selections": make_launch(
            """kernel void k(global float8 *a, global int8 *b) {
                int i = get_global_id(0); float8 x = a[i]; int8 m = x < 0.5f; b[i] = m + 1;
                a[i] = select(x, -x, m) + fmin(x, (float8)(0.2f)) + (x.s0 > 0 ? x : x.s76543210); }""",
            "buffer:float32x8:64",
            "buffer:int32x8:64",
        ),
        "element_by_pointer": make_launch(
            """kernel void k(global int4 *a, global int *o) {
                int i = get_global_id(0); int4 v = a[i]; int *p = (int *)&v;
                p[i & 3] += 5; o[i] = p[(i + 1) & 3]; a[i] = v; }""",
            "buffer:int32x4:64",
            INTS,
        ),
        "shuffles": make_launch(
            """kernel void k(global int4 *a) {
                int i = get_global_id(0); uint4 m = (uint4)(i, i + 1, 3, 2);
                a[i] = shuffle(a[i], m) + shuffle2(a[i], a[i] + 1, m + 4u); }""",
            "buffer:int32x4:64",
        ),
    }
    for w in (2, 3, 4, 8, 16):
        kernels[f"vload{w}"] = make_launch(
            f"""kernel void k(global float *o, global const char *c, local short *t, global double *d) {{
                int i = get_global_id(0), l = get_local_id(0); short p[{w * 2}];
                float{w} v = vload{w}(i, o); char{w} q = vload{w}(i, c);
                vstore{w}(convert_short{w}(q), 1, p); vstore{w}(convert_short{w}(q), l, t);
                short{w} r = vload{w}(l, t) + vload{w}(1, p);
                vstore{w}(convert_double{w}(r), i, d); vstore{w}(v * 2.f, i, o); }}""",
            f"buffer:float32:{64 * w}",
            f"buffer:int8:{64 * w}",
            f"local:int16:{32 * w}",
            f"buffer:float64:{64 * w}",
        )
    return kernels


def _halves() -> dict[str, Launch]:
    """The halves' bits are compared: their rounding is exact."""
    return {
        "halves": make_launch(
            """kernel void k(global float *o, global half *h) {
                int i = get_global_id(0); o[i] = vload_half(i, h) * (i & 1 ? -3 : 3); float4 v = vload_half4(i, h + 64);
                vstore_half(o[i] * 3, i, h + 320); vstore_half4(v * 0.3f, i, h + 400);
                vstore_half_rte(o[i] * 1.7f, i, h + 700); vstore_half_rtz(o[i] * 1.7f, i, h + 800);
                vstore_half_rtp(o[i] * 1.7f, i, h + 900); vstore_half_rtn(o[i] * 1.7f, i, h + 1000);
                vstorea_half4(v, i, h + 1100); float4 q = vloada_half4(i, h + 1100); o[64 + i] = q.y; }""",
            "buffer:float32:128",
            HALVES,
        ),
        "halves_of_doubles": make_launch(
            """kernel void k(global double *o, global half *h) {
                int i = get_global_id(0); vstore_half(o[i] * 3, i, h); vstore_half_rtz(o[i] * 1.7, i, h + 800);
                vstore_half2((double2)(o[i], o[i] * 1e6), i, h + 64); }""",
            "buffer:float64:128",
            HALVES,
        ),
    }


def _aggregates() -> dict[str, Launch]:
    return {
        "structs": make_launch(
            """typedef struct { int a; float b[3]; char c; double d; } S;
            kernel void k(global S *s) {
                int i = get_global_id(0); S t = s[i]; t.a += i; t.b[i % 3] = t.b[(i + 1) % 3] * 2;
                t.c++; t.d = t.a; s[63 - i] = t; }""",
            "buffer:uint8:2048:constant(1)",
            global_size=32,
        ),
        "packed": make_launch(
            """typedef struct __attribute__((packed)) { char a; int b; short c; double d; } S;
            kernel void k(global S *s) {
                int i = get_global_id(0); s[i].b = s[i].a + i; s[i].d = s[i].b * 0.5; s[i].c++; }""",
            "buffer:uint8:960",
        ),
        "struct_by_value": make_launch(
            """typedef struct { int a; float4 b; char c[7]; int e[4]; } S;
            kernel void k(global float *o, const S s, int z) {
                int i = get_global_id(0); o[i] = s.a + s.b.z + s.c[i % 7] + s.e[i & 3] + z; }""",
            FLOATS,
            "uint32x16:7,0,0,0,1065353216,1073741824,1077936128,1082130432,67305985,5,6,7,8,9,10,11",
            "int32:9",
        ),
        "struct_returned": make_launch(
            """typedef struct { int a; float b[5]; } S;
            S f(int x) { S s; s.a = x; for (int j = 0; j < 5; j++) s.b[j] = x * j; return s; }
            S g(S s) { s.a++; s.b[2] = 7; return s; }
            kernel void k(global float *o) { int i = get_global_id(0); S s = g(f(i)); o[i] = s.a + s.b[i % 5]; }""",
            FLOATS,
        ),
        "large_struct": make_launch(
            """typedef struct { int v[300]; } S;
            kernel void k(global S *s) { int i = get_global_id(0);
                S t = s[i & 1]; t.v[i] = i + t.v[299]; s[2 + i] = t; }""",
            "buffer:int32:3000",
            global_size=8,
            local_size=8,
        ),
        "union": make_launch(
            """typedef union { float f; uint u; uchar c[4]; short2 s; } U;
            kernel void k(global float *o, global uint *p) {
                int i = get_global_id(0); U u; u.f = o[i]; u.c[i & 3] ^= 1; p[i] = u.u + u.s.x; o[i] = u.f; }""",
            FLOATS,
            "buffer:uint32:64",
        ),
    }


def _memories() -> dict[str, Launch]:
    """Private, local and constant memory, pointers."""
    return {
        "private_array": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), a[17]; for (int j = 0; j < 17; j++) a[j] = j * j;
                for (int j = 0; j < i; j++) a[(j * 7) % 17] += a[(j + i) % 17]; o[i] = a[i % 17]; }""",
            INTS,
        ),
        "array_shifted": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), a[40]; for (int j = 0; j < 40; j++) a[j] = j * i;
                for (int r = 0; r < i % 5 + 1; r++) for (int j = 0; j < 39; j++) a[j] = a[j + 1];
                o[i] = a[3] + a[i % 40]; }""",
            INTS,
        ),
        "pointers_in_array": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}; int *p[3];
                p[0] = a; p[1] = b; p[2] = (i & 1) ? a + 1 : b; o[i] = p[i % 3][i & 1] + (p[2] == a + 1); }""",
            INTS,
        ),
        "pointer_to_local": make_launch(
            """kernel void k(global int *o) {
                local int a[32], b[32]; int l = get_local_id(0), i = get_global_id(0); a[l] = i; b[l] = -i;
                barrier(CLK_LOCAL_MEM_FENCE); local int *p = (o[i] & 1) ? a : b; o[i] = p[31 - l] + (p == a); }""",
            INTS,
        ),
        "local_arguments": make_launch(
            """kernel void k(global int *o, local int *t, local float4 *u) {
                int l = get_local_id(0), i = get_global_id(0); t[l] = i; u[l] = (float4)(i);
                barrier(CLK_LOCAL_MEM_FENCE); o[i] = t[31 - l] + (int)u[(l + 1) % 32].y; }""",
            INTS,
            "local:int32:32",
            "local:float32x4:32",
        ),
        "local_structs": make_launch(
            """typedef struct { int a; float b; } S;
            kernel void k(global int *o) {
                local S t[32]; local int2 q[32]; int l = get_local_id(0); t[l].a = l; t[l].b = l * 2; q[l].y = l;
                barrier(CLK_LOCAL_MEM_FENCE);
                o[get_global_id(0)] = t[31 - l].a + (int)t[(l + 1) % 32].b + q[31 - l].y; }""",
            INTS,
        ),
        "local_2d": make_launch(
            """kernel void k(global float *o) {
                local float t[8][9]; int x = get_local_id(0), y = get_local_id(1); t[y][x] = o[y * 8 + x];
                barrier(CLK_LOCAL_MEM_FENCE); o[y * 8 + x] = t[x][y]; }""",
            FLOATS,
            global_size=(8, 8),
            local_size=(8, 8),
        ),
        "constant_tables": make_launch(
            """typedef struct { char c; int2 v; } S;
            constant float t[5] = {1, 2, 3, 4, 5}; constant int u[2][3] = {{1, 2, 3}, {4, 5, 6}};
            constant S s[2] = {{1, (int2)(2, 3)}, {4, (int2)(5, 6)}}; constant char w[] = "hello\\n\\0x";
            kernel void k(global float *o, constant int *c) {
                int i = get_global_id(0); constant int *p = (i & 2) ? u[0] : u[1];
                o[i] = t[i % 5] + u[i & 1][i % 3] + s[i & 1].v.y + s[i & 1].c + w[i % 8] + c[i] + p[i % 3]; }""",
            FLOATS,
            INTS,
        ),
        "volatile_local": make_launch(
            """kernel void k(global int *o) {
                volatile local int t[32]; int l = get_local_id(0); t[l] = l; t[l] += 1;
                o[get_global_id(0)] = t[l]; }""",
            INTS,
        ),
    }


def _control() -> dict[str, Launch]:
    """Branches, loops, barriers, calls."""
    return {
        "switch": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), r;
                switch (i % 7) { case 0: case 3: case 5: r = o[i]; break; case 1: r = 7; break;
                                 case 2: r = i * 3; break; default: r = -1; } o[i] = r; }""",
            INTS,
        ),
        "switch_of_constants": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), r;
                switch (i % 12) { case 0: r = 12; break; case 1: r = 93; break; case 2: r = 14; break;
                                  case 3: r = -5; break; case 4: r = 88; break; case 5: r = 1000; break;
                                  case 6: r = 4; break; case 7: r = 9; break; default: r = 0; } o[i] = r; }""",
            INTS,
        ),
        "switch_falls_through": make_launch(
            """kernel void k(global long *o) {
                int i = get_global_id(0); long r = 0;
                switch ((long)i << 33) { case 1L << 33: r += 1; case 5L << 33: r += 10; break; case 7L << 33: r = 3;
                                         default: r += i; } o[i] = r; }""",
            "buffer:int64:64",
        ),
        "goto": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), n = 0;
                a: n += i + 1; if (n < 50) { if (n & 1) goto b; n++; goto a; } else goto c;
                b: n += 3; if (n < 70) goto a;
                c: o[i] = n + (i == 0); }""",
            INTS,
        ),
        "two_entries": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), n = i, c = 0; if (i & 1) goto b;
                a: n += 3; c++; if (n > 100) goto e;
                b: n = (n * 2 + 5) % 211; c += 10; if (n > 200 || c > 300) goto e; if (n % 3) goto a; n++; goto b;
                e: o[i] = n + c; }""",
            INTS,
        ),
        "nested_loops": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0), s = 0;
                for (int a = 0; a < i; a++) {
                    if (a == 17) break;
                    for (int b = a; b < 20; b++) {
                        if ((a + b) % 3 == 0) continue;
                        if (b > 15) break;
                        int c = b;
                        while (c > 0) { s += c; c /= 2; if (c == 3) break; do { s ^= a; c--; } while (c > 10); }
                    }
                    if (s > 1000) return;
                } o[i] = s; }""",
            INTS,
        ),
        "swapped_in_loop": make_launch(
            """kernel void k(global int *o, int n) {
                int i = get_global_id(0), a = i, b = i * i;
                for (int j = 0; j < n + (i & 3); j++) { int t = a; a = b; b = t + 1; } o[i] = a * 1000 + b; }""",
            INTS,
            "int32:7",
        ),
        "early_return": make_launch(
            """kernel void k(global int *o) {
                int i = get_global_id(0); if (i > 40) return; if (i % 3 == 0) { o[i] = -1; return; } o[i] = i; }""",
            INTS,
        ),
        "grid_stride": make_launch(
            """kernel void k(global int *o, ulong n) {
                size_t s = 0; for (size_t j = get_global_id(0); j < n; j += get_global_size(0)) s += j;
                o[get_global_id(0)] = (int)s; }""",
            INTS,
            "uint64:1000",
        ),
        "barriers_in_loop": make_launch(
            """kernel void k(global int *o, local int *t, int n) {
                int i = get_global_id(0), l = get_local_id(0), z = get_local_size(0); t[l] = o[i];
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int j = 0; j < n; j++) {
                    int v = t[(l + j) % z]; barrier(CLK_LOCAL_MEM_FENCE); t[l] += v; barrier(CLK_LOCAL_MEM_FENCE); }
                o[i] = t[l]; }""",
            "buffer:int32:150:uniform(-100,100)",
            "local:int32:50",
            "int32:9",
            global_size=150,
            local_size=50,
        ),
        "helpers": make_launch(
            """int f(int x) { return x * 3 + 1; } inline int g(int x) { if (x & 1) return f(x); return x / 2; }
            kernel void h(global int *o, int v) { o[get_global_id(0)] += v; }
            kernel void k(global int *o) { int i = get_global_id(0); h(o, g(i)); h(o, f(g(i + 7))); }""",
            INTS,
        ),
        "names": make_launch(
            """kernel void k(global int *ctx, global int *pv, int ccc, int returned, int writable, int row) {
                int i = get_global_id(0), lane = pv[i];
                ctx[i] = max(returned, min(i, writable)) + lane * ccc + row; }""",
            INTS,
            INTS,
            "int32:5",
            "int32:6",
            "int32:40",
            "int32:2",
        ),
        "relaxed_math": make_launch(
            """kernel void k(global float *o, int n) {
                int i = get_global_id(0); float s = 0;
                for (int j = 0; j < n + i; j++) { if (s > 100) s = s * 0.5f; else s += i * j; } o[i] = s; }""",
            FLOATS,
            "int32:20",
            build_options=("-cl-fast-relaxed-math",),
        ),
    }


def _scalars() -> dict[str, Launch]:
    return {
        "doubles": make_launch(
            """kernel void k(global double *o, global float *f) {
                int i = get_global_id(0); double x = fabs(o[i]);
                o[i] = sqrt(x) * fma(x, x, 1.0) + (double)f[i] / 3.0 - fmod(x * 10, 0.7); f[i] = (float)x; }""",
            "buffer:float64:64",
            FLOATS,
        ),
        "conversions": make_launch(
            """kernel void k(global char *c, global ushort *s, global long *l, global float *f) {
                int i = get_global_id(0); c[i] = (char)(c[i] * 7 + s[i]); s[i] = (ushort)(s[i] >> 3 ^ l[i]);
                l[i] = (long)f[i] * 3 - c[i];
                f[i] = (float)l[i] + (bool)(i & 4) + convert_uchar_sat(f[i] * 300.f); }""",
            "buffer:int8:64",
            "buffer:uint16:64",
            "buffer:int64:64",
            "buffer:float32:64:uniform(0,90)",
        ),
        "wide_products": make_launch(
            """kernel void k(global long *o) {
                int i = get_global_id(0); o[i] = mul_hi(o[i] * 12345678912345L, (o[i] + 3) * 987654321987654321L); }""",
            "buffer:int64:64",
        ),
        "bit_tricks": make_launch(
            """kernel void k(global uint *o) {
                uint i = get_global_id(0), x = o[i] * 2654435761u, c = 0, y = x, r = 0; while (y) { c++; y &= y - 1; }
                for (int b = 0; b < 32; b++) r |= ((x >> b) & 1) << (31 - b);
                o[i] = c + r + ((x << 7) | (x >> 25)) + min(x, 77u) + (x < c ? 1 : x > c ? 2 : 3) + abs((int)x)
                     + rotate(x, i) + popcount(x) + clz(x); }""",
            "buffer:uint32:64",
        ),
        "float_tricks": make_launch(
            """kernel void k(global float *o, global int *e) {
                int i = get_global_id(0), q; float x = o[i] - 0.5f, whole;
                o[i] = ldexp(frexp(x, &q), 3) + fabs(x) + copysign(1.f, x) + fmin(x, 0.1f) + trunc(x * 10) + rint(x * 9)
                     + round(x * 8) + floor(x * 3) + ceil(x) + fract(x, &whole) + whole + isnormal(x);
                e[i] = q + signbit(x) + (x != x) + isnan(x) + 4 * isinf(x) + 8 * isfinite(x); }""",
            FLOATS,
            INTS,
        ),
        "division_by_zero": make_launch(
            """kernel void k(global int *o, int z, global char *c, char m) {
                int i = get_global_id(0); int q = 5 / (i - z) + 7 % (i - z) + (int)(9u / (uint)(i - z));
                o[i] = i == z ? 0 : q; char d = (char)(c[i] / m); c[i] = c[i] == -128 ? 0 : d; }""",
            INTS,
            "int32:3",
            "buffer:int8:64:arange(-128,1)",
            "int8:-1",
        ),
    }


def _work_items() -> dict[str, Launch]:
    """NDRanges, atomics, copies, kernels that do little."""
    return {
        "ndrange_3d": make_launch(
            """kernel void k(global int *o) {
                int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
                int ox = get_global_offset(0), oy = get_global_offset(1), oz = get_global_offset(2);
                int id = ((z - oz) * get_global_size(1) + (y - oy)) * get_global_size(0) + x - ox;
                o[id] = x + 100 * y + 10000 * z + get_local_id(0) * 3 + get_local_id(1) * 5 + get_local_id(2) * 7
                      + get_group_id(0) + get_group_id(1) * 11 + get_group_id(2) * 13 + get_num_groups(1)
                      + get_local_size(2) + get_work_dim(); }""",
            "buffer:int32:480",
            global_size=(10, 6, 8),
            local_size=(5, 3, 2),
            global_offset=(3, 0, 9),
        ),
        "atomics": make_launch(
            """kernel void k(global int *o, global uint *p) {
                local int a[8]; local uint b[4]; int i = get_global_id(0), l = get_local_id(0);
                if (l < 8) a[l] = 0; if (l < 4) b[l] = l == 2 ? 9 : 1; barrier(CLK_LOCAL_MEM_FENCE);
                atomic_add(&a[0], i); atomic_sub(&a[1], i); atomic_min(&a[2], -i); atomic_max(&a[3], i);
                atomic_and(&a[4], i); atomic_or(&a[5], i); atomic_xor(&a[6], i); atomic_inc(&a[7]);
                atomic_dec(&b[0]); atomic_min(&b[1], i); atomic_max(&b[2], i); atomic_cmpxchg(&b[3], 1, 7);
                atomic_add(&o[0], i); atomic_sub(&o[1], i); atomic_min(&o[2], i - 9); atomic_max(&o[3], i);
                atomic_and(&o[4], ~(1 << (i % 32))); atomic_or(&o[5], 1 << (i % 32)); atomic_xor(&o[6], i * i);
                atomic_inc(&o[7]); atomic_dec(&o[8]); atomic_cmpxchg(&o[9], 3, 44); atomic_xchg(&o[10], 5);
                atomic_min(&p[0], i - 5); atomic_max(&p[1], i - 5); atomic_add(&p[2], i); barrier(CLK_LOCAL_MEM_FENCE);
                if (l < 8) o[32 + l] = a[l]; if (l < 4) o[40 + l] = b[l]; }""",
            "buffer:int32:64:constant(3)",
            "buffer:uint32:64",
            global_size=32,
        ),
        "atomic_results": make_launch(
            """kernel void k(global int *o, global float *f) {
                local int c; int l = get_local_id(0), i = get_global_id(0); if (l == 0) c = 0;
                barrier(CLK_LOCAL_MEM_FENCE); o[get_group_id(0) * 32 + atomic_inc(&c)] = 7;
                f[i] = atomic_xchg(&f[i], 1.5f * i) + 1; }""",
            INTS,
            FLOATS,
        ),
        "async_copies": make_launch(
            """kernel void k(global float4 *o, local float4 *t, global int *p, local int *q, global float *z) {
                int l = get_local_id(0), g = get_group_id(0); event_t e[2], f; local int r[40]; local float s[64];
                e[0] = async_work_group_copy(t, o + g * 32, 32, 0);
                e[1] = async_work_group_strided_copy(q, p, 32, 3, e[0]); wait_group_events(2, e);
                o[get_global_id(0)] = t[31 - l]; r[l] = q[31 - l]; barrier(CLK_LOCAL_MEM_FENCE);
                f = async_work_group_strided_copy(p + 200 + 100 * g, r, 20, 2, 0);
                f = async_work_group_copy(o + 100 + g * 64, (local const float4 *)t, 32, f); wait_group_events(1, &f);
                f = async_work_group_copy((local float3 *)s, (global const float3 *)z, 16, 0);
                wait_group_events(1, &f); z[64 + get_global_id(0)] = s[l]; }""",
            "buffer:float32x4:300",
            "local:float32x4:32",
            "buffer:int32:500",
            "local:int32:32",
            "buffer:float32:200",
        ),
        "odd_group": make_launch(
            """kernel void k(global int *o) { o[get_global_id(0)] = get_local_id(0) * 1000 + get_group_id(0); }""",
            "buffer:int32:148",
            global_size=148,
            local_size=37,
        ),
        "no_arguments": make_launch("kernel void k(void) { int x = get_global_id(0); x++; }"),
        "empty": make_launch("kernel void k(global int *o) { return; }", INTS),
        "printf": make_launch(
            """kernel void k(global int *o) { int i = get_global_id(0);
                if (o[i] > 1000) printf("%d", i); o[i] = i; }""",
            INTS,
        ),
    }


def odd_kernels() -> dict[str, Launch]:
    """All of them."""
    parts = (_vectors, _halves, _aggregates, _memories, _control, _scalars, _work_items)
    return {name: launch for part in parts for name, launch in part().items()}
