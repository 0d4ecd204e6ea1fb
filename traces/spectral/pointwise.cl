// Pieces of fast convolution and spectral methods.

// Product of two spectra.
__kernel void spectrum_multiply(__global const float2 *a, __global const float2 *b, __global float2 *c, uint n)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float2 x = a[i];
    float2 y = b[i];
    c[i] = (float2)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

// Product added to a sum in place, two complex numbers a vector, by few work-items that stride over the spectrum.
__kernel void spectrum_accumulate(__global const float4 *a, __global const float4 *b, __global float4 *sum, uint n)
{
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        float4 x = a[i];
        float4 y = b[i];
        sum[i] += x.xxzz * y + (float4)(-1.0f, 1.0f, -1.0f, 1.0f) * x.yyww * y.yxwz;
    }
}

// Phase correlation: the cross spectrum divided by its magnitude.
__kernel void phase_correlate(__global const float2 *a, __global float2 *b, uint n)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float2 x = a[i];
    float2 y = b[i];
    float2 cross_power = (float2)(x.x * y.x + x.y * y.y, x.y * y.x - x.x * y.y);
    b[i] = cross_power / (hypot(cross_power.x, cross_power.y) + 1e-12f);
}

// Poisson's equation in frequency space: divides by the eigenvalue of the five-point Laplacian.
__kernel void poisson_divide(__global float2 *spectrum, int width, int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    float eigenvalue = 2.0f * cospi(2.0f * x / width) + 2.0f * cospi(2.0f * y / height) - 4.0f;
    spectrum[y * width + x] *= x + y > 0 ? 1.0f / eigenvalue : 0.0f;
}

// Reorders values by the bits of their index reversed.
__kernel void bit_reverse(__global const float2 *in, __global float2 *out, uint num_bits)
{
    uint i = get_global_id(0);
    uint r = i;
    r = (r >> 1 & 0x55555555u) | (r & 0x55555555u) << 1;
    r = (r >> 2 & 0x33333333u) | (r & 0x33333333u) << 2;
    r = (r >> 4 & 0x0f0f0f0fu) | (r & 0x0f0f0f0fu) << 4;
    r = (r >> 8 & 0x00ff00ffu) | (r & 0x00ff00ffu) << 8;
    r = r >> 16 | r << 16;
    out[r >> (32 - num_bits)] = in[i];
}

// Cepstrum's middle step: the logarithm of each magnitude.
__kernel void log_magnitude(__global const float2 *spectrum, __global float *out, uint n, float floor_power)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float2 v = spectrum[i];
    out[i] = 0.5f * log(fmax(v.x * v.x + v.y * v.y, floor_power));
}
