// Edit distance and longest common subsequence of many pairs of short strings.
#ifndef LENGTH
#define LENGTH 16
#endif

// Levenshtein distance: one pair a work-item, the row of the table in a private array.
__kernel void edit_private(
    __global const uchar *a, __global const uchar *b, __global int *distances, int num_pairs)
{
    int pair = get_global_id(0);
    if (pair >= num_pairs)
        return;
    int row[LENGTH + 1];
    for (int j = 0; j <= LENGTH; ++j)
        row[j] = j;
    for (int i = 0; i < LENGTH; ++i) {
        uchar letter = a[pair * LENGTH + i];
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < LENGTH; ++j) {
            int above = row[j + 1];
            int best = min(min(above, row[j]) + 1, diagonal + (b[pair * LENGTH + j] != letter));
            diagonal = above;
            row[j + 1] = best;
        }
    }
    distances[pair] = row[LENGTH];
}

// Levenshtein distance by bit vectors: the column of 32 differences in one word; letters 0 to 3.
__kernel void edit_bits(
    __global const uchar *patterns, __global const uchar *texts, __global int *distances, int num_pairs,
    int text_length)
{
    int pair = get_global_id(0);
    if (pair >= num_pairs)
        return;
    uint where[4] = {0, 0, 0, 0};
    for (int j = 0; j < 32; ++j) {
        uchar letter = patterns[j * num_pairs + pair];
        for (int l = 0; l < 4; ++l)
            where[l] |= (uint)(letter == l) << j;
    }
    uint plus = 0xffffffffu;
    uint minus = 0;
    int distance = 32;
    for (int i = 0; i < text_length; ++i) {
        uchar letter = texts[i * num_pairs + pair] & 3;
        uint equal = letter < 2 ? (letter == 0 ? where[0] : where[1]) : (letter == 2 ? where[2] : where[3]);
        uint across = equal | minus;
        equal = (((equal & plus) + plus) ^ plus) | equal;
        uint up = minus | ~(equal | plus);
        uint down = plus & equal;
        distance += (int)(up >> 31) - (int)(down >> 31);
        up = up << 1 | 1;
        down <<= 1;
        plus = down | ~(across | up);
        minus = up & across;
    }
    distances[pair] = distance;
}

// Longest common subsequence of a 64-letter pattern and each text by bit vectors, patterns shared by all.
__kernel void subsequence_bits(
    __constant ulong *where, __global const uchar *texts, __global int *lengths, int num_texts, int text_length)
{
    int t = get_global_id(0);
    if (t >= num_texts)
        return;
    ulong zeros = ~0UL;
    for (int i = 0; i < text_length; ++i) {
        ulong matches = zeros & where[texts[i * num_texts + t]];
        zeros = (zeros + matches) | (zeros - matches);
    }
    lengths[t] = (int)popcount(~zeros);
}
