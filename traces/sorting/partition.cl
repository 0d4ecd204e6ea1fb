// Partition step of quicksort.
#ifndef PER_ITEM
#define PER_ITEM 4
#endif
#define GROUP 128
#define TILE (GROUP * PER_ITEM)

// Stable partition of each tile around a pivot by a work-efficient scan in local memory.
__kernel void partition_tile(
    __global const float *keys, __global float *parted, __global uint *low_counts, uint n, float pivot)
{
    __local uint sums[GROUP];
    __local uint total;
    uint lane = get_local_id(0);
    uint base = get_group_id(0) * TILE;
    uint first = base + lane * PER_ITEM;
    float own[PER_ITEM];
    uint num_low = 0;
    for (uint k = 0; k < PER_ITEM; ++k) {
        own[k] = first + k < n ? keys[first + k] : INFINITY;
        num_low += own[k] < pivot;
    }
    sums[lane] = num_low;
    for (uint step = 1; step < GROUP; step <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint node = (lane + 1) * 2 * step - 1;
        if (node < GROUP)
            sums[node] += sums[node - step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        total = sums[GROUP - 1];
        sums[GROUP - 1] = 0;
    }
    for (uint step = GROUP / 2; step > 0; step >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint node = (lane + 1) * 2 * step - 1;
        if (node < GROUP) {
            uint left = sums[node - step];
            sums[node - step] = sums[node];
            sums[node] += left;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint low_place = base + sums[lane];
    uint high_place = base + total + lane * PER_ITEM - sums[lane];
    for (uint k = 0; k < PER_ITEM; ++k) {
        if (first + k < n) {
            if (own[k] < pivot)
                parted[low_place++] = own[k];
            else
                parted[high_place++] = own[k];
        }
    }
    if (lane == 0)
        low_counts[get_group_id(0)] = total;
}
