"""How often each instruction of a launch runs: by the executor, and by Oclgrind in a process of its own.

Run as a module, it reads pickled launches from standard input and lets Oclgrind print its counts.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from perfvec.launch import Launch
from perfvec.program.accesses import TypeSizes, accesses_of
from perfvec.program.executor import Execution, compile_launch
from perfvec.program.ir import Instruction
from tests.program.agreement import WITHOUT_OPTIMISER

# By Oclgrind's words, such as "load private", "call f()" or "fadd": how often it runs, and how many bytes it loads or
# stores, the padding of 3-vectors included.
Counts = Mapping[str, tuple[int, int]]
_SPACES = ("private", "global", "constant", "local")
_LINE = re.compile(r"^\s*([\d,]+) - (.+?)(?: \((\d+) bytes\))?$")
_MARK = "kernel number"


def executed(launch: Launch, *, budget: int) -> Counts:
    """Instructions that the executor's lanes ran, on unoptimised IR."""
    compiled = compile_launch(launch, optimise=False)
    native = compiled.native
    execution = Execution(compiled, launch, budget=budget)
    execution.run(range(execution.num_work_groups))
    at_start = {b.label: [i for i in b.instructions if i.opcode in ("phi", "alloca")] for b in native.kernel.blocks}
    times: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for segment, lanes in zip(native.segments, execution.segment_lanes.tolist(), strict=True):
        first = at_start[segment.label] if segment.is_first else []
        last = [segment.terminator] if segment.terminator else []
        for instruction in (*first, *segment.body, *last):
            name, num_bytes = _describe(instruction, native.sizes)
            times[name] += lanes
            moved[name] += lanes * num_bytes
    return {name: (times[name], moved[name]) for name in times if times[name]}


def _describe(instruction: Instruction, sizes: TypeSizes) -> tuple[str, int]:
    if instruction.opcode == "call":
        return f"call {_without_types(instruction.callee)}()", 0
    if instruction.opcode in ("load", "store"):
        (access,) = accesses_of(instruction, sizes)
        return f"{instruction.opcode} {_SPACES[access.space]}", sizes.bytes_of(instruction.type)
    return instruction.opcode, 0


def _without_types(callee: str) -> str:
    """An intrinsic's name; its types are written otherwise in Oclgrind's older LLVM."""
    return ".".join(callee.split(".")[:2]) if callee.startswith("llvm.") else callee


def counted_by_oclgrind(launches: Mapping[str, Launch]) -> dict[str, Counts]:
    """Oclgrind's counts of each launch; a launch that it cannot run is left out."""
    environment = {**os.environ, "OCLGRIND_INST_COUNTS": "1", "OCLGRIND_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-m", __name__],
        input=pickle.dumps(list(launches.values())),
        capture_output=True,
        env=environment,
        check=False,
    )
    parts = result.stdout.decode(errors="replace").split(_MARK)[1:]
    assert len(parts) == len(launches), result.stderr.decode(errors="replace")[-2000:]
    found = {name: _read(part) for name, part in zip(launches, parts, strict=True)}
    return {name: counts for name, counts in found.items() if counts}


def _read(text: str) -> Counts:
    counts: dict[str, tuple[int, int]] = {}
    for match in filter(None, map(_LINE.match, text.splitlines())):
        name = match[2]
        if name.startswith("call "):
            name = f"call {_without_types(name[5:-2])}()"
        times, moved = counts.get(name, (0, 0))
        counts[name] = times + int(match[1].replace(",", "")), moved + int(match[3] or 0)
    return counts


def _count_in_oclgrind() -> None:
    import pyopencl as cl

    from perfvec.arch.replay import replay
    from perfvec.errors import PerfVecError

    device = next(p for p in cl.get_platforms() if p.name == "Oclgrind").get_devices()[0]
    for launch in pickle.load(sys.stdin.buffer):
        sys.stdout.write(f"{_MARK}\n")
        sys.stdout.flush()
        try:
            replay(replace(launch, build_options=(*launch.build_options, WITHOUT_OPTIMISER)), device)
        except PerfVecError as error:
            sys.stderr.write(f"{error}\n")


if __name__ == "__main__":
    _count_in_oclgrind()
