// Eight-bit inference.

#ifndef GROUP
#define GROUP 64
#endif

// Floats to signed bytes with one scale, four per work-item.
kernel void quantise(global const float4 *restrict input, global char4 *restrict output, float inverse_scale,
                     int num_quads) {
  int i = get_global_id(0);
  if (i < num_quads)
    output[i] = convert_char4_sat_rte(input[i] * inverse_scale);
}

// Matrix times vector in bytes with 32-bit sums, one work-group per row.
kernel void matvec_bytes(global const char4 *restrict matrix, global const char4 *restrict vector,
                         global int *restrict output, int quads) {
  local int parts[GROUP];
  int lane = get_local_id(0);
  int row = get_group_id(0);
  int sum = 0;
  for (int q = lane; q < quads; q += GROUP) {
    int4 product = convert_int4(matrix[row * quads + q]) * convert_int4(vector[q]);
    sum += product.x + product.y + product.z + product.w;
  }
  parts[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0)
    output[row] = parts[0];
}

// Weights of four bits, eight in a word, widened to floats with a scale per group of 32.
kernel void widen_nibbles(global const uint *restrict packed, global const float *restrict scales,
                          global float *restrict output, int num_words) {
  int i = get_global_id(0);
  if (i >= num_words)
    return;
  uint word = packed[i];
  float scale = scales[i / 4];
  for (int k = 0; k < 8; ++k)
    output[i * 8 + k] = scale * (float)((int)((word >> (4 * k)) & 15u) - 8);
}
