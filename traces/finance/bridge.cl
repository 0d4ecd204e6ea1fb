// Brownian bridge: a path is made from its ends inward, halving the gaps level by level.

#ifndef LEVELS
#define LEVELS 6
#endif

#define STEPS (1 << LEVELS)

// One work-item per path, point by point in global memory; paths lie side by side.
kernel void bridge_global(global const float *restrict normals, global float *restrict paths, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  paths[i] = 0.0f;
  paths[STEPS * count + i] = normals[i];
  int drawn = 1;
  for (int gap = STEPS; gap > 1; gap /= 2) {
    float deviation = 0.5f * sqrt((float)gap / (float)STEPS);
    for (int left = 0; left < STEPS; left += gap) {
      float middle = 0.5f * (paths[left * count + i] + paths[(left + gap) * count + i]);
      paths[(left + gap / 2) * count + i] = middle + deviation * normals[drawn * count + i];
      ++drawn;
    }
  }
}

// One work-group per path in local memory; the first levels keep only a few of its work-items busy.
kernel void bridge_local(global const float *restrict normals, global float *restrict paths) {
  local float path[STEPS + 1];
  int lane = get_local_id(0);
  int group = get_group_id(0);
  if (lane == 0) {
    path[0] = 0.0f;
    path[STEPS] = normals[group * STEPS];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int level = 0; level < LEVELS; ++level) {
    int gap = STEPS >> level;
    float deviation = 0.5f * sqrt((float)gap / (float)STEPS);
    for (int k = lane; k < (1 << level); k += get_local_size(0)) {
      int left = k * gap;
      float middle = 0.5f * (path[left] + path[left + gap]);
      path[left + gap / 2] = middle + deviation * normals[group * STEPS + (1 << level) + k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int k = lane; k <= STEPS; k += get_local_size(0))
    paths[group * (STEPS + 1) + k] = path[k];
}
