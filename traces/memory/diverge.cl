// Divergence.

#ifndef WAYS
#define WAYS 4
#endif

// Neighbours take different ways through a ladder of branches, in every round; WAYS is at most 16.
kernel void branch_ladder(global const float *restrict input, global float *restrict output, int rounds) {
  int way = (int)get_global_id(0) % WAYS;
  float x = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r) {
    if (way < 8) {
      if (way < 4) {
        if (way < 2)
          x = way == 0 ? fma(x, 0.99f, 0.01f) : sqrt(x + 0.5f);
        else
          x = way == 2 ? x / (1.0f + x) : exp(-x);
      } else {
        if (way < 6)
          x = way == 4 ? log(1.5f + x) : fabs(sin(x));
        else
          x = way == 6 ? cos(x) * 0.5f + 0.5f : rsqrt(1.0f + x);
      }
    } else if (way < 12) {
      x = fma(x, x * 0.25f, 0.25f) + (float)(way - 8) * 0.01f;
    } else {
      x = 1.0f / (1.0f + x * (float)(way - 11));
    }
  }
  output[get_global_id(0)] = x;
}

// Loop lengths from data: a sub-group waits for its longest work-item.
kernel void loop_lengths(global const int *restrict lengths, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float x = 0.0f;
  for (int k = 0; k < lengths[i]; ++k)
    x = fma(x, 0.5f, (float)(k & 3));
  output[i] = x;
}

// Only every so many work-items does the work: most lanes idle.
kernel void sparse_lanes(global const float *restrict input, global float *restrict output, int every, int rounds) {
  float x = input[get_global_id(0)];
  if ((int)get_global_id(0) % every == 0)
    for (int r = 0; r < rounds; ++r)
      x = fma(x, 0.999f, 0.001f);
  output[get_global_id(0)] = x;
}

// Collatz steps: short bodies, data-dependent lengths, two-way branch in each step.
kernel void collatz(global int *restrict steps_taken, uint first, int max_steps) {
  uint n = first + (uint)get_global_id(0);
  int steps = 0;
  while (n != 1u && steps < max_steps) {
    n = n & 1u ? 3u * n + 1u : n >> 1;
    ++steps;
  }
  steps_taken[get_global_id(0)] = steps;
}
