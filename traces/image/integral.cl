// Integral image (summed-area table) in two passes.

#ifndef GROUP
#define GROUP 128
#endif

// One work-group per row: scans the row piece by piece in local memory and carries the sum along.
kernel void integral_rows(global const uchar *restrict input, global uint *restrict output, int width) {
  local uint sums[2][GROUP];
  int lane = get_local_id(0);
  int row = get_group_id(0) * width;
  uint carry = 0;
  for (int first = 0; first < width; first += GROUP) {
    int x = first + lane;
    int from = 0;
    sums[0][lane] = x < width ? input[row + x] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < GROUP; step *= 2) {
      uint sum = sums[from][lane];
      if (lane >= step)
        sum += sums[from][lane - step];
      sums[1 - from][lane] = sum;
      from = 1 - from;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (x < width)
      output[row + x] = carry + sums[from][lane];
    carry += sums[from][GROUP - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// One work-item per row adds its way along it.
kernel void integral_rows_serial(global const uchar *restrict input, global uint *restrict output, int width,
                                 int height) {
  int y = get_global_id(0);
  if (y >= height)
    return;
  uint sum = 0;
  for (int x = 0; x < width; ++x) {
    sum += input[y * width + x];
    output[y * width + x] = sum;
  }
}

// Second pass, in place: one work-item per column adds its way down.
kernel void integral_columns(global uint *restrict sums, int width, int height) {
  int x = get_global_id(0);
  if (x >= width)
    return;
  uint sum = 0;
  for (int y = 0; y < height; ++y) {
    sum += sums[y * width + x];
    sums[y * width + x] = sum;
  }
}
