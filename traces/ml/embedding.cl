// Embedding tables.

// Rows gathered by token; the row's elements lie side by side over work-items.
kernel void embedding_gather(global const float *restrict table, global const int *restrict tokens,
                             global float *restrict output, int dim, int count) {
  int d = get_global_id(0);
  int i = get_global_id(1);
  if (d < dim && i < count)
    output[i * dim + d] = table[tokens[i] * dim + d];
}

// Rows of a bag summed; bags have different lengths, and all work-items of a bag's row the same.
kernel void embedding_bag(global const float *restrict table, global const int *restrict tokens,
                          global const int *restrict offsets, global float *restrict output, int dim, int bags) {
  int d = get_global_id(0);
  int bag = get_global_id(1);
  if (d >= dim || bag >= bags)
    return;
  float sum = 0.0f;
  for (int k = offsets[bag]; k < offsets[bag + 1]; ++k)
    sum += table[tokens[k] * dim + d];
  output[bag * dim + d] = sum;
}

// Gradients scattered back into the table, in fixed point by integer atomics.
kernel void embedding_scatter(global int *restrict table, global const int *restrict tokens,
                              global const float *restrict gradients, int dim, int count) {
  int d = get_global_id(0);
  int i = get_global_id(1);
  if (d < dim && i < count)
    atomic_add(&table[tokens[i] * dim + d], convert_int_rte(gradients[i * dim + d] * 65536.0f));
}
