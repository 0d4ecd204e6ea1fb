"""Recorder: the trace's streams give back, token for token, what a slow twin makes of the executor's record."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfvec.program.classify import CLASS_INDEX, StaticTable, make_static_table
from perfvec.program.core import windows
from perfvec.program.driver import MARK_GROUP_END, MARK_SUB_GROUP
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.record import Recorder, unpack_outcomes
from perfvec.trace_data import ADDRESS_SPACES, MEMORY_DTYPE, STATIC_DTYPE
from tests.opencl import oclgrind_device
from tests.program.launching import smallest_launches
from tests.program.odd_kernels import odd_kernels
from tests.program.recording import Piece, slow_tokens, tokens_of_trace

ODD = odd_kernels()
SUITES = (
    "dense/gemm_tiled",
    "dense/transpose_tiled",
    "sparse/spmv_csr_scalar",
    "scan/scan_blelloch",
    "graph/bfs_top_down",
)


def record(launch: Any, *, most_groups: int = 6) -> tuple[Recorder, dict, StaticTable]:
    """Record some work-groups; the recorder, the slow twin's tokens and the static table."""
    compiled = compile_launch(launch)
    static = make_static_table(compiled.native)
    execution = Execution(compiled, launch)
    groups = np.arange(min(most_groups, execution.num_work_groups))
    recorder = Recorder(
        compiled.native,
        static,
        num_sub_groups=execution.num_sub_groups,
        groups=groups,
        num_groups=(len(groups),),
        weights=np.full(len(groups), 1.5),
        memory_bytes={number: memory.num_bytes for number, memory in execution.memories.items()},
    )
    pieces: list[Piece] = []
    for group in groups.tolist():

        def consume(events: np.ndarray, addresses: np.ndarray, group: int = group) -> None:
            pieces.append(Piece(group=group, events=events.copy(), addresses=addresses.copy()))
            recorder.consume(events, addresses)

        execution.run([group], consume)
    num_sites = [sum(site.segment == s.index for site in compiled.native.sites) for s in compiled.native.segments]
    return recorder, slow_tokens(pieces, static, num_sites), static


@pytest.mark.parametrize("name", [n for n in ODD if n not in ("large_struct",)])
def test_odd_kernels(name: str):
    oclgrind_device()
    recorder, expected, _ = record(ODD[name])
    found = tokens_of_trace(recorder.tables())
    assert {key: tokens for key, tokens in found.items() if tokens} == expected


@pytest.mark.parametrize("name", SUITES)
def test_suite_kernels(name: str):
    oclgrind_device()
    launch = next(e.launch for e in smallest_launches() if f"{e.suite}/{e.kernel}" == name)
    recorder, expected, static = record(launch)
    tables = recorder.tables()
    assert tokens_of_trace(tables) == expected
    lengths = np.diff(tables["window_start"])
    assert lengths.max() <= windows.MAX_WINDOW
    assert tables["sub_groups"]["num_instructions"].tolist() == [len(tokens) for tokens in expected.values()]
    assert set(tables["sub_groups"]["weight"]) == {1.5}
    assert tables["token_static"].max() < len(static.rows)


def _windows(tables: dict[str, np.ndarray]) -> list[tuple]:
    columns = zip(*(tables[f"token_{name}"].tolist() for name in ("static", "lanes", "memory")), strict=True)
    tokens, starts = list(columns), tables["window_start"]
    return [tuple(tokens[a:b]) for a, b in itertools.pairwise(starts)]


def test_equal_windows_are_kept_once():
    oclgrind_device()
    launch = next(e.launch for e in smallest_launches() if f"{e.suite}/{e.kernel}" == "dense/gemm_tiled")
    recorder, _, _ = record(launch)
    tables = recorder.tables()
    found = _windows(tables)
    assert len(set(found)) == len(found)
    assert len(found) < len(tables["stream_window"])
    assert len(set(map(bytes, tables["memory"]))) == len(tables["memory"])


def test_windows_with_one_hash_code_are_told_apart():
    """A kept window whose second code is not that of its tokens: as if another one had the same first code."""
    words, kept, sizes = np.zeros(512, np.int32), np.zeros((9, 2), np.int64), np.zeros(9, np.uint8)
    slots, stream = np.full(16, windows.EMPTY), np.zeros(8, np.int64)
    scalars = np.zeros(windows.NUM_SCALARS, np.int64)
    open_words, opened = np.arange(windows.MAX_WORDS, dtype=np.int32)[None], np.zeros((1, 3), np.int64)
    with np.errstate(over="ignore"):
        for _ in range(3):
            opened[0, windows.OPEN_LENGTH], opened[0, windows.OPEN_WORDS] = 9, 5
            windows.end_window(words, kept, sizes, slots, stream, scalars, open_words, opened, 0, 0)
            kept[0, windows.WINDOW_CHECK] = 77
    assert stream[:3].tolist() == [0, 1, 1]
    assert sizes[:3].tolist() == [9, 9, 0]
    assert words[:11].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0]


def test_windows_that_differ_have_codes_that_differ():
    """Windows of few small words, as real ones are: all of two words, and each with a word of zero behind it."""
    words = np.zeros((2, 64, 64, windows.MAX_WORDS), np.int32)
    words[..., 0], words[..., 1] = np.arange(64)[:, None], np.arange(64)
    with np.errstate(over="ignore"):
        codes = [windows.window_codes(row, 2 + extra) for extra in range(2) for row in words[extra].reshape(-1, 256)]
    for column in range(2):
        assert len({code[column] for code in codes}) == len(codes)


# ---- made-up records, long enough that every table has to grow --------------------------------------------------

MEMORY = 3 << 40  # of 1 MiB


@dataclass
class MadeUp:
    """A kernel that never was: segments of instructions, and a record of them."""

    native: Any
    static: StaticTable
    num_sites: list[int]
    pieces: list[Piece]


def make_up(seed: int, *, num_groups: int, num_events: int, num_sub_groups: int, span: int) -> MadeUp:
    """Random segments, masks and addresses; accesses of an instruction keep their shape most of the time."""
    rng = np.random.Generator(np.random.PCG64(seed))
    sizes = rng.integers(0, 9, 6)
    sizes[rng.integers(6)] = 150  # longer than a window
    rows = np.zeros(sizes.sum(), STATIC_DTYPE)
    start, site = np.concatenate([[0], np.cumsum(sizes)]), np.full(len(rows), -1)
    rows["access_bytes"] = rng.choice([1, 2, 4, 8, 16, 64], len(rows))
    num_sites = []
    for first, end in itertools.pairwise(start):
        chosen = first + np.flatnonzero(rng.random(end - first) < 0.3)
        site[chosen] = np.arange(len(chosen))
        num_sites.append(len(chosen))
    spaces = [ADDRESS_SPACES.index(name) for name in ("private", "global", "constant", "local")]
    rows["address_space"] = np.where(site >= 0, rng.choice(spaces, len(rows)), 0)
    is_private = rows["address_space"] == spaces[0]  # beyond 256 sectors they are not told apart
    rows["access_bytes"][is_private] = np.minimum(rows["access_bytes"][is_private], 16)
    rows["opcode_class"] = np.where(rng.random(len(rows)) < 0.2, CLASS_INDEX["atomic"], CLASS_INDEX["load"])
    steps = rng.choice([0, 1, 4, 8, 128, -4], len(rows))
    pieces = []
    for group in range(num_groups):
        events: list[tuple[int, int]] = []
        addresses: list[np.ndarray] = []
        for number in range(num_events):
            if number % 37 == 0:
                events.append((MARK_SUB_GROUP, int(rng.integers(num_sub_groups))))
            segment = int(rng.integers(len(sizes)))
            mask = int(rng.choice([0xFFFF_FFFF, 0xFFFF, 0xFFFF_0000, int(rng.integers(1, 1 << 32))]))
            events.append((segment, mask))
            for row in range(start[segment], start[segment + 1]):
                if site[row] >= 0:
                    lanes = MEMORY + 4096 + int(rng.integers(span)) * 4 + steps[row] * np.arange(32)
                    if rng.random() < 0.2:
                        lanes += 4 * rng.integers(0, 50, 32)
                    addresses.append(np.where(mask >> np.arange(32) & 1, lanes, -1))
        events.append((MARK_GROUP_END, 0))
        table = np.array(addresses, np.int64).reshape(-1, 32)
        pieces.append(Piece(group=group, events=np.array(events, np.uint32), addresses=table))
    native = SimpleNamespace(
        segments=[SimpleNamespace(is_loop_header=bool(h), successors=()) for h in rng.random(len(sizes)) < 0.4],
        sites=[SimpleNamespace(segment=s) for s, count in enumerate(num_sites) for _ in range(count)],
    )
    static = StaticTable(rows=rows, start=start.astype(np.int64), site=site.astype(np.int64), opcode_counts=())
    return MadeUp(native=native, static=static, num_sites=num_sites, pieces=pieces)


def record_made_up(made_up: MadeUp, num_sub_groups: int) -> dict[str, np.ndarray]:
    groups = np.arange(len(made_up.pieces))
    recorder = Recorder(
        made_up.native,
        made_up.static,
        num_sub_groups=num_sub_groups,
        groups=groups,
        num_groups=(len(groups),),
        weights=np.ones(len(groups)),
        memory_bytes={3: 1 << 20},
    )
    for piece in made_up.pieces:
        recorder.consume(piece.events, piece.addresses)
    return recorder.tables()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.sampled_from((64, 5000)))
def test_made_up_records(seed: int, span: int):
    made_up = make_up(seed, num_groups=2, num_events=60, num_sub_groups=3, span=span)
    found = tokens_of_trace(record_made_up(made_up, 3))
    assert {key: tokens for key, tokens in found.items() if tokens} == slow_tokens(
        made_up.pieces, made_up.static, made_up.num_sites
    )


def test_long_made_up_record():
    made_up = make_up(1, num_groups=3, num_events=400, num_sub_groups=40, span=200_000)
    tables = record_made_up(made_up, 40)
    assert len(tables["token_static"]) > 1 << 14
    assert len(tables["memory"]) > 1 << 10
    found = {key: tokens for key, tokens in tokens_of_trace(tables).items() if tokens}
    assert found == slow_tokens(made_up.pieces, made_up.static, made_up.num_sites)


# ---- packing ----------------------------------------------------------------------------------------------------


@given(st.tuples(*(st.integers(0, 400) for _ in range(4)), st.integers(0, 5), *(st.integers(0, 40) for _ in range(2))))
@settings(deadline=None, derandomize=True)
def test_packed_outcomes_come_back(values: tuple[int, ...]):
    sectors, lines, passes, same, stride, reuse_group, reuse_device = values
    key = windows.pack_shape(sectors, lines, passes, same, stride) | windows.pack_reuse(
        reuse_group, reuse_device, 7, 300
    )
    more = windows.pack_more(32, sectors, lines, passes, same)
    row = unpack_outcomes(np.array([[key, more]], np.int64))[0]
    expected = dict.fromkeys(MEMORY_DTYPE.names or (), 0) | {
        "sectors": min(sectors, 255),
        "lines": min(lines, 255),
        "bank_passes": min(passes, 255),
        "same_address": min(same, 63),
        "distinct_addresses": 32,
        "sectors_8": min(sectors, 255),
        "lines_8": min(lines, 255),
        "sectors_16": min(passes, 255),
        "lines_16": min(same, 255),
        "stride_class": stride,
        "reuse_work_group": reuse_group,
        "reuse_device": reuse_device,
        "cold_sectors_work_group": 7,
        "cold_sectors_device": 255,
    }
    assert {name: int(row[name]) for name in expected} == expected
