// Bilateral filter: weights fall with the distance and with the difference in value.

#ifndef RADIUS
#define RADIUS 2
#endif

#define SIDE (2 * RADIUS + 1)

// Both weights computed by exp for every neighbour.
kernel void bilateral_exp(global const float *restrict input, global float *restrict output, int width, int height,
                          float space_factor, float value_factor) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  float centre = input[y * width + x];
  float sum = 0.0f;
  float total = 0.0f;
  for (int j = -RADIUS; j <= RADIUS; ++j) {
    global const float *row = input + clamp(y + j, 0, height - 1) * width;
    for (int i = -RADIUS; i <= RADIUS; ++i) {
      float value = row[clamp(x + i, 0, width - 1)];
      float change = value - centre;
      float weight = exp(-space_factor * (float)(i * i + j * j) - value_factor * change * change);
      sum += weight * value;
      total += weight;
    }
  }
  output[y * width + x] = sum / total;
}

// 8-bit pixels, both weights looked up in tables.
kernel void bilateral_table(global const uchar *restrict input, global uchar *restrict output, int width, int height,
                            constant float *restrict space_table, constant float *restrict value_table) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  int centre = input[y * width + x];
  float sum = 0.0f;
  float total = 0.0f;
  for (int j = 0; j < SIDE; ++j) {
    global const uchar *row = input + clamp(y + j - RADIUS, 0, height - 1) * width;
    for (int i = 0; i < SIDE; ++i) {
      int value = row[clamp(x + i - RADIUS, 0, width - 1)];
      float weight = space_table[j * SIDE + i] * value_table[abs(value - centre)];
      sum += weight * (float)value;
      total += weight;
    }
  }
  output[y * width + x] = convert_uchar_sat(sum / total + 0.5f);
}
