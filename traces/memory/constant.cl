// Constant memory and look-up tables.

#ifndef SPREAD
#define SPREAD 1
#endif

// Look-ups in constant memory; a sub-group touches SPREAD different words at a time.
kernel void constant_lookup(constant float *restrict table, global float *restrict output, int steps) {
  int start = (int)get_global_id(0) % SPREAD;
  float sum = 0.0f;
  for (int s = 0; s < steps; ++s)
    sum += table[(start + s * SPREAD) & 4095];
  output[get_global_id(0)] = sum;
}

constant uchar bits_of_nibble[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

// Bits counted nibble by nibble in a small constant table.
kernel void count_bits_table(global const uint *restrict input, global uint *restrict output, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint bits = 0;
  for (uint word = input[i]; word != 0u; word >>= 4)
    bits += bits_of_nibble[word & 15u];
  output[i] = bits;
}
