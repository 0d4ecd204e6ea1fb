// Histogram equalisation in steps: count, cumulate, look up.

#define BINS 256

// One pixel per work-item, counted by an atomic in global memory.
kernel void histogram_global(global const uchar *restrict input, global uint *restrict bins, int count) {
  int i = get_global_id(0);
  if (i < count)
    atomic_inc(&bins[input[i]]);
}

// A fixed number of work-groups strides over the image, four pixels a read, and counts in local memory.
kernel void histogram_local(global const uint *restrict packed, global uint *restrict bins, int num_words) {
  local uint counts[BINS];
  for (int b = get_local_id(0); b < BINS; b += get_local_size(0))
    counts[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < num_words; i += get_global_size(0)) {
    uint word = packed[i];
    atomic_inc(&counts[word & 255u]);
    atomic_inc(&counts[(word >> 8) & 255u]);
    atomic_inc(&counts[(word >> 16) & 255u]);
    atomic_inc(&counts[word >> 24]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = get_local_id(0); b < BINS; b += get_local_size(0))
    if (counts[b])
      atomic_add(&bins[b], counts[b]);
}

// One work-group of 256 per image turns its histogram into a look-up table by a scan in local memory.
kernel void histogram_cdf(global const uint *restrict bins, global uchar *restrict tables) {
  local uint sums[2][BINS];
  int b = get_local_id(0);
  int image = get_group_id(0);
  int from = 0;
  sums[0][b] = bins[image * BINS + b];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < BINS; step *= 2) {
    uint sum = sums[from][b];
    if (b >= step)
      sum += sums[from][b - step];
    sums[1 - from][b] = sum;
    from = 1 - from;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  uint total = max(sums[from][BINS - 1], 1u);
  tables[image * BINS + b] = (uchar)((ulong)sums[from][b] * 255ul / total);
}

// Every pixel replaced through the table, four pixels per work-item.
kernel void equalise_apply(global const uchar4 *restrict input, global uchar4 *restrict output,
                           global const uchar *restrict table, int num_quads) {
  int i = get_global_id(0);
  if (i >= num_quads)
    return;
  uchar4 p = input[i];
  output[i] = (uchar4)(table[p.x], table[p.y], table[p.z], table[p.w]);
}
