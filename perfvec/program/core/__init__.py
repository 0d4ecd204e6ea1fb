"""numba code of the tracer: arrays and numbers in, arrays and numbers out."""
