// Vector operations.

#ifndef LOCAL
#define LOCAL 256 // work-items of a reducing work-group, a power of two
#endif

// y += alpha x, one element a work-item.
__kernel void axpy(__global const float* x, __global float* y, int n, float alpha)
{
    const int i = get_global_id(0);
    if (i < n)
        y[i] = mad(alpha, x[i], y[i]);
}

// y += alpha x, four elements a work-item; n4 = n / 4.
__kernel void axpy_vec4(__global const float4* x, __global float4* y, int n4, float alpha)
{
    const int i = get_global_id(0);
    if (i < n4)
        y[i] = mad((float4)(alpha), x[i], y[i]);
}

// y += alpha x with a fixed number of work-items that stride over the vectors.
__kernel void axpy_stride(__global const float* x, __global float* y, int n, float alpha)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        y[i] = mad(alpha, x[i], y[i]);
}

// Plane rotation of two vectors: (x, y) becomes (c x + s y, c y - s x).
__kernel void rotate_plane(__global float* x, __global float* y, int n, float c, float s)
{
    const int i = get_global_id(0);
    if (i < n) {
        const float old_x = x[i];
        const float old_y = y[i];
        x[i] = c * old_x + s * old_y;
        y[i] = c * old_y - s * old_x;
    }
}

// x . y, work-groups stride over the vectors and leave one partial sum each.
__kernel void dot_partial(__global const float* x, __global const float* y, __global float* partial, int n)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    float sum = 0.0f;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        sum = mad(x[i], y[i], sum);
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = sums[0];
}

// x . y, one float4 pair a work-item, one partial sum a work-group; n4 = n / 4.
__kernel void dot_vec4(__global const float4* x, __global const float4* y, __global float* partial, int n4)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    sums[item] = i < n4 ? dot(x[i], y[i]) : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = sums[0];
}
