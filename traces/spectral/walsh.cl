// Walsh-Hadamard transform.
#ifndef TILE
#define TILE 512
#endif

// One stage in global memory.
__kernel void walsh_stage(__global float *values, uint stride)
{
    uint i = get_global_id(0);
    uint low = 2 * i - (i & (stride - 1));
    float a = values[low];
    float b = values[low + stride];
    values[low] = a + b;
    values[low + stride] = a - b;
}

// All stages of a tile in local memory, TILE / 2 work-items a group.
__kernel void walsh_local(__global int *values)
{
    __local int tile[TILE];
    uint lane = get_local_id(0);
    uint base = get_group_id(0) * TILE;
    tile[lane] = values[base + lane];
    tile[lane + TILE / 2] = values[base + lane + TILE / 2];
    for (uint stride = 1; stride < TILE; stride <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint low = 2 * lane - (lane & (stride - 1));
        int a = tile[low];
        int b = tile[low + stride];
        tile[low] = a + b;
        tile[low + stride] = a - b;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    values[base + lane] = tile[lane];
    values[base + lane + TILE / 2] = tile[lane + TILE / 2];
}
