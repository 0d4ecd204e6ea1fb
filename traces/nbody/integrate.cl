// Time integration.

// Leapfrog: kick, then drift, on vectors of four.
__kernel void leapfrog(
    __global float4 *positions, __global float4 *velocities, __global const float4 *accelerations, uint n, float step)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float4 velocity = velocities[i] + accelerations[i] * step;
    velocities[i] = velocity;
    positions[i] += velocity * step;
}

// Velocity-free Verlet in separate arrays, wrapped into a periodic box.
__kernel void verlet_wrap(
    __global float *now, __global float *before, __global const float *forces, __global const float *inverse_masses,
    uint n, float step2, float box)
{
    uint i = get_global_id(0);
    if (i >= n)
        return;
    float inverse_mass = inverse_masses[i];
    for (uint axis = 0; axis < 3; ++axis) {
        uint at = axis * n + i;
        float here = now[at];
        float next = 2.0f * here - before[at] + forces[at] * inverse_mass * step2;
        float wrap = floor(next / box) * box;
        now[at] = next - wrap;
        before[at] = here - wrap;
    }
}

// Kepler orbits: each work-item integrates its own planet around a fixed sun for num_steps steps.
__kernel void kepler_orbits(
    __global const float4 *starts, __global float4 *ends, int num_steps, float step)
{
    int i = get_global_id(0);
    float4 state = starts[i];
    float x = 1.0f + state.x;
    float y = state.y;
    float u = state.z;
    float v = 1.0f + state.w;
    for (int s = 0; s < num_steps; ++s) {
        float r2 = x * x + y * y;
        float strength = -step / (r2 * sqrt(r2));
        u += x * strength;
        v += y * strength;
        x += u * step;
        y += v * step;
    }
    ends[i] = (float4)(x, y, u, v);
}

// A chain of up to 1024 masses on springs, by one work-group for num_steps steps in local memory.
__kernel void spring_chain(
    __global float *displacements, __global float *velocities, int n, int num_steps, float stiffness)
{
    __local float at[1024];
    int lane = get_local_id(0);
    int lanes = get_local_size(0);
    float speed[1024 / 64];
    for (int i = lane, k = 0; i < n; i += lanes, ++k) {
        at[i] = displacements[i];
        speed[k] = velocities[i];
    }
    for (int s = 0; s < num_steps; ++s) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = lane, k = 0; i < n; i += lanes, ++k) {
            float left = i > 0 ? at[i - 1] : 0.0f;
            float right = i + 1 < n ? at[i + 1] : 0.0f;
            speed[k] += stiffness * (left + right - 2.0f * at[i]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = lane, k = 0; i < n; i += lanes, ++k)
            at[i] += speed[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane, k = 0; i < n; i += lanes, ++k) {
        displacements[i] = at[i];
        velocities[i] = speed[k];
    }
}
