// Relaxation of the Poisson equation on an ny x nx grid; the outermost cells are fixed.

// Jacobi with a right-hand side; also leaves the square of the residual.
__kernel void jacobi2d(__global const float* u, __global const float* rhs, __global float* new_u,
    __global float* residual2, int nx, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    const int i = y * nx + x;
    const float rest = u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - 4.0f * u[i] - rhs[i];
    new_u[i] = u[i] + 0.25f * rest;
    residual2[i] = rest * rest;
}

// Red-black Gauss-Seidel: dimension 0 counts the cells of one colour in a row, which update in place.
__kernel void red_black(__global float* u, __global const float* rhs, int nx, int ny, int colour, float omega)
{
    const int y = get_global_id(1);
    const int x = 2 * get_global_id(0) + (y + colour) % 2;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    const int i = y * nx + x;
    u[i] += omega * 0.25f * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - 4.0f * u[i] - rhs[i]);
}

// Gauss-Seidel in natural order by one work-group: anti-diagonals one after the other.
__kernel void wavefront(__global float* u, __global const float* rhs, int nx, int ny, int sweeps)
{
    const int item = get_local_id(0);
    const int num_items = get_local_size(0);
    for (int sweep = 0; sweep < sweeps; ++sweep)
        for (int wave = 2; wave <= nx + ny - 4; ++wave) {
            const int first = max(1, wave - (nx - 2));
            const int last = min(ny - 2, wave - 1);
            for (int y = first + item; y <= last; y += num_items) {
                const int i = y * nx + wave - y;
                u[i] = 0.25f * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - rhs[i]);
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
        }
}

// Multigrid restriction: full weighting of a fine (2 ny + 1) x (2 nx + 1) grid onto the ny x nx inner coarse cells.
__kernel void restrict2d(__global const float* fine, __global float* coarse, int nx, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const int width = 2 * nx + 1;
    const int i = (2 * y + 1) * width + 2 * x + 1;
    const float sides = fine[i - 1] + fine[i + 1] + fine[i - width] + fine[i + width];
    const float corners = fine[i - width - 1] + fine[i - width + 1] + fine[i + width - 1] + fine[i + width + 1];
    coarse[y * nx + x] = 0.25f * fine[i] + 0.125f * sides + 0.0625f * corners;
}

// Multigrid prolongation: bilinear interpolation of ny x nx coarse cells, added to the fine (2 ny - 1) x (2 nx - 1) grid.
__kernel void prolong2d(__global const float* coarse, __global float* fine, int nx, int ny)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int width = 2 * nx - 1;
    if (x >= width || y >= 2 * ny - 1)
        return;
    const int left = y / 2 * nx + x / 2;
    const int right = left + x % 2;
    const int down = y % 2 * nx;
    fine[y * width + x] += 0.25f * (coarse[left] + coarse[right] + coarse[left + down] + coarse[right + down]);
}
