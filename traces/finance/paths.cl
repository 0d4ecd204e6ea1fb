// Monte Carlo option prices: paths drawn inside the kernel.

#ifndef GROUP
#define GROUP 128
#endif

// Next state of a linear congruential generator.
static uint next_state(uint state) { return state * 1664525u + 1013904223u; }

// Uniform number in (0, 1) from the upper bits of a state.
static float uniform_number(uint state) { return ((float)(state >> 8) + 0.5f) * (1.0f / 16777216.0f); }

// Two normal numbers by the Box-Muller transform; moves the state on.
static float2 two_normals(uint *state) {
  *state = next_state(*state);
  float radius = sqrt(-2.0f * log(uniform_number(*state)));
  *state = next_state(*state);
  float angle = 2.0f * M_PI_F * uniform_number(*state);
  return radius * (float2)(cos(angle), sin(angle));
}

// European call: a work-item draws `pairs` pairs of end prices and leaves its mean payoff.
kernel void european_paths(global const uint *restrict seeds, global float *restrict means, float spot, float strike,
                           float drift, float deviation, int pairs, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint state = seeds[i];
  float sum = 0.0f;
  for (int p = 0; p < pairs; ++p) {
    float2 z = two_normals(&state);
    sum += fmax(spot * exp(drift + deviation * z.x) - strike, 0.0f);
    sum += fmax(spot * exp(drift + deviation * z.y) - strike, 0.0f);
  }
  means[i] = sum / (float)(2 * pairs);
}

// European call: a work-group prices one option (spot, strike, drift, deviation) and adds up in local memory.
kernel void european_group(global const float4 *restrict options, global float *restrict prices, int pairs) {
  local float sums[GROUP];
  int lane = get_local_id(0);
  float4 option = options[get_group_id(0)];
  uint state = (uint)lane * 2654435761u + 12345u;
  float sum = 0.0f;
  for (int p = 0; p < pairs; ++p) {
    float2 z = two_normals(&state);
    sum += fmax(option.x * exp(option.z + option.w * z.x) - option.y, 0.0f);
    sum += fmax(option.x * exp(option.z + option.w * z.y) - option.y, 0.0f);
  }
  sums[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = GROUP / 2; width > 0; width /= 2) {
    if (lane < width)
      sums[lane] += sums[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0)
    prices[get_group_id(0)] = sums[0] / (float)(2 * pairs * GROUP);
}

// Asian call: the payoff depends on the mean of a path of `steps` prices, one path per work-item.
kernel void asian_paths(global const uint *restrict seeds, global float *restrict payoffs, float spot, float strike,
                        float drift, float deviation, int steps, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint state = seeds[i];
  float price = spot;
  float sum = 0.0f;
  for (int s = 0; s < steps; s += 2) {
    float2 z = two_normals(&state);
    price *= exp(drift + deviation * z.x);
    sum += price;
    price *= exp(drift + deviation * z.y);
    sum += price;
  }
  payoffs[i] = fmax(sum / (float)steps - strike, 0.0f);
}

// Heston model: price and variance walk together; the variance is kept from falling below zero.
kernel void heston_paths(global const uint *restrict seeds, global float *restrict ends, float spot, float variance,
                         float mean_variance, float correlation, float dt, int steps, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  uint state = seeds[i];
  float rest = sqrt(1.0f - correlation * correlation);
  float root_dt = sqrt(dt);
  float log_price = log(spot);
  for (int s = 0; s < steps; ++s) {
    float2 z = two_normals(&state);
    float deviation = sqrt(variance) * root_dt;
    log_price += deviation * z.x - 0.5f * variance * dt;
    variance += 2.0f * (mean_variance - variance) * dt + 0.3f * deviation * (correlation * z.x + rest * z.y);
    variance = fmax(variance, 0.0f);
  }
  ends[i] = exp(log_price);
}
