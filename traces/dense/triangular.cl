// Triangular solves L x = b with a dense lower triangle; the diagonal is taken as given.

#ifndef COLUMN_MAJOR
#define COLUMN_MAJOR 0 // how L is stored
#endif
#ifndef MAX_N
#define MAX_N 4096 // most unknowns of the work-group solve: they live in local memory
#endif
#ifndef TILE
#define TILE 16 // unknowns that the blocked solve eliminates at a time
#endif

#if COLUMN_MAJOR
#define L(row, col) l[(col) * n + (row)]
#else
#define L(row, col) l[(row) * n + (col)]
#endif

// One work-group eliminates one unknown after the other; n <= MAX_N.
__kernel void trsv_group(__global const float* l, __global const float* b, __global float* x, int n)
{
    __local float rest[MAX_N];
    const int item = get_local_id(0);
    const int num_items = get_local_size(0);
    for (int i = item; i < n; i += num_items)
        rest[i] = b[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int col = 0; col < n; ++col) {
        const float value = rest[col] / L(col, col);
        for (int row = col + 1 + item; row < n; row += num_items)
            rest[row] -= L(row, col) * value;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = item; i < n; i += num_items)
        x[i] = rest[i] / L(i, i);
}

// Many right-hand sides, one a work-item, forward substitution in place; x is n x num_rhs, row-major.
__kernel void trsm_columns(__global const float* l, __global float* x, int n, int num_rhs)
{
    const int rhs = get_global_id(0);
    if (rhs >= num_rhs)
        return;
    for (int row = 0; row < n; ++row) {
        float value = x[row * num_rhs + rhs];
        for (int col = 0; col < row; ++col)
            value -= L(row, col) * x[col * num_rhs + rhs];
        x[row * num_rhs + rhs] = value / L(row, row);
    }
}

// Many right-hand sides, blocked: TILE unknowns at a time in private memory, the tile of L in local memory.
__kernel void trsm_blocked(__global const float* l, __global float* x, int n, int num_rhs)
{
    __local float tile[TILE][TILE];
    const int item = get_local_id(0);
    const int num_items = get_local_size(0);
    const int rhs = get_global_id(0);
    const bool is_active = rhs < num_rhs;
    for (int row0 = 0; row0 < n; row0 += TILE) {
        float values[TILE];
        for (int i = 0; i < TILE; ++i)
            values[i] = is_active && row0 + i < n ? x[(row0 + i) * num_rhs + rhs] : 0.0f;
        for (int col0 = 0; col0 <= row0; col0 += TILE) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int e = item; e < TILE * TILE; e += num_items) {
                const int row = row0 + e / TILE;
                const int col = col0 + e % TILE;
                const float outside = row == col ? 1.0f : 0.0f;
                tile[e / TILE][e % TILE] = row < n && col < n ? L(row, col) : outside;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (col0 < row0) {
                for (int j = 0; j < TILE; ++j) {
                    const float known = is_active ? x[(col0 + j) * num_rhs + rhs] : 0.0f;
                    for (int i = 0; i < TILE; ++i)
                        values[i] -= tile[i][j] * known;
                }
            } else {
                for (int i = 0; i < TILE; ++i) {
                    for (int j = 0; j < i; ++j)
                        values[i] -= tile[i][j] * values[j];
                    values[i] /= tile[i][i];
                }
            }
        }
        for (int i = 0; i < TILE; ++i)
            if (is_active && row0 + i < n)
                x[(row0 + i) * num_rhs + rhs] = values[i];
    }
}
