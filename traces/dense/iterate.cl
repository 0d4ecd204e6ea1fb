// Iterations and orthogonalisations inside single work-groups or private columns.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif
#ifndef MAX_N
#define MAX_N 1024 // longest vector kept in local memory
#endif

// Sum of one number a work-item over a work-group; every work-item gets the sum.
float group_sum(float value, __local float* scratch)
{
    const int item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            scratch[item] += scratch[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float sum = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

// Power iteration with the n x n matrix of each work-group: x = A' x / |A' x|, `steps` times; n <= MAX_N.
__kernel void power_iteration(__global const float* a, __global float* x, int n, int steps)
{
    __local float scratch[LOCAL];
    __local float old_x[MAX_N];
    __local float new_x[MAX_N];
    const int item = get_local_id(0);
    __global const float* matrix = a + get_group_id(0) * n * n;
    for (int i = item; i < n; i += LOCAL)
        old_x[i] = 1.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 0; step < steps; ++step) {
        float squares = 0.0f;
        for (int col = item; col < n; col += LOCAL) {
            float sum = 0.0f;
            for (int row = 0; row < n; ++row)
                sum = mad(matrix[row * n + col], old_x[row], sum);
            new_x[col] = sum;
            squares = mad(sum, sum, squares);
        }
        const float scale = rsqrt(group_sum(squares, scratch));
        for (int i = item; i < n; i += LOCAL)
            old_x[i] = new_x[i] * scale;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = item; i < n; i += LOCAL)
        x[get_group_id(0) * n + i] = old_x[i];
}

// Modified Gram-Schmidt over the `vectors` rows of length n of each work-group's matrix, in place.
__kernel void gram_schmidt(__global float* a, int vectors, int n)
{
    __local float scratch[LOCAL];
    const int item = get_local_id(0);
    __global float* v = a + get_group_id(0) * vectors * n;
    for (int j = 0; j < vectors; ++j) {
        float squares = 0.0f;
        for (int i = item; i < n; i += LOCAL)
            squares = mad(v[j * n + i], v[j * n + i], squares);
        const float scale = rsqrt(group_sum(squares, scratch));
        for (int i = item; i < n; i += LOCAL)
            v[j * n + i] *= scale;
        for (int other = j + 1; other < vectors; ++other) {
            float product = 0.0f;
            for (int i = item; i < n; i += LOCAL)
                product = mad(v[j * n + i], v[other * n + i], product);
            product = group_sum(product, scratch);
            for (int i = item; i < n; i += LOCAL)
                v[other * n + i] -= product * v[j * n + i];
        }
    }
}

// Chain of `count` plane rotations on neighbouring rows, one column a work-item; angles in half turns.
__kernel void givens_chain(__global float* a, __global const float* angles, int rows, int cols, int count)
{
    const int col = get_global_id(0);
    if (col >= cols)
        return;
    float upper = a[col];
    for (int step = 0; step < count; ++step) {
        const int row = step % (rows - 1);
        if (row == 0)
            upper = a[col];
        const float lower = a[(row + 1) * cols + col];
        const float s = sinpi(angles[step]);
        const float c = cospi(angles[step]);
        a[row * cols + col] = c * upper + s * lower;
        upper = c * lower - s * upper;
        a[(row + 1) * cols + col] = upper;
    }
}
