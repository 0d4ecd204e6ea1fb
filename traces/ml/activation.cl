// Activations, element by element.

// ReLU, one float per work-item, in place.
kernel void relu(global float *restrict values, int count) {
  int i = get_global_id(0);
  if (i < count)
    values[i] = fmax(values[i], 0.0f);
}

// Leaky ReLU on four floats per work-item.
kernel void leaky_relu_vector(global const float4 *restrict input, global float4 *restrict output, float slope,
                              int num_quads) {
  int i = get_global_id(0);
  if (i >= num_quads)
    return;
  float4 x = input[i];
  output[i] = select(slope * x, x, x > 0.0f);
}

// GELU by the error function.
kernel void gelu_erf(global const float *restrict input, global float *restrict output, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float x = input[i];
  output[i] = 0.5f * x * (1.0f + erf(x * M_SQRT1_2_F));
}

// GELU by tanh, four floats per work-item.
kernel void gelu_tanh(global const float4 *restrict input, global float4 *restrict output, int num_quads) {
  int i = get_global_id(0);
  if (i >= num_quads)
    return;
  float4 x = input[i];
  output[i] = 0.5f * x * (1.0f + tanh(0.7978846f * (x + 0.044715f * x * x * x)));
}

// Sigmoid-weighted unit in a grid-stride loop of a fixed number of work-groups.
kernel void silu_persistent(global const float *restrict input, global float *restrict output, int count) {
  for (int i = get_global_id(0); i < count; i += get_global_size(0)) {
    float x = input[i];
    output[i] = x / (1.0f + exp(-x));
  }
}
