// Lennard-Jones forces from neighbour lists in a periodic box.
#ifndef TEAM
#define TEAM 8
#endif

// Force on `here` by `there`, nearest image, zero beyond the cutoff; w holds the energy.
float4 lennard_jones(float4 here, float4 there, float box, float cutoff2)
{
    float4 d = here - there;
    d -= box * rint(d / box);
    float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
    float inverse2 = 1.0f / fmax(r2, 0.5f);
    float inverse6 = inverse2 * inverse2 * inverse2;
    float strength = r2 < cutoff2 ? 24.0f * inverse2 * inverse6 * (2.0f * inverse6 - 1.0f) : 0.0f;
    float energy = r2 < cutoff2 ? 4.0f * inverse6 * (inverse6 - 1.0f) : 0.0f;
    return (float4)(d.x * strength, d.y * strength, d.z * strength, energy);
}

// Lists of equal length, transposed: neighbour k of atom i is at k * n + i.
__kernel void lj_transposed(
    __global const float4 *positions, __global const int *neighbours, __global float4 *forces, int n,
    int num_neighbours, float box, float cutoff2)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float4 here = positions[i];
    float4 force = (float4)(0.0f);
    for (int k = 0; k < num_neighbours; ++k)
        force += lennard_jones(here, positions[neighbours[k * n + i]], box, cutoff2);
    forces[i] = force;
}

// Lists of uneven length one after another, one work-item an atom; pairs beyond the cutoff are branched over.
__kernel void lj_rows(
    __global const float4 *positions, __global const int *offsets, __global const int *neighbours,
    __global float4 *forces, int n, float box, float cutoff2)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float4 here = positions[i];
    float4 force = (float4)(0.0f);
    int end = offsets[i + 1];
    for (int e = offsets[i]; e < end; ++e) {
        float4 d = here - positions[neighbours[e]];
        d -= box * rint(d / box);
        float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
        if (r2 < cutoff2) {
            float inverse2 = 1.0f / fmax(r2, 0.5f);
            float inverse6 = inverse2 * inverse2 * inverse2;
            float strength = 24.0f * inverse2 * inverse6 * (2.0f * inverse6 - 1.0f);
            force.x += d.x * strength;
            force.y += d.y * strength;
            force.z += d.z * strength;
            force.w += 4.0f * inverse6 * (inverse6 - 1.0f);
        }
    }
    forces[i] = force;
}

// The same lists with TEAM work-items an atom and a reduction in local memory; groups of 128.
__kernel void lj_team(
    __global const float4 *positions, __global const int *offsets, __global const int *neighbours,
    __global float4 *forces, int n, float box, float cutoff2)
{
    __local float4 partial[128];
    int lane = get_local_id(0);
    int member = lane % TEAM;
    int i = get_global_id(0) / TEAM;
    float4 force = (float4)(0.0f);
    if (i < n) {
        float4 here = positions[i];
        int end = offsets[i + 1];
        for (int e = offsets[i] + member; e < end; e += TEAM)
            force += lennard_jones(here, positions[neighbours[e]], box, cutoff2);
    }
    partial[lane] = force;
    for (int half_size = TEAM / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (member < half_size)
            partial[lane] += partial[lane + half_size];
    }
    if (member == 0 && i < n)
        forces[i] = partial[lane];
}
