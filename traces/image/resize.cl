// Resampling to another size; pixel centres lie at half-integers.

// Bilinear resampling of RGBA pixels.
kernel void resize_bilinear(global const uchar4 *restrict input, global uchar4 *restrict output, int in_width,
                            int in_height, int out_width, int out_height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= out_width || y >= out_height)
    return;
  float sx = ((float)x + 0.5f) * (float)in_width / (float)out_width - 0.5f;
  float sy = ((float)y + 0.5f) * (float)in_height / (float)out_height - 0.5f;
  float fx = floor(sx);
  float fy = floor(sy);
  int x0 = clamp((int)fx, 0, in_width - 1);
  int x1 = clamp((int)fx + 1, 0, in_width - 1);
  int y0 = clamp((int)fy, 0, in_height - 1) * in_width;
  int y1 = clamp((int)fy + 1, 0, in_height - 1) * in_width;
  float4 top = mix(convert_float4(input[y0 + x0]), convert_float4(input[y0 + x1]), sx - fx);
  float4 bottom = mix(convert_float4(input[y1 + x0]), convert_float4(input[y1 + x1]), sx - fx);
  output[y * out_width + x] = convert_uchar4_sat(mix(top, bottom, sy - fy) + 0.5f);
}

// Weight of the cubic convolution kernel (a = -1/2) at distance t.
static float cubic_weight(float t) {
  t = fabs(t);
  if (t < 1.0f)
    return (1.5f * t - 2.5f) * t * t + 1.0f;
  if (t < 2.0f)
    return ((-0.5f * t + 2.5f) * t - 4.0f) * t + 2.0f;
  return 0.0f;
}

// Bicubic resampling of one float channel, sixteen neighbours per pixel.
kernel void resize_bicubic(global const float *restrict input, global float *restrict output, int in_width,
                           int in_height, int out_width, int out_height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= out_width || y >= out_height)
    return;
  float sx = ((float)x + 0.5f) * (float)in_width / (float)out_width - 0.5f;
  float sy = ((float)y + 0.5f) * (float)in_height / (float)out_height - 0.5f;
  int fx = (int)floor(sx);
  int fy = (int)floor(sy);
  float sum = 0.0f;
  for (int j = -1; j <= 2; ++j) {
    global const float *row = input + clamp(fy + j, 0, in_height - 1) * in_width;
    float line = 0.0f;
    for (int i = -1; i <= 2; ++i)
      line += cubic_weight(sx - (float)(fx + i)) * row[clamp(fx + i, 0, in_width - 1)];
    sum += cubic_weight(sy - (float)(fy + j)) * line;
  }
  output[y * out_width + x] = sum;
}

// Shrinks by a whole factor: each output is the mean of factor * factor inputs.
kernel void shrink_mean(global const uchar *restrict input, global uchar *restrict output, int out_width,
                        int out_height, int factor) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= out_width || y >= out_height)
    return;
  int pitch = out_width * factor;
  global const uchar *corner = input + y * factor * pitch + x * factor;
  uint sum = 0;
  for (int j = 0; j < factor; ++j)
    for (int i = 0; i < factor; ++i)
      sum += corner[j * pitch + i];
  uint area = factor * factor;
  output[y * out_width + x] = (uchar)((sum + area / 2) / area);
}
