"""Oracle 2: on the same unoptimised bitcode the executor runs each instruction as often as Oclgrind does.

Equal are: the number of each opcode, of loads and stores by address space with their bytes, and of calls by callee.
Functions that a program defines are inlined here and called in Oclgrind, so for the kernels that use them the calls,
what the inliner makes of them, and the opcodes of `INLINED` are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from perfvec.errors import PerfVecError
from perfvec.launch import Launch
from tests.opencl import oclgrind_device
from tests.program.cgo17 import cgo17_launches
from tests.program.counting import Counts, counted_by_oclgrind, executed
from tests.program.launching import make_launch, quick_machine_code, smallest_launches
from tests.program.odd_kernels import odd_kernels

MOST_WORK_ITEMS = 64  # of the suites' launches that Oclgrind interprets
# Their queues depend on the order of the work-items.
RACES = {"graph/bfs_group", "cgo17/22118adce355/A"}
# One call to Oclgrind, a loop here.
LOOPS_HERE = {"async_copies"}
LAUNCHES: dict[str, Launch] = {
    **{f"odd/{name}": launch for name, launch in odd_kernels().items() if name not in LOOPS_HERE},
    **{
        name: entry.launch
        for entry in smallest_launches()
        if entry.launch.num_work_items <= MOST_WORK_ITEMS and (name := f"{entry.suite}/{entry.kernel}") not in RACES
    },
}
# A call's arguments and result pass through memory and casts that the inliner folds.
INLINED = {"alloca", "br", "ret", "bitcast", "getelementptr", "call llvm.memcpy()"}
BUDGET = 2_000_000


@pytest.fixture(scope="module")
def from_oclgrind(request: pytest.FixtureRequest) -> Iterator[Future[dict[str, Counts]]]:
    """Oclgrind's counts of the launches whose tests will run, under way while the executor runs."""
    oclgrind_device()
    wanted = {
        name: LAUNCHES[name]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_counts_equal_those_of_oclgrind
        for name in [item.callspec.params["name"]]
    }
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(counted_by_oclgrind, wanted)


def _differences(ours: Counts, theirs: Counts) -> dict[str, tuple[object, object]]:
    called = {
        key
        for key in theirs
        if key.startswith("call ") and not key.startswith(("call _Z", "call llvm.", "call printf"))
    }
    ignored = called | INLINED if called else set()
    return {
        key: (ours.get(key), theirs.get(key))
        for key in ours.keys() | theirs.keys()
        if key not in ignored and ours.get(key) != theirs.get(key)
    }


@pytest.mark.parametrize("name", LAUNCHES)
def test_counts_equal_those_of_oclgrind(
    name: str, from_oclgrind: Future[dict[str, Counts]], confirm: Callable[..., None]
):
    with quick_machine_code():
        ours = executed(LAUNCHES[name], budget=BUDGET)
    assert not _differences(ours, from_oclgrind.result()[name])
    confirm("kernels have Oclgrind's instruction counts")


def test_counts_of_cgo17_kernels(confirm: Callable[..., None]):
    launches = {name: launch for name, launch in list(cgo17_launches().items())[::3] if name not in RACES}
    oclgrind_device()
    ours = _executed_where_possible(launches)
    theirs = counted_by_oclgrind({name: launches[name] for name in ours})
    assert len(ours) >= 30
    for name, counts in ours.items():
        assert not _differences(counts, theirs[name]), name
    confirm("kernels of CGO'17 have Oclgrind's instruction counts", len(ours))


def _executed_where_possible(launches: Mapping[str, Launch]) -> dict[str, Counts]:
    """Without the sources that call functions they lack, and the kernels that the made-up arguments lead astray."""
    found: dict[str, Counts] = {}
    for name, launch in launches.items():
        try:
            with quick_machine_code():
                found[name] = executed(launch, budget=BUDGET)
        except PerfVecError:
            continue
    return found


def test_counts_by_hand():
    """One work-group of 32: 8 lanes take the branch, and each of them goes round the loop twice."""
    launch = make_launch(
        "kernel void k(global int *o) { int i = get_global_id(0); if (i < 8) for (int j = 0; j < 2; j++) o[i] += j; }",
        "buffer:int32:32",
        global_size=32,
    )
    counts = executed(launch, budget=BUDGET)
    assert counts["load global"] == (16, 64)
    assert counts["store global"] == (16, 64)
    assert counts["icmp"] == (32 + 8 * 3, 0)
    assert counts["call _Z13get_global_idj()"] == (32, 0)
    assert counts["ret"] == (32, 0)


def test_a_difference_is_seen():
    assert _differences({"add": (3, 0)}, {"add": (4, 0), "ret": (1, 0)}) == {
        "add": ((3, 0), (4, 0)),
        "ret": (None, (1, 0)),
    }
    assert _differences({"add": (3, 0)}, {"add": (3, 0), "ret": (1, 0), "call f()": (1, 0)}) == {}
