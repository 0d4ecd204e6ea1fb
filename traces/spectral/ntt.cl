// Number-theoretic transform modulo a prime below 2^30.
#define PRIME 998244353u
#define PRIME_INVERSE 998244351u
#ifndef SIZE
#define SIZE 512
#endif

// One radix-2 stage with twiddles from a table, reduced by 64-bit division.
__kernel void ntt_stage(
    __global const uint *in, __global const uint *twiddles, __global uint *out, uint half_n, uint done)
{
    uint i = get_global_id(0);
    uint k = i & (done - 1);
    uint a = in[i];
    uint b = (uint)((ulong)in[i + half_n] * twiddles[k * (half_n / done)] % PRIME);
    uint j = 2 * i - k;
    uint sum = a + b;
    out[j] = sum >= PRIME ? sum - PRIME : sum;
    out[j + done] = a >= b ? a - b : a + PRIME - b;
}

// a * b / 2^32 modulo the prime (Montgomery).
uint montgomery(uint a, uint b)
{
    uint low = a * b;
    uint high = mul_hi(a, b);
    uint correction = mul_hi(low * PRIME_INVERSE, PRIME);
    uint product = high + (low != 0) + correction;
    return product >= PRIME ? product - PRIME : product;
}

// A whole transform of SIZE points a group of SIZE / 2 in local memory with Montgomery products.
__kernel void ntt_local(__global const uint *in, __global const uint *twiddles, __global uint *out)
{
    __local uint values[2 * SIZE];
    uint lane = get_local_id(0);
    uint base = get_group_id(0) * SIZE;
    values[lane] = in[base + lane];
    values[lane + SIZE / 2] = in[base + lane + SIZE / 2];
    uint from = 0;
    for (uint done = 1; done < SIZE; done <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint k = lane & (done - 1);
        uint a = values[from + lane];
        uint b = montgomery(values[from + lane + SIZE / 2], twiddles[k * (SIZE / 2 / done)]);
        uint j = SIZE - from + 2 * lane - k;
        uint sum = a + b;
        values[j] = sum >= PRIME ? sum - PRIME : sum;
        values[j + done] = a >= b ? a - b : a + PRIME - b;
        from = SIZE - from;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + lane] = values[from + lane];
    out[base + lane + SIZE / 2] = values[from + lane + SIZE / 2];
}
