"""async_work_group_copy as GPUs' own libraries have it: the work-items of a group copy in turns, then all wait."""

from __future__ import annotations

import re

from perfvec.errors import UnsupportedError
from perfvec.program.builtins import PointerType, ValueType, demangle

_DECLARATION = re.compile(r"^declare .*@(_Z\d+async_work_group_(?:strided_)?copy\w+)\(.*$", re.MULTILINE)
_WAIT = re.compile(r"^(.*\bcall\b.*)@_Z17wait_group_events\w+\(.*?\)(?=,| #|$)", re.MULTILINE)
_HELPERS = {
    "_Z7barrierj": "declare spir_func void @_Z7barrierj(i32) convergent nounwind",
    "_Z12get_local_idj": "declare spir_func i64 @_Z12get_local_idj(i32) nounwind willreturn memory(none)",
    "_Z14get_local_sizej": "declare spir_func i64 @_Z14get_local_sizej(i32) nounwind willreturn memory(none)",
}
_DEFINITION = """\
define internal spir_func ptr @{name}({target} %target, {source} %source, i64 %count{stride}, ptr %e) {attributes} {{
entry:
  %id.0 = call spir_func i64 @_Z12get_local_idj(i32 0)
  %id.1 = call spir_func i64 @_Z12get_local_idj(i32 1)
  %id.2 = call spir_func i64 @_Z12get_local_idj(i32 2)
  %size.0 = call spir_func i64 @_Z14get_local_sizej(i32 0)
  %size.1 = call spir_func i64 @_Z14get_local_sizej(i32 1)
  %size.2 = call spir_func i64 @_Z14get_local_sizej(i32 2)
  %row = mul i64 %id.2, %size.1
  %rows = add i64 %row, %id.1
  %before = mul i64 %rows, %size.0
  %first = add i64 %before, %id.0
  %plane = mul i64 %size.0, %size.1
  %step = mul i64 %plane, %size.2
  br label %head
head:
  %i = phi i64 [ %first, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %far = mul i64 %i, {factor}
  %from = getelementptr {element}, {source} %source, i64 {source_index}
  %to = getelementptr {element}, {target} %target, i64 {target_index}
  %value = load {element}, {source} %from, align {align}
  store {element} %value, {target} %to, align {align}
  %next = add i64 %i, %step
  br label %head
end:
  ret ptr %e
}}"""


def define_async_copies(ir: str) -> str:
    """Replace the declarations of asynchronous copies in a module by definitions, and the waits for them by barriers.

    Args:
        ir: Text of a module in the SPIR-64 form.

    Raises:
        UnsupportedError: A copy is of a type that is not known.
    """
    if "async_work_group" not in ir and "wait_group_events" not in ir:
        return ir
    ir = _DECLARATION.sub(lambda match: _define(match[1]), _WAIT.sub(r"\1@_Z7barrierj(i32 3)", ir))
    missing = [line for name, line in _HELPERS.items() if not re.search(rf"^declare .*@{name}\(", ir, re.MULTILINE)]
    return "\n".join([ir, *missing, ""])


def _define(name: str) -> str:
    demangled = demangle(name)
    target, source = demangled.arguments[:2]
    if not (isinstance(target, PointerType) and isinstance(source, PointerType)):
        raise UnsupportedError(f"the built-in {demangled} is not executed: it has no overload for these argument types")
    if not isinstance(target.pointee, ValueType):
        raise UnsupportedError(f"the built-in {demangled} is not executed: it copies no values")
    element = target.pointee.wide(4) if target.pointee.width == 3 else target.pointee
    is_strided, to_local = "strided" in demangled.base, target.address_space == 3
    return _DEFINITION.format(
        name=name,
        attributes="alwaysinline nounwind",
        target=f"ptr addrspace({target.address_space})",
        source=f"ptr addrspace({source.address_space})",
        stride=", i64 %stride" if is_strided else "",
        factor="%stride" if is_strided else "1",
        element=element.llvm,
        align=element.scalar.bits // 8 * element.width,
        # The stride is on the side of global memory.
        source_index="%far" if to_local else "%i",
        target_index="%i" if to_local else "%far",
    )
