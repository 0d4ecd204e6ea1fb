// Steps of connected components.

// Hooking: each edge lowers the label of its larger end.
__kernel void components_hook(
    __global const int *from, __global const int *to, __global const int *labels, __global int *next_labels,
    int num_edges)
{
    int e = get_global_id(0);
    if (e >= num_edges)
        return;
    int a = labels[from[e]];
    int b = labels[to[e]];
    if (a != b)
        atomic_min(&next_labels[max(a, b)], min(a, b));
}

// Pointer jumping: follows parents to the root, at most max_hops times.
__kernel void components_jump(
    __global const int *parents, __global int *roots, int num_vertices, int max_hops)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int root = parents[v];
    for (int hop = 0; hop < max_hops; ++hop) {
        int above = parents[root];
        if (above == root)
            break;
        root = above;
    }
    roots[v] = root;
}

// Label propagation: each vertex takes the least label around it.
__kernel void components_propagate(
    __global const int *offsets, __global const int *targets, __global const int *labels, __global int *next_labels,
    __global int *num_changed, int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int own = labels[v];
    int least = own;
    int end = offsets[v + 1];
    for (int e = offsets[v]; e < end; ++e)
        least = min(least, labels[targets[e]]);
    next_labels[v] = least;
    if (least < own)
        atomic_inc(num_changed);
}

// List ranking by one pointer-doubling step.
__kernel void list_rank(
    __global const int *next, __global const int *ranks, __global int *new_next, __global int *new_ranks, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    int hop = next[i];
    new_ranks[i] = ranks[i] + ranks[hop];
    new_next[i] = next[hop];
}
