"""The executors under test: PerfVec's own, and the OpenCL platforms beside it."""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from experiments.conformance.reader import Buffer, Image, KernelTest, ProgramFile, Sampler, TestArgument, Value
from perfvec.arguments import Argument, BufferArg, ElementType, ImageArg, LocalArg, SamplerArg, ScalarArg, texel_element
from perfvec.image_format import ImageFormat
from perfvec.initialisers import Initialiser
from perfvec.launch import MAX_LOCAL_SIZE, Launch, default_local_size

if TYPE_CHECKING:
    import pyopencl as cl

    from perfvec.program.machine_code import CompiledKernel


class BuildError(Exception):
    """The program does not build."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a device is able to do, as far as tests ask.

    Attributes:
        name: The device's name.
        version: Greatest version of OpenCL C, times ten.
        extensions: Names of its extensions.
        max_local_size: Most work-items of a work-group.
        has_images: Whether it has images.
    """

    name: str
    version: int
    extensions: frozenset[str]
    max_local_size: int
    has_images: bool


class AbstractProgram(ABC):
    """A program that has been built."""

    @abstractmethod
    def run(self, test: KernelTest) -> Mapping[int, bytes]:
        """Run a test's kernel once; what its buffers and images hold afterwards, by argument."""


class AbstractExecutor(ABC):
    """Something that builds and runs OpenCL programs."""

    @abstractmethod
    def traits(self) -> Traits:
        """What its device is able to do."""

    @abstractmethod
    def build(self, file: ProgramFile) -> AbstractProgram:
        """Build a program.

        Raises:
            BuildError: It does not build.
        """


def build_options(file: ProgramFile, version: int) -> str:
    """The test's options, and the version of OpenCL C that the tests are to be compiled as."""
    version = min(version, file.version_max or version)
    is_told = version <= 10 or "-cl-std" in file.build_options
    return file.build_options if is_told else f"{file.build_options} -cl-std=CL{version // 10}.{version % 10}".strip()


# ---- ours -------------------------------------------------------------------------------------------------------

_VERSION = 12
_EXTENSIONS = frozenset(
    (
        "cl_khr_fp16", "cl_khr_fp64", "cl_khr_global_int32_base_atomics", "cl_khr_global_int32_extended_atomics",
        "cl_khr_local_int32_base_atomics", "cl_khr_local_int32_extended_atomics", "cl_khr_int64_base_atomics",
        "cl_khr_int64_extended_atomics", "cl_khr_byte_addressable_store",
    )
)  # fmt: skip


@final
class PerfVecExecutor(AbstractExecutor):
    """The tracer's executor; it adds `padding_bytes` of zeros to each buffer."""

    def __init__(self, *, padding_bytes: int = 0) -> None:
        self._padding_bytes = padding_bytes

    def traits(self) -> Traits:
        """What it says it can do."""
        return Traits(
            name="PerfVec", version=_VERSION, extensions=_EXTENSIONS, max_local_size=MAX_LOCAL_SIZE, has_images=True
        )

    def build(self, file: ProgramFile) -> AbstractProgram:
        """Compile the program; where no test does, translate each of its kernels as well.

        Raises:
            BuildError: The front end refuses it.
        """
        from perfvec.errors import SourceError
        from perfvec.program.frontend import compile_source, kernel_names

        options = tuple(shlex.split(build_options(file, _VERSION)))
        try:
            bitcode = compile_source(file.source, options)
            program = _PerfVecProgram(bitcode, self._padding_bytes)
            if not file.tests:
                for name in kernel_names(bitcode):
                    program.kernel(name)
        except SourceError as error:
            raise BuildError(str(error)) from error
        return program


@final
class _PerfVecProgram(AbstractProgram):
    def __init__(self, bitcode: bytes, padding_bytes: int) -> None:
        self._bitcode, self._padding_bytes = bitcode, padding_bytes
        self.kernel = cache(self._compile)

    def _compile(self, name: str) -> CompiledKernel:
        from perfvec.program.frontend import keep_kernel
        from perfvec.program.ir import parse_kernel
        from perfvec.program.machine_code import CompiledKernel
        from perfvec.program.native import translate

        return CompiledKernel(translate(parse_kernel(keep_kernel(self._bitcode, name).ir, name, is_optimised=True)))

    def run(self, test: KernelTest) -> Mapping[int, bytes]:
        """Run all work-groups."""
        from perfvec.program.executor import Execution

        kernel = self.kernel(test.kernel_name)
        spaces = [parameter.type for parameter in kernel.native.kernel.parameters]
        args = _launch_arguments(test, self._padding_bytes)
        launch = Launch(
            source="",
            kernel_name=test.kernel_name,
            args=tuple(_as_local(arg) if spaces[i : i + 1] == ["ptr addrspace(3)"] else arg for i, arg in args),
            global_size=test.global_size[: test.dimensions],
            local_size=(test.local_size or default_local_size(test.global_size))[: test.dimensions],
            global_offset=(test.global_offset or ())[: test.dimensions],
        )
        execution = Execution(kernel, launch)
        execution.run(range(execution.num_work_groups))
        padded = {argument.index for argument in (*test.inputs, *test.outputs) if _is_padded(argument)}
        return {
            index: array.tobytes()[: array.nbytes - (self._padding_bytes if index in padded else 0)]
            for index, array in execution.results().items()
        }


def _is_padded(argument: TestArgument) -> bool:
    return isinstance(argument, Buffer) and argument.data is not None


def _launch_arguments(test: KernelTest, padding_bytes: int) -> list[tuple[int, Argument]]:
    """The arguments in order; what is only an output starts as zeros."""
    inputs: dict[int, TestArgument] = {argument.index: argument for argument in test.inputs}
    outputs = {argument.index: argument for argument in test.outputs if argument.index not in inputs}
    found = {index: _as_argument(argument, padding_bytes) for index, argument in inputs.items()}
    found |= {index: _as_argument(argument, padding_bytes, is_cleared=True) for index, argument in outputs.items()}
    return sorted(found.items(), key=lambda pair: pair[0])


def _as_argument(argument: TestArgument, padding_bytes: int, *, is_cleared: bool = False) -> Argument:
    if isinstance(argument, Value):
        values = tuple(argument.data[: argument.element.width].tolist())
        return ScalarArg(element=argument.element, values=values)
    if isinstance(argument, Buffer):
        padding = padding_bytes if _is_padded(argument) else 0
        return _contents(argument, argument.element, is_cleared=is_cleared, padding_bytes=padding)
    if isinstance(argument, Image):
        image_format = ImageFormat.parse(f"{argument.channel_order}_{argument.channel_type}".lower())
        return ImageArg(
            kind="image2d",
            format=image_format,
            size=(argument.width, argument.height),
            contents=_contents(argument, texel_element(image_format), is_cleared=is_cleared),
        )
    return SamplerArg(
        addressing=argument.addressing.lower(), filter=argument.filter.lower(), is_normalized=argument.is_normalized
    )


def _contents(argument: Buffer | Image, element: ElementType, *, is_cleared: bool, padding_bytes: int = 0) -> BufferArg:
    data = None if argument.data is None or is_cleared else argument.data.tobytes() + bytes(padding_bytes)
    count = argument.count + padding_bytes // element.num_bytes
    return BufferArg(element=element, count=count, initialiser=Initialiser(name="constant"), data=data)


def _as_local(argument: Argument) -> Argument:
    assert isinstance(argument, BufferArg)
    return LocalArg(element=argument.element, count=argument.count)


# ---- OpenCL platforms -------------------------------------------------------------------------------------------

_NULL_BYTES = 8  # size of a buffer's handle: the test format passes it for null pointers and local memory alike


@final
class OpenCLExecutor(AbstractExecutor):
    """The first device of an installed OpenCL platform; it adds `padding_bytes` of zeros to each buffer."""

    def __init__(self, platform_name: str, *, padding_bytes: int = 0) -> None:
        import pyopencl as cl

        platform = next(p for p in cl.get_platforms() if p.name == platform_name)
        self._device = platform.get_devices()[0]
        self._context = cl.Context([self._device])
        self._padding_bytes = padding_bytes

    def traits(self) -> Traits:
        """What the device says of itself."""
        match = re.search(r"OpenCL C (\d)\.(\d)", self._device.opencl_c_version)
        assert match is not None
        return Traits(
            name=self._device.name,
            version=10 * int(match[1]) + int(match[2]),
            extensions=frozenset(self._device.extensions.split()),
            max_local_size=self._device.max_work_group_size,
            has_images=bool(self._device.image_support),
        )

    def build(self, file: ProgramFile) -> AbstractProgram:
        """Compile the program.

        Raises:
            BuildError: The platform refuses it.
        """
        from perfvec.arch.replay import build_program
        from perfvec.errors import SourceError

        try:
            program = build_program(self._context, file.source, (build_options(file, self.traits().version),))
        except SourceError as error:
            raise BuildError(str(error)) from error
        return _OpenCLProgram(self._context, program, self._padding_bytes)


@final
class _OpenCLProgram(AbstractProgram):
    def __init__(self, context: cl.Context, program: cl.Program, padding_bytes: int) -> None:
        import pyopencl as cl

        self._context, self._program = context, program
        self._padding = np.zeros(padding_bytes, np.uint8)
        self._queue = cl.CommandQueue(context)

    def run(self, test: KernelTest) -> Mapping[int, bytes]:
        """Run the kernel as the test format's own tester does."""
        import pyopencl as cl

        kernel = cl.Kernel(self._program, test.kernel_name)
        memories: dict[int, Any] = {}
        values: dict[int, Any] = {}
        inputs = {argument.index for argument in test.inputs}
        for argument in (*test.inputs, *(o for o in test.outputs if o.index not in inputs)):
            is_cleared = argument.index not in inputs
            values[argument.index] = self._bind(argument, is_cleared=is_cleared)
            if isinstance(argument, Buffer | Image) and argument.data is not None:
                memories[argument.index] = values[argument.index]
        for index, value in values.items():
            kernel.set_arg(index, value)
        dims = test.dimensions
        local = None if test.local_size is None else test.local_size[:dims]
        offset = None if test.global_offset is None else test.global_offset[:dims]
        cl.enqueue_nd_range_kernel(self._queue, kernel, test.global_size[:dims], local, offset).wait()
        return {output.index: self._read(memories[output.index], output) for output in test.outputs}

    def _bind(self, argument: TestArgument, *, is_cleared: bool) -> Any:
        import pyopencl as cl

        if isinstance(argument, Value):
            return argument.data
        if isinstance(argument, Sampler):
            return cl.Sampler(
                self._context,
                argument.is_normalized,
                getattr(cl.addressing_mode, argument.addressing),
                getattr(cl.filter_mode, argument.filter),
            )
        if argument.data is None:
            return cl.LocalMemory(_NULL_BYTES)
        data = np.zeros_like(argument.data) if is_cleared else argument.data
        flags: Any = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        if isinstance(argument, Buffer):
            return cl.Buffer(self._context, flags, hostbuf=np.concatenate([data.view(np.uint8), self._padding]))
        form = cl.ImageFormat(
            getattr(cl.channel_order, argument.channel_order), getattr(cl.channel_type, argument.channel_type)
        )
        return cl.Image(self._context, flags, form, shape=(argument.width, argument.height), hostbuf=data)

    def _read(self, memory: Any, output: Buffer | Image) -> bytes:
        import pyopencl as cl

        assert output.data is not None
        found = np.empty_like(output.data)
        if isinstance(output, Buffer):
            cl.enqueue_copy(self._queue, found, memory)
        else:
            cl.enqueue_copy(self._queue, found, memory, origin=(0, 0), region=(output.width, output.height))
        return found.tobytes()


PLATFORMS = {"oclgrind": "Oclgrind", "pocl": "Portable Computing Language"}
EXECUTORS: dict[str, Callable[..., AbstractExecutor]] = {
    "ours": PerfVecExecutor,
    **{name: partial(OpenCLExecutor, platform) for name, platform in PLATFORMS.items()},
}


def is_installed(executor: str) -> bool:
    """Whether an executor can run here."""
    import pyopencl as cl

    try:
        return executor not in PLATFORMS or PLATFORMS[executor] in [platform.name for platform in cl.get_platforms()]
    except cl.Error:
        return False
