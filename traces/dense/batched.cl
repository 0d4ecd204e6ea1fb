// Many small matrices, DIM x DIM; "AoS": one matrix after the other, "SoA": entry e of matrix i at e * count + i.

#ifndef DIM
#define DIM 4 // side of a matrix
#endif
#ifndef LOCAL
#define LOCAL 64 // work-items of a work-group that shares one matrix
#endif

// Products of AoS matrices, one pair a work-item, operands in private arrays.
__kernel void batched_gemm_aos(__global const float* a, __global const float* b, __global float* c, int count)
{
    const int i = get_global_id(0);
    if (i >= count)
        return;
    float right[DIM][DIM];
    for (int e = 0; e < DIM * DIM; ++e)
        right[e / DIM][e % DIM] = b[i * DIM * DIM + e];
    for (int row = 0; row < DIM; ++row) {
        float left[DIM];
        for (int j = 0; j < DIM; ++j)
            left[j] = a[i * DIM * DIM + row * DIM + j];
        for (int col = 0; col < DIM; ++col) {
            float sum = 0.0f;
            for (int j = 0; j < DIM; ++j)
                sum = mad(left[j], right[j][col], sum);
            c[i * DIM * DIM + row * DIM + col] = sum;
        }
    }
}

// Products of SoA matrices, one pair a work-item: the same arithmetic with coalesced accesses.
__kernel void batched_gemm_soa(__global const float* a, __global const float* b, __global float* c, int count)
{
    const int i = get_global_id(0);
    if (i >= count)
        return;
    float right[DIM][DIM];
    for (int e = 0; e < DIM * DIM; ++e)
        right[e / DIM][e % DIM] = b[e * count + i];
    for (int row = 0; row < DIM; ++row) {
        float left[DIM];
        for (int j = 0; j < DIM; ++j)
            left[j] = a[(row * DIM + j) * count + i];
        for (int col = 0; col < DIM; ++col) {
            float sum = 0.0f;
            for (int j = 0; j < DIM; ++j)
                sum = mad(left[j], right[j][col], sum);
            c[(row * DIM + col) * count + i] = sum;
        }
    }
}

// Products of AoS matrices, one pair a work-group, operands in local memory.
__kernel void batched_gemm_group(__global const float* a, __global const float* b, __global float* c)
{
    __local float left[DIM * DIM];
    __local float right[DIM * DIM];
    const int item = get_local_id(0);
    const int base = get_group_id(0) * DIM * DIM;
    for (int e = item; e < DIM * DIM; e += LOCAL) {
        left[e] = a[base + e];
        right[e] = b[base + e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < DIM * DIM; e += LOCAL) {
        float sum = 0.0f;
        for (int j = 0; j < DIM; ++j)
            sum = mad(left[e / DIM * DIM + j], right[j * DIM + e % DIM], sum);
        c[base + e] = sum;
    }
}

// Solves by Gaussian elimination with partial pivoting, one SoA system a work-item; rows swap in private memory.
__kernel void batched_solve(__global const float* a, __global const float* b, __global float* x, int count)
{
    const int i = get_global_id(0);
    if (i >= count)
        return;
    float m[DIM][DIM + 1];
    for (int row = 0; row < DIM; ++row) {
        for (int col = 0; col < DIM; ++col)
            m[row][col] = a[(row * DIM + col) * count + i];
        m[row][DIM] = b[row * count + i];
    }
    for (int step = 0; step < DIM; ++step) {
        int pivot = step;
        for (int row = step + 1; row < DIM; ++row)
            if (fabs(m[row][step]) > fabs(m[pivot][step]))
                pivot = row;
        for (int col = step; col <= DIM; ++col) {
            const float swap = m[step][col];
            m[step][col] = m[pivot][col];
            m[pivot][col] = swap;
        }
        for (int row = step + 1; row < DIM; ++row) {
            const float factor = m[row][step] / m[step][step];
            for (int col = step + 1; col <= DIM; ++col)
                m[row][col] -= factor * m[step][col];
        }
    }
    for (int row = DIM - 1; row >= 0; --row) {
        for (int col = row + 1; col < DIM; ++col)
            m[row][DIM] -= m[row][col] * m[col][DIM];
        m[row][DIM] /= m[row][row];
        x[row * count + i] = m[row][DIM];
    }
}

// Inverses by Gauss-Jordan without pivoting, one SoA matrix a work-item; `shift` on the diagonal keeps it regular.
__kernel void batched_inverse(__global const float* a, __global float* inverse, int count, float shift)
{
    const int i = get_global_id(0);
    if (i >= count)
        return;
    float m[DIM][DIM];
    for (int e = 0; e < DIM * DIM; ++e)
        m[e / DIM][e % DIM] = a[e * count + i] + (e / DIM == e % DIM ? shift : 0.0f);
    for (int step = 0; step < DIM; ++step) {
        const float scale = 1.0f / m[step][step];
        m[step][step] = 1.0f;
        for (int col = 0; col < DIM; ++col)
            m[step][col] *= scale;
        for (int row = 0; row < DIM; ++row)
            if (row != step) {
                const float factor = m[row][step];
                m[row][step] = 0.0f;
                for (int col = 0; col < DIM; ++col)
                    m[row][col] -= factor * m[step][col];
            }
    }
    for (int e = 0; e < DIM * DIM; ++e)
        inverse[e * count + i] = m[e / DIM][e % DIM];
}

// Eigenvalues of symmetric 3 x 3 matrices (6 SoA entries xx xy xz yy yz zz) by `sweeps` of Jacobi rotations.
__kernel void batched_eigen3(__global const float* a, __global float* eigenvalues, int count, int sweeps)
{
    const int i = get_global_id(0);
    if (i >= count)
        return;
    float m[3][3];
    m[0][0] = a[i];
    m[0][1] = m[1][0] = a[count + i];
    m[0][2] = m[2][0] = a[2 * count + i];
    m[1][1] = a[3 * count + i];
    m[1][2] = m[2][1] = a[4 * count + i];
    m[2][2] = a[5 * count + i];
    for (int sweep = 0; sweep < sweeps; ++sweep)
        for (int pair = 0; pair < 3; ++pair) {
            const int p = pair == 2 ? 1 : 0;
            const int q = pair == 0 ? 1 : 2;
            const int r = 3 - p - q;
            if (fabs(m[p][q]) < 1e-20f)
                continue;
            const float theta = 0.5f * (m[q][q] - m[p][p]) / m[p][q];
            const float t = copysign(1.0f, theta) / (fabs(theta) + sqrt(mad(theta, theta, 1.0f)));
            const float c = rsqrt(mad(t, t, 1.0f));
            const float s = t * c;
            m[p][p] -= t * m[p][q];
            m[q][q] += t * m[p][q];
            m[p][q] = m[q][p] = 0.0f;
            const float rp = m[r][p];
            const float rq = m[r][q];
            m[r][p] = m[p][r] = c * rp - s * rq;
            m[r][q] = m[q][r] = s * rp + c * rq;
        }
    eigenvalues[i] = m[0][0];
    eigenvalues[count + i] = m[1][1];
    eigenvalues[2 * count + i] = m[2][2];
}
