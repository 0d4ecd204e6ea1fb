// Smallest, largest and their places.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif
#ifndef BEST
#define BEST 8 // how many of the largest a work-item keeps
#endif

// Smallest and largest of the numbers that each work-group strides over.
__kernel void min_max(__global const float* in, __global float2* partial, int n)
{
    __local float lows[LOCAL];
    __local float highs[LOCAL];
    const int item = get_local_id(0);
    float low = INFINITY;
    float high = -INFINITY;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        low = fmin(low, in[i]);
        high = fmax(high, in[i]);
    }
    lows[item] = low;
    highs[item] = high;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) {
            lows[item] = fmin(lows[item], lows[item + half_size]);
            highs[item] = fmax(highs[item], highs[item + half_size]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = (float2)(lows[0], highs[0]);
}

// Place of the largest number of each row of a rows x cols matrix, the first of equals; one work-group a row.
__kernel void argmax_rows(__global const float* in, __global int* places, int cols)
{
    __local float values[LOCAL];
    __local int indices[LOCAL];
    const int item = get_local_id(0);
    const int row = get_group_id(0);
    float best = -INFINITY;
    int place = cols;
    for (int col = item; col < cols; col += LOCAL) {
        const float value = in[row * cols + col];
        if (value > best) {
            best = value;
            place = col;
        }
    }
    values[item] = best;
    indices[item] = place;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) {
            const float other = values[item + half_size];
            const int other_place = indices[item + half_size];
            if (other > values[item] || (other == values[item] && other_place < indices[item])) {
                values[item] = other;
                indices[item] = other_place;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        places[row] = indices[0];
}

// Largest number by one atomic a work-item, after it has looked at `run` numbers a grid apart.
__kernel void max_atomic(__global const int* in, __global int* largest, int n, int run)
{
    int high = INT_MIN;
    for (int j = 0; j < run; ++j) {
        const int i = j * (int)get_global_size(0) + (int)get_global_id(0);
        if (i < n)
            high = max(high, in[i]);
    }
    atomic_max(largest, high);
}

// The BEST largest of the numbers that a work-item strides over, by insertion into a private array.
__kernel void top_private(__global const float* in, __global float* best, int n)
{
    const int item = get_global_id(0);
    const int num_items = get_global_size(0);
    float kept[BEST];
    for (int b = 0; b < BEST; ++b)
        kept[b] = -INFINITY;
    for (int i = item; i < n; i += num_items) {
        float value = in[i];
        if (value > kept[BEST - 1])
            for (int b = 0; b < BEST; ++b) {
                const float higher = fmax(kept[b], value);
                value = fmin(kept[b], value);
                kept[b] = higher;
            }
    }
    for (int b = 0; b < BEST; ++b)
        best[b * num_items + item] = kept[b];
}
