// Special functions in a dependent chain.

#ifndef NATIVE
#define NATIVE 0
#endif

#if NATIVE
#define EXP native_exp
#define LOG native_log
#define SIN native_sin
#define COS native_cos
#else
#define EXP exp
#define LOG log
#define SIN sin
#define COS cos
#endif

// Exponential and logarithm.
kernel void exp_log(global const float *restrict input, global float *restrict output, int rounds) {
  float x = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r)
    x = LOG(1.5f + EXP(-x));
  output[get_global_id(0)] = x;
}

// Sine and cosine of moderate angles.
kernel void sin_cos(global const float *restrict input, global float *restrict output, int rounds) {
  float x = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r)
    x = SIN(x + 1.0f) + COS(0.5f * x);
  output[get_global_id(0)] = x;
}

// Power and hyperbolic tangent.
kernel void pow_tanh(global const float *restrict input, global float *restrict output, int rounds) {
  float x = 1.0f + input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r)
    x = 1.0f + tanh(pow(x, 0.7f) * 0.5f);
  output[get_global_id(0)] = x;
}
