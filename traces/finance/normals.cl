// Making normal random numbers.

#ifndef NATIVE
#define NATIVE 0
#endif

#if NATIVE
#define LOG native_log
#define SQRT native_sqrt
#define SIN native_sin
#define COS native_cos
#else
#define LOG log
#define SQRT sqrt
#define SIN sin
#define COS cos
#endif

// Box-Muller: two uniform numbers become two normal ones.
kernel void box_muller(global const float2 *restrict uniforms, global float2 *restrict normals, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float2 u = uniforms[i];
  float radius = SQRT(-2.0f * LOG(1.0f - u.x));
  float angle = 2.0f * M_PI_F * u.y;
  normals[i] = radius * (float2)(COS(angle), SIN(angle));
}

// Next number of a xorshift generator.
static uint xorshift(uint x) {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ (x << 5);
}

// Marsaglia's polar method: each work-item draws until a point falls inside the circle, `rounds` times.
kernel void polar_method(global const uint *restrict seeds, global float2 *restrict normals, int rounds, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint state = seeds[i];
  float2 sum = (float2)(0.0f, 0.0f);
  for (int r = 0; r < rounds; ++r) {
    float2 point;
    float square;
    do {
      state = xorshift(state);
      point.x = (float)(int)state * (1.0f / 2147483648.0f);
      state = xorshift(state);
      point.y = (float)(int)state * (1.0f / 2147483648.0f);
      square = point.x * point.x + point.y * point.y;
    } while (square >= 1.0f || square == 0.0f);
    sum += point * sqrt(-2.0f * log(square) / square);
  }
  normals[i] = sum;
}

// Inverse of the normal distribution function: a rational middle, a logarithmic tail in another branch (Acklam).
kernel void inverse_normal(global const float *restrict uniforms, global float *restrict normals, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float u = uniforms[i];
  float q = u - 0.5f;
  float x;
  if (fabs(q) <= 0.47575f) {
    float r = q * q;
    float top = ((((-39.69683028665376f * r + 220.9460984245205f) * r - 275.9285104469687f) * r + 138.3577518672690f) *
                     r -
                 30.66479806614716f) *
                    r +
                2.506628277459239f;
    float bottom = ((((-54.47609879822406f * r + 161.5858368580409f) * r - 155.6989798598866f) * r +
                     66.80131188771972f) *
                        r -
                    13.28068155288572f) *
                       r +
                   1.0f;
    x = q * top / bottom;
  } else {
    float t = sqrt(-2.0f * log(fmin(u, 1.0f - u)));
    float top = ((((-0.007784894002430293f * t - 0.3223964580411365f) * t - 2.400758277161838f) * t -
                  2.549732539343734f) *
                     t +
                 4.374664141464968f) *
                    t +
                2.938163982698783f;
    float bottom =
        (((0.007784695709041462f * t + 0.3224671290700398f) * t + 2.445134137142996f) * t + 3.754408661907416f) * t +
        1.0f;
    x = q < 0.0f ? top / bottom : -top / bottom;
  }
  normals[i] = x;
}
