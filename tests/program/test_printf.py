from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfvec.errors import MemoryAccessError
from perfvec.launch import Launch
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.loops import weighable_loops
from perfvec.program.printf import MOST_TEXT, RECORD_BYTES, printed
from perfvec.program.tracer import trace_launch
from perfvec.program.writer import PrintfSite
from perfvec.trace_data import OPCODE_CLASSES
from tests.opencl import c_library, pocl_device
from tests.program.launching import make_launch

INTS = "buffer:int32:64"
# What printf is called with: every conversion, flag and length of OpenCL C, and vectors of every width.
CALLS = (
    '"%d|%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|%i\\n", 42, 42, 42, 42, 42, 42, 42, 42, -42',
    '"%.0d|%i|%u|%o|%#o|%x|%X|%#x|%#X|%#o|%#x\\n", 0, -1, -1, 8, 8, 255, 255, 255, 255, 0, 0',
    '"%i|%#.3x|%08.3d|%-08d|%-+6d|%+05d|\\n", 5, 5, 5, 5, 5, 5',
    '"%f|%.2f|%10.3f|%-10.2f|%+f|%010.2f|%#.0f|%F\\n", 1.5f, 1.5f, 1.5f, 1.5f, 1.5f, -1.5f, 1.0f, 0.25f',
    '"%e|%E|%.0e|%g|%G|%#g|%g|%g\\n", 12345.678f, 12345.678f, 1.0f, 0.0001f, 1e-10f, 1.0f, 100000.0f, 1000000.0f',
    '"%a|%A|%.2a|%a|%#a|%12a|\\n", 1.0f, 3.14f, 3.14f, 0.0f, 1.0f, -0.5f',
    '"%f|%F|%5f|%05f|%e|%g|%-6f|\\n", INFINITY, INFINITY, -INFINITY, INFINITY, NAN, NAN, INFINITY',
    '"%.0f|%.0f|%.0f|%f\\n", 0.5f, 1.5f, 2.5f, 1e30f',
    '"%c|%5c|%-5c|%%|%c\\n", 65, 66, 67, 300',
    '"%s|%10s|%-10s|%.2s|%s|%.0s|\\n", "abc", "abc", "abc", "abc", "", "hello"',
    '"%hhd|%hd|%hhu|%hu|%hhx|%ho\\n", 300, 70000, 300, 70000, -1, -1',
    '"%ld|%lu|%lx|%ld|%lo|%li\\n", 1L << 40, ~0UL, ~0UL, -5L, 8L, -9L',
    '"%v4hld|%v4hlx|%v2hlu|%#v2hlx\\n", (int4)(1, 2, 3, -4), (int4)(1, 2, 3, -4), (uint2)(1, ~0u), (int2)(3, 4)',
    '"%v4hlf|%v2hlf|%5.1v4hlf|%+v3hld|%v4hlA\\n", (float4)(1, 2, 3, 4), (float2)(1.5f, -2.5f), (float4)(1, 2, 3, 4),'
    " (int3)(1, 2, 3), (float4)(1, 2, 3, 4)",
    '"%v8hhd|%v16hhu|%v3hd|%v4hx\\n", (char8)(1, 2, 3, 4, 5, 6, 7, -8), (uchar16)(255), (short3)(1, -2, 3),'
    " (short4)(-1)",
    '"%v2ld|%v2lf|%v2lu|%v3lg|%v8hle\\n", (long2)(1L << 40, -1), (double2)(1.25, 2.5), (ulong2)(~0UL, 1),'
    " (double3)(0.5, 1, 2), (float8)(3)",
    '"%.3v2hld|%08v2hlf|%-4v2hld|\\n", (int2)(1, 2), (float2)(1.5f, 2.5f), (int2)(1, 2)',
    '"%p\\n", (global int *)0x1234',
    '"%lf|%hf|%ld|%d\\n", 1.0, 1.0f, 5, 5L',
    '"%d extra\\n", 1, 2, 3',
    '"%s|\\n", (constant char *)0',
    '"A\\\\ \\"q\\" 100%% %c\\n", 66',
    '"no arguments\\n"',
    '""',
)
POCL = """
import sys
import numpy as np
import pyopencl as cl
platform = next(p for p in cl.get_platforms() if p.name == "Portable Computing Language")
context = cl.Context(platform.get_devices())
queue = cl.CommandQueue(context)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
kernel = cl.Program(context, sys.stdin.read()).build().k
kernel(queue, (1,), None, buffer)
queue.finish()
sys.stdout.flush()
"""


def all_calls() -> str:
    body = "\n".join(f"sum += printf({call});" for call in CALLS)
    return f"kernel void k(global int *o) {{ int sum = 0; {body} o[0] = sum; }}"


def run(launch: Launch, *, optimise: bool = True) -> tuple[str, np.ndarray]:
    """What a launch prints, and its first buffer."""
    execution = Execution(compile_launch(launch, optimise=optimise), launch, budget=10_000_000)
    execution.run(range(execution.num_work_groups))
    return execution.printed(), np.asarray(execution.results()[0])


@pytest.mark.parametrize("optimise", [True, False], ids=["optimised", "unoptimised"])
def test_pocl_prints_the_same(optimise: bool):
    pocl_device()
    theirs = subprocess.run(
        [sys.executable, "-c", POCL], input=all_calls(), capture_output=True, text=True, check=True, timeout=120
    ).stdout
    ours, results = run(make_launch(all_calls(), INTS, global_size=1, local_size=1), optimise=optimise)
    assert ours.splitlines() == theirs.splitlines()
    assert results[0] == 0


def text_of(form: str, *arguments: tuple[str, str, object], literals: dict[int, bytes] | None = None) -> str:
    """What a call prints; arguments are LLVM type, struct's letters and value."""
    types, offsets, data = [], [8], struct.pack("<iiQ", 0, 0, 1)
    for type_text, letters, value in arguments:
        types.append(type_text)
        offsets.append(len(data))
        data += struct.pack("<" + letters, *(value if isinstance(value, tuple) else (value,)))
    site = PrintfSite(line=7, types=tuple(types), offsets=tuple(offsets), num_bytes=len(data))
    known = {1: form.encode()} | (literals or {})
    return printed(np.frombuffer(data, np.uint8), [site], num_cut=0, read_text=known.get)


FLAGS = st.text(alphabet="-+ #0", max_size=4)
WIDTH = st.one_of(st.just(""), st.integers(1, 30).map(str))
PRECISION = st.one_of(st.just(""), st.just("."), st.integers(0, 25).map(lambda n: f".{n}"))


def c_text(form: str, value: ctypes.c_double | ctypes.c_longlong) -> str:
    buffer = ctypes.create_string_buffer(1024)
    c_library().snprintf(buffer, ctypes.c_size_t(1024), form.encode(), value)
    return buffer.value.decode()


@given(FLAGS, WIDTH, PRECISION, st.sampled_from("diouxX"), st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-9, 9))
def test_integers_as_in_c(flags: str, width: str, precision: str, conversion: str, value: int):
    form = f"%{flags}{width}{precision}l{conversion}"
    assert text_of(form, ("i64", "q", value)) == c_text(form, ctypes.c_longlong(value)).lstrip("\0")


@given(FLAGS, WIDTH, PRECISION, st.sampled_from("aAeEfFgG"), st.floats(allow_nan=False) | st.floats(-100, 100))
def test_floats_as_in_c(flags: str, width: str, precision: str, conversion: str, value: float):
    form = f"%{flags}{width}{precision}{conversion}"
    expected = c_text(form, ctypes.c_double(value))
    assert text_of(form, ("double", "d", value))[:1000] == expected[:1000]


@pytest.mark.parametrize(
    ("form", "argument", "expected"),
    [
        ("%f", ("half", "e", 0.5), "0.500000"),
        ("%v3hf", ("<3 x half>", "3e", (1.0, 2.0, 3.0)), "1.000000,2.000000,3.000000"),
        ("%v2f", ("<2 x float>", "2f", (1.5, -2.5)), "1.500000,-2.500000"),  # C requires hl; everybody leaves it out
        ("%v2d", ("<2 x i64>", "2q", (1 << 40, -1)), "1099511627776,-1"),
        ("%hhd", ("i32", "i", 255), "-1"),
        ("%p", ("ptr addrspace(3)", "Q", 0), "0x0"),
        ("%5p|", ("ptr", "Q", 255), " 0xff|"),
        ("%s", ("ptr addrspace(2)", "Q", 2), "gr\u00fcn"),
        ("%s", ("ptr addrspace(2)", "Q", 3), "(not a string literal)"),
    ],
)
def test_values_by_hand(form: str, argument: tuple[str, str, object], expected: str):
    assert text_of(form, argument, literals={2: "gr\u00fcn".encode()}) == expected


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ('"%q", 1', r"'%q' is no conversion; allowed are %%, and % with flags"),
        ('"%n", 1', "'%n' is no conversion"),
        ('"%*d", 5, 7', r"'%\*d' is no conversion"),
        ('"50%", 1', "'%' is no conversion"),
        ('"%lld", 5L', "'%ll' is no conversion"),
        ('"%ls", "abc"', "'%ls' is no conversion"),
        ('"%v5d", (int4)(1)', "'%v5d' is no conversion"),
        ('"%v2s", "abc"', "'%v2s' is no conversion"),
        ('"%hld", 5', "'%hld' is no conversion"),
        ('"%d|%d", 7', "it has 2 conversions; the number of arguments is 1"),
        ('"%d", 1.5', "%d takes a value of kind integer, scalar; the argument has LLVM type double"),
        ('"%f", 3', "%f takes a value of kind float, scalar; the argument has LLVM type i32"),
        ('"%v2hlf", (float4)(1)', "%v2hlf takes a value of kind float, vector of 2; .* LLVM type <4 x float>"),
        ('"%d", (int2)(1)', "%d takes a value of kind integer, scalar; the argument has LLVM type <2 x i32>"),
        ('"%s", o', r"%s takes a string literal only; the argument has LLVM type ptr addrspace\(1\)"),
        ('"%s", 5', "%s takes a value of kind pointer"),
        ('"%5000d", 5', "'%5000d' is wider than 4095, which is the most allowed"),
    ],
)
def test_a_wrong_format_returns_minus_one_and_is_explained_once(call: str, reason: str):
    source = f"kernel void k(global int *o) {{ o[get_global_id(0)] = printf({call}); }}"
    for optimise in (True, False):
        text, results = run(make_launch(source, INTS), optimise=optimise)
        assert text.startswith("[printf at line 1 prints nothing and returns -1: ")
        assert text.count("\n") == 1
        assert re.search(reason, text)
        assert set(results.tolist()) == {-1}


def test_which_format_it_is_may_be_known_at_run_time_only():
    source = """kernel void k(global int *o) {
        int i = get_global_id(0);
        o[i] = printf(i & 1 ? "odd %d\\n" : i & 2 ? "even %s\\n" : "four %d\\n", i);
    }"""
    text, results = run(make_launch(source, INTS, global_size=4, local_size=4))
    assert results.tolist()[:4] == [0, 0, -1, 0]
    lines = text.splitlines()
    assert lines[0] == "four 0"
    assert lines[1] == "odd 1"
    assert "%s takes a value of kind pointer" in lines[2]
    assert lines[3] == "odd 3"


def test_strings_may_be_chosen_and_constants():
    source = """constant char name[] = "table";
    kernel void k(global int *o) { int i = get_global_id(0); printf("%s %s,", i & 1 ? "odd" : "even", name + i); }"""
    assert run(make_launch(source, INTS, global_size=3, local_size=3))[0] == "even table,odd able,even ble,"


def test_work_items_print_in_the_order_of_execution():
    source = """kernel void k(global int *o) {
        int i = get_local_id(0);
        if (i < 2) printf("a%d ", i);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i == 33) printf("b%d\\n", (int)get_group_id(0));
    }"""
    text, _ = run(make_launch(source, INTS, global_size=128, local_size=64))
    assert text == "a0 a1 b0\na0 a1 b1\n"


def test_an_address_prints_as_the_executor_knows_it():
    source = 'kernel void k(global int *o) { printf("%p,%p;", o, o + get_global_id(0)); }'
    text, _ = run(make_launch(source, INTS, global_size=2, local_size=2))
    pairs = [[int(word, 16) for word in pair.split(",")] for pair in text.strip(";").split(";")]
    assert [second - first for first, second in pairs] == [0, 4]


def test_what_has_no_place_is_counted():
    source = 'kernel void k(global int *o) { for (int i = 0; i < 2000; i++) printf("%d,", i); }'
    launch = make_launch(source, INTS)
    text, _ = run(launch)
    num_bytes = compile_launch(launch).native.printf_sites[0].num_bytes
    kept, notice = text.split("\n")[:2]
    assert kept.count(",") == RECORD_BYTES // num_bytes
    assert notice.startswith(f"[printf: {64 * 2000 - kept.count(','):,} more calls are left out; ")
    assert kept.startswith("0,1,2,3,")


def test_nothing_is_printed_after_what_has_no_place():
    """Not even a call that would still fit, or the text would not be the beginning of what was printed."""
    source = """kernel void k(global int *o) {
        for (int i = 0; i < 5000; i++) printf("%v16ld\\n", (long16)(i));
        printf("last\\n");
    }"""
    launch = make_launch(source, INTS, global_size=32, local_size=32)
    text, _ = run(launch)
    large = compile_launch(launch).native.printf_sites[0].num_bytes
    assert RECORD_BYTES % large >= compile_launch(launch).native.printf_sites[1].num_bytes
    assert "last" not in text
    assert f"{32 * 5001 - RECORD_BYTES // large:,} more calls are left out" in text


def test_text_is_bounded_too():
    source = 'kernel void k(global int *o) { for (int i = 0; i < 20; i++) printf("%4000d", i); }'
    text, _ = run(make_launch(source, INTS))
    shown = -(-MOST_TEXT // 4000)
    assert text.splitlines()[1] == (
        f"[printf: {64 * 20 - shown:,} more calls are left out; {4000 * shown:,} characters are shown]"
    )
    assert len(text) < MOST_TEXT + 4200


def test_a_trace_hands_the_text_of_its_work_groups_on():
    source = 'kernel void k(global int *o) { if (!get_local_id(0)) printf("%d\\n", (int)get_group_id(0)); }'
    launch = make_launch(source, "buffer:int32:32000", global_size=32000)
    texts: list[str] = []
    trace = trace_launch(launch, on_printf=texts.append)
    assert len(texts) == 1
    assert [int(line) for line in texts[0].split()] == sorted(set(trace.sub_groups["work_group"].tolist()))
    assert trace.sub_groups["weight"].sum() == pytest.approx(1000)
    calls = trace.static[trace.static["opcode_class"] == OPCODE_CLASSES.index("other")]
    assert len(calls) == 1
    silent = make_launch("kernel void k(global int *o) { o[get_global_id(0)] = 1; }", INTS)
    trace_launch(silent, on_printf=texts.append)
    assert len(texts) == 1


def test_the_text_comes_before_an_error():
    source = 'kernel void k(global int *o) { printf("at %d\\n", (int)get_global_id(0)); o[100] = 1; }'
    texts: list[str] = []
    with pytest.raises(MemoryAccessError, match="index 100"):
        trace_launch(make_launch(source, INTS), on_printf=texts.append)
    assert texts[0].startswith("at 0\nat 1\n")


def test_a_loop_that_prints_is_not_taken_by_weight():
    loop = "for (int i = 0; i < n; i++) {{ o[get_global_id(0)] = i; {0} }}"
    head = "kernel void k(global int *o, int n) { "
    kernels = [
        compile_launch(make_launch(f"{head}{loop.format(body)} }}", INTS, "int32:9")).native
        for body in ("if (i % 1000 == 999) o[0] += i;", 'printf("%d", i);')
    ]
    assert not weighable_loops(kernels[1])
