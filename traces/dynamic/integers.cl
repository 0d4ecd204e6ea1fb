// Integer work of uneven length.

// Queens: each work-item places the first two queens by its index and counts the solutions with a private stack.
__kernel void queens_count(__global uint *counts, uint n)
{
    uint i = get_global_id(0);
    if (i >= n * n)
        return;
    uint full = (1u << n) - 1;
    uint first = 1u << i / n;
    uint second = 1u << i % n;
    uint found = 0;
    uint columns[16];
    uint rising[16];
    uint falling[16];
    uint open[16];
    if ((second & (first | first << 1 | first >> 1)) == 0) {
        int depth = 0;
        columns[0] = first | second;
        rising[0] = (first << 1 | second) << 1;
        falling[0] = (first >> 1 | second) >> 1;
        open[0] = full & ~(columns[0] | rising[0] | falling[0]);
        while (depth >= 0) {
            uint choices = open[depth];
            if (choices == 0) {
                found += columns[depth] == full;
                --depth;
                continue;
            }
            uint queen = choices & (0u - choices);
            open[depth] = choices ^ queen;
            uint next_columns = columns[depth] | queen;
            if (next_columns == full) {
                ++found;
                continue;
            }
            uint next_rising = (rising[depth] | queen) << 1;
            uint next_falling = (falling[depth] | queen) >> 1;
            ++depth;
            columns[depth] = next_columns;
            rising[depth] = next_rising;
            falling[depth] = next_falling;
            open[depth] = full & ~(next_columns | next_rising | next_falling);
        }
    }
    counts[i] = found;
}

// Collatz: steps until one, at most max_steps; 64-bit values.
__kernel void collatz_steps(__global ushort *steps, uint n, ulong first, uint max_steps)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    ulong value = first + i;
    uint count = 0;
    while (value > 1 && count < max_steps) {
        value = value & 1 ? 3 * value + 1 : value / 2;
        ++count;
    }
    steps[i] = (ushort)count;
}

// Hamming distances of all pairs of 128-bit codes: the nearest code to each query.
__kernel void hamming_nearest(
    __global const uint4 *queries, __global const uint4 *codes, __global uint *nearest, uint num_queries,
    uint num_codes)
{
    uint q = get_global_id(0);
    if (q >= num_queries)
        return;
    uint4 query = queries[q];
    uint best = 0xffffffffu;
    for (uint c = 0; c < num_codes; ++c) {
        uint4 bits = popcount(query ^ codes[c]);
        best = min(best, (bits.x + bits.y + bits.z + bits.w) << 24 | c);
    }
    nearest[q] = best;
}

// Modular powers: square and multiply with a 64-bit remainder a step.
__kernel void modular_power(
    __global const uint *bases, __global const uint *exponents, __global uint *powers, uint n, uint modulus)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    ulong base = bases[i] % modulus;
    ulong power = 1;
    for (uint exponent = exponents[i]; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            power = power * base % modulus;
        base = base * base % modulus;
    }
    powers[i] = (uint)power;
}

// Trial division: the least divisor of each number, by few persistent work-items.
__kernel void least_divisor(__global uint *divisors, uint n, uint first)
{
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint number = first + i;
        uint divisor = number;
        if (number % 2 == 0) {
            divisor = 2;
        } else {
            for (uint d = 3; d * d <= number; d += 2) {
                if (number % d == 0) {
                    divisor = d;
                    break;
                }
            }
        }
        divisors[i] = divisor;
    }
}

// A serial linear congruential search by a single work-item: steps of a cycle until it repeats or max_steps.
__kernel void cycle_length(__global uint *length, uint start, uint modulus, uint max_steps)
{
    uint slow = start;
    uint steps = 0;
    do {
        slow = (slow * 48271u + 11u) % modulus;
        ++steps;
    } while (slow != start && steps < max_steps);
    *length = steps;
}

// Greatest common divisors by the binary method, with no division.
__kernel void common_divisor(__global const uint *a, __global const uint *b, __global uint *divisors, uint n)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    uint x = a[i];
    uint y = b[i];
    uint shift = 0;
    if (x == 0 || y == 0) {
        divisors[i] = x | y;
        return;
    }
    while (((x | y) & 1) == 0) {
        x >>= 1;
        y >>= 1;
        ++shift;
    }
    while ((x & 1) == 0)
        x >>= 1;
    while (y != 0) {
        while ((y & 1) == 0)
            y >>= 1;
        uint least = min(x, y);
        y = max(x, y) - least;
        x = least;
    }
    divisors[i] = x << shift;
}
