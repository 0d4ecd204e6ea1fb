// Cellular automata.
#ifndef TILE
#define TILE 16
#endif

// Conway's life on a torus, a byte a cell, straight from global memory.
__kernel void life_naive(__global const uchar *cells, __global uchar *next, int width, int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    int count = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            count += cells[(y + dy + height) % height * width + (x + dx + width) % width];
    uchar own = cells[y * width + x];
    next[y * width + x] = count == 3 || (count == 4 && own);
}

// The same from a tile with halo in local memory; TILE x TILE work-items a group.
__kernel void life_tiled(__global const uchar *cells, __global uchar *next, int width, int height)
{
    __local uchar tile[TILE + 2][TILE + 2];
    int left = get_group_id(0) * TILE - 1;
    int top = get_group_id(1) * TILE - 1;
    int lane = get_local_id(1) * TILE + get_local_id(0);
    for (int i = lane; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
        int x = (left + i % (TILE + 2) + width) % width;
        int y = (top + i / (TILE + 2) + height) % height;
        tile[i / (TILE + 2)][i % (TILE + 2)] = cells[y * width + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    int count = 0;
    for (int dy = 0; dy < 3; ++dy)
        for (int dx = 0; dx < 3; ++dx)
            count += tile[get_local_id(1) + dy][get_local_id(0) + dx];
    uchar own = tile[get_local_id(1) + 1][get_local_id(0) + 1];
    next[y * width + x] = count == 3 || (count == 4 && own);
}

// 32 cells a word, neighbours counted by bitwise adders; words is the width in words.
__kernel void life_packed(__global const uint *cells, __global uint *next, int words, int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= words || y >= height)
        return;
    int before = x > 0 ? x - 1 : words - 1;
    int after = x + 1 < words ? x + 1 : 0;
    uint ones = 0;
    uint twos = 0;
    uint fours = 0;
    uint own = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        int row = (y + dy + height) % height * words;
        uint middle = cells[row + x];
        uint left = middle << 1 | cells[row + before] >> 31;
        uint right = middle >> 1 | cells[row + after] << 31;
        uint sum = left ^ right;
        uint carry = left & right;
        if (dy == 0) {
            own = middle;
        } else {
            carry |= sum & middle;
            sum ^= middle;
        }
        uint up = ones & sum;
        ones ^= sum;
        uint more = (twos & (carry | up)) | (carry & up);
        twos ^= carry ^ up;
        fours |= more;
    }
    next[y * words + x] = ~fours & twos & (ones | own);
}

// Elementary rule on a ring of bits: each group advances its words num_steps times in local memory with a halo.
__kernel void rule_steps(__global const uint *cells, __global uint *next, int words, int num_steps, uint rule)
{
    __local uint row[2 * (256 + 2)];
    int lane = get_local_id(0);
    int lanes = get_local_size(0);
    int first = get_group_id(0) * (lanes - 2) - 1;
    int from = 0;
    int at = (first + lane + words) % words;
    uint own = cells[at];
    row[lane] = own;
    for (int step = 0; step < num_steps; ++step) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint before = lane > 0 ? row[from + lane - 1] : 0;
        uint after = lane + 1 < lanes ? row[from + lane + 1] : 0;
        uint left = own << 1 | before >> 31;
        uint right = own >> 1 | after << 31;
        uint result = 0;
        for (uint pattern = 0; pattern < 8; ++pattern) {
            uint matches = (pattern & 4 ? left : ~left) & (pattern & 2 ? own : ~own) & (pattern & 1 ? right : ~right);
            result |= (rule >> pattern & 1) ? matches : 0;
        }
        own = result;
        from = 258 - from;
        row[from + lane] = own;
    }
    if (lane > 0 && lane + 1 < lanes && first + lane < words)
        next[first + lane] = own;
}

// Metropolis half-step of an Ising magnet on one colour of a chessboard; random numbers from the place and the step.
__kernel void ising_step(__global char *spins, int width, int height, float coupling, uint step)
{
    int pair = get_global_id(0);
    int y = get_global_id(1);
    if (2 * pair >= width || y >= height)
        return;
    int x = 2 * pair + ((y + step) & 1);
    int left = x > 0 ? x - 1 : width - 1;
    int right = x + 1 < width ? x + 1 : 0;
    int around = spins[y * width + left] + spins[y * width + right] + spins[(y + 1) % height * width + x] +
                 spins[(y + height - 1) % height * width + x];
    char spin = spins[y * width + x];
    uint random = (y * width + x) * 747796405u + step * 2891336453u;
    random = ((random >> ((random >> 28) + 4)) ^ random) * 277803737u;
    random ^= random >> 22;
    float chance = exp(-2.0f * coupling * spin * around);
    if ((random >> 8) * 5.9604645e-8f < chance)
        spins[y * width + x] = -spin;
}
