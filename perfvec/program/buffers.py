"""Buffers of a launch in memory, made as quickly as they are touched.

A sample of a launch's work-groups touches little of its buffers, and random contents repeat. So one period is
generated, and its pages are mapped again and again, copied when they are written.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from perfvec.arguments import BufferArg, parse_argument
from perfvec.initialisers import RANDOM_PERIOD

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIGN = 128
_MAP_FIXED = 0x10
_KEPT_PERIODS = 8


def make_buffer(arg: BufferArg) -> NDArray[np.uint8]:
    """Make the contents of a buffer, writable, at an address that is a multiple of `ALIGN`.

    Returns:
        Shape `(arg.num_bytes,)`.
    """
    if arg.data is None and arg.initialiser.name == "constant" and not any(arg.initialiser.parameters):
        return aligned_zeros(arg.num_bytes)  # zeroed pages are mapped when they are touched
    period = arg.one_period()
    is_short = arg.data is None and period.count * period.element.num_lanes_stored <= RANDOM_PERIOD
    contents = (_short_contents(str(period)) if is_short else period.array()).view(np.uint8)
    if len(contents) < arg.num_bytes and sys.platform == "linux" and len(contents) % mmap.PAGESIZE == 0:
        return _mapped_again(contents, arg.num_bytes)
    buffer = aligned_zeros(arg.num_bytes)
    for start in range(0, arg.num_bytes, len(contents)):
        piece = buffer[start : start + len(contents)]
        piece[:] = contents[: len(piece)]
    return buffer


def aligned_zeros(num_bytes: int) -> NDArray[np.uint8]:
    """Zeroed bytes at an address that any access may start from."""
    raw = np.zeros(num_bytes + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + num_bytes]


@lru_cache(maxsize=_KEPT_PERIODS)
def _short_contents(text: str) -> NDArray[np.generic]:
    """Contents of a buffer of at most one period; a trace makes the same ones twice or more. Not to be written."""
    arg = parse_argument(text)
    assert isinstance(arg, BufferArg)
    contents = arg.array()
    contents.setflags(write=False)
    return contents


def _mapped_again(contents: NDArray[np.uint8], num_bytes: int) -> NDArray[np.uint8]:
    """Contents repeated over `num_bytes` by mapping the same pages, privately."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t) + (ctypes.c_int,) * 3 + (ctypes.c_long,)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    size = -(-num_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    handle = os.memfd_create("perfvec")
    try:
        os.write(handle, contents.data)
        access = mmap.PROT_READ | mmap.PROT_WRITE
        base = _checked(libc.mmap(None, size, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0))
        for start in range(0, size, len(contents)):
            length = min(len(contents), size - start)
            _checked(libc.mmap(base + start, length, access, mmap.MAP_PRIVATE | _MAP_FIXED, handle, 0))
    finally:
        os.close(handle)
    memory = (ctypes.c_uint8 * num_bytes).from_address(base)
    weakref.finalize(memory, libc.munmap, base, size)
    return np.ctypeslib.as_array(memory)


def _checked(address: int) -> int:
    if address == ctypes.c_void_p(-1).value:
        raise MemoryError(f"cannot map memory for a buffer: {os.strerror(ctypes.get_errno())}")
    return address
