// Sums of n numbers; work-groups leave partial sums, or add into one cell by atomics.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif
#ifndef ITEMS
#define ITEMS 8 // numbers that a work-item adds up first
#endif

// Tree with neighbours first: active work-items lie further and further apart.
__kernel void sum_interleaved(__global const float* in, __global float* partial, int n)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    sums[item] = i < n ? in[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < LOCAL; distance *= 2) {
        if (item % (2 * distance) == 0)
            sums[item] += sums[item + distance];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = sums[0];
}

// Tree with neighbours first, active work-items packed: accesses to local memory lie a stride apart.
__kernel void sum_strided(__global const float* in, __global float* partial, int n)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    sums[item] = i < n ? in[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < LOCAL; distance *= 2) {
        const int target = 2 * distance * item;
        if (target < LOCAL)
            sums[target] += sums[target + distance];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = sums[0];
}

// Tree that halves the active range, after each work-item has added ITEMS coalesced numbers.
__kernel void sum_tree(__global const float* in, __global float* partial, int n)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    const int first = get_group_id(0) * LOCAL * ITEMS + item;
    float sum = 0.0f;
    for (int j = 0; j < ITEMS; ++j)
        if (first + j * LOCAL < n)
            sum += in[first + j * LOCAL];
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

// Grid stride in float4, then a tree; n4 = n / 4.
__kernel void sum_stride_vec4(__global const float4* in, __global float* partial, int n4)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    float4 sum = (float4)(0.0f);
    for (int i = get_global_id(0); i < n4; i += get_global_size(0))
        sum += in[i];
    sums[item] = sum.x + sum.y + sum.z + sum.w;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = sums[0];
}

// Blocked: each work-item adds `run` consecutive numbers, so neighbours read far apart.
__kernel void sum_runs(__global const float* in, __global float* partial, int n, int run)
{
    const int first = get_global_id(0) * run;
    const int end = min(first + run, n);
    float sum = 0.0f;
    for (int i = first; i < end; ++i)
        sum += in[i];
    partial[get_global_id(0)] = sum;
}

// One atomic a number into a single cell.
__kernel void sum_atomic(__global const int* in, __global int* total, int n)
{
    const int i = get_global_id(0);
    if (i < n)
        atomic_add(total, in[i]);
}

// Local atomics within the work-group, then one global atomic a work-group.
__kernel void sum_atomic_local(__global const int* in, __global int* total, int n)
{
    __local int group_total;
    const int item = get_local_id(0);
    if (item == 0)
        group_total = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        sum += in[i];
    atomic_add(&group_total, sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0)
        atomic_add(total, group_total);
}

// Compensated (Kahan) sum by a single work-item: four dependent additions a number.
__kernel void sum_kahan_serial(__global const float* in, __global float* total, int n)
{
    float sum = 0.0f;
    float lost = 0.0f;
    for (int i = 0; i < n; ++i) {
        const float term = in[i] - lost;
        const float next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    total[0] = sum;
}

// Sum of each row of a rows x cols matrix, one work-group a row.
__kernel void sum_rows(__global const float* in, __global float* out, int cols)
{
    __local float sums[LOCAL];
    const int item = get_local_id(0);
    const int row = get_group_id(0);
    float sum = 0.0f;
    for (int col = item; col < cols; col += LOCAL)
        sum += in[row * cols + col];
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        out[row] = sums[0];
}

// Sum of each column of a rows x cols matrix, one column a work-item.
__kernel void sum_columns(__global const float* in, __global float* out, int rows, int cols)
{
    const int col = get_global_id(0);
    if (col >= cols)
        return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row)
        sum += in[row * cols + col];
    out[col] = sum;
}
