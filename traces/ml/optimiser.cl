// Optimiser steps and regularisation.

// Adam: two moments and the parameter updated in place.
kernel void adam_update(global float *restrict parameters, global const float *restrict gradients,
                        global float *restrict first, global float *restrict second, float rate, float keep_first,
                        float keep_second, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float g = gradients[i];
  float m = mix(g, first[i], keep_first);
  float v = mix(g * g, second[i], keep_second);
  first[i] = m;
  second[i] = v;
  parameters[i] -= rate * m / (sqrt(v) + 1.0e-8f);
}

// Gradient descent with momentum on four parameters per work-item.
kernel void momentum_update(global float4 *restrict parameters, global const float4 *restrict gradients,
                            global float4 *restrict velocities, float rate, float keep, int num_quads) {
  int i = get_global_id(0);
  if (i >= num_quads)
    return;
  float4 velocity = keep * velocities[i] - rate * gradients[i];
  velocities[i] = velocity;
  parameters[i] += velocity;
}

// Dropout: a hash of position and seed decides; survivors are scaled up.
kernel void dropout_hash(global const float *restrict input, global float *restrict output,
                         global uchar *restrict mask, uint seed, uint threshold, float scale, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint h = (uint)i ^ seed;
  h ^= h >> 16;
  h *= 0x7feb352du;
  h ^= h >> 15;
  h *= 0x846ca68bu;
  h ^= h >> 16;
  uchar is_kept = h >= threshold;
  mask[i] = is_kept;
  output[i] = is_kept ? input[i] * scale : 0.0f;
}
