// Matrix products, row-major: a is m x k, b is k x n, c is m x n; dimension 0 runs along the columns of c.

#ifndef TILE
#define TILE 16 // side of a tile in local memory
#endif
#ifndef SIDE
#define SIDE 16 // work-items along each side of a register-blocked work-group
#endif
#ifndef REG
#define REG 4 // elements of c along each side that a register-blocked work-item owns
#endif
#ifndef DEPTH
#define DEPTH 8 // slice of k held in local memory by the register-blocked product
#endif
#ifndef ROWS
#define ROWS 2 // rows of c that a vectorised work-item owns
#endif
#ifndef COLS
#define COLS 8 // columns of c that a coarsened work-item owns
#endif

// Naive: one element of c a work-item, all operands straight from global memory.
__kernel void gemm_naive(__global const float* a, __global const float* b, __global float* c, int m, int n, int k)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= m || col >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i)
        sum = mad(a[row * k + i], b[i * n + col], sum);
    c[row * n + col] = sum;
}

// Tiled: a TILE x TILE work-group stages square tiles of both operands in local memory.
__kernel void gemm_tiled(__global const float* a, __global const float* b, __global float* c, int m, int n, int k)
{
    __local float tile_a[TILE][TILE];
    __local float tile_b[TILE][TILE];
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        tile_a[y][x] = (row < m && start + x < k) ? a[row * k + start + x] : 0.0f;
        tile_b[y][x] = (start + y < k && col < n) ? b[(start + y) * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; ++i)
            sum = mad(tile_a[y][i], tile_b[i][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

// Register-blocked: a SIDE x SIDE work-group computes a (SIDE*REG)^2 block, REG x REG elements a work-item.
__kernel void gemm_register(__global const float* a, __global const float* b, __global float* c, int m, int n, int k)
{
    __local float slab_a[DEPTH][SIDE * REG];
    __local float slab_b[DEPTH][SIDE * REG];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int item = y * SIDE + x;
    const int col0 = get_group_id(0) * SIDE * REG;
    const int row0 = get_group_id(1) * SIDE * REG;
    float sums[REG][REG];
    for (int i = 0; i < REG; ++i)
        for (int j = 0; j < REG; ++j)
            sums[i][j] = 0.0f;

    for (int start = 0; start < k; start += DEPTH) {
        for (int e = item; e < DEPTH * SIDE * REG; e += SIDE * SIDE) {
            const int depth = e % DEPTH;
            const int row = row0 + e / DEPTH;
            slab_a[depth][e / DEPTH] = (row < m && start + depth < k) ? a[row * k + start + depth] : 0.0f;
        }
        for (int e = item; e < DEPTH * SIDE * REG; e += SIDE * SIDE) {
            const int depth = e / (SIDE * REG);
            const int col = col0 + e % (SIDE * REG);
            slab_b[depth][e % (SIDE * REG)] = (col < n && start + depth < k) ? b[(start + depth) * n + col] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int depth = 0; depth < DEPTH; ++depth) {
            float right[REG];
            for (int j = 0; j < REG; ++j)
                right[j] = slab_b[depth][x + j * SIDE];
            for (int i = 0; i < REG; ++i) {
                const float left = slab_a[depth][y * REG + i];
                for (int j = 0; j < REG; ++j)
                    sums[i][j] = mad(left, right[j], sums[i][j]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < REG; ++i)
        for (int j = 0; j < REG; ++j) {
            const int row = row0 + y * REG + i;
            const int col = col0 + x + j * SIDE;
            if (row < m && col < n)
                c[row * n + col] = sums[i][j];
        }
}

// Vectorised: ROWS x 4 elements of c a work-item in float4, no local memory; n4 = n / 4.
__kernel void gemm_vec4(__global const float* a, __global const float4* b, __global float4* c, int m, int n4, int k)
{
    const int col = get_global_id(0);
    const int row0 = get_global_id(1) * ROWS;
    if (col >= n4 || row0 >= m)
        return;
    float4 sums[ROWS];
    for (int r = 0; r < ROWS; ++r)
        sums[r] = (float4)(0.0f);
    for (int i = 0; i < k; ++i) {
        const float4 right = b[i * n4 + col];
        for (int r = 0; r < ROWS; ++r)
            sums[r] = mad((float4)(a[min(row0 + r, m - 1) * k + i]), right, sums[r]);
    }
    for (int r = 0; r < ROWS; ++r)
        if (row0 + r < m)
            c[(row0 + r) * n4 + col] = sums[r];
}

// Coarsened in one dimension: a work-item owns COLS elements of c that lie a stride apart, so accesses stay coalesced.
__kernel void gemm_coarse(__global const float* a, __global const float* b, __global float* c, int m, int n, int k)
{
    const int stride = get_global_size(0);
    const int col0 = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= m)
        return;
    float sums[COLS];
    for (int j = 0; j < COLS; ++j)
        sums[j] = 0.0f;
    for (int i = 0; i < k; ++i) {
        const float left = a[row * k + i];
        for (int j = 0; j < COLS; ++j)
            sums[j] = mad(left, b[i * n + min(col0 + j * stride, n - 1)], sums[j]);
    }
    for (int j = 0; j < COLS; ++j)
        if (col0 + j * stride < n)
            c[row * n + col0 + j * stride] = sums[j];
}

// Second operand transposed (b is n x k): both rows are contiguous in k and read as float4; k4 = k / 4.
__kernel void gemm_nt(__global const float4* a, __global const float4* b, __global float* c, int m, int n, int k4)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= m || col >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k4; ++i)
        sum += dot(a[row * k4 + i], b[col * k4 + i]);
    c[row * n + col] = sum;
}

// First operand transposed (a is k x m), tiled in local memory.
__kernel void gemm_tn(__global const float* a, __global const float* b, __global float* c, int m, int n, int k)
{
    __local float tile_a[TILE][TILE];
    __local float tile_b[TILE][TILE];
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int row_load = get_group_id(1) * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        const int depth = start + y;
        tile_a[y][x] = (depth < k && row_load < m) ? a[depth * m + row_load] : 0.0f;
        tile_b[y][x] = (depth < k && col < n) ? b[depth * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; ++i)
            sum = mad(tile_a[i][y], tile_b[i][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

// Split along k: dimension 2 numbers the slices of k, and each writes its own partial product.
__kernel void gemm_split_k(
    __global const float* a, __global const float* b, __global float* partial, int m, int n, int k, int slice)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    const int part = get_global_id(2);
    if (row >= m || col >= n)
        return;
    const int end = min((part + 1) * slice, k);
    float sum = 0.0f;
    for (int i = part * slice; i < end; ++i)
        sum = mad(a[row * k + i], b[i * n + col], sum);
    partial[(part * m + row) * n + col] = sum;
}

// Persistent: a fixed number of TILE x TILE work-groups walks over all tiles of c.
__kernel void gemm_persistent(__global const float* a, __global const float* b, __global float* c, int m, int n, int k)
{
    __local float tile_a[TILE][TILE];
    __local float tile_b[TILE][TILE + 1];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int tiles_x = (n + TILE - 1) / TILE;
    const int num_tiles = tiles_x * ((m + TILE - 1) / TILE);
    for (int tile = get_group_id(0); tile < num_tiles; tile += get_num_groups(0)) {
        const int col = tile % tiles_x * TILE + x;
        const int row = tile / tiles_x * TILE + y;
        float sum = 0.0f;
        for (int start = 0; start < k; start += TILE) {
            tile_a[y][x] = (row < m && start + x < k) ? a[row * k + start + x] : 0.0f;
            tile_b[y][x] = (start + y < k && col < n) ? b[(start + y) * n + col] : 0.0f;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < TILE; ++i)
                sum = mad(tile_a[y][i], tile_b[i][x], sum);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (row < m && col < n)
            c[row * n + col] = sum;
    }
}
