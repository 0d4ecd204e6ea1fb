// Hashes, checksums and random numbers.

// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
__constant uint sha_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// SHA-256 compression of the blocks of one message a work-item (words big-endian, padding is the caller's).
__kernel void sha256_messages(__global const uint *words, __global uint *digests, uint num_messages, uint num_blocks)
{
    uint message = get_global_id(0);
    if (message >= num_messages)
        return;
    uint state[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (uint block = 0; block < num_blocks; ++block) {
        uint w[16];
        for (uint t = 0; t < 16; ++t)
            w[t] = words[(message * num_blocks + block) * 16 + t];
        uint a = state[0], b = state[1], c = state[2], d = state[3];
        uint e = state[4], f = state[5], g = state[6], h = state[7];
        for (uint t = 0; t < 64; ++t) {
            if (t >= 16) {
                uint old = w[(t + 1) & 15];
                uint late = w[(t + 14) & 15];
                uint sigma0 = rotate(old, 25u) ^ rotate(old, 14u) ^ (old >> 3);
                uint sigma1 = rotate(late, 15u) ^ rotate(late, 13u) ^ (late >> 10);
                w[t & 15] += sigma0 + w[(t + 9) & 15] + sigma1;
            }
            uint sum1 = rotate(e, 26u) ^ rotate(e, 21u) ^ rotate(e, 7u);
            uint first = h + sum1 + bitselect(g, f, e) + sha_constants[t] + w[t & 15];
            uint sum0 = rotate(a, 30u) ^ rotate(a, 19u) ^ rotate(a, 10u);
            uint second = sum0 + bitselect(a, b, a ^ c);
            h = g;
            g = f;
            f = e;
            e = d + first;
            d = c;
            c = b;
            b = a;
            a = first + second;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
    for (uint k = 0; k < 8; ++k)
        digests[k * num_messages + message] = state[k];
}

// CRC-32 of one record a work-item, bit by bit.
__kernel void crc_bitwise(__global const uchar *records, __global uint *checksums, uint num_records, uint length)
{
    uint record = get_global_id(0);
    if (record >= num_records)
        return;
    uint crc = 0xffffffffu;
    for (uint i = 0; i < length; ++i) {
        crc ^= records[record * length + i];
        for (uint bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    checksums[record] = ~crc;
}

// CRC-32 with a table that the group makes in local memory, four bytes a load; length counts words.
__kernel void crc_table(__global const uint *records, __global uint *checksums, uint num_records, uint length)
{
    __local uint table[256];
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0)) {
        uint entry = i;
        for (uint bit = 0; bit < 8; ++bit)
            entry = entry & 1 ? entry >> 1 ^ 0xedb88320u : entry >> 1;
        table[i] = entry;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint record = get_global_id(0);
    if (record >= num_records)
        return;
    uint crc = 0xffffffffu;
    for (uint i = 0; i < length; ++i) {
        crc ^= records[i * num_records + record];
        for (uint byte = 0; byte < 4; ++byte)
            crc = crc >> 8 ^ table[crc & 255];
    }
    checksums[record] = ~crc;
}

// Builds a hash table by open addressing; keys are claimed atomically, at most max_probes places are tried.
__kernel void hash_insert(
    __global const uint *keys, __global uint *table, __global uint *num_lost, uint n, uint mask, uint max_probes)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    uint key = keys[i];
    uint place = key * 2654435769u;
    place ^= place >> 15;
    for (uint probe = 0; probe < max_probes; ++probe) {
        uint seen = atomic_cmpxchg(&table[(place + probe) & mask], 0u, key);
        if (seen == 0 || seen == key)
            return;
    }
    atomic_inc(num_lost);
}

// Mixes blocks of 64-bit words into one hash a work-item by multiplications and shifts.
__kernel void hash_mix(__global const ulong *words, __global ulong *hashes, uint n, uint length, ulong seed)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    ulong hash = seed ^ length;
    for (uint k = 0; k < length; ++k) {
        ulong word = words[k * n + i] * 0x9e3779b97f4a7c15UL;
        word ^= word >> 29;
        hash = (rotate(hash, 27UL) ^ word) * 0xbf58476d1ce4e5b9UL;
    }
    hashes[i] = hash ^ hash >> 31;
}

// Xorshift: each work-item draws from its own state and keeps the sum.
__kernel void xorshift_streams(__global uint *states, __global uint *sums, uint num_draws)
{
    uint i = get_global_id(0);
    uint state = states[i] | 1;
    uint sum = 0;
    for (uint k = 0; k < num_draws; ++k) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        sum += state >> 8;
    }
    states[i] = state;
    sums[i] = sum;
}

// Philox 4 x 32: ten rounds on a counter give four random words; no state is kept.
__kernel void philox_fill(__global uint4 *out, uint n, uint key0, uint key1)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    uint4 c = (uint4)(i, 0, 0, 0);
    for (uint round = 0; round < 10; ++round) {
        uint high0 = mul_hi(c.x, 0xd2511f53u);
        uint low0 = c.x * 0xd2511f53u;
        uint high1 = mul_hi(c.z, 0xcd9e8d57u);
        uint low1 = c.z * 0xcd9e8d57u;
        c = (uint4)(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    out[i] = c;
}
