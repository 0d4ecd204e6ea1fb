// Streams: reads alone, writes alone, and both with a little arithmetic.

// a = b + s * c.
kernel void triad(global float *restrict a, global const float *restrict b, global const float *restrict c, float s,
                  int count) {
  int i = get_global_id(0);
  if (i < count)
    a[i] = b[i] + s * c[i];
}

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// a = b + s * c in double precision, two numbers per work-item.
kernel void triad_fp64(global double2 *restrict a, global const double2 *restrict b, global const double2 *restrict c,
                       double s, int count) {
  int i = get_global_id(0);
  if (i < count)
    a[i] = b[i] + s * c[i];
}
#endif

// Writes only.
kernel void fill(global uint *restrict output, uint value, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i] = value + (uint)i;
}

// Reads only: each work-item adds up its share and writes one number.
kernel void read_sum(global const float4 *restrict input, global float *restrict sums, int count) {
  float4 sum = (float4)(0.0f);
  for (int i = get_global_id(0); i < count; i += get_global_size(0))
    sum += input[i];
  sums[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}

// Eight arrays read side by side: many streams at once.
kernel void eight_streams(global const float *restrict input, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float sum = 0.0f;
  for (int k = 0; k < 8; ++k)
    sum += input[k * count + i];
  output[i] = sum;
}
