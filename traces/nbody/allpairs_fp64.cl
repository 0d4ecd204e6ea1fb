// Gravity between all pairs of bodies in double precision.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// Every work-item reads all bodies from global memory.
__kernel void gravity_fp64(
    __global const double4 *bodies, __global double4 *accelerations, uint n, double softening)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    double4 here = bodies[i];
    double4 sum = (double4)(0.0);
    for (uint j = 0; j < n; ++j) {
        double4 there = bodies[j];
        double dx = there.x - here.x;
        double dy = there.y - here.y;
        double dz = there.z - here.z;
        double squared = dx * dx + dy * dy + dz * dz + softening;
        double strength = there.w / (squared * sqrt(squared));
        sum += (double4)(dx * strength, dy * strength, dz * strength, 0.0);
    }
    accelerations[i] = sum;
}

// Leapfrog step: kick, then drift.
__kernel void leapfrog_fp64(
    __global double4 *positions, __global double4 *velocities, __global const double4 *accelerations, uint n,
    double step)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    double4 velocity = velocities[i] + accelerations[i] * step;
    velocities[i] = velocity;
    positions[i] += velocity * step;
}
