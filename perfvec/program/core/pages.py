"""Zeroed memory that takes only what is touched of it."""

from __future__ import annotations

import mmap

import numpy as np

_LEAST_SPARSE = 1 << 24


def sparse_zeros(num_bytes: int):
    """Zeroed bytes, uint8 `(num_bytes,)`, that begin at a page if there are many.

    NumPy asks the system for pages of 2 MiB, of which each is made where one byte of it is touched: a sample of a
    launch's work-groups would make nearly all of a large buffer. Here pages are small, unless the whole is.
    """
    if num_bytes < _LEAST_SPARSE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(num_bytes, np.uint8)
    memory = mmap.mmap(-1, num_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8)
