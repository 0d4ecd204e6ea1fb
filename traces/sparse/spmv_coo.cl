// y += A x, A as (row, column, value) triples sorted by row.

#ifndef RUN
#define RUN 16 // consecutive entries that a work-item handles
#endif

// Add to a float in global memory by compare and exchange.
void atomic_add_float(volatile __global float* target, float value)
{
    volatile __global int* bits = (volatile __global int*)target;
    int old = *bits;
    int seen = as_int(as_float(old) + value);
    for (int found = atomic_cmpxchg(bits, old, seen); found != old; found = atomic_cmpxchg(bits, old, seen)) {
        old = found;
        seen = as_int(as_float(old) + value);
    }
}

// One entry a work-item, one floating-point atomic an entry.
__kernel void spmv_coo_atomic(__global const int* entry_rows, __global const int* columns,
    __global const float* values, __global const float* x, __global float* y, int entries)
{
    const int e = get_global_id(0);
    if (e < entries)
        atomic_add_float(y + entry_rows[e], values[e] * x[columns[e]]);
}

// RUN consecutive entries a work-item: it adds up while the row stays, and does an atomic where the row changes.
__kernel void spmv_coo_runs(__global const int* entry_rows, __global const int* columns, __global const float* values,
    __global const float* x, __global float* y, int entries)
{
    const int start = get_global_id(0) * RUN;
    if (start >= entries)
        return;
    const int end = min(start + RUN, entries);
    int row = entry_rows[start];
    float sum = 0.0f;
    for (int e = start; e < end; ++e) {
        if (entry_rows[e] != row) {
            atomic_add_float(y + row, sum);
            row = entry_rows[e];
            sum = 0.0f;
        }
        sum = mad(values[e], x[columns[e]], sum);
    }
    atomic_add_float(y + row, sum);
}

// Fixed-point: values and x as integers, so that the hardware's integer atomics do the additions.
__kernel void spmv_coo_fixed(__global const int* entry_rows, __global const int* columns, __global const int* values,
    __global const int* x, __global int* y, int entries)
{
    const int e = get_global_id(0);
    if (e < entries)
        atomic_add(y + entry_rows[e], values[e] * x[columns[e]] >> 8);
}
