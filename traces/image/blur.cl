// Gaussian blur of a one-channel float image; reads beyond the border repeat the border pixel.

#ifndef RADIUS
#define RADIUS 2
#endif
#ifndef TILE
#define TILE 16
#endif
#ifndef STRIP
#define STRIP 4
#endif

#define TAPS (2 * RADIUS + 1)
#define SPAN (TILE + 2 * RADIUS)

// Every work-item reads its whole two-dimensional window from global memory.
kernel void blur_naive(global const float *restrict input, global float *restrict output,
                       constant float *restrict weights, int width, int height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  float sum = 0.0f;
  for (int j = 0; j < TAPS; ++j) {
    global const float *row = input + clamp(y + j - RADIUS, 0, height - 1) * width;
    for (int i = 0; i < TAPS; ++i)
      sum += weights[j * TAPS + i] * row[clamp(x + i - RADIUS, 0, width - 1)];
  }
  output[y * width + x] = sum;
}

// The same window, read from a tile with its halo in local memory.
kernel void blur_tiled(global const float *restrict input, global float *restrict output,
                       constant float *restrict weights, int width, int height) {
  local float tile[SPAN][SPAN];
  int lx = get_local_id(0);
  int ly = get_local_id(1);
  int left = get_group_id(0) * TILE - RADIUS;
  int top = get_group_id(1) * TILE - RADIUS;
  for (int j = ly; j < SPAN; j += TILE)
    for (int i = lx; i < SPAN; i += TILE)
      tile[j][i] = input[clamp(top + j, 0, height - 1) * width + clamp(left + i, 0, width - 1)];
  barrier(CLK_LOCAL_MEM_FENCE);
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  float sum = 0.0f;
  for (int j = 0; j < TAPS; ++j)
    for (int i = 0; i < TAPS; ++i)
      sum += weights[j * TAPS + i] * tile[ly + j][lx + i];
  output[y * width + x] = sum;
}

// Horizontal pass of the separable blur, straight from global memory.
kernel void blur_rows(global const float *restrict input, global float *restrict output,
                      constant float *restrict weights, int width, int height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  global const float *row = input + y * width;
  float sum = 0.0f;
  for (int i = 0; i < TAPS; ++i)
    sum += weights[i] * row[clamp(x + i - RADIUS, 0, width - 1)];
  output[y * width + x] = sum;
}

// Vertical pass; a work-item makes STRIP outputs of a column and keeps its window in registers.
kernel void blur_columns_strip(global const float *restrict input, global float *restrict output,
                               constant float *restrict weights, int width, int height) {
  int x = get_global_id(0);
  int first = get_global_id(1) * STRIP;
  if (x >= width || first >= height)
    return;
  float window[STRIP + 2 * RADIUS];
  for (int j = 0; j < STRIP + 2 * RADIUS; ++j)
    window[j] = input[clamp(first + j - RADIUS, 0, height - 1) * width + x];
  for (int k = 0; k < STRIP; ++k) {
    float sum = 0.0f;
    for (int j = 0; j < TAPS; ++j)
      sum += weights[j] * window[k + j];
    if (first + k < height)
      output[(first + k) * width + x] = sum;
  }
}
