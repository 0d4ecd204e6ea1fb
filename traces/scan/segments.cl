// Sums and scans of segments.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif

// Inclusive scan within LOCAL numbers that starts again at every flag.
__kernel void segmented_scan(__global const int* in, __global const uchar* starts, __global int* out, int n)
{
    __local int sums[LOCAL];
    __local int flags[LOCAL];
    const int item = get_local_id(0);
    const int i = get_global_id(0);
    int sum = i < n ? in[i] : 0;
    int flag = i < n ? starts[i] == 0 : 0;
    sums[item] = sum;
    flags[item] = flag;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < LOCAL; distance *= 2) {
        if (item >= distance && !flag) {
            sum += sums[item - distance];
            flag = flags[item - distance];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] = sum;
        flags[item] = flag;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n)
        out[i] = sum;
}

// Sum of each segment given by offsets, one segment a work-item.
__kernel void segment_sum_serial(__global const int* offsets, __global const float* in, __global float* out, int count)
{
    const int segment = get_global_id(0);
    if (segment >= count)
        return;
    float sum = 0.0f;
    for (int i = offsets[segment]; i < offsets[segment + 1]; ++i)
        sum += in[i];
    out[segment] = sum;
}

// Sum and largest of each segment given by offsets, one segment a work-group.
__kernel void segment_sum_group(
    __global const int* offsets, __global const float* in, __global float* out, __global float* largest)
{
    __local float sums[LOCAL];
    __local float highs[LOCAL];
    const int item = get_local_id(0);
    const int segment = get_group_id(0);
    const int end = offsets[segment + 1];
    float sum = 0.0f;
    float high = 0.0f;
    for (int i = offsets[segment] + item; i < end; i += LOCAL) {
        sum += in[i];
        high = fmax(high, in[i]);
    }
    sums[item] = sum;
    highs[item] = high;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) {
            sums[item] += sums[item + half_size];
            highs[item] = fmax(highs[item], highs[item + half_size]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        out[segment] = sums[0];
        largest[segment] = highs[0];
    }
}

// Sum by sorted key: a work-item adds its run of equal keys and does one atomic at each end of a run.
__kernel void sum_by_key(__global const int* keys, __global const int* in, __global int* out, int n, int run)
{
    const int first = get_global_id(0) * run;
    if (first >= n)
        return;
    const int end = min(first + run, n);
    int key = keys[first];
    int sum = 0;
    for (int i = first; i < end; ++i) {
        if (keys[i] != key) {
            atomic_add(out + key, sum);
            key = keys[i];
            sum = 0;
        }
        sum += in[i];
    }
    atomic_add(out + key, sum);
}

// Mean over a sliding window of `window` numbers, one run of outputs a work-item, updated by adding and dropping.
__kernel void sliding_sum(__global const int* in, __global int* out, int n, int window, int run)
{
    const int first = get_global_id(0) * run;
    const int end = min(first + run, n - window + 1);
    if (first >= end)
        return;
    int sum = 0;
    for (int i = 0; i < window; ++i)
        sum += in[first + i];
    out[first] = sum;
    for (int i = first + 1; i < end; ++i) {
        sum += in[i + window - 1] - in[i - 1];
        out[i] = sum;
    }
}
