// Implied volatility: the volatility at which the Black-Scholes call has the market's price.
// The strike is 1 and the rate 0.

// Call price and its derivative by the volatility.
static float2 price_and_vega(float spot, float root, float volatility) {
  float d1 = log(spot) / (volatility * root) + 0.5f * volatility * root;
  float d2 = d1 - volatility * root;
  float price = 0.5f * (spot * erfc(-d1 * M_SQRT1_2_F) - erfc(-d2 * M_SQRT1_2_F));
  return (float2)(price, spot * root * 0.39894228f * exp(-0.5f * d1 * d1));
}

// Newton's method until the price fits; the number of rounds depends on the quote.
kernel void implied_newton(global const float *restrict spots, global const float *restrict years,
                           global const float *restrict prices, global float *restrict volatilities,
                           global int *restrict rounds_taken, float tolerance, int max_rounds, int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float root = sqrt(years[i]);
  float volatility = 0.5f;
  int rounds = 0;
  while (rounds < max_rounds) {
    float2 value = price_and_vega(spots[i], root, volatility);
    float miss = value.x - prices[i];
    if (fabs(miss) < tolerance)
      break;
    volatility = clamp(volatility - miss / fmax(value.y, 1.0e-4f), 0.01f, 5.0f);
    ++rounds;
  }
  volatilities[i] = volatility;
  rounds_taken[i] = rounds;
}

// Bisection: the same number of halvings for every quote.
kernel void implied_bisection(global const float *restrict spots, global const float *restrict years,
                              global const float *restrict prices, global float *restrict volatilities, int halvings,
                              int count) {
  int i = get_global_id(0);
  if (i >= count)
    return;
  float spot = spots[i];
  float root = sqrt(years[i]);
  float price = prices[i];
  float low = 0.01f;
  float high = 5.0f;
  for (int h = 0; h < halvings; ++h) {
    float middle = 0.5f * (low + high);
    if (price_and_vega(spot, root, middle).x > price)
      high = middle;
    else
      low = middle;
  }
  volatilities[i] = 0.5f * (low + high);
}
