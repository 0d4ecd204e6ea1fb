// Local memory: bank conflicts by stride.

#ifndef STRIDE
#define STRIDE 1
#endif
#define WORDS 2048

// Reads of local memory with STRIDE words between work-items; the place moves by one word a step.
kernel void local_read_strided(global const float *restrict input, global float *restrict output, int steps) {
  local float words[WORDS];
  for (int k = get_local_id(0); k < WORDS; k += get_local_size(0))
    words[k] = input[k];
  barrier(CLK_LOCAL_MEM_FENCE);
  int at = get_local_id(0) * STRIDE;
  float sum = 0.0f;
  for (int s = 0; s < steps; ++s)
    sum += words[(at + s) & (WORDS - 1)];
  output[get_global_id(0)] = sum;
}

// Read, change, write back: each work-item owns one word, STRIDE from its neighbour's; STRIDE is a power of two.
kernel void local_update_strided(global const float *restrict input, global float *restrict output, int steps) {
  local float words[WORDS];
  int at = get_local_id(0) * STRIDE % WORDS + get_local_id(0) * STRIDE / WORDS;
  // Volatile, or the compiler keeps the word in a register.
  volatile local float *own = words + at;
  *own = input[get_global_id(0)];
  for (int s = 0; s < steps; ++s)
    *own = *own * 0.5f + (float)s;
  output[get_global_id(0)] = *own;
}

// Transposes a square tile through local memory; PAD moves the columns to other banks.
#ifndef PAD
#define PAD 0
#endif
#define SIDE 16
kernel void local_transpose(global const float *restrict input, global float *restrict output, int rounds) {
  local float tile[SIDE][SIDE + PAD];
  int x = get_local_id(0);
  int y = get_local_id(1);
  int at = (get_group_id(0) * SIDE + y) * SIDE + x;
  float value = input[at];
  for (int r = 0; r < rounds; ++r) {
    tile[y][x] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    value = tile[x][y] + 1.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  output[at] = value;
}
