// Passes of a least-significant-digit radix sort.
#ifndef BITS
#define BITS 4
#endif
#define RADIX (1 << BITS)
#define GROUP 256

// Counts the digits of the keys that a group strides over, by local atomics; counts are digit-major.
__kernel void radix_histogram(__global const uint *keys, __global uint *counts, uint n, uint shift)
{
    __local uint bins[RADIX];
    uint lane = get_local_id(0);
    for (uint d = lane; d < RADIX; d += get_local_size(0))
        bins[d] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&bins[(keys[i] >> shift) & (RADIX - 1)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = lane; d < RADIX; d += get_local_size(0))
        counts[d * get_num_groups(0) + get_group_id(0)] = bins[d];
}

// Stable sort of each tile of GROUP keys by BITS bits: one split and scan in local memory a bit.
__kernel void radix_split_tile(__global uint *keys, uint n, uint shift)
{
    __local uint tile[GROUP];
    __local uint zeros[2 * GROUP];
    uint lane = get_local_id(0);
    uint i = get_global_id(0);
    tile[lane] = i < n ? keys[i] : 0xffffffffu;
    for (uint bit = shift; bit < shift + BITS; ++bit) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint key = tile[lane];
        uint is_one = (key >> bit) & 1;
        uint source = 0;
        zeros[lane] = 1 - is_one;
        for (uint step = 1; step < GROUP; step <<= 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            uint sum = zeros[source + lane];
            if (lane >= step)
                sum += zeros[source + lane - step];
            source = GROUP - source;
            zeros[source + lane] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint upto = zeros[source + lane];
        uint total = zeros[source + GROUP - 1];
        tile[is_one ? total + lane - upto : upto - 1] = key;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n)
        keys[i] = tile[lane];
}

// Scatter pass: the tile is ordered by digit in local memory first, so that writes to one digit are neighbours.
__kernel void radix_scatter(__global const uint *keys, __global const uint *bases, __global uint *sorted, uint shift)
{
    __local uint tile[GROUP];
    __local uint zeros[2 * GROUP];
    __local uint first[RADIX];
    uint lane = get_local_id(0);
    tile[lane] = keys[get_global_id(0)];
    for (uint bit = shift; bit < shift + BITS; ++bit) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint key = tile[lane];
        uint is_one = (key >> bit) & 1;
        uint source = 0;
        zeros[lane] = 1 - is_one;
        for (uint step = 1; step < GROUP; step <<= 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            uint sum = zeros[source + lane];
            if (lane >= step)
                sum += zeros[source + lane - step];
            source = GROUP - source;
            zeros[source + lane] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint upto = zeros[source + lane];
        uint total = zeros[source + GROUP - 1];
        tile[is_one ? total + lane - upto : upto - 1] = key;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint key = tile[lane];
    uint digit = (key >> shift) & (RADIX - 1);
    if (lane == 0 || ((tile[lane - 1] >> shift) & (RADIX - 1)) != digit)
        first[digit] = lane;
    barrier(CLK_LOCAL_MEM_FENCE);
    sorted[bases[digit * get_num_groups(0) + get_group_id(0)] + lane - first[digit]] = key;
}

// Scatter pass that finds each key's rank by counting equal digits before it in the tile.
__kernel void radix_scatter_count(
    __global const uint *keys, __global const uint *bases, __global uint *sorted, uint shift)
{
    __local uint digits[GROUP];
    uint lane = get_local_id(0);
    uint key = keys[get_global_id(0)];
    uint digit = (key >> shift) & (RADIX - 1);
    digits[lane] = digit;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint rank = 0;
    for (uint other = 0; other < lane; ++other)
        rank += digits[other] == digit;
    sorted[bases[digit * get_num_groups(0) + get_group_id(0)] + rank] = key;
}
