// Sum and sum of squares in double precision.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif

// Grid stride over float data, accumulated in double; work-groups leave partial (sum, sum of squares).
__kernel void moments_fp64(__global const float* in, __global double2* partial, int n)
{
    __local double sums[LOCAL];
    __local double squares[LOCAL];
    const int item = get_local_id(0);
    double sum = 0.0;
    double square = 0.0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        const double value = in[i];
        sum += value;
        square = fma(value, value, square);
    }
    sums[item] = sum;
    squares[item] = square;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) {
            sums[item] += sums[item + half_size];
            squares[item] += squares[item + half_size];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = (double2)(sums[0], squares[0]);
}
