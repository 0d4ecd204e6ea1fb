// Nearest neighbours by brute force.

#ifndef TILE
#define TILE 128
#endif

// Squared distance of every query to every point.
kernel void distance_matrix(global const float *restrict queries, global const float *restrict points,
                            global float *restrict squares, int num_queries, int num_points, int dim) {
  int p = get_global_id(0);
  int q = get_global_id(1);
  if (p >= num_points || q >= num_queries)
    return;
  float sum = 0.0f;
  for (int d = 0; d < dim; ++d) {
    float gap = queries[q * dim + d] - points[d * num_points + p];
    sum += gap * gap;
  }
  squares[q * num_points + p] = sum;
}

// Nearest point of a query in three dimensions: tiles of points pass through local memory.
kernel void nearest_tiled(global const float4 *restrict queries, global const float4 *restrict points,
                          global int *restrict nearest, int num_queries, int num_points) {
  local float4 tile[TILE];
  int q = get_global_id(0);
  float4 query = queries[min(q, num_queries - 1)];
  float least = INFINITY;
  int place = 0;
  for (int first = 0; first < num_points; first += TILE) {
    int p = first + get_local_id(0);
    tile[get_local_id(0)] = points[min(p, num_points - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    int end = min(TILE, num_points - first);
    for (int k = 0; k < end; ++k) {
      float3 gap = query.xyz - tile[k].xyz;
      float square = dot(gap, gap);
      if (square < least) {
        least = square;
        place = first + k;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (q < num_queries)
    nearest[q] = place;
}

// The K least of a row of squares, kept sorted in private memory by insertion.
#ifndef KEEP
#define KEEP 4
#endif
kernel void least_of_rows(global const float *restrict squares, global float *restrict least, int columns, int rows) {
  int row = get_global_id(0);
  if (row >= rows)
    return;
  float kept[KEEP];
  for (int k = 0; k < KEEP; ++k)
    kept[k] = INFINITY;
  for (int c = 0; c < columns; ++c) {
    float value = squares[c * rows + row];
    if (value < kept[KEEP - 1]) {
      int k = KEEP - 1;
      for (; k > 0 && kept[k - 1] > value; --k)
        kept[k] = kept[k - 1];
      kept[k] = value;
    }
  }
  for (int k = 0; k < KEEP; ++k)
    least[k * rows + row] = kept[k];
}
