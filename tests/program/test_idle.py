"""What is left out of a trial: where work-groups go, and what they may not touch, stays what it is."""

from __future__ import annotations

import numpy as np
import pytest

from perfvec.errors import MemoryAccessError
from perfvec.launch import Launch
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.frontend import compile_kernel
from perfvec.program.idle import idle_instructions
from perfvec.program.ir import parse_kernel
from perfvec.program.native import translate
from tests.opencl import oclgrind_device
from tests.program.launching import make_launch, smallest_launches

IDLE = {  # and instructions that must be left out, by their opcodes or callees
    "arithmetic": ("float s = 0; for (int i = 0; i < n; i++) s = s * 0.5f + o[i]; o[g] = sin(s);", "sin"),
    "vector": ("vstore4(vload4(g, o) * 3.0f, g, o);", "vstore4"),
    "atomic": ("atomic_add(p + (g & 7), n);", "atomic_add"),
    "private array": ("float a[4]; for (int i = 0; i < 4; i++) a[i & n] = o[i]; o[g] = a[n & 3];", "store"),
}
AT_WORK = {
    "index": ("o[p[g] & 1023] = 1;", "load"),
    "branch": ("if (o[g] > 0.5f) o[g] = 1;", "load"),
    "index through memory": ("p[g] = g * 7; o[p[(g + 1) & 63] & 1023] = 1;", "store"),
    "index through an atomic": ("int at = atomic_add(p, 1); o[at & 1023] = 1;", "atomic_add"),
    "index after an atomic": ("atomic_add(p, 1); barrier(2); o[p[0] & 1023] = 1;", "atomic_add"),
    "loop": ("int i = n; while (i > 1) i = i & 1 ? 3 * i + 1 : i / 2; o[g] = i;", "lshr"),
    "volatile": ("volatile global float* v = o; v[g] = 1;", "store"),
    "pointer of a phi": ("global int* q = n > 3 ? p : p + 8; *q = g; o[p[1] & 1023] = 1;", "store"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _front_end():
    oclgrind_device()


def kernel(body: str, *, size: int = 64) -> Launch:
    source = f"kernel void k(global float *o, global int *p, int n) {{ int g = get_global_id(0); {body} }}"
    return make_launch(
        source, "buffer:float32:1024", "buffer:int32:1024:indices(64)", "int32:9", global_size=size, local_size=32
    )


def parts(launch: Launch) -> tuple[str, str]:
    """What is idle, and what is not, as text."""
    native = compile_launch(launch).native
    idle = idle_instructions(native)
    everything = [i for segment in native.segments for i in segment.body]
    told = {id(i): f"{i.opcode} {i.callee}" for i in everything}
    return (
        "; ".join(text for key, text in told.items() if key in idle),
        "; ".join(text for key, text in told.items() if key not in idle),
    )


def ways(launch: Launch) -> list[np.ndarray]:
    """How often each segment ran, with all instructions and without what is idle."""
    compiled, found = compile_launch(launch), []
    for is_trial in (False, True):
        execution = Execution(compiled, launch, is_trial=is_trial)
        done = [
            (execution.segment_count.copy(), execution.segment_lanes.copy())
            for _ in execution.run_each(range(execution.num_work_groups))
        ]
        found.append(np.array(done))
    return found


@pytest.mark.parametrize("name", IDLE)
def test_what_decides_nothing_is_left_out(name: str):
    body, opcode = IDLE[name]
    launch = kernel(body)
    assert opcode in parts(launch)[0]
    full, trial = ways(launch)
    np.testing.assert_array_equal(full, trial)


@pytest.mark.parametrize("name", AT_WORK)
def test_what_reaches_a_branch_or_an_address_is_not(name: str):
    body, opcode = AT_WORK[name]
    launch = kernel(body)
    assert opcode in parts(launch)[1]
    full, trial = ways(launch)
    np.testing.assert_array_equal(full, trial)


@pytest.mark.parametrize(
    ("flags", "is_known"), [("", True), ("nnan ", True), ("nnan contract ", False), ("fast ", False)]
)
def test_numbers_that_may_be_computed_as_suits_are_left_alone(flags: str, is_known: bool):
    launch = kernel("o[g] = o[g] * o[g + 1];")
    ir = compile_kernel(launch).ir
    assert ir.count("fmul float") == 1
    native = translate(parse_kernel(ir.replace("fmul float", f"fmul {flags}float"), "k", is_optimised=True))
    assert bool(idle_instructions(native)) == is_known


def test_a_store_outside_a_buffer_is_found_though_nothing_is_stored():
    launch = kernel("o[g + 1000] = sin(o[g]);")
    execution = Execution(compile_launch(launch), launch, is_trial=True)
    with pytest.raises(MemoryAccessError, match=r"work-group \(0,\)"):
        list(execution.run_each([0, 1]))


def test_all_suites_go_the_same_way():
    for entry in smallest_launches()[::9]:
        full, trial = ways(entry.launch)
        np.testing.assert_array_equal(full, trial, err_msg=entry.name)
