// Matrix-vector products and rank-1 update; the matrix is row-major, rows x cols.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group; a power of two where the kernel reduces
#endif

// y = A x, one row a work-item: neighbouring work-items read a whole row apart.
__kernel void gemv_row(__global const float* a, __global const float* x, __global float* y, int rows, int cols)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col)
        sum = mad(a[row * cols + col], x[col], sum);
    y[row] = sum;
}

// y = A x, one row a work-item, x staged through local memory LOCAL elements at a time.
__kernel void gemv_row_cached(__global const float* a, __global const float* x, __global float* y, int rows, int cols)
{
    __local float piece[LOCAL];
    const int row = get_global_id(0);
    const int item = get_local_id(0);
    float sum = 0.0f;
    for (int start = 0; start < cols; start += LOCAL) {
        piece[item] = start + item < cols ? x[start + item] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        const int width = min(LOCAL, cols - start);
        if (row < rows)
            for (int i = 0; i < width; ++i)
                sum = mad(a[row * cols + start + i], piece[i], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < rows)
        y[row] = sum;
}

// y = A x, one row a work-group: coalesced reads, then a tree over the partial sums.
__kernel void gemv_group(__global const float* a, __global const float* x, __global float* y, int rows, int cols)
{
    __local float sums[LOCAL];
    const int row = get_group_id(0);
    const int item = get_local_id(0);
    float sum = 0.0f;
    for (int col = item; col < cols; col += LOCAL)
        sum = mad(a[row * cols + col], x[col], sum);
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        y[row] = sums[0];
}

// y = A' x, one column a work-item: coalesced reads down the columns.
__kernel void gemv_transposed(__global const float* a, __global const float* x, __global float* y, int rows, int cols)
{
    const int col = get_global_id(0);
    if (col >= cols)
        return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row)
        sum = mad(a[row * cols + col], x[row], sum);
    y[col] = sum;
}

// A += alpha x y', one element a work-item.
__kernel void rank1_update(
    __global float* a, __global const float* x, __global const float* y, int rows, int cols, float alpha)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row < rows && col < cols)
        a[row * cols + col] = mad(alpha * x[row], y[col], a[row * cols + col]);
}
