// Compaction: keep the numbers above a threshold.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif

// One atomic on a shared counter for every number kept; their order is up to the device.
__kernel void compact_atomic(__global const float* in, __global float* out, __global int* count, int n, float threshold)
{
    const int i = get_global_id(0);
    if (i < n && in[i] > threshold)
        out[atomic_inc(count)] = in[i];
}

// Counted in local memory, one global atomic a work-group; order within and between work-groups is up to the device.
__kernel void compact_local(__global const float* in, __global float* out, __global int* count, int n, float threshold)
{
    __local int kept;
    __local int first;
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    if (item == 0)
        kept = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool is_kept = i < n && in[i] > threshold;
    int place = 0;
    if (is_kept)
        place = atomic_inc(&kept);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0)
        first = atomic_add(count, kept);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_kept)
        out[first + place] = in[i];
}

// First phase of a stable compaction: how many numbers each work-group keeps.
__kernel void compact_count(__global const float* in, __global int* counts, int n, float threshold)
{
    __local int sums[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    sums[item] = i < n && in[i] > threshold;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        counts[get_group_id(0)] = sums[0];
}

// Second phase: each work-group scans its flags and writes what it keeps from its offset on.
__kernel void compact_scatter(
    __global const float* in, __global const int* offsets, __global float* out, int n, float threshold)
{
    __local int sums[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    const int is_kept = i < n && in[i] > threshold;
    sums[item] = is_kept;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < LOCAL; distance *= 2) {
        const int left = item >= distance ? sums[item - distance] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += left;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (is_kept)
        out[offsets[get_group_id(0)] + sums[item] - 1] = in[i];
}

// Stable partition by one work-group, tile after tile: kept numbers to the front, the others to their own list.
__kernel void partition_group(
    __global const float* in, __global float* kept, __global float* rest, int n, float threshold)
{
    __local int sums[LOCAL];
    const int item = get_local_id(0);
    int carry = 0;
    for (int start = 0; start < n; start += LOCAL) {
        const int i = start + item;
        const int is_kept = i < n && in[i] > threshold;
        sums[item] = is_kept;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = 1; distance < LOCAL; distance *= 2) {
            const int left = item >= distance ? sums[item - distance] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[item] += left;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const int before = carry + sums[item] - is_kept;
        if (is_kept)
            kept[before] = in[i];
        else if (i < n)
            rest[i - before] = in[i];
        carry += sums[LOCAL - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
