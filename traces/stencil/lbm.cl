// Lattice Boltzmann D2Q9: pull from the upwind neighbours, collide (BGK); periodic in both directions.

// Directions: rest, then east, north, west, south, then the diagonals north-east, north-west, south-west, south-east.
__constant int step_x[9] = { 0, 1, 0, -1, 0, 1, -1, -1, 1 };
__constant int step_y[9] = { 0, 0, 1, 0, -1, 1, 1, -1, -1 };
__constant float weight[9] = { 4.0f / 9.0f, 1.0f / 9.0f, 1.0f / 9.0f, 1.0f / 9.0f, 1.0f / 9.0f, 1.0f / 36.0f,
    1.0f / 36.0f, 1.0f / 36.0f, 1.0f / 36.0f };

// Relax nine populations towards their equilibrium.
void collide(float* f, float omega)
{
    float density = 0.0f;
    float ux = 0.0f;
    float uy = 0.0f;
    for (int q = 0; q < 9; ++q) {
        density += f[q];
        ux += step_x[q] * f[q];
        uy += step_y[q] * f[q];
    }
    ux /= density;
    uy /= density;
    const float square = 1.5f * (ux * ux + uy * uy);
    for (int q = 0; q < 9; ++q) {
        const float along = 3.0f * (step_x[q] * ux + step_y[q] * uy);
        const float equilibrium = weight[q] * density * (1.0f + along + 0.5f * along * along - square);
        f[q] += omega * (equilibrium - f[q]);
    }
}

// Structure of arrays: population q of cell i at q * cells + i.
__kernel void lbm_soa(__global const float* in, __global float* out, int nx, int ny, float omega)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const int cells = nx * ny;
    float f[9];
    for (int q = 0; q < 9; ++q) {
        const int from_x = (x - step_x[q] + nx) % nx;
        const int from_y = (y - step_y[q] + ny) % ny;
        f[q] = in[q * cells + from_y * nx + from_x];
    }
    collide(f, omega);
    for (int q = 0; q < 9; ++q)
        out[q * cells + y * nx + x] = f[q];
}

// Array of structures: population q of cell i at i * 9 + q.
__kernel void lbm_aos(__global const float* in, __global float* out, int nx, int ny, float omega)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    float f[9];
    for (int q = 0; q < 9; ++q) {
        const int from_x = (x - step_x[q] + nx) % nx;
        const int from_y = (y - step_y[q] + ny) % ny;
        f[q] = in[(from_y * nx + from_x) * 9 + q];
    }
    collide(f, omega);
    for (int q = 0; q < 9; ++q)
        out[(y * nx + x) * 9 + q] = f[q];
}

// Structure of arrays with solid cells: there the populations bounce back instead of colliding.
__kernel void lbm_obstacles(
    __global const float* in, __global float* out, __global const uchar* is_fluid, int nx, int ny, float omega)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const int cells = nx * ny;
    const int i = y * nx + x;
    float f[9];
    for (int q = 0; q < 9; ++q) {
        const int from_x = (x - step_x[q] + nx) % nx;
        const int from_y = (y - step_y[q] + ny) % ny;
        f[q] = in[q * cells + from_y * nx + from_x];
    }
    if (is_fluid[i]) {
        collide(f, omega);
        for (int q = 0; q < 9; ++q)
            out[q * cells + i] = f[q];
    } else {
        out[i] = f[0];
        for (int q = 1; q < 5; ++q)
            out[q * cells + i] = f[1 + (q + 1) % 4];
        for (int q = 5; q < 9; ++q)
            out[q * cells + i] = f[5 + (q - 3) % 4];
    }
}
