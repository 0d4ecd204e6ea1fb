// Heat equation on an ny x nx grid, five points; the outermost cells keep their values.

#ifndef TX
#define TX 16 // tile, and work-group, width
#endif
#ifndef TY
#define TY 16 // tile, and work-group, height
#endif
#ifndef ROWS
#define ROWS 4 // rows that a work-item walks down
#endif
#ifndef SIDE
#define SIDE 32 // side of the square that a work-group keeps for many steps
#endif

// Naive: one cell a work-item.
__kernel void heat2d(__global const float* in, __global float* out, int nx, int ny, float k)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const int i = y * nx + x;
    const float old = in[i];
    if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1)
        out[i] = old;
    else
        out[i] = old + k * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] - 4.0f * old);
}

// Tiled: the TX x TY work-group stages its cells and a rim of one cell in local memory.
__kernel void heat2d_tiled(__global const float* in, __global float* out, int nx, int ny, float k)
{
    __local float tile[TY + 2][TX + 2];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int x0 = (int)get_group_id(0) * TX - 1;
    const int y0 = (int)get_group_id(1) * TY - 1;
    for (int e = ly * TX + lx; e < (TX + 2) * (TY + 2); e += TX * TY) {
        const int x = clamp(x0 + e % (TX + 2), 0, nx - 1);
        const int y = clamp(y0 + e / (TX + 2), 0, ny - 1);
        tile[e / (TX + 2)][e % (TX + 2)] = in[y * nx + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const float old = tile[ly + 1][lx + 1];
    const bool is_rim = x == 0 || y == 0 || x == nx - 1 || y == ny - 1;
    const float change = tile[ly + 1][lx] + tile[ly + 1][lx + 2] + tile[ly][lx + 1] + tile[ly + 2][lx + 1] - 4.0f * old;
    out[y * nx + x] = is_rim ? old : old + k * change;
}

// Vectorised: four neighbouring cells a work-item, nx a multiple of 4; nx4 = nx / 4.
__kernel void heat2d_vec4(__global const float* in, __global float* out, int nx4, int ny, float k)
{
    const int x4 = get_global_id(0);
    const int y = get_global_id(1);
    if (x4 >= nx4 || y >= ny)
        return;
    const int nx = 4 * nx4;
    const int i = y * nx + 4 * x4;
    const float4 old = vload4(0, in + i);
    float4 result = old;
    if (y > 0 && y < ny - 1) {
        const float left = x4 > 0 ? in[i - 1] : 0.0f;
        const float right = x4 < nx4 - 1 ? in[i + 4] : 0.0f;
        const float4 sides = (float4)(left, old.xyz) + (float4)(old.yzw, right);
        result = old + k * (sides + vload4(0, in + i - nx) + vload4(0, in + i + nx) - 4.0f * old);
        if (x4 == 0)
            result.x = old.x;
        if (x4 == nx4 - 1)
            result.w = old.w;
    }
    vstore4(result, 0, out + i);
}

// Marching: a work-item walks down ROWS rows and keeps the column's three cells in registers.
__kernel void heat2d_march(__global const float* in, __global float* out, int nx, int ny, float k)
{
    const int x = get_global_id(0);
    const int y0 = get_global_id(1) * ROWS;
    if (x >= nx || y0 >= ny)
        return;
    const int end = min(y0 + ROWS, ny);
    float above = in[max(y0 - 1, 0) * nx + x];
    float here = in[y0 * nx + x];
    for (int y = y0; y < end; ++y) {
        const float below = in[min(y + 1, ny - 1) * nx + x];
        float result = here;
        if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1)
            result += k * (in[y * nx + x - 1] + in[y * nx + x + 1] + above + below - 4.0f * here);
        out[y * nx + x] = result;
        above = here;
        here = below;
    }
}

// Persistent: a fixed number of work-items strides over all cells.
__kernel void heat2d_stride(__global const float* in, __global float* out, int nx, int ny, float k)
{
    for (int i = get_global_id(0); i < nx * ny; i += get_global_size(0)) {
        const int x = i % nx;
        const int y = i / nx;
        const float old = in[i];
        float result = old;
        if (x > 0 && y > 0 && x < nx - 1 && y < ny - 1)
            result += k * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] - 4.0f * old);
        out[i] = result;
    }
}

// Many steps on a SIDE x SIDE square a work-group, which stays in local memory; squares are apart, rims are fixed.
__kernel void heat2d_resident(__global float* grids, int steps, float k)
{
    __local float cells[2][SIDE * SIDE];
    const int item = get_local_id(0);
    const int num_items = get_local_size(0);
    __global float* grid = grids + get_group_id(0) * SIDE * SIDE;
    for (int e = item; e < SIDE * SIDE; e += num_items)
        cells[0][e] = cells[1][e] = grid[e];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 0; step < steps; ++step) {
        __local const float* old = cells[step % 2];
        __local float* next = cells[1 - step % 2];
        for (int e = item; e < (SIDE - 2) * (SIDE - 2); e += num_items) {
            const int i = (1 + e / (SIDE - 2)) * SIDE + 1 + e % (SIDE - 2);
            next[i] = old[i] + k * (old[i - 1] + old[i + 1] + old[i - SIDE] + old[i + SIDE] - 4.0f * old[i]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int e = item; e < SIDE * SIDE; e += num_items)
        grid[e] = cells[steps % 2][e];
}
