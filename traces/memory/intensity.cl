// Arithmetic intensity: a stream with a known number of operations per element.

#ifndef FMAS
#define FMAS 8
#endif

// FMAS unrolled fused multiply-adds for each float read and written.
kernel void intensity_unrolled(global const float *restrict input, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float x = input[i];
  float y = x;
#pragma unroll
  for (int k = 0; k < FMAS / 2; ++k) {
    x = fma(x, 0.999f, 0.001f);
    y = fma(y, 0.998f, 0.002f);
  }
  output[i] = x + y;
}

// The same with the number of rounds as an argument.
kernel void intensity_looped(global const float4 *restrict input, global float4 *restrict output, int rounds,
                             int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float4 x = input[i];
  for (int r = 0; r < rounds; ++r)
    x = fma(x, (float4)(0.999f), (float4)(0.001f));
  output[i] = x;
}

// Integer operations per element, with a persistent grid.
kernel void intensity_integer(global uint *restrict values, int rounds, int count) {
  for (int i = get_global_id(0); i < count; i += get_global_size(0)) {
    uint x = values[i];
    for (int r = 0; r < rounds; ++r)
      x = (x ^ (x >> 3)) * 0x9e3779b1u + 1u;
    values[i] = x;
  }
}
