// Gravity between all pairs of bodies; positions are x, y, z and mass.
#ifndef TILE
#define TILE 128
#endif
#ifndef BODIES
#define BODIES 2
#endif
#ifndef UNROLL
#define UNROLL 4
#endif

// Acceleration of a body at `here` by the one at `there`; a mass of zero adds nothing.
float4 pull(float4 here, float4 there, float softening)
{
    float dx = there.x - here.x;
    float dy = there.y - here.y;
    float dz = there.z - here.z;
    float inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
    float strength = there.w * inverse * inverse * inverse;
    return (float4)(dx * strength, dy * strength, dz * strength, 0.0f);
}

// Every work-item reads all bodies from global memory.
__kernel void gravity_naive(
    __global const float4 *bodies, __global float4 *accelerations, uint n, float softening)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float4 here = bodies[i];
    float4 sum = (float4)(0.0f);
    for (uint j = 0; j < n; ++j)
        sum += pull(here, bodies[j], softening);
    accelerations[i] = sum;
}

// Bodies pass through local memory tile by tile; TILE work-items a group.
__kernel void gravity_tiled(
    __global const float4 *bodies, __global float4 *accelerations, uint n, float softening)
{
    __local float4 tile[TILE];
    uint lane = get_local_id(0);
    uint i = get_global_id(0);
    float4 here = i < n ? bodies[i] : (float4)(0.0f);
    float4 sum = (float4)(0.0f);
    for (uint base = 0; base < n; base += TILE) {
        tile[lane] = base + lane < n ? bodies[base + lane] : (float4)(0.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < TILE; ++j)
            sum += pull(here, tile[j], softening);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n)
        accelerations[i] = sum;
}

// Each work-item keeps BODIES bodies in registers and uses every loaded body for all of them.
__kernel void gravity_coarse(
    __global const float4 *bodies, __global float4 *accelerations, uint n, float softening)
{
    __local float4 tile[64];
    uint lane = get_local_id(0);
    uint first = get_group_id(0) * 64 * BODIES + lane;
    float4 here[BODIES];
    float4 sum[BODIES];
    for (uint b = 0; b < BODIES; ++b) {
        here[b] = first + 64 * b < n ? bodies[first + 64 * b] : (float4)(0.0f);
        sum[b] = (float4)(0.0f);
    }
    for (uint base = 0; base < n; base += 64) {
        tile[lane] = base + lane < n ? bodies[base + lane] : (float4)(0.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < 64; ++j) {
            float4 there = tile[j];
            for (uint b = 0; b < BODIES; ++b)
                sum[b] += pull(here[b], there, softening);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint b = 0; b < BODIES; ++b)
        if (first + 64 * b < n)
            accelerations[first + 64 * b] = sum[b];
}

// Positions and masses in separate arrays, the loop unrolled; n is a multiple of UNROLL.
__kernel void gravity_arrays(
    __global const float *x, __global const float *y, __global const float *z, __global const float *mass,
    __global float *ax, __global float *ay, __global float *az, uint n, float softening)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float here_x = x[i];
    float here_y = y[i];
    float here_z = z[i];
    float sum_x = 0.0f;
    float sum_y = 0.0f;
    float sum_z = 0.0f;
    for (uint j = 0; j < n; j += UNROLL) {
        for (uint u = 0; u < UNROLL; ++u) {
            float dx = x[j + u] - here_x;
            float dy = y[j + u] - here_y;
            float dz = z[j + u] - here_z;
            float inverse = native_rsqrt(fma(dx, dx, fma(dy, dy, fma(dz, dz, softening))));
            float strength = mass[j + u] * inverse * inverse * inverse;
            sum_x = fma(dx, strength, sum_x);
            sum_y = fma(dy, strength, sum_y);
            sum_z = fma(dz, strength, sum_z);
        }
    }
    ax[i] = sum_x;
    ay[i] = sum_y;
    az[i] = sum_z;
}

// Few persistent groups stride over the bodies; potential only.
__kernel void gravity_stride(
    __global const float4 *bodies, __global float *potentials, uint n, float softening)
{
    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
        float4 here = bodies[i];
        float potential = 0.0f;
        for (uint j = 0; j < n; ++j) {
            float4 apart = bodies[j] - here;
            float4 there = bodies[j];
            potential -= there.w / sqrt(apart.x * apart.x + apart.y * apart.y + apart.z * apart.z + softening);
        }
        potentials[i] = potential;
    }
}
