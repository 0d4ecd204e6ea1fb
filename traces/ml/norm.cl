// Normalisation layers.

#ifndef GROUP
#define GROUP 128
#endif

// Layer norm, one work-item per row: mean, variance and output in three passes.
kernel void layer_norm_naive(global const float *restrict input, global const float *restrict gain,
                             global const float *restrict bias, global float *restrict output, int rows,
                             int columns) {
  int row = get_global_id(0);
  if (row >= rows)
    return;
  global const float *x = input + row * columns;
  float mean = 0.0f;
  for (int c = 0; c < columns; ++c)
    mean += x[c];
  mean /= (float)columns;
  float variance = 0.0f;
  for (int c = 0; c < columns; ++c)
    variance += (x[c] - mean) * (x[c] - mean);
  float scale = rsqrt(variance / (float)columns + 1.0e-5f);
  for (int c = 0; c < columns; ++c)
    output[row * columns + c] = (x[c] - mean) * scale * gain[c] + bias[c];
}

// Layer norm, one work-group per row: sum and sum of squares in one pass and one reduction.
kernel void layer_norm_group(global const float *restrict input, global const float *restrict gain,
                             global const float *restrict bias, global float *restrict output, int columns) {
  local float2 parts[GROUP];
  int lane = get_local_id(0);
  int base = get_group_id(0) * columns;
  float2 part = (float2)(0.0f, 0.0f);
  for (int c = lane; c < columns; c += GROUP) {
    float x = input[base + c];
    part += (float2)(x, x * x);
  }
  parts[lane] = part;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float2 moments = parts[0] / (float)columns;
  float scale = rsqrt(moments.y - moments.x * moments.x + 1.0e-5f);
  for (int c = lane; c < columns; c += GROUP)
    output[base + c] = (input[base + c] - moments.x) * scale * gain[c] + bias[c];
}

// Mean and variance of each channel of an NCHW tensor, one work-group per channel.
kernel void batch_norm_statistics(global const float *restrict input, global float2 *restrict statistics, int batch,
                                  int channels, int pixels) {
  local float2 parts[GROUP];
  int lane = get_local_id(0);
  int channel = get_group_id(0);
  float2 part = (float2)(0.0f, 0.0f);
  for (int n = 0; n < batch; ++n) {
    global const float *plane = input + (n * channels + channel) * pixels;
    for (int p = lane; p < pixels; p += GROUP)
      part += (float2)(plane[p], plane[p] * plane[p]);
  }
  parts[lane] = part;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0) {
    float2 moments = parts[0] / ((float)batch * (float)pixels);
    statistics[channel] = (float2)(moments.x, moments.y - moments.x * moments.x);
  }
}

// Batch norm with known statistics and a ReLU, in place, one element per work-item.
kernel void batch_norm_apply(global float *restrict tensor, global const float2 *restrict statistics,
                             global const float *restrict gain, global const float *restrict bias, int channels,
                             int pixels, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  int channel = i / pixels % channels;
  float2 s = statistics[channel];
  tensor[i] = fmax((tensor[i] - s.x) * rsqrt(s.y + 1.0e-5f) * gain[channel] + bias[channel], 0.0f);
}
