// Few work-items, long loops; and none at all to do.

// Nothing: what a launch costs.
kernel void empty(global float *restrict unused) {}

// One work-item adds up a buffer in order.
kernel void serial_sum(global const float *restrict input, global float *restrict output, int count) {
  float sum = 0.0f;
  for (int i = 0; i < count; ++i)
    sum += input[i];
  output[0] = sum;
}

// One work-item, a recurrence in registers.
kernel void serial_recurrence(global uint *restrict output, uint seed, int rounds) {
  uint x = seed;
  for (int r = 0; r < rounds; ++r)
    x = (x ^ (x >> 7)) * 0x2c1b3c6du + (uint)r;
  output[0] = x;
}

// One work-item sorts a small array by insertion.
kernel void serial_insertion_sort(global int *restrict values, int count) {
  for (int i = 1; i < count; ++i) {
    int value = values[i];
    int k = i;
    for (; k > 0 && values[k - 1] > value; --k)
      values[k] = values[k - 1];
    values[k] = value;
  }
}

// A handful of work-items, each with its own long stretch of memory.
kernel void few_long_stretches(global const float *restrict input, global float *restrict output, int stretch) {
  global const float *own = input + get_global_id(0) * stretch;
  float sum = 0.0f;
  float largest = 0.0f;
  for (int k = 0; k < stretch; ++k) {
    sum += own[k];
    largest = fmax(largest, own[k]);
  }
  output[get_global_id(0)] = sum + largest;
}

// A single work-group adds up a whole buffer.
kernel void single_group_sum(global const float *restrict input, global float *restrict output,
                             local float *restrict parts, int count) {
  int lane = get_local_id(0);
  float sum = 0.0f;
  for (int i = lane; i < count; i += get_local_size(0))
    sum += input[i];
  parts[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = get_local_size(0) / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0)
    output[0] = parts[0];
}
