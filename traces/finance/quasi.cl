// Quasi-random points.

// Halton sequence: digits of the point's number, mirrored at the point; prime bases as arguments.
kernel void halton_points(global float2 *restrict points, uint first, uint base_x, uint base_y, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint bases[2] = {base_x, base_y};
  float values[2];
  for (int axis = 0; axis < 2; ++axis) {
    uint rest = first + (uint)i;
    float scale = 1.0f / (float)bases[axis];
    float place = scale;
    float value = 0.0f;
    while (rest > 0u) {
      value += (float)(rest % bases[axis]) * place;
      rest /= bases[axis];
      place *= scale;
    }
    values[axis] = value;
  }
  points[i] = (float2)(values[0], values[1]);
}

// Sobol-like sequence: direction numbers are combined by the bits of the Gray code; one axis per row.
kernel void sobol_points(global const uint *restrict directions, global float *restrict points, uint first, int count) {
  int i = get_global_id(0);
  int axis = get_global_id(1);
  if (i >= count)
    return;
  uint number = first + (uint)i;
  uint code = number ^ (number >> 1);
  uint bits = 0u;
  for (int bit = 0; code != 0u; ++bit, code >>= 1)
    if (code & 1u)
      bits ^= directions[axis * 32 + bit];
  points[axis * count + i] = (float)(bits >> 8) * (1.0f / 16777216.0f);
}

// Weyl sequence in the plane, summed in a grid-stride loop: one sum of a test function per work-item.
kernel void weyl_integral(global float *restrict sums, int count) {
  float sum = 0.0f;
  for (int i = get_global_id(0); i < count; i += get_global_size(0)) {
    float x = (float)((uint)i * 3242174889u >> 8) * (1.0f / 16777216.0f);
    float y = (float)((uint)i * 2447445414u >> 8) * (1.0f / 16777216.0f);
    sum += x * x * y;
  }
  sums[get_global_id(0)] = sum;
}
