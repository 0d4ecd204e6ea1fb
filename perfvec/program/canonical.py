"""A kernel's LLVM IR in the form that is easiest to reason about: in SSA form, all calls inlined, loops as written."""

from __future__ import annotations

import llvmlite.binding as llvm

from perfvec.program.frontend import keep_kernel
from perfvec.program.ir import KernelIR, parse_kernel


def canonical_kernel(bitcode: bytes | str, kernel_name: str) -> KernelIR:
    """Reduce a module to one kernel for analysis.

    Args:
        bitcode: LLVM bitcode, or textual IR, in the SPIR-64 form.
        kernel_name: The kernel to keep.

    Raises:
        SourceError: The module cannot be read.
        KernelNotFoundError: It has no such kernel.
        UnsupportedError: It uses something that is not OpenCL C.
    """
    module = llvm.parse_assembly(keep_kernel(bitcode, kernel_name, optimise=False).ir)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_new_gvn_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_simplify_pass()
    passes.add_instruction_namer_pass()
    target = llvm.Target.from_triple(llvm.get_default_triple()).create_target_machine()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1)))
    return parse_kernel(str(module), kernel_name, is_optimised=False)
