// Looking up queries in a sorted array.

// Lower bound by binary search, one query a work-item.
__kernel void lower_bound(
    __global const float *sorted, __global const float *queries, __global uint *places, uint n, uint num_queries)
{
    uint i = get_global_id(0);
    if (i >= num_queries)
        return;
    float query = queries[i];
    uint low = 0;
    uint high = n;
    while (low < high) {
        uint middle = low + (high - low) / 2;
        if (sorted[middle] < query)
            low = middle + 1;
        else
            high = middle;
    }
    places[i] = low;
}

// The same by few persistent work-items that stride over the queries, with a search free of branches.
__kernel void lower_bound_stride(
    __global const float *sorted, __global const float *queries, __global uint *places, uint n, uint num_queries)
{
    for (uint i = get_global_id(0); i < num_queries; i += get_global_size(0)) {
        float query = queries[i];
        uint low = 0;
        for (uint length = n; length > 0;) {
            uint step = (length + 1) / 2;
            low += sorted[low + step - 1] < query ? step : 0;
            length -= step;
        }
        places[i] = low;
    }
}
