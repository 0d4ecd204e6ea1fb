// Product of two CSR matrices, C = A B, one row of A a work-group.

#ifndef LOCAL
#define LOCAL 64 // work-items of a work-group
#endif
#ifndef COLS
#define COLS 4096 // columns of B; a multiple of 32
#endif

// Symbolic: number of distinct columns in the row of C, by a bit set in local memory.
__kernel void spgemm_symbolic(__global const int* a_offsets, __global const int* a_columns,
    __global const int* b_offsets, __global const int* b_columns, __global int* row_sizes)
{
    __local uint bits[COLS / 32];
    __local int size;
    const int item = get_local_id(0);
    const int row = get_group_id(0);
    for (int i = item; i < COLS / 32; i += LOCAL)
        bits[i] = 0;
    if (item == 0)
        size = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int end = a_offsets[row + 1];
    for (int e = a_offsets[row] + item; e < end; e += LOCAL) {
        const int inner = a_columns[e];
        for (int f = b_offsets[inner]; f < b_offsets[inner + 1]; ++f)
            atomic_or(bits + b_columns[f] / 32, 1u << b_columns[f] % 32);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int count = 0;
    for (int i = item; i < COLS / 32; i += LOCAL)
        count += popcount(bits[i]);
    atomic_add(&size, count);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0)
        row_sizes[row] = size;
}

// Numeric, fixed point: the row of C accumulates in local memory by integer atomics and is written out dense.
__kernel void spgemm_dense_row(__global const int* a_offsets, __global const int* a_columns,
    __global const int* a_values, __global const int* b_offsets, __global const int* b_columns,
    __global const int* b_values, __global int* c)
{
    __local int sums[COLS];
    const int item = get_local_id(0);
    const int row = get_group_id(0);
    for (int i = item; i < COLS; i += LOCAL)
        sums[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = a_offsets[row]; e < a_offsets[row + 1]; ++e) {
        const int inner = a_columns[e];
        const int factor = a_values[e];
        const int end = b_offsets[inner + 1];
        for (int f = b_offsets[inner] + item; f < end; f += LOCAL)
            atomic_add(sums + b_columns[f], factor * b_values[f]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < COLS; i += LOCAL)
        c[row * COLS + i] = sums[i];
}
