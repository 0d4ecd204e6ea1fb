// y = A x in double precision, A in compressed sparse rows.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// One row a work-item.
__kernel void spmv_csr_fp64(__global const int* offsets, __global const int* columns, __global const double* values,
    __global const double* x, __global double* y, int rows)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    double sum = 0.0;
    for (int e = offsets[row]; e < offsets[row + 1]; ++e)
        sum = fma(values[e], x[columns[e]], sum);
    y[row] = sum;
}
