// Black-Scholes prices of European options.

// Standard normal distribution function by a polynomial (Abramowitz and Stegun, 26.2.17).
static float normal_cdf(float x) {
  float t = 1.0f / (1.0f + 0.2316419f * fabs(x));
  float series =
      t * (0.319381530f + t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
  float tail = 0.39894228f * exp(-0.5f * x * x) * series;
  return x > 0.0f ? 1.0f - tail : tail;
}

// Call and put of one option per work-item.
kernel void black_scholes(global const float *restrict spot, global const float *restrict strike,
                          global const float *restrict years, global float *restrict call, global float *restrict put,
                          float rate, float volatility, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float deviation = volatility * sqrt(years[i]);
  float d1 = (log(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / deviation;
  float discounted = strike[i] * exp(-rate * years[i]);
  float n1 = normal_cdf(d1);
  float n2 = normal_cdf(d1 - deviation);
  call[i] = spot[i] * n1 - discounted * n2;
  put[i] = discounted * (1.0f - n2) - spot[i] * (1.0f - n1);
}

// The distribution function on four values.
static float4 normal_cdf4(float4 x) {
  float4 t = 1.0f / (1.0f + 0.2316419f * fabs(x));
  float4 series =
      t * (0.319381530f + t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
  float4 tail = 0.39894228f * native_exp(-0.5f * x * x) * series;
  return select(tail, 1.0f - tail, x > 0.0f);
}

// Four options per work-item, with the device's fast functions.
kernel void black_scholes_vector(global const float4 *restrict spot, global const float4 *restrict strike,
                                 global const float4 *restrict years, global float4 *restrict call,
                                 global float4 *restrict put, float rate, float volatility, int num_quads) {
  int i = get_global_id(0);
  if (i >= num_quads)
    return;
  float4 s = spot[i];
  float4 k = strike[i];
  float4 t = years[i];
  float4 deviation = volatility * native_sqrt(t);
  float4 d1 = (native_log(s / k) + (rate + 0.5f * volatility * volatility) * t) / deviation;
  float4 discounted = k * native_exp(-rate * t);
  float4 n1 = normal_cdf4(d1);
  float4 n2 = normal_cdf4(d1 - deviation);
  call[i] = s * n1 - discounted * n2;
  put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}

// Price and sensitivities by erfc, from records of (spot, strike, years, volatility).
kernel void black_scholes_greeks(global const float4 *restrict options, global float4 *restrict greeks, float rate,
                                 int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float4 option = options[i];
  float root = sqrt(option.z);
  float deviation = option.w * root;
  float d1 = (log(option.x / option.y) + (rate + 0.5f * option.w * option.w) * option.z) / deviation;
  float d2 = d1 - deviation;
  float delta = 0.5f * erfc(-d1 * M_SQRT1_2_F);
  float n2 = 0.5f * erfc(-d2 * M_SQRT1_2_F);
  float density = 0.39894228f * exp(-0.5f * d1 * d1);
  float price = option.x * delta - option.y * exp(-rate * option.z) * n2;
  greeks[i] = (float4)(price, delta, density / (option.x * deviation), option.x * density * root);
}

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// Calls in double precision by a grid-stride loop of a fixed number of work-groups.
kernel void black_scholes_fp64(global const double *restrict spot, global const double *restrict strike,
                               global double *restrict call, double rate, double volatility, double years, int count) {
  double deviation = volatility * sqrt(years);
  double discount = exp(-rate * years);
  for (int i = get_global_id(0); i < count; i += get_global_size(0)) {
    double d1 = (log(spot[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years) / deviation;
    double d2 = d1 - deviation;
    call[i] = 0.5 * (spot[i] * erfc(-d1 * M_SQRT1_2) - strike[i] * discount * erfc(-d2 * M_SQRT1_2));
  }
}
#endif
