// Sparse lower triangular solves, ELLPACK by columns: entry j of row i at j * rows + i; the diagonal is kept apart.

// One level: rows first .. first + count - 1, whose columns all lie below `first` and are already solved.
__kernel void sptrsv_level(__global const int* columns, __global const float* values, __global const float* diagonal,
    __global const float* b, __global float* x, int first, int count, int width)
{
    const int i = get_global_id(0);
    if (i >= count)
        return;
    float rest = b[first + i];
    for (int j = 0; j < width; ++j)
        rest -= values[j * count + i] * x[columns[j * count + i]];
    x[first + i] = rest / diagonal[first + i];
}

// All levels in one work-group, one row a work-item; raw numbers become columns of the `reach` rows before the level.
__kernel void sptrsv_group(__global const uint* raw, __global const float* values, __global const float* diagonal,
    __global const float* b, __global float* x, int rows, int width, int reach)
{
    const int num_items = get_local_size(0);
    for (int first = 0; first < rows; first += num_items) {
        const int row = first + get_local_id(0);
        if (row < rows) {
            float rest = b[row];
            if (first > 0)
                for (int j = 0; j < width; ++j) {
                    const int back = 1 + raw[j * rows + row] % (uint)min(first, reach);
                    rest -= values[j * rows + row] * x[first - back];
                }
            x[row] = rest / diagonal[row];
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}
