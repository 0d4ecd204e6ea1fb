// Finite differences for the heat form of the Black-Scholes equation.

#ifndef POINTS
#define POINTS 128
#endif
#ifndef INTERLEAVED
#define INTERLEAVED 1
#endif

// Explicit steps of one grid per work-group, wholly in local memory; the ends stay fixed.
kernel void explicit_local(global const float *restrict start, global float *restrict end, float factor, int steps) {
  local float grid[2][POINTS];
  int k = get_local_id(0);
  int at = get_group_id(0) * POINTS + k;
  int from = 0;
  grid[0][k] = start[at];
  grid[1][k] = start[at];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = 0; s < steps; ++s) {
    if (k > 0 && k < POINTS - 1) {
      float here = grid[from][k];
      grid[1 - from][k] = here + factor * (grid[from][k - 1] - 2.0f * here + grid[from][k + 1]);
    }
    from = 1 - from;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  end[at] = grid[from][k];
}

#if INTERLEAVED
#define AT(system, row) ((row) * count + (system))
#else
#define AT(system, row) ((system) * points + (row))
#endif

// Implicit step: one tridiagonal system per work-item by elimination and back substitution (Thomas).
kernel void implicit_thomas(global const float *restrict right, global float *restrict factors,
                            global float *restrict solution, float off_diagonal, int points, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float diagonal = 1.0f - 2.0f * off_diagonal;
  float factor = 0.0f;
  float value = 0.0f;
  for (int row = 0; row < points; ++row) {
    float pivot = 1.0f / (diagonal - off_diagonal * factor);
    factor = off_diagonal * pivot;
    value = (right[AT(i, row)] - off_diagonal * value) * pivot;
    factors[AT(i, row)] = factor;
    solution[AT(i, row)] = value;
  }
  for (int row = points - 2; row >= 0; --row) {
    value = solution[AT(i, row)] - factors[AT(i, row)] * value;
    solution[AT(i, row)] = value;
  }
}
