// Barriers and occupancy.

#ifndef LOCAL_WORDS
#define LOCAL_WORDS 1024
#endif

// Values move to the next work-item of the group, with two barriers a round.
kernel void barrier_rounds(global const uint *restrict input, global uint *restrict output, local uint *restrict ring,
                           int rounds) {
  uint lane = get_local_id(0);
  uint value = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r) {
    ring[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    value = ring[(lane + 1u) % get_local_size(0)] + 1u;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  output[get_global_id(0)] = value;
}

// One work-item of the group at a time does something; the others wait at the barrier.
kernel void barrier_turns(global const float *restrict input, global float *restrict output, local float *restrict sum) {
  int lane = get_local_id(0);
  float value = input[get_global_id(0)];
  if (lane == 0)
    sum[0] = 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int turn = 0; turn < (int)get_local_size(0); ++turn) {
    if (lane == turn)
      sum[0] = sum[0] * 0.5f + value;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  output[get_global_id(0)] = sum[0] + value;
}

// LOCAL_WORDS of local memory limit how many groups a compute unit holds; the work is dependent reads.
kernel void occupancy_chase(global const uint *restrict table, global uint *restrict ends, uint mask, int steps) {
  local uint words[LOCAL_WORDS];
  for (int k = get_local_id(0); k < LOCAL_WORDS; k += get_local_size(0))
    words[k] = table[k & mask];
  barrier(CLK_LOCAL_MEM_FENCE);
  uint at = ((uint)get_global_id(0) * 2654435761u) & mask;
  for (int s = 0; s < steps; ++s)
    at = (table[at] + words[at % LOCAL_WORDS] + (uint)s) & mask;
  ends[get_global_id(0)] = at;
}

// The same limit with arithmetic instead of reads.
kernel void occupancy_arithmetic(global const float *restrict input, global float *restrict output, int rounds) {
  local float words[LOCAL_WORDS];
  for (int k = get_local_id(0); k < LOCAL_WORDS; k += get_local_size(0))
    words[k] = 0.001f * (float)(k & 255);
  barrier(CLK_LOCAL_MEM_FENCE);
  float x = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r) {
    x = fma(x, 0.999f, 0.001f);
    x = fma(x, 0.998f, 0.002f);
  }
  output[get_global_id(0)] = x + words[(get_local_id(0) * 31) % LOCAL_WORDS];
}
