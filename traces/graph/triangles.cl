// Triangle counting: common neighbours of the two ends of every edge.
#ifndef DEGREE
#define DEGREE 32
#endif

// Neighbour k of vertex v is k * spacing + jitter[v * DEGREE + k], so that rows are sorted and compact.

// By merging the two sorted rows.
__kernel void triangles_merge(
    __global const ushort *jitter, __global const int *from, __global const int *to, __global int *counts,
    int num_edges, int spacing)
{
    int e = get_global_id(0);
    if (e >= num_edges)
        return;
    __global const ushort *row_a = jitter + from[e] * DEGREE;
    __global const ushort *row_b = jitter + to[e] * DEGREE;
    int i = 0;
    int j = 0;
    int count = 0;
    while (i < DEGREE && j < DEGREE) {
        int a = i * spacing + row_a[i];
        int b = j * spacing + row_b[j];
        count += a == b;
        i += a <= b;
        j += b <= a;
    }
    counts[e] = count;
}

// By binary search of each neighbour in the other row.
__kernel void triangles_search(
    __global const ushort *jitter, __global const int *from, __global const int *to, __global int *counts,
    int num_edges, int spacing)
{
    int e = get_global_id(0);
    if (e >= num_edges)
        return;
    __global const ushort *row_a = jitter + from[e] * DEGREE;
    __global const ushort *row_b = jitter + to[e] * DEGREE;
    int count = 0;
    for (int i = 0; i < DEGREE; ++i) {
        int wanted = i * spacing + row_a[i];
        int low = 0;
        int high = DEGREE;
        while (low < high) {
            int middle = (low + high) / 2;
            if (middle * spacing + row_b[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        count += low < DEGREE && low * spacing + row_b[low] == wanted;
    }
    counts[e] = count;
}

// By ANDing rows of an adjacency bitmap.
__kernel void triangles_bitmap(
    __global const uint4 *rows, __global const int *from, __global const int *to, __global int *counts,
    int num_edges, int num_words)
{
    int e = get_global_id(0);
    if (e >= num_edges)
        return;
    __global const uint4 *row_a = rows + from[e] * num_words;
    __global const uint4 *row_b = rows + to[e] * num_words;
    uint4 bits = (uint4)(0);
    for (int word = 0; word < num_words; ++word)
        bits += popcount(row_a[word] & row_b[word]);
    counts[e] = bits.x + bits.y + bits.z + bits.w;
}
