// Conway's game of life on a torus.

// One cell a byte, one cell a work-item.
__kernel void life_bytes(__global const uchar* in, __global uchar* out, int nx, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            alive += in[(y + dy + ny) % ny * nx + (x + dx + nx) % nx];
    const uchar self = in[y * nx + x];
    out[y * nx + x] = alive == 3 || (alive == 4 && self);
}

// 32 cells a word, bit 0 leftmost, one word a work-item: neighbours are counted by bitwise adders.
__kernel void life_bits(__global const uint* in, __global uint* out, int words, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= words || y >= ny)
        return;
    const int left = (x + words - 1) % words;
    const int right = (x + 1) % words;
    uint ones = 0;
    uint twos = 0;
    uint fours = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        __global const uint* row = in + (y + dy + ny) % ny * words;
        const uint here = row[x];
        const uint cells[3] = { here << 1 | row[left] >> 31, here, here >> 1 | row[right] << 31 };
        for (int c = 0; c < 3; ++c)
            if (dy != 0 || c != 1) {
                const uint carry = ones & cells[c];
                ones ^= cells[c];
                fours |= twos & carry;
                twos ^= carry;
            }
    }
    out[y * words + x] = twos & ~fours & (ones | in[y * words + x]);
}
