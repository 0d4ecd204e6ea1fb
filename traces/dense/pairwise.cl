// Distances between the rows of two matrices: a is m x k, b is n x k, d is m x n.

#ifndef TILE
#define TILE 16 // side of a tile in local memory
#endif

// City-block distance, one pair a work-item.
__kernel void pairwise_city(__global const float* a, __global const float* b, __global float* d, int m, int n, int k)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= m || col >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i)
        sum += fabs(a[row * k + i] - b[col * k + i]);
    d[row * n + col] = sum;
}

// Euclidean distance, tiles of both operands in local memory.
__kernel void pairwise_euclid(
    __global const float* a, __global const float* b, __global float* d, int m, int n, int k)
{
    __local float tile_a[TILE][TILE + 1];
    __local float tile_b[TILE][TILE + 1];
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int col_load = get_group_id(0) * TILE + y;
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        tile_a[y][x] = (row < m && start + x < k) ? a[row * k + start + x] : 0.0f;
        tile_b[y][x] = (col_load < n && start + x < k) ? b[col_load * k + start + x] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; ++i) {
            const float difference = tile_a[y][i] - tile_b[x][i];
            sum = mad(difference, difference, sum);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n)
        d[row * n + col] = sqrt(sum);
}
