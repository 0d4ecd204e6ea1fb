// Bonds and the yield curve.

// Present value of bonds with different numbers of yearly coupons, discounted on an interpolated curve.
kernel void bond_values(global const int *restrict years, global const float *restrict coupons,
                        global const float *restrict curve, global float *restrict values, int curve_points,
                        float years_per_point, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float value = 0.0f;
  for (int year = 1; year <= years[i]; ++year) {
    float at = (float)year / years_per_point;
    int point = min((int)at, curve_points - 2);
    float rate = mix(curve[point], curve[point + 1], at - (float)point);
    value += (year == years[i] ? coupons[i] + 1.0f : coupons[i]) * exp(-rate * (float)year);
  }
  values[i] = value;
}

// Yield to maturity by Newton's method on the polynomial of cash flows; rounds differ between bonds.
kernel void bond_yields(global const int *restrict years, global const float *restrict coupons,
                        global const float *restrict prices, global float *restrict yields, int max_rounds,
                        int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float discount = 0.95f;
  for (int round = 0; round < max_rounds; ++round) {
    float value = 0.0f;
    float slope = 0.0f;
    for (int year = years[i]; year >= 1; --year) {
      float flow = year == years[i] ? coupons[i] + 1.0f : coupons[i];
      slope = slope * discount + value;
      value = value * discount + flow;
    }
    slope = slope * discount + value;
    value *= discount;
    float change = (value - prices[i]) / slope;
    discount -= change;
    if (fabs(change) < 1.0e-6f)
      break;
  }
  yields[i] = 1.0f / discount - 1.0f;
}
