// Steps in which each vertex decides by its neighbourhood.

// Greedy colouring: an uncoloured vertex of the highest priority around it takes the least free colour of 64.
__kernel void colour_step(
    __global const int *offsets, __global const int *targets, __global const uint *priorities,
    __global const int *colours, __global int *next_colours, int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int colour = colours[v];
    if (colour < 0) {
        uint priority = priorities[v];
        ulong used = 0;
        int is_first = 1;
        int end = offsets[v + 1];
        for (int e = offsets[v]; e < end; ++e) {
            int w = targets[e];
            int other = colours[w];
            if (other >= 0)
                used |= 1UL << (other & 63);
            else if (w != v && priorities[w] >= priority)
                is_first = 0;
        }
        if (is_first && used != ~0UL)
            colour = (int)popcount((~used & (used + 1)) - 1);
    }
    next_colours[v] = colour;
}

// Luby's independent set: an undecided vertex joins if it has the least key among undecided neighbours.
__kernel void independent_set_step(
    __global const int *offsets, __global const int *targets, __global const float *keys,
    __global const char *states, __global char *next_states, int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    char state = states[v];
    if (state == 0) {
        float key = keys[v];
        int end = offsets[v + 1];
        state = 1;
        for (int e = offsets[v]; e < end && state == 1; ++e) {
            int w = targets[e];
            if (states[w] == 1)
                state = 2;
            else if (w != v && states[w] == 0 && keys[w] <= key)
                state = 0;
        }
    }
    next_states[v] = state;
}

// Peeling of the k-core: vertices below k leave and lower the degrees of their neighbours.
__kernel void core_peel(
    __global const int *offsets, __global const int *targets, __global const int *degrees,
    __global int *next_degrees, int num_vertices, int k)
{
    int v = get_global_id(0);
    if (v >= num_vertices || degrees[v] >= k)
        return;
    for (int e = offsets[v]; e < offsets[v + 1]; ++e) {
        int w = targets[e];
        if (degrees[w] >= k)
            atomic_dec(&next_degrees[w]);
    }
}

// Community detection: each vertex takes the label that most of its first 32 neighbours hold; the least wins a tie.
__kernel void label_majority(
    __global const int *offsets, __global const int *targets, __global const int *labels, __global int *next_labels,
    int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int around[32];
    int begin = offsets[v];
    int num = min(offsets[v + 1] - begin, 32);
    for (int k = 0; k < num; ++k)
        around[k] = labels[targets[begin + k]];
    int best = labels[v];
    int best_votes = 0;
    for (int k = 0; k < num; ++k) {
        int votes = 0;
        for (int other = 0; other < num; ++other)
            votes += around[other] == around[k];
        if (votes > best_votes || (votes == best_votes && around[k] < best)) {
            best = around[k];
            best_votes = votes;
        }
    }
    next_labels[v] = best;
}

// Boruvka's step: each vertex finds its lightest edge to another component and offers it to its own.
__kernel void boruvka_lightest(
    __global const int *offsets, __global const int *targets, __global const uint *weights,
    __global const int *components, __global uint *lightest, int num_vertices)
{
    int v = get_global_id(0);
    if (v >= num_vertices)
        return;
    int own = components[v];
    uint best = 0xffffffffu;
    int end = offsets[v + 1];
    for (int e = offsets[v]; e < end; ++e)
        if (components[targets[e]] != own)
            best = min(best, weights[e]);
    if (best < lightest[own])
        atomic_min(&lightest[own], best);
}
