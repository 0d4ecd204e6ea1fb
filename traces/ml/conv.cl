// Two-dimensional convolution, NCHW without padding; weights are (out channel, in channel, row, column).

#ifndef K
#define K 3
#endif
#ifndef TILE
#define TILE 16
#endif
#ifndef OUTPUTS
#define OUTPUTS 4
#endif

#define SPAN (TILE + K - 1)

// One output pixel of one channel per work-item; the third dimension runs over output channels.
kernel void conv_direct(global const float *restrict input, global const float *restrict weights,
                        global float *restrict output, int in_channels, int height, int width) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  int channel = get_global_id(2);
  int out_width = width - K + 1;
  int out_height = height - K + 1;
  if (x >= out_width || y >= out_height)
    return;
  float sum = 0.0f;
  for (int c = 0; c < in_channels; ++c) {
    global const float *window = input + (c * height + y) * width + x;
    global const float *w = weights + (channel * in_channels + c) * K * K;
    for (int j = 0; j < K; ++j)
      for (int i = 0; i < K; ++i)
        sum += w[j * K + i] * window[j * width + i];
  }
  output[(channel * out_height + y) * out_width + x] = sum;
}

// A tile of each input channel and the channel's weights staged in local memory.
kernel void conv_tiled(global const float *restrict input, global const float *restrict weights,
                       global float *restrict output, int in_channels, int height, int width) {
  local float tile[SPAN][SPAN];
  local float taps[K * K];
  int lx = get_local_id(0);
  int ly = get_local_id(1);
  int lane = ly * TILE + lx;
  int left = get_group_id(0) * TILE;
  int top = get_group_id(1) * TILE;
  int channel = get_global_id(2);
  float sum = 0.0f;
  for (int c = 0; c < in_channels; ++c) {
    for (int k = lane; k < SPAN * SPAN; k += TILE * TILE) {
      int j = min(top + k / SPAN, height - 1);
      int i = min(left + k % SPAN, width - 1);
      tile[k / SPAN][k % SPAN] = input[(c * height + j) * width + i];
    }
    for (int k = lane; k < K * K; k += TILE * TILE)
      taps[k] = weights[(channel * in_channels + c) * K * K + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < K; ++j)
      for (int i = 0; i < K; ++i)
        sum += taps[j * K + i] * tile[ly + j][lx + i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  int out_width = width - K + 1;
  int out_height = height - K + 1;
  if (left + lx < out_width && top + ly < out_height)
    output[(channel * out_height + top + ly) * out_width + left + lx] = sum;
}

// A work-item makes OUTPUTS channels of one pixel, so that each input value is read once for all of them.
kernel void conv_channels(global const float *restrict input, global const float *restrict weights,
                          global float *restrict output, int in_channels, int height, int width) {
  int x = get_global_id(0);
  int y = get_global_id(1);
  int first = get_global_id(2) * OUTPUTS;
  int out_width = width - K + 1;
  int out_height = height - K + 1;
  if (x >= out_width || y >= out_height)
    return;
  float sums[OUTPUTS];
  for (int o = 0; o < OUTPUTS; ++o)
    sums[o] = 0.0f;
  for (int c = 0; c < in_channels; ++c)
    for (int j = 0; j < K; ++j)
      for (int i = 0; i < K; ++i) {
        float value = input[(c * height + y + j) * width + x + i];
        for (int o = 0; o < OUTPUTS; ++o)
          sums[o] += value * weights[((first + o) * in_channels + c) * K * K + j * K + i];
      }
  for (int o = 0; o < OUTPUTS; ++o)
    output[((first + o) * out_height + y) * out_width + x] = sums[o];
}

// A 1 x 1 convolution: a matrix product over channels, four pixels per work-item.
kernel void conv_pointwise(global const float4 *restrict input, global const float *restrict weights,
                           global float4 *restrict output, int in_channels, int quads) {
  int q = get_global_id(0);
  int channel = get_global_id(1);
  if (q >= quads)
    return;
  float4 sum = (float4)(0.0f);
  for (int c = 0; c < in_channels; ++c)
    sum += weights[channel * in_channels + c] * input[c * quads + q];
  output[channel * quads + q] = sum;
}
