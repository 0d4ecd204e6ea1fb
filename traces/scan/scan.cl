// Prefix sums.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif
#ifndef ITEMS
#define ITEMS 4 // consecutive numbers of a work-item
#endif

// Inclusive scan of LOCAL numbers in local memory, Hillis and Steele: log2(LOCAL) steps, two copies.
__kernel void scan_hillis_steele(__global const int* in, __global int* out, __global int* totals, int n)
{
    __local int sums[2][LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    int now = 0;
    sums[0][item] = i < n ? in[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < LOCAL; distance *= 2) {
        const int left = item >= distance ? sums[now][item - distance] : 0;
        sums[1 - now][item] = sums[now][item] + left;
        now = 1 - now;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n)
        out[i] = sums[now][item];
    if (item == LOCAL - 1)
        totals[get_group_id(0)] = sums[now][item];
}

// Exclusive scan of 2 LOCAL numbers in local memory, Blelloch: up-sweep, down-sweep.
__kernel void scan_blelloch(__global const int* in, __global int* out, __global int* totals, int n)
{
    __local int tree[2 * LOCAL];
    const int item = get_local_id(0);
    const int first = get_group_id(0) * 2 * LOCAL;
    tree[item] = first + item < n ? in[first + item] : 0;
    tree[item + LOCAL] = first + LOCAL + item < n ? in[first + LOCAL + item] : 0;
    int distance = 1;
    for (int active = LOCAL; active > 0; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < active)
            tree[distance * (2 * item + 2) - 1] += tree[distance * (2 * item + 1) - 1];
        distance *= 2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == LOCAL - 1) {
        totals[get_group_id(0)] = tree[2 * LOCAL - 1];
        tree[2 * LOCAL - 1] = 0;
    }
    for (int active = 1; active <= LOCAL; active *= 2) {
        distance /= 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < active) {
            const int left = distance * (2 * item + 1) - 1;
            const int right = distance * (2 * item + 2) - 1;
            const int old = tree[left];
            tree[left] = tree[right];
            tree[right] += old;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first + item < n)
        out[first + item] = tree[item];
    if (first + LOCAL + item < n)
        out[first + LOCAL + item] = tree[item + LOCAL];
}

// Inclusive scan of LOCAL * ITEMS numbers: serial over ITEMS in registers, Hillis and Steele over the work-items.
__kernel void scan_items(__global const int* in, __global int* out, __global int* totals, int n)
{
    __local int sums[LOCAL];
    const int item = get_local_id(0);
    const int first = get_global_id(0) * ITEMS;
    int kept[ITEMS];
    int sum = 0;
    for (int j = 0; j < ITEMS; ++j) {
        sum += first + j < n ? in[first + j] : 0;
        kept[j] = sum;
    }
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < LOCAL; distance *= 2) {
        const int left = item >= distance ? sums[item - distance] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += left;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int before = sums[item] - sum;
    for (int j = 0; j < ITEMS; ++j)
        if (first + j < n)
            out[first + j] = before + kept[j];
    if (item == LOCAL - 1)
        totals[get_group_id(0)] = sums[item];
}

// Whole inclusive scan by one work-group: tile after tile with a carry.
__kernel void scan_group(__global const int* in, __global int* out, int n)
{
    __local int sums[LOCAL];
    const int item = get_local_id(0);
    int carry = 0;
    for (int start = 0; start < n; start += LOCAL) {
        sums[item] = start + item < n ? in[start + item] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int distance = 1; distance < LOCAL; distance *= 2) {
            const int left = item >= distance ? sums[item - distance] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[item] += left;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (start + item < n)
            out[start + item] = carry + sums[item];
        carry += sums[LOCAL - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Second phase: add to each number the offset of its block of `block` numbers.
__kernel void scan_add_offsets(__global int* data, __global const int* offsets, int n, int block)
{
    const int i = get_global_id(0);
    if (i < n)
        data[i] += offsets[i / block];
}

// Inclusive scan along each row of a rows x cols matrix, serial, one row a work-item: neighbours read a row apart.
__kernel void scan_rows(__global const float* in, __global float* out, int rows, int cols)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col) {
        sum += in[row * cols + col];
        out[row * cols + col] = sum;
    }
}

// Inclusive scan down each column of a rows x cols matrix, serial, one column a work-item: coalesced.
__kernel void scan_columns(__global const float* in, __global float* out, int rows, int cols)
{
    const int col = get_global_id(0);
    if (col >= cols)
        return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row) {
        sum += in[row * cols + col];
        out[row * cols + col] = sum;
    }
}

// Whole inclusive scan by one work-item.
__kernel void scan_serial(__global const int* in, __global int* out, int n)
{
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += in[i];
        out[i] = sum;
    }
}

// First-order linear recurrence y = a y + x along each channel of interleaved samples, one channel a work-item.
__kernel void recurrence(__global const float* x, __global float* y, int channels, int samples, float a)
{
    const int channel = get_global_id(0);
    if (channel >= channels)
        return;
    float state = 0.0f;
    for (int t = 0; t < samples; ++t) {
        state = mad(a, state, x[t * channels + channel]);
        y[t * channels + channel] = state;
    }
}

// The same recurrence as a scan of the pairs (factor, value) over LOCAL numbers of a work-group.
__kernel void recurrence_scan(__global const float* x, __global float* y, int n, float a)
{
    __local float2 pairs[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    pairs[item] = (float2)(a, i < n ? x[i] : 0.0f);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < LOCAL; distance *= 2) {
        float2 mine = pairs[item];
        if (item >= distance) {
            const float2 left = pairs[item - distance];
            mine = (float2)(mine.x * left.x, mad(mine.x, left.y, mine.y));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        pairs[item] = mine;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n)
        y[i] = pairs[item].y;
}
