// Atomics.

// Every work-item adds to one of `targets` counters, neighbours to different ones.
kernel void atomic_spread(global uint *restrict counters, uint targets, int rounds) {
  uint at = (uint)get_global_id(0) % targets;
  for (int r = 0; r < rounds; ++r)
    atomic_add(&counters[at], (uint)r + 1u);
}

// Random counters.
kernel void atomic_random(global uint *restrict counters, global const int *restrict indices, int count) {
  int i = get_global_id(0);
  if (i < count)
    atomic_inc(&counters[indices[i]]);
}

// Largest value of a buffer, every work-item at one address.
kernel void atomic_largest(global const int *restrict input, global int *restrict largest, int count) {
  int i = get_global_id(0);
  if (i < count)
    atomic_max(largest, input[i]);
}

// Counters in local memory, written out at the end.
kernel void atomic_local(global uint *restrict output, local uint *restrict counters, uint targets, int rounds) {
  for (uint k = get_local_id(0); k < targets; k += get_local_size(0))
    counters[k] = 0u;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = 0; r < rounds; ++r)
    atomic_add(&counters[((uint)get_local_id(0) * 7u + (uint)r) % targets], (uint)get_local_id(0));
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint k = get_local_id(0); k < targets; k += get_local_size(0))
    output[get_group_id(0) * targets + k] = counters[k];
}
