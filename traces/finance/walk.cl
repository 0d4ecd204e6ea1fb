// Random walks on whole numbers until they leave a corridor: every work-item stops at another step.

// Next number of a xorshift generator.
static uint xorshift(uint x) {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ (x << 5);
}

// A walk per work-item; leaves the number of steps taken.
kernel void walk_until_exit(global const uint *restrict seeds, global int *restrict steps_taken, int half_width,
                            int max_steps, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint state = seeds[i];
  int position = 0;
  int steps = 0;
  while (abs(position) < (uint)half_width && steps < max_steps) {
    state = xorshift(state);
    position += state & 0x10000u ? 1 : -1;
    ++steps;
  }
  steps_taken[i] = steps;
}

// A work-item makes many walks one after the other, so that a sub-group's work evens out.
kernel void walk_many(global const uint *restrict seeds, global uint *restrict total_steps, int half_width,
                      int num_walks, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint state = seeds[i];
  uint total = 0;
  int position = 0;
  int walks = 0;
  while (walks < num_walks) {
    state = xorshift(state);
    position += state & 0x10000u ? 1 : -1;
    ++total;
    if (abs(position) >= (uint)half_width) {
      position = 0;
      ++walks;
    }
  }
  total_steps[i] = total;
}
