// Steps of LU and Cholesky factorisations of a row-major n x n matrix, and small factorisations in one work-group.

#ifndef NB
#define NB 32 // side of the Cholesky tile
#endif
#ifndef LOCAL
#define LOCAL 64 // work-items of a work-group
#endif

// LU step: divide the column below the pivot by the pivot; accesses lie a whole row apart.
__kernel void lu_scale(__global float* a, int n, int step)
{
    const int row = step + 1 + get_global_id(0);
    if (row < n)
        a[row * n + step] /= a[step * n + step];
}

// LU step: subtract (scaled column) x (pivot row) from the trailing matrix.
__kernel void lu_update(__global float* a, int n, int step)
{
    const int col = step + 1 + get_global_id(0);
    const int row = step + 1 + get_global_id(1);
    if (row < n && col < n)
        a[row * n + col] -= a[row * n + step] * a[step * n + col];
}

// Cholesky step: update the lower triangle behind the pivot; work-items above the diagonal idle.
__kernel void cholesky_update(__global float* a, int n, int step)
{
    const int col = step + 1 + get_global_id(0);
    const int row = step + 1 + get_global_id(1);
    if (row < n && col <= row)
        a[row * n + col] -= a[row * n + step] * a[col * n + step] / a[step * n + step];
}

// Cholesky factor of one NB x NB tile a work-group, in local memory; `shift` on the diagonal makes the tile definite.
__kernel void cholesky_tile(__global const float* tiles, __global float* factors, float shift)
{
    __local float t[NB][NB + 1];
    const int item = get_local_id(0);
    const int base = get_group_id(0) * NB * NB;
    for (int e = item; e < NB * NB; e += LOCAL)
        t[e / NB][e % NB] = tiles[base + e] + (e / NB == e % NB ? shift : 0.0f);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 0; step < NB; ++step) {
        const float pivot = sqrt(t[step][step]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int row = step + item; row < NB; row += LOCAL)
            t[row][step] = row == step ? pivot : t[row][step] / pivot;
        barrier(CLK_LOCAL_MEM_FENCE);
        const int side = NB - step - 1;
        for (int e = item; e < side * side; e += LOCAL) {
            const int row = step + 1 + e / side;
            const int col = step + 1 + e % side;
            if (col <= row)
                t[row][col] -= t[row][step] * t[col][step];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int e = item; e < NB * NB; e += LOCAL)
        factors[base + e] = e % NB <= e / NB ? t[e / NB][e % NB] : 0.0f;
}

// Whole LU factorisation without pivoting by one work-group, in place in global memory.
__kernel void lu_group(__global float* a, int n, float shift)
{
    const int item = get_local_id(0);
    const int num_items = get_local_size(0);
    for (int i = item; i < n; i += num_items)
        a[i * n + i] += shift;
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int step = 0; step < n - 1; ++step) {
        const float inverse = 1.0f / a[step * n + step];
        for (int row = step + 1 + item; row < n; row += num_items)
            a[row * n + step] *= inverse;
        barrier(CLK_GLOBAL_MEM_FENCE);
        const int side = n - step - 1;
        for (int e = item; e < side * side; e += num_items) {
            const int row = step + 1 + e / side;
            const int col = step + 1 + e % side;
            a[row * n + col] -= a[row * n + step] * a[step * n + col];
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}
