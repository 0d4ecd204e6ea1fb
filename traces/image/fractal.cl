// Escape-time fractals: neighbouring work-items leave their loops after different numbers of rounds.

// Mandelbrot set in single precision, one pixel per work-item.
kernel void mandelbrot(global int *restrict rounds, int width, int height, float left, float top, float step,
                       int max_rounds) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  float cr = fma((float)x, step, left);
  float ci = fma((float)y, step, top);
  float zr = 0.0f;
  float zi = 0.0f;
  int n = 0;
  while (n < max_rounds && fma(zr, zr, zi * zi) < 4.0f) {
    float next = fma(zr, zr, fma(-zi, zi, cr));
    zi = fma(2.0f * zr, zi, ci);
    zr = next;
    ++n;
  }
  rounds[y * width + x] = n;
}

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// Mandelbrot set in double precision.
kernel void mandelbrot_fp64(global int *restrict rounds, int width, int height, double left, double top, double step,
                            int max_rounds) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  if (x >= width || y >= height)
    return;
  double cr = left + step * x;
  double ci = top + step * y;
  double zr = 0.0;
  double zi = 0.0;
  int n = 0;
  while (n < max_rounds && zr * zr + zi * zi < 4.0) {
    double next = zr * zr - zi * zi + cr;
    zi = 2.0 * zr * zi + ci;
    zr = next;
    ++n;
  }
  rounds[y * width + x] = n;
}
#endif

// Julia set by a fixed number of work-groups, each of which takes every so many rows.
kernel void julia_persistent(global uchar *restrict shades, int width, int height, float step, float cr, float ci,
                             int max_rounds) {
  for (int y = get_group_id(0); y < height; y += get_num_groups(0))
    for (int x = get_local_id(0); x < width; x += get_local_size(0)) {
      float zr = (float)(x - width / 2) * step;
      float zi = (float)(y - height / 2) * step;
      int n = 0;
      for (; n < max_rounds; ++n) {
        if (fma(zr, zr, zi * zi) > 4.0f)
          break;
        float next = fma(zr, zr, fma(-zi, zi, cr));
        zi = fma(2.0f * zr, zi, ci);
        zr = next;
      }
      shades[y * width + x] = (uchar)(n & 255);
    }
}
