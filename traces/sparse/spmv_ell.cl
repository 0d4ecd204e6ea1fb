// y = A x with padded rows: every row, or every slice of rows, holds the same number of entries.

#ifndef SLICE
#define SLICE 32 // rows of a slice
#endif

// ELLPACK by columns: entry j of row i lies at j * rows + i, so a sub-group reads consecutive entries.
__kernel void spmv_ell_columns(__global const int* columns, __global const float* values, __global const float* x,
    __global float* y, int rows, int width)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int j = 0; j < width; ++j)
        sum = mad(values[j * rows + row], x[columns[j * rows + row]], sum);
    y[row] = sum;
}

// ELLPACK by rows: entry j of row i lies at i * width + j.
__kernel void spmv_ell_rows(__global const int* columns, __global const float* values, __global const float* x,
    __global float* y, int rows, int width)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int j = 0; j < width; ++j)
        sum = mad(values[row * width + j], x[columns[row * width + j]], sum);
    y[row] = sum;
}

// ELLPACK by columns with the true length of each row, and column distances from the diagonal instead of columns.
__kernel void spmv_ell_relative(__global const int* lengths, __global const short* distances,
    __global const float* values, __global const float* x, __global float* y, int rows)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    const int length = lengths[row];
    float sum = 0.0f;
    for (int j = 0; j < length; ++j) {
        const int col = clamp(row + distances[j * rows + row], 0, rows - 1);
        sum = mad(values[j * rows + row], x[col], sum);
    }
    y[row] = sum;
}

// Sliced ELLPACK: slice s has its own width, (slices[s + 1] - slices[s]) columns of SLICE entries.
__kernel void spmv_sliced(__global const int* slices, __global const int* columns, __global const float* values,
    __global const float* x, __global float* y, int rows)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    const int slice = row / SLICE;
    float sum = 0.0f;
    for (int j = slices[slice]; j < slices[slice + 1]; ++j) {
        const int e = j * SLICE + row % SLICE;
        sum = mad(values[e], x[columns[e]], sum);
    }
    y[row] = sum;
}
