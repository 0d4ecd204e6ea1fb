"""Random kernels give the same bits in the executor, on optimised and unoptimised IR, as on PoCL."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from perfvec.arguments import BufferArg, parse_argument
from perfvec.launch import Launch
from tests.opencl import pocl_device
from tests.program.agreement import Verdict, judge
from tests.program.launching import make_launch
from tests.program.random_kernels import GROUP, INPUT_BYTES, LANES, ROW_BYTES, float_bodies, integer_bodies, kernel_of

pytestmark = pytest.mark.usefixtures("front_end")

# Bodies for each property: the same few each time, or ever new ones, as CONTRIBUTING.md says.
NUM_BODIES = int(os.environ.get("PERFVEC_RANDOM_KERNELS", "0"))
BODIES_OF_A_KERNEL = 3
PROFILE = settings(
    max_examples=NUM_BODIES or 15,
    phases=[Phase.generate],  # what fails is told body by body; to shrink one costs minutes of PoCL's compiler
    derandomize=not NUM_BODIES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def _input() -> bytes:
    """Numbers at the limits of every type between random ones."""
    random = np.random.default_rng(11)
    words = np.frombuffer(random.bytes(INPUT_BYTES), np.uint32).copy()
    limits = [0, 1, 0x80, 0x7F, 0xFF, 0x8000, 0x7FFF, 0xFFFF, 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF, 0x80808080]
    floats = np.array([0.5, -1.5, 2.5, 16777216, 3e9, -3e9, np.inf, -np.inf, np.nan, 1e-40, 255.5, -0.0], np.float32)
    special = np.concatenate([np.array(limits, np.uint32), floats.view(np.uint32)])
    places = random.random(words.size) < 0.4
    words[places] = random.choice(special, places.sum())
    return words.tobytes()


def _launch(bodies: Sequence[str]) -> Launch:
    given = parse_argument(f"buffer:uint8:{INPUT_BYTES}", position=0)
    assert isinstance(given, BufferArg)
    out = f"buffer:uint8:{len(bodies) * LANES * ROW_BYTES}:constant(0)"
    return make_launch(kernel_of(bodies), replace(given, data=_input()), out, global_size=LANES, local_size=GROUP)


class _Judge:
    """Judges in a process of its own, because PoCL 3.1 crashes on some of these kernels; Oclgrind has its say then."""

    def __init__(self) -> None:
        self.by_oracle: Counter[str] = Counter()
        self._start()

    def _start(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __call__(self, bodies: Sequence[str]) -> Verdict:
        for without_pocl in (False, True):
            try:
                verdict = self._pool.submit(judge, "random", _launch(bodies), without_pocl=without_pocl).result()
            except BrokenProcessPool:
                self._start()
            else:
                self.by_oracle[verdict.oracle] += 1
                return verdict
        pytest.fail(f"the executor ends the process:\n{kernel_of(bodies)}")


def _check(strategy: st.SearchStrategy[str]) -> None:
    pocl_device()
    bodies: list[str] = []
    PROFILE(given(strategy)(lambda body: bodies.append(body)))()
    ask = _Judge()
    for first in range(0, len(bodies), BODIES_OF_A_KERNEL):
        batch = bodies[first : first + BODIES_OF_A_KERNEL]
        if not ask(batch).oracle:
            for body in batch:
                verdict = ask([body])
                assert verdict.oracle, f"{kernel_of([body])}\n" + "\n".join(verdict.differences)
            pytest.fail(f"the bodies agree alone, and not together:\n{kernel_of(batch)}")
    print(ask.by_oracle)  # noqa: T201  (shown with -s)
    assert ask.by_oracle["PoCL"] >= ask.by_oracle.total() / 2


def test_integers():
    _check(integer_bodies())


def test_floats():
    _check(float_bodies())
