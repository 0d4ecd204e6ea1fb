// y = A x, A as diagonals: entry of diagonal d in row i at d * rows + i, its column i + shifts[d].

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group
#endif
#ifndef REACH
#define REACH 64 // furthest diagonal of a banded matrix
#endif

// One row a work-item.
__kernel void spmv_dia(__global const int* shifts, __global const float* values, __global const float* x,
    __global float* y, int rows, int diagonals)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int d = 0; d < diagonals; ++d) {
        const int col = row + shifts[d];
        if (col >= 0 && col < rows)
            sum = mad(values[d * rows + row], x[col], sum);
    }
    y[row] = sum;
}

// All shifts within REACH of the diagonal: the window of x is staged in local memory.
__kernel void spmv_dia_banded(__global const int* shifts, __global const float* values, __global const float* x,
    __global float* y, int rows, int diagonals)
{
    __local float window[LOCAL + 2 * REACH];
    const int item = get_local_id(0);
    const int row = get_global_id(0);
    const int first = (int)get_group_id(0) * LOCAL - REACH;
    for (int i = item; i < LOCAL + 2 * REACH; i += LOCAL) {
        const int col = first + i;
        window[i] = col >= 0 && col < rows ? x[col] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int d = 0; d < diagonals; ++d)
        sum = mad(values[d * rows + row], window[item + REACH + shifts[d]], sum);
    y[row] = sum;
}
