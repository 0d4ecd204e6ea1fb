// Counting sort of bytes by a single work-group of 256.
#define BINS 256

// Counts with local atomics, scans the counts, and writes each value's run.
__kernel void counting_sort_group(__global const uchar *keys, __global uchar *sorted, uint n)
{
    __local uint counts[BINS];
    __local uint sums[2 * BINS];
    uint lane = get_local_id(0);
    counts[lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < n; i += BINS)
        atomic_inc(&counts[keys[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint own = counts[lane];
    uint source = 0;
    sums[lane] = own;
    for (uint step = 1; step < BINS; step <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint sum = sums[source + lane] + (lane >= step ? sums[source + lane - step] : 0);
        source = BINS - source;
        sums[source + lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint end = sums[source + lane];
    for (uint i = end - own; i < end; ++i)
        sorted[i] = (uchar)lane;
}
