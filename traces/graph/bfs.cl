// One level of a breadth-first search on a graph in compressed rows; level -1 means not reached.
#ifndef TEAM
#define TEAM 8
#endif

// Top-down over all vertices: those at `depth` mark their unreached neighbours.
__kernel void bfs_top_down(
    __global const int *offsets, __global const int *targets, __global int *levels, __global int *is_changed,
    int num_vertices, int depth)
{
    int v = get_global_id(0);
    if (v >= num_vertices || levels[v] != depth)
        return;
    int changed = 0;
    for (int e = offsets[v]; e < offsets[v + 1]; ++e) {
        int w = targets[e];
        if (levels[w] < 0) {
            levels[w] = depth + 1;
            changed = 1;
        }
    }
    if (changed)
        *is_changed = 1;
}

// Top-down with TEAM neighbouring work-items a vertex, which share its edges.
__kernel void bfs_team(
    __global const int *offsets, __global const int *targets, __global int *levels, __global int *is_changed,
    int num_vertices, int depth)
{
    int v = get_global_id(0) / TEAM;
    int member = get_global_id(0) % TEAM;
    if (v >= num_vertices || levels[v] != depth)
        return;
    int end = offsets[v + 1];
    int changed = 0;
    for (int e = offsets[v] + member; e < end; e += TEAM) {
        int w = targets[e];
        if (levels[w] < 0) {
            levels[w] = depth + 1;
            changed = 1;
        }
    }
    if (changed)
        *is_changed = 1;
}

// Bottom-up: each unreached vertex looks for any neighbour in the frontier bitmap and stops at the first.
__kernel void bfs_bottom_up(
    __global const int *offsets, __global const int *sources, __global const int *levels,
    __global const uint *frontier, __global int *next_levels, int num_vertices, uint mask, int depth)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int level = levels[v];
    if (level < 0) {
        int end = offsets[v + 1];
        for (int e = offsets[v]; e < end; ++e) {
            int w = sources[e];
            if ((frontier[w >> 5] & mask) >> (w & 31) & 1) {
                level = depth + 1;
                break;
            }
        }
    }
    next_levels[v] = level;
}

// Data-driven: work-items take vertices from a queue, claim neighbours atomically and append them to the next queue.
__kernel void bfs_queue(
    __global const int *offsets, __global const int *targets, __global const int *queue, __global int *levels,
    __global int *next_queue, __global int *next_size, int queue_size, int depth)
{
    int i = get_global_id(0);
    if (i >= queue_size)
        return;
    int v = queue[i];
    for (int e = offsets[v]; e < offsets[v + 1]; ++e) {
        int w = targets[e];
        if (levels[w] == -1 && atomic_cmpxchg(&levels[w], -1, depth + 1) == -1)
            next_queue[atomic_inc(next_size)] = w;
    }
}

// A whole search by one work-group, level by level, with the levels of up to 4096 vertices in local memory.
__kernel void bfs_group(
    __global const int *offsets, __global const int *targets, __global int *levels, int num_vertices, int source)
{
    __local int level_of[4096];
    __local int num_changed[2];
    int lane = get_local_id(0);
    int lanes = get_local_size(0);
    for (int v = lane; v < num_vertices; v += lanes)
        level_of[v] = v == source ? 0 : -1;
    if (lane < 2)
        num_changed[lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int depth = 0; depth < num_vertices; ++depth) {
        int changed = 0;
        for (int v = lane; v < num_vertices; v += lanes) {
            if (level_of[v] != depth)
                continue;
            for (int e = offsets[v]; e < offsets[v + 1]; ++e) {
                int w = targets[e];
                if (level_of[w] < 0) {
                    level_of[w] = depth + 1;
                    changed = 1;
                }
            }
        }
        if (changed)
            atomic_inc(&num_changed[depth & 1]);
        barrier(CLK_LOCAL_MEM_FENCE);
        int is_done = num_changed[depth & 1] == 0;
        if (lane == 0)
            num_changed[(depth + 1) & 1] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (is_done)
            break;
    }
    for (int v = lane; v < num_vertices; v += lanes)
        levels[v] = level_of[v];
}

// Pull step of 64 searches at once: a vertex gathers the searches that have reached its neighbours.
__kernel void bfs_many_pull(
    __global const int *offsets, __global const int *sources, __global const ulong *reached,
    __global ulong *next_reached, int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    ulong set = reached[v];
    int end = offsets[v + 1];
    for (int e = offsets[v]; e < end && set != ~0UL; ++e)
        set |= reached[sources[e]];
    next_reached[v] = set;
}
