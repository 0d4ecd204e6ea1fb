// Wave equation, second order in time: `next` holds the field one step back and receives the field one step on.

#define REACH 4 // cells to each side that the eighth-order derivative uses

// Two dimensions, second order, a speed for each cell; the outermost cells stay.
__kernel void wave2d(__global const float* field, __global float* next, __global const float* speed, int nx, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    const int i = y * nx + x;
    const float here = field[i];
    const float laplacian = field[i - 1] + field[i + 1] + field[i - nx] + field[i + nx] - 4.0f * here;
    next[i] = 2.0f * here - next[i] + speed[i] * speed[i] * laplacian;
}

// Three dimensions, eighth order, marching up z with nine cells of the column in registers; a rim of REACH cells stays.
__kernel void wave3d_march(__global const float* field, __global float* next, __constant float* weights, int nx, int ny,
    int nz, float speed2)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x < REACH || y < REACH || x >= nx - REACH || y >= ny - REACH)
        return;
    const int plane = nx * ny;
    int i = y * nx + x;
    float column[2 * REACH + 1];
    for (int r = 0; r < 2 * REACH; ++r)
        column[r + 1] = field[i + r * plane];
    i += REACH * plane;
    for (int z = REACH; z < nz - REACH; ++z, i += plane) {
        for (int r = 0; r < 2 * REACH; ++r)
            column[r] = column[r + 1];
        column[2 * REACH] = field[i + REACH * plane];
        float laplacian = 3.0f * weights[0] * column[REACH];
        for (int r = 1; r <= REACH; ++r) {
            const float sides = field[i - r] + field[i + r] + field[i - r * nx] + field[i + r * nx];
            laplacian = mad(weights[r], sides + column[REACH - r] + column[REACH + r], laplacian);
        }
        next[i] = 2.0f * column[REACH] - next[i] + speed2 * laplacian;
    }
}

// One dimension, `steps` steps by one work-group for each string of n cells, both fields in global memory; ends stay.
__kernel void wave1d_group(__global float* field, __global float* next, int n, int steps, float speed2)
{
    const int item = get_local_id(0);
    const int num_items = get_local_size(0);
    __global float* here = field + get_group_id(0) * n;
    __global float* there = next + get_group_id(0) * n;
    for (int step = 0; step < steps; ++step) {
        for (int i = 1 + item; i < n - 1; i += num_items)
            there[i] = 2.0f * here[i] - there[i] + speed2 * (here[i - 1] + here[i + 1] - 2.0f * here[i]);
        barrier(CLK_GLOBAL_MEM_FENCE);
        __global float* swap = here;
        here = there;
        there = swap;
    }
}
