// Distances of pairs.
#ifndef BINS
#define BINS 128
#endif

// Radial distribution: distances of all pairs into a histogram in local memory, tile by tile; groups of 128.
__kernel void radial_histogram(__global const float4 *atoms, __global uint *histogram, uint n, float box)
{
    __local float4 tile[128];
    __local uint bins[BINS];
    uint lane = get_local_id(0);
    uint i = get_global_id(0);
    for (uint b = lane; b < BINS; b += 128)
        bins[b] = 0;
    float4 here = i < n ? atoms[i] : (float4)(0.0f);
    for (uint base = 0; base < n; base += 128) {
        tile[lane] = base + lane < n ? atoms[base + lane] : (float4)(0.0f);
        barrier(CLK_LOCAL_MEM_FENCE);
        uint count = i < n ? min(128u, n - base) : 0;
        for (uint j = 0; j < count; ++j) {
            float4 d = tile[j] - here;
            d -= box * rint(d / box);
            float r = sqrt(d.x * d.x + d.y * d.y + d.z * d.z);
            uint bin = (uint)(r * (BINS / box));
            if (bin < BINS)
                atomic_inc(&bins[bin]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint b = lane; b < BINS; b += 128)
        atomic_add(&histogram[b], bins[b]);
}

// Contacts: each atom counts the atoms nearer than the cutoff among its candidates.
__kernel void contact_count(
    __global const float *x, __global const float *y, __global const float *z, __global const int *candidates,
    __global uchar *contacts, int n, int num_candidates, float cutoff2)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    int count = 0;
    for (int k = 0; k < num_candidates; ++k) {
        int j = candidates[k * n + i];
        float dx = x[j] - x[i];
        float dy = y[j] - y[i];
        float dz = z[j] - z[i];
        count += dx * dx + dy * dy + dz * dz < cutoff2;
    }
    contacts[i] = (uchar)min(count, 255);
}

// Density of smoothed particles: a cubic spline over listed neighbours.
__kernel void particle_density(
    __global const float4 *particles, __global const int *offsets, __global const int *neighbours,
    __global float *densities, int n, float reach)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float4 here = particles[i];
    float density = 0.0f;
    int end = offsets[i + 1];
    for (int e = offsets[i]; e < end; ++e) {
        float4 there = particles[neighbours[e]];
        float4 d = there - here;
        float q = 2.0f * sqrt(d.x * d.x + d.y * d.y + d.z * d.z) / reach;
        if (q < 1.0f)
            density += there.w * (1.0f - 1.5f * q * q + 0.75f * q * q * q);
        else if (q < 2.0f)
            density += there.w * 0.25f * (2.0f - q) * (2.0f - q) * (2.0f - q);
    }
    densities[i] = density;
}
