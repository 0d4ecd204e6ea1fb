// Indicators on price series; a row is an instrument, a column a day.

#ifndef GROUP
#define GROUP 128
#endif

// Simple moving average: every work-item adds up its own window.
kernel void moving_average(global const float *restrict prices, global float *restrict means, int days, int window) {
  int day = get_global_id(0);
  int row = get_global_id(1) * days;
  if (day >= days)
    return;
  int first = max(day - window + 1, 0);
  float sum = 0.0f;
  for (int d = first; d <= day; ++d)
    sum += prices[row + d];
  means[row + day] = sum / (float)(day - first + 1);
}

// Exponential average: a serial recurrence, one instrument per work-item, days side by side.
kernel void exponential_average(global const float *restrict prices, global float *restrict averages, float weight,
                                int days, int num_series) {
  int series = get_global_id(0);
  if (series >= num_series)
    return;
  float average = prices[series * days];
  for (int day = 0; day < days; ++day) {
    average += weight * (prices[series * days + day] - average);
    averages[series * days + day] = average;
  }
}

// Largest fall from an earlier peak: one instrument per work-item, instruments side by side.
kernel void max_drawdown(global const float *restrict prices, global float *restrict drawdowns, int days,
                         int num_series) {
  int series = get_global_id(0);
  if (series >= num_series)
    return;
  float peak = prices[series];
  float worst = 0.0f;
  for (int day = 1; day < days; ++day) {
    float price = prices[day * num_series + series];
    peak = fmax(peak, price);
    worst = fmax(worst, 1.0f - price / peak);
  }
  drawdowns[series] = worst;
}

// Covariance of two instruments: one work-group per pair, three sums reduced in local memory.
kernel void covariance_pairs(global const float *restrict returns, global float *restrict covariance, int days,
                             int num_series) {
  local float4 sums[GROUP];
  int lane = get_local_id(0);
  int a = get_group_id(0);
  int b = get_group_id(1);
  float4 sum = (float4)(0.0f);
  for (int day = lane; day < days; day += GROUP) {
    float x = returns[a * days + day];
    float y = returns[b * days + day];
    sum += (float4)(x, y, x * y, 0.0f);
  }
  sums[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      sums[lane] += sums[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0) {
    float n = (float)days;
    covariance[a * num_series + b] = (sums[0].z - sums[0].x * sums[0].y / n) / (n - 1.0f);
  }
}
