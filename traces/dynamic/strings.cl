// Searching text for a pattern.
#ifndef CHUNK
#define CHUNK 64
#endif

// One place a work-item, compared until the first mismatch.
__kernel void search_naive(
    __global const uchar *text, __constant uchar *pattern, __global uchar *is_match, int n, int length)
{
    int i = get_global_id(0);
    if (i + length > n)
        return;
    int k = 0;
    while (k < length && text[i + k] == pattern[k])
        ++k;
    is_match[i] = k == length;
}

// The text of a group and the pattern of up to 64 letters in local memory; mismatches are counted.
__kernel void search_local(
    __global const uchar *text, __global const uchar *pattern, __global uchar *mismatches, int n, int length)
{
    __local uchar tile[256 + 64];
    __local uchar wanted[64];
    int lane = get_local_id(0);
    int lanes = get_local_size(0);
    int base = get_group_id(0) * lanes;
    for (int i = lane; i < lanes + length; i += lanes)
        tile[i] = base + i < n ? text[base + i] : 255;
    for (int i = lane; i < length; i += lanes)
        wanted[i] = pattern[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    int count = 0;
    for (int k = 0; k < length; ++k)
        count += tile[lane + k] != wanted[k];
    if (base + lane < n)
        mismatches[base + lane] = (uchar)count;
}

// Shift-and: CHUNK letters a work-item run through a bit automaton of up to 32 states; masks of 16 letters.
__kernel void search_bits(
    __global const uchar *text, __global const uint *masks, __global uint *counts, int n, int length)
{
    __local uint mask_of[16];
    int lane = get_local_id(0);
    for (int l = lane; l < 16; l += get_local_size(0))
        mask_of[l] = masks[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    int i = get_global_id(0);
    int start = i * CHUNK;
    int end = min(start + CHUNK + length - 1, n);
    uint state = 0;
    uint count = 0;
    for (int t = start; t < end; ++t) {
        state = (state << 1 | 1) & mask_of[text[t] & 15];
        count += state >> (length - 1) & 1;
    }
    if (start < n)
        counts[i] = count;
}

// Horspool: CHUNK places a work-item, skipping by the last letter; letters 0 to 63.
__kernel void search_skip(
    __global const uchar *text, __global const uchar *pattern, __global uint *counts, int n, int length)
{
    __local int skips[64];
    int lane = get_local_id(0);
    for (int l = lane; l < 64; l += get_local_size(0)) {
        int skip = length;
        for (int k = 0; k < length - 1; ++k)
            if ((pattern[k] & 63) == l)
                skip = length - 1 - k;
        skips[l] = skip;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int i = get_global_id(0);
    int at = i * CHUNK;
    int end = min(at + CHUNK, n - length + 1);
    uint count = 0;
    if (at < n) {
        while (at < end) {
            int k = length - 1;
            while (k >= 0 && text[at + k] == pattern[k])
                --k;
            count += k < 0;
            at += skips[text[at + length - 1] & 63];
        }
        counts[i] = count;
    }
}

// Variable-length integers: each work-item decodes a block of bytes and sums what it holds.
__kernel void varint_decode(
    __global const uchar *bytes, __global uint *sums, __global uint *counts, uint num_blocks, uint block_bytes)
{
    uint block = get_global_id(0);
    if (block >= num_blocks)
        return;
    __global const uchar *own = bytes + block * block_bytes;
    uint value = 0;
    uint shift = 0;
    uint sum = 0;
    uint count = 0;
    for (uint i = 0; i < block_bytes; ++i) {
        uchar byte = own[i];
        value |= (uint)(byte & 127) << shift;
        shift += 7;
        if (byte < 128 || shift > 28) {
            sum += value;
            ++count;
            value = 0;
            shift = 0;
        }
    }
    sums[block] = sum;
    counts[block] = count;
}
