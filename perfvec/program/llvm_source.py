"""LLVM modules as text in one form, whoever made them: SPIR 1.2's of old compilers, those of new ones, by hand.

Differences between producers end here: opaque types of images, where kernels and their arguments are described,
modules that do not say what they are for.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

import llvmlite.binding as llvm

from perfvec.errors import SourceError, UnsupportedError

KERNEL_DEFINE = re.compile(r"^define .*?\bspir_kernel\b[^@]*@([\w$.]+|\"[^\"]*\")\(", re.MULTILINE)
_TRIPLES = ("spir64", "spirv64")
_TRIPLE = "spir64-unknown-unknown"
_DATA_LAYOUT = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-G1"
_RECOMPILE = f"compile it for 64 bits with clang -x cl -cl-std=CL1.2 -target {_TRIPLE} -emit-llvm -c"
# How newer compilers write the types of images, samplers and events, and the pointers that they were before.
_OPAQUE_TYPES = (
    (re.compile(r'target\("spirv\.Image"[^)]*\)'), "ptr addrspace(1)"),
    (re.compile(r'target\("spirv\.Sampler"\)'), "ptr addrspace(2)"),
    (re.compile(r'target\("spirv\.Event"\)'), "ptr"),
)
# In a process of its own: LLVM ends the one that reads damaged bitcode.
_DISASSEMBLE = """
import sys
import llvmlite.binding as llvm
llvm.set_option("perfvec", "-disable-auto-upgrade-debug-info")
try:
    sys.stdout.write(str(llvm.parse_bitcode(sys.stdin.buffer.read())))
except RuntimeError as error:
    sys.exit(str(error))
"""
_CHILD_FAILED = 1


@cache
def set_llvm_options() -> None:
    """LLVM's own switches, which hold for the process and may be set only once."""
    # It would turn loops that compute a CRC into a table; GPU compilers do not.
    llvm.set_option("perfvec", "-disable-loop-idiom-all")
    # It would end the process on reading a kernel that calls a kernel, which newer LLVM forbids and `frontend` mends.
    llvm.set_option("perfvec", "-disable-auto-upgrade-debug-info")
    # The inliner would give up on a long function before it looks at that function's own threshold.
    llvm.set_option("perfvec", "-inline-cost-full")


def module_text(module: bytes | str, source_name: str, *, kernel_name: str = "") -> str:
    """A compiler's module as text in the form that the front end works on.

    Args:
        module: Bitcode or text.
        source_name: What to call it in messages.
        kernel_name: Where the module has this function, what it does not need is left out: of a program of many kernels
            that is most, and all that follows takes time by the length of the text.

    Raises:
        SourceError: It cannot be read, or is for another target.
        UnsupportedError: It has types of OpenCL 2.0.
    """
    set_llvm_options()
    try:
        parsed = llvm.parse_assembly(module) if isinstance(module, str) else llvm.parse_bitcode(module)
    except RuntimeError as error:
        raise _unreadable(str(error), module, source_name) from error
    _drop_all_but(parsed, kernel_name)
    text = str(parsed)
    _check_target(text, source_name)
    for form, pointer in _OPAQUE_TYPES:
        text = form.sub(pointer, text)
    if unknown := re.search(r'target\("[^"]*"', text):
        raise UnsupportedError(f"{source_name} has values of type {unknown[0]}), which OpenCL C 1.2 does not have")
    return _adopt_old_metadata(_with_target(text))


def _drop_all_but(module: llvm.ModuleRef, kernel_name: str) -> None:
    functions = [function for function in module.functions if not function.is_declaration]
    if kernel_name not in [function.name for function in functions]:
        return
    for function in functions:
        if function.name != kernel_name:
            function.linkage = "internal"
    llvm.initialize_native_target()
    machine = llvm.Target.from_default_triple().create_target_machine()
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def disassemble(bitcode: bytes, source_name: str) -> str:
    """Text of bitcode from anywhere: damaged, of a newer LLVM, or sound.

    Raises:
        SourceError: It cannot be read.
    """
    child = subprocess.run([sys.executable, "-c", _DISASSEMBLE], input=bitcode, capture_output=True, check=False)
    if child.returncode:
        cause = child.stderr.decode(errors="replace").strip()
        raise _unreadable(cause if child.returncode == _CHILD_FAILED else "LLVM crashed on it", bitcode, source_name)
    return child.stdout.decode()


def _unreadable(cause: str, module: bytes | str, source_name: str) -> SourceError:
    version = ".".join(map(str, llvm.llvm_version_info))
    what = "text of LLVM IR" if isinstance(module, str) else "LLVM bitcode"
    return SourceError(
        f"cannot read {source_name} as {what}: {cause}\n"
        f"It may be damaged, or made by a newer LLVM than {version}, the newest that is read here; {_RECOMPILE}."
    )


def _check_target(text: str, source_name: str) -> None:
    triple = re.search(r'^target triple = "([^"]*)"', text, re.MULTILINE)
    if triple is not None and not triple[1].startswith(_TRIPLES):
        raise SourceError(
            f"{source_name} is LLVM IR for the target {triple[1]!r}; allowed are {' and '.join(_TRIPLES)}: OpenCL C "
            f"before a vendor's compiler, with pointers of 64 bits. From OpenCL C, {_RECOMPILE}"
        )
    layout = re.search(r'^target datalayout = "([^"]*)"', text, re.MULTILINE)
    parts = layout[1].split("-") if layout else []
    odd = [part for part in parts if part == "E" or re.match(r"p\d*:(?!64)", part)]
    if odd:
        raise SourceError(
            f"{source_name} is LLVM IR with the data layout {odd[0]!r}; allowed are little-endian ones with pointers "
            f"of 64 bits. From OpenCL C, {_RECOMPILE}"
        )


def _with_target(text: str) -> str:
    """The module with SPIR-64's triple and data layout where it lacks one."""
    if all(re.search(rf'^target {word} = "[^"]', text, re.MULTILINE) for word in ("datalayout", "triple")):
        return text
    text = re.sub(r'^target (datalayout|triple) = "[^"]*"$', "", text, flags=re.MULTILINE)
    return f'target datalayout = "{_DATA_LAYOUT}"\ntarget triple = "{_TRIPLE}"\n{text}'


def _adopt_old_metadata(text: str) -> str:
    """Describe kernels at their definitions, as newer compilers do, where SPIR 1.2 lists them in `opencl.kernels`."""
    listed = re.search(r"^!opencl\.kernels = !\{([^}]*)\}", text, re.MULTILINE)
    if listed is None:
        return text
    nodes = dict(re.findall(r"^(!\d+) = (?:distinct )?!\{(.*)\}$", text, re.MULTILINE))
    for kernel in re.findall(r"!\d+", listed[1]):
        function, *described = (part.strip() for part in nodes.get(kernel, "").split(","))
        name = function.rpartition("@")[2]
        kinds = {node: re.match(r'!"(kernel_arg_\w+)"(?:, )?(.*)', nodes.get(node, "")) for node in described}
        found = {match[1]: match[2] for match in kinds.values() if match}
        text = _describe(text, name, found)
    return text


def _describe(text: str, name: str, described: dict[str, str]) -> str:
    define = re.search(rf"^define [^\n]*@{re.escape(name)}\([^\n]*$", text, re.MULTILINE)
    if define is None or not name:
        return text
    line = define[0]
    if "spir_kernel" not in line:
        line = re.sub(r"(?:spir_func )?(?=void @)", "spir_kernel ", line, count=1)
    first = 1 + max((int(number) for number in re.findall(r"^!(\d+) = ", text, re.MULTILINE)), default=-1)
    nodes = []
    for number, (kind, values) in enumerate(described.items(), first):
        if f"!{kind} " not in line:
            line = f"{line.removesuffix('{')}!{kind} !{number} {{"
            nodes.append(f"!{number} = !{{{values}}}\n")
    return text.replace(define[0], line, 1) + "\n" + "".join(nodes)


def argument_names(text: str, kernel_name: str) -> list[str]:
    """Names of a kernel's arguments in OpenCL C; empty where the module does not tell."""
    define = re.search(rf"^define [^\n]*@{re.escape(kernel_name)}\([^\n]*!kernel_arg_name (!\d+)", text, re.MULTILINE)
    node = re.search(rf"^{define[1]} = !\{{(.*)\}}$", text, re.MULTILINE) if define else None
    return re.findall(r'!"([^"]*)"', node[1]) if node else []
