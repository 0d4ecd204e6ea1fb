// Option prices on a binomial tree (Cox, Ross, Rubinstein). An option is (spot, strike, years, volatility).

#ifndef STEPS
#define STEPS 128
#endif
#ifndef GROUP
#define GROUP 64
#endif
#ifndef AMERICAN
#define AMERICAN 0
#endif

// One work-group per call: a level of the tree lies in local memory, with a barrier between levels.
kernel void binomial_local(global const float4 *restrict options, global float *restrict prices, float rate) {
  local float level[2][STEPS + 1];
  int lane = get_local_id(0);
  float4 option = options[get_group_id(0)];
  float dt = option.z / (float)STEPS;
  float log_up = option.w * sqrt(dt);
  float up = exp(log_up);
  float down = 1.0f / up;
  float grow = exp(rate * dt);
  float share_up = (grow - down) / (up - down);
  float weight_up = share_up / grow;
  float weight_down = (1.0f - share_up) / grow;
  for (int j = lane; j <= STEPS; j += GROUP)
    level[0][j] = fmax(option.x * exp(log_up * (float)(2 * j - STEPS)) - option.y, 0.0f);
  barrier(CLK_LOCAL_MEM_FENCE);
  int from = 0;
  for (int step = STEPS - 1; step >= 0; --step) {
    for (int j = lane; j <= step; j += GROUP)
      level[1 - from][j] = weight_up * level[from][j + 1] + weight_down * level[from][j];
    barrier(CLK_LOCAL_MEM_FENCE);
    from = 1 - from;
  }
  if (lane == 0)
    prices[get_group_id(0)] = level[from][0];
}

// One work-item per put: the level is a private array; AMERICAN allows early exercise.
kernel void binomial_private(global const float4 *restrict options, global float *restrict prices, float rate,
                             int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float level[STEPS + 1];
  float4 option = options[i];
  float dt = option.z / (float)STEPS;
  float up = exp(option.w * sqrt(dt));
  float down = 1.0f / up;
  float grow = exp(rate * dt);
  float share_up = (grow - down) / (up - down);
  float weight_up = share_up / grow;
  float weight_down = (1.0f - share_up) / grow;
  float lowest = option.x * exp(-option.w * sqrt(dt) * (float)STEPS);
  float spot = lowest;
  for (int j = 0; j <= STEPS; ++j) {
    level[j] = fmax(option.y - spot, 0.0f);
    spot *= up * up;
  }
  for (int step = STEPS - 1; step >= 0; --step) {
    lowest *= up;
    spot = lowest;
    for (int j = 0; j <= step; ++j) {
      float value = weight_up * level[j + 1] + weight_down * level[j];
      if (AMERICAN)
        value = fmax(value, option.y - spot);
      level[j] = value;
      spot *= up * up;
    }
  }
  prices[i] = level[0];
}
