"""OpenCL built-ins that only compute a value: their names, opcode classes, and definitions for the host in LLVM IR."""

from perfvec.program.builtins.cl_types import ClType, OpaqueType, PointerType, Scalar, ValueType
from perfvec.program.builtins.define import define_builtins, defined_name
from perfvec.program.builtins.demangle import Demangled, demangle
from perfvec.program.builtins.table import classify_builtin, has_pointer_result, is_value_builtin

__all__ = [
    "ClType",
    "Demangled",
    "OpaqueType",
    "PointerType",
    "Scalar",
    "ValueType",
    "classify_builtin",
    "define_builtins",
    "defined_name",
    "demangle",
    "has_pointer_result",
    "is_value_builtin",
]
