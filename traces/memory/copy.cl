// Copies: how many bytes a second, at which access width.

#ifndef ITEMS
#define ITEMS 4
#endif

// One float per work-item.
kernel void copy_float(global const float *restrict input, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i] = input[i];
}

// Sixteen bytes per work-item.
kernel void copy_float4(global const float4 *restrict input, global float4 *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i] = input[i];
}

// One byte per work-item.
kernel void copy_byte(global const uchar *restrict input, global uchar *restrict output, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i] = input[i];
}

// ITEMS floats per work-item, side by side over the work-group: all loads first, then all stores.
kernel void copy_unrolled(global const float *restrict input, global float *restrict output) {
  int first = get_group_id(0) * get_local_size(0) * ITEMS + get_local_id(0);
  float values[ITEMS];
  for (int k = 0; k < ITEMS; ++k)
    values[k] = input[first + k * get_local_size(0)];
  for (int k = 0; k < ITEMS; ++k)
    output[first + k * get_local_size(0)] = values[k];
}

// ITEMS neighbouring floats per work-item, one after the other: work-items lie a piece apart.
kernel void copy_pieces(global const float *restrict input, global float *restrict output) {
  int first = get_global_id(0) * ITEMS;
  for (int k = 0; k < ITEMS; ++k)
    output[first + k] = input[first + k];
}

// A fixed number of work-groups walks over the whole buffer.
kernel void copy_persistent(global const float4 *restrict input, global float4 *restrict output, int count) {
  for (int i = get_global_id(0); i < count; i += get_global_size(0))
    output[i] = input[i];
}

// Reads and writes shifted off their natural alignment.
kernel void copy_shifted(global const float *restrict input, global float *restrict output, int read_shift,
                         int write_shift, int count) {
  int i = get_global_id(0);
  if (i < count)
    output[i + write_shift] = input[i + read_shift];
}
