// Pooling.

#ifndef GROUP
#define GROUP 64
#endif

// Largest value of each window, and where it was; window size and stride are arguments.
kernel void max_pool(global const float *restrict input, global float *restrict output, global int *restrict places,
                     int width, int height, int out_width, int out_height, int size, int stride) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  int channel = get_global_id(2);
  if (x >= out_width || y >= out_height)
    return;
  float largest = -INFINITY;
  int place = 0;
  for (int j = 0; j < size; ++j)
    for (int i = 0; i < size; ++i) {
      int at = (channel * height + y * stride + j) * width + x * stride + i;
      if (input[at] > largest) {
        largest = input[at];
        place = at;
      }
    }
  output[(channel * out_height + y) * out_width + x] = largest;
  places[(channel * out_height + y) * out_width + x] = place;
}

// Mean of a whole channel, one work-group per channel.
kernel void mean_pool_global(global const float *restrict input, global float *restrict means, int pixels) {
  local float parts[GROUP];
  int lane = get_local_id(0);
  int channel = get_group_id(0);
  float sum = 0.0f;
  for (int p = lane; p < pixels; p += GROUP)
    sum += input[channel * pixels + p];
  parts[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0)
    means[channel] = parts[0] / (float)pixels;
}
