// Seven-point stencil in double precision on an nz x ny x nx grid; the outermost cells are copied.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// One cell a work-item.
__kernel void seven_point_fp64(__global const double* in, __global double* out, int nx, int ny, int nz, double k)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    if (x >= nx || y >= ny || z >= nz)
        return;
    const int plane = nx * ny;
    const int i = z * plane + y * nx + x;
    double result = in[i];
    if (x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1) {
        const double sides = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane];
        result += k * (sides - 6.0 * result);
    }
    out[i] = result;
}
