"""Buffers of a launch in memory, made as quickly as they are touched.

A sample of a launch's work-groups touches little of its buffers, and random contents repeat. So one period is
generated, and its pages are mapped again and again, copied when they are written. A launch whose work-groups are tried
out before they are traced has its contents made once.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from perfvec.arguments import BufferArg, parse_argument
from perfvec.initialisers import RANDOM_PERIOD
from perfvec.program.core.pages import sparse_zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIGN = 128
_MAP_FIXED = 0x10
_KEPT_PERIODS = 8
_LEAST_MAPPED = 1 << 16  # below, a copy is quicker than a mapping
_LEAST_LET_GO = 1 << 24


@final
class Contents:
    """What a buffer holds at first. Any number of buffers start from it, each with its own copy of what it writes."""

    def __init__(self, arg: BufferArg) -> None:
        self._num_bytes = arg.num_bytes
        self._file = -1
        self._bytes = np.zeros(0, np.uint8)
        if arg.data is None and arg.initialiser.name == "constant" and not any(arg.initialiser.parameters):
            return  # zeroed pages are mapped when they are touched
        period = arg.one_period()
        is_short = arg.data is None and period.count * period.element.num_lanes_stored <= RANDOM_PERIOD
        self._bytes = (_short_contents(str(period)) if is_short else period.array()).view(np.uint8)
        is_whole, is_paged = len(self._bytes) == arg.num_bytes, len(self._bytes) % mmap.PAGESIZE == 0
        if sys.platform == "linux" and arg.num_bytes >= _LEAST_MAPPED and (is_whole or is_paged):
            self._file = os.memfd_create("perfvec")
            weakref.finalize(self, os.close, self._file)
            self._period = len(self._bytes)
            written = 0
            while written < self._period:
                written += os.write(self._file, self._bytes[written:].data)
            self._bytes = np.zeros(0, np.uint8)

    @cached_property
    def shared(self) -> NDArray[np.uint8]:
        """A buffer that all share that do not write it, or do not read it; its pages are touched only once."""
        return self.buffer()

    def buffer(self) -> NDArray[np.uint8]:
        """Make a buffer, writable, at an address that is a multiple of `ALIGN`; shape `(num_bytes,)`."""
        if self._file >= 0:
            return _mapped_again(self._file, self._period, self._num_bytes)
        buffer = aligned_zeros(self._num_bytes)
        for start in range(0, self._num_bytes, len(self._bytes) or self._num_bytes):
            piece = buffer[start : start + len(self._bytes)]
            piece[:] = self._bytes[: len(piece)]
        return buffer

    @property
    def mask(self) -> int:
        """What an offset may be cut to where nothing is written, for less memory to be touched: a period, or all."""
        is_cut = self._file >= 0 and self._period < self._num_bytes and self._period.bit_count() == 1
        return self._period - 1 if is_cut else -1

    @property
    def is_large_mapping(self) -> bool:
        """Whether buffers are mapped, and large enough to be let go of now and then (`let_go`)."""
        return self._file >= 0 and self._num_bytes >= _LEAST_LET_GO


def let_go(buffer: NDArray[np.uint8]) -> None:
    """Give back the pages of a mapped buffer that nothing has written; what is touched again is mapped again."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.madvise(buffer.ctypes.data, buffer.nbytes, mmap.MADV_DONTNEED)


def resident_bytes() -> int:
    """Bytes of this process that are in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def aligned_zeros(num_bytes: int) -> NDArray[np.uint8]:
    """Zeroed bytes at an address that any access may start from."""
    raw = sparse_zeros(num_bytes + ALIGN)
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


def _mapped_again(file: int, period: int, num_bytes: int) -> NDArray[np.uint8]:
    """The first `period` bytes of a file repeated over `num_bytes` by mapping the same pages, privately."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t) + (ctypes.c_int,) * 3 + (ctypes.c_long,)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    size = -(-num_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    access = mmap.PROT_READ | mmap.PROT_WRITE
    base = _checked(libc.mmap(None, size, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0))
    step = -(-period // mmap.PAGESIZE) * mmap.PAGESIZE  # more than the period only where it is the whole
    for start in range(0, size, step):
        length = min(step, size - start)
        _checked(libc.mmap(base + start, length, access, mmap.MAP_PRIVATE | _MAP_FIXED, file, 0))
    memory = (ctypes.c_uint8 * num_bytes).from_address(base)
    weakref.finalize(memory, libc.munmap, base, size)
    return np.ctypeslib.as_array(memory)


def _checked(address: int) -> int:
    if address == ctypes.c_void_p(-1).value:
        raise MemoryError(f"cannot map memory for a buffer: {os.strerror(ctypes.get_errno())}")
    return address
