// Reductions over bits.

#ifndef LOCAL
#define LOCAL 128 // work-items of a work-group, a power of two
#endif

// Bits that differ between a query and each row of `words` words, one row a work-item, rows interleaved.
__kernel void hamming(__global const uint* table, __global const uint* query, __global int* distances, int rows, int words)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    int distance = 0;
    for (int w = 0; w < words; ++w)
        distance += popcount(table[w * rows + row] ^ query[w]);
    distances[row] = distance;
}

// Checksum (Fletcher style, two sums modulo 65535) of a block of `run` words a work-item.
__kernel void checksum(__global const uint* in, __global uint* sums, int blocks, int run)
{
    const int block = get_global_id(0);
    if (block >= blocks)
        return;
    uint low = 0;
    uint high = 0;
    for (int i = 0; i < run; ++i) {
        const uint word = in[block * run + i];
        low = (low + (word & 0xffff) + (word >> 16)) % 65535;
        high = (high + low) % 65535;
    }
    sums[block] = high << 16 | low;
}

// Parity of each bit position over all words: exclusive or, grid stride and tree, one word a work-group.
__kernel void xor_words(__global const uint* in, __global uint* partial, int n)
{
    __local uint words[LOCAL];
    const int item = get_local_id(0);
    uint word = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        word ^= in[i];
    words[item] = word;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            words[item] ^= words[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        partial[get_group_id(0)] = words[0];
}
