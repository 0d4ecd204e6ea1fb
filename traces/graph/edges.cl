// Work over edges and walks.

// In-degrees by global atomics; few work-items stride over the edges.
__kernel void degree_count(__global const int *targets, __global int *degrees, int num_edges)
{
    for (int e = get_global_id(0); e < num_edges; e += get_global_size(0))
        atomic_inc(&degrees[targets[e]]);
}

// Random walks: each walker takes num_steps steps along random edges and records where it ends.
__kernel void random_walk(
    __global const int *offsets, __global const int *targets, __global int *ends, int num_vertices, int num_steps)
{
    uint walker = get_global_id(0);
    uint state = walker * 747796405u + 2891336453u;
    int v = walker % (uint)num_vertices;
    for (int step = 0; step < num_steps; ++step) {
        int begin = offsets[v];
        int degree = offsets[v + 1] - begin;
        state = state * 1664525u + 1013904223u;
        if (degree > 0)
            v = targets[begin + (state >> 8) % (uint)degree];
    }
    ends[walker] = v;
}
