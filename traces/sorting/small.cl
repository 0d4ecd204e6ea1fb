// Many small sorts, one a work-item.
#ifndef LENGTH
#define LENGTH 16
#endif

// Insertion sort of LENGTH neighbouring keys in a private array.
__kernel void insertion_private(__global int *keys, uint num_sorts)
{
    uint i = get_global_id(0);
    if (i >= num_sorts)
        return;
    int own[LENGTH];
    __global int *segment = keys + i * LENGTH;
    for (int k = 0; k < LENGTH; ++k)
        own[k] = segment[k];
    for (int k = 1; k < LENGTH; ++k) {
        int key = own[k];
        int place = k;
        while (place > 0 && own[place - 1] > key) {
            own[place] = own[place - 1];
            --place;
        }
        own[place] = key;
    }
    for (int k = 0; k < LENGTH; ++k)
        segment[k] = own[k];
}

// Insertion sort in place in global memory; key k of sort i is at k * num_sorts + i, so that lanes are neighbours.
__kernel void insertion_strided(__global int *keys, uint num_sorts)
{
    uint i = get_global_id(0);
    if (i >= num_sorts)
        return;
    for (uint k = 1; k < LENGTH; ++k) {
        int key = keys[k * num_sorts + i];
        uint place = k;
        while (place > 0) {
            int before = keys[(place - 1) * num_sorts + i];
            if (before <= key)
                break;
            keys[place * num_sorts + i] = before;
            --place;
        }
        keys[place * num_sorts + i] = key;
    }
}

#define ORDER(a, b)          \
    {                        \
        float least = fmin(a, b); \
        b = fmax(a, b);      \
        a = least;           \
    }

// Batcher's network of 19 comparators on eight keys in registers.
__kernel void network_sort8(__global float8 *keys, uint num_sorts)
{
    uint i = get_global_id(0);
    if (i >= num_sorts)
        return;
    float8 v = keys[i];
    ORDER(v.s0, v.s1) ORDER(v.s2, v.s3) ORDER(v.s4, v.s5) ORDER(v.s6, v.s7)
    ORDER(v.s0, v.s2) ORDER(v.s1, v.s3) ORDER(v.s4, v.s6) ORDER(v.s5, v.s7)
    ORDER(v.s1, v.s2) ORDER(v.s5, v.s6)
    ORDER(v.s0, v.s4) ORDER(v.s1, v.s5) ORDER(v.s2, v.s6) ORDER(v.s3, v.s7)
    ORDER(v.s2, v.s4) ORDER(v.s3, v.s5)
    ORDER(v.s1, v.s2) ORDER(v.s3, v.s4) ORDER(v.s5, v.s6)
    keys[i] = v;
}

// Shell sort of the segment of `length` keys that belongs to the work-item, in place in global memory.
__kernel void shell_segments(__global uint *keys, uint num_sorts, uint length)
{
    uint i = get_global_id(0);
    if (i >= num_sorts)
        return;
    for (uint gap = length / 2; gap > 0; gap /= 2) {
        for (uint k = gap; k < length; ++k) {
            uint key = keys[k * num_sorts + i];
            uint place = k;
            while (place >= gap && keys[(place - gap) * num_sorts + i] > key) {
                keys[place * num_sorts + i] = keys[(place - gap) * num_sorts + i];
                place -= gap;
            }
            keys[place * num_sorts + i] = key;
        }
    }
}

// Heap sort of one contiguous segment of `length` keys a work-item; one work-item alone is a serial program.
__kernel void heap_sort(__global int *keys, uint length)
{
    __global int *heap = keys + get_global_id(0) * length;
    uint start = length / 2;
    uint end = length;
    while (end > 1) {
        int key;
        if (start > 0) {
            key = heap[--start];
        } else {
            key = heap[--end];
            heap[end] = heap[0];
        }
        uint hole = start;
        uint child = 2 * hole + 1;
        while (child < end) {
            if (child + 1 < end && heap[child + 1] > heap[child])
                ++child;
            if (heap[child] <= key)
                break;
            heap[hole] = heap[child];
            hole = child;
            child = 2 * hole + 1;
        }
        heap[hole] = key;
    }
}
