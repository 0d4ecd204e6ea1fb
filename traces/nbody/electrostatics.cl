// Electrostatics: potential maps, charge spreading and reciprocal sums.
#ifndef POINTS
#define POINTS 4
#endif

// Direct sum of the potential on a grid slice; atoms (x, y, z, charge) in constant memory.
__kernel void potential_grid(
    __constant float4 *atoms, __global float *potentials, int num_atoms, int width, float spacing, float height)
{
    int column = get_global_id(0);
    int row = get_global_id(1);
    float x = column * spacing;
    float y = row * spacing;
    float sum = 0.0f;
    for (int a = 0; a < num_atoms; ++a) {
        float4 atom = atoms[a];
        float dx = x - atom.x;
        float dy = y - atom.y;
        float dz = height - atom.z;
        sum += atom.w * rsqrt(dx * dx + dy * dy + dz * dz + 0.01f);
    }
    if (column < width)
        potentials[row * width + column] = sum;
}

// Each work-item sums POINTS points of a row, a group's width apart, and reuses what they share.
__kernel void potential_coarse(
    __constant float4 *atoms, __global float *potentials, int num_atoms, int width, float spacing, float height)
{
    int lanes = get_local_size(0);
    int column = get_group_id(0) * lanes * POINTS + get_local_id(0);
    int row = get_global_id(1);
    float y = row * spacing;
    float sums[POINTS];
    for (int p = 0; p < POINTS; ++p)
        sums[p] = 0.0f;
    for (int a = 0; a < num_atoms; ++a) {
        float4 atom = atoms[a];
        float dy = y - atom.y;
        float dz = height - atom.z;
        float across2 = dy * dy + dz * dz + 0.01f;
        float dx = column * spacing - atom.x;
        for (int p = 0; p < POINTS; ++p) {
            sums[p] += atom.w * rsqrt(dx * dx + across2);
            dx += lanes * spacing;
        }
    }
    for (int p = 0; p < POINTS; ++p)
        if (column + p * lanes < width)
            potentials[row * width + column + p * lanes] = sums[p];
}

// Spreads each charge over the 8 grid points around it, in fixed point by atomic additions; the grid is periodic.
__kernel void charge_spread(__global const float4 *atoms, __global int *grid, int num_atoms, int side)
{
    int a = get_global_id(0);
    if (a >= num_atoms)
        return;
    float4 atom = atoms[a];
    int x = (int)atom.x;
    int y = (int)atom.y;
    int z = (int)atom.z;
    float fx = atom.x - x;
    float fy = atom.y - y;
    float fz = atom.z - z;
    for (int corner = 0; corner < 8; ++corner) {
        int cx = corner & 1;
        int cy = corner >> 1 & 1;
        int cz = corner >> 2;
        float weight = (cx ? fx : 1.0f - fx) * (cy ? fy : 1.0f - fy) * (cz ? fz : 1.0f - fz);
        int point = ((z + cz) % side * side + (y + cy) % side) * side + (x + cx) % side;
        atomic_add(&grid[point], (int)(weight * atom.w * 1024.0f));
    }
}

// Interpolates a grid of field vectors at each atom.
__kernel void field_gather(
    __global const float4 *atoms, __global const float4 *field, __global float4 *forces, int num_atoms, int side)
{
    int a = get_global_id(0);
    if (a >= num_atoms)
        return;
    float4 atom = atoms[a];
    int4 low = convert_int4_rtz(atom);
    int4 high = (low + 1) % side;
    float4 f = atom - convert_float4(low);
    float4 c00 = mix(field[(low.z * side + low.y) * side + low.x], field[(low.z * side + low.y) * side + high.x], f.x);
    float4 c01 = mix(field[(low.z * side + high.y) * side + low.x], field[(low.z * side + high.y) * side + high.x], f.x);
    float4 c10 = mix(field[(high.z * side + low.y) * side + low.x], field[(high.z * side + low.y) * side + high.x], f.x);
    float4 c11 =
        mix(field[(high.z * side + high.y) * side + low.x], field[(high.z * side + high.y) * side + high.x], f.x);
    forces[a] = atom.w * mix(mix(c00, c01, f.y), mix(c10, c11, f.y), f.z);
}

// Structure factor of one wave vector a work-item: sines and cosines over all atoms.
__kernel void structure_factor(
    __global const float4 *atoms, __global const float4 *waves, __global float2 *factors, int num_atoms,
    int num_waves)
{
    int k = get_global_id(0);
    if (k >= num_waves)
        return;
    float4 wave = waves[k];
    float2 sum = (float2)(0.0f);
    for (int a = 0; a < num_atoms; ++a) {
        float4 atom = atoms[a];
        float phase = wave.x * atom.x + wave.y * atom.y + wave.z * atom.z;
#ifdef NATIVE
        sum += atom.w * (float2)(native_cos(phase), native_sin(phase));
#else
        sum += atom.w * (float2)(cos(phase), sin(phase));
#endif
    }
    factors[k] = sum;
}
