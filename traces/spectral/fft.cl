// Fast Fourier transforms in Stockham's order, which needs no reordering of the result.
#ifndef SIZE
#define SIZE 256
#endif

float2 multiply(float2 a, float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

float2 turn(float angle)
{
#ifdef NATIVE
    return (float2)(native_cos(angle), native_sin(angle));
#else
    return (float2)(cos(angle), sin(angle));
#endif
}

// One radix-2 stage in global memory; `done` is the length of the transforms so far.
__kernel void fft2_stage(__global const float2 *in, __global float2 *out, uint half_n, uint done)
{
    uint i = get_global_id(0);
    uint k = i & (done - 1);
    float2 a = in[i];
    float2 b = multiply(in[i + half_n], turn(-M_PI_F * k / done));
    uint j = 2 * i - k;
    out[j] = a + b;
    out[j + done] = a - b;
}

// The same stage with twiddle factors from a table of half_n entries.
__kernel void fft2_stage_table(
    __global const float2 *in, __global const float2 *twiddles, __global float2 *out, uint half_n, uint done)
{
    uint i = get_global_id(0);
    uint k = i & (done - 1);
    float2 a = in[i];
    float2 b = multiply(in[i + half_n], twiddles[k * (half_n / done)]);
    uint j = 2 * i - k;
    out[j] = a + b;
    out[j + done] = a - b;
}

// One radix-4 stage in global memory.
__kernel void fft4_stage(__global const float2 *in, __global float2 *out, uint quarter_n, uint done)
{
    uint i = get_global_id(0);
    uint k = i & (done - 1);
    float2 w1 = turn(-M_PI_2_F * k / done);
    float2 w2 = multiply(w1, w1);
    float2 a = in[i];
    float2 b = multiply(in[i + quarter_n], w1);
    float2 c = multiply(in[i + 2 * quarter_n], w2);
    float2 d = multiply(in[i + 3 * quarter_n], multiply(w1, w2));
    float2 even = a + c;
    float2 odd = a - c;
    float2 sum = b + d;
    float2 side = (float2)(b.y - d.y, d.x - b.x);
    uint j = 4 * i - 3 * k;
    out[j] = even + sum;
    out[j + done] = odd + side;
    out[j + 2 * done] = even - sum;
    out[j + 3 * done] = odd - side;
}

// A whole transform of SIZE points a group of SIZE / 4, by radix-2 stages between two halves of local memory.
__kernel void fft2_local(__global const float2 *in, __global float2 *out)
{
    __local float2 values[2 * SIZE];
    uint lane = get_local_id(0);
    uint base = get_group_id(0) * SIZE;
    for (uint i = lane; i < SIZE; i += SIZE / 4)
        values[i] = in[base + i];
    uint from = 0;
    for (uint done = 1; done < SIZE; done <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint to = SIZE - from;
        for (uint i = lane; i < SIZE / 2; i += SIZE / 4) {
            uint k = i & (done - 1);
            float2 a = values[from + i];
            float2 b = multiply(values[from + i + SIZE / 2], turn(-M_PI_F * k / done));
            uint j = to + 2 * i - k;
            values[j] = a + b;
            values[j + done] = a - b;
        }
        from = to;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < SIZE; i += SIZE / 4)
        out[base + i] = values[from + i];
}

// A whole transform of SIZE points (a power of 4) a group of SIZE / 4, by radix-4 stages in registers.
__kernel void fft4_local(__global const float2 *in, __global float2 *out)
{
    __local float2 values[SIZE];
    uint lane = get_local_id(0);
    uint base = get_group_id(0) * SIZE;
    float2 a = in[base + lane];
    float2 b = in[base + lane + SIZE / 4];
    float2 c = in[base + lane + SIZE / 2];
    float2 d = in[base + lane + SIZE / 4 * 3];
    for (uint done = 1; done < SIZE; done <<= 2) {
        uint k = lane & (done - 1);
        float2 w1 = turn(-M_PI_2_F * k / done);
        float2 w2 = multiply(w1, w1);
        b = multiply(b, w1);
        c = multiply(c, w2);
        d = multiply(d, multiply(w1, w2));
        float2 even = a + c;
        float2 odd = a - c;
        float2 sum = b + d;
        float2 side = (float2)(b.y - d.y, d.x - b.x);
        uint j = 4 * lane - 3 * k;
        barrier(CLK_LOCAL_MEM_FENCE);
        values[j] = even + sum;
        values[j + done] = odd + side;
        values[j + 2 * done] = even - sum;
        values[j + 3 * done] = odd - side;
        barrier(CLK_LOCAL_MEM_FENCE);
        a = values[lane];
        b = values[lane + SIZE / 4];
        c = values[lane + SIZE / 2];
        d = values[lane + SIZE / 4 * 3];
    }
    out[base + lane] = a;
    out[base + lane + SIZE / 4] = b;
    out[base + lane + SIZE / 2] = c;
    out[base + lane + SIZE / 4 * 3] = d;
}

// Eight points a work-item in registers; point k of transform i is at k * num_transforms + i.
__kernel void fft8_registers(__global float2 *values, uint num_transforms)
{
    uint i = get_global_id(0);
    if (i >= num_transforms)
        return;
    float2 v[8];
    for (uint k = 0; k < 8; ++k)
        v[k] = values[k * num_transforms + i];
    float2 t[8];
    for (uint k = 0; k < 4; ++k) {
        t[k] = v[k] + v[k + 4];
        t[k + 4] = v[k] - v[k + 4];
    }
    t[5] = multiply(t[5], (float2)(M_SQRT1_2_F, -M_SQRT1_2_F));
    t[6] = (float2)(t[6].y, -t[6].x);
    t[7] = multiply(t[7], (float2)(-M_SQRT1_2_F, -M_SQRT1_2_F));
    for (uint h = 0; h < 8; h += 4) {
        float2 even = t[h] + t[h + 2];
        float2 odd = t[h] - t[h + 2];
        float2 sum = t[h + 1] + t[h + 3];
        float2 difference = t[h + 1] - t[h + 3];
        float2 side = (float2)(difference.y, -difference.x);
        uint first = h / 4;
        values[first * num_transforms + i] = even + sum;
        values[(first + 2) * num_transforms + i] = odd + side;
        values[(first + 4) * num_transforms + i] = even - sum;
        values[(first + 6) * num_transforms + i] = odd - side;
    }
}

// A whole transform in global memory by one work-group, stage by stage; the result is in `a` after an even number.
__kernel void fft2_group(__global float2 *a, __global float2 *b, uint n)
{
    __global float2 *in = a;
    __global float2 *out = b;
    for (uint done = 1; done < n; done <<= 1) {
        for (uint i = get_local_id(0); i < n / 2; i += get_local_size(0)) {
            uint k = i & (done - 1);
            float2 first = in[i];
            float2 second = multiply(in[i + n / 2], turn(-M_PI_F * k / done));
            uint j = 2 * i - k;
            out[j] = first + second;
            out[j + done] = first - second;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        __global float2 *swap = in;
        in = out;
        out = swap;
    }
}
