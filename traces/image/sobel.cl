// Sobel gradient magnitude |gx| + |gy| of an 8-bit image, cut at 255.

#ifndef TILE
#define TILE 16
#endif

// One pixel per work-item, border pixels repeated by clamping every coordinate.
kernel void sobel_scalar(global const uchar *restrict input, global uchar *restrict output, int width, int height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  int left = max(x - 1, 0);
  int right = min(x + 1, width - 1);
  global const uchar *above = input + max(y - 1, 0) * width;
  global const uchar *here = input + y * width;
  global const uchar *below = input + min(y + 1, height - 1) * width;
  int gx = above[right] + 2 * here[right] + below[right] - above[left] - 2 * here[left] - below[left];
  int gy = below[left] + 2 * below[x] + below[right] - above[left] - 2 * above[x] - above[right];
  output[y * width + x] = (uchar)min(abs(gx) + abs(gy), 255u);
}

// Four neighbouring pixels per work-item; the input has a border of one pixel, so nothing is clamped.
kernel void sobel_vector(global const uchar *restrict padded, global uchar *restrict output, int width, int height) {
  int block = get_global_id(0);
  int y = get_global_id(1);
  if (block * 4 >= width || y >= height)
    return;
  int pitch = width + 2;
  global const uchar *above = padded + y * pitch + block * 4;
  global const uchar *here = above + pitch;
  global const uchar *below = here + pitch;
  short4 a0 = convert_short4(vload4(0, above)), a1 = convert_short4(vload4(0, above + 1));
  short4 a2 = convert_short4(vload4(0, above + 2)), h0 = convert_short4(vload4(0, here));
  short4 h2 = convert_short4(vload4(0, here + 2)), b0 = convert_short4(vload4(0, below));
  short4 b1 = convert_short4(vload4(0, below + 1)), b2 = convert_short4(vload4(0, below + 2));
  short4 gx = a2 + h2 + h2 + b2 - a0 - h0 - h0 - b0;
  short4 gy = b0 + b1 + b1 + b2 - a0 - a1 - a1 - a2;
  vstore4(convert_uchar4_sat(abs(gx) + abs(gy)), 0, output + y * width + block * 4);
}

// A tile with a border of one pixel staged in local memory.
kernel void sobel_tiled(global const uchar *restrict input, global uchar *restrict output, int width, int height) {
  local int tile[TILE + 2][TILE + 2];
  int lx = get_local_id(0);
  int ly = get_local_id(1);
  int left = get_group_id(0) * TILE - 1;
  int top = get_group_id(1) * TILE - 1;
  for (int k = ly * TILE + lx; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
    int i = k % (TILE + 2);
    int j = k / (TILE + 2);
    tile[j][i] = input[clamp(top + j, 0, height - 1) * width + clamp(left + i, 0, width - 1)];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  int gx = tile[ly][lx + 2] + 2 * tile[ly + 1][lx + 2] + tile[ly + 2][lx + 2] - tile[ly][lx] - 2 * tile[ly + 1][lx] -
           tile[ly + 2][lx];
  int gy = tile[ly + 2][lx] + 2 * tile[ly + 2][lx + 1] + tile[ly + 2][lx + 2] - tile[ly][lx] - 2 * tile[ly][lx + 1] -
           tile[ly][lx + 2];
  output[y * width + x] = (uchar)min(abs(gx) + abs(gy), 255u);
}
