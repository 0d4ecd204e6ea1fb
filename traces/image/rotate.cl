// Rotation about the image centre by inverse mapping; pixels from outside are zero.

// Nearest pixel of an RGBA image held as 32-bit words.
kernel void rotate_nearest(global const uint *restrict input, global uint *restrict output, int width, int height,
                           float cosine, float sine) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  float dx = (float)x - 0.5f * (float)width;
  float dy = (float)y - 0.5f * (float)height;
  int sx = (int)floor(cosine * dx + sine * dy + 0.5f * (float)width + 0.5f);
  int sy = (int)floor(cosine * dy - sine * dx + 0.5f * (float)height + 0.5f);
  uint value = 0;
  if (sx >= 0 && sx < width && sy >= 0 && sy < height)
    value = input[sy * width + sx];
  output[y * width + x] = value;
}

// A pixel of the image, or zero outside it.
static float pixel_or_zero(global const float *input, int width, int height, int x, int y) {
  return x >= 0 && x < width && y >= 0 && y < height ? input[y * width + x] : 0.0f;
}

// Bilinear interpolation of one float channel.
kernel void rotate_bilinear(global const float *restrict input, global float *restrict output, int width, int height,
                            float cosine, float sine) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  float dx = (float)x - 0.5f * (float)width;
  float dy = (float)y - 0.5f * (float)height;
  float sx = cosine * dx + sine * dy + 0.5f * (float)width;
  float sy = cosine * dy - sine * dx + 0.5f * (float)height;
  float fx = floor(sx);
  float fy = floor(sy);
  int x0 = (int)fx;
  int y0 = (int)fy;
  float top = mix(pixel_or_zero(input, width, height, x0, y0), pixel_or_zero(input, width, height, x0 + 1, y0),
                  sx - fx);
  float bottom = mix(pixel_or_zero(input, width, height, x0, y0 + 1),
                     pixel_or_zero(input, width, height, x0 + 1, y0 + 1), sx - fx);
  output[y * width + x] = mix(top, bottom, sy - fy);
}
