// Alignment of sequences.
#ifndef TILE
#define TILE 16
#endif
#ifndef LENGTH
#define LENGTH 32
#endif

// One anti-diagonal of the Needleman-Wunsch table of (n + 1) x (n + 1) scores; cells i + j == diagonal.
__kernel void needleman_diagonal(
    __global int *scores, __global const uchar *a, __global const uchar *b, int n, int diagonal, int gap)
{
    int i = get_global_id(0) + max(1, diagonal - n);
    int j = diagonal - i;
    if (i > n || j < 1)
        return;
    int width = n + 1;
    int match = scores[(i - 1) * width + j - 1] + (a[i - 1] == b[j - 1] ? 2 : -1);
    int skip = max(scores[(i - 1) * width + j], scores[i * width + j - 1]) - gap;
    scores[i * width + j] = max(match, skip);
}

// TILE x TILE cells a group of TILE, in local memory; the groups lie on one anti-diagonal of tiles.
__kernel void needleman_tile(
    __global int *scores, __global const int *rewards, int n, int tile_diagonal, int first_row, int gap)
{
    __local int cells[TILE + 1][TILE + 1];
    int lane = get_local_id(0);
    int tile_row = first_row + get_group_id(0);
    int row = tile_row * TILE;
    int column = (tile_diagonal - tile_row) * TILE;
    int width = n + 1;
    cells[lane + 1][0] = scores[(row + lane + 1) * width + column];
    cells[0][lane + 1] = scores[row * width + column + lane + 1];
    if (lane == 0)
        cells[0][0] = scores[row * width + column];
    for (int wave = 0; wave < 2 * TILE - 1; ++wave) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int i = lane;
        int j = wave - lane;
        if (j >= 0 && j < TILE) {
            int match = cells[i][j] + rewards[(row + i) * n + column + j];
            int skip = max(cells[i][j + 1], cells[i + 1][j]) - gap;
            cells[i + 1][j + 1] = max(match, skip);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TILE; ++i)
        scores[(row + i + 1) * width + column + lane + 1] = cells[i + 1][lane + 1];
}

// Smith-Waterman with affine gaps: one pair of short sequences a work-item, its rows in private arrays.
__kernel void waterman_pairs(
    __global const uchar *queries, __global const uchar *targets, __global int *best_scores, int num_pairs,
    int target_length)
{
    int pair = get_global_id(0);
    if (pair >= num_pairs)
        return;
    uchar query[LENGTH];
    int row[LENGTH];
    int vertical[LENGTH];
    for (int j = 0; j < LENGTH; ++j) {
        query[j] = queries[j * num_pairs + pair];
        row[j] = 0;
        vertical[j] = -1000;
    }
    int best = 0;
    for (int i = 0; i < target_length; ++i) {
        uchar letter = targets[i * num_pairs + pair];
        int diagonal = 0;
        int left = 0;
        int horizontal = -1000;
        for (int j = 0; j < LENGTH; ++j) {
            int above = row[j];
            vertical[j] = max(vertical[j] - 1, above - 3);
            horizontal = max(horizontal - 1, left - 3);
            int score = diagonal + (query[j] == letter ? 2 : -2);
            score = max(max(score, 0), max(vertical[j], horizontal));
            diagonal = above;
            left = score;
            row[j] = score;
            best = max(best, score);
        }
    }
    best_scores[pair] = best;
}

// Dynamic time warping of one pair of series a group of TILE, wave by wave in local memory.
__kernel void warp_group(__global const float *a, __global const float *b, __global float *costs)
{
    __local float waves[3][TILE + 1];
    __local float other[TILE];
    int lane = get_local_id(0);
    int base = get_group_id(0) * TILE;
    float own = a[base + lane];
    other[lane] = b[base + lane];
    for (int w = 0; w < 3; ++w)
        waves[w][lane + 1] = INFINITY;
    if (lane == 0)
        for (int w = 0; w < 3; ++w)
            waves[w][0] = INFINITY;
    float cost = 0.0f;
    for (int wave = 0; wave < 2 * TILE - 1; ++wave) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int j = wave - lane;
        if (j >= 0 && j < TILE) {
            int last = (wave + 2) % 3;
            int before = (wave + 1) % 3;
            float least = fmin(fmin(waves[last][lane], waves[last][lane + 1]), waves[before][lane]);
            cost = fabs(own - other[j]) + (wave == 0 ? 0.0f : least);
            waves[wave % 3][lane + 1] = cost;
        }
    }
    if (lane == TILE - 1)
        costs[get_group_id(0)] = cost;
}
