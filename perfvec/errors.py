"""Every error that PerfVec raises on purpose. One root, so that a caller can catch them all.

A message says what was being done, what was found, what is allowed and what to do next.
The command line prints the message alone and exits with 2.
"""

from __future__ import annotations


class PerfVecError(Exception):
    """Root of the library's errors."""


class LaunchError(PerfVecError):
    """A launch is malformed: argument count or type, NDRange, initialiser."""


class SourceError(PerfVecError):
    """Kernel source does not compile; carries the compiler's own message."""


class KernelNotFoundError(PerfVecError):
    """The program has no kernel of that name."""


class UnsupportedError(PerfVecError):
    """The kernel uses something that the tracer does not execute."""


class MemoryAccessError(PerfVecError):
    """A lane touched memory outside its buffer.

    Attributes:
        memory: Name of the buffer, array or image; "" where the address is in none.
        space: "buffer", "local", "private", "constant", "global" or "image".
        offset: The first byte that was accessed, from the memory's start.
        num_bytes: How many bytes were accessed.
        line: Source line; 0 where unknown.
    """

    def __init__(
        self, message: str, *, memory: str = "", space: str = "", offset: int = 0, num_bytes: int = 0, line: int = 0
    ) -> None:
        super().__init__(message)
        self.memory, self.space, self.offset, self.num_bytes, self.line = memory, space, offset, num_bytes, line


class BarrierDivergenceError(PerfVecError):
    """Not all work-items of a work-group reached a barrier."""


class BudgetError(PerfVecError):
    """A launch ran past the instruction budget."""


class DeviceError(PerfVecError):
    """An unknown device, or a device file whose fields contradict each other."""


class OpenCLError(PerfVecError):
    """No usable OpenCL device, or one that failed."""


class DeviceMemoryError(OpenCLError):
    """A launch needs more memory than the device has."""


class FormatError(PerfVecError):
    """A file is damaged, of another kind, or of a version this release does not read."""


class ConfigError(PerfVecError):
    """A configuration file or a suite file is malformed."""


class ModelError(PerfVecError):
    """A model or its input does not fit: feature schema, dimensions, an empty trace."""
