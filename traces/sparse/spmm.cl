// Products of a CSR matrix with dense matrices, row-major.

#ifndef LOCAL
#define LOCAL 64 // work-items of a work-group that shares a sparse row
#endif

// C = A B: dimension 0 runs along the columns of B, dimension 1 along the sparse rows.
__kernel void spmm_csr(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* b, __global float* c, int rows, int width)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= rows || col >= width)
        return;
    float sum = 0.0f;
    for (int e = offsets[row]; e < offsets[row + 1]; ++e)
        sum = mad(values[e], b[columns[e] * width + col], sum);
    c[row * width + col] = sum;
}

// C = A B, one sparse row and four columns a work-item; width4 = columns of B / 4.
__kernel void spmm_csr_vec4(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float4* b, __global float4* c, int rows, int width4)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= rows || col >= width4)
        return;
    float4 sum = (float4)(0.0f);
    for (int e = offsets[row]; e < offsets[row + 1]; ++e)
        sum = mad((float4)(values[e]), b[columns[e] * width4 + col], sum);
    c[row * width4 + col] = sum;
}

// C = A B, one sparse row a work-group: its entries pass through local memory LOCAL at a time.
__kernel void spmm_csr_group(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* b, __global float* c, int width)
{
    __local int cols[LOCAL];
    __local float vals[LOCAL];
    const int item = get_local_id(0);
    const int row = get_group_id(0);
    const int col = get_group_id(1) * LOCAL + item;
    const int end = offsets[row + 1];
    float sum = 0.0f;
    for (int start = offsets[row]; start < end; start += LOCAL) {
        if (start + item < end) {
            cols[item] = columns[start + item];
            vals[item] = values[start + item];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int count = min(LOCAL, end - start);
        if (col < width)
            for (int i = 0; i < count; ++i)
                sum = mad(vals[i], b[cols[i] * width + col], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (col < width)
        c[row * width + col] = sum;
}

// Sampled product: out[e] = values[e] * (row of a . row of b) for every entry (row, column) of the pattern.
__kernel void sddmm(__global const int* entry_rows, __global const int* columns, __global const float* values,
    __global const float* a, __global const float* b, __global float* out, int entries, int depth)
{
    const int e = get_global_id(0);
    if (e >= entries)
        return;
    const int row = entry_rows[e] * depth;
    const int col = columns[e] * depth;
    float sum = 0.0f;
    for (int i = 0; i < depth; ++i)
        sum = mad(a[row + i], b[col + i], sum);
    out[e] = values[e] * sum;
}
