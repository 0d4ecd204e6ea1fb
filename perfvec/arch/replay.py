"""Run a launch on an OpenCL device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast, final

import numpy as np
import pyopencl as cl

# The public Program.build adds options of its own, warns about build logs that are not empty, and may keep a cache
# on disk that threads and processes contend for. Its public enqueue_copy knows no one-dimensional images.
from pyopencl._cl import (
    _enqueue_copy_buffer_to_image,
    _enqueue_copy_image_to_buffer,
    _enqueue_read_image,
    _enqueue_write_image,
    _Program,
)

from perfvec.arguments import Argument, BufferArg, ElementType, ImageArg, LocalArg, SamplerArg, ScalarArg
from perfvec.errors import DeviceMemoryError, KernelNotFoundError, LaunchError, OpenCLError, SourceError
from perfvec.launch import Launch, is_llvm_ir
from perfvec.units import NS_PER_S, format_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BUILD_LOG_SHOWN = 4000
# Also one from a pool, which may be longer than was asked for.
DeviceBuffer: TypeAlias = cl.Buffer
DeviceMemory: TypeAlias = DeviceBuffer | cl.Image
_MEMORY_ERRORS = (cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, cl.status_code.INVALID_BUFFER_SIZE)
_ARGUMENT_ERRORS = (
    cl.status_code.INVALID_ARG_SIZE,
    cl.status_code.INVALID_ARG_VALUE,
    cl.status_code.INVALID_MEM_OBJECT,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostBuffer:
    """The contents of a buffer before they go to the device: a block that repeats until the buffer is full.

    An image's contents are its texels without padding, in one block; `image` says how they are laid out. Of two blocks
    with one `key`, the shorter is the beginning of the longer; "" where nothing is known of others.
    """

    block: NDArray[np.generic]
    num_bytes: int
    image: ImageArg | None = None
    key: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a launch left behind.

    Attributes:
        outputs: Contents of every buffer and image afterwards, by the argument's position.
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
        DeviceMemoryError: The device has too little memory.
        OpenCLError: The block raised another pyopencl error.
    """
    try:
        yield
    except cl.Error as error:
        if isinstance(error, cl.MemoryError) or getattr(error, "code", None) in _MEMORY_ERRORS:
            raise DeviceMemoryError(
                f"{doing} failed: {error}. It needs more memory than the device gives; take smaller buffers."
            ) from error
        raise OpenCLError(
            f"{doing} failed: {error}. A kernel that reaches outside its buffers, or is too large for the device, "
            "ends like this; look at the buffer sizes and the local size."
        ) from error


def build_program(
    context: cl.Context, source: str | bytes, build_options: Sequence[str] = (), *, source_name: str = "kernel.cl"
) -> cl.Program:
    """Compile OpenCL C for the context's device; may be called from several threads.

    Raises:
        SourceError: It does not compile; the message has the compiler's. Or it is LLVM IR, which few drivers take.
    """
    if is_llvm_ir(source):
        raise SourceError(f"{source_name} is LLVM IR; a device runs OpenCL C: give the source that it was made from")
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


def host_buffer(arg: BufferArg | ImageArg) -> HostBuffer:
    """Generate the contents of a buffer, as one period where they repeat, or of an image."""
    if isinstance(arg, ImageArg):
        return HostBuffer(block=arg.contents.array(), num_bytes=arg.contents.num_bytes, image=arg)
    if arg.data is None and arg.initialiser.name == "constant":  # its period is one scalar
        return HostBuffer(block=replace(arg, element=_scalar_of(arg), count=1).array(), num_bytes=arg.num_bytes)
    return HostBuffer(block=arg.one_period().array(), num_bytes=arg.num_bytes)


def _scalar_of(arg: BufferArg) -> ElementType:
    return ElementType(scalar=arg.element.scalar)


def host_buffers(launch: Launch) -> dict[int, HostBuffer]:
    """Generate the contents of all buffers and images of a launch, by the argument's position."""
    return {i: host_buffer(arg) for i, arg in enumerate(launch.args) if isinstance(arg, BufferArg | ImageArg)}


def host_bytes(launch: Launch) -> int:
    """Host memory that `host_buffers` takes."""
    images = sum(arg.contents.num_bytes for arg in launch.args if isinstance(arg, ImageArg))
    return images + sum(arg.one_period().num_bytes for arg in launch.args if isinstance(arg, BufferArg))


def upload(
    queue: cl.CommandQueue, contents: HostBuffer, allocate: Callable[[int], DeviceBuffer] | None = None
) -> DeviceMemory:
    """Make a device buffer or image and fill it.

    Args:
        queue: Of the device.
        contents: What it shall hold.
        allocate: Gives a buffer of so many bytes or more; a new one where it is None.
    """
    if contents.image is not None:
        image = _make_image(queue.context, contents.image)
        _enqueue_write_image(queue, image, _ORIGIN, _region(contents.image), contents.block)
        return image
    if allocate is None:
        buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, contents.num_bytes)
    else:
        buffer = allocate(contents.num_bytes)
    fill(queue, buffer, contents)
    return buffer


def fill(
    queue: cl.CommandQueue, buffer: DeviceBuffer, contents: HostBuffer, source: DeviceBuffer | None = None
) -> None:
    """Fill a device buffer: its block travels once and is doubled on the device.

    Args:
        queue: Of the device.
        buffer: Has room for the contents.
        contents: What it shall hold; no image.
        source: A buffer on the device that begins with the block, which then need not travel.
    """
    if contents.block.size == 1:
        cl.enqueue_fill_buffer(queue, buffer, contents.block, 0, contents.num_bytes)  # pyright: ignore[reportArgumentType]
        return
    filled = min(contents.block.nbytes, contents.num_bytes)
    if source is None:
        cl.enqueue_copy(queue, buffer, contents.block)
    else:
        cl.enqueue_copy(queue, buffer, source, byte_count=filled)
    while filled < contents.num_bytes:
        count = min(filled, contents.num_bytes - filled)
        cl.enqueue_copy(queue, buffer, buffer, byte_count=count, src_offset=0, dst_offset=filled)
        filled += count


_ORIGIN = (0, 0, 0)


def _region(arg: ImageArg) -> tuple[int, ...]:
    return (*arg.size, 1, 1)[:3]


def _make_image(context: cl.Context, arg: ImageArg) -> cl.Image:
    flags = cl.mem_flags.READ_WRITE
    return cl.create_image(
        context,
        flags,
        cl.ImageFormat(arg.format.opencl_order, arg.format.opencl_type),
        shape=arg.size,
        is_array=arg.kind.endswith("_array"),
        buffer=cl.Buffer(context, flags, arg.contents.num_bytes) if arg.kind.endswith("_buffer") else None,
    )


def make_kernel(program: cl.Program, launch: Launch) -> cl.Kernel:
    """The kernel of a launch, without arguments.

    Raises:
        KernelNotFoundError: The program has no kernel of that name.
    """
    names = str(program.get_info(cl.program_info.KERNEL_NAMES)).split(";")
    if launch.kernel_name not in names:
        raise KernelNotFoundError(
            f"{launch.source_name} has no kernel {launch.kernel_name!r}; it has {', '.join(sorted(names)) or 'none'}"
        )
    return cl.Kernel(program, launch.kernel_name)


def bind(kernel: cl.Kernel, launch: Launch, buffers: Mapping[int, DeviceMemory]) -> None:
    """Set all arguments of the launch's kernel.

    Raises:
        LaunchError: The arguments do not fit the kernel's parameters in number, size or kind.
    """
    if kernel.num_args != len(launch.args):
        raise LaunchError(
            f"kernel {launch.kernel_name!r} takes {kernel.num_args} arguments, found {len(launch.args)}: "
            f"{', '.join(map(str, launch.args)) or 'none'}; give one for each parameter"
        )
    for position, arg in enumerate(launch.args):
        _set_argument(kernel.context, kernel, launch, position, arg, buffers)


def _set_argument(
    context: cl.Context,
    kernel: cl.Kernel,
    launch: Launch,
    position: int,
    arg: Argument,
    buffers: Mapping[int, DeviceMemory],
) -> None:
    value: Any  # pyopencl's type of arguments leaves local memory out
    if isinstance(arg, ScalarArg):
        value = arg.array()
    elif isinstance(arg, LocalArg):
        value = cl.LocalMemory(arg.num_bytes)
    elif isinstance(arg, SamplerArg):
        addressing = getattr(cl.addressing_mode, arg.addressing.upper())
        value = cl.Sampler(context, arg.is_normalized, addressing, getattr(cl.filter_mode, arg.filter.upper()))
    else:
        value = buffers[position]
    try:
        kernel.set_arg(position, value)
    except cl.LogicError as error:
        if error.code not in _ARGUMENT_ERRORS:
            raise
        raise LaunchError(
            f"kernel {launch.kernel_name!r}, argument {position}: {arg} does not fit its parameter ({error}); give a "
            "buffer for a __global or __constant pointer, local:DTYPE:COUNT for a __local pointer, an image of its "
            "kind or a sampler for such a parameter, and a scalar of the parameter's own type otherwise"
        ) from error


def is_read_only(kernel: cl.Kernel, position: int) -> bool:
    """Whether a parameter is a pointer to `const` or `__constant`; false where the driver does not tell."""
    try:
        qualifier = kernel.get_arg_info(position, cl.kernel_arg_info.TYPE_QUALIFIER)
        space = kernel.get_arg_info(position, cl.kernel_arg_info.ADDRESS_QUALIFIER)
    except (cl.Error, RuntimeError):  # pyopencl raises the latter without words
        return False
    is_const = bool(cast("int", qualifier) & cl.kernel_arg_type_qualifier.CONST)
    return is_const or space == cl.kernel_arg_address_qualifier.CONSTANT


def enqueue(queue: cl.CommandQueue, kernel: cl.Kernel, launch: Launch) -> cl.Event:
    """Start the kernel over the launch's NDRange."""
    offset = launch.global_offset if any(launch.global_offset) else None
    return cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size, offset)


def event_time_s(event: cl.Event) -> float:
    """Wait for a kernel, and give its time from START to END."""
    event.wait()
    begun = cast("int", event.get_profiling_info(cl.profiling_info.START))
    return (cast("int", event.get_profiling_info(cl.profiling_info.END)) - begun) / NS_PER_S


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
        kernel = make_kernel(program, launch)
        bind(kernel, launch, buffers)
        kernel_time_s = event_time_s(enqueue(queue, kernel, launch))
        return Replayed(
            outputs={position: download(queue, buffers[position], contents[position]) for position in buffers},
            kernel_time_s=kernel_time_s,
        )


def download(queue: cl.CommandQueue, buffer: DeviceMemory, contents: HostBuffer) -> NDArray[np.generic]:
    """Bring a buffer or image back as scalars of the type that it was filled with."""
    values = np.empty(contents.num_bytes // contents.block.itemsize, contents.block.dtype)
    if contents.image is None:
        cl.enqueue_copy(queue, values, cast("cl.Buffer", buffer))
    else:
        assert isinstance(buffer, cl.Image)
        _enqueue_read_image(queue, buffer, _ORIGIN, _region(contents.image), values)
    return values


def copy_out(queue: cl.CommandQueue, target: DeviceBuffer, source: DeviceMemory, contents: HostBuffer) -> None:
    """Copy a buffer or an image's texels into a buffer, on the device."""
    if contents.image is None:
        cl.enqueue_copy(queue, target, cast("cl.Buffer", source), byte_count=contents.num_bytes)
    else:
        _enqueue_copy_image_to_buffer(queue, source, target, _ORIGIN, _region(contents.image), 0)


def copy_back(queue: cl.CommandQueue, target: DeviceMemory, source: DeviceBuffer, contents: HostBuffer) -> None:
    """Copy back what `copy_out` copied."""
    if contents.image is None:
        cl.enqueue_copy(queue, cast("cl.Buffer", target), source, byte_count=contents.num_bytes)
    else:
        _enqueue_copy_buffer_to_image(queue, source, target, 0, _ORIGIN, _region(contents.image))
