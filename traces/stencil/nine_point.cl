// 3 x 3 and larger weighted sums on an ny x nx grid; cells beyond the rim repeat the rim.

#ifndef TX
#define TX 16 // tile, and work-group, width
#endif
#ifndef TY
#define TY 8 // tile, and work-group, height
#endif
#ifndef RADIUS
#define RADIUS 3 // reach of the star
#endif

// Nine points, weights from constant memory, one cell a work-item.
__kernel void nine_point(
    __global const float* in, __global float* out, __constant float* weights, int nx, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            const int cell = clamp(y + dy, 0, ny - 1) * nx + clamp(x + dx, 0, nx - 1);
            sum = mad(weights[(dy + 1) * 3 + dx + 1], in[cell], sum);
        }
    out[y * nx + x] = sum;
}

// Nine points from a tile with its rim in local memory.
__kernel void nine_point_tiled(
    __global const float* in, __global float* out, __constant float* weights, int nx, int ny)
{
    __local float tile[(TY + 2) * (TX + 2)];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int x0 = (int)get_group_id(0) * TX - 1;
    const int y0 = (int)get_group_id(1) * TY - 1;
    for (int e = ly * TX + lx; e < (TX + 2) * (TY + 2); e += TX * TY)
        tile[e] = in[clamp(y0 + e / (TX + 2), 0, ny - 1) * nx + clamp(x0 + e % (TX + 2), 0, nx - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    float sum = 0.0f;
    for (int dy = 0; dy < 3; ++dy)
        for (int dx = 0; dx < 3; ++dx)
            sum = mad(weights[dy * 3 + dx], tile[(ly + dy) * (TX + 2) + lx + dx], sum);
    out[y * nx + x] = sum;
}

// Star of reach RADIUS: a row and a column of 2 RADIUS + 1 cells that cross, one cell a work-item.
__kernel void star(__global const float* in, __global float* out, __constant float* weights, int nx, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    float sum = weights[0] * in[y * nx + x];
    for (int r = 1; r <= RADIUS; ++r) {
        const float row = in[y * nx + max(x - r, 0)] + in[y * nx + min(x + r, nx - 1)];
        const float column = in[max(y - r, 0) * nx + x] + in[min(y + r, ny - 1) * nx + x];
        sum = mad(weights[r], row + column, sum);
    }
    out[y * nx + x] = sum;
}
