// Odd-even transposition sort.
#ifndef TILE
#define TILE 256
#endif

// One phase over the whole array; each work-item orders one neighbouring pair.
__kernel void odd_even_step(__global float *keys, uint n, uint phase)
{
    uint low = 2 * get_global_id(0) + phase;
    if (low + 1 >= n)
        return;
    float a = keys[low];
    float b = keys[low + 1];
    if (a > b) {
        keys[low] = b;
        keys[low + 1] = a;
    }
}

// Sorts each tile of TILE keys by TILE phases in local memory; TILE / 2 work-items a group.
__kernel void odd_even_local(__global const float *keys, __global float *sorted, uint n)
{
    __local float tile[TILE];
    uint lane = get_local_id(0);
    uint base = get_group_id(0) * TILE;
    for (uint half_tile = 0; half_tile < 2; ++half_tile) {
        uint i = half_tile * (TILE / 2) + lane;
        tile[i] = base + i < n ? keys[base + i] : INFINITY;
    }
    for (uint phase = 0; phase < TILE; ++phase) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint low = 2 * lane + (phase & 1);
        if (low + 1 < TILE) {
            float a = tile[low];
            float b = tile[low + 1];
            tile[low] = fmin(a, b);
            tile[low + 1] = fmax(a, b);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_tile = 0; half_tile < 2; ++half_tile) {
        uint i = half_tile * (TILE / 2) + lane;
        if (base + i < n)
            sorted[base + i] = tile[i];
    }
}
