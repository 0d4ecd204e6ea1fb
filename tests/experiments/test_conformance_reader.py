"""The reader of OpenCL program tests, the comparison and the verdicts, on texts made up here."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.conformance.compare import find_mismatch
from experiments.conformance.executors import AbstractExecutor, AbstractProgram, BuildError, Traits, build_options
from experiments.conformance.judge import Outcome, judge
from experiments.conformance.reader import (
    Buffer,
    Image,
    KernelTest,
    ProgramFile,
    Sampler,
    TestFormatError,
    Tolerance,
    Value,
    read_argument,
    read_element,
    read_program,
)
from perfvec.arguments import ElementType

PROGRAM = """\
// Doubles and halves.
/*!
# A comment.
[config]
name: Two kernels
clc_version_min: 11   # another
build_options: -D FACTOR=2
kernel_name: double_it
dimensions: 2
global_size: 4 2 0
local_size: 2 1 0

[test]
name: by two
arg_in: 0 buffer int[4] 1 -2 \\
                        0x10 010   # the last is octal
arg_out: 1 buffer int[4] repeat 2 4
arg_in: 2 float3 0.5 1 inf

[test]
name: by half
kernel_name: halve_it
dimensions: 1
global_size: 8 0 0
local_size: NULL
global_offset: 3 0 0
expect_test_fail: true
arg_in: 0 buffer uchar[2] NULL
arg_out: 1 buffer float[2] 0x1.8p1 nan tolerance 3 ulp
!*/
kernel void double_it() {}
"""


def test_program():
    program = read_program(PROGRAM)
    assert program.source == PROGRAM
    assert (program.version_min, program.version_max, program.build_options) == (11, 0, "-D FACTOR=2")
    assert [test.name for test in program.tests] == ["by two", "by half"]
    assert [test.kernel_name for test in program.tests] == ["double_it", "halve_it"]


def test_first_test_has_the_sizes_of_the_configuration():
    test = read_program(PROGRAM).tests[0]
    assert (test.dimensions, test.global_size, test.local_size) == (2, (4, 2, 0), (2, 1, 0))
    assert test.global_offset is None
    assert not test.expects_failure
    buffer, value = test.inputs
    assert isinstance(buffer, Buffer) and isinstance(value, Value)
    assert buffer.data is not None and buffer.data.tolist() == [1, -2, 16, 8]
    assert value.data.tolist() == [0.5, 1, np.inf, 0]  # a 3-vector takes four places
    (output,) = test.outputs
    assert output.data is not None and output.data.tolist() == [2, 4, 2, 4]


def test_second_test_overrides_them():
    test = read_program(PROGRAM).tests[1]
    assert (test.dimensions, test.global_size, test.local_size, test.global_offset) == (1, (8, 0, 0), None, (3, 0, 0))
    assert test.expects_failure
    (buffer,), (output,) = test.inputs, test.outputs
    assert isinstance(buffer, Buffer) and buffer.data is None
    assert output.data is not None and output.data[0] == 3.0 and np.isnan(output.data[1])
    assert output.tolerance == Tolerance(amount=3.0, is_ulp=True)


def test_configuration_of_a_build():
    header = (
        "/*!\n[config]\nexpect_build_fail: true\nclc_version_max: 12\ndevice_regex: gfx\n"
        "require_device_extensions: a b\nneed_image_support: 1\n!*/"
    )
    program = read_program(header)
    assert program.expects_build_failure and program.needs_images and program.tests == ()
    assert (program.version_max, program.device_pattern, program.extensions) == (12, "gfx", ("a", "b"))


def test_backslash_before_an_empty_line():
    program = read_program("/*!\n[config]\n[test]\narg_in: 0 int 5 \\\n\nname: after\n!*/")
    assert program.tests[0].name == "after"
    assert len(program.tests[0].inputs) == 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0 uchar 255", [255]),
        ("0 char 0xff", [-1]),  # as C converts it
        ("0 ulong 0xffffffffffffffff", [2**64 - 1]),
        ("0 long -9223372036854775808", [-(2**63)]),
        ("0 double2 -1e-3 0x1p-2", [-0.001, 0.25]),
        ("0 half 70000", [np.inf]),
        ("0 float -INF", [-np.inf]),
    ],
)
def test_values(text: str, values: list[float]):
    value = read_argument(text)
    assert isinstance(value, Value)
    assert value.data.tolist() == values


def test_vectors_of_three_are_padded():
    buffer = read_argument("2 buffer short3[2] 1 2 3 4 5 6")
    assert isinstance(buffer, Buffer) and buffer.data is not None
    assert buffer.data.tolist() == [1, 2, 3, 0, 4, 5, 6, 0]


def test_random_contents_are_the_same_each_time():
    first, second = (read_argument("0 buffer int[5] random") for _ in range(2))
    assert isinstance(first, Buffer) and isinstance(second, Buffer)
    assert first.data is not None and second.data is not None
    assert len(set(first.data.tolist())) == 5
    assert first.data.tolist() == second.data.tolist()


def test_image_and_sampler():
    image = read_argument(
        "1 image uchar4 0 1 2 3 4 5 6 7 image_type 2d image_width 2 image_height 1 "
        "image_channel_order rgba image_channel_data_type UNSIGNED_INT8 tolerance 1"
    )
    assert isinstance(image, Image)
    assert (image.kind, image.width, image.height, image.count) == ("2d", 2, 1, 2)
    assert (image.channel_order, image.channel_type) == ("RGBA", "UNSIGNED_INT8")
    assert image.data.tolist() == list(range(8))
    assert image.tolerance == Tolerance(amount=1.0)
    assert read_argument("2 sampler normalized_coords 1 addressing_mode repeat filter_mode LINEAR") == Sampler(
        index=2, is_normalized=True, addressing="REPEAT", filter="LINEAR"
    )


def test_element_types():
    assert read_element("uint16") == ElementType(scalar="uint32", width=16)
    assert read_element("half") == ElementType(scalar="float16")
    with pytest.raises(TestFormatError, match="'quad' is no type"):
        read_element("quad")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("[test]\narg_in: 0 buffer int[3] 1 2", "2 numbers for 3 of int32"),
        ("[test]\narg_in: 0 buffer int 1", "'int' should be a type and a count"),
        ("[test]\narg_in: x int 1", "'x int 1' is no argument"),
        ("[test]\narg_in: 0 int one", "'one' is no whole number"),
        ("[test]\narg_in: 0 float one", "'one' is no number"),
        ("[test]\narg_out: 0 int 1", "'0 int 1' cannot be a result"),
        ("[test]\nglobal_size: 4 4", "'4 4' should be three numbers"),
        ("[test]\nexpect_test_fail: maybe", "'maybe' is not one of true, 1, false, 0"),
        ("[test]\ncolour: red", r"key 'colour' is not one of section \[test\]"),
        ("[test]\nclc_version_min: 10", r"key 'clc_version_min' is not one of section \[test\]"),
        ("hello", "neither a section nor `key: value`: 'hello'"),
        ("[test]\narg_in: 0 sampler normalized_coords 1 filter_mode LINEAR", "has no 'addressing_mode'"),
        ("[test]\narg_in: 0 image int4 0 0 0 0 image_type 2d", "image argument 0: KeyError"),
    ],
)
def test_refusals(lines: str, message: str):
    with pytest.raises(TestFormatError, match=message):
        read_program(f"/*!\n[config]\n{lines}\n!*/")


def test_program_without_configuration():
    with pytest.raises(TestFormatError, match="no configuration"):
        read_program("kernel void k() {}")


# ---- comparison -------------------------------------------------------------------------------------------------


def _buffer(text: str) -> Buffer:
    argument = read_argument(f"0 buffer {text}")
    assert isinstance(argument, Buffer)
    return argument


def _mismatch(expected: str, found: list[float]) -> str:
    buffer = _buffer(expected)
    assert buffer.data is not None
    return find_mismatch(buffer, np.array(found, buffer.data.dtype).tobytes())


@pytest.mark.parametrize(
    ("expected", "found", "is_same"),
    [
        ("int[2] 1 2", [1, 2], True),
        ("int[2] 1 2", [1, 3], False),
        ("int[2] 1 2 tolerance 1", [0, 3], True),
        ("long[1] 9223372036854775807", [-(2**63)], False),  # their difference is no long
        ("uchar[1] 0 tolerance 3", [253], False),  # nor does it wrap
        ("float[1] nan", [np.nan], True),
        ("float[1] nan", [1.0], False),
        ("float[1] 1", [np.nan], False),
        ("float[1] inf", [np.inf], True),
        ("float[1] inf tolerance 16 ulp", [3e38], False),
        ("float[1] -inf", [np.inf], False),
        ("float[1] 0", [-0.0], True),
        ("float[1] 1 tolerance 2 ulp", [1 + 2 * 2.0**-23], True),
        ("float[1] 1 tolerance 2 ulp", [1 + 3 * 2.0**-23], False),
        ("float[1] 1 tolerance 2 ulp", [1 - 2 * 2.0**-23], True),  # four numbers below, where they lie closer
        ("float[1] 0 tolerance 1 ulp", [2.0**-149], True),
        ("float[1] 5 tolerance 16777216 ulp", [np.nan], True),
        ("float[1] 0x1.fffffep127 tolerance 1 ulp", [3.4028233e38], True),
        ("float[1] 0x1.fffffep127 tolerance 1 ulp", [3.4028230e38], False),
        ("double[1] 1 tolerance 1 ulp", [1 + 2.0**-52], True),
        ("double[1] 1 tolerance 1 ulp", [1 + 2.0**-51], False),
        ("half[1] 1 tolerance 1 ulp", [1 + 2.0**-10], True),
        ("half[1] 1 tolerance 1 ulp", [1 + 2.0**-9], False),
        ("float[1] 4.1 tolerance 0.1", [4.05], True),
        ("float[1] 4.1 tolerance 0.1", [3.9], False),
        ("float3[1] 1 2 3", [1, 2, 3, 99], True),  # the padding does not count
    ],
)
def test_comparison(expected: str, found: list[float], is_same: bool):
    assert (_mismatch(expected, found) == "") is is_same


def test_message_names_the_first_difference():
    assert _mismatch("float2[2] 1 2 3 4 tolerance 2 ulp", [1, 2, 3, 5]) == (
        "argument 0[1].s1 is 5.0, expected 4.0 give or take 2 ulp; 1 of 4 numbers differ"
    )
    assert _mismatch("int[2] 1 2", [0, 0]) == "argument 0[0] is 0, expected 1; 2 of 2 numbers differ"
    assert find_mismatch(_buffer("int[2] 1 2"), b"\0" * 4) == "argument 0 has 4 bytes, expected 8"


# ---- verdicts ---------------------------------------------------------------------------------------------------


class _Program(AbstractProgram):
    def run(self, test: KernelTest) -> dict[int, bytes]:
        """Kernel `five` gives 5; others are not there."""
        if test.kernel_name != "five":
            raise LookupError(f"no kernel {test.kernel_name}")
        return {0: np.array([5], np.int32).tobytes()}


class _Executor(AbstractExecutor):
    def traits(self) -> Traits:
        return Traits(name="dull", version=12, extensions=frozenset("a"), max_local_size=8, has_images=False)

    def build(self, file: ProgramFile) -> AbstractProgram:
        if "bad" in file.source:
            raise BuildError("line 1: bad")
        return _Program()


def _outcomes(header: str, source: str = "", *, first: int = 0) -> list[Outcome]:
    file = read_program(f"/*!\n[config]\n{header}\n!*/ {source}")
    return [outcome for outcome in judge(_Executor(), file, first=first) if outcome is not None]


def _test(expected: int, more: str = "", kernel_name: str = "five") -> str:
    return f"[test]\nname: t\nkernel_name: {kernel_name}\narg_out: 0 buffer int[1] {expected}\n{more}\n"


@pytest.mark.parametrize(
    ("header", "source", "verdict", "cause"),
    [
        (_test(5), "", "passed", ""),
        (_test(6), "", "failed", "argument 0[0] is 5, expected 6; 1 of 1 numbers differ"),
        (_test(6, "expect_test_fail: true"), "", "passed", ""),
        (_test(5, "expect_test_fail: true"), "", "failed", "the results are those that must not come out"),
        (_test(5, kernel_name="six"), "", "failed", "LookupError: no kernel six"),
        (_test(5, kernel_name=""), "", "skipped", "a template: it names no kernel"),
        (_test(5, "local_size: 16 1 1"), "", "skipped", "the work-group of 16 work-items is larger than the device"),
        (_test(5), "bad", "failed", "line 1: bad"),
        ("", "", "passed", ""),
        ("", "bad", "failed", "line 1: bad"),
        ("expect_build_fail: true", "bad", "passed", ""),
        ("expect_build_fail: true", "", "failed", "the program builds; the compiler must refuse it"),
        ("clc_version_min: 20", "bad", "skipped", "needs OpenCL C 2.0; the device has 1.2"),
        ("device_regex: bright", "", "skipped", "is for devices called bright"),
        ("require_device_extensions: a b", "", "skipped", "needs b"),
        ("need_image_support: true", "", "skipped", "needs images"),
    ],
)
def test_verdicts(header: str, source: str, verdict: str, cause: str):
    (outcome,) = _outcomes(header, source)
    assert outcome.verdict == verdict
    assert outcome.cause.startswith(cause) and bool(outcome.cause) == bool(cause)


def test_later_tests_alone():
    assert [o.verdict for o in _outcomes(_test(6) + _test(5), first=1)] == ["passed"]


def test_versions_in_build_options():
    file = ProgramFile(source="", build_options="-DX")
    assert build_options(file, 12) == "-DX -cl-std=CL1.2"
    assert build_options(ProgramFile(source="", version_max=11), 12) == "-cl-std=CL1.1"
    assert build_options(ProgramFile(source="", version_max=10), 12) == ""
    assert build_options(ProgramFile(source="", build_options="-cl-std=CL1.1"), 12) == "-cl-std=CL1.1"
