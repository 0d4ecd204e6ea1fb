// Short-range repulsion by a cell list: a periodic cube of `side` cells an edge, CAPACITY places a cell.
#ifndef CAPACITY
#define CAPACITY 16
#endif

// Positions are relative to the atom's cell, in cell widths; the cutoff is one cell width.
float4 repel(float4 here, float4 there, float4 shift)
{
    float4 d = here - there - shift;
    float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
    float reach = 1.0f - sqrt(r2);
    float strength = reach > 0.0f ? reach * there.w : 0.0f;
    return (float4)(d.x * strength, d.y * strength, d.z * strength, reach > 0.0f ? reach * reach : 0.0f);
}

// One work-item a place: visits the 27 cells around straight from global memory.
__kernel void cells_naive(
    __global const float4 *atoms, __global const int *counts, __global float4 *forces, int side)
{
    int place = get_global_id(0);
    int cell = place / CAPACITY;
    if (cell >= side * side * side || place % CAPACITY >= counts[cell])
        return;
    int x = cell % side;
    int y = cell / side % side;
    int z = cell / (side * side);
    float4 here = atoms[place];
    float4 force = (float4)(0.0f);
    for (int near = 0; near < 27; ++near) {
        int dx = near % 3 - 1;
        int dy = near / 3 % 3 - 1;
        int dz = near / 9 - 1;
        int other = ((z + dz + side) % side * side + (y + dy + side) % side) * side + (x + dx + side) % side;
        float4 shift = (float4)(dx, dy, dz, 0.0f);
        int count = counts[other];
        for (int k = 0; k < count; ++k)
            force += repel(here, atoms[other * CAPACITY + k], shift);
    }
    forces[place] = force;
}

// One work-group of CAPACITY a cell: neighbouring cells pass through local memory one at a time.
__kernel void cells_local(
    __global const float4 *atoms, __global const int *counts, __global float4 *forces, int side)
{
    __local float4 tile[CAPACITY];
    int lane = get_local_id(0);
    int x = get_group_id(0);
    int y = get_group_id(1);
    int z = get_group_id(2);
    int cell = (z * side + y) * side + x;
    int own_count = counts[cell];
    float4 here = atoms[cell * CAPACITY + lane];
    float4 force = (float4)(0.0f);
    for (int near = 0; near < 27; ++near) {
        int dx = near % 3 - 1;
        int dy = near / 3 % 3 - 1;
        int dz = near / 9 - 1;
        int other = ((z + dz + side) % side * side + (y + dy + side) % side) * side + (x + dx + side) % side;
        float4 shift = (float4)(dx, dy, dz, 0.0f);
        int count = counts[other];
        tile[lane] = atoms[other * CAPACITY + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < own_count)
            for (int k = 0; k < count; ++k)
                force += repel(here, tile[k], shift);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane < own_count)
        forces[cell * CAPACITY + lane] = force;
}
