// Bucket and sample sort: keys to buckets.
#ifndef SPLITTERS
#define SPLITTERS 255
#endif

// Appends each key to its bucket of fixed capacity with a global atomic cursor; the order inside a bucket is free.
__kernel void bucket_scatter(
    __global const uint *keys, __global uint *cursors, __global uint *buckets, uint n, uint shift, uint capacity)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    uint key = keys[i];
    uint bucket = key >> shift;
    uint place = atomic_inc(&cursors[bucket]);
    if (place < capacity)
        buckets[bucket * capacity + place] = key;
}

// Finds each key's bucket by binary search among sorted splitters held in local memory, and counts the buckets.
__kernel void sample_classify(
    __global const float *keys, __global const float *splitters, __global uchar *bucket_of, __global uint *counts, uint n)
{
    __local float pivots[SPLITTERS];
    __local uint bins[SPLITTERS + 1];
    uint lane = get_local_id(0);
    for (uint s = lane; s <= SPLITTERS; s += get_local_size(0)) {
        if (s < SPLITTERS)
            pivots[s] = splitters[s];
        bins[s] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint i = get_global_id(0);
    if (i < n) {
        float key = keys[i];
        uint bucket = 0;
        for (uint step = (SPLITTERS + 1) / 2; step > 0; step >>= 1)
            if (pivots[bucket + step - 1] <= key)
                bucket += step;
        bucket_of[i] = (uchar)bucket;
        atomic_inc(&bins[bucket]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = lane; s <= SPLITTERS; s += get_local_size(0))
        if (bins[s] > 0)
            atomic_add(&counts[s], bins[s]);
}
