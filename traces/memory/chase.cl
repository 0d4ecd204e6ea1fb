// Pointer chases: each read's address comes from the read before. The step number is mixed in, so that the walk does
// not close early on a short cycle.

// One chain per work-item in global memory; the table has mask + 1 entries.
kernel void chase_global(global const uint *restrict table, global uint *restrict ends, uint mask, int steps) {
  uint at = ((uint)get_global_id(0) * 2654435761u) & mask;
  for (int s = 0; s < steps; ++s)
    at = (table[at] + (uint)s) & mask;
  ends[get_global_id(0)] = at;
}

// The same with a single work-item.
kernel void chase_single(global const uint *restrict table, global uint *restrict ends, uint mask, int steps) {
  uint at = 0;
  for (int s = 0; s < steps; ++s)
    at = (table[at] + (uint)s) & mask;
  ends[0] = at;
}

// Chains through a table that was copied to local memory.
kernel void chase_local(global const uint *restrict table, global uint *restrict ends, local uint *restrict copy,
                        uint mask, int steps) {
  for (uint k = get_local_id(0); k <= mask; k += get_local_size(0))
    copy[k] = table[k];
  barrier(CLK_LOCAL_MEM_FENCE);
  uint at = ((uint)get_global_id(0) * 2654435761u) & mask;
  for (int s = 0; s < steps; ++s)
    at = (copy[at] + (uint)s) & mask;
  ends[get_global_id(0)] = at;
}

// Four chains in one work-item: four reads in flight.
kernel void chase_four(global const uint *restrict table, global uint *restrict ends, uint mask, int steps) {
  uint4 at = ((uint)get_global_id(0) * (uint4)(2654435761u, 2246822519u, 3266489917u, 668265263u)) & mask;
  for (int s = 0; s < steps; ++s)
    at = ((uint4)(table[at.x], table[at.y], table[at.z], table[at.w]) + (uint)s) & mask;
  ends[get_global_id(0)] = at.x ^ at.y ^ at.z ^ at.w;
}
