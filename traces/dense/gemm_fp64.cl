// Matrix product in double precision.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#ifndef TILE
#define TILE 16 // side of a tile in local memory
#endif

// Tiled in local memory, one element of c a work-item.
__kernel void gemm_fp64(__global const double* a, __global const double* b, __global double* c, int m, int n, int k)
{
    __local double tile_a[TILE][TILE];
    __local double tile_b[TILE][TILE];
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    double sum = 0.0;
    for (int start = 0; start < k; start += TILE) {
        tile_a[y][x] = (row < m && start + x < k) ? a[row * k + start + x] : 0.0;
        tile_b[y][x] = (start + y < k && col < n) ? b[(start + y) * n + col] : 0.0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; ++i)
            sum = fma(tile_a[y][i], tile_b[i][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}
