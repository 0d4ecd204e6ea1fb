// Histograms of values 0 .. BINS - 1.

#ifndef BINS
#define BINS 256 // number of bins
#endif
#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group
#endif

// One global atomic a value; values are clamped into the bins.
__kernel void histogram_global(__global const int* in, __global uint* bins, int n)
{
    const int i = get_global_id(0);
    if (i < n)
        atomic_inc(bins + clamp(in[i], 0, BINS - 1));
}

// Local atomics into the work-group's own bins, which it adds to the global ones in the end.
__kernel void histogram_local(__global const int* in, __global uint* bins, int n)
{
    __local uint counts[BINS];
    const int item = get_local_id(0);
    for (int b = item; b < BINS; b += LOCAL)
        counts[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(counts + clamp(in[i], 0, BINS - 1));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = item; b < BINS; b += LOCAL)
        if (counts[b] > 0)
            atomic_add(bins + b, counts[b]);
}

// Private counters, one byte each, for every work-item in local memory; a work-item reads at most 255 values.
__kernel void histogram_bytes(__global const uchar* in, __global uint* bins, int n, int run)
{
    __local uchar counts[BINS * LOCAL];
    const int item = get_local_id(0);
    for (int b = 0; b < BINS; ++b)
        counts[b * LOCAL + item] = 0;
    const int first = get_group_id(0) * LOCAL * run + item;
    for (int j = 0; j < run; ++j)
        if (first + j * LOCAL < n)
            counts[in[first + j * LOCAL] % BINS * LOCAL + item] += 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = item; b < BINS; b += LOCAL) {
        uint sum = 0;
        for (int i = 0; i < LOCAL; ++i)
            sum += counts[b * LOCAL + (i + item) % LOCAL];
        atomic_add(bins + b, sum);
    }
}

// No atomics: every work-item owns a bin and looks at all values of its work-group's part.
__kernel void histogram_owner(__global const int* in, __global uint* partial, int n, int part)
{
    const int bin = get_local_id(0);
    const int first = get_group_id(0) * part;
    const int end = min(first + part, n);
    uint count = 0;
    for (int i = first; i < end; ++i)
        count += in[i] == bin;
    partial[get_global_id(0)] = count;
}

// Bins of continuous values: bin edges are found by binary search in constant memory, then a local atomic.
__kernel void histogram_edges(__global const float* in, __constant float* edges, __global uint* bins, int n)
{
    __local uint counts[BINS];
    const int item = get_local_id(0);
    for (int b = item; b < BINS; b += LOCAL)
        counts[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int i = get_global_id(0);
    if (i < n) {
        const float value = in[i];
        int low = 0;
        int high = BINS;
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (edges[middle] <= value)
                low = middle;
            else
                high = middle;
        }
        atomic_inc(counts + low);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = item; b < BINS; b += LOCAL)
        atomic_add(bins + b, counts[b]);
}

// Digit counts of a radix sort: BINS counters a work-group, written out side by side for a later scan.
__kernel void digit_counts(__global const uint* keys, __global uint* counts, int n, int shift, int run)
{
    __local uint local_counts[BINS];
    const int item = get_local_id(0);
    for (int b = item; b < BINS; b += LOCAL)
        local_counts[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int first = get_group_id(0) * LOCAL * run + item;
    for (int j = 0; j < run; ++j)
        if (first + j * LOCAL < n)
            atomic_inc(local_counts + (keys[first + j * LOCAL] >> shift) % BINS);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = item; b < BINS; b += LOCAL)
        counts[b * get_num_groups(0) + get_group_id(0)] = local_counts[b];
}
