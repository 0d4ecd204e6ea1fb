// Recurrent layers.

#ifndef HIDDEN
#define HIDDEN 64
#endif

static float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

// Point-wise part of an LSTM step; the gates lie one after the other: input, forget, candidate, output.
kernel void lstm_pointwise(global const float *restrict gates, global float *restrict cells,
                           global float *restrict hidden, int units, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  int sample = i / units;
  global const float *g = gates + sample * 4 * units + i % units;
  float cell = sigmoid(g[units]) * cells[i] + sigmoid(g[0]) * tanh(g[2 * units]);
  cells[i] = cell;
  hidden[i] = sigmoid(g[3 * units]) * tanh(cell);
}

// A plain recurrent layer over all time steps: one work-group per sequence, the state in local memory.
kernel void rnn_sequence(global const float *restrict inputs, global const float *restrict weights,
                         global float *restrict outputs, int steps) {
  local float state[2][HIDDEN];
  int unit = get_local_id(0);
  int sequence = get_group_id(0);
  int from = 0;
  state[0][unit] = 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int t = 0; t < steps; ++t) {
    int at = (sequence * steps + t) * HIDDEN + unit;
    float sum = inputs[at];
    for (int k = 0; k < HIDDEN; ++k)
      sum += weights[k * HIDDEN + unit] * state[from][k];
    float next = tanh(sum);
    state[1 - from][unit] = next;
    outputs[at] = next;
    from = 1 - from;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
