// Dithering of an 8-bit image to black and white.

// Floyd-Steinberg error diffusion: a work-item walks one band of rows, pixel after pixel.
kernel void dither_bands(global const uchar *restrict input, global uchar *restrict output, global int *restrict below,
                         int width, int num_bands, int band_rows) {
  int band = get_global_id(0);
  if (band >= num_bands)
    return;
  for (int r = 0; r < band_rows; ++r) {
    int row = (band * band_rows + r) * width;
    int ahead = 0;   // error for the next pixel of this row, in sixteenths
    int corner = 0;  // error for the pixel below the next one
    int under = 0;   // error gathered so far for the pixel below this one
    for (int x = 0; x < width; ++x) {
      int cell = x * num_bands + band;
      int value = input[row + x] * 16 + ahead + (r > 0 ? below[cell] : 0);
      int white = value >= 128 * 16;
      int error = (value - (white ? 255 * 16 : 0)) / 16;
      output[row + x] = white ? 255 : 0;
      if (x > 0)
        below[cell - num_bands] = under + 3 * error;
      under = corner + 5 * error;
      corner = error;
      ahead = 7 * error;
    }
    below[(width - 1) * num_bands + band] = under;
  }
}

constant uchar bayer[64] = {0,  32, 8,  40, 2,  34, 10, 42, 48, 16, 56, 24, 50, 18, 58, 26, 12, 44, 4,  36, 14, 46,
                            6,  38, 60, 28, 52, 20, 62, 30, 54, 22, 3,  35, 11, 43, 1,  33, 9,  41, 51, 19, 59, 27,
                            49, 17, 57, 25, 15, 47, 7,  39, 13, 45, 5,  37, 63, 31, 55, 23, 61, 29, 53, 21};

// Ordered dithering by an 8 x 8 table of thresholds.
kernel void dither_ordered(global const uchar *restrict input, global uchar *restrict output, int width, int height) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  int threshold = bayer[(y & 7) * 8 + (x & 7)] * 4 + 2;
  output[y * width + x] = input[y * width + x] > threshold ? 255 : 0;
}
