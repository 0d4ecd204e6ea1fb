// Double precision.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// One radix-2 stage of a Fourier transform in global memory.
__kernel void fft2_stage_fp64(__global const double2 *in, __global double2 *out, uint half_n, uint done)
{
    uint i = get_global_id(0);
    uint k = i & (done - 1);
    double angle = -M_PI * k / done;
    double cosine = cos(angle);
    double sine = sin(angle);
    double2 a = in[i];
    double2 b = in[i + half_n];
    double2 c = (double2)(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    uint j = 2 * i - k;
    out[j] = a + c;
    out[j + done] = a - c;
}
