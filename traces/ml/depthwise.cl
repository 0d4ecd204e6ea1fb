// Depthwise convolution: every channel has its own K x K filter.

#ifndef K
#define K 3
#endif

// Channels as planes (NCHW), one output per work-item.
kernel void depthwise_planes(global const float *restrict input, global const float *restrict weights,
                             global float *restrict output, int height, int width) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  int channel = get_global_id(2);
  int out_width = width - K + 1;
  int out_height = height - K + 1;
  if (x >= out_width || y >= out_height)
    return;
  global const float *window = input + (channel * height + y) * width + x;
  float sum = 0.0f;
  for (int j = 0; j < K; ++j)
    for (int i = 0; i < K; ++i)
      sum += weights[(channel * K + j) * K + i] * window[j * width + i];
  output[(channel * out_height + y) * out_width + x] = sum;
}

// Channels innermost (NHWC), four channels per work-item.
kernel void depthwise_quads(global const float4 *restrict input, global const float4 *restrict weights,
                            global float4 *restrict output, int height, int width, int quads) {
  int q = get_global_id(0);
  int x = get_global_id(1);
  int y = get_global_id(2);
  int out_width = width - K + 1;
  if (q >= quads)
    return;
  float4 sum = (float4)(0.0f);
  for (int j = 0; j < K; ++j)
    for (int i = 0; i < K; ++i)
      sum += weights[(j * K + i) * quads + q] * input[((y + j) * width + x + i) * quads + q];
  output[(y * out_width + x) * quads + q] = sum;
}
