// Data movement between layers.

// Unfolds K x K windows into rows of a matrix: (channel, row, column) by output pixel.
kernel void im2col(global const float *restrict input, global float *restrict columns, int height, int width,
                   int size) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  int channel = get_global_id(2);
  int out_width = width - size + 1;
  int out_height = height - size + 1;
  if (x >= out_width || y >= out_height)
    return;
  for (int j = 0; j < size; ++j)
    for (int i = 0; i < size; ++i)
      columns[(((channel * size + j) * size + i) * out_height + y) * out_width + x] =
          input[(channel * height + y + j) * width + x + i];
}

// Channels first to channels last: reads side by side, writes a pixel apart.
kernel void channels_last(global const float *restrict input, global float *restrict output, int channels,
                          int pixels) {
  int p = get_global_id(0);
  int c = get_global_id(1);
  if (p < pixels)
    output[p * channels + c] = input[c * pixels + p];
}

// Joins two tensors along their innermost axis.
kernel void concatenate(global const float *restrict a, global const float *restrict b, global float *restrict output,
                        int columns_a, int columns_b, int rows) {
  int c = get_global_id(0);
  int row = get_global_id(1);
  if (c >= columns_a + columns_b || row >= rows)
    return;
  float value = c < columns_a ? a[row * columns_a + c] : b[row * columns_b + c - columns_a];
  output[row * (columns_a + columns_b) + c] = value;
}
