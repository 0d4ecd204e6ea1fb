// Dynamic programming over tables.
#ifndef TILE
#define TILE 16
#endif

// One step of Floyd-Warshall over all pairs, one pair a work-item.
__kernel void floyd_step(__global int *distances, int n, int through)
{
    int column = get_global_id(0);
    int row = get_global_id(1);
    if (column >= n || row >= n)
        return;
    int detour = distances[row * n + through] + distances[through * n + column];
    if (detour < distances[row * n + column])
        distances[row * n + column] = detour;
}

// The same step on four columns at once; width is n / 4.
__kernel void floyd_step4(__global int4 *distances, int width, int n, int through)
{
    int column = get_global_id(0);
    int row = get_global_id(1);
    if (column >= width || row >= n)
        return;
    int4 to = distances[row * width + through / 4];
    int rest = through % 4;
    int first = rest < 2 ? (rest == 0 ? to.x : to.y) : (rest == 2 ? to.z : to.w);
    int4 direct = distances[row * width + column];
    int4 detour = first + distances[through * width + column];
    if (any(detour < direct))
        distances[row * width + column] = min(direct, detour);
}

// TILE steps at once for a tile outside the pivot's row and column, from local memory.
__kernel void floyd_tile(__global int *distances, int n, int pivot)
{
    __local int rows[TILE][TILE];
    __local int columns[TILE][TILE];
    int x = get_local_id(0);
    int y = get_local_id(1);
    int tile_x = get_group_id(0);
    int tile_y = get_group_id(1);
    tile_x += tile_x >= pivot;
    tile_y += tile_y >= pivot;
    int at = (tile_y * TILE + y) * n + tile_x * TILE + x;
    rows[y][x] = distances[(tile_y * TILE + y) * n + pivot * TILE + x];
    columns[y][x] = distances[(pivot * TILE + y) * n + tile_x * TILE + x];
    int best = distances[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k)
        best = min(best, rows[y][k] + columns[k][x]);
    distances[at] = best;
}

// A whole Floyd-Warshall on a table of TILE x TILE by one group in local memory; one table a group.
__kernel void floyd_group(__global int *distances)
{
    __local int table[TILE][TILE];
    int x = get_local_id(0);
    int y = get_local_id(1);
    __global int *own = distances + get_group_id(0) * TILE * TILE;
    table[y][x] = own[y * TILE + x];
    for (int k = 0; k < TILE; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int best = min(table[y][x], table[y][k] + table[k][x]);
        barrier(CLK_LOCAL_MEM_FENCE);
        table[y][x] = best;
    }
    own[y * TILE + x] = table[y][x];
}

// One item's row of the 0/1 knapsack table.
__kernel void knapsack_row(
    __global const int *before, __global int *after, int capacity, int weight, int value)
{
    int c = get_global_id(0);
    if (c > capacity)
        return;
    int best = before[c];
    if (c >= weight)
        best = max(best, before[c - weight] + value);
    after[c] = best;
}

// All items of a knapsack of capacity up to 2047 by one work-group, two rows in local memory.
__kernel void knapsack_group(
    __global const int *weights, __global const int *values, __global int *best, int capacity, int num_items)
{
    __local int rows[2 * 2048];
    int lane = get_local_id(0);
    int lanes = get_local_size(0);
    int from = 0;
    for (int c = lane; c <= capacity; c += lanes)
        rows[c] = 0;
    for (int item = 0; item < num_items; ++item) {
        int weight = weights[item];
        int value = values[item];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int c = lane; c <= capacity; c += lanes) {
            int keep = rows[from + c];
            rows[2048 - from + c] = c >= weight ? max(keep, rows[from + c - weight] + value) : keep;
        }
        from = 2048 - from;
    }
    for (int c = lane; c <= capacity; c += lanes)
        best[c] = rows[from + c];
}

// One step of Viterbi's algorithm for a batch of sequences: the best predecessor of each state.
__kernel void viterbi_step(
    __global const float *scores, __global const float *transitions, __global const float *emissions,
    __global float *next_scores, __global int *came_from, int num_states)
{
    int state = get_global_id(0);
    int sequence = get_global_id(1);
    if (state >= num_states)
        return;
    float best = -INFINITY;
    int from = 0;
    for (int s = 0; s < num_states; ++s) {
        float score = scores[sequence * num_states + s] + transitions[s * num_states + state];
        if (score > best) {
            best = score;
            from = s;
        }
    }
    next_scores[sequence * num_states + state] = best + emissions[sequence * num_states + state];
    came_from[sequence * num_states + state] = from;
}

// Whole sequences of num_steps steps, one a group with one state a work-item, scores in local memory.
__kernel void viterbi_group(
    __global const float *transitions, __global const float *emissions, __global const uchar *symbols,
    __global float *finals, int num_steps)
{
    __local float scores[2 * 256];
    int state = get_local_id(0);
    int num_states = get_local_size(0);
    int from = 0;
    scores[state] = 0.0f;
    for (int t = 0; t < num_steps; ++t) {
        float best = -INFINITY;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int s = 0; s < num_states; ++s)
            best = fmax(best, scores[from + s] + transitions[s * num_states + state]);
        uchar symbol = symbols[get_group_id(0) * num_steps + t];
        from = 256 - from;
        scores[from + state] = best + emissions[symbol * num_states + state];
    }
    finals[get_group_id(0) * num_states + state] = scores[from + state];
}

// One diagonal of the matrix-chain table: each work-item tries every split of its chain of `span` + 1 matrices.
__kernel void chain_diagonal(__global int *costs, __global const int *sizes, int n, int span)
{
    int i = get_global_id(0);
    int j = i + span;
    if (j >= n)
        return;
    int best = INT_MAX;
    for (int k = i; k < j; ++k) {
        int cost = costs[i * n + k] + costs[(k + 1) * n + j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        best = min(best, cost);
    }
    costs[i * n + j] = best;
}
