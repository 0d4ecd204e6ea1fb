"""Front end: OpenCL C to optimised LLVM IR, the same on every machine.

The source is compiled without optimisation by a clang that somebody else maintains, or is LLVM IR already; the
optimisation is ours, a fixed pass pipeline, because the trained model depends on the instructions that it leaves.
`PIPELINE_VERSION` names it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import llvmlite.binding as llvm

from perfvec.errors import KernelNotFoundError, SourceError
from perfvec.launch import is_llvm_ir
from perfvec.program.async_copy import define_async_copies
from perfvec.program.call_graph import check_calls
from perfvec.program.compilers import compile_opencl_c
from perfvec.program.llvm_source import KERNEL_DEFINE, argument_names, disassemble, module_text
from perfvec.program.local_memory import warn_of_unwritten

if TYPE_CHECKING:
    from perfvec.launch import Launch

PIPELINE_VERSION = 1
# Inlining and unrolling follow the cost model of a GPU back end, not that of the machine that traces.
_COST_MODEL_TRIPLE = "nvptx64-nvidia-cuda"
_COST_MODEL_CPU = "sm_70"
_INLINE_THRESHOLD = 100_000  # OpenCL C forbids recursion, and GPU compilers inline every call
_SAMPLER_INITIALISER = re.compile(
    r"(?:tail )?call (?:spir_func )?ptr addrspace\(2\) @__translate_sampler_initializer\(i32 (?:noundef )?(\d+)\)"
    r"(?: #\d+)?"
)


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
    module = compile_source(launch.source, launch.build_options, launch.source_name)
    return keep_kernel(module, launch.kernel_name, optimise=optimise, source_name=launch.source_name)


def compile_source(
    source: str | bytes, build_options: tuple[str, ...] = (), source_name: str = "kernel.cl"
) -> bytes | str:
    """Compile OpenCL C to an unoptimised module in the SPIR-64 form: bitcode. LLVM IR becomes its text.

    Raises:
        SourceError: The source does not compile or cannot be read, or there is no compiler.
    """
    if not is_llvm_ir(source):
        assert isinstance(source, str)
        return compile_opencl_c(source, build_options, source_name)
    if build_options:
        raise SourceError(
            f"{source_name} is LLVM IR, which has been compiled; found the build options {' '.join(build_options)}; "
            "leave them out"
        )
    return source if isinstance(source, str) else disassemble(source, source_name)


def keep_kernel(
    module: bytes | str, kernel_name: str, *, optimise: bool = True, source_name: str = "kernel.cl"
) -> CompiledProgram:
    """Reduce a module to one kernel and what it calls, and optimise it.

    Args:
        module: LLVM bitcode, or textual IR, in the SPIR-64 form.
        kernel_name: The kernel to keep.
        optimise: Run the fixed pass pipeline.
        source_name: What to call the source in messages.

    Raises:
        SourceError: The module cannot be read.
        KernelNotFoundError: It has no such kernel.
        UnsupportedError: The kernel's functions call each other in a ring, or one that has no body.
    """
    text = module_text(module, source_name, kernel_name=kernel_name)
    if kernel_name not in KERNEL_DEFINE.findall(text):
        kernels = kernel_names(module, source_name)
        names = ", ".join(kernels) if kernels else "none"
        raise KernelNotFoundError(f"no kernel {kernel_name!r} in the program; its kernels are: {names}")
    check_calls(text, kernel_name, source_name)
    warn_of_unwritten(text, source_name)
    try:
        kept = llvm.parse_assembly(_prepare(text, kernel_name, inline_all=not optimise))
        kept.verify()
    except RuntimeError as error:
        raise SourceError(f"{source_name} is not sound LLVM IR: {error}; look at how it was made") from error
    for argument, name in zip(
        kept.get_function(kernel_name).arguments, argument_names(text, kernel_name), strict=False
    ):
        argument.name = argument.name or name
    _run_pipeline(kept, optimise=optimise)
    return CompiledProgram(ir=str(kept), kernel_name=kernel_name, is_optimised=optimise)


def kernel_names(module: bytes | str, source_name: str = "kernel.cl") -> tuple[str, ...]:
    """Names of a module's kernels.

    Raises:
        SourceError: The module cannot be read.
    """
    return tuple(KERNEL_DEFINE.findall(module_text(module, source_name)))


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


def _run_pipeline(module: llvm.ModuleRef, *, optimise: bool) -> None:
    llvm.initialize_all_targets()
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
