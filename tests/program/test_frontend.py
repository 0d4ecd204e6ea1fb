"""Front ends: Oclgrind's clang, any clang of the machine, LLVM IR and bitcode as they come."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from perfvec.apply.tracing import the_kernel, trace
from perfvec.arch.replay import replay
from perfvec.errors import KernelNotFoundError, LaunchError, PerfVecError, SourceError, UnsupportedError
from perfvec.launch import Launch, is_llvm_ir
from perfvec.program import llvm_source
from perfvec.program.compilers import CLANG_VARIABLE
from perfvec.program.executor import compile_launch
from perfvec.program.frontend import compile_source, keep_kernel, kernel_names
from tests.opencl import other_clangs, pocl_device
from tests.program.launching import execute, make_launch

pytestmark = pytest.mark.usefixtures("front_end")

# What the compilers write differently: structs by value, images, samplers, events, helpers of kernels, local arrays.
SOURCE = """
constant sampler_t nearest = CLK_FILTER_NEAREST | CLK_ADDRESS_CLAMP_TO_EDGE;
constant int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
typedef struct { int a; int2 b; } Pair;
int helper(int x) { switch (x & 7) { case 0: return 7; case 1: return 3; case 5: return x; default: return 2; } }
kernel void inner(global int *o, int x) { atomic_add(o + 63, x); }
kernel void k(global int *o, Pair pair, read_only image2d_t image, local int *scratch, float f) {
    local int copy[32];
    int i = get_global_id(0), l = get_local_id(0);
    event_t e = async_work_group_copy(copy, o, 32, 0);
    wait_group_events(1, &e);
    scratch[l] = copy[31 - l] + helper(i) + table[i & 7];
    barrier(CLK_LOCAL_MEM_FENCE);
    uint4 texel = read_imageui(image, nearest, (int2)(i, l));
    int4 v = vload4(l / 4, scratch) + convert_int4(texel) + (int4)(pair.a, pair.b, (int)floor(f));
    o[i] = v.x + v.y * 3 + v.z * 5 + v.w * 7 + popcount(i) + mul_hi(i << 20, 77777);
    inner(o, i & 1);
}
"""
ARGS = (
    "buffer:int32:64:arange(1,1)",
    "int32x4:5,0,6,7",
    "image2d:rgba_unsigned_int8:8x8:uniform(0,99)",
    "local:int32:32",
    "float32:3.5",
)
LAUNCH = make_launch(SOURCE, *ARGS, global_size=32, local_size=32)


@functools.cache
def _bitcode() -> bytes:
    module = compile_source(SOURCE)
    assert isinstance(module, bytes)
    return module


def _with_source(source: str | bytes) -> Launch:
    return make_launch(source, *ARGS, global_size=32, local_size=32)


def _check_result(launch: Launch) -> None:
    expected = execute(LAUNCH)[0]
    for optimise in (True, False):
        np.testing.assert_array_equal(execute(launch, optimise=optimise)[0], expected)


def test_source_agrees_with_pocl():
    expected = np.asarray(dict(replay(LAUNCH, pocl_device()).outputs)[0])
    np.testing.assert_array_equal(execute(LAUNCH)[0], expected)


@pytest.mark.parametrize("clang", other_clangs())
def test_other_clang(clang: str, monkeypatch: pytest.MonkeyPatch):
    own = compile_launch(LAUNCH)
    monkeypatch.setenv(CLANG_VARIABLE, clang)
    other = compile_launch(LAUNCH)
    assert other is not own
    _check_result(LAUNCH)
    sizes = [sum(len(segment.body) for segment in kernel.native.segments) for kernel in (own, other)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.15)  # the model was trained on the one, and must know the other
    assert {s.instruction.line for s in other.native.sites} <= set(range(len(SOURCE.splitlines())))
    assert [p.name for p in other.native.kernel.parameters] == ["%o", "%pair", "%image", "%scratch", "%f"]


@pytest.mark.parametrize("clang", other_clangs())
def test_ir_of_other_clang(clang: str, tmp_path: Path):
    (tmp_path / "k.cl").write_text(SOURCE)
    options = "-x cl -cl-std=CL1.2 -cl-kernel-arg-info -target spir64-unknown-unknown -Xclang -finclude-default-header"
    for level, form, name in (("-O0", "-S", "k.ll"), ("-O2", "-c", "k.bc")):
        command = [
            clang,
            *options.split(),
            level,
            form,
            "-emit-llvm",
            str(tmp_path / "k.cl"),
            "-o",
            str(tmp_path / name),
        ]
        subprocess.run(command, check=True, capture_output=True)
        launch = Launch.from_file(tmp_path / name, kernel_name="k", args=list(ARGS), global_size=32, local_size=32)
        _check_result(launch)
        names = [p.name for p in compile_launch(launch).native.kernel.parameters]
        assert names == ["%o", "%pair", "%image", "%scratch", "%f"]


def test_no_such_clang(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(CLANG_VARIABLE, "clang-of-nowhere")
    with pytest.raises(SourceError, match="PERFVEC_CLANG is 'clang-of-nowhere', which is no program"):
        compile_source("kernel void k(void) {}")


def test_program_that_is_no_clang(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(CLANG_VARIABLE, str(shutil.which("true")))
    with pytest.raises(SourceError, match="true wrote nothing; is it a clang"):
        compile_source("kernel void k(void) {}")


# ---- LLVM IR ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["k.ll", "k.bc"])
def test_ir_as_source(tmp_path: Path, name: str):
    if name == "k.bc":
        (tmp_path / name).write_bytes(_bitcode())
    else:
        (tmp_path / name).write_text(_text())
    launch = Launch.from_file(tmp_path / name, kernel_name="k", args=list(ARGS), global_size=32, local_size=32)
    assert isinstance(launch.source, bytes) == (name == "k.bc")
    _check_result(launch)
    launch.save(tmp_path / "launch.h5")
    again = Launch.load(tmp_path / "launch.h5")
    assert (again.source, again.digest) == (launch.source, launch.digest)
    assert trace(launch).context == trace(LAUNCH).context
    with pytest.raises(SourceError, match=rf"{name} is LLVM IR; a device runs OpenCL C"):
        replay(again, pocl_device())


def _text() -> str:
    """The module as text, as `keep_kernel` reads it."""
    return llvm_source.disassemble(_bitcode(), "k.bc")


def test_the_only_kernel(tmp_path: Path):
    (tmp_path / "one.cl").write_text("kernel void alone(global int *o) { o[N] = 1; }")
    assert the_kernel(tmp_path / "one.cl", ("-DN=3",)) == "alone"
    (tmp_path / "two.bc").write_bytes(_bitcode())
    with pytest.raises(KernelNotFoundError, match=r"two\.bc has 2 kernels: inner, k; say which with --kernel"):
        the_kernel(tmp_path / "two.bc")


# SPIR 1.2 as old compilers left it, without debug lines: kernels only listed, pointers with types.
OLD_SPIR = """
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-f32:32:32-f64:64:64"
target triple = "spir64-unknown-unknown"
define cc76 void @k(i32 addrspace(1)* nocapture %0, i32 %1) nounwind {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %p = getelementptr inbounds i32, i32 addrspace(1)* %0, i64 %i
  store i32 %1, i32 addrspace(1)* %p, align 4
  ret void
}
declare spir_func i64 @_Z13get_global_idj(i32)
!opencl.kernels = !{!0}
!0 = !{void (i32 addrspace(1)*, i32)* @k, !1, !2}
!1 = !{!"kernel_arg_base_type", !"int*", !"int"}
!2 = !{!"kernel_arg_name", !"out", !"value"}
"""


@pytest.mark.parametrize("calling", ["cc76 ", "spir_kernel ", "", "spir_func "])
@pytest.mark.parametrize("has_target", [True, False])
def test_kernels_that_metadata_list(calling: str, has_target: bool):
    text = OLD_SPIR.replace("cc76 ", calling)
    text = text if has_target else re.sub("target .*", "", text)
    assert is_llvm_ir(text)
    assert kernel_names(text) == ("k",)
    launch = make_launch(text, "buffer:int32:64", "int32:7")
    assert execute(launch)[0].tolist() == [7] * 64
    with pytest.raises(LaunchError, match=r"takes 2 arguments, 0 were given; it takes: out .*, value \(i32\)"):
        execute(make_launch(text))


def test_is_llvm_ir():
    for text in ("", "kernel void k() {}", "#define define void {\n", "/* target triple */ // ; ModuleID\n"):
        assert not is_llvm_ir(text)
    for text in (b"BC\xc0\xde", "; ModuleID = 'a'", 'source_filename = "a"', "define void @f() {\n ret void\n}"):
        assert is_llvm_ir(text)


def _file(name: str, content: bytes | str) -> Callable[[Path], Launch]:
    def make(folder: Path) -> Launch:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return Launch.from_file(folder / name, kernel_name="k", args=["buffer:int32:64"], global_size=32)

    return make


FUNCTION = "define spir_kernel void @k(ptr addrspace(1) %o) {\n  ret void\n}\n"
FILES = {
    "nothing": (_file("a.cl", ""), KernelNotFoundError, "its kernels are: none"),
    "text in .ll": (
        _file("a.ll", "hello"),
        LaunchError,
        r"a\.ll holds no LLVM IR, found 'hello'; allowed are OpenCL C",
    ),
    "text in .bc": (_file("a.bc", "hello"), LaunchError, r"a\.bc holds no LLVM IR"),
    "SPIR-V": (_file("a.spv", b"\x03\x02\x23\x07\0\0"), LaunchError, "is SPIR-V; allowed .*llvm-spirv -r"),
    "ELF": (_file("a.cl", b"\x7fELF\0\0"), LaunchError, "is a binary file of a kind that is not known; allowed are"),
    "syntax": (
        _file("a.ll", FUNCTION + "junk"),
        SourceError,
        r"cannot read a\.ll as text of LLVM IR: .*\n.*expected top",
    ),
    "no kernel": (_file("a.ll", FUNCTION.replace("spir_kernel ", "")), KernelNotFoundError, "its kernels are: none"),
    "GPU's own": (
        _file("a.ll", f'target triple = "nvptx64-nvidia-cuda"\n{FUNCTION}'),
        SourceError,
        r"a\.ll is LLVM IR for the target 'nvptx64-nvidia-cuda'; allowed are spir64 and spirv64",
    ),
    "32 bits": (_file("a.ll", f'target triple = "spir-unknown-unknown"\n{FUNCTION}'), SourceError, "target 'spir-unk"),
    "32 bits, layout": (
        _file("a.ll", f'target datalayout = "e-p:32:32"\n{FUNCTION}'),
        SourceError,
        "data layout 'p:32:32'; allowed are little-endian ones with pointers of 64",
    ),
    "big-endian": (_file("a.ll", f'target datalayout = "E"\n{FUNCTION}'), SourceError, "data layout 'E'"),
    "unknown type": (
        _file("a.ll", FUNCTION.replace("ptr addrspace(1) %o", 'target("spirv.Queue") %o')),
        PerfVecError,
        "spirv.Queue",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path: Path, name: str):
    make, error, message = FILES[name]
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        execute(make(tmp_path))


def test_damaged_bitcode(monkeypatch: pytest.MonkeyPatch):
    damaged = bytearray(_bitcode())
    damaged[-len(damaged) // 2 :: 3] = b"?" * len(damaged[-len(damaged) // 2 :: 3])
    for module in (bytes(damaged), _bitcode()[:900], b"BC\xc0\xde"):
        with pytest.raises(
            SourceError, match=r"cannot read k\.bc as LLVM bitcode: [^¬]*damaged, or made by a newer LLVM"
        ):
            compile_source(module, source_name="k.bc")
    # LLVM ends the process on some bitcode, which one depends on its version.
    monkeypatch.setattr(llvm_source, "_DISASSEMBLE", "import os; os.abort()")
    with pytest.raises(SourceError, match="LLVM crashed on it"):
        compile_source(_bitcode(), source_name="k.bc")


def test_options_with_ir():
    with pytest.raises(SourceError, match=r"k\.bc is LLVM IR, which has been compiled; found the build options -DA -w"):
        compile_source(_bitcode(), ("-DA", "-w"), "k.bc")


# ---- sources and options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"// \xa9 in Latin-1\n"])
def test_encodings(tmp_path: Path, mark: bytes):
    launch = _file("a.cl", mark + b"kernel void k(global int *o) {\r\n  o[get_global_id(0)] = \\\r\n 3;\r\n}\r\n")(
        tmp_path
    )
    assert execute(launch)[0].tolist()[:32] == [3] * 32


@pytest.fixture(params=["Oclgrind", *other_clangs()[-1:]])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "Oclgrind":
        monkeypatch.setenv(CLANG_VARIABLE, request.param)
    return request.param


def test_build_options(compiler: str, tmp_path: Path):
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "n.h").write_text("#define N 5\n")
    source = (
        'constant char text[] = TEXT;\n#include "n.h"\nkernel void k(global int *o) { o[0] = N + text[1] + SUM M; }'
    )
    options = (f"-I '{folder}' '-DTEXT=\"a b\"'", "-D 'SUM=2 *'", "-DM=4", "-cl-fast-relaxed-math -w")
    launch = make_launch(source, "buffer:int32:1", build_options=options, global_size=1, local_size=1)
    assert execute(launch)[0].tolist() == [5 + ord(" ") + 8]
    with pytest.raises(SourceError, match=r"kernel\.cl:2:10: fatal error: 'n\.h' file not found[^¬]*Hint: .*-I FOLDER"):
        compile_source(source, (r"-DTEXT=\"\"",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-Werror",), r"kernel\.cl:1:\d+: .* changes value from 300 to 44"),
        (("-cl-bogus",), "-cl-bogus"),
        (("foo",), "'foo' is no build option that is allowed; allowed are -D"),
        (("-target nvptx64",), "'-target' is no build option"),
        (("-o x",), "'-o' is no build option"),
        (("@file",), "'@file' is no build option"),
        (("-D'A",), "cannot be split into words .*close quotes"),
    ],
)
def test_bad_build_options(compiler: str, options: tuple[str, ...], message: str):
    source = "kernel void k(global char *o) { o[0] = 300; }"
    compile_source(source)
    compile_source(source, ("-Werror", "-w"))
    with pytest.raises(SourceError, match=message):
        compile_source(source, options)


# ---- calls ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int f(int x) {\n return x < 2 ? 1 : f(x - 1) * x; }", r"line 2 of a\.cl: 'f' calls 'f': recursion"),
        (
            "int g(int x);\nint h(int x) { return x; }\nint f(int x) { return h(x) + (x ? g(x - 1) : 1); }\n"
            "int g(int x) { return f(x); }",
            r"line 4 of a\.cl: 'f' calls 'g' calls 'f': recursion, which OpenCL C does not allow .*Write a loop",
        ),
        ("int f(int x);", r"line \d of a\.cl: the function 'f' is declared, but the program has no body of it"),
    ],
)
def test_calls(source: str, message: str):
    module = compile_source(f"{source}\nkernel void k(global int *o) {{ o[0] = f(o[1]); }}")
    with pytest.raises(UnsupportedError, match=message):
        keep_kernel(module, "k", source_name="a.cl")


def test_calls_that_are_no_ring():
    source = "int f(int x) { return x + 1; } int g(int x) { return f(x) + f(x + 1); } int r(int x) { return r(x); }"
    module = compile_source(f'{source}\nkernel void k(global int *o) {{ o[0] = g(f(o[1])); printf("%d", *o); }}')
    assert "@f" not in keep_kernel(module, "k").ir
