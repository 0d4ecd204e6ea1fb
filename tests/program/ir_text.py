"""Kernels for tests, straight from LLVM IR."""

from __future__ import annotations

from perfvec.program.ir import KernelIR, parse_kernel


def kernel_from_ir(body: str, parameters: str = "", *, before: str = "") -> KernelIR:
    """Read a kernel `k` with this body and these parameters."""
    return parse_kernel(
        f"{before}\ndefine spir_kernel void @k({parameters}) #0 {{\n{body}\n}}\n", "k", is_optimised=True
    )
