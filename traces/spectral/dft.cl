// Discrete Fourier transforms from the definition.
#ifndef TILE
#define TILE 128
#endif

// One frequency a work-item, a sine and a cosine a term.
__kernel void dft_naive(__global const float *signal, __global float2 *spectrum, uint n)
{
    uint k = get_global_id(0);
    if (k >= n)
        return;
    float2 sum = (float2)(0.0f);
    for (uint t = 0; t < n; ++t) {
        float angle = -2.0f * M_PI_F * (k * t % n) / n;
        sum += signal[t] * (float2)(cos(angle), sin(angle));
    }
    spectrum[k] = sum;
}

// One frequency a work-item, the phase turned on by a complex product a term.
__kernel void dft_phasor(__global const float *signal, __global float2 *spectrum, uint n)
{
    uint k = get_global_id(0);
    if (k >= n)
        return;
    float angle = -2.0f * M_PI_F * k / n;
    float2 step = (float2)(cos(angle), sin(angle));
    float2 phase = (float2)(1.0f, 0.0f);
    float2 sum = (float2)(0.0f);
    for (uint t = 0; t < n; ++t) {
        sum += signal[t] * phase;
        phase = (float2)(phase.x * step.x - phase.y * step.y, phase.x * step.y + phase.y * step.x);
    }
    spectrum[k] = sum;
}

// The signal passes through local memory tile by tile, with native sines; TILE work-items a group.
__kernel void dft_tiled(__global const float2 *signal, __global float2 *spectrum, uint n)
{
    __local float2 tile[TILE];
    uint lane = get_local_id(0);
    uint k = get_global_id(0);
    float2 sum = (float2)(0.0f);
    for (uint base = 0; base < n; base += TILE) {
        tile[lane] = base + lane < n ? signal[base + lane] : (float2)(0.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint t = 0; t < TILE; ++t) {
            float angle = -2.0f * M_PI_F * (k * (base + t) % n) / n;
            float cosine = native_cos(angle);
            float sine = native_sin(angle);
            float2 value = tile[t];
            sum.x += value.x * cosine - value.y * sine;
            sum.y += value.x * sine + value.y * cosine;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (k < n)
        spectrum[k] = sum;
}

// Goertzel: the power at one frequency of one channel a work-item, a recurrence over the samples.
__kernel void goertzel(
    __global const float *samples, __global float *powers, uint num_samples, uint num_channels, float frequency_step)
{
    uint channel = get_global_id(0);
    uint bin = get_global_id(1);
    if (channel >= num_channels)
        return;
    float twice = 2.0f * cos(frequency_step * (bin + 1));
    float last = 0.0f;
    float before = 0.0f;
    for (uint t = 0; t < num_samples; ++t) {
        float next = samples[t * num_channels + channel] + twice * last - before;
        before = last;
        last = next;
    }
    powers[bin * num_channels + channel] = last * last + before * before - twice * last * before;
}

// Short-time transform: a group windows a frame of 256 samples in local memory; each work-item sums one bin.
__kernel void short_time(__global const float *samples, __global float *powers, uint hop)
{
    __local float frame[256];
    __local float2 circle[256];
    uint lane = get_local_id(0);
    uint frame_id = get_group_id(0);
    for (uint i = lane; i < 256; i += 128) {
        float angle = 2.0f * M_PI_F * i / 256;
        float2 point = (float2)(cos(angle), sin(angle));
        circle[i] = point;
        frame[i] = samples[frame_id * hop + i] * (0.5f - 0.5f * point.x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float2 sum = (float2)(0.0f);
    for (uint t = 0; t < 256; ++t)
        sum += frame[t] * circle[lane * t & 255];
    powers[frame_id * 128 + lane] = sum.x * sum.x + sum.y * sum.y;
}

// Clenshaw's recurrence: a Chebyshev series of num_terms coefficients at each point.
__kernel void clenshaw(
    __global const float *points, __constant float *coefficients, __global float *values, uint n, uint num_terms)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float x = points[i];
    float last = 0.0f;
    float before = 0.0f;
    for (uint k = num_terms - 1; k > 0; --k) {
        float next = coefficients[k] + 2.0f * x * last - before;
        before = last;
        last = next;
    }
    values[i] = coefficients[0] + x * last - before;
}

// Autocorrelation: a group of 128 sums the products at one lag and reduces them in local memory.
__kernel void autocorrelation(__global const float *signal, __global float *correlations, uint n)
{
    __local float sums[128];
    uint lane = get_local_id(0);
    uint lag = get_group_id(0);
    float sum = 0.0f;
    for (uint t = lane; t + lag < n; t += 128)
        sum += signal[t] * signal[t + lag];
    sums[lane] = sum;
    for (uint half_size = 64; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_size)
            sums[lane] += sums[lane + half_size];
    }
    if (lane == 0)
        correlations[lag] = sums[0];
}
