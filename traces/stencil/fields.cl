// Coupled fields on an ny x nx grid.

// Electromagnetic TM mode: magnetic half-step from the electric field's differences.
__kernel void fdtd_magnetic(
    __global const float* ez, __global float* hx, __global float* hy, int nx, int ny, float k)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx - 1 || y >= ny - 1)
        return;
    const int i = y * nx + x;
    hx[i] -= k * (ez[i + nx] - ez[i]);
    hy[i] += k * (ez[i + 1] - ez[i]);
}

// Electromagnetic TM mode: electric step with a loss for each cell.
__kernel void fdtd_electric(__global float* ez, __global const float* hx, __global const float* hy,
    __global const float* loss, int nx, int ny, float k)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x < 1 || y < 1 || x >= nx || y >= ny)
        return;
    const int i = y * nx + x;
    ez[i] = loss[i] * ez[i] + k * (hy[i] - hy[i - 1] - hx[i] + hx[i - nx]);
}

// Gray-Scott reaction and diffusion of two species (u, v) in one float2, periodic.
__kernel void gray_scott(
    __global const float2* in, __global float2* out, int nx, int ny, float feed, float kill, float dt)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const float2 here = in[y * nx + x];
    const float2 row = in[y * nx + (x + 1) % nx] + in[y * nx + (x + nx - 1) % nx];
    const float2 column = in[(y + 1) % ny * nx + x] + in[(y + ny - 1) % ny * nx + x];
    const float2 diffusion = (float2)(0.16f, 0.08f) * (row + column - 4.0f * here);
    const float reaction = here.x * here.y * here.y;
    const float2 change
        = (float2)(feed * (1.0f - here.x) - reaction, reaction - (feed + kill) * here.y);
    out[y * nx + x] = here + dt * (diffusion + change);
}

// Semi-Lagrangian transport: follow the velocity (u, v) back and interpolate there.
__kernel void advect(__global const float* in, __global const float* u, __global const float* v, __global float* out,
    int nx, int ny, float dt)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const int i = y * nx + x;
    const float from_x = clamp(x - dt * u[i], 0.0f, nx - 1.001f);
    const float from_y = clamp(y - dt * v[i], 0.0f, ny - 1.001f);
    const int x0 = (int)from_x;
    const int y0 = (int)from_y;
    const float fx = from_x - x0;
    const float fy = from_y - y0;
    const float top = mix(in[y0 * nx + x0], in[y0 * nx + x0 + 1], fx);
    const float bottom = mix(in[(y0 + 1) * nx + x0], in[(y0 + 1) * nx + x0 + 1], fx);
    out[i] = mix(top, bottom, fy);
}

// Anisotropic diffusion (Perona and Malik): exponentials of the four differences damp the flow across edges.
__kernel void edge_diffusion(
    __global const float* in, __global float* out, int nx, int ny, float rate, float sharpness)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= nx || y >= ny)
        return;
    const int i = y * nx + x;
    const float here = in[i];
    const float4 sides = (float4)(in[y * nx + max(x - 1, 0)], in[y * nx + min(x + 1, nx - 1)],
        in[max(y - 1, 0) * nx + x], in[min(y + 1, ny - 1) * nx + x]);
    const float4 steps = sides - here;
    const float4 flow = steps * exp(-sharpness * steps * steps);
    out[i] = here + rate * (flow.x + flow.y + flow.z + flow.w);
}

// First-order upwind transport, flux form, with the velocity (u, v) at each cell: branches on its sign; rim stays.
__kernel void upwind(__global const float* in, __global const float* u, __global const float* v, __global float* out,
    int nx, int ny, float dt)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    const int i = y * nx + x;
    const float here = in[i];
    float change;
    if (u[i] > 0.0f)
        change = u[i] * (here - in[i - 1]);
    else
        change = u[i] * (in[i + 1] - here);
    if (v[i] > 0.0f)
        change += v[i] * (here - in[i - nx]);
    else
        change += v[i] * (in[i + nx] - here);
    out[i] = here - dt * change;
}
