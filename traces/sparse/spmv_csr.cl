// y = A x, A in compressed sparse rows: entries offsets[row] .. offsets[row + 1] - 1 of `columns` and `values`.

#ifndef LANES
#define LANES 8 // work-items that share a row, a power of two
#endif
#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group
#endif
#ifndef ROWS
#define ROWS 64 // rows that a streaming work-group owns, at most LOCAL
#endif
#ifndef CHUNK
#define CHUNK 1024 // products that a streaming work-group holds in local memory
#endif
#ifndef MAX_ROWS
#define MAX_ROWS 2048 // most unknowns of the work-group solver
#endif

// Scalar: one row a work-item, so neighbours read entries a row length apart and long rows hold up short ones.
__kernel void spmv_csr_scalar(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* x, __global float* y, int rows)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int e = offsets[row]; e < offsets[row + 1]; ++e)
        sum = mad(values[e], x[columns[e]], sum);
    y[row] = sum;
}

// Vector: LANES work-items share a row and add up their sums in local memory.
__kernel void spmv_csr_vector(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* x, __global float* y, int rows)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    const int lane = item % LANES;
    const int row = get_global_id(0) / LANES;
    float sum = 0.0f;
    if (row < rows) {
        const int end = offsets[row + 1];
        for (int e = offsets[row] + lane; e < end; e += LANES)
            sum = mad(values[e], x[columns[e]], sum);
    }
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LANES / 2; half_size > 0; half_size /= 2) {
        if (lane < half_size)
            sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && row < rows)
        y[row] = sums[item];
}

// Stream: a work-group multiplies the entries of its ROWS rows in coalesced chunks, then each row adds up its own.
__kernel void spmv_csr_stream(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* x, __global float* y, int rows)
{
    __local float products[CHUNK];
    const int item = get_local_id(0);
    const int row0 = get_group_id(0) * ROWS;
    const int row = row0 + item;
    const bool owns_row = item < ROWS && row < rows;
    const int group_end = offsets[min(row0 + ROWS, rows)];
    const int row_start = owns_row ? offsets[row] : 0;
    const int row_end = owns_row ? offsets[row + 1] : 0;
    float sum = 0.0f;
    for (int start = offsets[row0]; start < group_end; start += CHUNK) {
        const int end = min(start + CHUNK, group_end);
        for (int e = start + item; e < end; e += LOCAL)
            products[e - start] = values[e] * x[columns[e]];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = max(row_start, start); e < min(row_end, end); ++e)
            sum += products[e - start];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (owns_row)
        y[row] = sum;
}

// Persistent: a fixed number of work-items strides over the rows.
__kernel void spmv_csr_stride(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* x, __global float* y, int rows)
{
    for (int row = get_global_id(0); row < rows; row += get_global_size(0)) {
        float sum = 0.0f;
        for (int e = offsets[row]; e < offsets[row + 1]; ++e)
            sum = mad(values[e], x[columns[e]], sum);
        y[row] = sum;
    }
}

// One Jacobi sweep with damping for (A + diagonal) x = b, one row a work-item.
__kernel void jacobi_csr(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* diagonal, __global const float* b, __global const float* x, __global float* new_x, int rows,
    float damping)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float rest = b[row] - diagonal[row] * x[row];
    for (int e = offsets[row]; e < offsets[row + 1]; ++e)
        rest -= values[e] * x[columns[e]];
    new_x[row] = x[row] + damping * rest / diagonal[row];
}

// `steps` Jacobi sweeps for (A + diagonal) x = b by one work-group for each right-hand side; rows <= MAX_ROWS.
__kernel void jacobi_group(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* diagonal, __global const float* b, __global float* x, int rows, int steps)
{
    __local float iterates[2][MAX_ROWS];
    const int item = get_local_id(0);
    const int num_items = get_local_size(0);
    const int base = get_group_id(0) * rows;
    for (int row = item; row < rows; row += num_items)
        iterates[0][row] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 0; step < steps; ++step) {
        for (int row = item; row < rows; row += num_items) {
            float rest = b[base + row];
            for (int e = offsets[row]; e < offsets[row + 1]; ++e)
                rest -= values[e] * iterates[step % 2][columns[e]];
            iterates[1 - step % 2][row] = rest / diagonal[row];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int row = item; row < rows; row += num_items)
        x[base + row] = iterates[steps % 2][row];
}
