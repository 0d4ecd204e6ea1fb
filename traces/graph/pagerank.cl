// One iteration of PageRank.

// Pull: each vertex sums the shares of its in-neighbours.
__kernel void pagerank_pull(
    __global const int *offsets, __global const int *sources, __global const float *shares, __global float *ranks,
    int num_vertices, float damping)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    float sum = 0.0f;
    int end = offsets[v + 1];
    for (int e = offsets[v]; e < end; ++e)
        sum += shares[sources[e]];
    ranks[v] = (1.0f - damping) / num_vertices + damping * sum;
}

// Pull by one work-group a vertex, reduced in local memory: for rows with very many edges.
__kernel void pagerank_group(
    __global const int *offsets, __global const int *sources, __global const float *shares, __global float *ranks,
    int num_vertices, float damping)
{
    __local float sums[64];
    int lane = get_local_id(0);
    int v = get_group_id(0);
    float sum = 0.0f;
    for (int e = offsets[v] + lane; e < offsets[v + 1]; e += 64)
        sum += shares[sources[e]];
    sums[lane] = sum;
    for (int half_size = 32; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_size)
            sums[lane] += sums[lane + half_size];
    }
    if (lane == 0)
        ranks[v] = (1.0f - damping) / num_vertices + damping * sums[0];
}

// Push: each vertex adds its share to its out-neighbours; a float is added by compare and exchange.
__kernel void pagerank_push(
    __global const int *offsets, __global const int *targets, __global const float *ranks, __global uint *sums,
    int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int begin = offsets[v];
    int end = offsets[v + 1];
    float share = ranks[v] / max(end - begin, 1);
    for (int e = begin; e < end; ++e) {
        __global uint *sum = sums + targets[e];
        uint seen = *sum;
        uint expected;
        do {
            expected = seen;
            seen = atomic_cmpxchg(sum, expected, as_uint(as_float(expected) + share));
        } while (seen != expected);
    }
}

// Push in fixed point with native atomic additions.
__kernel void pagerank_push_fixed(
    __global const int *offsets, __global const int *targets, __global const uint *ranks, __global uint *sums,
    int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int begin = offsets[v];
    int end = offsets[v + 1];
    uint share = ranks[v] / (uint)max(end - begin, 1);
    for (int e = begin; e < end; ++e)
        atomic_add(&sums[targets[e]], share);
}
