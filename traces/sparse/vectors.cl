// Sparse vectors, and searches and set operations on sorted indices.

// Gather: out[i] = x[indices[i]] * scale.
__kernel void gather(
    __global const int* indices, __global const float* x, __global float* out, int count, float scale)
{
    const int i = get_global_id(0);
    if (i < count)
        out[i] = x[indices[i]] * scale;
}

// Gather of whole rows of `width` numbers: neighbours read one row together.
__kernel void gather_rows(
    __global const int* indices, __global const float* table, __global float* out, int count, int width)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row < count && col < width)
        out[row * width + col] = table[indices[row] * width + col];
}

// Scatter-axpy: y[indices[i]] += alpha x[i]; the indices are a permutation, so no two work-items meet.
__kernel void scatter_axpy(
    __global const int* indices, __global const float* x, __global float* y, int count, float alpha)
{
    const int i = get_global_id(0);
    if (i < count)
        y[indices[i]] += alpha * x[i];
}

// Scatter with collisions: integer atomics into `out`.
__kernel void scatter_add(__global const int* indices, __global const int* x, __global int* out, int count)
{
    const int i = get_global_id(0);
    if (i < count)
        atomic_add(out + indices[i], x[i]);
}

// Row of every entry of a CSR matrix, found by binary search in the offsets.
__kernel void csr_entry_rows(__global const int* offsets, __global int* entry_rows, int rows, int entries)
{
    const int e = get_global_id(0);
    if (e >= entries)
        return;
    int low = 0;
    int high = rows;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (offsets[middle] <= e)
            low = middle;
        else
            high = middle;
    }
    entry_rows[e] = low;
}

// Products of pairs of sparse vectors with sorted indices, one pair a work-item: a two-way merge.
__kernel void sparse_dot_merge(__global const int* offsets, __global const int* left, __global const float* left_values,
    __global const int* right, __global const float* right_values, __global float* out, int pairs)
{
    const int pair = get_global_id(0);
    if (pair >= pairs)
        return;
    const int end = offsets[pair + 1];
    int i = offsets[pair];
    int j = i;
    float sum = 0.0f;
    while (i < end && j < end) {
        const int difference = left[i] - right[j];
        if (difference == 0)
            sum = mad(left_values[i], right_values[j], sum);
        i += difference <= 0;
        j += difference >= 0;
    }
    out[pair] = sum;
}

// Dense squares of a row: sum, largest magnitude and number of entries above a threshold, one CSR row a work-item.
__kernel void csr_row_norms(__global const int* offsets, __global const float* values, __global float* norms,
    __global float* largest, __global int* above, int rows, float threshold)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float squares = 0.0f;
    float most = 0.0f;
    int count = 0;
    for (int e = offsets[row]; e < offsets[row + 1]; ++e) {
        const float value = fabs(values[e]);
        squares = mad(value, value, squares);
        most = fmax(most, value);
        if (value > threshold)
            ++count;
    }
    norms[row] = sqrt(squares);
    largest[row] = most;
    above[row] = count;
}
