// Discrete cosine transform of 8 x 8 blocks of an image.

// One coefficient a work-item: 64 terms with a cosine each.
__kernel void dct_naive(__global const float *image, __global float *out, int width)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    int u = x & 7;
    int v = y & 7;
    __global const float *block = image + (y - v) * width + (x - u);
    float sum = 0.0f;
    for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 8; ++i)
            sum += block[j * width + i] * cospi((2 * i + 1) * u / 16.0f) * cospi((2 * j + 1) * v / 16.0f);
    float scale = (u ? 0.5f : 0.5f * M_SQRT1_2_F) * (v ? 0.5f : 0.5f * M_SQRT1_2_F);
    out[y * width + x] = scale * sum;
}

// A group of 8 x 8 a block: rows, then columns, through local memory with a table of cosines.
__kernel void dct_local(__global const float *image, __global float *out, int width)
{
    __local float pixels[64];
    __local float rows[64];
    __local float basis[64];
    int u = get_local_id(0);
    int v = get_local_id(1);
    int at = get_global_id(1) * width + get_global_id(0);
    pixels[8 * v + u] = image[at];
    basis[8 * v + u] = cospi((2 * u + 1) * v / 16.0f) * (v ? 0.5f : 0.5f * M_SQRT1_2_F);
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i)
        sum += pixels[8 * v + i] * basis[8 * u + i];
    rows[8 * v + u] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0.0f;
    for (int j = 0; j < 8; ++j)
        sum += rows[8 * j + u] * basis[8 * v + j];
    out[at] = sum;
}

// Eight points in place by Chen's flow graph of additions and few products.
void dct8(float *p)
{
    float s0 = p[0] + p[7], d0 = p[0] - p[7];
    float s1 = p[1] + p[6], d1 = p[1] - p[6];
    float s2 = p[2] + p[5], d2 = p[2] - p[5];
    float s3 = p[3] + p[4], d3 = p[3] - p[4];
    float a0 = s0 + s3, a1 = s1 + s2;
    float b0 = s0 - s3, b1 = s1 - s2;
    p[0] = 0.35355339f * (a0 + a1);
    p[4] = 0.35355339f * (a0 - a1);
    p[2] = 0.46193977f * b0 + 0.19134172f * b1;
    p[6] = 0.19134172f * b0 - 0.46193977f * b1;
    p[1] = 0.49039264f * d0 + 0.41573481f * d1 + 0.27778512f * d2 + 0.09754516f * d3;
    p[3] = 0.41573481f * d0 - 0.09754516f * d1 - 0.49039264f * d2 - 0.27778512f * d3;
    p[5] = 0.27778512f * d0 - 0.49039264f * d1 + 0.09754516f * d2 + 0.41573481f * d3;
    p[7] = 0.09754516f * d0 - 0.27778512f * d1 + 0.41573481f * d2 - 0.49039264f * d3;
}

// A whole block a work-item, held in a private array.
__kernel void dct_private(__global const float *image, __global float *out, int width, int height)
{
    int column = 8 * get_global_id(0);
    int row = 8 * get_global_id(1);
    if (column >= width || row >= height)
        return;
    float block[64];
    for (int j = 0; j < 8; ++j) {
        float line[8];
        for (int i = 0; i < 8; ++i)
            line[i] = image[(row + j) * width + column + i];
        dct8(line);
        for (int i = 0; i < 8; ++i)
            block[8 * i + j] = line[i];
    }
    for (int i = 0; i < 8; ++i) {
        dct8(block + 8 * i);
        for (int j = 0; j < 8; ++j)
            out[(row + j) * width + column + i] = block[8 * i + j];
    }
}
