// One round of Bellman-Ford relaxation for shortest paths.

// Pull: each vertex takes the least over its incoming edges, without atomics.
__kernel void sssp_pull(
    __global const int *offsets, __global const int *sources, __global const int *weights,
    __global const int *distances, __global int *next_distances, int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int best = distances[v];
    int end = offsets[v + 1];
    for (int e = offsets[v]; e < end; ++e)
        best = min(best, distances[sources[e]] + weights[e]);
    next_distances[v] = best;
}

// Push from the vertices that are nearer than `threshold`, with an atomic minimum only where it may help.
__kernel void sssp_push(
    __global const int *offsets, __global const int *targets, __global const int *weights,
    __global const int *distances, __global int *next_distances, int num_vertices, int threshold)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int distance = distances[v];
    if (distance >= threshold)
        return;
    int end = offsets[v + 1];
    for (int e = offsets[v]; e < end; ++e) {
        int w = targets[e];
        int through = distance + weights[e];
        if (through < next_distances[w])
            atomic_min(&next_distances[w], through);
    }
}

// Edge-parallel over a list of edges that few persistent work-items stride over.
__kernel void sssp_edges(
    __global const int2 *edges, __global const int *weights, __global const int *distances,
    __global int *next_distances, int num_edges)
{
    for (int e = get_global_id(0); e < num_edges; e += get_global_size(0)) {
        int2 edge = edges[e];
        atomic_min(&next_distances[edge.y], distances[edge.x] + weights[e]);
    }
}
