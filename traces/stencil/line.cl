// High-order derivatives and smoothing along a line; cells beyond the ends repeat the ends.

#ifndef RADIUS
#define RADIUS 8 // reach of the stencil
#endif
#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group
#endif
#ifndef STEPS
#define STEPS 8 // steps between exchanges through global memory
#endif
#ifndef WIDTH
#define WIDTH 4 // outputs of a work-item
#endif

// Naive: every work-item reads its 2 RADIUS + 1 cells.
__kernel void line_naive(__global const float* in, __global float* out, __constant float* weights, int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    float sum = weights[0] * in[i];
    for (int r = 1; r <= RADIUS; ++r)
        sum = mad(weights[r], in[max(i - r, 0)] + in[min(i + r, n - 1)], sum);
    out[i] = sum;
}

// Staged: the work-group's cells and RADIUS cells to each side in local memory.
__kernel void line_local(__global const float* in, __global float* out, __constant float* weights, int n)
{
    __local float cells[LOCAL + 2 * RADIUS];
    const int item = get_local_id(0);
    const int first = (int)get_group_id(0) * LOCAL - RADIUS;
    for (int e = item; e < LOCAL + 2 * RADIUS; e += LOCAL)
        cells[e] = in[clamp(first + e, 0, n - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    const int i = get_global_id(0);
    if (i >= n)
        return;
    float sum = weights[0] * cells[item + RADIUS];
    for (int r = 1; r <= RADIUS; ++r)
        sum = mad(weights[r], cells[item + RADIUS - r] + cells[item + RADIUS + r], sum);
    out[i] = sum;
}

// Coarsened: WIDTH neighbouring outputs a work-item out of a window in private memory.
__kernel void line_window(__global const float* in, __global float* out, __constant float* weights, int n)
{
    const int first = get_global_id(0) * WIDTH;
    if (first >= n)
        return;
    float window[WIDTH + 2 * RADIUS];
    for (int e = 0; e < WIDTH + 2 * RADIUS; ++e)
        window[e] = in[clamp(first - RADIUS + e, 0, n - 1)];
    for (int j = 0; j < WIDTH; ++j) {
        float sum = weights[0] * window[j + RADIUS];
        for (int r = 1; r <= RADIUS; ++r)
            sum = mad(weights[r], window[j + RADIUS - r] + window[j + RADIUS + r], sum);
        if (first + j < n)
            out[first + j] = sum;
    }
}

// Temporal blocking: STEPS heat steps in local memory on LOCAL cells, of which LOCAL - 2 STEPS come out right.
__kernel void line_temporal(__global const float* in, __global float* out, int n, float k)
{
    __local float cells[2][LOCAL];
    const int item = get_local_id(0);
    const int i = (int)get_group_id(0) * (LOCAL - 2 * STEPS) - STEPS + item;
    const float first = in[clamp(i, 0, n - 1)];
    cells[0][item] = first;
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool is_fixed = i <= 0 || i >= n - 1;
    for (int step = 0; step < STEPS; ++step) {
        const float here = cells[step % 2][item];
        const float sides = cells[step % 2][max(item - 1, 0)] + cells[step % 2][min(item + 1, LOCAL - 1)];
        cells[1 - step % 2][item] = is_fixed ? here : here + k * (sides - 2.0f * here);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item >= STEPS && item < LOCAL - STEPS && i < n)
        out[i] = cells[STEPS % 2][item];
}

// Many heat steps on one line of LOCAL cells a work-group, in local memory, the cell itself in a register.
__kernel void line_resident(__global float* lines, int steps, float k)
{
    __local float cells[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    const bool is_fixed = item == 0 || item == LOCAL - 1;
    float here = lines[i];
    for (int step = 0; step < steps; ++step) {
        cells[item] = here;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!is_fixed)
            here += k * (cells[item - 1] + cells[item + 1] - 2.0f * here);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    lines[i] = here;
}
