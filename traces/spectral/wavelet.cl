// Wavelets.
#ifndef TILE
#define TILE 256
#endif

// One level of the Haar transform: averages to the first half, details to the second.
__kernel void haar_level(__global const float2 *signal, __global float *out, uint half_n)
{
    uint i = get_global_id(0);
    if (i >= half_n)
        return;
    float2 pair = signal[i];
    out[i] = (pair.x + pair.y) * M_SQRT1_2_F;
    out[half_n + i] = (pair.x - pair.y) * M_SQRT1_2_F;
}

// All levels of the Haar transform of a tile in local memory; fewer work-items are busy at each level.
__kernel void haar_local(__global float *signal)
{
    __local float values[TILE];
    uint lane = get_local_id(0);
    __global float *tile = signal + get_group_id(0) * TILE;
    for (uint i = lane; i < TILE; i += TILE / 2)
        values[i] = tile[i];
    for (uint length = TILE / 2; length > 0; length /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        float average = 0.0f;
        if (lane < length) {
            float a = values[2 * lane];
            float b = values[2 * lane + 1];
            average = (a + b) * M_SQRT1_2_F;
            tile[length + lane] = (a - b) * M_SQRT1_2_F;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < length)
            values[lane] = average;
    }
    if (lane == 0)
        tile[0] = values[0];
}

// One level of the Haar transform of an image, 2 x 2 pixels a work-item, to four quadrants.
__kernel void haar_image(__global const float *image, __global float *out, uint width, uint height)
{
    uint x = get_global_id(0);
    uint y = get_global_id(1);
    uint half_width = width / 2;
    uint half_height = height / 2;
    if (x >= half_width || y >= half_height)
        return;
    float a = image[2 * y * width + 2 * x];
    float b = image[2 * y * width + 2 * x + 1];
    float c = image[(2 * y + 1) * width + 2 * x];
    float d = image[(2 * y + 1) * width + 2 * x + 1];
    out[y * width + x] = 0.5f * (a + b + c + d);
    out[y * width + half_width + x] = 0.5f * (a - b + c - d);
    out[(half_height + y) * width + x] = 0.5f * (a + b - c - d);
    out[(half_height + y) * width + half_width + x] = 0.5f * (a - b - c + d);
}

// One level of Daubechies' transform with four taps, periodic.
__kernel void daubechies_level(__global const float *signal, __global float *out, uint half_n)
{
    uint i = get_global_id(0);
    if (i >= half_n)
        return;
    const float h0 = 0.48296291f;
    const float h1 = 0.83651630f;
    const float h2 = 0.22414387f;
    const float h3 = -0.12940952f;
    uint after = i + 1 < half_n ? 2 * i + 2 : 0;
    float a = signal[2 * i];
    float b = signal[2 * i + 1];
    float c = signal[after];
    float d = signal[after + 1];
    out[i] = h0 * a + h1 * b + h2 * c + h3 * d;
    out[half_n + i] = h3 * a - h2 * b + h1 * c - h0 * d;
}

// Integer 5/3 lifting along rows; a group holds its row segment and halo in local memory.
__kernel void lifting_rows(__global const int *image, __global int *low, __global int *high, int half_width)
{
    __local int odd[129];
    int lane = get_local_id(0);
    int i = get_global_id(0);
    int first = get_group_id(0) * 128;
    __global const int *row = image + get_global_id(1) * 2 * half_width;
    for (int k = lane; k < 129; k += 128) {
        int at = clamp(first + k - 1, 0, half_width - 1);
        int after = min(at + 1, half_width - 1);
        odd[k] = row[2 * at + 1] - (row[2 * at] + row[2 * after]) / 2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < half_width) {
        low[get_global_id(1) * half_width + i] = row[2 * i] + (odd[lane] + odd[lane + 1] + 2) / 4;
        high[get_global_id(1) * half_width + i] = odd[lane + 1];
    }
}

// Integer 5/3 lifting along columns: one column a work-item walks down the image.
__kernel void lifting_columns(__global const int *image, __global int *out, int width, int half_height)
{
    int x = get_global_id(0);
    if (x >= width)
        return;
    int even = image[x];
    int detail = 0;
    for (int y = 0; y < half_height; ++y) {
        int odd = image[(2 * y + 1) * width + x];
        int after = y + 1 < half_height ? image[(2 * y + 2) * width + x] : even;
        int next_detail = odd - (even + after) / 2;
        if (y == 0)
            detail = next_detail;
        out[y * width + x] = even + (detail + next_detail + 2) / 4;
        out[(half_height + y) * width + x] = next_detail;
        detail = next_detail;
        even = after;
    }
}
