// Rank sort: a key's place is the number of keys before it.
#ifndef TILE
#define TILE 128
#endif

// Every work-item reads all keys from global memory.
__kernel void rank_naive(__global const uint *keys, __global uint *sorted, uint n)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    uint key = keys[i];
    uint rank = 0;
    for (uint j = 0; j < n; ++j) {
        uint other = keys[j];
        rank += (other < key) || (other == key && j < i);
    }
    sorted[rank] = key;
}

// The keys pass through local memory tile by tile; TILE work-items a group.
__kernel void rank_tiled(__global const uint *keys, __global uint *sorted, uint n)
{
    __local uint tile[TILE];
    uint lane = get_local_id(0);
    uint i = get_global_id(0);
    uint key = i < n ? keys[i] : 0;
    uint rank = 0;
    for (uint base = 0; base < n; base += TILE) {
        tile[lane] = base + lane < n ? keys[base + lane] : 0xffffffffu;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < TILE; ++j) {
            uint other = tile[j];
            rank += (other < key) | ((other == key) & (base + j < i));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n)
        sorted[rank] = key;
}

// Compares with four keys at once; num_vectors times four keys.
__kernel void rank_vector(__global const int4 *keys, __global int *sorted, uint num_vectors)
{
    uint i = get_global_id(0);
    if (i >= 4 * num_vectors)
        return;
    int key = ((__global const int *)keys)[i];
    int4 rank = (int4)(0);
    int4 index = (int4)(0, 1, 2, 3);
    for (uint j = 0; j < num_vectors; ++j) {
        int4 other = keys[j];
        rank -= (other < key) | ((other == key) & (index < (int)i));
        index += 4;
    }
    sorted[rank.x + rank.y + rank.z + rank.w] = key;
}
