// Cross-entropy loss of logits against labels.

#ifndef GROUP
#define GROUP 64
#endif

// One work-group per sample; the loss is log(sum(exp)) minus the label's logit.
kernel void cross_entropy(global const float *restrict logits, global const int *restrict labels,
                          global float *restrict losses, int classes) {
  local float parts[GROUP];
  int lane = get_local_id(0);
  int sample = get_group_id(0);
  global const float *x = logits + sample * classes;
  float sum = 0.0f;
  for (int c = lane; c < classes; c += GROUP)
    sum += exp(x[c]);
  parts[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      parts[lane] += parts[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0)
    losses[sample] = log(parts[0]) - x[labels[sample]];
}

// Gradient of the loss with respect to every logit, given the log-sums.
kernel void cross_entropy_gradient(global const float *restrict logits, global const int *restrict labels,
                                   global const float *restrict log_sums, global float *restrict gradient,
                                   int classes) {
  int c = get_global_id(0);
  int sample = get_global_id(1);
  if (c >= classes)
    return;
  float p = exp(logits[sample * classes + c] - log_sums[sample]);
  gradient[sample * classes + c] = c == labels[sample] ? p - 1.0f : p;
}
