// Private memory: arrays with computed places, and many live registers.

#ifndef SLOTS
#define SLOTS 16
#endif
#ifndef LIVE
#define LIVE 16
#endif

// A private array at places that depend on data, so that it cannot stay in registers.
kernel void private_dynamic(global const uint *restrict input, global uint *restrict output, int rounds) {
  uint slots[SLOTS];
  uint x = input[get_global_id(0)];
  for (int k = 0; k < SLOTS; ++k)
    slots[k] = x + (uint)k;
  for (int r = 0; r < rounds; ++r) {
    uint at = (x >> 7) % SLOTS;
    x = slots[at] * 1664525u + 1013904223u;
    slots[at] = x ^ (uint)r;
  }
  for (int k = 0; k < SLOTS; ++k)
    x += slots[k];
  output[get_global_id(0)] = x;
}

// LIVE values stay live through the whole loop: register pressure.
kernel void private_live(global const float *restrict input, global float *restrict output, int rounds) {
  float live[LIVE];
  float x = input[get_global_id(0)];
#pragma unroll
  for (int k = 0; k < LIVE; ++k)
    live[k] = x + 0.01f * (float)k;
  for (int r = 0; r < rounds; ++r) {
    float last = live[LIVE - 1];
#pragma unroll
    for (int k = LIVE - 1; k > 0; --k)
      live[k] = fma(live[k], 0.75f, 0.25f * live[k - 1]);
    live[0] = fma(live[0], 0.75f, 0.25f * last);
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < LIVE; ++k)
    sum += live[k] * (float)(k + 1);
  output[get_global_id(0)] = sum;
}
