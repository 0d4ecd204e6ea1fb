// Box filter by running sums: the work per pixel does not depend on the radius.

// One work-item per column slides a window of 2 * radius + 1 rows from the top to the bottom.
kernel void box_columns_running(global const float *restrict input, global float *restrict output, int width,
                                int height, int radius) {
  int x = get_global_id(0);
  if (x >= width)
    return;
  float scale = 1.0f / (float)(2 * radius + 1);
  float sum = 0.0f;
  for (int j = -radius; j <= radius; ++j)
    sum += input[clamp(j, 0, height - 1) * width + x];
  for (int y = 0; y < height; ++y) {
    output[y * width + x] = sum * scale;
    sum += input[min(y + radius + 1, height - 1) * width + x] - input[max(y - radius, 0) * width + x];
  }
}

// One work-item per row slides along it, so that neighbouring work-items read addresses a row apart.
kernel void box_rows_running(global const float *restrict input, global float *restrict output, int width,
                             int height, int radius) {
  int y = get_global_id(0);
  if (y >= height)
    return;
  global const float *row = input + y * width;
  float scale = 1.0f / (float)(2 * radius + 1);
  float sum = 0.0f;
  for (int i = -radius; i <= radius; ++i)
    sum += row[clamp(i, 0, width - 1)];
  for (int x = 0; x < width; ++x) {
    output[y * width + x] = sum * scale;
    sum += row[min(x + radius + 1, width - 1)] - row[max(x - radius, 0)];
  }
}
