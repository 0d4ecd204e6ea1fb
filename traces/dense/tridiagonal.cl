// Tridiagonal systems: lower, diagonal and upper bands; `shift` on the diagonal makes them dominant.

#ifndef SYSTEM
#define SYSTEM 128 // unknowns of a system that one work-group solves, one a work-item
#endif
#ifndef INTERLEAVED
#define INTERLEAVED 1 // 1: unknown j of system i at j * count + i; 0: at i * n + j
#endif

// Thomas algorithm, one system a work-item; `upper` and `x` are overwritten on the way.
__kernel void thomas_systems(__global const float* lower, __global const float* diagonal, __global float* upper,
    __global float* x, int count, int n, float shift)
{
    const int i = get_global_id(0);
    if (i >= count)
        return;
    const int start = INTERLEAVED ? i : i * n;
    const int stride = INTERLEAVED ? count : 1;
    float scale = 1.0f / (diagonal[start] + shift);
    float c = upper[start] * scale;
    float d = x[start] * scale;
    upper[start] = c;
    x[start] = d;
    for (int j = 1; j < n; ++j) {
        const int e = start + j * stride;
        scale = 1.0f / (diagonal[e] + shift - lower[e] * c);
        c = upper[e] * scale;
        d = (x[e] - lower[e] * d) * scale;
        upper[e] = c;
        x[e] = d;
    }
    for (int j = n - 2; j >= 0; --j) {
        const int e = start + j * stride;
        d = x[e] - upper[e] * d;
        x[e] = d;
    }
}

// Parallel cyclic reduction: one system of SYSTEM unknowns a work-group, all in local memory.
__kernel void cyclic_reduction(__global const float* lower, __global const float* diagonal,
    __global const float* upper, __global float* x, float shift)
{
    __local float la[SYSTEM], ld[SYSTEM], lu[SYSTEM], lx[SYSTEM];
    const int j = get_local_id(0);
    const int e = get_group_id(0) * SYSTEM + j;
    float a = j > 0 ? lower[e] : 0.0f;
    float d = diagonal[e] + shift;
    float u = j < SYSTEM - 1 ? upper[e] : 0.0f;
    float r = x[e];
    for (int distance = 1; distance < SYSTEM; distance *= 2) {
        la[j] = a;
        ld[j] = d;
        lu[j] = u;
        lx[j] = r;
        barrier(CLK_LOCAL_MEM_FENCE);
        float new_a = 0.0f;
        float new_u = 0.0f;
        if (j >= distance) {
            const float factor = a / ld[j - distance];
            new_a = -factor * la[j - distance];
            d -= factor * lu[j - distance];
            r -= factor * lx[j - distance];
        }
        if (j + distance < SYSTEM) {
            const float factor = u / ld[j + distance];
            new_u = -factor * lu[j + distance];
            d -= factor * la[j + distance];
            r -= factor * lx[j + distance];
        }
        a = new_a;
        u = new_u;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    x[e] = r / d;
}

// Thomas algorithm on one system in one work-item: a chain of dependent divisions and loads.
__kernel void thomas_serial(__global const float* lower, __global const float* diagonal, __global float* upper,
    __global float* x, int n, float shift)
{
    float c = 0.0f;
    float d = 0.0f;
    for (int j = 0; j < n; ++j) {
        const float scale = 1.0f / (diagonal[j] + shift - lower[j] * c);
        c = upper[j] * scale;
        d = (x[j] - lower[j] * d) * scale;
        upper[j] = c;
        x[j] = d;
    }
    for (int j = n - 2; j >= 0; --j) {
        d = x[j] - upper[j] * d;
        x[j] = d;
    }
}
