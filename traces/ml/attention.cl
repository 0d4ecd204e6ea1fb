// Attention; queries, keys and values are (token, dimension) of one head.

#ifndef GROUP
#define GROUP 64
#endif
#ifndef DIM
#define DIM 64
#endif

// Scaled scores of every query with every key, one per work-item, all from global memory.
kernel void attention_scores(global const float *restrict queries, global const float *restrict keys,
                             global float *restrict scores, int tokens, int dim, float scale) {
  int key = get_global_id(0);
  int query = get_global_id(1);
  if (key >= tokens || query >= tokens)
    return;
  float sum = 0.0f;
  for (int d = 0; d < dim; ++d)
    sum += queries[query * dim + d] * keys[key * dim + d];
  scores[query * tokens + key] = sum * scale;
}

// Whole attention of one query per work-group: scores of all keys in local memory, softmax, then the values' mean.
kernel void attention_row(global const float *restrict queries, global const float *restrict keys,
                          global const float *restrict values, global float *restrict output,
                          local float *restrict scores, int tokens, float scale) {
  local float parts[GROUP];
  int lane = get_local_id(0);
  global const float *query = queries + get_group_id(0) * DIM;
  float sum = 0.0f;
  for (int key = lane; key < tokens; key += GROUP) {
    float score = 0.0f;
    for (int d = 0; d < DIM; ++d)
      score += query[d] * keys[key * DIM + d];
    // Scores stay small enough that the largest need not be taken off first.
    scores[key] = exp(score * scale);
    sum += scores[key];
  }
  parts[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int d = lane; d < DIM; d += GROUP) {
    float mean = 0.0f;
    for (int key = 0; key < tokens; ++key)
      mean += scores[key] * values[key * DIM + d];
    output[get_group_id(0) * DIM + d] = mean / parts[0];
  }
}

// Causal attention of one query per work-item, its output in registers: later queries see more keys.
kernel void attention_causal(global const float *restrict queries, global const float *restrict keys,
                             global const float *restrict values, global float *restrict output, int tokens,
                             float scale) {
  int q = get_global_id(0);
  if (q >= tokens)
    return;
  float query[DIM];
  float mean[DIM];
  for (int d = 0; d < DIM; ++d) {
    query[d] = queries[q * DIM + d] * scale;
    mean[d] = 0.0f;
  }
  float largest = -1.0e30f;
  float sum = 0.0f;
  for (int key = 0; key <= q; ++key) {
    float score = 0.0f;
    for (int d = 0; d < DIM; ++d)
      score += query[d] * keys[key * DIM + d];
    float before = largest;
    largest = fmax(largest, score);
    float shrink = exp(before - largest);
    float weight = exp(score - largest);
    sum = sum * shrink + weight;
    for (int d = 0; d < DIM; ++d)
      mean[d] = mean[d] * shrink + weight * values[key * DIM + d];
  }
  for (int d = 0; d < DIM; ++d)
    output[q * DIM + d] = mean[d] / sum;
}

// Rotary position embedding: pairs of dimensions turned by an angle that grows with the position.
kernel void rotary_embedding(global float2 *restrict tensor, int pairs, float base_log, int tokens) {
  int pair = get_global_id(0);
  int token = get_global_id(1);
  if (pair >= pairs || token >= tokens)
    return;
  float angle = (float)token * exp(-base_log * (float)pair / (float)pairs);
  float s = sin(angle);
  float c = cos(angle);
  float2 x = tensor[token * pairs + pair];
  tensor[token * pairs + pair] = (float2)(x.x * c - x.y * s, x.x * s + x.y * c);
}
