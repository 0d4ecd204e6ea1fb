"""Run a launch on an OpenCL device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyopencl as cl

# The public Program.build adds options of its own, warns about build logs that are not empty, and may keep a cache
# on disk that threads and processes contend for.
from pyopencl._cl import _Program

from perfvec.arguments import BufferArg, LocalArg, ScalarArg
from perfvec.errors import KernelNotFoundError, LaunchError, OpenCLError, SourceError
from perfvec.launch import Launch
from perfvec.units import NS_PER_S, format_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BUILD_LOG_SHOWN = 4000
_ARGUMENT_ERRORS = (
    cl.status_code.INVALID_ARG_SIZE,
    cl.status_code.INVALID_ARG_VALUE,
    cl.status_code.INVALID_MEM_OBJECT,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostBuffer:
    """The contents of a buffer before they go to the device: a block that repeats until the buffer is full."""

    block: NDArray[np.generic]
    num_bytes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a launch left behind.

    Attributes:
        outputs: Contents of every buffer afterwards, by the argument's position.
        kernel_time_s: Time of that one run by its profiling event; no measurement (see `perfvec.arch.measure`).
    """

    outputs: Mapping[int, NDArray[np.generic]]
    kernel_time_s: float


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn pyopencl's errors into ours.

    Args:
        doing: What the block does, to which kernel, on which device.

    Raises:
        OpenCLError: The block raised a pyopencl error.
    """
    try:
        yield
    except cl.Error as error:
        raise OpenCLError(
            f"{doing} failed: {error}. A kernel that reaches outside its buffers, or is too large for the device, "
            "ends like this; look at the buffer sizes and the local size."
        ) from error


def build_program(
    context: cl.Context, source: str, build_options: Sequence[str] = (), *, source_name: str = "kernel.cl"
) -> cl.Program:
    """Compile OpenCL C for the context's device; may be called from several threads.

    Raises:
        SourceError: It does not compile; the message has the compiler's.
    """
    program = _Program(context, source)
    try:
        program._build(" ".join(build_options).encode(), context.devices)
    except cl.Error as error:
        device = context.devices[0]
        log = str(program.get_build_info(device, cl.program_build_info.LOG)).strip()[:_BUILD_LOG_SHOWN]
        options = " ".join(build_options) or "no options"
        raise SourceError(
            f"{source_name} does not compile for {device.name} with {options} ({error}):\n{log or 'no build log'}"
        ) from error
    return cl.Program(program)


def host_buffer(arg: BufferArg) -> HostBuffer:
    """Generate a buffer's contents, as one period where they repeat."""
    return HostBuffer(block=arg.one_period().array(), num_bytes=arg.num_bytes)


def host_buffers(launch: Launch) -> dict[int, HostBuffer]:
    """Generate the contents of all buffers of a launch, by the argument's position."""
    return {i: host_buffer(arg) for i, arg in enumerate(launch.args) if isinstance(arg, BufferArg)}


def host_bytes(launch: Launch) -> int:
    """Host memory that `host_buffers` takes."""
    return sum(arg.one_period().num_bytes for arg in launch.args if isinstance(arg, BufferArg))


def upload(queue: cl.CommandQueue, contents: HostBuffer) -> cl.Buffer:
    """Make a device buffer and fill it; the block travels once and is doubled on the device."""
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, contents.num_bytes)
    filled = min(contents.block.nbytes, contents.num_bytes)
    cl.enqueue_copy(queue, buffer, contents.block)
    while filled < contents.num_bytes:
        count = min(filled, contents.num_bytes - filled)
        cl.enqueue_copy(queue, buffer, buffer, byte_count=count, src_offset=0, dst_offset=filled)
        filled += count
    return buffer


def bind(program: cl.Program, launch: Launch, buffers: Mapping[int, cl.Buffer]) -> cl.Kernel:
    """The launch's kernel with its arguments set.

    Raises:
        KernelNotFoundError: The program has no kernel of that name.
        LaunchError: The arguments do not fit the kernel's parameters in number, size or kind.
    """
    names = str(program.get_info(cl.program_info.KERNEL_NAMES)).split(";")
    if launch.kernel_name not in names:
        raise KernelNotFoundError(
            f"{launch.source_name} has no kernel {launch.kernel_name!r}; it has {', '.join(sorted(names)) or 'none'}"
        )
    kernel = cl.Kernel(program, launch.kernel_name)
    if kernel.num_args != len(launch.args):
        raise LaunchError(
            f"kernel {launch.kernel_name!r} takes {kernel.num_args} arguments, found {len(launch.args)}: "
            f"{', '.join(map(str, launch.args)) or 'none'}; give one for each parameter"
        )
    for position, arg in enumerate(launch.args):
        _set_argument(kernel, launch, position, arg, buffers)
    return kernel


def _set_argument(
    kernel: cl.Kernel,
    launch: Launch,
    position: int,
    arg: BufferArg | ScalarArg | LocalArg,
    buffers: Mapping[int, cl.Buffer],
) -> None:
    value: Any  # pyopencl's type of arguments leaves local memory out
    if isinstance(arg, BufferArg):
        value = buffers[position]
    elif isinstance(arg, LocalArg):
        value = cl.LocalMemory(arg.num_bytes)
    else:
        value = arg.array()
    try:
        kernel.set_arg(position, value)
    except cl.LogicError as error:
        if error.code not in _ARGUMENT_ERRORS:
            raise
        raise LaunchError(
            f"kernel {launch.kernel_name!r}, argument {position}: {arg} does not fit its parameter ({error}); give a "
            "buffer for a __global or __constant pointer, local:DTYPE:COUNT for a __local pointer, and a scalar of the "
            "parameter's own type otherwise"
        ) from error


def enqueue(queue: cl.CommandQueue, kernel: cl.Kernel, launch: Launch) -> cl.Event:
    """Start the kernel over the launch's NDRange."""
    offset = launch.global_offset if any(launch.global_offset) else None
    return cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size, offset)


def event_time_s(event: cl.Event) -> float:
    """Wait for a kernel, and give its time from START to END."""
    event.wait()
    return (event.profile.end - event.profile.start) / NS_PER_S


def replay(launch: Launch, device: cl.Device) -> Replayed:
    """Run a launch once and bring back every buffer.

    Args:
        launch: What to run.
        device: A pyopencl device (see `perfvec.arch.opencl.open_device`).

    Raises:
        SourceError: The source does not compile.
        KernelNotFoundError: It has no such kernel.
        LaunchError: The arguments do not fit the kernel.
        OpenCLError: The device refused the launch, or failed.
    """
    doing = (
        f"running kernel {launch.kernel_name!r} with {format_bytes(launch.buffer_bytes)} of buffers on {device.name}"
    )
    contents = host_buffers(launch)
    with explained(doing):
        context = cl.Context([device])
        queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        program = build_program(context, launch.source, launch.build_options, source_name=launch.source_name)
        buffers = {position: upload(queue, held) for position, held in contents.items()}
        kernel_time_s = event_time_s(enqueue(queue, bind(program, launch, buffers), launch))
        return Replayed(
            outputs={position: download(queue, buffers[position], contents[position]) for position in buffers},
            kernel_time_s=kernel_time_s,
        )


def download(queue: cl.CommandQueue, buffer: cl.Buffer, contents: HostBuffer) -> NDArray[np.generic]:
    """Bring a buffer back as scalars of the type that it was filled with."""
    values = np.empty(contents.num_bytes // contents.block.itemsize, contents.block.dtype)
    cl.enqueue_copy(queue, values, buffer)
    return values
