// Stencils on an nz x ny x nx grid; the outermost cells are copied.

#ifndef TX
#define TX 32 // tile, and work-group, width
#endif
#ifndef TY
#define TY 4 // tile, and work-group, height
#endif

// Seven points, naive: one cell a work-item.
__kernel void seven_point(__global const float* in, __global float* out, int nx, int ny, int nz, float k)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    if (x >= nx || y >= ny || z >= nz)
        return;
    const int plane = nx * ny;
    const int i = z * plane + y * nx + x;
    float result = in[i];
    if (x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1) {
        const float sides = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane];
        result += k * (sides - 6.0f * result);
    }
    out[i] = result;
}

// Seven points, a work-item marches up z and keeps the column's three cells in registers.
__kernel void seven_point_march(__global const float* in, __global float* out, int nx, int ny, int nz, float k)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const int plane = nx * ny;
    const bool is_inner = x > 0 && y > 0 && x < nx - 1 && y < ny - 1;
    int i = y * nx + x;
    float below = in[i];
    float here = below;
    for (int z = 0; z < nz; ++z, i += plane) {
        const float above = z < nz - 1 ? in[i + plane] : here;
        float result = here;
        if (is_inner && z > 0 && z < nz - 1)
            result += k * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + below + above - 6.0f * here);
        out[i] = result;
        below = here;
        here = above;
    }
}

// Seven points, marching up z with the plane's tile and rim in local memory.
__kernel void seven_point_tiled(__global const float* in, __global float* out, int nx, int ny, int nz, float k)
{
    __local float tile[(TY + 2) * (TX + 2)];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int x0 = (int)get_group_id(0) * TX - 1;
    const int y0 = (int)get_group_id(1) * TY - 1;
    const int plane = nx * ny;
    const int centre = (ly + 1) * (TX + 2) + lx + 1;
    const int column = min(y, ny - 1) * nx + min(x, nx - 1);
    const bool is_inner = x > 0 && y > 0 && x < nx - 1 && y < ny - 1;
    float below = 0.0f;
    for (int z = 0; z < nz; ++z) {
        for (int e = ly * TX + lx; e < (TX + 2) * (TY + 2); e += TX * TY) {
            const int from_x = clamp(x0 + e % (TX + 2), 0, nx - 1);
            const int from_y = clamp(y0 + e / (TX + 2), 0, ny - 1);
            tile[e] = in[z * plane + from_y * nx + from_x];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const float here = tile[centre];
        const float above = in[min(z + 1, nz - 1) * plane + column];
        float result = here;
        if (is_inner && z > 0 && z < nz - 1) {
            const float sides = tile[centre - 1] + tile[centre + 1] + tile[centre - TX - 2] + tile[centre + TX + 2];
            result += k * (sides + below + above - 6.0f * here);
        }
        if (x < nx && y < ny)
            out[z * plane + column] = result;
        below = here;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// All 27 neighbours, weighted by how many coordinates differ, one cell a work-item.
__kernel void box27(__global const float* in, __global float* out, int nx, int ny, int nz, float4 weights)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    if (x >= nx || y >= ny || z >= nz)
        return;
    const int plane = nx * ny;
    const int i = z * plane + y * nx + x;
    float result = in[i];
    if (x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1) {
        float faces = 0.0f;
        float edges = 0.0f;
        float corners = 0.0f;
        for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx) {
                    const int moved = abs(dx) + abs(dy) + abs(dz);
                    const float cell = in[i + dz * plane + dy * nx + dx];
                    faces += moved == 1 ? cell : 0.0f;
                    edges += moved == 2 ? cell : 0.0f;
                    corners += moved == 3 ? cell : 0.0f;
                }
        result = weights.x * result + weights.y * faces + weights.z * edges + weights.w * corners;
    }
    out[i] = result;
}
