// Bitonic sorting network: single steps in global memory and whole tiles in local memory.
#ifndef TILE
#define TILE 512
#endif

// One step of the network in global memory; each work-item compares and exchanges one pair.
__kernel void bitonic_step(__global uint *keys, uint stride, uint block)
{
    uint i = get_global_id(0);
    uint low = 2 * i - (i & (stride - 1));
    uint high = low + stride;
    uint a = keys[low];
    uint b = keys[high];
    int is_rising = (low & block) == 0;
    if ((a > b) == is_rising) {
        keys[low] = b;
        keys[high] = a;
    }
}

// The same step on four neighbouring pairs at once, without branches; stride counts vectors of four.
__kernel void bitonic_step4(__global uint4 *keys, uint stride, uint block)
{
    uint i = get_global_id(0);
    uint low = 2 * i - (i & (stride - 1));
    uint4 a = keys[low];
    uint4 b = keys[low + stride];
    uint4 least = min(a, b);
    uint4 most = max(a, b);
    int is_rising = (low & block) == 0;
    keys[low] = is_rising ? least : most;
    keys[low + stride] = is_rising ? most : least;
}

// Sorts each tile of TILE keys completely in local memory.
__kernel void bitonic_local(__global uint *keys, uint n)
{
    __local uint tile[TILE];
    uint lane = get_local_id(0);
    uint lanes = get_local_size(0);
    uint base = get_group_id(0) * TILE;
    for (uint i = lane; i < TILE; i += lanes)
        tile[i] = base + i < n ? keys[base + i] : 0xffffffffu;
    for (uint block = 2; block <= TILE; block <<= 1) {
        for (uint stride = block >> 1; stride > 0; stride >>= 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint p = lane; p < TILE / 2; p += lanes) {
                uint low = 2 * p - (p & (stride - 1));
                uint a = tile[low];
                uint b = tile[low + stride];
                int is_rising = (low & block) == 0;
                if ((a > b) == is_rising) {
                    tile[low] = b;
                    tile[low + stride] = a;
                }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < TILE; i += lanes)
        if (base + i < n)
            keys[base + i] = tile[i];
}
