// Bonded interactions.

// Harmonic bonds: one work-item a bond, forces added to both atoms in fixed point by atomics.
__kernel void bonds_scatter(
    __global const float4 *positions, __global const int2 *bonds, __global int *forces, int num_bonds, float length,
    float stiffness)
{
    int b = get_global_id(0);
    if (b >= num_bonds)
        return;
    int2 bond = bonds[b];
    float4 d = positions[bond.y] - positions[bond.x];
    float r = sqrt(d.x * d.x + d.y * d.y + d.z * d.z + 1e-6f);
    float strength = stiffness * (r - length) / r * 4096.0f;
    int fx = (int)(d.x * strength);
    int fy = (int)(d.y * strength);
    int fz = (int)(d.z * strength);
    atomic_add(&forces[3 * bond.x], fx);
    atomic_add(&forces[3 * bond.x + 1], fy);
    atomic_add(&forces[3 * bond.x + 2], fz);
    atomic_sub(&forces[3 * bond.y], fx);
    atomic_sub(&forces[3 * bond.y + 1], fy);
    atomic_sub(&forces[3 * bond.y + 2], fz);
}

// Harmonic bonds: one work-item an atom gathers its four bonds, so nothing collides.
__kernel void bonds_gather(
    __global const float4 *positions, __global const int4 *partners, __global float4 *forces, int n, float length,
    float stiffness)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float4 here = positions[i];
    int4 partner = partners[i];
    float4 force = (float4)(0.0f);
    int other[4] = {partner.x, partner.y, partner.z, partner.w};
    for (int k = 0; k < 4; ++k) {
        float4 d = positions[other[k]] - here;
        float r = sqrt(d.x * d.x + d.y * d.y + d.z * d.z + 1e-6f);
        force += d * (stiffness * (r - length) / r);
    }
    force.w = 0.0f;
    forces[i] = force;
}

// Angle energies: an arc cosine for each triple of atoms.
__kernel void angle_energies(
    __global const float4 *positions, __global const int *triples, __global float *energies, int num_angles,
    float rest)
{
    int a = get_global_id(0);
    if (a >= num_angles)
        return;
    float4 middle = positions[triples[3 * a + 1]];
    float4 left = positions[triples[3 * a]] - middle;
    float4 right = positions[triples[3 * a + 2]] - middle;
    float along = left.x * right.x + left.y * right.y + left.z * right.z;
    float left2 = left.x * left.x + left.y * left.y + left.z * left.z + 1e-6f;
    float right2 = right.x * right.x + right.y * right.y + right.z * right.z + 1e-6f;
    float angle = acos(clamp(along * rsqrt(left2 * right2), -1.0f, 1.0f));
    energies[a] = (angle - rest) * (angle - rest);
}
