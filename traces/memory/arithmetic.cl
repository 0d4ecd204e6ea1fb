// Arithmetic in registers; results are stored, so that nothing can be left out.

// One dependent chain of fused multiply-adds: latency.
kernel void fma_chain(global const float *restrict input, global float *restrict output, int rounds) {
  float x = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r) {
    x = fma(x, 0.999f, 0.001f);
    x = fma(x, 1.001f, -0.001f);
    x = fma(x, 0.998f, 0.002f);
    x = fma(x, 1.002f, -0.002f);
  }
  output[get_global_id(0)] = x;
}

// Eight independent chains: throughput.
kernel void fma_eight(global const float *restrict input, global float *restrict output, int rounds) {
  float x = input[get_global_id(0)];
  float8 y = x * (float8)(1, 2, 3, 4, 5, 6, 7, 8);
  for (int r = 0; r < rounds; ++r) {
    y = fma(y, (float8)(0.999f), (float8)(0.001f));
    y = fma(y, (float8)(1.001f), (float8)(-0.001f));
  }
  output[get_global_id(0)] = y.s0 + y.s1 + y.s2 + y.s3 + y.s4 + y.s5 + y.s6 + y.s7;
}

// Separate additions and multiplications on four chains.
kernel void add_multiply(global const float *restrict input, global float *restrict output, int rounds) {
  float a = input[get_global_id(0)];
  float b = a + 1.0f;
  float c = a + 2.0f;
  float d = a + 3.0f;
  for (int r = 0; r < rounds; ++r) {
    a *= 0.75f;
    b += 0.125f;
    c *= 0.875f;
    d += 0.0625f;
    a += b;
    c += d;
  }
  output[get_global_id(0)] = a + c;
}

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// Four chains of fused multiply-adds in double precision.
kernel void fma_fp64(global const float *restrict input, global double *restrict output, int rounds) {
  double4 x = (double)input[get_global_id(0)] * (double4)(1.0, 2.0, 3.0, 4.0);
  for (int r = 0; r < rounds; ++r) {
    x = fma(x, (double4)(0.999), (double4)(0.001));
    x = fma(x, (double4)(1.001), (double4)(-0.001));
  }
  output[get_global_id(0)] = x.x + x.y + x.z + x.w;
}

// Divisions and square roots in double precision.
kernel void divide_fp64(global const float *restrict input, global double *restrict output, int rounds) {
  double x = 1.0 + (double)input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r)
    x = sqrt(2.0 + x / (1.0 + x * x));
  output[get_global_id(0)] = x;
}
#endif

// Integer multiply-adds on four chains.
kernel void integer_multiply(global const uint *restrict input, global uint *restrict output, int rounds) {
  uint4 x = input[get_global_id(0)] + (uint4)(0u, 1u, 2u, 3u);
  for (int r = 0; r < rounds; ++r)
    x = x * 1664525u + 1013904223u;
  output[get_global_id(0)] = x.x ^ x.y ^ x.z ^ x.w;
}

// Shifts, rotations and logic on one chain.
kernel void integer_bits(global const uint *restrict input, global uint *restrict output, int rounds) {
  uint x = input[get_global_id(0)];
  uint y = ~x;
  for (int r = 0; r < rounds; ++r) {
    x ^= x << 13;
    y = rotate(y, 7u) + x;
    x ^= x >> 17;
    y ^= x & 0x55555555u;
  }
  output[get_global_id(0)] = x ^ y;
}

// Integer division and remainder by numbers that the compiler does not know.
kernel void integer_divide(global const uint *restrict input, global uint *restrict output, uint divisor, int rounds) {
  uint x = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r)
    x = x / divisor + (x % divisor) * 65537u + (uint)r;
  output[get_global_id(0)] = x;
}

// 64-bit integer multiplication and addition.
kernel void integer_long(global const ulong *restrict input, global ulong *restrict output, int rounds) {
  ulong x = input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r) {
    x = x * 6364136223846793005ul + 1442695040888963407ul;
    x ^= x >> 33;
  }
  output[get_global_id(0)] = x;
}

// Single-precision division, square root and reciprocal square root.
kernel void divide_fp32(global const float *restrict input, global float *restrict output, int rounds) {
  float x = 1.0f + input[get_global_id(0)];
  for (int r = 0; r < rounds; ++r) {
    x = 2.0f + x / (1.0f + x * x);
    x = sqrt(x) + rsqrt(1.0f + x);
  }
  output[get_global_id(0)] = x;
}
