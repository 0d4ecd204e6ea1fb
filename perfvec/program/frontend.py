"""Front end: OpenCL C to optimised LLVM IR, the same on every machine.

The source is compiled without optimisation by a clang that somebody else maintains; the optimisation is ours, a fixed
pass pipeline, because the trained model depends on the instructions that it leaves. `PIPELINE_VERSION` names it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, final

import llvmlite.binding as llvm

from perfvec.errors import KernelNotFoundError, SourceError
from perfvec.program.async_copy import define_async_copies

if TYPE_CHECKING:
    from perfvec.launch import Launch

PIPELINE_VERSION = 1
_OCLGRIND_PLATFORM = "Oclgrind"
# Inlining and unrolling follow the cost model of a GPU back end, not that of the machine that traces.
_COST_MODEL_TRIPLE = "nvptx64-nvidia-cuda"
_COST_MODEL_CPU = "sm_70"
_INLINE_THRESHOLD = 100_000  # OpenCL C forbids recursion, and GPU compilers inline every call
# Oclgrind's clang dies of inline assembly; so it becomes a call of a function whose name says what is wrong.
_NO_ASSEMBLY = tuple(f"-D{word}=inline_assembly_is_not_OpenCL_C" for word in ("asm", "__asm", "__asm__"))
FrontEnd: TypeAlias = Callable[[str, tuple[str, ...], str], bytes]
_SAMPLER_INITIALISER = re.compile(
    r"(?:tail )?call (?:spir_func )?ptr addrspace\(2\) @__translate_sampler_initializer\(i32 (?:noundef )?(\d+)\)"
    r"(?: #\d+)?"
)
_KERNEL_DEFINE = re.compile(r"^define .*?\bspir_kernel\b[^@]*@([\w$.]+)\(", re.MULTILINE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """A program in textual LLVM IR, one kernel of it kept."""

    ir: str
    kernel_name: str
    is_optimised: bool


def compile_kernel(launch: Launch, *, optimise: bool = True) -> CompiledProgram:
    """Compile the kernel of a launch to LLVM IR in the SPIR-64 form.

    Args:
        launch: Source, build options and kernel name are used.
        optimise: Run the fixed pass pipeline; without it the IR is what clang emits at -O0, calls inlined.

    Raises:
        SourceError: The source does not compile; the message is clang's.
        KernelNotFoundError: The program has no such kernel; the message names those it has.
    """
    bitcode = compile_source(launch.source, launch.build_options, launch.source_name)
    return keep_kernel(bitcode, launch.kernel_name, optimise=optimise)


def compile_source(source: str, build_options: tuple[str, ...] = (), source_name: str = "kernel.cl") -> bytes:
    """Compile OpenCL C to unoptimised SPIR-64 bitcode with the first front end that is there.

    Raises:
        SourceError: The source does not compile, or there is no front end.
    """
    for find in (_oclgrind_front_end, _clang_front_end):
        front_end = find()
        if front_end is not None:
            return front_end(source, build_options, source_name)
    raise SourceError(
        "no OpenCL C front end: install Oclgrind's wheel (pip install 'pyopencl[oclgrind]', x86-64 Linux) "
        "or put clang on the PATH"
    )


@cache
def _oclgrind_front_end() -> FrontEnd | None:
    try:
        import pyopencl as cl

        platform = next(p for p in cl.get_platforms() if p.name == _OCLGRIND_PLATFORM)
    except (ImportError, StopIteration):
        return None
    except Exception:  # pyopencl raises LogicError where no platform at all is registered
        return None
    context = cl.Context(platform.get_devices())

    def compile_with_oclgrind(source: str, build_options: tuple[str, ...], source_name: str) -> bytes:
        # The plain program: pyopencl's own build() adds options, a cache and a constant that changes each time.
        program = cl._cl._Program(context, source)  # pyright: ignore
        options = ("-cl-opt-disable", *_NO_ASSEMBLY, *build_options)
        try:
            with _silenced_stderr():
                program._build(" ".join(options).encode(), context.devices)
        except cl.RuntimeError as error:
            log = str(program.get_build_info(context.devices[0], cl.program_build_info.LOG)).strip("\x00\n ")
            raise SourceError(f"{source_name} does not compile:\n{log.replace('input.cl', source_name)}") from error
        binaries: list[bytes] = program.get_info(cl.program_info.BINARIES)  # pyright: ignore
        return binaries[0]

    return compile_with_oclgrind


@contextmanager
def _silenced_stderr() -> Iterator[None]:
    """Keep the compiler's own count of errors off the terminal: the message that is raised has them all."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@cache
def _clang_front_end() -> FrontEnd | None:
    clang = shutil.which("clang")
    if clang is None:
        return None

    def compile_with_clang(source: str, build_options: tuple[str, ...], source_name: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="perfvec-") as folder:
            path = Path(folder) / "kernel.cl"
            path.write_text(source, encoding="utf-8")
            output = Path(folder) / "kernel.bc"
            command = [
                clang, "-x", "cl", "-cl-std=CL1.2", "-O0", "-gline-tables-only", "-emit-llvm", "-c",
                "-target", "spir64-unknown-unknown", "-Xclang", "-finclude-default-header",
                *_NO_ASSEMBLY, *build_options, str(path), "-o", str(output),
            ]  # fmt: skip
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                raise SourceError(f"{source_name} does not compile:\n{result.stderr.replace(str(path), source_name)}")
            return output.read_bytes()

    return compile_with_clang


def keep_kernel(bitcode: bytes | str, kernel_name: str, *, optimise: bool = True) -> CompiledProgram:
    """Reduce a module to one kernel and what it calls, and optimise it.

    Args:
        bitcode: LLVM bitcode, or textual IR, in the SPIR-64 form.
        kernel_name: The kernel to keep.
        optimise: Run the fixed pass pipeline.

    Raises:
        SourceError: The module cannot be read.
        KernelNotFoundError: It has no such kernel.
    """
    text = _module_text(bitcode, f"kernel {kernel_name!r}")
    kernels = _KERNEL_DEFINE.findall(text)
    if kernel_name not in kernels:
        names = ", ".join(kernels) if kernels else "none"
        raise KernelNotFoundError(f"no kernel {kernel_name!r} in the program; its kernels are: {names}")
    module = llvm.parse_assembly(_prepare(text, kernel_name, inline_all=not optimise))
    module.verify()
    _run_pipeline(module, optimise=optimise)
    return CompiledProgram(ir=str(module), kernel_name=kernel_name, is_optimised=optimise)


def kernel_names(bitcode: bytes | str) -> tuple[str, ...]:
    """Names of a module's kernels.

    Raises:
        SourceError: The module cannot be read.
    """
    return tuple(_KERNEL_DEFINE.findall(_module_text(bitcode, "the program")))


def _module_text(bitcode: bytes | str, what: str) -> str:
    _set_options()
    llvm.initialize_all_targets()
    try:
        return str(llvm.parse_assembly(bitcode) if isinstance(bitcode, str) else llvm.parse_bitcode(bitcode))
    except RuntimeError as error:
        raise SourceError(f"cannot read the LLVM module of {what}: {error}") from error


def _prepare(text: str, kernel_name: str, *, inline_all: bool) -> str:
    """Let every function but the kernel be inlined and dropped, and let all be optimised."""
    text = define_async_copies(text)
    # A sampler that the program declares is the bits that it is made from.
    text = re.sub(_SAMPLER_INITIALISER, r"inttoptr i64 \1 to ptr addrspace(2)", text)
    text = re.sub(
        r"^attributes #\d+ = \{.*$",
        lambda m: re.sub(r" (noinline|optnone|minsize|optsize)\b", "", m[0]),
        text,
        flags=re.MULTILINE,
    )
    # Kernels may be called like other functions.
    text = re.sub(r"^(define|.*\bcall\b)(.*?)\bspir_kernel\b", r"\1\2spir_func", text, flags=re.MULTILINE)

    def internal(match: re.Match[str]) -> str:
        if match[1] == kernel_name:
            return match[0]
        line = re.sub(
            r"^define (dso_local |internal |linkonce_odr |weak_odr |available_externally )*",
            "define internal ",
            match[0],
        )
        # Not by llvmlite's tuning option: it keeps the lowest byte of a threshold.
        word = "alwaysinline" if inline_all else f'"function-inline-threshold"="{_INLINE_THRESHOLD}"'
        return re.sub(r"(?= #\d+ )", f" {word}", line, count=1)

    return re.sub(r"^define [^@]*@([\w$.]+)\(.*$", internal, text, flags=re.MULTILINE)


@cache
def _set_options() -> None:
    """LLVM's own switches, which hold for the process and may be set only once."""
    # It would turn loops that compute a CRC into a table; GPU compilers do not.
    llvm.set_option("perfvec", "-disable-loop-idiom-all")
    # It would end the process on reading a kernel that calls a kernel, which newer LLVM forbids and `_prepare` mends.
    llvm.set_option("perfvec", "-disable-auto-upgrade-debug-info")
    # The inliner would give up on a long function before it looks at that function's own threshold.
    llvm.set_option("perfvec", "-inline-cost-full")


def _run_pipeline(module: llvm.ModuleRef, *, optimise: bool) -> None:
    target = llvm.Target.from_triple(_COST_MODEL_TRIPLE).create_target_machine(cpu=_COST_MODEL_CPU, opt=2)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(target, options)
    passes = llvm.create_new_module_pass_manager()
    if optimise:
        builder.getModulePassManager().run(module, builder)
    else:
        passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_instruction_namer_pass()
    passes.run(module, builder)
