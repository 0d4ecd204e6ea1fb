"""Definitions of OpenCL built-ins for the host, as LLVM IR text."""

from __future__ import annotations

from collections.abc import Iterable

from perfvec.errors import UnsupportedError
from perfvec.program.builtins.builtin import Builtin
from perfvec.program.builtins.cl_types import FLOAT, HALF, ValueType
from perfvec.program.builtins.convert import conversion
from perfvec.program.builtins.demangle import demangle
from perfvec.program.builtins.emit import PURE, Emitter, Value
from perfvec.program.builtins.half import float_to_half, half_to_float
from perfvec.program.builtins.table import VALUE_BUILTINS, find_value_builtin, has_pointer_result

# Longer definitions are left to the inliner's own judgement.
_ALWAYS_INLINE_LINES = 60


def defined_name(name: str) -> str:
    """The function that `define_builtins` makes for a built-in.

    Args:
        name: Mangled name of the built-in.

    Returns:
        The name itself; with `.value` behind it where the built-in stores a second result through its last argument.
        That function takes no pointer and returns both as a literal struct `{ result, stored }`.
    """
    return f"{name}.value" if has_pointer_result(name) else name


def define_builtins(names: Iterable[str]) -> str:
    """Define OpenCL built-ins in LLVM IR for whatever host compiles it.

    Definitions have the C calling convention and linkage `linkonce_odr`, so that a linker takes only what is used. They
    compute values and touch no memory. They call LLVM intrinsics and functions of libm.

    Args:
        names: Mangled names, such as `_Z5clampDv4_fS_S_`; each is defined once.

    Returns:
        Text of a module without target, with opaque pointers. What each function is called: see `defined_name`.

    Raises:
        UnsupportedError: One of them is not a built-in that only computes a value.
    """
    declarations: dict[str, str] = {}
    definitions = [_define(name, declarations) for name in dict.fromkeys(names)]
    return "\n".join([*definitions, *declarations.values(), ""])


def _define(name: str, declarations: dict[str, str]) -> str:
    found = find_value_builtin(name)
    if found is None:
        raise UnsupportedError(_refusal(name))
    builtin, demangled = found
    emitter = Emitter(declarations)
    types = [argument for argument in demangled.arguments if isinstance(argument, ValueType)]
    arguments = [Value(emitter, type_, f"%a{index}") for index, type_ in enumerate(types)]
    results = _emit(builtin, emitter, arguments)
    returned, attribute = _return(emitter, results)
    parameters = ", ".join(argument.typed for argument in arguments)
    inline = "alwaysinline " if len(emitter.lines) < _ALWAYS_INLINE_LINES else ""
    head = f"define linkonce_odr {attribute}{returned} @{defined_name(name)}({parameters}) {inline}{PURE} {{"
    return "\n".join([head, *emitter.lines, "}"])


def _emit(builtin: Builtin, emitter: Emitter, arguments: list[Value]) -> list[Value]:
    """Write the body; its results: one, or two with what is to be stored."""
    if builtin.broadcasts:
        width = max(argument.type.width for argument in arguments)
        arguments = [argument.broadcast(width) for argument in arguments]
    is_half = not builtin.in_half_bits and any(argument.scalar == HALF for argument in arguments)
    if not is_half:
        return _listed(builtin.emit(emitter, *arguments))
    widened = [half_to_float(argument) if argument.scalar == HALF else argument for argument in arguments]
    results = _listed((builtin.emit_half or builtin.emit)(emitter, *widened))
    return [float_to_half(result) if result.scalar == FLOAT else result for result in results]


def _listed(results: Value | tuple[Value, Value]) -> list[Value]:
    return [results] if isinstance(results, Value) else list(results)


def _return(emitter: Emitter, results: list[Value]) -> tuple[str, str]:
    """Write the return; the returned type, and the extension that SPIR promises for small integers."""
    if len(results) == 1:
        type_ = results[0].type
        emitter.lines.append(f"  ret {results[0].typed}")
        is_small = type_.width == 1 and type_.scalar.kind == "int" and type_.scalar.bits < 32
        return type_.llvm, ("signext " if type_.scalar.is_signed else "zeroext ") * is_small
    returned = f"{{ {', '.join(result.type.llvm for result in results)} }}"
    text = "poison"
    for index, result in enumerate(results):
        emitter.lines.append(f"  %r{index} = insertvalue {returned} {text}, {result.typed}, {index}")
        text = f"%r{index}"
    emitter.lines.append(f"  ret {returned} {text}")
    return returned, ""


def _refusal(name: str) -> str:
    try:
        demangled = demangle(name)
    except UnsupportedError as error:
        return str(error)
    base = demangled.base
    reason = (
        "it has no overload for these argument types"
        if base in VALUE_BUILTINS or conversion(base)
        else "it is not among those of OpenCL C 1.2 that only compute a value"
    )
    return f"the built-in {demangled} ({name}) is not executed: {reason}"
