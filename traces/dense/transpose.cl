// Out-of-place transposes of a row-major rows x cols matrix.

#ifndef TILE
#define TILE 16 // side of the tile in local memory
#endif
#ifndef PAD
#define PAD 0 // extra column that spreads a tile's columns over the local-memory banks
#endif

// Naive: coalesced reads, writes a whole column apart.
__kernel void transpose_naive(__global const float* in, __global float* out, int rows, int cols)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row < rows && col < cols)
        out[col * rows + row] = in[row * cols + col];
}

// Through a tile in local memory, so that reads and writes are both coalesced.
__kernel void transpose_tiled(__global const float* in, __global float* out, int rows, int cols)
{
    __local float tile[TILE][TILE + PAD];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int col0 = get_group_id(0) * TILE;
    const int row0 = get_group_id(1) * TILE;
    if (row0 + y < rows && col0 + x < cols)
        tile[y][x] = in[(row0 + y) * cols + col0 + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (col0 + y < cols && row0 + x < rows)
        out[(col0 + y) * rows + row0 + x] = tile[x][y];
}

// A 4 x 4 block a work-item, turned in registers; rows4 = rows / 4, cols4 = cols / 4.
__kernel void transpose_vec4(__global const float4* in, __global float4* out, int rows4, int cols4)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= cols4 || y >= rows4)
        return;
    const float4 r0 = in[(4 * y + 0) * cols4 + x];
    const float4 r1 = in[(4 * y + 1) * cols4 + x];
    const float4 r2 = in[(4 * y + 2) * cols4 + x];
    const float4 r3 = in[(4 * y + 3) * cols4 + x];
    out[(4 * x + 0) * rows4 + y] = (float4)(r0.x, r1.x, r2.x, r3.x);
    out[(4 * x + 1) * rows4 + y] = (float4)(r0.y, r1.y, r2.y, r3.y);
    out[(4 * x + 2) * rows4 + y] = (float4)(r0.z, r1.z, r2.z, r3.z);
    out[(4 * x + 3) * rows4 + y] = (float4)(r0.w, r1.w, r2.w, r3.w);
}
