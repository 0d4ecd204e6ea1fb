// Indexed access: gathers and scatters.

// Gather of single floats; the launches bring random, near and permuted indices.
kernel void gather(global const float *restrict input, global const int *restrict indices,
                   global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i] = input[indices[i]];
}

// Gather of sixteen bytes.
kernel void gather_float4(global const float4 *restrict input, global const int *restrict indices,
                          global float4 *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i] = input[indices[i]];
}

// Scatter by a permutation: every address is written once.
kernel void scatter(global const float *restrict input, global const int *restrict indices,
                    global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[indices[i]] = input[i];
}

// Several independent gathers per work-item, added up: more requests in flight.
kernel void gather_many(global const float *restrict input, global const int *restrict indices,
                        global float *restrict output, int per_item, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float sum = 0.0f;
  for (int k = 0; k < per_item; ++k)
    sum += input[indices[k * count + i]];
  output[i] = sum;
}

// Random places computed by a hash instead of read: one request per place, nothing else.
kernel void gather_hashed(global const float *restrict input, global float *restrict output, uint mask, int per_item) {
  uint i = get_global_id(0);
  float sum = 0.0f;
  for (uint k = 0; k < (uint)per_item; ++k) {
    uint h = (i * 0x9e3779b1u) ^ (k * 0x85ebca77u);
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    h ^= h >> 12;
    sum += input[h & mask];
  }
  output[i] = sum;
}
