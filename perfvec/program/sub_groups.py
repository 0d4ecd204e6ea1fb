"""Sub-group functions of OpenCL C: their names, the types that they take, and their declarations for the front end.

Source:
    OpenCL 2.0 extension specification, cl_khr_subgroups; "Extended Sub-group Functions" 1.0.0 (cl_khr_subgroup_*);
    cl_khr_subgroup_rotate 1.0.0. Checked by tests/program/test_sub_groups.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, final

from perfvec.errors import UnsupportedError
from perfvec.program.builtins import ValueType, demangle
from perfvec.program.builtins.cl_types import FLOATS, INT, INTEGERS, SCALARS_BY_NAME, UINT, VECTOR_WIDTHS
from perfvec.program.driver import SUB_GROUP_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perfvec.program.builtins import ClType
    from perfvec.program.ir import Instruction

_EXTENSIONS = (
    "subgroups", "subgroup_extended_types", "subgroup_non_uniform_vote", "subgroup_ballot",
    "subgroup_non_uniform_arithmetic", "subgroup_shuffle", "subgroup_shuffle_relative", "subgroup_clustered_reduce",
    "subgroup_rotate",
)  # fmt: skip
_SCALARS = tuple(ValueType(scalar) for scalar in (*INTEGERS, *FLOATS))
_WHOLE = tuple(ValueType(scalar) for scalar in INTEGERS)
_INT = (ValueType(INT),)
_ALL = tuple(type_.wide(width) for type_ in _SCALARS for width in (1, *VECTOR_WIDTHS))
_OPERATIONS = {
    **dict.fromkeys(("add", "min", "max", "mul"), _SCALARS),
    **dict.fromkeys(("and", "or", "xor"), _WHOLE),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), _INT),
}
# Barriers may name a scope; the type came with OpenCL C 2.0, and clang 14 stops where it knows of such barriers only.
_SCOPES = """\
#if __OPENCL_C_VERSION__ < 200
typedef enum memory_scope {
  memory_scope_work_item = 0, memory_scope_work_group = 1, memory_scope_device = 2, memory_scope_all_svm_devices = 3,
  memory_scope_sub_group = 4
} memory_scope;
#endif
void __attribute__((overloadable, convergent)) sub_group_barrier(cl_mem_fence_flags, memory_scope);"""
_FOLDS = ("reduce", "scan_inclusive", "scan_exclusive")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubGroupFunction:
    """A function of a sub-group, over all its overloads.

    Attributes:
        parameters: OpenCL types; `T` is one of `types`.
        result: OpenCL type; `T` is that of the first parameter.
        types: What `T` may be.
        opcode_class: Name in `trace_data.OPCODE_CLASSES`.
        has_cluster: Whether the last argument is the size of a cluster.
    """

    parameters: tuple[str, ...] = ()
    result: str = "T"
    types: tuple[ValueType, ...] = ()
    opcode_class: str = "sub_group"
    has_cluster: bool = False

    def overloads(self) -> Iterator[tuple[str, ...]]:
        """Result and parameters of each, as OpenCL writes them."""
        for type_ in self.types or (None,):
            yield tuple(str(type_) if word == "T" else word for word in (self.result, *self.parameters))


def _query(result: str = "uint") -> SubGroupFunction:
    return SubGroupFunction(result=result, opcode_class="work_item")


def _of_ballot(result: str, *more: str) -> SubGroupFunction:
    return SubGroupFunction(parameters=("uint4", *more), result=result, opcode_class="logic")


def _moves(types: tuple[ValueType, ...], *parameters: str, has_cluster: bool = False) -> SubGroupFunction:
    return SubGroupFunction(parameters=("T", *parameters), types=types, has_cluster=has_cluster)


_VOTE = SubGroupFunction(parameters=("int",), result="int")
FUNCTIONS: dict[str, SubGroupFunction] = {
    **{
        f"get_{name}": _query()
        for name in (
            "sub_group_size", "max_sub_group_size", "num_sub_groups", "enqueued_num_sub_groups", "sub_group_id",
            "sub_group_local_id",
        )
    },
    **{f"get_sub_group_{name}_mask": _query("uint4") for name in ("eq", "ge", "gt", "le", "lt")},
    "sub_group_barrier": SubGroupFunction(parameters=("cl_mem_fence_flags",), result="void", opcode_class="fence"),
    **{f"sub_group_{name}": _VOTE for name in ("all", "any", "non_uniform_all", "non_uniform_any")},
    "sub_group_non_uniform_all_equal": SubGroupFunction(parameters=("T",), result="int", types=_SCALARS),
    "sub_group_elect": SubGroupFunction(result="int"),
    "sub_group_ballot": SubGroupFunction(parameters=("int",), result="uint4"),
    "sub_group_inverse_ballot": _of_ballot("int"),
    "sub_group_ballot_bit_extract": _of_ballot("int", "uint"),
    **{
        f"sub_group_ballot_{name}": _of_ballot("uint")
        for name in ("bit_count", "inclusive_scan", "exclusive_scan", "find_lsb", "find_msb")
    },
    "sub_group_broadcast": _moves(_ALL, "uint"),
    "sub_group_non_uniform_broadcast": _moves(_ALL, "uint"),
    "sub_group_broadcast_first": _moves(_SCALARS),
    **{f"sub_group_shuffle{way}": _moves(_SCALARS, "uint") for way in ("", "_xor", "_up", "_down")},
    "sub_group_rotate": _moves(_SCALARS, "int"),
    "sub_group_clustered_rotate": _moves(_SCALARS, "int", "uint", has_cluster=True),
    **{f"sub_group_{fold}_{name}": _moves(_SCALARS) for fold, name in product(_FOLDS, ("add", "min", "max"))},
    **{
        f"sub_group_non_uniform_{fold}_{name}": _moves(types)
        for fold, (name, types) in product(_FOLDS, _OPERATIONS.items())
    },
    **{
        f"sub_group_clustered_reduce_{name}": _moves(types, "uint", has_cluster=True)
        for name, types in _OPERATIONS.items()
    },
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubGroupCall:
    """A call of a function in which lanes exchange values.

    Attributes:
        callee: Mangled name.
        name: OpenCL's name.
        type: Type of the first argument; `int` where there is none.
        cluster: Lanes that exchange with each other, where the call says so; else the whole sub-group.
    """

    callee: str
    name: str
    type: ValueType
    cluster: int

    @property
    def symbol(self) -> str:
        """The function of the native code that does it."""
        return f"pv.{self.callee}.{self.cluster}"


@lru_cache(maxsize=4096)
def sub_group_function(callee: str) -> str:
    """OpenCL's name of a sub-group function out of its mangled one; "" if it is none."""
    match = re.match(r"_Z(\d+)(\w*sub_group)", callee)
    name = callee[match.start(2) : match.start(2) + int(match[1])] if match else ""
    return name if name in FUNCTIONS else ""


def is_collective(instruction: Instruction) -> bool:
    """Whether the lanes of a sub-group exchange values in it."""
    name = sub_group_function(instruction.callee) if instruction.opcode == "call" else ""
    return bool(name) and FUNCTIONS[name].opcode_class == "sub_group"


def orders_lanes(instruction: Instruction) -> bool:
    """Whether all lanes must have got as far before one executes it."""
    return is_collective(instruction) or sub_group_function(instruction.callee) == "sub_group_barrier"


def sub_group_call(callee: str, arguments: Sequence[tuple[str, str]], where: str) -> SubGroupCall:
    """The parts of a call of a function in which lanes exchange values.

    Args:
        callee: Mangled name.
        arguments: LLVM type and text of each.
        where: What to call the place in messages.

    Raises:
        UnsupportedError: It has no overload for these types, or a cluster of a size that is not allowed.
    """
    name, types = sub_group_function(callee), check_types(callee, where)
    cluster = SUB_GROUP_SIZE
    if FUNCTIONS[name].has_cluster:
        sizes = [1 << power for power in range(SUB_GROUP_SIZE.bit_length())]
        if arguments[-1][1] not in map(str, sizes):
            found = arguments[-1][1] if re.fullmatch(r"-?\d+", arguments[-1][1]) else "a value known only at run time"
            raise UnsupportedError(
                f"{where}: the cluster size of {name} is {found}; it must be a constant among "
                f"{', '.join(map(str, sizes))} (the traced sub-group has {SUB_GROUP_SIZE} work-items)"
            )
        cluster = int(arguments[-1][1])
    first = types[0] if types else ValueType(INT)
    assert isinstance(first, ValueType)
    return SubGroupCall(callee=callee, name=name, type=first, cluster=cluster)


def check_types(callee: str, where: str) -> tuple[ClType, ...]:
    """The argument types of a sub-group function's mangled name.

    Raises:
        UnsupportedError: It has no overload for them; the message names those that it has.
    """
    name, types = sub_group_function(callee), demangle(callee).arguments
    function = FUNCTIONS[name]
    # A barrier's flags are a uint, and a scope may follow them.
    wanted = {tuple(words[1:]) for words in function.overloads()} if name != "sub_group_barrier" else {("uint",)}
    found = tuple(map(str, types[:1] if name == "sub_group_barrier" else types))
    if found not in wanted:
        allowed = f"; T is one of {', '.join(map(str, function.types))}" if function.types else ""
        raise UnsupportedError(
            f"{where}: {name}({', '.join(found)}) is not a function of OpenCL C; it is "
            f"{name}({', '.join(function.parameters)}){allowed}"
        )
    return types


# ---- declarations -----------------------------------------------------------------------------------------------


def declarations(source: str, build_options: Sequence[str] = ()) -> str:
    """Declarations of the sub-group functions for a source that speaks of them; "" for any other.

    Front ends declare few of them before OpenCL C 3.0. Functions that the source defines itself are left out.
    """
    if not re.search(r"sub_?group", " ".join((source, *build_options))):
        return ""
    own = set(re.findall(r"\b(\w*sub_group_\w+)\s*\([^;{}()]*\)\s*\{", source))
    return _declarations(frozenset(own & FUNCTIONS.keys()))


@lru_cache(maxsize=64)
def _declarations(left_out: frozenset[str]) -> str:
    by_extension: dict[str, list[str]] = {"": [], "cl_khr_fp64": [], "cl_khr_fp16": []}
    for name, function in FUNCTIONS.items():
        if name in left_out:
            continue
        attribute = "const" if function.opcode_class in ("work_item", "logic") else "convergent"
        for result, *parameters in function.overloads():
            words = {SCALARS_BY_NAME.get(word.rstrip("0123456789"), UINT).name for word in (result, *parameters)}
            extension = "cl_khr_fp16" * ("half" in words) or "cl_khr_fp64" * ("double" in words)
            by_extension[extension].append(
                f"{result} __attribute__((overloadable, {attribute})) {name}({', '.join(parameters) or 'void'});"
            )
    lines = [f"#ifndef cl_khr_{name}\n#define cl_khr_{name} 1\n#endif" for name in _EXTENSIONS]
    lines += [_SCOPES, *by_extension[""]]
    for extension in ("cl_khr_fp64", "cl_khr_fp16"):
        lines += [f"#ifdef {extension}", *by_extension[extension], "#endif"]
    # A half may be a parameter only where the extension is enabled; the program enables it for itself.
    half = lines.index("#ifdef cl_khr_fp16")
    lines.insert(half + 1, "#pragma OPENCL EXTENSION cl_khr_fp16 : enable")
    lines.insert(len(lines) - 1, "#pragma OPENCL EXTENSION cl_khr_fp16 : disable")
    return "\n".join((*lines, ""))
