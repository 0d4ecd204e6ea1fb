// Strided access: neighbouring work-items touch addresses STRIDE elements apart.

#ifndef STRIDE
#define STRIDE 2
#endif

// Reads with a stride, writes side by side.
kernel void read_strided(global const float *restrict input, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i] = input[i * STRIDE];
}

// Reads side by side, writes with a stride.
kernel void write_strided(global const float *restrict input, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i * STRIDE] = input[i];
}

// Each work-item walks its own piece of STRIDE elements, so that a sub-group's sectors are used up over time.
kernel void walk_pieces(global const float *restrict input, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float sum = 0.0f;
  for (int k = 0; k < STRIDE; ++k)
    sum += input[i * STRIDE + k];
  output[i] = sum;
}
