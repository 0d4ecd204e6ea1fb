// Softmax over the rows of a matrix.

#ifndef GROUP
#define GROUP 128
#endif

// One work-item per row, three passes over it; neighbouring work-items read addresses a row apart.
kernel void softmax_naive(global const float *restrict input, global float *restrict output, int rows, int columns) {
  int row = get_global_id(0);
  if (row >= rows)
    return;
  global const float *x = input + row * columns;
  float largest = x[0];
  for (int c = 1; c < columns; ++c)
    largest = fmax(largest, x[c]);
  float sum = 0.0f;
  for (int c = 0; c < columns; ++c)
    sum += exp(x[c] - largest);
  for (int c = 0; c < columns; ++c)
    output[row * columns + c] = exp(x[c] - largest) / sum;
}

// One work-group per row: largest and sum by two reductions in local memory.
kernel void softmax_group(global const float *restrict input, global float *restrict output, int columns) {
  local float parts[GROUP];
  int lane = get_local_id(0);
  int base = get_group_id(0) * columns;
  float largest = -INFINITY;
  for (int c = lane; c < columns; c += GROUP)
    largest = fmax(largest, input[base + c]);
  parts[lane] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] = fmax(parts[lane], parts[lane + width]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  largest = parts[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int c = lane; c < columns; c += GROUP)
    sum += exp(input[base + c] - largest);
  parts[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float scale = 1.0f / parts[0];
  for (int c = lane; c < columns; c += GROUP)
    output[base + c] = exp(input[base + c] - largest) * scale;
}

// Joins two (largest, sum) pairs of parts of a row.
static float2 join(float2 a, float2 b) {
  float largest = fmax(a.x, b.x);
  return (float2)(largest, a.y * native_exp(a.x - largest) + b.y * native_exp(b.x - largest));
}

// One work-group per row: largest and sum together in one pass, corrected as the largest grows.
kernel void softmax_online(global const float *restrict input, global float *restrict output, int columns) {
  local float2 parts[GROUP];
  int lane = get_local_id(0);
  int base = get_group_id(0) * columns;
  float2 part = (float2)(-1.0e30f, 0.0f);
  for (int c = lane; c < columns; c += GROUP)
    part = join(part, (float2)(input[base + c], 1.0f));
  parts[lane] = part;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] = join(parts[lane], parts[lane + width]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float2 whole = parts[0];
  for (int c = lane; c < columns; c += GROUP)
    output[base + c] = native_exp(input[base + c] - whole.x) / whole.y;
}
