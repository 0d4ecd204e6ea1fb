// Monte Carlo estimate of pi: points in the unit square that fall inside the quarter circle.

#ifndef GROUP
#define GROUP 128
#endif

// Scrambles a number into a seed that is never zero.
static uint scramble(uint x) {
  x = (x ^ 61u) ^ (x >> 16);
  x *= 9u;
  x ^= x >> 4;
  x *= 0x27d4eb2du;
  return (x ^ (x >> 15)) | 1u;
}

// Next number of a xorshift generator.
static uint xorshift(uint x) {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ (x << 5);
}

// Points of one work-item that fall inside, counted in whole numbers.
static uint count_inside(uint state, int samples) {
  uint inside = 0;
  for (int s = 0; s < samples; ++s) {
    state = xorshift(state);
    uint x = state >> 17;
    uint y = state & 0x7fffu;
    inside += x * x + y * y < 0x40000000u;
  }
  return inside;
}

// Every work-item adds its count to one counter in global memory.
kernel void pi_atomic(global uint *restrict total, uint seed, int samples) {
  atomic_add(total, count_inside(scramble(seed + get_global_id(0)), samples));
}

// Counts are added up within the work-group first; one result per work-group.
kernel void pi_groups(global uint *restrict totals, uint seed, int samples) {
  local uint counts[GROUP];
  int lane = get_local_id(0);
  counts[lane] = count_inside(scramble(seed + get_global_id(0)), samples);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      counts[lane] += counts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0)
    totals[get_group_id(0)] = counts[0];
}
