// Path payoffs from normal numbers that lie in memory.

#ifndef PATH_MAJOR
#define PATH_MAJOR 0
#endif

// Where the number of a path's step lies: side by side by path, or side by side by step.
#if PATH_MAJOR
#define AT(path, step) ((path) * steps + (step))
#else
#define AT(path, step) ((step) * count + (path))
#endif

// Asian call on stored numbers: memory-bound, coalesced or a path apart.
kernel void asian_stored(global const float *restrict normals, global float *restrict payoffs, float spot,
                         float strike, float drift, float deviation, int steps, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float price = spot;
  float sum = 0.0f;
  for (int s = 0; s < steps; ++s) {
    price *= exp(drift + deviation * normals[AT(i, s)]);
    sum += price;
  }
  payoffs[i] = fmax(sum / (float)steps - strike, 0.0f);
}

// Barrier option on stored numbers: a path stops as soon as it crosses the barrier.
kernel void barrier_stored(global const float *restrict normals, global float *restrict payoffs, float spot,
                           float strike, float limit, float deviation, int steps, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float price = spot;
  for (int s = 0; s < steps && price > limit; ++s)
    price *= exp(deviation * normals[AT(i, s)] - 0.5f * deviation * deviation);
  payoffs[i] = price > limit ? fmax(price - strike, 0.0f) : 0.0f;
}
