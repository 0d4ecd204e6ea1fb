// Reads that caches can serve.

// All work-items read the same addresses one after the other.
kernel void broadcast_read(global const float *restrict input, global float *restrict output, int length) {
  float sum = 0.0f;
  for (int k = 0; k < length; ++k)
    sum += input[k];
  output[get_global_id(0)] = sum;
}

// A window of memory is read again and again by all work-groups, each starting elsewhere: window size probes caches.
kernel void reread_window(global const float *restrict input, global float *restrict output, int window, int steps) {
  int at = (get_group_id(0) * 977 + get_local_id(0)) % window;
  float sum = 0.0f;
  for (int s = 0; s < steps; ++s) {
    sum += input[at];
    at += get_local_size(0);
    at -= at >= window ? window : 0;
  }
  output[get_global_id(0)] = sum;
}

// Neighbouring windows overlap: each work-item reads `taps` floats from its own place on.
kernel void sliding_read(global const float *restrict input, global float *restrict output, int taps, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float sum = 0.0f;
  for (int k = 0; k < taps; ++k)
    sum += input[i + k];
  output[i] = sum;
}
