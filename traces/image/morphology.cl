// Greyscale and binary morphology.

#ifndef RADIUS
#define RADIUS 2
#endif
#ifndef TILE
#define TILE 16
#endif

#define SPAN (TILE + 2 * RADIUS)

// Dilation: the largest value in a square window, whose radius is an argument.
kernel void dilate_window(global const uchar *restrict input, global uchar *restrict output, int width, int height,
                          int radius) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  uchar largest = 0;
  for (int j = max(y - radius, 0); j <= min(y + radius, height - 1); ++j)
    for (int i = max(x - radius, 0); i <= min(x + radius, width - 1); ++i)
      largest = max(largest, input[j * width + i]);
  output[y * width + x] = largest;
}

// Dilation in two separable steps, both inside one tile of local memory.
kernel void dilate_tiled(global const uchar *restrict input, global uchar *restrict output, int width, int height) {
  local uchar tile[SPAN][SPAN];
  local uchar rows[SPAN][TILE];
  int lx = get_local_id(0);
  int ly = get_local_id(1);
  int left = get_group_id(0) * TILE - RADIUS;
  int top = get_group_id(1) * TILE - RADIUS;
  for (int j = ly; j < SPAN; j += TILE)
    for (int i = lx; i < SPAN; i += TILE)
      tile[j][i] = input[clamp(top + j, 0, height - 1) * width + clamp(left + i, 0, width - 1)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int j = ly; j < SPAN; j += TILE) {
    uchar largest = tile[j][lx];
    for (int i = 1; i <= 2 * RADIUS; ++i)
      largest = max(largest, tile[j][lx + i]);
    rows[j][lx] = largest;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  uchar largest = rows[ly][lx];
  for (int j = 1; j <= 2 * RADIUS; ++j)
    largest = max(largest, rows[ly + j][lx]);
  output[y * width + x] = largest;
}

// One row of a bitmap eroded sideways: a bit survives if both its neighbours are set.
static uint erode_word(global const uint *row, int word, int num_words) {
  uint here = row[word];
  uint before = word > 0 ? row[word - 1] : 0xffffffffu;
  uint after = word + 1 < num_words ? row[word + 1] : 0xffffffffu;
  return here & ((here << 1) | (before >> 31)) & ((here >> 1) | (after << 31));
}

// 3 x 3 erosion of a bitmap with 32 pixels in a word; outside counts as set.
kernel void erode_bits(global const uint *restrict input, global uint *restrict output, int num_words, int height) {
  int word = get_global_id(0);
  int y = get_global_id(1);
  if (word >= num_words || y >= height)
    return;
  uint bits = erode_word(input + y * num_words, word, num_words);
  if (y > 0)
    bits &= erode_word(input + (y - 1) * num_words, word, num_words);
  if (y + 1 < height)
    bits &= erode_word(input + (y + 1) * num_words, word, num_words);
  output[y * num_words + word] = bits;
}
