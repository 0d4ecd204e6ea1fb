// Merging two sorted arrays.
#ifndef PER_ITEM
#define PER_ITEM 8
#endif

// Merge path: each work-item finds its diagonal by binary search and merges PER_ITEM outputs serially.
__kernel void merge_path(
    __global const int *a, __global const int *b, __global int *merged, uint num_a, uint num_b)
{
    uint out = get_global_id(0) * PER_ITEM;
    uint total = num_a + num_b;
    if (out >= total)
        return;
    uint low = out > num_b ? out - num_b : 0;
    uint high = min(out, num_a);
    while (low < high) {
        uint middle = (low + high) / 2;
        if (a[middle] <= b[out - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    uint i = low;
    uint j = out - low;
    uint end = min(out + PER_ITEM, total);
    for (; out < end; ++out) {
        int takes_a = j >= num_b || (i < num_a && a[i] <= b[j]);
        merged[out] = takes_a ? a[i] : b[j];
        i += takes_a;
        j += 1 - takes_a;
    }
}

// Merge by ranks: each element finds its place by binary search in the other array and is scattered there.
__kernel void merge_ranks(__global const int *a, __global const int *b, __global int *merged, uint num_a, uint num_b)
{
    uint i = get_global_id(0);
    if (i >= num_a + num_b)
        return;
    int is_a = i < num_a;
    uint own = is_a ? i : i - num_a;
    int key = is_a ? a[own] : b[own];
    __global const int *other = is_a ? b : a;
    uint low = 0;
    uint high = is_a ? num_b : num_a;
    while (low < high) {
        uint middle = (low + high) / 2;
        int probe = other[middle];
        if (probe < key || (!is_a && probe == key))
            low = middle + 1;
        else
            high = middle;
    }
    merged[own + low] = key;
}
