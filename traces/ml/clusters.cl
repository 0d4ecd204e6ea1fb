// k-means.

#ifndef DIM
#define DIM 8
#endif

// Nearest centroid of a point; points are stored dimension by dimension.
kernel void kmeans_assign(global const float *restrict points, global const float *restrict centroids,
                          global int *restrict labels, int num_centroids, int dim, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float nearest = INFINITY;
  int label = 0;
  for (int k = 0; k < num_centroids; ++k) {
    float square = 0.0f;
    for (int d = 0; d < dim; ++d) {
      float gap = points[d * count + i] - centroids[k * dim + d];
      square += gap * gap;
    }
    if (square < nearest) {
      nearest = square;
      label = k;
    }
  }
  labels[i] = label;
}

// The same with the point in registers and the centroids staged in local memory.
kernel void kmeans_assign_local(global const float *restrict points, global const float *restrict centroids,
                                global int *restrict labels, local float *restrict staged, int num_centroids,
                                int count) {
  for (int k = get_local_id(0); k < num_centroids * DIM; k += get_local_size(0))
    staged[k] = centroids[k];
  barrier(CLK_LOCAL_MEM_FENCE);
  int i = get_global_id(0);
  if (i >= count)
    return;
  float point[DIM];
  for (int d = 0; d < DIM; ++d)
    point[d] = points[d * count + i];
  float nearest = INFINITY;
  int label = 0;
  for (int k = 0; k < num_centroids; ++k) {
    float square = 0.0f;
    for (int d = 0; d < DIM; ++d) {
      float gap = point[d] - staged[k * DIM + d];
      square = fma(gap, gap, square);
    }
    if (square < nearest) {
      nearest = square;
      label = k;
    }
  }
  labels[i] = label;
}

// Sums and sizes of the clusters, in fixed point by atomics in global memory.
kernel void kmeans_accumulate(global const float *restrict points, global const int *restrict labels,
                              global int *restrict sums, global int *restrict sizes, int dim, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  int label = labels[i];
  atomic_inc(&sizes[label]);
  for (int d = 0; d < dim; ++d)
    atomic_add(&sums[label * dim + d], convert_int_rte(points[d * count + i] * 256.0f));
}
