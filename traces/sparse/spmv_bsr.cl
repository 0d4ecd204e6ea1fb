// y = A x, A in compressed sparse rows of dense BLOCK x BLOCK blocks.

#ifndef BLOCK
#define BLOCK 4 // side of a block
#endif

// One row of the matrix a work-item: BLOCK neighbours share the column index and the piece of x.
__kernel void spmv_bsr_row(__global const int* offsets, __global const int* columns, __global const float* values,
    __global const float* x, __global float* y, int rows)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    const int block_row = row / BLOCK;
    const int inner = row % BLOCK;
    float sum = 0.0f;
    for (int b = offsets[block_row]; b < offsets[block_row + 1]; ++b)
        for (int j = 0; j < BLOCK; ++j)
            sum = mad(values[(b * BLOCK + inner) * BLOCK + j], x[columns[b] * BLOCK + j], sum);
    y[row] = sum;
}

// One row of 4 x 4 blocks a work-item, each row of a block one float4.
__kernel void spmv_bsr_vec4(__global const int* offsets, __global const int* columns, __global const float4* values,
    __global const float4* x, __global float4* y, int block_rows)
{
    const int row = get_global_id(0);
    if (row >= block_rows)
        return;
    float4 sum = (float4)(0.0f);
    for (int b = offsets[row]; b < offsets[row + 1]; ++b) {
        const float4 piece = x[columns[b]];
        sum.x += dot(values[4 * b + 0], piece);
        sum.y += dot(values[4 * b + 1], piece);
        sum.z += dot(values[4 * b + 2], piece);
        sum.w += dot(values[4 * b + 3], piece);
    }
    y[row] = sum;
}
